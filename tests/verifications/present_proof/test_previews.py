"""A prover proposes a proof. The verifier requests it, or something else."""

import pytest

from connections.didcomm import message as didcomm
from connections.didcomm.formats import PROOF_PROPOSAL, MessageFormat, attach_as
from connections.protocols import connections_1_0 as connecting
from core.errors import PeerError
from tests.support import queues, races, walks
from tests.support.errors import assert_error, error_of, refusal
from tests.support.presentations import ask, attribute, policy_of, predicate
from tests.support.steps import step
from verifications import messages, previews
from verifications.models import Verification
from verifications.present_proof import verifier
from verifications.proofs import proof_policy
from verifications.proofs.policy import Policy

PREDICATE = predicate("age", ">=", 18, policyName="Old enough")
WHO = attribute("Who", attributeNames=["name", "degree"])
POLICY = policy_of(WHO, PREDICATE, name="What I can show")
PROPOSAL = "present-proof/1.0/propose-presentation"
VALUES = {"name": "Alice", "degree": "Maths", "age": "28"}


def proposes(holder, organization, body=POLICY):
    return holder.put(f"/verifications/propose/{holder.known[organization][1]}", body)


def answers(organization, holder, identifier):
    where = f"{identifier}/connections/{holder.known_as(organization)}"
    return organization.put(f"/verifications/proposal/{where}")


@step
def alice(faber):
    alice = faber.hosts()
    alice.meets(faber)
    return alice


def test_a_proposal_is_shown_on_both_sides_and_goes_all_the_way(faber, alice):
    alice.receives(faber, faber.defines(*VALUES), VALUES)
    mine = proposes(alice, faber)
    [seen] = faber.get("/verifications")
    assert mine["state"] == seen["state"] == "Proposed"
    written = proof_policy.normalise(POLICY).to_json()
    assert mine["policy"] == seen["policy"] == written
    assert mine["proposal"] == seen["proposal"]
    assert_told(seen["proposal"])
    assert answers(faber, alice, seen["verificationId"])["state"] == "Requested"
    assert alice.newest("verifications")["state"] == "Requested"
    alice.auto_selects()
    result = faber.get(f"/verifications/{seen['verificationId']}")
    assert (result["state"], result["isValid"]) == ("Accepted", True)
    assert result["proof"]["Who"]["attributes"] == {"name": "Alice", "degree": "Maths"}
    assert len(alice.get("/verifications")) == len(faber.get("/verifications")) == 1


def assert_told(told):
    assert told["comment"] == "What I can show"
    names = [(one["name"], one["referent"]) for one in told["proposedAttributes"]]
    assert names == [("name", "Who"), ("degree", "Who")]
    assert told["proposedPredicates"] == [
        {"name": "age", "predicate": ">=", "threshold": 18, "referent": "Old enough"}
    ]


def test_it_is_answered_with_a_stored_policy_too(faber, alice):
    proposes(alice, faber)
    newest = proposes(alice, faber)
    other = policy_of(attribute("degree"), name="Other")
    stored = faber.post("/verificationPolicies", other)["policyId"]
    asked = answers(faber, alice, stored)
    assert (asked["definitionId"], asked["policy"]["name"]) == (stored, "Other")
    seen = alice.get(f"/verifications/{newest['verificationId']}")
    assert seen["policy"]["name"] == "Other"
    answers(faber, alice, stored)
    error = error_of(answers, faber, alice, stored)
    assert_error(error, 409, "no_proposal")


def test_of_two_answers_at_once_one_wins_and_a_later_one_comes_too_late(faber, alice):
    proposes(alice, faber)
    [seen] = faber.get("/verifications")
    given = faber, alice, seen["verificationId"]
    got = races.at_once(*[lambda: answers(*given)] * 3)
    assert races.error_codes(got) == ["wrong_state"] * 2
    assert len(alice.get("/verifications")) == 1
    assert_error(error_of(answers, *given), 409, "wrong_state")


def test_a_proposed_proof_is_sealed_and_nothing_can_be_submitted(faber, alice):
    path = f"/verifications/{proposes(alice, faber)['verificationId']}"
    for call in (
        lambda: alice.put(path, []), lambda: alice.put(f"{path}/autoSelect"),
        lambda: alice.get(f"{path}/availableCredentials"),
    ):  # fmt: skip
        assert_error(error_of(call), 409, "wrong_state")
    for row in Verification.objects.all():
        assert b"degree" not in bytes(row.proposal) + bytes(row.policy)
    alice.put(f"{path}/decline")
    assert walks.states_of(Verification) == {"Rejected"}


def test_the_verifier_declines_and_a_stale_copy_is_refused(faber, alice):
    proposes(alice, faber)
    stale = Verification.objects.get(role="verifier")
    walks.fresh(stale).decline()
    assert walks.states_of(Verification) == {"Rejected"}
    walks.refuses(lambda: verifier.answer_proposal(stale))


def test_nobody_else_proposes_on_it_or_answers_it(faber, acme, alice):
    bob = acme.hosts("Bob")
    bob.meets(acme)
    for absent in ("nobody", bob.known[acme][1]):
        error = error_of(alice.put, f"/verifications/propose/{absent}", POLICY)
        assert_error(error, 404, "not_found")
    proposes(alice, faber)
    [seen] = faber.get("/verifications")
    error = error_of(answers, acme, bob, seen["verificationId"])
    assert_error(error, 404, "not_found")
    where = f"{seen['verificationId']}/connections/{alice.known_as(faber)}"
    error = error_of(acme.put, f"/verifications/proposal/{where}")
    assert_error(error, 404, "not_found")


