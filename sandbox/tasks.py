"""Background tasks of the sandbox. They take no arguments: they query the rows."""

from typing import Any

from celery import shared_task
from celery.signals import worker_shutting_down

from sandbox import answering, retention


@shared_task
def answer_exchanges() -> None:
    """Let simulated holders answer what is due, until nothing is."""
    answering.loop.run()


@shared_task
def delete_old_data() -> None:
    retention.delete_old_data()


@worker_shutting_down.connect
def stop_answering(**signal: Any) -> None:
    answering.loop.stop()
