"""The page of a link for wallets of OpenID4VC."""

import pytest

from connections.api import qr_codes
from connections.models import Connection
from tests.support.openid_wallet import OpenIdWallet


@pytest.fixture
def offered(faber):
    card = faber.defines("name", formats=["dc+sd-jwt"])
    return faber.post(
        "/credentials",
        {
            "definitionId": card["definitionId"],
            "credentialValues": {"name": "Alice Smith"},
            "automaticIssuance": True,
            "protocol": "openid4vci",
        },
    )


def test_the_page_leads_into_the_wallet(client, offered):
    path = "/" + offered["offerUrl"].split("/", 3)[3]
    page = client.get(path, headers={"accept": "text/html"})
    assert page.status_code == 200
    text = page.content.decode()
    assert "Alice Smith" not in text and f"{path}/wallet" in text
    link = offered["walletLinks"]["openid4vci"]
    opened = client.get(f"{path}/wallet")
    assert (opened.status_code, opened["Location"]) == (302, link)
    software = client.get(path, headers={"accept": "application/json"})
    assert (software.status_code, software["Location"]) == (302, link)


def test_the_code_holds_what_opens_the_wallet(client, offered):
    row = Connection.objects.get()
    parts = qr_codes.code_of(row).data_list
    text = b"".join(part.data for part in parts).decode()
    assert text == offered["walletLinks"]["openid4vci"]
    path = "/" + offered["offerUrl"].split("/", 3)[3]
    assert client.get(f"{path}/qr.svg").status_code == 200


def test_it_says_when_the_card_is_in_the_wallet(client, offered):
    path = "/" + offered["offerUrl"].split("/", 3)[3]
    OpenIdWallet().take(offered["walletLinks"]["openid4vci"])
    status = client.get(f"{path}/status?seen=waiting")
    assert status.status_code == 200
    assert client.get(path, headers={"accept": "text/html"}).status_code == 410
