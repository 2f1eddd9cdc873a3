"""Refusals of finished exchanges in version 2.0 of both protocols."""

from functools import partial

import pytest

from tests.support import walks
from verifications.present_proof import prover

pytestmark = pytest.mark.usefixtures("met", "badge")
CREDENTIAL, VERIFICATION = walks.credential, walks.verification


@pytest.mark.parametrize(
    "make, role, state",
    [
        (CREDENTIAL, "issuer", "Issued"),
        (CREDENTIAL, "holder", "Rejected"),
        (VERIFICATION, "verifier", "Accepted"),
        (VERIFICATION, "prover", "Rejected"),
    ],
)
def test_a_finished_exchange_refuses_each_step(walk, make, role, state):
    walk.speaks("2.0")
    row = make(walk, role, state)
    select = partial(prover.answer_request, row)
    steps = (row.accept, row.issue) if make is CREDENTIAL else (select,)
    for step in (*steps, row.decline):
        walks.refuses(step)
    assert type(row).objects.filter(wire_version="2.0").count() == 2
