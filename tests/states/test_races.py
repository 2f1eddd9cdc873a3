"""Eight threads, one transition: exactly one winner, exactly one message."""

from functools import partial
from threading import Event

import pytest
from django.utils import timezone

from connections.messaging import pair_lock
from connections.models import Connection
from connections.protocols import handshakes
from core.errors import WrongState
from credentials.issue_credential.proposals import counter_offer, offer_proposed
from credentials.models import Credential
from tests.support import queues, walks
from tests.support.races import at_once, error_codes, transitions
from verifications.present_proof import prover

N = 8


@pytest.fixture
def sent(monkeypatch):
    return queues.record_sent(monkeypatch)


@pytest.fixture(params=["1.0", "2.0"])
def version(request, walk, met, badge):
    """The version of issue-credential and present-proof that both sides use."""
    walk.speaks(request.param)
    return request.param


def move_badly_without_lock(monkeypatch, model):
    """Let a model write its transitions as they must not be, and lock no row.

    The lock would put them in order: then even such a transition has one winner.
    """
    checked, all_checked = [], Event()

    def check_then_save(obj, sources, target, **changes):
        if type(obj).objects.get(pk=obj.pk).state not in sources:
            raise WrongState(obj, sources)
        checked.append(obj)
        if len(checked) == N:
            all_checked.set()
        all_checked.wait(0.5)  # before one of them has committed
        changes |= {"state": target, "updated_at": timezone.now()}
        for field, value in changes.items():
            setattr(obj, field, value)
        obj.save()

    monkeypatch.setattr(f"{model.__module__}.move", check_then_save)
    monkeypatch.setattr(pair_lock, "FOR_CHANGES", "")


def one_wins(answers):
    assert error_codes(answers) == ["wrong_state"] * (len(answers) - 1)


CREDENTIAL, VERIFICATION = walks.credential, walks.verification
SELECT = prover.answer_request
ISSUE, PROVE = "issue-credential", "present-proof"
REQUEST, OFFER = ["request-credential"], ["offer-credential"]
ISSUED = ["issue-credential"]
PRESENTATION = ["presentation", "problem-report"]  # one verdict: nothing was shown


@pytest.mark.parametrize(
    "make, role, state, step, target, protocol, kinds",
    [
        (CREDENTIAL, "holder", "Offered", "accept", "Requested", ISSUE, REQUEST),
        (CREDENTIAL, "issuer", "Requested", "issue", "Issued", ISSUE, ISSUED),
        (CREDENTIAL, "issuer", "Proposed", offer_proposed, "Offered", ISSUE, OFFER),
        (VERIFICATION, "prover", "Requested", SELECT, "Accepted", PROVE, PRESENTATION),
    ],
)
def test_of_many_at_once_one_wins(
    walk, version, sent, make, role, state, step, target, protocol, kinds
):
    row = make(walk, role, state)
    one_wins(transitions(row, *[step] * N))
    for kind in kinds:
        assert sent.count(f"{protocol}/{version}/{kind}") == 1
    assert walks.states_of(type(row)) == {target}


@pytest.mark.parametrize(
    "make, role, state, step",
    [
        (CREDENTIAL, "holder", "Offered", "accept"),
        (CREDENTIAL, "issuer", "Proposed", offer_proposed),
        (VERIFICATION, "prover", "Requested", SELECT),
    ],
)
def test_the_race_is_lost_by_check_then_save(
    walk, monkeypatch, make, role, state, step
):
    row = make(walk, role, state)
    move_badly_without_lock(monkeypatch, type(row))
    assert len(error_codes(transitions(row, *[step] * N))) < N - 1


