"""What depends on the header, beside the shapes that test_examples.py compares."""

import pytest

from core.api.dialects import DIFFERENCES, LITERAL_HEADER
from tests.support.paths import ROOT

pytestmark = pytest.mark.django_db(transaction=True)


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
