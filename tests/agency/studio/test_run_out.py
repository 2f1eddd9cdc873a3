"""A card whose last day is over is Run out, wherever its state is shown."""

from datetime import timedelta
from unittest.mock import patch

import pytest
from django.utils import timezone

from agency.studio import lists
from credentials import revocation
from credentials.models import Credential
from tests.agency.studio.conftest import read
from tests.agency.studio.test_person import part, text
from tests.support.steps import step

pytestmark = pytest.mark.django_db(transaction=True)
YESTERDAY = timezone.localdate() - timedelta(days=1)
IN_WORDS = f"{YESTERDAY.day} {YESTERDAY:%b %Y}"


def values(name, day=YESTERDAY):
    return {"name": name, "validUntil": f"{day:%Y%m%d}"}


@step
def member(faber):
    names = ("name", "validUntil")
    return faber.defines(*names, supportRevocation=True, recipientAttribute="name")


@step
def paula(faber, met, member):
    """Her card ran out yesterday. Sena's card runs out today, and is valid still."""
    met.receives(faber, member, values("Paula Stein"))
    sena = faber.hosts("Sena")
    sena.receives(faber, member, values("Sena Kaya", timezone.localdate()))
    return Credential.objects.filter(role="issuer").order_by("pk")[0]


def rows_of(page):
    return [text(row) for row in page.split("<tr>")[2:]]


def test_a_list_says_which_card_has_run_out_and_when(browser, url, paula):
    sena, ran_out = rows_of(read(browser, f"{url}/credentials"))
    assert "Has the card" in sena and "Run out" not in sena
    assert "Run out" in ran_out and f"{IN_WORDS}, its last day" in ran_out
    assert "Run out" in text(read(browser, f"{url}/search?q=Paula"))


def test_the_filter_finds_those_that_have_run_out(browser, url, paula):
    page = read(browser, f"{url}/credentials?state=Run+out")
    assert '<option value="Run out" selected>Run out</option>' in page
    [row] = rows_of(page)
    assert "Paula Stein" in row and "1 credential" in text(page)
    assert "No credential matches" in text(
        read(browser, f"{url}/credentials?state=Run+out&q=Sena")
    )


def test_of_more_cards_than_are_looked_at_the_list_says_so(browser, url, paula):
    with patch.multiple(lists, LOOKED_AT_ONCE=1, MAX_LOOKED=1):
        page = text(read(browser, f"{url}/credentials?state=Run+out"))
        assert "No credential matches of the newest 1 that were issued." in page
    with patch.multiple(lists, LOOKED_AT_ONCE=1, MAX_LOOKED=2):
        page = read(browser, f"{url}/credentials?state=Run+out")
    assert "1 credential of the newest 2 that were issued" in text(page)


def test_the_page_of_the_card_and_of_the_person_say_so(browser, url, paula):
    page = text(read(browser, f"{url}/credentials/{paula.pk}"))
    assert f"Its last day was {IN_WORDS}." in page and "Run out" in page
    person = read(browser, f"{url}/connections/{paula.connection_id}/person")
    assert f"Run out since {IN_WORDS}, its last day" in part(person, "cards")
    assert "Run out" in part(person, "timeline")
    assert f"again={paula.pk}" in person and "Issue again" in person
    form = read(browser, f"{url}/credentials/new?again={paula.pk}")
    assert "Paula Stein" in form and f"{YESTERDAY:%Y%m%d}" not in form


def test_a_revoked_card_is_revoked_and_a_holder_s_list_has_no_such_state(
    browser, url, api, paula
):
    revocation.revoke(paula)
    page = read(browser, f"{url}/credentials")
    assert "Revoked" in rows_of(page)[1] and "its last day" not in page
    held = Credential.objects.filter(role="holder").first()
    page = read(browser, f"{url}/wallets/{held.wallet_id}/credentials")
    assert "Run out" not in page, "the values are the holder's"