@pytest.mark.parametrize(
    "role, state, step, kind",
    [
        ("holder", "Offered", "accept", "request-credential"),
        ("issuer", "Proposed", offer_proposed, "offer-credential"),
    ],
)
def test_a_step_and_a_decline_at_once_happen_in_one_of_the_two_orders(
    walk, sent, role, state, step, kind
):
    row = walks.credential(walk, role, state)
    done, _ = answers = transitions(row, step, "decline")
    assert error_codes(answers) == ([] if done is None else ["wrong_state"])
    queues.worker_catches_up()
    assert sent.count(f"{ISSUE}/1.0/{kind}") == (done is None)
    assert sent.count(f"{ISSUE}/1.0/problem-report") == 1
    assert walks.states_of(Credential) == {"Rejected"}


def test_accept_and_counter_have_one_winner(walk, sent):
    row = walks.credential(walk, "holder", "Offered")
    counter = partial(counter_offer, changes={"comment": "?"})
    accepted, _ = answers = transitions(row, "accept", counter)
    one_wins(answers)
    queues.worker_catches_up()
    state = "Requested" if accepted is None else "Proposed"
    assert walks.states_of(Credential) == {state}
    assert sent.count(f"{ISSUE}/1.0/propose-credential") == (state == "Proposed")


@pytest.mark.parametrize(
    "make, role, step, target, kind",
    [
        (CREDENTIAL, "issuer", "issue", "Issued", f"{ISSUE}/{{}}/issue-credential"),
        (VERIFICATION, "prover", SELECT, "Accepted", f"{PROVE}/{{}}/presentation"),
    ],
)
def test_the_last_step_and_a_decline_have_one_winner(
    walk, version, sent, make, role, step, target, kind
):
    row = make(walk, role, "Requested")
    one_wins(transitions(row, step, "decline"))
    is_done = sent.count(kind.format(version))
    assert walks.states_of(type(row)) == ({target} if is_done else {"Rejected"})


@pytest.fixture
def holders(faber):
    return [faber.hosts(f"Holder {number}") for number in range(N)]


def accept_at_once(holders, invitation):
    """Each holder through the API, as the callers do."""
    accept = [lambda one=one: one.accepts_invitation(invitation) for one in holders]
    return at_once(*accept)


def test_a_single_use_invitation_connects_one_of_many_wallets(faber, holders):
    invited = faber.invites()
    answers = accept_at_once(holders, invited["invitation"])
    assert error_codes(answers) == ["invitation_used"] * (N - 1)
    [winner] = [one for one in answers if isinstance(one, dict)]
    assert winner["state"] == "Connected"
    seen = faber.get(f"/connections/{invited['connectionId']}")
    assert seen["theirKey"] == winner["myKey"]
    assert Connection.objects.filter(role="invitee").count() == 1


def test_the_race_of_invitations_is_lost_by_check_then_save(
    faber, holders, monkeypatch
):
    invited = faber.invites()
    move_badly_without_lock(monkeypatch, Connection)
    answers = accept_at_once(holders, invited["invitation"])
    assert error_codes(answers).count("invitation_used") < N - 1


def test_one_wallet_that_accepts_at_once_has_one_connection(faber, sent):
    alice = faber.hosts("Alice")
    answers = accept_at_once([alice] * 4, faber.invites()["invitation"])
    assert len({one["connectionId"] for one in answers}) == 1
    assert [one["state"] for one in alice.get("/connections")] == ["Connected"]
    assert sent.count("connections/1.0/request") == 1


def test_a_multi_party_invitation_connects_all_at_once(faber, holders):
    answers = accept_at_once(holders, faber.invites(multiParty=True)["invitation"])
    assert [one["state"] for one in answers] == ["Connected"] * N
    assert Connection.objects.filter(role="inviter", state="Connected").count() == N


def test_stale_copies_that_confirm_at_once_all_succeed(walk):
    row = walks.connection(walk, "inviter", "Negotiating")

    def confirm(copy):
        handshakes.connect_inviter(copy.lock())

    assert error_codes(transitions(row, *[confirm] * N)) == []
    walks.arrived(row, "Connected")
