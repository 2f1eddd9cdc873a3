"""`manage.py deliver`: the loops of the workers in one process, without a broker."""

import logging
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, InterfaceError, connection

from agency.ops import checks, heartbeats
from connections import tasks as messages
from core.telemetry.logs import log_start, log_uncaught
from core.work.loop import stop_loops
from webhooks import tasks as webhooks

logger = logging.getLogger(__name__)
PAUSE_SECONDS = 1.0  # between two runs of a job
JOBS = (messages.sweep, messages.deliver, webhooks.deliver, webhooks.maintain)


class Command(BaseCommand):
    help = (
        "Deliver what is due, without a broker: messages of wallets and agents, and "
        "calls of webhooks."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--loop", action="store_true", help="until SIGTERM or Ctrl-C"
        )

    def handle(self, loop: bool, **options: str | int | bool | None) -> None:
        log_uncaught()
        checks.check_or_exit()
        over = Event()
        if not loop:
            over.set()
        else:
            log_start("deliver")
            heartbeats.start_heartbeats("deliver")
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop_all(over))
        with ThreadPoolExecutor(len(JOBS)) as threads:
            for done in [threads.submit(run_job, job, over) for job in JOBS]:
                done.result()


def stop_all(over: Event) -> None:
    over.set()
    stop_loops()


def run_job(job: Callable[[], None], over: Event) -> None:
    """Run a job repeatedly until `over` is set, at least once.

    Errors are logged. One that is not of the database is raised by the last run.
    """
    while True:
        try:
            job()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("nothing is delivered meanwhile: %s", type(error).__name__)
        except Exception:  # a bug in one job must not end it while the others go on
            if over.is_set():
                raise
            logger.exception("a job of deliver has failed")
        finally:
            connection.close()
        if over.wait(PAUSE_SECONDS if not over.is_set() else 0):
            return
