"""A hosted wallet takes what a link of this installation offers."""

from datetime import timedelta

import pytest
from django.utils import timezone

from core.net import http
from credentials import tasks
from credentials.models import Credential, Grant
from credentials.openid4vci import holding
from tenants import vault
from tests.credentials.openid4vci.conftest import VALUES
from tests.support.errors import assert_error, error_of
from tests.support.races import at_once, error_codes
from tests.support.steps import step
from wallets.jose import sd_jwt, signing


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Nothing here may call anybody, least of all this installation."""

    def refuse(*given, **named):
        raise AssertionError("a call over the network")

    monkeypatch.setattr(http, "send_request", refuse)


@step
def alice(faber):
    return faber.hosts()


def take(alice, link, **body):
    return alice.put("/credentials/fromData", {"credentialData": link} | body)


def held_row():
    return Credential.objects.get(role="holder")


def test_a_hosted_wallet_takes_a_link(faber, alice, card, offers):
    made = offers()
    taken = take(alice, made["link"])
    assert (taken["state"], taken["format"]) == ("Issued", "dc+sd-jwt")
    assert taken["definitionId"] == card["definitionId"]
    assert taken["schemaId"] == card["schemaId"]
    assert taken["values"] == VALUES | {"age_over_18": "true"}
    assert alice.get("/credentials")[0]["credentialId"] == taken["credentialId"]
    assert faber.get(f"/credentials/{made['credentialId']}")["state"] == "Issued"
    held = vault.unseal(held_row(), "credential")
    secret = signing.decode_base64url(held["secret"])
    assert sd_jwt.read(held["sd_jwt"]).claims["cnf"] == {
        "jwk": signing.public_jwk_of(secret)
    }
    assert held_row().request_metadata is None


def test_the_page_of_a_link_may_be_given(alice, offers):
    assert take(alice, offers()["offerUrl"])["state"] == "Issued"


def test_it_has_the_members_of_an_anoncreds_credential(faber, alice, offers):
    body = {"definitionId": faber.defines("name")["definitionId"]}
    body |= {"credentialValues": {"name": "Alice"}, "automaticIssuance": True}
    made = faber.post("/credentials", body)
    anoncreds = take(alice, made["offerUrl"])
    assert anoncreds["format"] == "anoncreds"
    assert take(alice, offers()["link"]).keys() == anoncreds.keys()


def test_the_holder_gives_the_transaction_code(alice, offers):
    made = offers(transactionCode=True)
    assert_error(error_of(take, alice, made["link"]), 400, "transaction_code_missing")
    wrong = f"{(int(made['transactionCode']) + 1) % 10**6:06}"
    for _ in range(2):
        refused = error_of(take, alice, made["link"], transactionCode=wrong)
        assert_error(refused, 409, "transaction_code_wrong")
    assert Grant.objects.get().tries == 2  # counted, although the call failed
    code = made["transactionCode"]
    assert take(alice, made["link"], transactionCode=code)["state"] == "Issued"


def test_by_hand_a_worker_asks_again(faber, alice, offers):
    made = offers(automaticIssuance=False)
    taken = take(alice, made["link"])
    assert taken["state"] == "Requested"
    Credential.objects.update(ask_due_at=timezone.now() - timedelta(seconds=1))
    tasks.ask_issuers()
    path = f"/credentials/{taken['credentialId']}"
    assert alice.get(path)["state"] == "Requested"
    faber.put(f"/credentials/{made['credentialId']}", {})
    tasks.ask_issuers()
    assert alice.get(path)["state"] == "Issued"
    assert alice.get(path)["values"]["Full name"] == "Alice Smith"


def test_what_its_issuer_declines_ends(faber, alice, offers):
    made = offers(automaticIssuance=False)
    taken = take(alice, made["link"])
    faber.delete(f"/credentials/delete/{made['credentialId']}")
    for _ in range(2):  # without its transaction, as an answer may have been lost
        Credential.objects.update(ask_due_at=timezone.now() - timedelta(seconds=1))
        tasks.ask_issuers()
    ended = alice.get(f"/credentials/{taken['credentialId']}")
    assert (ended["state"], ended["problem"]) == ("Rejected", "abandoned")
    assert held_row().ask_due_at is None


def test_a_lost_answer_is_asked_for_again(alice, offers, monkeypatch):
    """The process dies after the issuer has issued, before the holder has it."""
    link = offers(automaticIssuance=False)["link"]
    taken = take(alice, link)
    issuer = Credential.objects.get(role="issuer")
    issuer.issue()
    monkeypatch.setattr(holding, "_receive", lambda *given: 1 / 0)
    tasks.ask_issuers()
    assert held_row().state == "Requested"
    monkeypatch.undo()
    Credential.objects.filter(role="holder").update(
        ask_due_at=timezone.now() - timedelta(seconds=1)
    )
    tasks.ask_issuers()
    assert held_row().state == "Issued"
    assert str(held_row().pk) == taken["credentialId"]


def test_the_same_link_again_is_the_same_credential(alice, offers):
    link = offers()["link"]
    assert take(alice, link) == take(alice, link)
    assert Credential.objects.filter(role="holder").count() == 1


def test_of_two_calls_at_once_one_takes_it(alice, offers, transactional_db):
    link = offers()["link"]
    first, second = at_once(*[lambda: take(alice, link)] * 2)
    assert first["credentialId"] == second["credentialId"]
    assert Credential.objects.filter(role="holder").count() == 1


def test_of_two_wallets_at_once_one_takes_it(faber, alice, offers, transactional_db):
    link, bob = offers()["link"], faber.hosts("Bob")
    answers = at_once(lambda: take(alice, link), lambda: take(bob, link))
    assert error_codes(answers) == ["offer_taken"]
    assert_error(error_of(take, faber.hosts("Carol"), link), 409, "offer_taken")
    assert Credential.objects.filter(role="holder").count() == 1


def test_an_offer_that_has_ended_is_refused(faber, alice, offers):
    made = offers()
    faber.delete(f"/credentials/delete/{made['credentialId']}")
    assert_error(error_of(take, alice, made["link"]), 409, "offer_gone")


@pytest.mark.parametrize(
    "link",
    [
        "openid-credential-offer://",
        "openid-credential-offer://?credential_offer=%7B%7D",
        "openid-credential-offer://?credential_offer=[]",
        "openid-credential-offer://?credential_offer=nonsense",
        "openid-credential-offer://?credential_offer_uri={url}/openid/x/offers/y",
        "openid-credential-offer://?credential_offer_uri={url}/settings",
        "openid-credential-offer://[",
    ],
)
def test_what_is_no_offer_is_refused(alice, settings, link):
    refused = error_of(take, alice, link.format(url=settings.PUBLIC_URL))
    assert_error(refused, 400, "bad_credentialData")


def test_revoked_its_holder_learns_of_it(faber, alice, offers):
    made = offers()
    taken = take(alice, made["link"])
    faber.delete(f"/credentials/{made['credentialId']}")
    tasks.ask_issuers()
    path = f"/credentials/{taken['credentialId']}"
    assert alice.get(path)["state"] == "Revoked"
    assert held_row().ask_due_at is None
