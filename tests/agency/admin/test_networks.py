"""Support staff with the permission add Indy networks, by text, file or address."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection

from tenants.lifecycle.networks import fetch_genesis
from tenants.lifecycle.provisioning import LOCAL, require_network
from tenants.models import Network
from tests.support.http_endpoints import HEAD, answers, serving
from tests.support.ledger_networks import GENESIS

pytestmark = pytest.mark.slow
NETWORKS = "/admin/tenants/network/"
INDY = {"id": "candy", "name": "CANdy"}


@pytest.fixture
def adds(browser, allow):
    """Sends the form; answers the networks that there are then."""
    allow("tenants.add_network")

    def send(**form):
        browser.send(f"{NETWORKS}add/", **INDY, **form)
        return list(Network.objects.values_list("pk", "name", "kind", "genesis"))

    return send


ADDED = [("candy", "CANdy", "indy", GENESIS)]


def test_a_network_is_added_by_its_text_or_by_a_file(adds):
    assert adds(genesis=GENESIS.replace("\n", "\r\n\r\n")) == ADDED
    Network.objects.all().delete()
    assert adds(file=SimpleUploadedFile("genesis", GENESIS.encode())) == ADDED


@pytest.mark.django_db(transaction=True)
def test_a_network_is_added_by_an_address(adds, settings, monkeypatch):
    settings.OUTGOING_ALLOW_LOOPBACK = True
    body = GENESIS.encode()
    monkeypatch.setattr(
        "agency.support.admin.organizations.fetch_genesis", outside_of_transactions
    )
    with serving(answers(HEAD + f"{len(body)}\r\n\r\n".encode() + body)) as authority:
        assert adds(address=f"http://{authority}/genesis") == ADDED


def outside_of_transactions(address):
    assert not connection.in_atomic_block
    return fetch_genesis(address)


WRONG = [
    "",
    "x",
    "{}",
    "\0",
    GENESIS + "{}",
    GENESIS[:-9],
    GENESIS.replace("127.0.0.1", "localhost"),
    GENESIS.replace('"client_port":14', '"client_port":65536'),
    GENESIS.replace("VALIDATOR", "OBSERVER"),
]


@pytest.mark.django_db(transaction=True)
def test_a_wrong_genesis_is_refused_and_the_page_says_what_is_wrong(adds, browser):
    for genesis in WRONG:
        assert adds(genesis=genesis) == []
    assert adds(file=SimpleUploadedFile("genesis", b"\xff" * 600_000)) == []
    assert adds(address="http://10.0.0.1/genesis") == []
    page = browser.send(f"{NETWORKS}add/", **INDY, genesis="{}").text
    assert "not the genesis of an Indy network" in page


def test_an_indy_network_changes_and_the_local_one_does_not(browser, allow, adds):
    adds(genesis=GENESIS)
    require_network(LOCAL)
    allow("tenants.change_network")
    browser.send(
        f"{NETWORKS}candy/change/", name="CANdy Dev", genesis=GENESIS, id="other"
    )
    assert browser.send(f"{NETWORKS}local/change/", name="x").status_code == 403
    names = Network.objects.order_by("pk").values_list("pk", "name")
    assert list(names) == [("candy", "CANdy Dev"), ("local", "Local network")]
