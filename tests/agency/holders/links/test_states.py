"""What a page says of its link, from the first look to each end."""

import logging
from datetime import timedelta

import pytest
from django.db import connection as database
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agency.holders.links.closed_links import RETENTION_DAYS
from agency.holders.links.models import ClosedLink
from agency.holders.links.tasks import forget_closed_links
from tests.agency.holders.links.conftest import (
    CONNECTING,
    VALUES,
    LinkPage,
    answer,
    take_offer,
    text_of,
)
from tests.support.errors import error_of

pytestmark = pytest.mark.django_db(transaction=True)
JSON = {"Accept": "application/json"}


def opened(made):
    """The page of a new link, as somebody sees it who waits."""
    url = made.get("offerUrl") or made.get("verificationRequestUrl")
    page = LinkPage(url or made["invitationUrl"])
    assert page.open().status_code == 200
    assert page.seen == "waiting"
    return page


def test_an_offer_is_opened_accepted_and_done(faber, alice, offer):
    made = offer(automatic=False)
    page = opened(made)
    page.client.get(page.path, headers=JSON)
    assert page.state == "opened"
    take_offer(alice, made["offerUrl"])
    response = page.look()
    assert page.seen == "accepted"
    assert "Faber College issues the card next" in text_of(response)
    faber.put(f"/credentials/{made['credentialId']}")
    response = page.look()
    assert page.seen == "done"
    assert "The card is in your wallet" in text_of(response)
    assert "hx-get" not in response.text


def test_who_opens_a_done_link_reads_that_it_was_used(alice, offer, ask, faber):
    take_offer(alice, (made := offer())["offerUrl"])
    answer(alice, (asked := ask())["verificationRequestUrl"])
    alice.accepts_invitation((invited := faber.invites())["invitation"])
    for url, words in (
        (made["offerUrl"], "This offer was used already"),
        (asked["verificationRequestUrl"], "This request was answered already"),
        (invited["invitationUrl"], "This invitation was used already"),
    ):
        page = LinkPage(url)
        response = page.open()
        assert (response.status_code, page.seen) == (410, "used")
        assert words in text_of(response)
        assert "qr.svg" not in response.text
    faber.delete(f"/credentials/delete/{made['credentialId']}")
    page = LinkPage(made["offerUrl"])
    page.open()
    assert page.seen == "used"


def test_without_scripts_a_page_that_waited_says_that_it_is_done(alice, offer):
    page = opened(made := offer())
    link = f'href="{page.path}?seen=waiting"'
    noscript = page.open().text.partition("<noscript>")[2]
    assert link in noscript.partition("</noscript>")[0]
    take_offer(alice, made["offerUrl"])
    response = page.open("?seen=waiting")
    assert page.seen == "done"
    assert response.status_code == 410


def test_a_proof_is_accepted_or_not(faber, graduate, ask):
    good, bad = opened(first := ask()), opened(second := ask())
    answer(graduate, first["verificationRequestUrl"])
    assert "has accepted your answer" in text_of(good.look())
    assert good.seen == "done"
    answer(faber.hosts("Bob"), second["verificationRequestUrl"])
    response = bad.look()
    assert bad.seen == "failed"
    assert "could not accept the answer" in text_of(response)
    assert "No card that proves this." in text_of(response)


def test_an_invitation_is_done_when_it_connects(alice, faber):
    page = opened(invited := faber.invites())
    alice.accepts_invitation(invited["invitation"])
    assert "Your wallet is connected with Faber College" in text_of(page.look())
    assert page.seen == "done"
    # One for many stays, and is not watched.
    page = opened(invited := faber.invites(multiParty=True))
    alice.accepts_invitation(invited["invitation"])
    response = page.open()
    assert (response.status_code, page.seen) == (200, "waiting")
    assert "hx-get" not in response.text


def test_an_offer_that_connects_first_is_open_until_it_is_accepted(alice, offer):
    reused = CONNECTING | {"reuse": True}  # over the connection that is known then
    for terms in (reused, reused, CONNECTING):
        page = opened(made := offer(**terms))
        alice.accepts_invitation(made["offerUrl"])
        assert page.state == "opened"
        assert "qr.svg" not in page.open().text
        alice.accepts_offer()
        assert page.state == "done"


