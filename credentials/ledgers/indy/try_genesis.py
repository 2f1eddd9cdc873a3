"""Read a genesis from standard input with the library, in a process of its own.

An unreadable text makes the library panic, and then all pools of the process fail. A
validator without a valid address makes the library hang when it is called. Nothing is
sent to the network. The exit code is 0 if the text can be read and names validators.
"""

import asyncio
import sys
from ipaddress import ip_address

from indy_vdr import open_pool

SECONDS = 3


async def read(genesis: str) -> None:
    pool = await open_pool(transactions=genesis, no_refresh=True)
    validators = await pool.get_verifiers()
    for validator in validators.values():
        # An address is like `tcp://127.0.0.1:9702`.
        host, _, port = validator["client_addr"].removeprefix("tcp://").rpartition(":")
        ip_address(host)
        if not 0 < int(port) < 65536:
            raise ValueError(port)
    if not validators:
        raise ValueError("no validator")


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(read(sys.stdin.read()), SECONDS))
