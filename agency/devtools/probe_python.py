"""Print how fast this Python is, for `make install`, which takes the fastest.

A line with the microseconds of a short loop and the path of the interpreter; nothing
if it is older than 3.11 or cannot make virtual environments. One that was compiled
without profile-guided optimization, as pyenv does by default, takes half as long again
as one of a distribution. Uses the standard library only.
"""

import importlib.util
import sys
import time


class Point:
    def __init__(self, x: int) -> None:
        self.x = x

    def moved(self, *by: int, **named: int) -> "Point":
        return Point(self.x + by[0] + named["more"])


def time_loop() -> float:
    """Seconds of this thread's CPU, of a loop that seldom has to share it."""
    started, point = time.thread_time(), Point(0)
    for number in range(2_000):
        point = point.moved(number, more=len(f"{number}"))
    return time.thread_time() - started


if __name__ == "__main__":
    if sys.version_info >= (3, 11) and importlib.util.find_spec("ensurepip"):
        print(round(min(time_loop() for _ in range(100)) * 1e6), sys.executable)
