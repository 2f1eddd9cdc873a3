"""The races of issuing and proving once more, in version 2.0 of both protocols."""

from functools import partial

import pytest

from connections.models import Connection
from credentials.models import Credential
from tests.support import queues, walks
from tests.support.races import error_codes, transitions
from verifications.models import Verification
from verifications.present_proof import prover

N = 8


@pytest.fixture
def walk(faber, monkeypatch):
    walk = walks.Walk(faber, monkeypatch)
    walk.alice.meets(faber)
    Connection.objects.update(exchange_version="2.0")
    return walk


@pytest.mark.parametrize(
    "make, role, state, step, kind",
    [
        (
            walks.credential,
            "holder",
            "Offered",
            "accept",
            "issue-credential/2.0/request-credential",
        ),
        (
            walks.credential,
            "issuer",
            "Requested",
            "issue",
            "issue-credential/2.0/issue-credential",
        ),
        (
            walks.verification,
            "prover",
            "Requested",
            prover.auto_select,
            "present-proof/2.0/presentation",
        ),
    ],
)
def test_of_many_at_once_one_wins(walk, monkeypatch, make, role, state, step, kind):
    row, sent = make(walk, role, state), queues.record_sent(monkeypatch)
    answers = transitions(row, *[step] * N)
    assert error_codes(answers) == ["wrong_state"] * (N - 1)
    assert sent.count(kind) == 1


@pytest.mark.parametrize(
    "make, role, state, step",
    [
        (walks.credential, "issuer", "Requested", "issue"),
        (walks.verification, "prover", "Requested", prover.auto_select),
    ],
)
def test_a_step_and_a_decline_at_once_have_one_winner(walk, make, role, state, step):
    row = make(walk, role, state)
    answers = transitions(row, step, "decline")
    assert error_codes(answers) == ["wrong_state"]
    states = {one.state for one in type(row).objects.all()}
    assert len(states) == 1 and states <= {"Issued", "Accepted", "Rejected"}


@pytest.mark.parametrize("role, state", [("issuer", "Issued"), ("holder", "Rejected")])
def test_a_finished_issuance_refuses_each_step(walk, role, state):
    row = walks.credential(walk, role, state)
    for step in (row.accept, row.issue, row.decline):
        walks.refuses(step)
    assert Credential.objects.filter(wire_version="2.0").count() == 2


@pytest.mark.parametrize(
    "role, state", [("verifier", "Accepted"), ("prover", "Rejected")]
)
def test_a_finished_proof_refuses_each_step(walk, role, state):
    row = walks.verification(walk, role, state)
    for step in (partial(prover.auto_select, row), row.decline):
        walks.refuses(step)
    assert Verification.objects.filter(wire_version="2.0").count() == 2
