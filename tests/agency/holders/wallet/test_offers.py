"""What a holder sees and accepts in a web wallet, and that it is theirs alone."""

import re
from uuid import uuid4

import pytest

from agency.holders.wallet import holdings
from credentials.models import Credential
from tests.agency.holders.wallet.conftest import (
    VALUES,
    newest_of,
    opens_wallet,
    refuses,
)
from tests.support.steps import step

pytestmark = pytest.mark.django_db(transaction=True)


@step
def offer(faber, alice, degree):
    """The page of an open offer in the inbox."""
    faber.offers(alice, degree, VALUES, automaticIssuance=True)
    return f"/w/offers/{newest_of(alice, Credential).pk}"


def test_an_offer_waits_in_the_inbox_with_its_values_on_its_page(wallet, offer):
    inbox = wallet.get("/w/inbox").text
    assert offer in inbox and "Degree" in inbox
    assert "Balthazar" not in inbox
    page = wallet.get(offer).text
    assert "Balthazar-4711" in page and "Accept" in page
    assert "Faber" in page


def test_an_accepted_offer_is_one_card(wallet, offer, alice, faber):
    for action in ("", "steal"):
        assert wallet.post(offer, {"action": action}).status_code == 400, action
    assert wallet.post(offer, {"action": "accept"}).url == offer
    assert "The card is in your wallet." in wallet.get(offer).text
    cards = wallet.get("/w/").text
    assert "Degree" in cards and "Balthazar-4711" in cards
    assert offer not in wallet.get("/w/inbox").text
    # Sent again, it does nothing.
    for action in ("accept", "decline"):
        refuses(wallet.post(offer, {"action": action}), 409, "wrong_state")
    assert alice.newest("credentials")["state"] == "Issued"
    assert len(alice.get("/credentials")) == 1
    told = faber.get(f"/api/wallets/{alice.wallet_id}/link")
    assert "Balthazar" not in str(told) and "agw_" not in str(told)


def test_a_declined_offer_tells_the_issuer_why(wallet, offer, faber):
    wallet.post(offer, {"action": "decline", "reason": "Not my name"})
    assert "declined or withdrawn" in wallet.get(offer).text
    told = faber.get("/credentials")[0]
    assert (told["state"], told["reason"]) == ("Rejected", "Not my name")
    assert "no cards yet" in wallet.get("/w/").text


def test_what_is_issued_later_is_on_its_way(wallet, faber, alice, degree):
    made = faber.offers(alice, degree, VALUES)
    offer = f"/w/offers/{newest_of(alice, Credential).pk}"
    wallet.post(offer, {"action": "accept"})
    assert "data-watched" in wallet.get(offer).text
    assert "On its way" in wallet.get("/w/inbox").text
    part = f"{offer}/part"
    assert wallet.get(part, {"seen": "Requested"}).status_code == 204
    faber.put(f"/credentials/{made['credentialId']}")
    answer = wallet.get(part, {"seen": "Requested"}).text
    assert "in your wallet" in answer and "data-watched" not in answer


def test_the_inbox_is_read_again_once_changed(wallet, faber, alice, degree, offer):
    page = wallet.get("/w/inbox").text
    seen = page.partition("?seen=")[2][:16]
    assert wallet.get("/w/inbox/part", {"seen": seen}).status_code == 204
    faber.offers(alice, degree, VALUES)
    answer = wallet.get("/w/inbox/part", {"seen": seen})
    assert answer.status_code == 200 and "<html" not in answer.text


def test_other_wallets_objects_and_the_issuers_row_are_hidden(wallet, faber, offer):
    bob = opens_wallet(faber.hosts("Bob"))
    for path in (offer, f"{offer}/part", f"/w/offers/{uuid4()}"):
        assert bob.get(path).status_code == 404
    assert bob.post(offer, {"action": "accept"}).status_code == 404
    assert "Degree" not in bob.get("/w/inbox").text
    row = Credential.objects.get(role="issuer")
    assert wallet.get(f"/w/offers/{row.pk}").status_code == 404


def test_a_revoked_card_says_so(wallet, faber, alice, settings):
    settings.REVOCATION_FIRST_REGISTRY_SIZE = settings.REVOCATION_REGISTRY_SIZE = 4
    badge = faber.defines(*VALUES, name="Badge", supportRevocation=True)
    faber.offers(alice, badge, VALUES, automaticIssuance=True)
    offer = f"/w/offers/{newest_of(alice, Credential).pk}"
    wallet.post(offer, {"action": "accept"})
    made = faber.get("/credentials")[0]["credentialId"]
    faber.delete(f"/credentials/{made}")
    assert "Cancelled" in wallet.get("/w/").text
    assert "not valid any more" in wallet.get(offer).text


def test_values_of_a_card_are_in_the_order_of_its_definition(wallet, faber, alice):
    names = ["zip", "name", "age"]
    definition = faber.defines(*names)
    for _ in range(3):
        alice.receives(faber, definition, dict.fromkeys(names, "1"))
    shown = re.findall(r"<bdi>(zip|name|age)</bdi>", wallet.get("/w/").text)
    assert shown == names * 3


def test_older_cards_are_on_the_next_page(wallet, faber, alice, degree, monkeypatch):
    monkeypatch.setattr(holdings, "MAX_SHOWN", 2)
    for number in range(3):
        alice.receives(faber, degree, VALUES | {"name": f"Number {number}"})
    first = wallet.get("/w/").text
    assert "Number 2" in first and "Number 0" not in first
    query = first.partition('href="?before=')[2].partition('"')[0]
    rest = wallet.get("/w/", {"before": query}).text
    assert "Number 0" in rest and "Number 1" not in rest and "?before" not in rest
    assert wallet.get("/w/", {"before": "x"}).status_code == 200


def test_an_offer_by_link_names_the_organization(wallet, faber, alice, degree):
    body = {"definitionId": degree["definitionId"], "credentialValues": VALUES}
    made = faber.post("/credentials", body | {"automaticIssuance": True})
    alice.put_form("/credentials/fromData", credentialData=made["offerUrl"])
    assert f"<bdi>{faber.tenant.name}</bdi>" in wallet.get("/w/").text


def test_connections_have_the_organizations_name(wallet, faber, alice, degree):
    invited = faber.invites(name="Alice the holder")
    alice.accepts_invitation(invited["invitation"])
    alice.known[faber] = (invited["connectionId"], "")
    faber.offers(alice, degree, VALUES)
    for page in ("/w/inbox", f"/w/offers/{newest_of(alice, Credential).pk}"):
        shown = wallet.get(page).text
        assert f"<bdi>{faber.tenant.name}</bdi>" in shown
        assert "Alice the holder" not in shown
