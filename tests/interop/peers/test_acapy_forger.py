"""A holder of other software, ACA-Py 0.12.8 with a plugin that lies, convinces nobody."""

import pytest

from connections.didcomm.message import decode_json
from tests.interop.peers.acapy import FIRST
from tests.interop.peers.agency import reaches
from tests.interop.peers.conftest import VALUES
from tests.interop.peers.exchanges import Issuance, Proof


@pytest.fixture(scope="module")
def mallory(starts, faber, degree):
    """A lying agent with an honest credential; (agent, our connection, our credential)."""
    agent = starts(FIRST, "Mallory", "--plugin", "forger").wait_until_ready()
    invited = faber.invites(protocol="out-of-band", handshakes=["didexchange/1.1"])
    agent.post("/out-of-band/receive-invitation", decode_json(invited["invitation"]))
    ours = invited["connectionId"]
    reaches(faber, f"/connections/{ours}", "Connected")
    body = {"definitionId": degree, "connectionId": ours, "credentialValues": VALUES}
    offered = faber.post("/credentials", body | {"automaticIssuance": True})["credentialId"]
    issuance = Issuance(agent, "2.0")
    record = issuance.next("offer-received")
    issuance.act(record, "send-request")
    issuance.until(record, "done")
    return agent, ours, offered


@pytest.fixture
def judged(faber, degree, mallory):
    """A function that asks the liar, and answers the verdict with the codes of what failed."""

    def judge(lie, attributes=("level",), predicates=(), **more):
        restrictions = {"restrictions": [{"credentialDefinitionId": degree}]}
        body = {"name": lie, "version": "1.0", **more}
        body["attributes"] = [{"policyName": name, **restrictions} for name in attributes]
        body["predicates"] = [one | restrictions for one in predicates]
        asked = faber.post(f"/verifications/policy/connections/{mallory[1]}", body)
        proof = Proof(mallory[0], "2.0")
        proof.present(proof.next("request-received"))
        shown = reaches(faber, f"/verifications/{asked['verificationId']}", "Accepted")
        return shown["isValid"], {one["code"] for one in shown["checks"] if "code" in one}

    return judge


AT_LEAST_8 = {"attributeName": "level", "predicateType": ">=", "predicateValue": 8}
NOW = {"revocationRequirement": {"validNow": True}}


def test_the_truth_of_the_same_agent_is_valid(judged):
    assert judged("the truth", **NOW) == (True, set())


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
    assert judged("a_weaker_predicate", (), [AT_LEAST_8]) == (False, {"predicate_mismatch"})


def test_a_revoked_credential_that_says_nothing_of_it_is_not_valid(faber, mallory, judged):
    faber.delete(f"/credentials/{mallory[2]}")
    assert judged("no_word_of_revocation", **NOW) == (False, {"non_revocation_missing"})