def test_an_offer_and_a_request_are_declined(alice, offer, ask):
    page = opened(made := offer(**CONNECTING))
    alice.accepts_invitation(made["offerUrl"])
    credential = alice.newest("credentials")["credentialId"]
    alice.post(f"/credentials/{credential}/decline")
    response = page.look()
    assert page.seen == "declined"
    assert "The offer was declined" in text_of(response)
    assert "ask Faber College for a new offer" in text_of(response)
    page = opened(made := ask(**CONNECTING))
    alice.accepts_invitation(made["verificationRequestUrl"])
    asked = alice.newest("verifications")["verificationId"]
    alice.put(f"/verifications/{asked}/decline")
    assert "The request was declined" in text_of(page.look())
    assert page.seen == "declined"


def test_what_is_withdrawn_says_so_and_differs_from_unknown(faber, offer, ask):
    made, asked, invited = offer(), ask(), faber.invites()
    connecting = offer(**CONNECTING)  # its link is there afterwards
    pages = [opened(one) for one in (made, connecting, asked, invited)]
    faber.delete(f"/credentials/delete/{connecting['credentialId']}")
    faber.delete(f"/credentials/delete/{made['credentialId']}")
    faber.delete(f"/verifications/{asked['verificationId']}")
    faber.delete(f"/connections/{invited['connectionId']}")
    kinds = ("offer", "offer", "request", "invitation")
    for page, kind in zip(pages, kinds, strict=True):
        words = f"Faber College has withdrawn this {kind}"
        assert words in text_of(page.look())
        response = page.open()
        assert (response.status_code, page.seen) == (410, "withdrawn")
        assert words in text_of(response)
        assert "qr.svg" not in response.text
    unknown = LinkPage("/i/unknown")
    response = unknown.open()
    assert (response.status_code, unknown.seen) == (404, "unknown")
    assert "This link is not known" in text_of(response)
    assert unknown.look().status_code == 404


def test_opening_and_watching_use_nothing_up(alice, offer):
    page = opened(made := offer())
    for _ in range(3):
        page.open()
        page.look()
        page.client.get(page.path, headers=JSON)
        page.client.get(f"{page.path}/wallet")
    assert take_offer(alice, made["offerUrl"])["state"] == "Issued"
    assert page.client.get(f"{page.path}/wallet").status_code == 410
    assert page.client.get("/i/unknown/wallet").status_code == 404


def test_only_a_changed_state_is_sent_for_nobody_to_keep_or_index(offer):
    page = opened(offer())
    response = page.look()
    assert (response.status_code, response.content) == (204, b"")
    page.seen = "opened"
    response = page.look()
    assert response.status_code == 200
    assert response["X-Robots-Tag"] == "noindex"
    assert response["Referrer-Policy"] == "same-origin"
    assert "no-store" in response["Cache-Control"]
    assert "<html" not in response.text


def test_the_state_is_only_shown_never_taken_over(offer):
    page = opened(offer())
    for seen in ("", "x" * 5000, "done", "used", "%00", "waiting&"):
        page.seen = seen
        page.look()
        assert page.seen == "waiting", seen


def test_a_look_is_cheap_and_read_only(offer, ask, faber):
    for made in (offer(), ask(), faber.invites()):
        page = opened(made)
        with CaptureQueriesContext(database) as queries:
            page.look()
        assert len(queries) <= 3
        assert {one["sql"].split()[0] for one in queries} == {"SELECT"}
        assert page.client.post(f"{page.path}/status").status_code == 405


def test_log_lines_name_the_route_only(alice, offer, caplog):
    caplog.set_level(logging.DEBUG)
    page = opened(made := offer())
    page.look()
    page.client.get(f"{page.path}/wallet")
    take_offer(alice, made["offerUrl"])
    page.look()
    text = " ".join(record.getMessage() for record in caplog.records)
    assert "i/<str:token>/status" in text
    for secret in (page.path.removeprefix("/i/"), *VALUES.values()):
        assert secret not in text.replace(made["offerUrl"], "")


def test_another_organization_cannot_end_a_link(acme, offer):
    page = opened(made := offer())
    assert error_of(acme.delete, f"/credentials/{made['credentialId']}").status == 404
    assert page.look().status_code == 204


def test_closed_links_are_forgotten_after_a_while(faber):
    for age, left in ((RETENTION_DAYS - 1, 1), (RETENTION_DAYS + 1, 0)):
        page = opened(invited := faber.invites())
        faber.delete(f"/connections/{invited['connectionId']}")
        rows = ClosedLink.objects.filter(token=page.path.removeprefix("/i/"))
        rows.update(created_at=timezone.now() - timedelta(days=age))
        forget_closed_links()
        assert rows.count() == left
    assert page.state == "unknown"
