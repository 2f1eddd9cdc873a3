"""The worker that removes what was deleted, in tests."""

import pytest

from core.work import retention
from tenants.lifecycle import erasure
from tenants.models import Erasure


def worker_erases():
    """Remove all rows of what was deleted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retention, "PAUSE_SECONDS", 0)
        while Erasure.due().exists():
            erasure.erase_due()
