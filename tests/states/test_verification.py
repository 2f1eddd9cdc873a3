"""Every transition of a verification from every state it does not start from."""

from functools import partial

import pytest

from agency.core import transactions
from tests.support import walks
from verifications.models import Verification
from verifications.present_proof import endings, messages, prover, verifier

EMPTY = {"proof": {"proofs": [], "aggregated_proof": {"c_hash": "0", "c_list": []}}}


@pytest.fixture
def walk(faber, monkeypatch):
    return walks.Walk(faber, monkeypatch)


def submit(row):
    prover.submit_selections(row, [])


def receive_presentation(row):
    body = messages.build_presentation(EMPTY, row.thread_id, row.message_format)
    row.lock()
    verifier.receive_presentation(row, walks.received(body))


def receive_problem(row):
    body = messages.build_problem_report(
        "too-late", "Too late.", row.thread_id, row.message_format
    )
    row.lock()
    endings.receive_problem(row, walks.received(body))


def receive_ack(row):
    row.lock()
    prover.receive_ack(
        row, walks.received(messages.build_ack(row.thread_id, row.message_format))
    )


DECLINE, AUTO, ACK = Verification.decline, prover.auto_select, receive_ack


REFUSED = {  # the transitions that do not start from this state of this side
    ("prover", "Proposed"): (AUTO, submit),
    ("prover", "Requested"): (ACK,),
    ("prover", "Accepted"): (AUTO, submit, DECLINE),
    ("prover", "Rejected"): (AUTO, submit, DECLINE, ACK),
    ("verifier", "Proposed"): (receive_presentation,),
    ("verifier", "Accepted"): (receive_presentation, DECLINE),
    ("verifier", "Rejected"): (receive_presentation, DECLINE),
}


@pytest.mark.parametrize("role, state", REFUSED)
def test_a_verification_refuses_a_transition_from_elsewhere(
    walk, subtests, role, state
):
    """One walk for all of them: a refusal leaves everything as it was."""
    row = walks.verification(walk, role, state)
    for transition in REFUSED[role, state]:
        with subtests.test(transition.__name__):
            walks.refuses(partial(transition, walks.fresh(row)))


@pytest.mark.parametrize("role", ["prover", "verifier"])
def test_either_side_declines_what_is_open(walk, role):
    walks.verification(walk, role, "Requested").decline()
    assert set(Verification.objects.values_list("state", flat=True)) == {"Rejected"}


@pytest.mark.parametrize(
    "transition, role, state",
    [
        (receive_problem, "verifier", "Accepted"),
        (receive_problem, "verifier", "Rejected"),
        (receive_problem, "prover", "Accepted"),
        (receive_problem, "prover", "Rejected"),
        (ACK, "prover", "Accepted"),
    ],
)
def test_what_comes_after_the_verdict_changes_nothing(walk, transition, role, state):
    row = walks.verification(walk, role, state)
    walks.ignores(lambda: transition(row))


def test_a_report_before_the_verdict_means_not_valid(walk):
    row = walk.asks()["prover"]
    walk.stops_after(1, lambda: prover.auto_select(row))
    row = walks.arrived(row, "Accepted")
    with transactions.atomic():
        receive_problem(row)
    assert walks.fresh(row).is_valid is False


@pytest.mark.parametrize("transition", [AUTO, DECLINE, receive_problem])
def test_a_stale_copy_is_refused(walk, transition):
    stale = walks.verification(walk, "prover", "Requested")
    walks.fresh(stale).decline()
    walks.refuses(lambda: transition(stale))


@pytest.mark.parametrize("role", ["prover", "verifier"])
def test_deleting_what_is_open_declines_it_first(walk, role):
    walks.verification(walk, role, "Requested").remove()
    walks.arrived(Verification.objects.get(), "Rejected")
