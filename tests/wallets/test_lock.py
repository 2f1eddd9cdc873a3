"""The lock of a wallet keeps it from being deleted, and others from locking it."""

import pytest
from django.db import connection, transaction
from django.utils import timezone

from agency.core.errors import NotFound
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def wallet(faber):
    faber.hosts("Alice")
    return Wallet.objects.get(is_organization=False)


def test_it_locks_the_row_until_the_transaction_ends(wallet):
    other = connection.copy()
    try:
        with transaction.atomic():
            assert wallet.lock()
            with other.cursor() as cursor:
                cursor.execute(
                    "SELECT id FROM wallets_wallet WHERE id = %s "
                    "FOR NO KEY UPDATE SKIP LOCKED",
                    [wallet.pk],
                )
                assert cursor.fetchall() == []
    finally:
        other.close()


def test_a_deleted_wallet_is_not_locked(wallet):
    Wallet.objects.filter(pk=wallet.pk).update(deleted_at=timezone.now())
    with transaction.atomic():
        assert not wallet.lock()
        with pytest.raises(NotFound):
            wallet.lock_or_404()


def test_a_lock_outside_of_a_transaction_is_refused(wallet):
    with pytest.raises(RuntimeError, match="atomic"):
        wallet.lock()
