"""A hosted wallet takes from Credo as an issuer, and answers Credo as a verifier."""

import pytest

from tests.interop.peers.agency import reaches
from tests.interop.peers.credo import CURRENT
from tests.support.errors import assert_error, error_of
from tests.support.processes import eventually, free_port

VALUES = {"name": "Alice Åkerlund", "year": "7", "over_18": "true"}


@pytest.fixture(scope="module")
def faber(agency_on_web):
    return agency_on_web.organization("Faber")


@pytest.fixture(scope="module")
def credo(starts_credo):
    return starts_credo(CURRENT, openidPort=free_port())


@pytest.fixture(scope="module")
def trusted(faber, credo):
    """Faber trusts the authority of Credo."""
    root = credo.does("openHost")["root"]
    faber.post("/openid/trustAnchors", {"name": "Credo", "certificate": root})
    return credo


@pytest.fixture
def alice(faber, trusted):
    return faber.hosts("Alice")


def takes(alice, offer, **body):
    given = {"credentialData": offer["link"]} | body
    return alice.put("/credentials/fromData", given)


def completed(credo, offer):
    return credo.does("issuedByLink", offer["id"])["state"] == "Completed"


def test_a_hosted_wallet_takes_a_card_and_shows_it(alice, trusted):
    offer = trusted.does("offersByLink")
    taken = takes(alice, offer)
    assert (taken["state"], taken["values"]) == ("Issued", VALUES)
    eventually(lambda: completed(trusted, offer))

    for prefix in ("x509_hash", "x509_san_dns"):
        asked = trusted.does("asksByLink", prefix=prefix)
        body = {"verificationData": asked["link"]}
        [item] = alice.post("/verifications/fromData/availableCredentials", body)
        assert len(item["availableCredentials"]) == 1
        alice.put("/verifications/fromData/autoSelect", body)
        judged = trusted.does("judgedByLink", asked["id"])
        assert judged["state"] == "ResponseVerified", judged
        shown = judged["claims"]
        assert (shown["name"], shown["over_18"]) == (VALUES["name"], True)
        assert "year" not in shown


def test_a_hosted_wallet_gives_the_transaction_code(alice, trusted):
    offer = trusted.does("offersByLink", hasCode=True)
    refused = error_of(takes, alice, offer)
    assert_error(refused, 400, "transaction_code_missing")
    taken = takes(alice, offer, transactionCode=offer["txCode"])
    assert taken["values"] == VALUES


def test_a_hosted_wallet_waits_for_its_card(alice, trusted):
    taken = takes(alice, trusted.does("offersByLink", isLater=True))
    assert taken["state"] == "Requested"
    reaches(alice, f"/credentials/{taken['credentialId']}", "Issued")
