"""Reads a genesis from standard input with the library, in a process of its own.

A text that it cannot read makes the library panic, and after that all pools of the process fail.
Nothing is sent anywhere. Ends with 0 if the text can be read.
"""

import asyncio
import sys

from indy_vdr import open_pool

SECONDS = 5


async def read(genesis: str) -> None:
    pool = await open_pool(transactions=genesis, no_refresh=True)
    await pool.get_transactions()


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(read(sys.stdin.read()), SECONDS))
