"""Anonymous replies in the response of our call: when they count as the peer's."""

import pytest

from agency.core import addresses, http
from connections.didcomm import dids, message, service
from connections.messaging import delivery, inbox
from connections.models import BasicMessage, Connection
from connections.protocols import (
    basic_message,
    connectionless,
    did_exchange,
    did_rotate,
    out_of_band,
)
from tests.support import queues
from tests.support.outside_agent import Agent
from wallets.models import Wallet

PUBLIC = "203.0.113.7"


@pytest.fixture
def row(faber, phone):
    return phone.connects(faber)


def by_did_exchange(faber, phone, version="1.1"):
    invited = Connection.objects.get(
        connection_id=faber.invites(protocol="out-of-band")["connectionId"]
    )
    parent, signer = invited.invitation["@id"], invited.invitation_key.verkey
    asked = did_exchange.build_request(
        version, "Phone", phone.party, phone.seed, phone.prefix, parent
    )
    phone.says(asked, to=signer)
    answered = phone.newest(f"didexchange/{version}/response")
    phone.their_key = did_exchange.read_response(answered, signer).verkey
    phone.says(
        did_exchange.build_complete(version, asked["@id"], phone.prefix, parent)
    )
    return Connection.objects.get(pk=invited.pk)


def answers(phone, anonymous=True, thread=None):
    """From now on the phone answers each text in the answer of the call."""

    def reply(data):
        Agent.receives(phone, data)
        asked = phone.inbox[-1]
        if asked.type == basic_message.MESSAGE:
            body = phone.build(
                basic_message.MESSAGE,
                thread or asked.thread_id,
                content="reply",
            )
            phone.answers = phone.pack(body, anonymous=anonymous)

    phone.receives = reply


def is_heard(faber, row):
    """Whether what the phone answers to a text is taken as its own."""
    faber.post("/messages", {"connectionId": row.connection_id, "text": "Hello"})
    queues.worker_catches_up()
    return any(one.unseal_text() == "reply" for one in BasicMessage.objects.all())


def seen_from(monkeypatch, address):
    """As if the phone, which is on loopback, had answered from there."""
    post = http.post

    def posted(url, *arguments, **named):
        answer = post(url.replace("https://", "http://"), *arguments, **named)
        return answer._replace(address=address)

    monkeypatch.setattr(delivery.http, "post", posted)


def test_on_this_machine_it_is_the_peers(faber, phone, row):
    answers(phone)
    assert is_heard(faber, row)


def test_a_reply_by_the_peers_key_counts_wherever_it_comes_from(
    faber, phone, row, monkeypatch
):
    seen_from(monkeypatch, PUBLIC)
    answers(phone, anonymous=False)
    assert is_heard(faber, row)


def test_over_http_from_elsewhere_it_is_nobodys(faber, phone, row, monkeypatch):
    seen_from(monkeypatch, PUBLIC)
    answers(phone)
    assert not is_heard(faber, row)


def test_over_https_it_is_the_peers(faber, phone, row, monkeypatch):
    seen_from(monkeypatch, PUBLIC)
    secure = phone.endpoint.replace("http://", "https://")
    Connection.objects.filter(pk=row.pk).update(their_endpoint=secure)
    answers(phone)
    assert is_heard(faber, row)


def test_from_a_listed_network_it_is_the_peers(
    faber, phone, row, monkeypatch, settings
):
    seen_from(monkeypatch, PUBLIC)
    settings.OUTGOING_ALLOWED_NETWORKS = [addresses.ip_network("203.0.113.0/24")]
    answers(phone)
    assert is_heard(faber, row)


def test_behind_a_mediator_it_is_nobodys(faber, phone, row):
    Connection.objects.filter(pk=row.pk).update(their_routing_keys=[Agent().verkey])
    mediated = phone.receives
    faber.post("/messages", {"connectionId": row.connection_id, "text": "Hello"})
    sent = BasicMessage.objects.get()
    # Not in reply(): the server's thread would keep a connection of the pool.
    thread = thread_of(row)

    def reply(data):
        body = phone.build(basic_message.MESSAGE, thread, content="reply")
        phone.answers = phone.pack(body, anonymous=True)

    phone.receives = reply
    queues.worker_catches_up()
    phone.receives = mediated
    assert list(BasicMessage.objects.all()) == [sent]


def thread_of(row):
    [waiting] = row.outboundmessage_set.filter(type=basic_message.MESSAGE)
    return waiting.thread_id


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_after_did_exchange_it_is_nobodys(faber, phone, version):
    row = by_did_exchange(faber, phone, version)
    answers(phone)
    assert not is_heard(faber, row)


def test_in_another_thread_it_is_nobodys(faber, phone, row):
    answers(phone, thread="another")
    assert not is_heard(faber, row)


def test_to_a_message_shared_out_of_band_it_is_nobodys(faber, phone):
    alice = faber.hosts("Alice")
    offer = phone.build("issue-credential/1.0/offer-credential")
    invitation = out_of_band.build_invitation(
        "invitation-1", "Shop", "", phone.party, ()
    )
    for given, expected in (
        (offer | {"~service": service.write_service(phone.party)}, True),
        (out_of_band.with_attachment(invitation, offer), False),
    ):
        wallet = Wallet.objects.get(pk=alice.wallet_id)
        row = connectionless.accept_shared(
            wallet, out_of_band.unwrap_request(message.read(given), None)
        )
        sent = row.outboundmessage_set.model(
            connection=row, recipient_key=row.their_key
        )
        assert inbox.may_be_anonymous(sent) is expected
        row.remove()


@pytest.mark.parametrize(
    "address, expected",
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("10.1.2.3", True),
        ("10.2.2.3", False),
        ("fe80::1%eth0", False),
        (PUBLIC, False),
    ],
)
def test_which_addresses_are_the_operators_own(settings, address, expected):
    settings.OUTGOING_ALLOWED_NETWORKS = [addresses.ip_network("10.1.0.0/16")]
    assert addresses.is_in_own_network(address) is expected


def test_to_a_key_that_the_peer_has_not_used_it_is_nobodys(faber, phone, row):
    """Whoever sent the rotation may have named the key of somebody else."""
    next_key = Agent()
    next_key.endpoint, next_key.their_key = phone.endpoint, phone.their_key
    phone.says(
        phone.build(
            did_rotate.ROTATE, to_did=dids.peer_4(next_key.verkey, phone.endpoint)
        )
    )

    def reply(data):
        next_key.receives(data)
        thread = next_key.inbox[-1].thread_id
        body = phone.build(basic_message.MESSAGE, thread, content="reply")
        phone.answers = phone.pack(body, anonymous=True)

    phone.receives = reply
    assert not is_heard(faber, row)
    shown = faber.get(f"/connections/{row.connection_id}")["theirKey"]
    assert (len(next_key.inbox), shown) == (1, phone.verkey)
    phone.receives = next_key.receives
    phone.answers = b""
    next_key.says(next_key.build(basic_message.MESSAGE, content="with the new key"))
    phone.receives = reply
    assert is_heard(faber, row)
