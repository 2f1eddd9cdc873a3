"""The lock of a wallet keeps it from being deleted, and others from locking it."""

import pytest
from django.db import transaction
from django.utils import timezone

from core.errors import NotFound
from tests.support.races import elsewhere
from wallets.models import Wallet


@pytest.fixture
def wallet(faber):
    return Wallet.of_organization(faber.tenant)


def test_it_locks_the_row_until_the_transaction_ends(wallet):
    rows = Wallet.objects.select_for_update(skip_locked=True, no_key=True)

    def is_free():
        with transaction.atomic():
            return rows.filter(pk=wallet.pk).exists()

    with transaction.atomic():
        assert wallet.lock()
        assert not elsewhere(is_free)
    assert elsewhere(is_free)


def test_a_deleted_wallet_is_not_locked(wallet):
    with pytest.raises(RuntimeError, match="atomic"):
        wallet.lock()
    Wallet.objects.filter(pk=wallet.pk).update(deleted_at=timezone.now())
    with transaction.atomic():
        assert not wallet.lock()
        with pytest.raises(NotFound):
            wallet.lock_or_404()
