"""A hosted wallet answers requests of OpenID4VP of this installation."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.errors import AgencyError
from core.net import http
from tenants import vault
from tests.credentials.openid4vci.conftest import VALUES, offer_card
from tests.support.errors import assert_error, error_of
from tests.support.policies import attribute, policy, predicate
from tests.support.steps import step
from verifications.models import Verification
from verifications.openid4vp import dcql, presenting
from verifications.openid4vp.requests import TYP, sign_request
from wallets.jose import sd_jwt, signing
from wallets.models import SigningKey

PATH = "/verifications/fromData"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*given, **named):
        raise AssertionError("a call over the network")

    monkeypatch.setattr(http, "send_request", refuse)


@step
def alice(faber):
    return faber.hosts()


@step
def held(faber, card, alice):
    """What Alice holds; `made` of its issuer."""
    made = offer_card(faber, card)
    body = {"credentialData": made["walletLinks"]["openid4vci"]}
    return alice.put("/credentials/fromData", body) | {"made": made["credentialId"]}


def link_of(asked):
    return asked["walletLinks"]["openid4vp"]


def choice(held, *names):
    """The card for these items; for both, if none is named."""
    return [
        {"policyName": name, "credentialId": held["credentialId"]}
        for name in names or ("q0", "q1")
    ]


def test_it_answers_with_what_fits(acme, alice, held, ask):
    asked = ask()
    answered = alice.put(f"{PATH}/autoSelect", {"verificationData": link_of(asked)})
    judged = acme.get(f"/verifications/{asked['verificationId']}")
    assert (judged["state"], judged["isValid"]) == ("Accepted", True)
    assert judged["proof"]["who"]["value"] == "Alice Smith"
    assert judged["proof"]["adult"]["value"] == "true"
    row = Verification.objects.get(role="prover")
    assert (row.state, row.format, row.is_valid) == ("Accepted", "dc+sd-jwt", None)
    assert not row.awaits_peer
    assert answered in (None, {}) or answered["state"] == "Accepted"


def test_it_shows_no_more_than_is_asked(acme, alice, held, ask):
    alice.put(f"{PATH}/autoSelect", {"verificationData": link_of(ask())})
    row = Verification.objects.get(role="verifier")
    vp_token = vault.unseal(row, "presentation")["vp_token"]
    shown = {
        name: {path[0] for path in sd_jwt.read(text).disclosed}
        for name, [text] in vp_token.items()
    }
    assert shown == {"q0": {"Full name", "age_over_18"}, "q1": {"year", "paid"}}


def test_it_says_what_is_available(alice, held, ask):
    body = {"verificationData": link_of(ask())}
    found = alice.post(f"{PATH}/availableCredentials", body)
    names = {one["policyName"]: one["attributeNames"] for one in found}
    assert names == {"q0": ["Full name", "age_over_18"], "q1": ["year", "paid"]}
    for item in found:
        [card] = item["availableCredentials"]
        assert card["credentialId"] == held["credentialId"]


def test_a_list_is_read_once_for_many_cards(alice, held, offers, ask):
    """Whose places are in it, as those of a class are."""
    body = {"verificationData": link_of(ask())}

    def reads():
        with CaptureQueriesContext(connection) as captured:
            found = alice.post(f"{PATH}/availableCredentials", body)
        sql = [one["sql"] for one in captured]
        lists = [one for one in sql if 'FROM "credentials_tokenstatuslist"' in one]
        return len(found[0]["availableCredentials"]), len(lists)

    assert reads() == (1, 1)
    for _ in range(2):
        alice.put("/credentials/fromData", {"credentialData": offers()["link"]})
    assert reads() == (3, 1)


def test_the_holder_chooses(acme, alice, held, ask):
    asked = ask()
    chosen = choice(held)
    body = {"verificationData": asked["verificationRequestUrl"], "parameters": chosen}
    alice.put(PATH, body)
    assert acme.get(f"/verifications/{asked['verificationId']}")["isValid"]


@pytest.mark.parametrize(
    "chosen, code",
    [
        ([("q9", None)], "unknown_policy"),
        ([("q0", "x"), ("q1", None)], "unknown_credential"),
        ([("q0", None), ("q0", None)], "selected_twice"),
    ],
)
def test_a_wrong_choice_is_refused(alice, held, ask, chosen, code):
    parameters = [
        {"policyName": name, "credentialId": one or held["credentialId"]}
        for name, one in chosen
    ]
    body = {"verificationData": link_of(ask()), "parameters": parameters}
    assert_error(error_of(alice.put, PATH, body), 400, code)


def test_a_part_of_the_answer_is_none(alice, held, ask):
    body = {"verificationData": link_of(ask()), "parameters": choice(held, "q0")}
    assert_error(error_of(alice.put, PATH, body), 409, "nothing_fits")


def test_without_a_card_nothing_is_sent(acme, alice, ask):
    asked = ask()
    body = {"verificationData": link_of(asked)}
    assert_error(error_of(alice.put, f"{PATH}/autoSelect", body), 409, "nothing_fits")
    assert acme.get(f"/verifications/{asked['verificationId']}")["state"] == "Requested"
    assert not Verification.objects.filter(role="prover").exists()


def test_the_same_link_again_is_the_same_answer(acme, alice, held, ask):
    body = {"verificationData": link_of(ask())}
    for _ in range(2):
        alice.put(f"{PATH}/autoSelect", body)
    assert Verification.objects.filter(role="prover").count() == 1


def test_another_wallet_comes_too_late(faber, alice, held, ask):
    body = {"verificationData": link_of(ask())}
    alice.put(f"{PATH}/autoSelect", body)
    refused = error_of(faber.hosts("Bob").put, f"{PATH}/autoSelect", body)
    assert_error(refused, 409, "offer_taken")


def test_a_revoked_card_is_not_chosen_and_not_valid(faber, acme, alice, held, ask):
    faber.delete(f"/credentials/{held['made']}")
    asked = ask()
    body = {"verificationData": link_of(asked)}
    assert_error(error_of(alice.put, f"{PATH}/autoSelect", body), 409, "nothing_fits")
    chosen = choice(held)
    alice.put(PATH, body | {"parameters": chosen})
    judged = acme.get(f"/verifications/{asked['verificationId']}")
    assert judged["isValid"] is False
    codes = {one["code"] for one in judged["checks"] if "code" in one}
    assert "revoked" in codes


def rules_of(card):
    return [{"credentialDefinitionId": card["definitionId"]}]


def test_both_formats_prove_the_same(faber, acme, alice):
    """One policy, two kinds of wallet: `proof` differs in `format` only."""
    both = faber.defines(
        *VALUES,
        claims={"born": {"type": "date"}, "year": {"type": "integer"}},
        formats=["anoncreds", "dc+sd-jwt"],
        derivedClaims=[
            {
                "name": "age_over_18", "attributeName": "born",
                "predicateType": "<=", "predicateValue": "today-18y",
            }
        ],
    )  # fmt: skip
    paid = {"value": {"attributeName": "paid", "attributeValue": "true"}}
    only = rules_of(both)
    asked = policy(
        attribute("Full name", policyName="who", restrictions=only),
        attribute("born", policyName="born", restrictions=[only[0] | paid]),
        predicates=[
            predicate("born", "<=", "today-18y", policyName="adult", restrictions=only)
        ],
    )
    proofs = {}
    for kind, offering, asking in (
        ("anoncreds", {}, {}),
        ("dc+sd-jwt", {"protocol": "openid4vci"}, {"protocol": "openid4vp"}),
    ):
        body = {"definitionId": both["definitionId"], "credentialValues": VALUES}
        made = faber.post("/credentials", body | {"automaticIssuance": True} | offering)
        alice.put("/credentials/fromData", {"credentialData": made["offerUrl"]})
        sent = acme.post("/verifications/policy", asked | asking)
        link = {"verificationData": sent["verificationRequestUrl"]}
        alice.put(f"{PATH}/autoSelect", link)
        judged = acme.get(f"/verifications/{sent['verificationId']}")
        assert judged["isValid"], judged["checks"]
        proofs[kind] = judged["proof"]
    formats = {
        kind: {one.pop("format") for one in proof.values()}
        for kind, proof in proofs.items()
    }
    assert proofs["anoncreds"] == proofs["dc+sd-jwt"]
    assert formats == {kind: {kind} for kind in formats}


def changed(ask, **changes):
    """The request object of a link, with other members, and the link's client_id."""
    link = link_of(ask())
    row = Verification.objects.get(role="verifier")
    body = signing.read_token(sign_request(row, None), TYP).payload | changes
    body = {name: one for name, one in body.items() if one is not None}
    key = SigningKey.of(row.tenant, SigningKey.Purpose.REQUESTS)
    client_id = parse_qs(urlsplit(link).query)["client_id"][0]
    return key.sign(body, TYP), client_id


