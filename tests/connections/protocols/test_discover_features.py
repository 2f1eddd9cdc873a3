"""Before the first exchange a peer by connections/1.0 is asked what it supports."""

from threading import Event, Thread

import pytest
from django.db import connections

from connections.didcomm.message import PREFIX
from connections.models import Connection, OutboundMessage
from connections.protocols import discover_features
from connections.protocols.discover_features import DISCLOSE, QUERY
from tests.support import queues
from tests.support.outside_exchanges import accepts_invitation_of
from tests.support.races import at_once

VALUES = {"name": "Ann", "level": "7"}
OFFER = "issue-credential/{}/offer-credential"
BOTH = ("issue-credential/1.0", "issue-credential/2.0", "present-proof/2.0")


@pytest.fixture
def link(row):
    """The path of Faber's connection with the phone, by connections/1.0."""
    return f"/connections/{row.connection_id}"


@pytest.fixture
def definition(badge):
    return badge["definitionId"]


@pytest.fixture
def waits(monkeypatch):
    """Wait as long as in production. Other tests do not wait at all."""
    monkeypatch.setattr(discover_features, "ANSWER_SECONDS", 20.0)


def offers(faber, link, definition):
    body = {"definitionId": definition, "credentialValues": VALUES}
    return faber.post("/credentials", body | {"connectionId": link.split("/")[-1]})


def asks(faber, link):
    body = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}
    return faber.post(f"/verifications/policy/connections/{link.split('/')[-1]}", body)


def discloses(phone, *protocols, thread=None):
    listed = [{"pid": PREFIX + one} for one in protocols]
    phone.says(phone.build(DISCLOSE, thread, protocols=listed))


def answers_when_asked(phone, *protocols):
    """Answer the first question of the organization, from another thread."""
    stop = Event()

    def run():
        try:
            while not stop.wait(0.02):
                queues.sweep()
                if asked := [one for one in phone.inbox if one.type == QUERY]:
                    discloses(phone, *protocols, thread=asked[0].id)
                    return
        finally:
            connections.close_all()

    thread = Thread(target=run)
    thread.start()
    return lambda: (stop.set(), thread.join())


def kinds(phone):
    return [one.type for one in phone.inbox]


@pytest.mark.parametrize("newest", ["1.0", "2.0"])
def test_a_disclosed_version_is_offered(faber, phone, link, definition, waits, newest):
    end = answers_when_asked(phone, f"issue-credential/{newest}", "trust_ping/1.0")
    offers(faber, link, definition)
    end()
    queues.sweep()
    assert kinds(phone)[-2:] == [QUERY, OFFER.format(newest)]
    shown = faber.get(f"{link}/protocols")
    assert shown["issueCredential"] == newest
    offers(faber, link, definition)
    asks(faber, link)
    queues.sweep()
    assert kinds(phone).count(QUERY) == 1


def test_a_peer_without_answer_gets_the_usual_version(faber, phone, link, definition):
    offers(faber, link, definition)
    asks(faber, link)
    queues.sweep()
    asked = "present-proof/1.0/request-presentation"
    assert kinds(phone)[-3:] == [QUERY, OFFER.format("1.0"), asked]
    # What it says later counts for what follows, and said again it changes nothing.
    discloses(phone, *BOTH, thread="q-1")
    before = Connection.objects.values().get()
    discloses(phone, *BOTH, thread="q-1")
    assert Connection.objects.values().get() == before
    offers(faber, link, definition)
    queues.sweep()
    assert kinds(phone)[-1] == OFFER.format("2.0")


def test_the_wait_ends(faber, phone, link, definition, monkeypatch):
    monkeypatch.setattr(discover_features, "ANSWER_SECONDS", 0.1)
    offers(faber, link, definition)
    queues.sweep()
    assert kinds(phone)[-1] == OFFER.format("1.0")


def test_what_the_peer_wrote_outweighs_its_disclosure(faber, phone, link, definition):
    phone.says(phone.build("issue-credential/1.0/propose-credential"))
    discloses(phone, *BOTH)
    offers(faber, link, definition)
    queues.sweep()
    assert kinds(phone)[-1] == OFFER.format("1.0")
    assert QUERY not in kinds(phone)


def test_a_chosen_version_needs_no_question(faber, phone, link, definition):
    faber.put(f"{link}/protocols", {"exchangeVersion": "2.0"})
    offers(faber, link, definition)
    queues.sweep()
    assert kinds(phone)[-1] == OFFER.format("2.0") and QUERY not in kinds(phone)


def test_who_is_hosted_here_is_not_asked(faber, met, definition):
    offers(faber, f"/connections/{met.known_as(faber)}", definition)
    assert not Connection.objects.exclude(features_asked_at=None).exists()


def test_a_peer_without_an_endpoint_is_not_asked(faber, phone, link, definition):
    Connection.objects.update(their_endpoint="")
    offers(faber, link, definition)
    assert queues.pending().get().type == OFFER.format("1.0")


def test_a_wallet_that_proposes_asks_too(alice, phone, waits):
    path = f"/credentials/propose/{accepts_invitation_of(phone, alice)}"
    end = answers_when_asked(phone, *BOTH)
    alice.put(path, {"credentialValues": VALUES})
    end()
    queues.sweep()
    assert kinds(phone)[-1] == "issue-credential/2.0/propose-credential"


def test_exchanges_begun_at_once_ask_once(faber, phone, link, definition):
    at_once(*[lambda: offers(faber, link, definition)] * 4)
    queues.sweep()
    assert kinds(phone).count(QUERY) == 1
    assert kinds(phone).count(OFFER.format("1.0")) == 4


def test_who_refuses_to_answer_gets_the_offer_at_once(faber, phone, link, definition):
    phone.status = 500
    discover_features.ask_once(Connection.objects.get().pk)
    queues.sweep()
    phone.status = 202
    offers(faber, link, definition)
    queues.sweep()
    assert kinds(phone)[-1] == OFFER.format("1.0")
    row = OutboundMessage.objects.get(type=QUERY)
    assert (row.status, row.last_error, row.body) == ("done", "endpoint_refused", None)


def test_the_question_survives_a_caller_that_dies(faber, phone, link, definition):
    """The question is a row, and so is the answer; the exchange has not begun."""
    discover_features.ask_once(Connection.objects.get().pk)
    queues.worker_catches_up()
    discloses(phone, *BOTH, thread=phone.newest(QUERY).id)
    offers(faber, link, definition)
    queues.sweep()
    assert kinds(phone)[-1] == OFFER.format("2.0") and kinds(phone).count(QUERY) == 1
