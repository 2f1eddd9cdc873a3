"""Eight threads, one transition: exactly one winner, exactly one message."""

from functools import partial
from time import sleep

import pytest
from django.utils import timezone

from agency.core.errors import WrongState
from connections.messaging import pair_lock
from connections.models import Connection
from connections.protocols import handshakes
from credentials.issue_credential.proposals import counter_offer, offer_proposed
from credentials.models import Credential
from tests.support import queues, walks
from tests.support.races import at_once, error_codes, transitions
from verifications.models import Verification
from verifications.present_proof import prover

N = 8


@pytest.fixture
def walk(faber, monkeypatch):
    return walks.Walk(faber, monkeypatch)


def check_then_save(obj, sources, target, **changes):
    """How a transition must not be written."""
    if type(obj).objects.get(pk=obj.pk).state not in sources:
        raise WrongState(obj, sources)
    sleep(0.1)  # all threads check before one of them has committed
    for field, value in (
        changes | {"state": target, "updated_at": timezone.now()}
    ).items():
        setattr(obj, field, value)
    obj.save()


@pytest.fixture
def sent(monkeypatch):
    return queues.record_sent(monkeypatch)


def move_badly_without_lock(monkeypatch, module):
    """Let a module write its transitions as they must not be, and lock no row.

    The lock would put them in order: then even such a transition has one winner.
    """
    monkeypatch.setattr(f"{module}.move", check_then_save)
    monkeypatch.setattr(pair_lock, "FOR_CHANGES", "")


def one_wins(answers):
    assert error_codes(answers) == ["wrong_state"] * (len(answers) - 1)


def test_one_of_many_acceptances_of_an_offer_wins(walk, sent):
    row = walks.credential(walk, "holder", "Offered")
    one_wins(transitions(row, *["accept"] * N))
    assert sent.count("issue-credential/1.0/request-credential") == 1
    assert Credential.objects.get(role="issuer").state == "Requested"


def test_the_race_of_acceptances_is_lost_by_check_then_save(walk, monkeypatch):
    row = walks.credential(walk, "holder", "Offered")
    move_badly_without_lock(monkeypatch, "credentials.models.credential")
    answers = transitions(row, *["accept"] * N)
    assert len(error_codes(answers)) < N - 1


def test_one_of_many_issues_wins(walk, sent):
    row = walks.credential(walk, "issuer", "Requested")
    one_wins(transitions(row, *["issue"] * N))
    assert sent.count("issue-credential/1.0/issue-credential") == 1
    assert set(Credential.objects.values_list("state", flat=True)) == {"Issued"}


def test_accept_and_decline_at_once_happen_in_one_of_the_two_orders(walk, sent):
    row = walks.credential(walk, "holder", "Offered")
    accepted, _ = answers = transitions(row, "accept", "decline")
    assert error_codes(answers) == ([] if accepted is None else ["wrong_state"])
    queues.worker_catches_up()
    assert sent.count("issue-credential/1.0/request-credential") == (accepted is None)
    assert sent.count("issue-credential/1.0/problem-report") == 1
    assert set(Credential.objects.values_list("state", flat=True)) == {"Rejected"}


def test_one_of_many_answers_to_a_proposal_wins(walk, sent):
    row = walks.credential(walk, "issuer", "Proposed")
    one_wins(transitions(row, *[offer_proposed] * N))
    assert sent.count("issue-credential/1.0/offer-credential") == 1
    assert set(Credential.objects.values_list("state", flat=True)) == {"Offered"}


def test_the_race_of_answers_to_a_proposal_is_lost_by_check_then_save(
    walk, monkeypatch
):
    row = walks.credential(walk, "issuer", "Proposed")
    move_badly_without_lock(monkeypatch, "credentials.issue_credential.proposals")
    answers = transitions(row, *[offer_proposed] * N)
    assert len(error_codes(answers)) < N - 1


def test_answer_and_decline_of_a_proposal_happen_in_one_of_the_two_orders(walk, sent):
    row = walks.credential(walk, "issuer", "Proposed")
    answered, _ = answers = transitions(row, offer_proposed, "decline")
    assert error_codes(answers) == ([] if answered is None else ["wrong_state"])
    queues.worker_catches_up()
    assert sent.count("issue-credential/1.0/offer-credential") == (answered is None)
    assert sent.count("issue-credential/1.0/problem-report") == 1
    assert set(Credential.objects.values_list("state", flat=True)) == {"Rejected"}


