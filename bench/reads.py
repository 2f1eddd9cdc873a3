"""Reads of one connection per second, by 1 and 16 clients, from 1 and 2 processes."""

import json
import subprocess
import sys
from urllib.parse import urlsplit

from bench.product import running
from bench.story import Caller

CLIENTS, PROCESSES = (1, 16), (1, 2)
SECONDS = 4.0


def run():
    for processes in PROCESSES:
        with running("web", WEB_PROCESSES=str(processes)) as url:
            caller = Caller(url).prepare()
            for clients in CLIENTS:
                rate = reads_per_second(caller, clients)
                print(
                    f"{processes} process(es), {clients:2} client(s): "
                    f"{rate:6.0f} reads per second",
                    flush=True,
                )


def reads_per_second(caller, clients):
    """Measure `GET /connections/…` by as many clients of this organization."""
    parts = urlsplit(caller.url)
    headers = {"Host": parts.netloc} | {
        name: value
        for name, value in caller.session.headers.items()
        if name not in ("Accept-Encoding", "Connection")
    }
    lines = [f"GET /connections/{caller.connection} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    given = {
        "host": parts.hostname,
        "port": parts.port,
        "request": "\r\n".join(lines) + "\r\n\r\n",
        "clients": clients,
        "seconds": SECONDS,
    }
    printed = subprocess.run(
        [sys.executable, "-m", "bench.read_clients"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return float(printed)
