"""Anonymous replies in the response of our call: when they count as the peer's."""

import pytest

from connections.didcomm import dids, message, service
from connections.models import BasicMessage, Connection, OutboundMessage
from connections.protocols import (
    basic_message,
    connectionless,
    did_rotate,
    out_of_band,
)
from connections.transport import delivery, inbox
from core.net import addresses, http
from tests.support import queues
from tests.support.outside_agent import Agent
from tests.support.outside_exchanges import connects_by_did_exchange
from wallets.models import Wallet

PUBLIC = "203.0.113.7"


def answers(phone, anonymous=True, thread=None):
    """From now on the phone answers each text in the answer of the call."""

    def reply(data):
        Agent.receives(phone, data)
        asked = phone.inbox[-1]
        if asked.type == basic_message.MESSAGE:
            body = phone.build(
                basic_message.MESSAGE, thread or asked.thread_id, content="reply"
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


@pytest.mark.parametrize("anonymous", [True, False])
def test_on_this_machine_and_by_the_peers_key_from_anywhere_it_is_the_peers(
    faber, phone, row, monkeypatch, anonymous
):
    if not anonymous:
        seen_from(monkeypatch, PUBLIC)
    answers(phone, anonymous)
    assert is_heard(faber, row)


def test_from_elsewhere_it_is_the_peers_over_https_or_from_a_listed_network(
    faber, phone, row, monkeypatch, settings
):
    seen_from(monkeypatch, PUBLIC)
    answers(phone)
    assert not is_heard(faber, row), "over http it is nobody's"
    settings.OUTGOING_ALLOWED_NETWORKS = [addresses.ip_network("203.0.113.0/24")]
    assert is_heard(faber, row)
    BasicMessage.objects.filter(direction="Incoming").delete()
    settings.OUTGOING_ALLOWED_NETWORKS = []
    secure = phone.endpoint.replace("http://", "https://")
    Connection.objects.filter(pk=row.pk).update(their_endpoint=secure)
    assert is_heard(faber, row)


def test_behind_a_mediator_it_is_nobodys(faber, phone, row):
    Connection.objects.filter(pk=row.pk).update(their_routing_keys=[Agent().verkey])
    faber.post("/messages", {"connectionId": row.connection_id, "text": "Hello"})
    # Not in receives(): the server's thread would keep a connection of the pool.
    [waiting] = row.outboundmessage_set.filter(type=basic_message.MESSAGE)
    body = phone.build(basic_message.MESSAGE, waiting.thread_id, content="reply")
    phone.receives = lambda data: None  # it cannot be opened here
    phone.answers = phone.pack(body, anonymous=True)
    queues.worker_catches_up()
    assert BasicMessage.objects.get().direction == "Outgoing"


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_after_did_exchange_it_is_nobodys(faber, phone, version):
    row = connects_by_did_exchange(phone, faber, version)
    answers(phone)
    assert not is_heard(faber, row)


def test_in_another_thread_it_is_nobodys(faber, phone, row):
    answers(phone, thread="another")
    assert not is_heard(faber, row)


def test_to_a_message_shared_out_of_band_it_is_nobodys(alice, phone):
    offer = phone.build("issue-credential/1.0/offer-credential")
    invitation = out_of_band.build_invitation("invited-1", "Shop", "", phone.party, ())
    for given, expected in (
        (offer | {"~service": service.write_service(phone.party)}, True),
        (out_of_band.with_attachment(invitation, offer), False),
    ):
        wallet = Wallet.objects.get(pk=alice.wallet_id)
        shared = out_of_band.unwrap_request(message.read(given), None)
        row = connectionless.accept_shared(wallet, shared)
        sent = OutboundMessage(connection=row, recipient_key=row.their_key)
        assert inbox.may_be_anonymous(sent) is expected
        row.remove()


def test_which_addresses_are_the_operators_own(settings):
    settings.OUTGOING_ALLOWED_NETWORKS = [addresses.ip_network("10.1.0.0/16")]
    own = ("127.0.0.1", "::1", "10.1.2.3")
    others = ("10.2.2.3", "fe80::1%eth0", PUBLIC)
    found = [one for one in own + others if addresses.is_in_own_network(one)]
    assert tuple(found) == own


def test_to_a_key_that_the_peer_has_not_used_it_is_nobodys(faber, phone, row):
    """Whoever sent the rotation may have named the key of somebody else."""
    next_key = phone.with_next_key()
    to_did = dids.peer_4(next_key.verkey, phone.endpoint)
    phone.says(phone.build(did_rotate.ROTATE, to_did=to_did))

    def reply(data):
        next_key.receives(data)
        thread = next_key.inbox[-1].thread_id
        body = phone.build(basic_message.MESSAGE, thread, content="reply")
        phone.answers = phone.pack(body, anonymous=True)

    phone.receives = reply
    next_key.inbox = []
    assert not is_heard(faber, row)
    shown = faber.get(f"/connections/{row.connection_id}")["theirKey"]
    assert (len(next_key.inbox), shown) == (1, phone.verkey)
    phone.receives = next_key.receives
    phone.answers = b""
    next_key.says(next_key.build(basic_message.MESSAGE, content="with the new key"))
    phone.receives = reply
    assert is_heard(faber, row)
