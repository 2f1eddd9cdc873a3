"""The worker that removes what was deleted, in tests."""

from tenants.lifecycle import erasure
from tenants.models import Erasure


def worker_erases():
    """Remove all rows of what was deleted."""
    while Erasure.due().exists():
        erasure.erase_due()
