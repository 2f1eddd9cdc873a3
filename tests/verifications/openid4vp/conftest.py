"""Alice holds Faber's card on her phone, and Acme asks for it."""

import pytest

from tests.credentials.openid4vci.conftest import card, offers, phone  # noqa: F401
from tests.support.policies import attribute, policy, predicate


@pytest.fixture
def held(offers, phone):  # noqa: F811
    """The phone with the card in it."""
    phone.take(offers()["link"])
    return phone


@pytest.fixture
def card_policy(card):  # noqa: F811
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
