"""What ends by itself: sessions of holders, tries of PINs, wallets nobody opened."""

from celery import shared_task

from agency.holders.wallet import pins, sessions, visitors


@shared_task
def forget_ended_sessions() -> None:
    sessions.forget_ended_sessions()
    pins.forget_old_tries()
    visitors.remove_unopened()
