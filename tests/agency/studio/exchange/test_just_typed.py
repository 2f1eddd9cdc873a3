"""Who has just offered a card sees its values for ten minutes, and the log says so."""

import re
import time
from unittest import mock

import pytest

from agency.studio.exchange import just_typed
from credentials.models import Credential, CredentialDefinition
from tenants.models import AuditEntry, Membership
from tests.agency.studio.conftest import browser_of, browser_with
from tests.agency.studio.exchange.conftest import text
from tests.support.steps import step

NAME = "Balthazar-4711"


@step
def definition(faber):
    faber.defines("Full Name", "year")
    return CredentialDefinition.objects.get()


@pytest.fixture
def offered(browser, faber, definition):
    """The address of the page to which the form of an offer leads."""
    form = f"/studio/organizations/{faber.tenant.pk}/credentials/new"
    values = {"value_0": NAME, "value_1": "1999", "confirmed": "yes"}
    return browser.send(f"{form}?definition={definition.pk}", **values).url


def logged():
    return AuditEntry.objects.filter(action="values.revealed")


def pass_ten_minutes(monkeypatch):
    later = time.time() + 601
    monkeypatch.setattr(just_typed.time, "time", lambda: later)


def test_the_card_has_the_values_that_were_typed_and_it_is_logged_once(
    browser, offered, fay
):
    assert not logged().exists()
    for _ in range(2):
        page = text(browser.get(offered))
        card = page.partition('class="id-card')[2].partition('id="state"')[0]
        assert f"<bdi>{NAME}</bdi>" in card
        assert "no-store" in browser.get(offered)["Cache-Control"]
    assert NAME in text(browser.get(f"{offered}/live"))
    entry = logged().get()
    assert entry.object_id == offered.rpartition("/")[2]
    assert (entry.actor_name, entry.reason) == (fay.email, just_typed.REASON)
    assert NAME not in str(entry.details)


def test_the_session_holds_no_value(browser, offered):
    text(browser.get(offered))
    assert just_typed.TYPED in browser.session
    assert NAME not in str(dict(browser.session))


def test_after_ten_minutes_the_open_page_masks_them_too(browser, offered, monkeypatch):
    page = text(browser.get(offered))
    live = re.search(r'hx-get="([^"]+)"', page)[1].replace("&amp;", "&")
    assert browser.get(live).status_code == 204
    pass_ten_minutes(monkeypatch)
    assert NAME not in text(browser.get(live))
    assert NAME not in text(browser.get(offered))


def test_nobody_else_and_no_other_session_sees_them(browser, offered, faber, fay):
    for other in (browser_of(fay), browser_with("operator", faber.tenant)):
        assert NAME not in text(other.get(offered))
    assert not logged().exists()
    Membership.objects.filter(user=fay).update(role="viewer")
    assert NAME not in text(browser.get(offered)), "may not reveal any more"


def test_signing_out_ends_it(browser, offered, fay):
    browser.post("/accounts/logout/")
    browser.force_login(fay, backend="agency.studio.accounts.sign_in.Backend")
    assert NAME not in text(browser.get(offered))


def test_without_the_log_nothing_is_shown(browser, offered, monkeypatch):
    full = mock.Mock(side_effect=RuntimeError("the log is full"))
    monkeypatch.setattr(AuditEntry.objects, "create", full)
    browser.raise_request_exception = False
    answer = browser.get(offered)
    assert answer.status_code == 500 and NAME not in answer.text


def test_a_session_remembers_the_last_cards_only(
    browser, offered, definition, monkeypatch
):
    monkeypatch.setattr(just_typed, "MAX_CARDS", 1)
    form = f"{offered.rpartition('/')[0]}/new?definition={definition.pk}"
    browser.send(form, value_0="Melchior", value_1="2000", confirmed="yes")
    assert NAME not in text(browser.get(offered))
    assert Credential.objects.count() == 2