@pytest.mark.parametrize(
    "changes, code",
    [
        ({"client_id": "x509_hash:other"}, "request_not_signed"),
        ({"response_mode": "direct_post"}, "answer_not_encrypted"),
        ({"client_metadata": None}, "answer_not_encrypted"),
        ({"client_metadata": {"jwks": {"keys": [{}]}}}, "answer_not_encrypted"),
        ({"transaction_data": ["e30"]}, "unknown_transaction_data"),
        ({"nonce": None}, "bad_token"),
        ({"dcql_query": {}}, "bad_token"),
    ],
)
def test_a_request_that_is_not_safe_is_refused(ask, changes, code):
    with pytest.raises(AgencyError) as refused:
        presenting.parse_request(*changed(ask, **changes))
    assert refused.value.code == code


def test_a_request_of_another_certificate_is_refused(ask):
    text, _ = changed(ask)
    with pytest.raises(AgencyError) as refused:
        presenting.parse_request(text, "x509_hash:other")
    assert refused.value.code == "request_not_signed"


QUERY = {
    "id": "a", "format": "dc+sd-jwt", "meta": {"vct_values": ["x"]},
    "claims": [{"path": ["name"]}],
}  # fmt: skip


@pytest.mark.parametrize(
    "query",
    [
        None,
        [],
        {"credentials": {}},
        {"credentials": ["x"]},
        {"credentials": [QUERY, QUERY]},
        {"credentials": [QUERY | {"id": "a b"}]},
        {"credentials": [QUERY | {"format": "mso_mdoc"}]},
        {"credentials": [QUERY | {"meta": {}}]},
        {"credentials": [QUERY | {"multiple": True}]},
        {"credentials": [QUERY | {"claims": [{"path": []}]}]},
        {"credentials": [QUERY | {"claims": [{"path": [1]}]}]},
        {"credentials": [QUERY | {"claims": [{"path": ["a", {}]}]}]},
        {"credentials": [QUERY | {"claim_sets": [["z"]]}]},
        {"credentials": [QUERY | {"claim_sets": [[{}]]}]},
        {"credentials": [QUERY], "credential_sets": []},
        {"credentials": [QUERY], "credential_sets": [{"options": [["z"]]}]},
        {"credentials": [QUERY], "credential_sets": [{"options": [[]]}]},
    ],
)
def test_what_is_no_query_is_refused(query):
    with pytest.raises(AgencyError) as refused:
        dcql.read_items(json.loads(json.dumps(query)))
    assert refused.value.code == "bad_token"
