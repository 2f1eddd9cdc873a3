"""Every transition of a verification from every state it does not start from."""

from functools import partial

import pytest

from connections.didcomm import reasons
from connections.didcomm.message import PREFIX
from connections.exchange import PARTIES
from core.work import transactions
from tests.support import state_diagrams, walks
from verifications import messages
from verifications.models import Verification
from verifications.present_proof import endings, prover, verifier
from verifications.proofs.checks import Outcome
from verifications.proofs.policy import Policy

pytestmark = pytest.mark.usefixtures("met")
EMPTY = {"proof": {"proofs": [], "aggregated_proof": {"c_hash": "0", "c_list": []}}}


def submit(row):
    prover.answer_request(row, [])


def receive_presentation(row):
    body = messages.build_presentation(EMPTY, row.thread_id, row.message_format)
    row.lock()
    verifier.receive_presentation(row, walks.received(body))


def receive_problem(row, code="too-late"):
    body = messages.build_problem_report(
        code, "Too late.", row.thread_id, row.message_format
    )
    row.lock()
    endings.receive_problem(row, walks.received(body))


def receive_ack(row):
    row.lock()
    prover.receive_ack(
        row, walks.received(messages.build_ack(row.thread_id, row.message_format))
    )


def receive_request(row):
    row.lock()
    row.receive_request(AGAIN, POLICY, {})


def receive_proposal(row):
    row.lock()
    row.receive_proposal(AGAIN, POLICY, {"comment": ""})


def receive_answer(row):
    row.lock()
    row.receive_answer({"vp_token": {}}, Outcome(False, [], {}))


def receive_refusal(row):
    row.lock()
    row.receive_refusal()


DECLINE, AUTO, ACK = Verification.decline, prover.answer_request, receive_ack
AGAIN = walks.received({"@type": f"{PREFIX}present-proof/1.0/any", "@id": "again"})
POLICY = Policy("P", "1", (), ())
STEPS = {  # how each method of the diagram is come to
    "answer_proposal": (verifier.answer_proposal,),
    "decline": (DECLINE,),
    "present": (AUTO, submit),
    "receive_answer": (receive_answer,),
    "receive_presentation": (receive_presentation,),
    "receive_problem": (),  # is ignored
    "receive_proposal": (receive_proposal,),
    "receive_refusal": (receive_refusal,),
    "receive_request": (receive_request,),
    "receive_verdict": (ACK,),
}


@pytest.mark.parametrize("role, state", Verification.EVENTS)
def test_a_verification_refuses_a_transition_from_elsewhere(
    walk, subtests, role, state
):
    """One walk for all of them: a refusal leaves everything as it was."""
    row = walks.verification(walk, role, state)
    for whose, name, start in state_diagrams.elsewhere(Verification):
        for step in STEPS[name] if (whose, start) == (role, state) else ():
            with subtests.test(step.__name__):
                walks.refuses(partial(step, walks.fresh(row)))


@pytest.mark.parametrize("role", ["prover", "verifier"])
def test_either_side_declines_what_is_open(walk, role):
    walks.verification(walk, role, "Requested").decline()
    assert walks.states_of(Verification) == {"Rejected"}


@pytest.mark.parametrize("state", ["Accepted", "Rejected"])
def test_what_comes_after_the_verdict_changes_nothing(walk, state):
    walks.verification(walk, "verifier", state)
    for row in Verification.objects.all():
        walks.ignores(partial(receive_problem, walks.arrived(row, state)))
        if (row.role, state) == ("prover", "Accepted"):
            walks.ignores(partial(ACK, row))


def test_a_report_before_the_verdict_means_not_valid(walk):
    row = walk.asks()["prover"]
    walk.stops_after(1, lambda: prover.answer_request(row))
    row = walks.arrived(row, "Accepted")
    with transactions.atomic():
        receive_problem(row)
    assert walks.fresh(row).is_valid is False


def test_a_holder_who_declines_writes_no_verdict_on_the_verifiers_page(walk):
    row = walks.verification(walk, "verifier", "Requested")
    with transactions.atomic():
        receive_problem(row, "forged")
    row = walks.fresh(row)
    assert (row.problem, row.problem_in_words) == ("forged", reasons.UNKNOWN)


@pytest.mark.parametrize("transition", [AUTO, DECLINE, receive_problem])
def test_a_stale_copy_is_refused(walk, transition):
    stale = walks.verification(walk, "prover", "Requested")
    walks.fresh(stale).decline()
    walks.refuses(lambda: transition(stale))


@pytest.mark.parametrize("role", ["prover", "verifier"])
def test_deleting_what_is_open_declines_it_first(walk, role):
    walks.verification(walk, role, "Requested").remove()
    walks.arrived(Verification.objects.get(), "Rejected")


@pytest.mark.parametrize("meanwhile", ["declined", "deleted"])
def test_what_was_declined_or_deleted_meanwhile_is_deleted(walk, meanwhile):
    row = walks.verification(walk, "verifier", "Requested")
    # As the API reads it.
    stale = Verification.objects.select_related(*PARTIES).get(pk=row.pk)
    if meanwhile == "declined":
        Verification.objects.get(role="prover").decline()
        assert walks.fresh(row).state == "Rejected" != stale.state
    else:
        walks.fresh(row).remove()
    stale.remove()
    assert Verification.objects.get().role == "prover"
    assert walks.states_of(Verification) == {"Rejected"}
