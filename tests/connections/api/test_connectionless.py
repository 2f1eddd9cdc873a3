"""Offers and requests by link: used once, by holders of any organization."""

import base64
import json

import pytest
from django.conf import settings

from tests.support.errors import assert_error, error_of
from tests.support.races import at_once, error_codes
from tests.support.steps import step

VALUES = {"name": "Alice", "degree": "Maths", "age": "28"}
ATTRIBUTES = [{"policyName": "Name", "attributeNames": ["name"]}]
POLICY = {"name": "Policy", "version": "1.0", "attributes": ATTRIBUTES}


@step
def definition(faber):
    return faber.defines("name", "degree", "age")["definitionId"]


@pytest.fixture
def offer(faber, definition):
    def make(automatic=True):
        body = {"definitionId": definition, "credentialValues": VALUES}
        return faber.post("/credentials", body | {"automaticIssuance": automatic})

    return make


def takes(holder, data):
    return holder.put_form("/credentials/fromData", credentialData=data)


def answers(holder, data):
    return holder.put_form("/verifications/fromData/autoSelect", verificationData=data)


def test_an_offer_is_taken_in_each_form(faber, acme, offer, subtests):
    alice = acme.hosts()
    for form in ("offerUrl", "offerData", "message", "long link"):
        offered = offer()
        message = base64.b64decode(offered["offerData"])
        data = {
            "message": message.decode(),
            "long link": f"https://elsewhere.example/x?d_m={offered['offerData']}",
        }.get(form) or offered[form]
        with subtests.test(form):
            taken = takes(alice, data)
            assert (taken["state"], taken["values"]) == ("Issued", VALUES)
            read = faber.get(f"/credentials/{offered['credentialId']}")
            assert read["state"] == "Issued"
            for name in ("offerUrl", "offerData"):
                assert read[name] == offered[name]
            assert "connectionId" not in read | taken
    assert faber.get("/connections") == []
    assert alice.get("/connections") == alice.get("/connections/invitations") == []


def test_without_automatic_issuance_the_issuer_issues(faber, alice, offer):
    offered = offer(automatic=False)
    assert takes(alice, offered["offerUrl"])["state"] == "Requested"
    faber.put(f"/credentials/{offered['credentialId']}")
    assert alice.newest("credentials")["state"] == "Issued"


def test_the_wallet_again_gets_the_same_credential_and_another_409(alice, acme, offer):
    offered, bob = offer(), acme.hosts("Bob")
    first = takes(alice, offered["offerUrl"])
    assert takes(alice, offered["offerData"]) == first
    assert_error(error_of(takes, bob, offered["offerUrl"]), 409, "offer_taken")
    assert bob.get("/credentials") == []
    assert len(alice.get("/credentials")) == 1


def test_of_many_wallets_one_gets_it(faber, offer):
    link = offer()["offerUrl"]
    holders = [faber.hosts(f"Holder {number}") for number in range(6)]
    outcomes = at_once(*[lambda one=holder: takes(one, link) for holder in holders])
    assert error_codes(outcomes) == ["offer_taken"] * 5
    held = [one["state"] for holder in holders for one in holder.get("/credentials")]
    assert held == ["Issued"]


def test_a_proof_is_asked_for_by_link(alice, acme, offer):
    takes(alice, offer()["offerUrl"])
    asked = acme.post("/verifications/policy", POLICY)
    assert asked["verificationUrl"] == asked["verificationRequestUrl"]
    answers(alice, asked["verificationRequestUrl"])
    result = acme.get(f"/verifications/{asked['verificationId']}")
    assert (result["state"], result["isValid"]) == ("Accepted", True)
    assert result["proof"]["Name"]["value"] == "Alice"
    assert result["verificationRequestData"] == asked["verificationRequestData"]
    assert error_of(answers, alice, asked["verificationRequestUrl"]).status == 409


def test_seeing_a_request_takes_nothing_and_choosing_answers_it(faber, alice, offer):
    bob = faber.hosts("Bob")
    takes(alice, offer()["offerUrl"])
    stored = faber.post("/verificationPolicies", POLICY)["policyId"]
    data = faber.put(f"/verifications/policy/{stored}")["verificationRequestData"]
    path = "/verifications/fromData/availableCredentials"
    form = {"verificationData": data}
    [item] = alice.post(path, form=form)
    assert bob.post(path, form=form)[0]["availableCredentials"] == []
    assert alice.get("/verifications") == []
    held = item["availableCredentials"][0]["credentialId"]
    chosen = {"parameters": [{"policyName": "Name", "credentialId": held}]}
    alice.put("/verifications/fromData", form | chosen)
    assert faber.get("/verifications")[0]["isValid"] is True
    assert_error(error_of(answers, bob, data), 409, "offer_taken")


def test_a_withdrawn_link_leads_nowhere(faber, alice):
    asked = faber.post("/verifications/policy", POLICY)
    faber.delete(f"/verifications/{asked['verificationId']}")
    error = error_of(answers, alice, asked["verificationRequestData"])
    assert_error(error, 409, "offer_gone")
    error = error_of(answers, alice, asked["verificationRequestUrl"])
    assert_error(error, 400, "bad_verificationData")


def test_bad_data_is_400_for_its_field(faber, alice, offer):
    for given in ("", "x", "e30=", "https://x.example/?d_m=e30=", '{"@type": 1}'):
        error = error_of(takes, alice, given)
        assert (error.status, list(error.body["errors"])) == (400, ["credentialData"])
    invitation, data = faber.invites()["invitation"], offer()["offerData"]
    for error, code in (
        (error_of(takes, alice, invitation), "bad_credentialData"),
        (error_of(alice.accepts_invitation, data), "bad_invitation"),
        (error_of(answers, alice, data), "bad_verificationData"),
    ):
        assert_error(error, 400, code)


def test_the_link_redirects_to_d_m_or_gives_the_message(faber, offer):
    offered = offer()
    path = offered["offerUrl"].removeprefix(settings.PUBLIC_URL)
    response = faber.client.get(path, headers={"Accept": "*/*"})
    assert response.status_code == 302
    assert response["Location"] == f"{offered['offerUrl']}?d_m={offered['offerData']}"
    message = faber.client.get(path, headers={"Accept": "application/json"}).json()
    assert message == json.loads(base64.b64decode(offered["offerData"]))
    assert message["~service"]["serviceEndpoint"] == f"{settings.PUBLIC_URL}/didcomm"


def test_a_connectionless_offer_needs_values(faber, definition):
    body = {"definitionId": definition}
    assert_error(error_of(faber.post, "/credentials", body), 400, "values_missing")
