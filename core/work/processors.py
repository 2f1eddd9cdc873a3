"""The processors: how many there are, and who may wait for them.

One web process is started for each (agency/command_line.py).
`python -m core.work.processors` prints their number, for the Makefile.
"""

import contextlib
import os
from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")
CGROUP_OF_PROCESS = Path("/proc/self/cgroup")


def count_processors() -> int:
    """Return the number of processors that this process may use.

    A limit of processor time, as containers and systemd set it, counts like fewer
    processors, rounded down: more processes than that would only delay each other.
    """
    try:
        number = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        number = os.cpu_count() or 1
    try:
        lines = CGROUP_OF_PROCESS.read_text().splitlines()
    except OSError:  # not Linux
        lines = []
    # The cgroups (version 2) around this process.
    folders = [
        CGROUP_ROOT / line.removeprefix("0::/")
        for line in lines
        if line.startswith("0::/")
    ]
    groups = [group for folder in folders for group in (folder, *folder.parents)]
    limits: list[float] = [number]
    for group in groups:
        if group.is_relative_to(CGROUP_ROOT):
            # Such as `150000 100000`. There is no number in `max 100000`.
            with contextlib.suppress(OSError, ValueError):  # no such cgroup, no limit
                quota, period = (group / "cpu.max").read_text().split()
                limits.append(int(quota) / int(period))
    return max(1, int(min(limits)))


def yield_processors(process: int = 0) -> None:
    """Let a process of this user, or else this one, run when no other one wants to.

    On Linux it is SCHED_IDLE: a processor that runs it counts as idle, so another
    process that wakes up never waits for it. Elsewhere, or where a container forbids
    that, it has the lowest priority.
    """
    os.setpriority(os.PRIO_PROCESS, process, 19)
    if hasattr(os, "SCHED_IDLE"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(process, os.SCHED_IDLE, os.sched_param(0))


if __name__ == "__main__":
    print(count_processors())
