"""Where the time of a whole cycle goes, by package, in this process.

Shares of the CPU time of one thread, as cProfile measures it: calls of small functions
count for more than they cost. `connect` is included. PostgreSQL's own time is not.
"""

import cProfile
import pstats
import time
from collections import Counter
from pathlib import Path

from bench.queries import InProcess

CYCLES = 20
SITE_PACKAGES = "site-packages"
PROJECT = Path(__file__).parent.parent


def run():
    caller = InProcess().prepare()
    whole_cycle(caller)
    started = time.process_time()
    for _ in range(CYCLES):
        whole_cycle(caller)
    seconds = time.process_time() - started
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    for _ in range(CYCLES):
        whole_cycle(caller)
    profile.disable()
    by_group, by_module = shares(pstats.Stats(profile))
    whole = sum(by_group.values())
    print(f"CPU of a cycle with connecting: {1000 * seconds / CYCLES:.0f} ms")
    for title, counted in (("package", by_group), ("module of ours", by_module)):
        print(f"\n{title:45} share")
        for name, used in counted.most_common(16):
            print(f"{name:45} {used / whole:5.1%}")


def whole_cycle(caller):
    for _ in caller.connection_steps():
        pass
    caller.cycle()


def shares(stats):
    """The seconds by package, and by module of the project."""
    by_group, by_module = Counter(), Counter()
    for (file, _, name), (_, _, own, _, callers) in stats.stats.items():
        if file == "~":  # a function in C counts for the modules that call it
            for (caller, _, _), (_, _, own_of_caller, _) in callers.items():
                group = (
                    "the cryptography" if is_cryptography(name) else group_of(caller)
                )
                by_group[group] += own_of_caller
            continue
        by_group[group_of(file)] += own
        path = Path(file)
        if path.is_relative_to(PROJECT) and SITE_PACKAGES not in file:
            by_module[str(path.relative_to(PROJECT))] += own
    return by_group, by_module


def is_cryptography(name):
    return "ctypes" in name or "CFuncPtr" in name


def group_of(file):
    parts = Path(file).parts
    if SITE_PACKAGES in parts:
        below = parts[parts.index(SITE_PACKAGES) + 1 :]
        if below[0] == "anoncreds":
            return "the cryptography"
        if below[:2] == ("django", "db"):
            return ".".join(below[:4]).removesuffix(".py")
        return below[0].removesuffix(".py")
    if Path(file).is_relative_to(PROJECT):
        return f"ours: {Path(file).relative_to(PROJECT).parts[0]}"
    return "Python's library"
