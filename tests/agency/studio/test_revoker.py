"""The page of a revoked card says when it was revoked, and by whom to who may know."""

from datetime import timedelta
from unittest.mock import patch

import pytest

from agency.studio.exchange import revoker
from credentials.models import Credential
from tests.agency.studio.conftest import browser_with, read
from tests.agency.studio.test_person import text
from tests.support.steps import step

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Rosa Bauer"}


@step
def card(faber, met):
    met.receives(faber, faber.defines(*VALUES, supportRevocation=True), VALUES)
    return Credential.objects.get(role="issuer")


def told(browser, url, card):
    """The state of the card, as its page says it."""
    page = read(browser, f"{url}/credentials/{card.pk}")
    state = text(page.partition('<h2 id="state">')[2].partition("</section>")[0])
    return state.partition("needs one.")[2].partition("Issue again")[0].strip()


def test_owners_read_which_member_has_revoked_it(browser, viewer, url, college, card):
    operator = browser_with("operator", college.tenant, "olga")
    operator.send(f"{url}/credentials/{card.pk}/revoke")
    by = "UTC by olga@faber.example"
    assert told(browser, url, card).endswith(by)
    for other in (operator, viewer):
        shown = told(other, url, card)
        assert shown.startswith("Revoked") and "by" not in shown


def test_of_many_revoked_at_once_too(browser, url, college, card):
    definition = card.definition.pk
    browser.send(f"{url}/definitions/{definition}/revoke", confirmed="yes")
    assert told(browser, url, card).endswith("UTC by fay@faber.example")
    with patch.object(revoker, "WITHIN", timedelta(0)):
        assert told(browser, url, card).endswith("UTC"), "those were others"


def test_all_read_that_a_key_has_revoked_it(browser, viewer, url, api, card):
    api.delete(f"/credentials/{card.pk}")
    for one in (browser, viewer):
        assert " by " in told(one, url, card) and "key" in told(one, url, card)
