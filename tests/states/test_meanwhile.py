"""Two concurrent changes of a connection have the outcome of one of the two orders."""

from collections.abc import Callable
from functools import partial
from itertools import count
from threading import Event
from time import monotonic
from typing import NamedTuple

import pytest

from connections.messaging import router
from connections.models import Connection, InboundMessage, OutboundMessage
from connections.protocols import connectionless, connections_1_0, handshakes
from connections.transport import completion, delivery, inbox
from core.errors import PeerError
from credentials.issue_credential.handlers import issue_automatically
from credentials.models import Credential
from tenants import audit
from tenants.lifecycle.provisioning import remove_organization
from tenants.models import Tenant
from tests.support import outside_agent, queues, walks
from tests.support.people import ApiError
from tests.support.races import PATIENCE, at_once, error_codes, is_waited_for
from verifications.models import Verification
from wallets.models import Wallet

# For the other to do what it can meanwhile, if it waits for no lock of ours.
SECONDS = 0.7


class Meanwhile:
    """The first one pauses at the end of a function until the second ends or waits.

    when: tells by the function's arguments whether this is the call. seconds: the limit
    of the pause. made_wait: whether the second waited for a lock of the first.
    """

    def __init__(self, monkeypatch, owner, name, when=None, seconds=SECONDS):
        self.paused, self.done, self.is_first = Event(), Event(), True
        self.made_wait = False
        function = getattr(owner, name)

        def pausing(*arguments, **named):
            result = function(*arguments, **named)
            if self.is_first and (when is None or when(*arguments)):
                self.is_first = False
                self.pause(seconds)
            return result

        monkeypatch.setattr(owner, name, pausing)

    def pause(self, seconds):
        self.paused.set()
        end = monotonic() + seconds
        while not self.done.wait(0.02) and monotonic() < end and not self.made_wait:
            self.made_wait = is_waited_for()

    def runs(self, first, second):
        """The answers of both."""

        def behind():
            assert self.paused.wait(10)
            try:
                return second()
            finally:
                self.done.set()

        answers = at_once(first, behind)
        queues.worker_catches_up()
        return answers


def inserted_by(role):
    """The moment after one side has stored a new exchange, for Meanwhile."""
    return "insert_within_quota", lambda row: row.role == role


@pytest.fixture
def row(met):
    return Connection.objects.get(role="inviter")


class Beginning(NamedTuple):
    """How an exchange begins: the call, both sides' connections, who gets it.

    stored: the moment after whoever begins has stored it, for Meanwhile.
    """

    call: Callable
    mine: Connection
    theirs: Connection
    model: type[Credential | Verification]
    receiver: str
    stored: tuple


@pytest.fixture
def begins(walk, row, badge):
    """The ways in which an exchange begins."""
    hers = Connection.objects.get(role="invitee")
    offer = partial(walk.faber.offers, walk.alice, badge, walks.VALUES)
    ask = partial(walk.faber.asks, walk.alice, attributes=[{"policyName": "level"}])
    wanted = {"schemaName": "Licence", "credentialValues": walks.VALUES}
    path = f"/credentials/propose/{hers.connection_id}"
    propose = partial(walk.alice.put, path, wanted)
    first = connectionless, "send_first_message"
    held = Credential, *inserted_by("holder")
    return {
        "offer": Beginning(offer, row, hers, Credential, "holder", first),
        "request": Beginning(ask, row, hers, Verification, "prover", first),
        "proposal": Beginning(propose, hers, row, Credential, "issuer", held),
    }


BEGINNINGS = ["offer", "request", "proposal"]


def copy(row):
    return Connection.objects.get(pk=row.pk)


def last_act(connection, last):
    """End or remove the connection, as another request has read it."""
    return lambda: getattr(copy(connection), last)()


def over():
    """Whether nothing is open on either side."""
    rows = [*Credential.objects.all(), *Verification.objects.all()]
    return all(row.state == "Rejected" for row in rows)


@pytest.mark.parametrize("what", BEGINNINGS)
@pytest.mark.parametrize("last", ["end", "remove"])
def test_what_begins_while_the_connection_ends_is_closed_with_it(
    begins, monkeypatch, what, last
):
    one = begins[what]
    meanwhile = Meanwhile(monkeypatch, *one.stored)
    assert error_codes(meanwhile.runs(one.call, last_act(one.mine, last))) == []
    assert over() and one.model.objects.count() == 2


