"""Formats of issue-credential and present-proof 2.0, with each ACA-Py 1.7.0 wallet."""

import pytest

from tests.interop.peers import test_acapy_holder as holding
from tests.interop.peers import test_acapy_issuer as issuing
from tests.interop.peers.conftest import receives
from tests.interop.peers.exchanges import Issuance, Proof


@pytest.fixture
def met(faber, current):
    """(our id, their id) of a connection on which nothing was issued or asked yet."""
    return receives(current, faber, "didexchange/1.1")


def formats_by_message(record):
    """The formats of each message of an exchange, in ACA-Py's words."""
    return {name: sorted(formats) for name, formats in record["by_format"].items()}


def test_acapy_changes_the_format_within_a_thread_and_gets_its_own_afterwards(
    faber, current, degree, met
):
    issuance, proof = Issuance(current, "2.0"), Proof(current, "2.0")
    holding.offer(faber, degree, met, automaticIssuance=True)
    first = formats_by_message(issuance.accept(met[1]))
    later = {"cred_request": ["anoncreds"], "cred_issue": ["anoncreds"]}
    assert first == {"cred_offer": ["indy"], **later}
    holding.offer(faber, degree, met, automaticIssuance=True)
    second = formats_by_message(issuance.accept(met[1]))
    assert second == {"cred_offer": ["anoncreds"], **later}
    holding.ask(faber, met, holding.policy(degree, ["level"]))
    proof.present(record := proof.next("request-received", connection_id=met[1]))
    shown = formats_by_message(proof.until(record, "done"))
    assert shown == {"pres_request": ["anoncreds"], "pres": ["anoncreds"]}


SPOKEN = [(("current", "2.0"), "anoncreds"), (("current_indy", "2.0"), "indy")]


@pytest.mark.parametrize(
    "spoken, form", SPOKEN, ids=["anoncreds", "indy"], indirect=["spoken"]
)
def test_acapy_is_answered_in_the_format_of_its_wallet(
    alice, visit, badge, proof, their_definition, form
):
    _, record = badge()
    assert set(sum(formats_by_message(record).values(), [])) == {form}
    asked = issuing.asks(
        proof, visit[1], [issuing.restricted(issuing.LEVEL, their_definition)]
    )
    issuing.shows(alice)
    assert proof.verdict(asked) is True
    assert set(
        sum(formats_by_message(proof.read(asked["pres_ex_id"])).values(), [])
    ) == {form}
