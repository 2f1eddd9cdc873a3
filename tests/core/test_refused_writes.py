"""PostgreSQL answers, and refuses to write."""

import pytest
from django.db import connection
from django.test import Client

from core.database import refused_writes
from tests.support.errors import assert_error, error_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=refused_writes.REASONS)
def words(request, monkeypatch):
    """The server refuses connections of ours as if its disk were full, or a standby's."""
    monkeypatch.setattr(refused_writes, "last_refusal", None)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse_to_write() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{request.param}'; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER refusal BEFORE INSERT ON connections_connection "
            "EXECUTE FUNCTION refuse_to_write()"
        )
    yield refused_writes.REASONS[request.param][1]
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION refuse_to_write CASCADE")


def test_a_call_that_cannot_write_is_asked_to_come_again(faber, words):
    assert_error(error_of(faber.post, "/connections"), 503, "not_ready")
    assert faber.get("/connections") == []


def test_the_status_says_why_for_a_while(faber, words, monkeypatch):
    assert refused_writes.describe_refusals() is None
    error_of(faber.post, "/connections")
    assert words in Client().get("/health/status").json()["errors"]["writes"][0]
    assert Client().get("/health/ready").json()["writes"].startswith("degraded")
    monkeypatch.setattr(refused_writes, "REMEMBERED_SECONDS", 0)
    assert refused_writes.describe_refusals() is None
