"""Background tasks of the sandbox. They take no arguments: they query the rows."""

from celery import shared_task

from sandbox import answering, retention


@shared_task
def answer_exchanges() -> None:
    """Let simulated holders answer what is due, until nothing is."""
    answering.loop.run()


@shared_task
def delete_old_data() -> None:
    retention.delete_old_data()
