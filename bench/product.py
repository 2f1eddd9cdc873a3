"""Processes of the product as the Procfile starts them, on the servers of a bench."""

import os
import socket
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from agency.devtools.supervisor import Supervisor, read_procfile
from agency.ops.healthcheck import probe_health


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def running(*names, **environment):
    """The URL of the web server, one of the processes, while the block runs."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    product = Supervisor(mark=f"bench {port}")
    product.environment |= {
        "PORT": str(port),
        "PUBLIC_URL": url,
        "PATH": path,
    } | environment
    try:
        for name in names:
            product.start(name, read_procfile()[name])
        wait_for(lambda: probe_health(port, url), product)
        yield url
    finally:
        product.stop()


def wait_for(condition, product, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        product.raise_if_ended()
        if time.monotonic() > end:
            raise RuntimeError("the product did not start")
        time.sleep(0.1)
