"""Links of OpenID4VC in the web wallet: a card, and a proof by consent."""

import pytest

from credentials.models import Credential
from tests.agency.holders.wallet.conftest import VALUES, newest_of, refuses
from tests.support.policies import attribute, policy
from verifications.models import Verification

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
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
    assert str(card.pk) in wallet.get(request_page).text
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


def test_an_offer_with_a_code_shows_nothing(wallet, offer):
    answer = wallet.get(offer(transactionCode=True))
    refuses(answer, 400, "transaction_code_missing")
    assert VALUES["name"] not in answer.text
