"""Credo with `@credo-ts/openid4vc`, unmodified, as a wallet of OpenID4VC on a phone."""

import pytest

from tests.interop.peers.agency import the_request
from tests.support.policies import attribute, policy, predicate

VALUES = {
    "Full name": "Alice Åkerlund",
    "born": "19900131",
    "year": "7",
    "paid": "true",
}
SHOWN = {"Full name": "Alice Åkerlund", "born": "1990-01-31", "year": 7, "paid": True}
CARD = {
    "claims": {
        "born": {"type": "date"},
        "year": {"type": "integer"},
        "paid": {"type": "boolean"},
    },
    "derivedClaims": [
        {
            "name": "age_over_21",
            "attributeName": "born",
            "predicateType": "<=",
            "predicateValue": "today-21y",
        }
    ],
    "supportRevocation": True,
}


@pytest.fixture(scope="module")
def faber(agency_on_web):
    return agency_on_web.organization("Faber")


@pytest.fixture(scope="module")
def acme(agency_on_web):
    return agency_on_web.organization("Acme")


@pytest.fixture(scope="module")
def card(faber):
    """A definition in both formats."""
    return faber.defines(*VALUES, formats=["anoncreds", "dc+sd-jwt"], **CARD)


@pytest.fixture(scope="module")
def adult(card):
    """An attribute, a value and a predicate."""
    only = {"credentialDefinitionId": card["definitionId"]}
    paid = {"value": {"attributeName": "paid", "attributeValue": "true"}}
    return policy(
        attribute("Full name", restrictions=[only]),
        attribute("year", restrictions=[only | paid]),
        predicates=[
            predicate(
                "born", "<=", "today-18y", policyName="adult", restrictions=[only]
            )
        ],
        revocationRequirement={"validNow": True},
    )


@pytest.fixture(scope="module")
def trusting(acme, adult, agency_on_web, credo_on_web):
    """It trusts the authority of the installation, which is made for the first link."""
    asks(acme, adult)
    credo_on_web.does("trust", certificate=agency_on_web.authority())
    return credo_on_web


@pytest.fixture
def credo(trusting):
    """It has no card."""
    trusting.does("throwAway")
    return trusting


def offers(faber, card, **body):
    given = {"definitionId": card["definitionId"], "credentialValues": VALUES}
    given |= {"protocol": "openid4vci", "automaticIssuance": True}
    return faber.post("/credentials", given | body)


def path_of(made):
    return f"/credentials/{made['credentialId']}"


def takes(credo, made, **how):
    link = made["walletLinks"]["openid4vci"]
    return credo.does("takeByLink", link=link, **how)["claims"]


def asks(acme, asked):
    return acme.post("/verifications/policy", asked | {"protocol": "openid4vp"})


def asks_credo(acme, credo, asked):
    """The verification of a link that Credo answers."""
    made = asks(acme, asked)
    answer = credo.does("answerByLink", link=made["walletLinks"]["openid4vp"])
    assert answer["isMet"] and answer["status"] == 200, answer
    return acme.reaches(f"/verifications/{made['verificationId']}", "Accepted")


def test_credo_takes_a_card_and_proves_it_until_it_is_revoked(
    faber, acme, card, credo, adult
):
    made = offers(faber, card)
    claims = takes(credo, made)
    assert claims.items() >= (SHOWN | {"age_over_21": True}).items()
    faber.reaches(path_of(made), "Issued")
    shown = asks_credo(acme, credo, adult)
    assert shown["isValid"] is True, shown["checks"]

    faber.delete(path_of(made))
    shown = asks_credo(acme, credo, adult)
    assert shown["isValid"] is False
    assert [one["code"] for one in shown["causes"]] == ["card_revoked"]


def test_credo_takes_a_card_by_its_transaction_code(faber, card, credo):
    made = offers(faber, card, transactionCode=True)
    wrong = f"{(int(made['transactionCode']) + 1) % 10**6:06}"
    with pytest.raises(AssertionError, match="invalid_grant"):
        takes(credo, made, txCode=wrong)
    takes(credo, made, txCode=made["transactionCode"], boundToken=True)
    faber.reaches(path_of(made), "Issued")


def test_credo_waits_for_a_card_that_is_issued_by_hand(faber, card, credo):
    made = offers(faber, card, automaticIssuance=False)
    assert takes(credo, made) is None
    faber.reaches(path_of(made), "Requested")
    assert credo.does("takeLater")["claims"] is None
    faber.put(path_of(made))
    assert credo.does("takeLater")["claims"].items() >= SHOWN.items()
    faber.reaches(path_of(made), "Issued")


def test_a_policy_is_met_alike_by_credo_and_hosted_wallets_of_both_formats(
    faber, acme, card, credo, adult
):
    takes(credo, offers(faber, card))
    alice, bob = acme.hosts("Alice"), acme.hosts("Bob")
    alice.receives(faber, card, VALUES)
    link = offers(faber, card)["walletLinks"]["openid4vci"]
    assert (
        bob.put("/credentials/fromData", {"credentialData": link})["state"] == "Issued"
    )
    asked = acme.asks(alice, **adult)
    alice.put(f"/verifications/{the_request(alice)}/autoSelect")
    given = asks(acme, adult)
    body = {"verificationData": given["walletLinks"]["openid4vp"]}
    bob.put("/verifications/fromData/autoSelect", body)
    shown = [
        acme.reaches(f"/verifications/{one['verificationId']}", "Accepted")
        for one in (asked, given)
    ] + [asks_credo(acme, credo, adult)]
    assert [one["isValid"] for one in shown] == [True] * 3
    formats = [{item["format"] for item in one["proof"].values()} for one in shown]
    assert formats == [{"anoncreds"}, {"dc+sd-jwt"}, {"dc+sd-jwt"}]
    first, *others = [without_formats(one) for one in shown]
    assert others == [first] * 2


def without_formats(shown):
    return {
        name: {member: value for member, value in one.items() if member != "format"}
        for name, one in shown["proof"].items()
    }
