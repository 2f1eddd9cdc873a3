"""An organization reads the log of its own calls."""

import json
import re

import pytest

from tests.support.errors import assert_error, error_of
from tests.support.paths import DOCS
from tests.support.request_log import written

__all__ = ["written"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def called(faber, acme, written):
    """Faber with three calls in the log, and Acme with one."""
    faber.get("/connections")
    faber.invites(name="Alice")
    faber.send("get", "/connections/nobody")
    acme.get("/connections")
    written()
    return faber


def test_a_call_is_found_by_the_id_of_its_answer(called, written):
    refused = called.send("get", "/credentials/nobody")
    written()
    [found] = called.get("/requestLog", requestId=refused["X-Request-Id"])
    assert (found["status"], found["errorCode"]) == (404, "not_found")
    assert found["route"] == "/credentials/{credentialId}"
    key = called.tenant.keys.get(kind="access_token")
    assert (found["keyId"], found["keyName"]) == (str(key.pk), key.name)
    assert found["keyBeginsWith"] == key.hint
    assert found["milliseconds"] >= 0 and found["address"] == "127.0.0.1"


FILTERS = [
    ({}, 3), ({"method": "POST"}, 1), ({"method": "PUT"}, 0),
    ({"route": "/connections/{connectionId}"}, 1), ({"route": "/connections"}, 2),
    ({"status": "2xx"}, 2), ({"status": "404"}, 1), ({"status": "5xx"}, 0),
    ({"errorCode": "not_found"}, 1), ({"requestId": "unknown-id"}, 0),
    ({"createdBefore": "2020-01-01T00:00:00Z"}, 0),
    ({"createdAfter": "2020-01-01T00:00:00Z"}, 3),
]  # fmt: skip


def test_the_log_is_filtered(called, acme):
    own, other = (one.tenant.keys.get(kind="access_token").pk for one in (called, acme))
    for filters, number in [*FILTERS, ({"keyId": own}, 3), ({"keyId": other}, 0)]:
        assert len(called.get("/requestLog", **filters)) == number, filters
    [theirs] = acme.get("/requestLog")
    assert theirs["id"] not in {row["id"] for row in called.get("/requestLog")}
    for status in ("ok", "600", "40", "4444", "-1", "٤٠٤"):
        error = error_of(called.get, "/requestLog", status=status)
        assert_error(error, 400, "invalid_request")


def test_the_example_of_the_docs_works(called):
    text = (DOCS / "studio.md").read_text()
    [path] = re.findall(r'"http://127.0.0.1:8000(/requestLog[^"]*)"', text)
    [shown] = re.findall(r'\[(\{"createdAtUtc".*),…\}\]', text)
    expected = json.loads(shown + "}")
    [found] = called.get(path)
    assert expected == {name: found[name] for name in expected} | {"createdAtUtc": "…"}
