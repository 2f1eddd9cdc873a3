"""The overview says what needs attention, and leads there."""

import re
from urllib.parse import quote

import pytest
from django.utils import timezone

from credentials.bulk import issuing
from credentials.models import Credential, Publication, RevocationRegistry
from tests.support.aging import age
from tests.support.people import Organization
from tests.support.steps import step
from webhooks.models import Webhook

pytestmark = pytest.mark.django_db(transaction=True)
ITEM = re.compile(r"<li><a href=\"([^\"]+)\"><bdi>([^<]+)</bdi>")
VALUES = {"name": "Alice", "year": "2020"}


@step
def definition(faber):
    made = faber.defines("name", "year", name="Degree", supportRevocation=True)
    return made["definitionId"]


def shown_items(browser, url):
    """The addresses of the pages by what is said of them."""
    page = browser.get(url).text
    shown = page.partition('id="attention"')[2].partition("</section>")[0]
    return {text: address for address, text in ITEM.findall(shown)}


def only_item(browser, url):
    """The only one. Its page is there."""
    [(text, address)] = shown_items(browser, url).items()
    assert browser.get(address).status_code == 200
    return text


def test_nothing_is_said_while_all_is_well(browser, url, api, definition):
    api.post("/webhooks", {"url": "https://office.example/hook"})
    api.post("/credentials", {"definitionId": definition, "credentialValues": VALUES})
    assert shown_items(browser, url) == {}
    assert 'id="attention"' not in browser.get(url).text


def test_a_webhook_that_fails_and_one_that_was_disabled_for_it(browser, url, api):
    api.post("/webhooks", {"url": "https://office.example/hook"})
    Webhook.objects.update(failing_since=timezone.now())
    assert only_item(browser, url) == "The webhook https://office.example/hook fails."
    Webhook.objects.update(
        failing_since=None, is_enabled=False, disabled_reason=Webhook.Reason.GONE
    )
    assert "is disabled, as it failed" in only_item(browser, url)


def test_offers_that_nobody_answers_for_a_week(browser, url, api, definition):
    offer = {"definitionId": definition, "credentialValues": VALUES}
    for _ in range(2):
        api.post("/credentials", offer)
    age(Credential.objects.all(), days=7.1)
    assert only_item(browser, url) == "2 offers have no answer for more than 7 days."
    [address] = shown_items(browser, url).values()
    assert address.endswith("/credentials?state=Offered")


def test_a_registry_that_is_nearly_full(browser, url, definition):
    registry = RevocationRegistry.objects.get()
    places = registry.size - 1
    RevocationRegistry.objects.update(next_index=places * 69 // 100)
    assert shown_items(browser, url) == {}
    RevocationRegistry.objects.update(next_index=1 + places)
    assert only_item(browser, url) == (
        f"{places:,} of {places:,} places for revocable credentials of Degree are used."
    )


def test_what_a_ledger_refused_and_what_waits_for_it(browser, url, college):
    job = Publication.objects.create(
        tenant=college.tenant, kind="schema", subject="s", status="exhausted"
    )
    assert only_item(browser, url) == "A schema was refused by its ledger."
    Publication.objects.filter(pk=job.pk).update(status="pending", material=b"-")
    assert shown_items(browser, url) == {}
    age(Publication.objects.all(), days=1 / 12)
    assert only_item(browser, url) == "A schema still waits for its ledger."


def test_a_file_with_rows_that_could_not_be_offered(browser, url, api, definition):
    row = {"credentialValues": VALUES, "connectionId": "nobody"}
    api.post(f"/credentials/bulk?definitionId={quote(definition)}", [row])
    issuing.loop.run()
    said = only_item(browser, url)
    assert re.fullmatch(
        r"Some rows of a file of \d+ \w+, [\d:]+ UTC with 1 of Degree failed.", said
    )


def test_what_needs_the_attention_of_others_is_not_shown(browser, url):
    Organization("Other").post("/webhooks", {"url": "https://other.example/hook"})
    Webhook.objects.update(failing_since=timezone.now())
    assert shown_items(browser, url) == {}