TWO, NO_ID = [{"schemaId": "x"}] * 2, [{"schemaName": "x"}]
NOT_PROPOSABLE = [
    ((PREDICATE | {"predicateType": "=="},), {}, "predicates[0].predicateType"),
    ((PREDICATE | {"allowText": True},), {}, "predicates[0].allowText"),
    ((attribute("a", *NO_ID),), {}, "attributes[0].restrictions"),
    ((attribute("a", *TWO),), {}, "attributes[0].restrictions"),
    ((WHO,), {"revocationRequirement": {"validNow": True}}, "revocationRequirement"),
    ((WHO,), {"version": "x"}, "version"),
]


def test_what_cannot_be_proposed_is_400(faber, alice, subtests):
    for items, more, path in NOT_PROPOSABLE:
        with subtests.test(str((items, more))):
            error = error_of(proposes, alice, faber, policy_of(*items, **more))
            assert_error(error, 400, "invalid_policy")
            assert path in error.body["errors"]
            assert not Verification.objects.exists()


NAMELESS = Policy("", "", (), ())  # the comment of a proposal is its name


def test_a_phone_proposes_and_is_asked_in_the_same_thread(faber, any_phone):
    row = any_phone.connects(faber)
    named = [{"name": "name", "cred_def_id": "X:3:CL:1:t"}]
    preview, wire = {"attributes": named, "predicates": []}, any_phone.prefix
    body = messages.build_proposal(preview, NAMELESS, MessageFormat(wire))
    sent = any_phone.says(body)
    [seen] = faber.get("/verifications")
    restriction = {"credentialDefinitionId": "X:3:CL:1:t"}
    read = attribute("name", restriction, attributeNames=["name"])
    assert seen["policy"]["attributes"] == [read]
    path = f"{seen['verificationId']}/connections/{row.connection_id}"
    faber.put(f"/verifications/proposal/{path}")
    queues.worker_catches_up()
    asked = any_phone.newest("present-proof/1.0/request-presentation")
    assert asked.thread_id == sent["@id"]


def test_a_later_proposal_in_the_thread_replaces_an_unanswered_one(faber, phone):
    row = phone.connects(faber)
    sent = phone.says(proposing(phone, "name"))
    phone.says(proposing(phone, "degree", sent["@id"]))
    [seen] = faber.get("/verifications")
    assert seen["policy"]["attributes"][0]["attributeNames"] == ["degree"]
    where = f"{seen['verificationId']}/connections/{row.connection_id}"
    faber.put(f"/verifications/proposal/{where}")
    phone.says(proposing(phone, "age", sent["@id"]))
    [seen] = faber.get("/verifications")
    assert seen["policy"]["attributes"][0]["attributeNames"] == ["degree"]
    assert phone.inbox[-1].is_problem_report


def proposing(phone, name, thread=None):
    preview = {"attributes": [{"name": name}]}
    return phone.build(PROPOSAL, thread, presentation_proposal=preview)


@pytest.mark.parametrize("preview", [
    None, 7, [], {}, {"attributes": 7}, {"attributes": [7]}, {"attributes": [{}]},
    {"attributes": [{"name": 7}]},
    {"attributes": [{"name": "a"}, {"name": "a"}]},
    {"attributes": [{"name": "x" * 20_000}]},
    {"attributes": [{"name": "a", "value": {"b": 1}}]},
    {"attributes": [{"name": "a"}] * 2000},
    {"predicates": [{"name": "a", "predicate": "==", "threshold": 1}]},
    {"predicates": [{"name": "a", "predicate": ">=", "threshold": "many"}]},
    {"predicates": [{"name": "a", "predicate": ">=", "threshold": "today"}]},
    {"predicates": [{"name": "a", "predicate": ">=", "threshold": 2**31}]},
    {"predicates": [{"name": "a", "predicate": [">="]}]},
])  # fmt: skip
def test_a_proposal_that_cannot_be_asked_for_is_refused(preview):
    body = didcomm.build(PROPOSAL, presentation_proposal=preview)
    refusal(PeerError, previews.read_proposal, didcomm.read(body))


def test_a_refused_proposal_or_one_into_another_part_changes_nothing(faber, phone):
    row, wire = phone.connects(faber), MessageFormat(phone.prefix)
    assert phone.inbox[0].type == connecting.RESPONSE
    sent = phone.says(phone.build(PROPOSAL, presentation_proposal=7))
    report = phone.inbox[-1]
    assert (report.is_problem_report, report.thread_id) == (True, sent["@id"])
    assert not Verification.objects.exists()
    asked = phone.says(messages.build_request(ask(attribute("name")), wire))
    phone.says(proposing(phone, "name", asked["@id"]))
    assert Verification.objects.get(connection=row).role == "prover"


def test_a_preview_and_its_policy_are_the_same():
    restricted = [{"credentialDefinitionId": "c", "schemaId": "s", "issuerDid": "i"}]
    restricted = PREDICATE | {"restrictions": restricted}
    body = proof_policy.normalise(policy_of(WHO, restricted, name=POLICY["name"]))
    preview = previews.build_preview(body)
    sent = messages.build_proposal(preview, body, MessageFormat(didcomm.PREFIX))
    assert previews.read_proposal(didcomm.read(sent))[1] == body


@pytest.mark.parametrize("absent", ["nonce", "name", "version"])
def test_a_proposal_in_2_0_may_leave_to_the_verifier_what_is_the_verifiers(absent):
    wire, body = MessageFormat(didcomm.PREFIX, "2.0"), proof_policy.normalise(POLICY)
    sent = messages.build_proposal({}, body, wire)
    asked = didcomm.read_attachment(didcomm.read(sent), "proposals~attach")
    del asked[absent]
    received = didcomm.read(sent | attach_as(wire, PROOF_PROPOSAL, asked))
    assert previews.read_proposal(received)[1].attributes == body.attributes
