"""Links of OpenID4VC in the web wallet: a card, and a proof by consent."""

import pytest

from credentials.models import Credential, Grant
from tests.agency.holders.wallet.conftest import VALUES, newest_of, refuses
from tests.support.policies import attribute, policy
from tests.support.steps import step
from verifications.models import Verification

pytestmark = pytest.mark.django_db(transaction=True)


@step
def degree(faber):
    return faber.defines(*VALUES, name="Degree", formats=["dc+sd-jwt"])


@pytest.fixture
def offer(faber, degree):
    """The page of an offer inside the wallet."""

    def make(**body):
        body |= {"definitionId": degree["definitionId"], "credentialValues": VALUES}
        body |= {"automaticIssuance": True, "protocol": "openid4vci"}
        made = faber.post("/credentials", body)
        return f"/w/take/{made['offerUrl'].rpartition('/')[2]}"

    return make


@pytest.fixture
def request_page(faber, degree):
    only = {"credentialDefinitionId": degree["definitionId"]}
    body = policy(attribute("name", restrictions=[only])) | {"protocol": "openid4vp"}
    made = faber.post("/verifications/policy", body)
    return f"/w/take/{made['verificationRequestUrl'].rpartition('/')[2]}"


def test_a_card_is_taken_and_shown(wallet, alice, offer):
    page = offer()
    assert VALUES["name"] in wallet.get(page).text
    led = wallet.post(page)
    assert led.status_code == 302
    assert newest_of(alice, Credential).state == "Issued"
    assert VALUES["name"] in wallet.get(led.url).text
    assert VALUES["name"] in wallet.get("/w/").text


def test_a_proof_is_given_by_consent(wallet, alice, offer, request_page):
    wallet.post(offer())
    card = newest_of(alice, Credential)
    asked = wallet.get(request_page).text
    assert str(card.pk) in asked
    assert "hide-0" not in asked  # which this format cannot do
    led = wallet.post(request_page, {"action": "accept", "card-0": str(card.pk)})
    assert led.status_code == 302
    assert Verification.objects.get(role="verifier").is_valid
    assert newest_of(alice, Verification).state == "Accepted"
    assert "<bdi>name</bdi>" in wallet.get(led.url).text
    assert "<bdi>name</bdi>" in wallet.get("/w/history").text


def test_a_request_is_declined(wallet, alice, request_page):
    wallet.post(request_page, {"action": "decline"})
    assert newest_of(alice, Verification).state == "Rejected"
    assert Verification.objects.get(role="verifier").state == "Rejected"


@pytest.fixture
def coded(faber, degree):
    """The page of an offer that asks for six digits, and these."""
    body = {"definitionId": degree["definitionId"], "credentialValues": VALUES}
    body |= {"automaticIssuance": True, "protocol": "openid4vci"}
    made = faber.post("/credentials", body | {"transactionCode": True})
    page = f"/w/take/{made['offerUrl'].rpartition('/')[2]}"
    return page, made["transactionCode"]


def wrong_for(code):
    return f"{(int(code) + 1) % 10**6:06}"


def test_an_offer_with_a_code_asks_for_it_and_shows_no_value(wallet, alice, coded):
    page, code = coded
    shown = wallet.get(page)
    assert 'name="transaction_code"' in shown.text
    assert VALUES["name"] not in shown.text
    led = wallet.post(page, {"transaction_code": f"{code[:3]} {code[3:]}"})
    assert led.status_code == 302
    assert newest_of(alice, Credential).state == "Issued"
    assert VALUES["name"] in wallet.get(led.url).text


def test_a_wrong_code_is_counted_and_asked_for_again(wallet, coded):
    page, code = coded
    refuses(wallet.post(page, {}), 400, "transaction_code_missing")
    again = wallet.post(page, {"transaction_code": wrong_for(code)})
    refuses(again, 409, "transaction_code_wrong")
    assert "You have 4 more tries." in again.text
    assert 'name="transaction_code"' in again.text
    assert code not in again.text
    assert Grant.objects.get().tries == 1
    assert wallet.post(page, {"transaction_code": code}).status_code == 302


def test_the_fifth_wrong_code_ends_the_offer(wallet, coded):
    page, code = coded
    for _ in range(4):
        wallet.post(page, {"transaction_code": wrong_for(code)})
    led = wallet.post(page, {"transaction_code": wrong_for(code)})
    assert led.url == page.replace("/w/take/", "/i/")
    row = Credential.objects.get(role="issuer")
    assert (row.state, row.problem) == ("Rejected", "transaction_code_guessed")
    assert wallet.post(page, {"transaction_code": code}).url == led.url
    assert not Credential.objects.filter(role="holder").exists()
