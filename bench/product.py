"""Processes of the product as the Procfile starts them, on the servers of a bench."""

import os
import socket
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import redis
from django.conf import settings
from django.db import connection

from agency.devtools.supervisor import Supervisor, read_procfile
from agency.ops.healthcheck import probe_health

WORKERS = ("stream", "worker", "deliver", "beat")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def running(*names, **environment):
    """The URL of the web server, one of the processes, while the block runs."""
    with run_services(*names, **environment) as (url, _):
        yield url


@contextmanager
def run_services(*names, **environment):
    """The URL of the web server, and the supervisor with `services` by name."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    product = Supervisor(mark=f"bench {port}")
    product.environment |= {
        "PORT": str(port),
        "STREAM_PORT": str(free_port()),
        "PUBLIC_URL": url,
        "PATH": path,
        "PYTHONWARNINGS": "ignore",  # Celery warns of root
    } | environment
    try:
        for name in names:
            product.start(name, read_procfile()[name])
        wait_for(lambda: probe_health(port, url), product)
        yield url, product
    finally:
        product.stop()


def wait_for(condition, product, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        product.raise_if_ended()
        if time.monotonic() > end:
            raise RuntimeError("the product did not start")
        time.sleep(0.1)


def process_families(product):
    """The processes of the product and its servers, by family."""
    service = {
        name: psutil.Process(process.pid) for name, process in product.services.items()
    }
    workers = [process for name, process in service.items() if name in WORKERS]
    found = {"web": [service["web"]], "workers": workers}
    return found | server_processes()


def server_processes():
    """PostgreSQL and Valkey, if they run on this machine."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()[0]
    broker = redis.Redis.from_url(settings.REDIS_URL).info("server")["process_id"]
    try:
        return {
            "postgres": [psutil.Process(backend).parent()],
            "broker": [psutil.Process(broker)],
        }
    except psutil.NoSuchProcess:
        raise RuntimeError(
            "PostgreSQL or Valkey runs elsewhere: unset DATABASE_URL and REDIS_URL"
        ) from None
