"""The task that deletes ended sessions of holders, and old tries of PINs."""

from celery import shared_task

from agency.web_wallet import pins, sessions


@shared_task
def forget_ended_sessions() -> None:
    sessions.forget_ended_sessions()
    pins.forget_old_tries()
