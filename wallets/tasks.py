"""Generate the spare keys that are missing in the pool, and renew certificates."""

from celery import shared_task

from core.work.notify import notify_worker
from wallets import key_generator
from wallets.models import SigningKey

# Then other tasks have their turn of the worker's thread, and a restart its chance.
FILL_SECONDS = 60


@shared_task
def renew_certificates() -> None:
    """Renew the certificates of organizations' keys, well before they end."""
    SigningKey.renew()


@shared_task
def fill_key_pool() -> None:
    """Generate what is missing, unless another process of this host does already.

    A key that is begun is finished. What is still missing then is left to the next run.
    """
    made = key_generator.fill_pool(seconds=FILL_SECONDS)
    if made and key_generator.count_missing():
        notify_worker("wallets.tasks.fill_key_pool")
