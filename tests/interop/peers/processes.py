"""Peers of a test run, whose output is a file."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path


class Process:
    """A running command in its own process group."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path):
        self.command, self.log = command, log
        with open(log, "ab") as output:
            self.running = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.running.pid, number)

    def stop(self, seconds: float = 5) -> None:
        self.signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.running.wait(seconds)
        self.signal(signal.SIGKILL)  # with all that it has started
        self.running.wait()

    def check(self) -> None:
        assert self.running.poll() is None, f"{self.command[0]} ended:\n{self.output()}"

    def output(self) -> str:
        """What it said last, its record of requests left out."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(line for line in lines if '"GET ' not in line)[-4000:]