def test_accept_and_counter_have_one_winner(walk, sent):
    row = walks.credential(walk, "holder", "Offered")
    answers = transitions(
        row, "accept", partial(counter_offer, changes={"comment": "?"})
    )
    one_wins(answers)
    queues.worker_catches_up()
    state = "Requested" if answers[0] is None else "Proposed"
    assert set(Credential.objects.values_list("state", flat=True)) == {state}
    assert sent.count("issue-credential/1.0/propose-credential") == (
        state == "Proposed"
    )


def test_issue_and_decline_have_one_winner(walk, sent):
    row = walks.credential(walk, "issuer", "Requested")
    one_wins(transitions(row, "issue", "decline"))
    states = set(Credential.objects.values_list("state", flat=True))
    assert states in ({"Issued"}, {"Rejected"})
    assert sent.count("issue-credential/1.0/issue-credential") == (
        states == {"Issued"}
    )


def test_one_of_many_answers_to_a_proof_request_wins(walk, sent):
    row = walks.verification(walk, "prover", "Requested")
    one_wins(transitions(row, *[prover.auto_select] * N))
    assert sent.count("present-proof/1.0/presentation") == 1
    assert sent.count("present-proof/1.0/problem-report") == 1, (
        "one verdict: nothing was shown"
    )


def test_the_race_of_answers_is_lost_by_check_then_save(walk, monkeypatch):
    row = walks.verification(walk, "prover", "Requested")
    move_badly_without_lock(monkeypatch, "verifications.present_proof.prover")
    answers = transitions(row, *[prover.auto_select] * N)
    assert len(error_codes(answers)) < N - 1


def test_answer_and_decline_have_one_winner(walk, sent):
    row = walks.verification(walk, "prover", "Requested")
    one_wins(transitions(row, prover.auto_select, "decline"))
    answered = sent.count("present-proof/1.0/presentation")
    states = set(Verification.objects.values_list("state", flat=True))
    assert states == ({"Accepted"} if answered else {"Rejected"})


def accept_at_once(holders, invitation):
    return at_once(
        *[lambda one=one: one.accepts_invitation(invitation) for one in holders]
    )  # each holder through the API, as the callers do


def test_a_single_use_invitation_connects_one_of_many_wallets(faber):
    holders = [faber.hosts(f"Holder {number}") for number in range(N)]
    invited = faber.invites()
    answers = accept_at_once(holders, invited["invitation"])
    assert error_codes(answers) == ["invitation_used"] * (N - 1)
    [winner] = [one for one in answers if isinstance(one, dict)]
    assert winner["state"] == "Connected"
    assert (
        faber.get(f"/connections/{invited['connectionId']}")["theirKey"]
        == winner["myKey"]
    )
    assert Connection.objects.filter(role="invitee").count() == 1


def test_the_race_of_invitations_is_lost_by_check_then_save(faber, monkeypatch):
    holders = [faber.hosts(f"Holder {number}") for number in range(N)]
    invited = faber.invites()
    move_badly_without_lock(monkeypatch, "connections.models")
    answers = accept_at_once(holders, invited["invitation"])
    assert error_codes(answers).count("invitation_used") < N - 1


def test_one_wallet_that_accepts_at_once_has_one_connection(faber, sent):
    alice = faber.hosts("Alice")
    answers = accept_at_once([alice] * 4, faber.invites()["invitation"])
    assert len({one["connectionId"] for one in answers}) == 1
    assert [one["state"] for one in alice.get("/connections")] == ["Connected"]
    assert sent.count("connections/1.0/request") == 1


def test_a_multi_party_invitation_connects_all_at_once(faber):
    holders = [faber.hosts(f"Holder {number}") for number in range(N)]
    answers = accept_at_once(holders, faber.invites(multiParty=True)["invitation"])
    assert [one["state"] for one in answers] == ["Connected"] * N
    assert Connection.objects.filter(role="inviter", state="Connected").count() == N


def test_stale_copies_that_confirm_at_once_all_succeed(walk):
    row = walks.connection(walk, "inviter", "Negotiating")

    def confirm(copy):
        copy.lock()
        handshakes.connect_inviter(copy)

    assert error_codes(transitions(row, *[confirm] * N)) == []
    walks.arrived(row, "Connected")
