"""`manage.py add_network` and `accept_agreement`, without responses of a ledger."""

import socket
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command

from core.net import http
from core.work import waiting
from tenants import vault
from tenants.models import Network
from tests.support.http_endpoints import HEAD, answers, serving, trickles
from tests.support.ledger_networks import GENESIS, add_network
from wallets import keys

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
SEED = "endorser000000000000000000000001"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "genesis"
    path.write_text(GENESIS)
    return str(path)


@pytest.fixture(autouse=True)
def impatient(settings):
    settings.LEDGER_TIMEOUT = 0.2


def test_a_network_is_added_by_a_file_while_its_ledger_is_away(file):
    said = add_network("--name", "CANdy", "--genesis", file)
    assert "It is stored, but: CANdy does not respond" in said
    network = Network.objects.get()
    assert (network.pk, network.name, network.kind) == ("candy", "CANdy", "indy")
    assert network.genesis == GENESIS and not network.endorser_did


def test_a_network_is_added_by_an_address(settings):
    settings.OUTGOING_ALLOW_LOOPBACK = True
    body = GENESIS.encode()
    with serving(answers(HEAD + f"{len(body)}\r\n\r\n".encode() + body)) as authority:
        add_network("--genesis", f"http://{authority}/genesis")
    assert Network.objects.get().genesis == GENESIS


@pytest.fixture
def get(monkeypatch):
    monkeypatch.setattr(http, "get", get := Mock(wraps=http.get))
    return get


def test_a_genesis_that_comes_byte_by_byte_ends_with_the_time_of_the_call(
    settings, get
):
    settings.OUTGOING_ALLOW_LOOPBACK = True
    settings.LEDGER_TIMEOUT = 30
    head = HEAD + b"5000\r\n\r\n"
    late = pytest.raises(CommandError, match="takes too long")
    with serving(trickles(head)) as authority, waiting.limit_waiting(0.2), late:
        add_network("--genesis", f"http://{authority}/genesis")
    assert get.call_args.kwargs["timeout"] <= 0.2
    assert not Network.objects.exists()


def test_a_server_that_never_answers_for_a_genesis_is_left(settings, get):
    settings.OUTGOING_ALLOW_LOOPBACK = True
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(CommandError):
        add_network("--genesis", f"http://127.0.0.1:{silent.getsockname()[1]}/")
    assert get.call_args.kwargs["timeout"] == settings.LEDGER_TIMEOUT


def test_a_wrong_genesis_or_none_is_refused(tmp_path):
    path = tmp_path / "genesis"
    for text in ("", "x", GENESIS.replace("127.0.0.1", "localhost"), "\ud800"):
        path.write_bytes(text.encode(errors="surrogatepass"))
        with pytest.raises(CommandError, match="not the genesis of an Indy network"):
            add_network("--genesis", str(path))
    for place in ("/nowhere", "http://10.0.0.1/genesis", "/tmp"):
        with pytest.raises(CommandError):
            add_network("--genesis", place)
    assert not Network.objects.exists()


def test_a_network_needs_a_genesis_and_an_id(file):
    with pytest.raises(CommandError, match="not the genesis"):
        add_network()
    with pytest.raises(CommandError, match="slug"):
        call_command("add_network", "--id", "a b", "--genesis", file)


def test_the_endorser_is_kept_sealed_and_its_seed_is_not_shown(file, monkeypatch):
    monkeypatch.setenv("ENDORSER_SEED", SEED)
    said = add_network("--genesis", file, "--endorser")
    network, did = Network.objects.get(), keys.did_of(keys.verkey_of(SEED.encode()))
    assert network.endorser_did == did and did in said and SEED not in said
    assert vault.unseal(network, "endorser_seed") == keys.encode_key(SEED.encode())


def test_a_wrong_seed_is_refused(file, monkeypatch):
    monkeypatch.setenv("ENDORSER_SEED", "short")
    with pytest.raises(CommandError, match="seed"):
        add_network("--genesis", file, "--endorser")


def test_the_local_network_is_not_changed():
    with pytest.raises(CommandError, match="not an Indy network"):
        call_command("create_organization", "Faber")
        call_command("add_network", "--id", "local", "--name", "x")


def test_an_agreement_of_no_network_cannot_be_accepted(file):
    with pytest.raises(CommandError, match="no such network"):
        call_command("accept_agreement", "nowhere")
    add_network("--genesis", file)
    with pytest.raises(CommandError, match="does not respond"):
        call_command("accept_agreement", "candy")
