"""Run the commands of the Procfile together, with labelled output, without Django."""

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


class ProcessEnded(Exception):
    """A service has ended. The message contains its name and exit code."""


def print_line(line: str, end: str = "\n", file: TextIO | None = None) -> None:
    """Print a line. Ignore a closed terminal."""
    with contextlib.suppress(OSError):
        print(line, end=end, file=file, flush=True)


def read_procfile() -> dict[str, str]:
    """Return the shell commands of the Procfile in the working directory, by name."""
    lines = (line.partition(": ") for line in Path("Procfile").read_text().splitlines())
    return {name: command for name, _, command in lines}


class Supervisor:
    """Runs each command in its own process group: Ctrl-C reaches only this process.

    The commands and their children have `mark` in their environment, so that
    `end_marked_processes` finds them if this process was killed.
    """

    def __init__(self, mark: str):
        self.mark = mark
        self.environment = os.environ | {MARK: mark, "PYTHONUNBUFFERED": "1"}
        self.services: dict[str, subprocess.Popen[str]] = {}
        self.relays: list[threading.Thread] = []

    def start(self, name: str, command: str, **given: str) -> None:
        """given: environment variables for this process only, as below."""
        process = self.start_process(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **given
        )
        self.services[name] = process
        self.relays.append(
            threading.Thread(target=relay_output, args=(name, process), daemon=True)
        )
        self.relays[-1].start()

    def start_process(
        self,
        command: str,
        stdout: int | None = None,
        stderr: int | None = None,
        **given: str,
    ) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            env=self.environment | given,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
            errors="replace",
        )

    def raise_if_ended(self) -> None:
        for name, process in self.services.items():
            if process.poll() is not None:
                raise ProcessEnded(
                    f"{name} ended unexpectedly (exit code {process.returncode})"
                )

    def watch(self) -> NoReturn:
        """Wait until a service ends, then raise ProcessEnded."""
        while True:
            self.raise_if_ended()
            time.sleep(0.2)

    def run(self, command: str) -> int:
        """Run a command beside the services, with our output. Return its exit code."""
        process = self.start_process(command)
        try:
            while process.poll() is None:
                self.raise_if_ended()
                time.sleep(0.2)
            return process.returncode
        finally:
            end_processes([process], grace=5)

    def capture(self, command: str, **given: str) -> tuple[int, str]:
        process = self.start_process(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **given
        )
        try:
            output, _ = process.communicate()
            return process.returncode, output
        finally:
            end_processes([process], grace=5)

    def stop(self, grace: float = 30) -> None:
        """Send SIGTERM to all services, and SIGKILL after `grace` seconds."""
        end_processes(list(self.services.values()), grace)
        for thread in self.relays:
            thread.join(timeout=2)


def relay_output(name: str, process: "subprocess.Popen[str]") -> None:
    with process.stdout or io.StringIO() as lines:
        for line in filter(str.strip, lines):
            print_line(f"{name:<6} | {line.rstrip()}")


def end_processes(processes: list["subprocess.Popen[str]"], grace: float) -> None:
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


def end_marked_processes(mark: str, grace: float = 10) -> int:
    """End the processes that a killed launcher with this mark left behind.

    Sends SIGTERM, and SIGKILL after `grace` seconds. Return the number of processes.
    """
    leftovers = [
        process for process in psutil.process_iter() if has_mark(process, mark)
    ]
    for send_signal in (psutil.Process.terminate, psutil.Process.kill):
        deadline = time.monotonic() + grace
        for process in leftovers:
            with contextlib.suppress(psutil.Error):
                send_signal(process)
        while any(has_mark(process, mark) for process in leftovers):
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
    return len(leftovers)


def has_mark(process: psutil.Process, mark: str) -> bool:
    try:
        return process.pid != os.getpid() and process.environ().get(MARK) == mark
    except psutil.Error:
        return False
