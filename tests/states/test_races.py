"""Eight threads, one transition: exactly one winner, exactly one message."""

from functools import partial

import pytest
from django.utils import timezone

from agency.core.errors import WrongState
from connections.models import Connection, OutboundMessage
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
    for field, value in (
        changes | {"state": target, "updated_at": timezone.now()}
    ).items():
        setattr(obj, field, value)
    obj.save()


def count_sent(kind):
    return OutboundMessage.objects.filter(type=kind).count()


def one_wins(answers):
    assert error_codes(answers) == ["wrong_state"] * (len(answers) - 1)


def test_one_of_many_acceptances_of_an_offer_wins(walk):
    row = walks.credential(walk, "holder", "Offered")
    one_wins(transitions(row, *["accept"] * N))
    assert count_sent("issue-credential/1.0/request-credential") == 1
    assert Credential.objects.get(role="issuer").state == "Requested"


def test_the_race_of_acceptances_is_lost_by_check_then_save(walk, monkeypatch):
    row = walks.credential(walk, "holder", "Offered")
    monkeypatch.setattr("credentials.models.credential.move", check_then_save)
    with pytest.raises(AssertionError):
        one_wins(transitions(row, *["accept"] * N))


def test_one_of_many_issues_wins(walk):
    row = walks.credential(walk, "issuer", "Requested")
    one_wins(transitions(row, *["issue"] * N))
    assert count_sent("issue-credential/1.0/issue-credential") == 1
    assert set(Credential.objects.values_list("state", flat=True)) == {"Issued"}


def test_accept_and_decline_at_once_happen_in_one_of_the_two_orders(walk):
    row = walks.credential(walk, "holder", "Offered")
    accepted, _ = answers = transitions(row, "accept", "decline")
    assert error_codes(answers) == ([] if accepted is None else ["wrong_state"])
    queues.worker_catches_up()
    assert count_sent("issue-credential/1.0/request-credential") == (accepted is None)
    assert count_sent("issue-credential/1.0/problem-report") == 1
    assert set(Credential.objects.values_list("state", flat=True)) == {"Rejected"}


def test_one_of_many_answers_to_a_proposal_wins(walk):
    row = walks.credential(walk, "issuer", "Proposed")
    one_wins(transitions(row, *[offer_proposed] * N))
    assert count_sent("issue-credential/1.0/offer-credential") == 1
    assert set(Credential.objects.values_list("state", flat=True)) == {"Offered"}


def test_the_race_of_answers_to_a_proposal_is_lost_by_check_then_save(
    walk, monkeypatch
):
    row = walks.credential(walk, "issuer", "Proposed")
    monkeypatch.setattr("credentials.issue_credential.proposals.move", check_then_save)
    with pytest.raises(AssertionError):
        one_wins(transitions(row, *[offer_proposed] * N))


def test_answer_and_decline_of_a_proposal_happen_in_one_of_the_two_orders(walk):
    row = walks.credential(walk, "issuer", "Proposed")
    answered, _ = answers = transitions(row, offer_proposed, "decline")
    assert error_codes(answers) == ([] if answered is None else ["wrong_state"])
    queues.worker_catches_up()
    assert count_sent("issue-credential/1.0/offer-credential") == (answered is None)
    assert count_sent("issue-credential/1.0/problem-report") == 1
    assert set(Credential.objects.values_list("state", flat=True)) == {"Rejected"}


def test_accept_and_counter_have_one_winner(walk):
    row = walks.credential(walk, "holder", "Offered")
    answers = transitions(
        row, "accept", partial(counter_offer, changes={"comment": "?"})
    )
    one_wins(answers)
    queues.worker_catches_up()
    state = "Requested" if answers[0] is None else "Proposed"
    assert set(Credential.objects.values_list("state", flat=True)) == {state}
    assert count_sent("issue-credential/1.0/propose-credential") == (
        state == "Proposed"
    )


def test_issue_and_decline_have_one_winner(walk):
    row = walks.credential(walk, "issuer", "Requested")
    one_wins(transitions(row, "issue", "decline"))
    states = set(Credential.objects.values_list("state", flat=True))
    assert states in ({"Issued"}, {"Rejected"})
    assert count_sent("issue-credential/1.0/issue-credential") == (
        states == {"Issued"}
    )


def test_one_of_many_answers_to_a_proof_request_wins(walk):
    row = walks.verification(walk, "prover", "Requested")
    one_wins(transitions(row, *[prover.auto_select] * N))
    assert count_sent("present-proof/1.0/presentation") == 1
    assert count_sent("present-proof/1.0/problem-report") == 1, (
        "one verdict: nothing was shown"
    )


def test_the_race_of_answers_is_lost_by_check_then_save(walk, monkeypatch):
    row = walks.verification(walk, "prover", "Requested")
    monkeypatch.setattr("verifications.present_proof.prover.move", check_then_save)
    with pytest.raises(AssertionError):
        one_wins(transitions(row, *[prover.auto_select] * N))


def test_answer_and_decline_have_one_winner(walk):
    row = walks.verification(walk, "prover", "Requested")
    one_wins(transitions(row, prover.auto_select, "decline"))
    answered = count_sent("present-proof/1.0/presentation")
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
    monkeypatch.setattr("connections.models.move", check_then_save)
    monkeypatch.setattr(Connection, "lock", lambda self: True)
    answers = accept_at_once(holders, invited["invitation"])
    assert error_codes(answers) != ["invitation_used"] * (N - 1)


def test_one_wallet_that_accepts_at_once_has_one_connection(faber):
    alice = faber.hosts("Alice")
    answers = accept_at_once([alice] * 4, faber.invites()["invitation"])
    assert len({one["connectionId"] for one in answers}) == 1
    assert [one["state"] for one in alice.get("/connections")] == ["Connected"]
    assert count_sent("connections/1.0/request") == 1


def test_a_multi_party_invitation_connects_all_at_once(faber):
    holders = [faber.hosts(f"Holder {number}") for number in range(N)]
    answers = accept_at_once(holders, faber.invites(multiParty=True)["invitation"])
    assert [one["state"] for one in answers] == ["Connected"] * N
    assert Connection.objects.filter(role="inviter", state="Connected").count() == N


def test_stale_copies_that_confirm_at_once_all_succeed(walk):
    row = walks.connection(walk, "inviter", "Negotiating")
    assert error_codes(transitions(row, *[handshakes.confirm] * N)) == []
    walks.arrived(row, "Connected")
