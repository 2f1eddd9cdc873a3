"""What ends by itself: sessions, tries of PINs, shown codes, wallets nobody opened."""

from celery import shared_task

from agency.holders.wallet import pins, sessions, shown_cards, visitors


@shared_task
def forget_ended_sessions() -> None:
    sessions.forget_ended_sessions()
    pins.forget_old_tries()
    shown_cards.forget_old_cards()
    visitors.remove_unopened()


# The beat of a version before sends this name until it is restarted. To be removed in
# the release after this one.
shared_task(name="agency.web_wallet.tasks.forget_ended_sessions")(
    forget_ended_sessions.run
)
