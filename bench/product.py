"""Processes of the product as the Procfile starts them, on the servers of a bench."""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psutil
import redis
from django.conf import settings
from django.db import connection

from core.work.processors import count_processors
from tests.support.processes import processes

# What the bench itself reads too, and what tests have otherwise.
KEPT = ("ALLOWED_HOSTS", "STORAGE_ROOT", "METRICS_ROOT")
AS_IN_PRODUCTION = {"WEB_PROCESSES": str(count_processors()), "FAULT_INJECTION": "0"}
WORKERS = ("stream", "worker", "deliver", "beat")


@contextmanager
def running(*names, **environment):
    """The URL of the web server, which runs beside the processes with these names."""
    with run_services(*names, **environment) as (url, _):
        yield url


@contextmanager
def run_services(*names, **environment):
    """The URL of the web server, and the supervisor with `services` by name."""
    settings_of_bench = {name: os.environ[name] for name in KEPT}
    given = settings_of_bench | AS_IN_PRODUCTION | environment
    with (
        tempfile.TemporaryDirectory() as folder,
        processes(Path(folder), **given) as product,
    ):
        product.start_all(*names)
        yield product.url, product.supervisor


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
