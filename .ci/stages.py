"""The stages of .ci/run: what they need, and which of them run side by side.

The order, the budgets in seconds and the shares of the machine are in .ci/budgets. A
stage that fails ends those that need it; all others still run. Output goes to a log
for each stage, printed in the order in which they started.

All suites of pytest note into one folder which errors the API answered
(tests/support/recorded_errors.py); the stage `errors` reads what they wrote, the second
tries included.

A stage's CPU is that of its processes, also of those that outlive their parents, as
servers do; what still runs when the stage has ended is not counted.
"""

import contextlib
import ctypes
import glob
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent
MAKE = ["make", "--no-print-directory"]
# A browser and its server keep one core busy: beside the other agents, which do so too.
PAGES = ["tests/agency/pages", "tests/agency/studio", "tests/agency/holders"]
# Two at a time, as most of them wait; first the files with the longest timeouts.
SLOW = "--numprocesses 2 --dist loadfile --no-loadscope-reorder " + " ".join(
    f"--ignore {folder}" for folder in PAGES
)
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
AGAIN = "-again"
RED, PLAIN = "\033[31m", "\033[0m"


@dataclass
class Stage:
    """A command and how it went.

    suite: it is a run of pytest of things that depend on times, so that what failed is
    tried again, alone on the machine.
    """

    name: str
    command: list[str]
    after: list[str] = field(default_factory=list)
    suite: bool = False
    options: str = ""
    share: float = 1
    budget: float = 0
    result: str = "not run"
    seconds: float = 0
    cpu: float = 0
    began: float = 0
    process: "subprocess.Popen[bytes] | None" = None

    def start(self, logs: Path) -> None:
        self.began = time.monotonic()
        self.result = "stopped"
        command = [*MAKE, *self.command]
        if self.suite:
            # A cache of its own: two runs at once would forget each other's failures.
            cache = f"-o cache_dir=.pytest_cache/{self.name.removesuffix(AGAIN)}"
            command.append(f"ARGS={cache} {self.options}".rstrip())
        with open(logs / self.name, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(logs / f"{self.name}.cpu"), *command],
                stdout=log,
                stderr=log,
                env=os.environ | {"RECORDED_ERRORS": str(logs / "recorded-errors")},
                start_new_session=True,
            )

    def has_ended(self, logs: Path) -> bool:
        assert self.process
        if self.process.poll() is None:
            return False
        self.result = "failed" if self.process.returncode else "passed"
        self.seconds = time.monotonic() - self.began
        measured = logs / f"{self.name}.cpu"
        self.cpu = float(measured.read_text()) if measured.exists() else 0
        return True

    def stop(self) -> None:
        assert self.process
        os.killpg(self.process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.seconds = time.monotonic() - self.began

    def is_tried_again(self) -> bool:
        return self.suite and self.result == "failed" and not self.name.endswith(AGAIN)

    def again(self) -> "Stage":
        """The second try of what failed, alone on the machine."""
        return Stage(
            self.name + AGAIN, self.command, suite=True, options="--last-failed"
        )


def all_stages() -> list[Stage]:
    stages = [
        Stage("python", [".venv/bin/python"]),
        Stage("install", ["install"], ["python"]),
        Stage("tools", ["tools"], ["python"]),
        Stage("npm", ["tests/clients/node_modules/.installed"]),
        Stage("lint", ["lint"], ["install"]),
        Stage("check", ["check"], ["install"]),
        Stage("test", ["test"], ["install"], suite=True),
        Stage("test-production", ["test-production"], ["install"]),
        Stage("test-clients", ["test-clients"], ["install", "npm"]),
        # Some of them need axe-core of npm.
        Stage("test-slow", ["test-slow"], ["install", "npm"], True, SLOW),
        Stage("test-pages", ["test-slow"], ["install", "npm"], True, " ".join(PAGES)),
        Stage("test-pooled", ["test-pooled"], ["install", "tools"], True),
        Stage("test-interop", ["test-interop"], ["install"], True, "-k 'not credo'"),
        # They need no ledger. Each half keeps less than one core busy.
        Stage("test-credo", ["test-interop"], ["install"], True, "-k credo"),
        Stage("errors", ["errors"], ["test", "test-slow", "test-pages"]),
    ]
    if found := newest_interpreter():
        where = [f"VENV=.venv/{Path(found).name}", f"INTERPRETERS={found}"]
        given = f"INTERPRETER={found}"
        stages += [
            Stage("install-python", [*where, "install"], ["install"]),
            Stage(
                "test-python",
                ["test-python", given],
                ["install-python"],
                True,
                "--numprocesses 1",
            ),
        ]
    else:
        print("== test-python: skipped, as there is no other Python on this machine")
    return in_order(stages)


def newest_interpreter() -> str | None:
    """The newest Python that is not the one of .venv.

    A name alone says little: pyenv puts programs on the PATH that only answer that the
    version is not chosen.
    """
    for version in ("3.13", "3.12"):
        if version == "{}.{}".format(*sys.version_info):
            continue
        versions = glob.glob(f"{Path.home()}/.pyenv/versions/{version}.*/bin")
        for folder in (os.environ["PATH"], *versions):
            path = shutil.which(f"python{version}", path=folder)
            if (
                path
                and not subprocess.run([path, "-c", ""], capture_output=True).returncode
            ):
                return path
    return None


def in_order(stages: list[Stage]) -> list[Stage]:
    """Put stages in the order of .ci/budgets, with the numbers of it."""
    text = (FOLDER / "budgets").read_text()
    lines = [line.split("#")[0].split() for line in text.splitlines()]
    numbers = {line[0]: (float(line[1]), float(line[2])) for line in lines if line}
    for stage in stages:
        stage.budget, stage.share = numbers[stage.name]
    return sorted(stages, key=lambda stage: list(numbers).index(stage.name))


class Run:
    """All stages of a run. `started`: those whose logs are not printed whole."""

    def __init__(self, stages: list[Stage], logs: Path):
        self.stages, self.logs = stages, logs
        self.waiting = list(stages)
        self.running: list[Stage] = []
        self.started: list[Stage] = []
        self.named: Stage | None = None  # the one whose name was printed last
        self.position = 0  # in its log
        self.began = time.monotonic()

    def play(self) -> None:
        while self.waiting or self.running:
            self.start_what_fits()
            if not self.running:
                return  # what still waits needs a stage that failed
            time.sleep(0.05)
            for stage in [one for one in self.running if one.has_ended(self.logs)]:
                self.running.remove(stage)
                if stage.is_tried_again():
                    self.waiting.append(again := stage.again())
                    self.stages.insert(self.stages.index(stage) + 1, again)
            self.print_logs()

    def start_what_fits(self) -> None:
        """Start stages in their order. What could start now but does not fit is next."""
        for stage in [one for one in self.waiting if self.passed() >= set(one.after)]:
            busy = sum(one.share for one in self.running)
            if self.running and busy + stage.share > 1.01:
                return
            self.waiting.remove(stage)
            self.running.append(stage)
            self.started.append(stage)
            stage.start(self.logs)

    def print_logs(self) -> None:
        """Print what is new in the log of the first stage; if it has ended, the next."""
        while self.started:
            stage = self.started[0]
            has_ended = stage not in self.running
            if self.named is not stage:
                print(f"== {stage.name}")
                self.named = stage
            with open(self.logs / stage.name, "rb") as log:
                log.seek(self.position)
                sys.stdout.buffer.write(log.read())
                self.position = log.tell()
            if not has_ended:
                return
            print(f"== {stage.name}: {stage.seconds:.0f} s, {stage.cpu:.0f} s of CPU")
            self.position = 0
            self.started.pop(0)

    def stop(self) -> None:
        """End what still runs, and print what it said."""
        for stage in self.running:
            stage.stop()
        self.running = []
        self.print_logs()

    def print_table(self) -> None:
        print(
            "== stages: seconds, from which second of the run, seconds of CPU, result"
        )
        for stage in self.stages:
            line = f"{stage.name:<21}{stage.seconds:6.0f} s"
            if stage.began:
                line += f" from {stage.began - self.began:5.0f} {stage.cpu:7.0f} s CPU"
            print(f"{line}  {stage.result}")
        seconds, cpu = (
            time.monotonic() - self.began,
            sum(one.cpu for one in self.stages),
        )
        print(f"{'all':<21}{seconds:6.0f} s {'':10} {cpu:7.0f} s CPU")
        for stage in self.stages:
            if stage.budget and stage.seconds > stage.budget:
                print(
                    f"{RED}Slower than its budget in .ci/budgets: {stage.name}, "
                    f"{stage.seconds:.0f} s instead of {stage.budget:.0f} s{PLAIN}"
                )

    def passed(self) -> set[str]:
        """The stages that have passed, or what failed in them when tried again."""
        passed = [stage for stage in self.stages if stage.result == "passed"]
        return {stage.name.removesuffix(AGAIN) for stage in passed}

    def has_passed(self) -> bool:
        return self.passed() >= {
            stage.name.removesuffix(AGAIN) for stage in self.stages
        }


def measure(result: str, command: list[str]) -> int:
    """Run a command, and write the CPU seconds of it and of all that it started.

    On Linux this process adopts those whose parents end, so they are counted too.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = subprocess.Popen(command)  # kept: it would be waited for when deleted
    code = None
    while code is None:
        pid, status = os.wait()
        if pid == child.pid:
            code = os.waitstatus_to_exitcode(status)
    deadline = time.monotonic() + 2  # for servers that are about to end
    with contextlib.suppress(ChildProcessError):  # all have ended
        while time.monotonic() < deadline:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.02)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    Path(result).write_text(str(used.ru_utime + used.ru_stime))
    return code


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="agency-stages-") as logs:
        run = Run(all_stages(), Path(logs))
        try:
            run.play()
        except KeyboardInterrupt:
            pass
        finally:
            run.stop()
            run.print_table()
        return 0 if run.has_passed() else 1


if __name__ == "__main__":
    sys.exit(measure(sys.argv[1], sys.argv[2:]) if sys.argv[1:] else main())
