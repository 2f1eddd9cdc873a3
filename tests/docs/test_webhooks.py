"""docs/webhooks.md matches the event types, the signatures and the retries."""

import re

import pytest

from connections.models import BasicMessage, Connection
from credentials.models import Credential
from tests.support.paths import DOCS
from tests.support.webhook_receiver import receiving, worker_calls
from verifications.models import Verification
from webhooks.api.event_bodies import MEANINGS
from webhooks.events import types
from webhooks.events.types import Type
from webhooks.models import Delivery

PAGE = (DOCS / "webhooks.md").read_text()
UNITS = {"s": 1, "min": 60, "h": 3600}
OTHERS = {
    "connection_ended": "both",
    "verification_judged": "hosted",
    "webhook_disabled": "–",
    "bulk_finished": "–",
    "mailing_finished": "–",
    "database_restored": "–",
}


def announced():
    return re.findall(r"^\| `(\w+)` \| (\S+) \| (\S+) \| ", PAGE, re.MULTILINE)


def wallets(kind):
    """In which wallets a step of this type happens, by the tables of the models."""
    if kind in BasicMessage.EVENTS.values():
        return {"own", "hosted"}
    return {
        "own" if role in ("inviter", "issuer", "verifier") else "hosted"
        for model in (Connection, Credential, Verification)
        for (role, _), event_type in model.EVENTS.items()
        if event_type == kind
    }


def test_the_table_has_every_type_in_its_order():
    assert [kind for kind, _, _ in announced()] == [str(kind) for kind in Type]


def test_the_openapi_document_says_the_same():
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|[^|]*\| (.+) \|$", PAGE, re.MULTILINE)
    told = {kind: re.sub(r"\[(.+)\]\(.*?\)", r"\1", text) for kind, text in rows}
    assert {kind: told[kind] for kind in Type} == MEANINGS


def test_each_row_says_who_is_told_unasked_and_where_it_happens():
    for kind, usual, wallet in announced():
        is_client = "C" if kind in types.CLIENTS else "–"
        assert usual == ("I" if kind in types.INTERFACE else is_client), kind
        where = wallets(kind)
        expected = "both" if len(where) == 2 else "".join(where) or OTHERS[kind]
        assert wallet == expected, kind


def test_the_schedule_is_that_of_deliveries():
    [row] = re.findall(r"^\| after \| (.*) \|$", PAGE, re.MULTILINE)
    seconds = [int(n) * UNITS[unit] for n, unit in re.findall(r"(\d+) (\w+)", row)]
    assert tuple(seconds) == Delivery.SCHEDULE


def examples():
    """The functions that the page's code makes."""
    space = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, space)
    return space


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["handle", "verified"])
@pytest.mark.parametrize("batch", [None, 10])
def test_the_examples_verify_a_call_and_refuse_a_forged_one(
    faber, settings, name, batch
):
    settings.OUTGOING_ALLOW_LOOPBACK, settings.WEBHOOK_REQUIRE_HTTPS = True, False
    verify = examples()[name]
    with receiving() as receiver:
        webhook = faber.post("/webhooks", {"url": receiver.url, "batch": batch})
        example = f"/webhooks/{webhook['id']}/example"
        for _ in range(3 if batch else 1):
            faber.post(example, {"messageType": "verification"})
        worker_calls()
    [call] = receiver.calls
    told = verify(call.headers, call.data, webhook["secret"])
    told = told if batch else [told]
    assert [one["message_type"] for one in told] == ["verification"] * len(told)
    assert len(told) == (3 if batch else 1)
    forged = call.data.replace(b"verification", b"new_connection")
    old = call.headers | {"webhook-timestamp": "1700000000"}
    for headers, body in ((call.headers, forged), (old, call.data)):
        with pytest.raises(Exception, match="sign|Message|time"):
            verify(headers, body, webhook["secret"])


def test_every_link_of_the_page_leads_somewhere():
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line.lower()).replace(" ", "-")
        for line in re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    }
    assert {link for link in re.findall(r"\]\(#([\w-]+)\)", PAGE)} <= headings
    for path in re.findall(r"\]\(([\w-]+\.md)\)", PAGE):
        assert (DOCS / path).exists()
