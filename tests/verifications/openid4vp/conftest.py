"""Alice holds Faber's card on her phone, and Acme asks for it."""

import pytest

from tests.credentials.openid4vci.conftest import define_card, offer_card, offers, phone
from tests.support.openid_wallet import OpenIdWallet
from tests.support.policies import attribute, policy, predicate
from tests.support.steps import step

__all__ = ["offers", "phone"]  # fixtures


@step
def card(faber):
    return define_card(faber)


@step
def known_wallet(faber, card):
    phone = OpenIdWallet()
    phone.take(offer_card(faber, card)["walletLinks"]["openid4vci"])
    return phone


@pytest.fixture
def held(known_wallet):
    """A phone with the card in it."""
    return known_wallet


@pytest.fixture
def card_policy(card):
    """An attribute, a required value and a predicate of the card."""
    only = {"credentialDefinitionId": card["definitionId"]}
    paid = {"value": {"attributeName": "paid", "attributeValue": "true"}}
    return policy(
        attribute("Full name", policyName="who", restrictions=[only]),
        attribute("year", policyName="year", restrictions=[only | paid]),
        predicates=[
            predicate(
                "born", "<=", "today-18y", policyName="adult", restrictions=[only]
            )
        ],
        revocationRequirement={"validNow": True},
    )


@pytest.fixture
def ask(acme, card_policy):
    """Ask for the card; return the verification."""

    def ask(**body):
        return acme.post(
            "/verifications/policy", card_policy | {"protocol": "openid4vp"} | body
        )

    return ask
