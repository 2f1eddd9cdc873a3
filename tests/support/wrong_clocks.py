"""Processes whose clock is wrong."""

import subprocess
from pathlib import Path

from tests.support.tools import find_program

SOURCE = Path(__file__).with_name("wrong_clock.c")


def wrong_clock(seconds: int, folder: Path) -> dict[str, str]:
    """The environment of a process whose clock is so many seconds ahead.

    Not by libfaketime, which cannot leave the monotonic clock alone: in 0.9.10
    `time.sleep` fails then, and threads that wait for Python's lock do so by spinning.
    """
    library = folder / f"clock{seconds:+d}.so"
    if not library.exists():  # else processes may run with it
        options = ["-shared", "-nostdlib", f"-DSHIFT={seconds}", "-o", str(library)]
        subprocess.run([find_program("tcc"), *options, str(SOURCE)], check=True)
    return {"LD_PRELOAD": str(library)}
