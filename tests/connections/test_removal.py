"""A connection with very much on it is deleted in small transactions."""

import pytest

from connections import removal
from connections.models import BasicMessage, Connection
from connections.protocols import confirmation
from credentials.models import Credential

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Ann", "level": "7"}


@pytest.fixture
def row(faber, monkeypatch):
    """Faber's connection with seven texts, three credentials and an open offer."""
    monkeypatch.setattr(removal, "ROWS_AT_ONCE", 2)
    alice, definition = faber.hosts(), faber.defines("name", "level")
    for _ in range(3):
        alice.receives(faber, definition, VALUES)
    faber.offers(alice, definition, VALUES)
    for number in range(7):
        body = {"connectionId": alice.known_as(faber), "text": str(number)}
        faber.post("/messages", body)
    return Connection.objects.get(connection_id=alice.known_as(faber))


def count_left(row):
    """How many texts and credentials the connection still has."""
    return [
        model.objects.filter(connection=row).count()
        for model in (BasicMessage, Credential)
    ]


def test_little_is_left_to_the_last_transaction(row, monkeypatch):
    monkeypatch.setattr(Connection, "remove", lambda row: 1 / 0)
    assert count_left(row) == [7, 4]
    with pytest.raises(ZeroDivisionError):
        confirmation.refuse_or_remove(row)
    assert count_left(row) == [1, 2], "with the open offer"


def test_what_was_cut_off_is_deleted_when_it_is_repeated(faber, row, monkeypatch):
    with monkeypatch.context() as broken, pytest.raises(ZeroDivisionError):
        broken.setattr(Connection, "remove", lambda row: 1 / 0)
        confirmation.refuse_or_remove(row)
    faber.delete(f"/connections/{row.connection_id}")
    assert not Connection.objects.filter(pk=row.pk).exists()
    states = [one["state"] for one in faber.get("/credentials")]
    assert states == ["Rejected", "Issued", "Issued", "Issued"]