@pytest.mark.parametrize("what", BEGINNINGS)
@pytest.mark.parametrize("last", ["end", "remove"])
def test_what_begins_after_the_end_began_is_refused(begins, monkeypatch, what, last):
    one = begins[what]
    meanwhile = Meanwhile(monkeypatch, router, "end_exchanges")
    answers = meanwhile.runs(last_act(one.mine, last), one.call)
    assert error_codes(answers) == ["connection_gone"]
    assert not Credential.objects.exists() and not Verification.objects.exists()


@pytest.mark.parametrize("what", BEGINNINGS)
def test_what_arrives_while_the_connection_ends_is_closed_with_it(
    begins, monkeypatch, what
):
    one = begins[what]
    meanwhile = Meanwhile(monkeypatch, one.model, *inserted_by(one.receiver))
    assert error_codes(meanwhile.runs(one.call, copy(one.theirs).end)) == []
    assert over() and one.model.objects.count() == 2


def test_an_invitation_accepted_while_the_known_connection_is_deleted_connects_anew(
    faber, monkeypatch
):
    alice, terms = faber.hosts(), {"protocol": "out-of-band", "reuse": True}
    first, second = faber.invites(**terms), faber.invites(**terms)
    mine = alice.accepts_invitation(first["invitation"])
    meanwhile = Meanwhile(monkeypatch, router, "end_exchanges")
    _, anew = meanwhile.runs(
        lambda: alice.delete(f"/connections/{mine['connectionId']}"),
        lambda: alice.accepts_invitation(second["invitation"]),
    )
    [kept] = alice.get("/connections")
    assert kept["connectionId"] == anew["connectionId"] != mine["connectionId"]


def test_what_is_issued_while_the_connection_ends_stays_issued(walk, row, monkeypatch):
    row = walks.credential(walk, "issuer", "Requested")
    meanwhile = Meanwhile(monkeypatch, Credential, "send_message")
    assert error_codes(meanwhile.runs(row.issue, copy(row.connection).end)) == []
    assert Credential.objects.get(role="issuer").state == "Issued"


@pytest.mark.parametrize("last", ["decline", "end"])
def test_what_ends_before_it_is_issued_automatically_ends(walk, row, last):
    row = walks.credential(walk, "issuer", "Requested")
    (copy(row.connection).end if last == "end" else walks.fresh(row).decline)()
    issue_automatically(row)
    assert walks.fresh(row).state == "Rejected"


def test_an_answer_and_the_end_of_the_connection_leave_nothing_open(walk, row, begins):
    begins["proposal"].call()
    definition = walk.faber.badge["definitionId"]
    path = f"/credentials/{walk.faber.get('/credentials')[0]['credentialId']}/offer"
    offer = partial(walk.faber.put, path, {"definitionId": definition})
    answers = at_once(offer, copy(row).end)
    queues.worker_catches_up()
    assert set(error_codes(answers)) <= {"wrong_state", "connection_gone"} and over()


def test_a_hangup_that_comes_while_we_hang_up_is_no_error(walk, row, monkeypatch):
    theirs, api = Connection.objects.get(role="invitee"), walk.faber
    queues.crash_before_the_drain(monkeypatch)
    copy(theirs).end()
    meanwhile = Meanwhile(monkeypatch, Connection, "mark_ended")
    path = f"/connections/{row.connection_id}/hangup"
    _, answer = meanwhile.runs(queues.worker_catches_up, lambda: api.post(path))
    assert answer["endedAtUtc"]


def test_a_phone_that_asks_twice_at_once_has_one_connection(faber, phone, monkeypatch):
    faber.invites(multiParty=True)
    asks = partial(phone.requests, Connection.objects.get().invitation)
    Meanwhile(monkeypatch, handshakes, "answer_request").runs(asks, asks)
    made = Connection.objects.get(their_key=phone.verkey)
    assert OutboundMessage.objects.filter(connection=made, status="done").count() == 2


