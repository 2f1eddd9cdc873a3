"""The OpenAPI document describes one dialect, and names where the other differs."""

import re

import pytest
from drf_spectacular.generators import SchemaGenerator

from agency.api.dialects import DIFFERENCES, LITERAL_HEADER
from tests.support.openapi import complaints, operations
from tests.support.paths import ROOT
from tests.support.world import caller, filled

pytestmark = pytest.mark.django_db(transaction=True)
# How a complaint begins, by the schema of which an answer in the other dialect differs.
BEGINNINGS = {
    "AgentEndpoint": r"\$(\[\d+\])?\.endpoint\.verkey: \[",
    "AvailableCredentials": r"\$: \[.* is not of type 'object'",
}
BY_LINK = "/verifications/fromData/availableCredentials"


@pytest.fixture
def read(world):
    """Call each operation that changes nothing: its answers by whether it is literal."""
    ids = world.api_ids()
    key = {LITERAL_HEADER: world.faber.made.subscription_key}
    form = {"verificationData": world.request_by_link()}

    def read(method, path):
        options = {"form": form} if path.endswith(BY_LINK) else {}
        address = filled(path, ids)
        asking = caller(world.faber, path)
        headers = {} if asking is not world.faber else key
        return {
            True: asking.send(method, address, **options, **headers),
            False: asking.send(method, address, **options),
        }

    return read


def test_without_the_header_answers_differ_as_the_operations_say(read):
    document = SchemaGenerator().get_schema(request=None, public=True)
    seen = set()
    for path, method, operation in operations(document):
        is_read = method == "get" or path.endswith(BY_LINK)
        if not is_read or "Ledger" in operation["tags"] or path.endswith("/stream"):
            continue
        answers = read(method, path)
        assert not complaints(document, operation, answers[True]), path
        for found in complaints(document, operation, answers[False]):
            [name] = [one for one, text in BEGINNINGS.items() if re.match(text, found)]
            assert DIFFERENCES[name] in operation["description"], path
            seen.add(name)
    assert seen == set(BEGINNINGS)


def test_the_usual_events_of_a_webhook_depend_on_the_header(world):
    made = [
        world.faber.call("post", "/webhooks", {"url": "https://office.example"}, **key)
        for key in ({LITERAL_HEADER: world.faber.made.subscription_key}, {})
    ]
    literal, other = (set(webhook["messageTypes"]) for webhook in made)
    added = other - literal
    assert added and not literal - other
    assert all(f"`{one}`" in DIFFERENCES["WebhookParameters"] for one in added)


def test_the_docs_list_what_differs():
    page = (ROOT / "docs/decisions/two-dialects.md").read_text()
    rows = [f"| `{name}` | {text} |" for name, text in DIFFERENCES.items()]
    assert "\n".join(rows) in page
