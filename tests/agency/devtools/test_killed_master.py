"""kill -9 of granian's master leaves nobody who serves."""

import os
import signal
import socket
from pathlib import Path

import psutil
import pytest

from agency.ops.healthcheck import probe_health
from tests.support.processes import eventually, processes

SECONDS_TO_END = 5


@pytest.mark.parametrize("name", ["web", "stream"])
def test_the_workers_of_a_killed_master_end_and_release_the_port(
    tmp_path: Path, name: str
) -> None:
    with processes(tmp_path, WEB_PROCESSES="2") as run:
        stream_port = int(run.supervisor.environment["STREAM_PORT"])
        port = run.port if name == "web" else stream_port
        master = run.start(name)
        eventually(lambda: probe_health(port, run.url))
        workers = run.children(name)
        assert len(workers) == (2 if name == "web" else 1)
        os.kill(master, signal.SIGKILL)
        _, alive = psutil.wait_procs(workers, timeout=SECONDS_TO_END)
        assert alive == []
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