@pytest.mark.parametrize("many", [True, False])
def test_agents_wait_for_each_other_only_at_an_invitation_for_one(
    faber, phone, monkeypatch, many
):
    faber.invites(multiParty=many)
    invitation = Connection.objects.get().invitation
    meanwhile = Meanwhile(monkeypatch, inbox, "_lock_for_handler", seconds=PATIENCE)
    with outside_agent.listening(outside_agent.Agent()) as other:
        meanwhile.runs(*[partial(one.requests, invitation) for one in (phone, other)])
    assert meanwhile.made_wait is not many
    assert set(InboundMessage.objects.values_list("attempts", flat=True)) == {0}
    made = Connection.objects.filter(state="Connected")
    keys = {phone.verkey, other.verkey} if many else {phone.verkey}
    assert {row.their_key for row in made} == keys
    assert phone.newest(connections_1_0.RESPONSE)
    assert other.newest(connections_1_0.RESPONSE if many else connections_1_0.PROBLEM)


def quietly(call):
    """What it raises, if anything, as a code or a text."""

    def run():
        try:
            call()
        except ApiError as error:
            return error.code
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    return run


def test_an_organization_is_deleted_while_it_offers(walk, row, begins, monkeypatch):
    meanwhile = Meanwhile(monkeypatch, Connection, "lock_for_exchange")
    removed = quietly(lambda: remove_organization(row.tenant, by=audit.SYSTEM))
    offered, removed = meanwhile.runs(quietly(begins["offer"].call), removed)
    assert removed == ""
    assert offered in ("", "not_found"), "it may be gone when it is read again"
    assert not Tenant.objects.filter(pk=row.tenant_id).exists()


def test_a_wallet_is_deleted_while_it_accepts_again(faber, monkeypatch):
    alice, terms = faber.hosts(), {"protocol": "out-of-band", "reuse": True}
    first, second = faber.invites(**terms), faber.invites(**terms)
    alice.accepts_invitation(first["invitation"])
    wallet = Wallet.objects.get(is_organization=False)
    meanwhile = Meanwhile(monkeypatch, handshakes, "find_hosted_invitation")
    accepts = quietly(lambda: alice.accepts_invitation(second["invitation"]))
    accepted, removed = meanwhile.runs(accepts, quietly(wallet.remove))
    assert accepted in ("", "not_found") and removed == ""
    assert not Wallet.objects.filter(is_organization=False).exists()


@pytest.mark.parametrize("by_rows", [False, True])
def test_a_connection_is_deleted_while_its_response_arrives(
    faber, monkeypatch, caplog, by_rows
):
    alice, invited = faber.hosts(), faber.invites()
    if by_rows:
        queues.deliver_by_rows(monkeypatch)
        meanwhile = Meanwhile(monkeypatch, OutboundMessage, "finish", is_response)
    else:
        meanwhile = Meanwhile(monkeypatch, delivery, "mark_handled", holds_response)
    accepts = quietly(lambda: alice.accepts_invitation(invited["invitation"]))
    removes = quietly(lambda: Connection.objects.get(role="inviter").remove())
    assert meanwhile.runs(accepts, removes) == ["", ""]
    assert " failed" not in caplog.text


def is_response(row):
    return row.type == connections_1_0.RESPONSE


def holds_response(hosted, received):
    return is_response(received)


def test_the_report_of_a_refusal_and_the_removal_of_its_connection(
    faber, monkeypatch, caplog
):
    """The worker locks the connection before the message, as who removes it does."""

    def refuse(*_):
        raise PeerError("refused", "For a test.")

    known, calls = faber.hosts().known_as(faber), count()
    with monkeypatch.context() as patch:
        queues.crash_before_the_drain(patch)
        faber.post("/messages", {"connectionId": known, "text": "Hello"})
    monkeypatch.setattr(router, "dispatch", refuse)
    # The first time, it is handled; the second time, it is refused.
    is_second = lambda *_: next(calls) == 1  # noqa: E731
    meanwhile = Meanwhile(monkeypatch, completion, "mark_sent", is_second)
    meanwhile.runs(
        queues.worker_catches_up, lambda: faber.delete(f"/connections/{known}")
    )
    assert meanwhile.made_wait and "deadlock" not in caplog.text
