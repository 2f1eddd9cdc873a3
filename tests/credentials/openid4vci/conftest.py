"""Faber issues member cards to a wallet of OpenID4VC."""

import pytest

from tests.support.openid_wallet import OpenIdWallet
from tests.support.steps import step

CLAIMS = {
    "born": {"type": "date"},
    "year": {"type": "integer"},
    "paid": {"type": "boolean"},
}
OF_AGE = {
    "name": "age_over_18", "attributeName": "born", "predicateType": "<=",
    "predicateValue": "today-18y",
}  # fmt: skip
VALUES = {"Full name": "Alice Smith", "born": "19900131", "year": "7", "paid": "true"}


def offer_card(faber, definition, **body):
    return faber.post(
        "/credentials",
        {
            "definitionId": definition["definitionId"],
            "credentialValues": VALUES,
            "automaticIssuance": True,
            "protocol": "openid4vci",
        }
        | body,
    )


def define_card(faber):
    return faber.defines(
        *VALUES,
        claims=CLAIMS,
        formats=["dc+sd-jwt"],
        derivedClaims=[OF_AGE],
        supportRevocation=True,
    )


@step
def card(faber):
    return define_card(faber)


@pytest.fixture
def phone():
    return OpenIdWallet()


@pytest.fixture
def offers(faber, card):
    """Offer a card; return the answer with the link as `link`."""

    def offer(**body):
        made = offer_card(faber, card, **body)
        return made | {"link": made["walletLinks"]["openid4vci"]}

    return offer
