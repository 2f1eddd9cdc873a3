"""Runs the commands of the Procfile together: labelled output, one end for all. No Django here."""

import contextlib
import io
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import NoReturn, TextIO

import psutil

MARK = "AGENCY_LAUNCHER"


class Ended(Exception):
    """A command that should run for ever has ended; the argument is its name and exit code."""


def say(line: str, end: str = "\n", file: TextIO | None = None) -> None:
    """Prints a line; a terminal that is gone stops nothing."""
    with contextlib.suppress(OSError):
        print(line, end=end, file=file, flush=True)


def commands() -> dict[str, str]:
    """The shell commands of the Procfile in the working directory, by name."""
    lines = (line.partition(": ") for line in Path("Procfile").read_text().splitlines())
    return {name: command for name, _, command in lines}


class Supervisor:
    """Commands in process groups of their own: Ctrl-C reaches only us, and we end them.

    They and what they start carry `mark` in their environment: so `sweep` finds them after we
    were killed.
    """

    def __init__(self, mark: str):
        self.mark = mark
        self.environment = os.environ | {MARK: mark, "PYTHONUNBUFFERED": "1"}
        self.services: dict[str, subprocess.Popen[str]] = {}
        self.relays: list[threading.Thread] = []

    def start(self, name: str, command: str) -> None:
        process = self.popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.services[name] = process
        self.relays.append(
            threading.Thread(target=relay, args=(name, process), daemon=True)
        )
        self.relays[-1].start()

    def popen(
        self, command: str, stdout: int | None = None, stderr: int | None = None
    ) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            env=self.environment,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
            errors="replace",
        )

    def check(self) -> None:
        """Raises Ended when a service has."""
        for name, process in self.services.items():
            if process.poll() is not None:
                raise Ended(
                    f"{name} ended unexpectedly (exit code {process.returncode})"
                )

    def watch(self) -> NoReturn:
        """Returns only by raising Ended."""
        while True:
            self.check()
            time.sleep(0.2)

    def run(self, command: str) -> int:
        """Runs a command beside the services, with our output; answers its exit code."""
        process = self.popen(command)
        try:
            while process.poll() is None:
                self.check()
                time.sleep(0.2)
            return process.returncode
        finally:
            end([process], grace=5)

    def capture(self, command: str) -> tuple[int, str]:
        """Runs a command; answers its exit code and all it printed."""
        process = self.popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            output, _ = process.communicate()
            return process.returncode, output
        finally:
            end([process], grace=5)

    def stop(self, grace: float = 30) -> None:
        """Asks all services to end, kills what is left of them after `grace` seconds."""
        end(list(self.services.values()), grace)
        for thread in self.relays:
            thread.join(timeout=2)


def relay(name: str, process: "subprocess.Popen[str]") -> None:
    with process.stdout or io.StringIO() as lines:
        for line in filter(str.strip, lines):
            say(f"{name:<6} | {line.rstrip()}")


def end(processes: list["subprocess.Popen[str]"], grace: float) -> None:
    deadline = time.monotonic() + grace
    for process in processes:
        signal_group(process, signal.SIGTERM)
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
    for process in processes:
        signal_group(process, signal.SIGKILL)
        process.wait()


def signal_group(process: "subprocess.Popen[str]", number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def sweep(mark: str, grace: float = 10) -> int:
    """Ends what a killed launcher with this mark has left behind; answers how many processes."""
    leftovers = [process for process in psutil.process_iter() if carries(process, mark)]
    for ask in (psutil.Process.terminate, psutil.Process.kill):
        deadline = time.monotonic() + grace
        for process in leftovers:
            with contextlib.suppress(psutil.Error):
                ask(process)
        while any(carries(process, mark) for process in leftovers):
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
    return len(leftovers)


def carries(process: psutil.Process, mark: str) -> bool:
    try:
        return process.pid != os.getpid() and process.environ().get(MARK) == mark
    except psutil.Error:
        return False
