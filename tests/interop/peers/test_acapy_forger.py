"""A holder of other software that lies, ACA-Py with a plugin, convinces nobody."""

import functools

import pytest

from tests.interop.peers import test_acapy_holder as holding
from tests.interop.peers.agency import reaches
from tests.interop.peers.exchanges import Issuance


@pytest.fixture(scope="module")
def honestly_got(faber, degree, links):
    """Return a function that issues to a peer.

    It returns our id of the credential and the peer's.
    """

    @functools.cache
    def issue(peer, version):
        ours, theirs = links(peer, version)
        offered = holding.offer(faber, degree, (ours, theirs), True)
        issuance = Issuance(peer, version)
        return offered, issuance.stored(issuance.accept(theirs))

    return issue


@pytest.fixture
def credential(honestly_got, peer, version):
    return honestly_got(peer, version)


@pytest.fixture
def judged(faber, degree, link, version, proof, credential):
    """Return a function that requests a proof of the liar.

    It returns the verdict and the failed codes.
    """

    def judge(lie, attributes=("level",), predicates=(), **more):
        more["name"] = f"{lie} in {version}"
        body = holding.policy(degree, attributes, predicates, **more)
        asked = holding.ask(faber, link, body)
        record = proof.next("request-received", connection_id=link[1])
        proof.present(record, credential[1])
        shown = reaches(faber, f"/verifications/{asked}", "Accepted")
        codes = {one["code"] for one in shown["checks"] if "code" in one}
        return shown["isValid"], codes

    return judge


AT_LEAST_8 = {"attributeName": "level", "predicateType": ">=", "predicateValue": 8}


def test_the_truth_of_the_same_agent_is_valid(judged):
    assert judged("truth", **holding.NOW) == (True, set())


@pytest.mark.parametrize(
    "lie, code",
    [
        ("another_value", "encoding"),
        ("another_signed_value", "revealed_mismatch"),
        ("somebody_elses", "signature"),
        ("a_mere_claim", "unrequested"),
    ],
)
def test_a_forged_value_is_not_valid(judged, lie, code):
    is_valid, codes = judged(lie)
    assert not is_valid and code in codes


def test_an_answer_to_an_earlier_request_is_not_valid(judged):
    assert judged("an_old_answer") == (True, set())
    assert judged("an_old_answer") == (False, {"signature"})


def test_a_weaker_predicate_is_not_valid(judged):
    verdict = judged("a_weaker_predicate", (), [AT_LEAST_8])
    assert verdict == (False, {"predicate_mismatch"})


def test_a_revoked_credential_that_says_nothing_of_it_is_not_valid(
    faber, credential, judged
):
    faber.delete(f"/credentials/{credential[0]}")
    verdict = judged("no_word_of_revocation", **holding.NOW)
    assert verdict == (False, {"non_revocation_missing"})


@pytest.fixture(params=["problem-report", "ack"])
def chosen(request, agency, faber):
    """How Faber answers a proof that is not valid."""
    agency.answers_false_proofs(faber, request.param)
    yield request.param
    agency.answers_false_proofs(faber, "problem-report")


def test_a_false_proof_is_answered_as_the_organization_chose(
    judged, proof, link, chosen
):
    assert judged("another_value")[0] is False
    sent = proof.records(connection_id=link[1])
    record = max(sent, key=lambda one: one["created_at"])
    if chosen == "ack":
        assert proof.until(record, "done")["verified"] == "false"
    else:
        proof.until(record, "abandoned")
