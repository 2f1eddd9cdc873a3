"""A prover proposes a proof. The verifier requests it, or something else."""

import pytest

from agency.core.errors import Invalid, PeerError, WrongState
from connections.didcomm import message as didcomm
from connections.didcomm.formats import PROOF_PROPOSAL, MessageFormat, attach_as
from connections.protocols import connections_1_0 as connecting
from tests.support import queues, races, walks
from tests.support.errors import assert_error, error_of
from verifications.models import Verification
from verifications.present_proof import messages, previews, verifier
from verifications.proofs import proof_policy

pytestmark = pytest.mark.django_db(transaction=True)
PREDICATE = {
    "policyName": "Old enough",
    "attributeName": "age",
    "predicateType": ">=",
    "predicateValue": 18,
}
POLICY = {
    "name": "What I can show",
    "version": "1.0",
    "attributes": [{"policyName": "Who", "attributeNames": ["name", "degree"]}],
    "predicates": [PREDICATE],
}
PROPOSAL = "present-proof/1.0/propose-presentation"
VALUES = {"name": "Alice", "degree": "Maths", "age": "28"}


def proposes(holder, organization, body=POLICY):
    holder.known_as(organization)
    return holder.put(f"/verifications/propose/{holder.known[organization][1]}", body)


def answers(organization, holder, identifier):
    where = f"{identifier}/connections/{holder.known_as(organization)}"
    return organization.put(f"/verifications/proposal/{where}")


def test_a_proposal_goes_all_the_way(faber):
    alice = faber.hosts()
    alice.receives(faber, faber.defines(*VALUES), VALUES)
    mine = proposes(alice, faber)
    [seen] = faber.get("/verifications")
    assert mine["state"] == seen["state"] == "Proposed"
    assert answers(faber, alice, seen["verificationId"])["state"] == "Requested"
    assert alice.newest("verifications")["state"] == "Requested"
    alice.auto_selects()
    result = faber.get(f"/verifications/{seen['verificationId']}")
    assert (result["state"], result["isValid"]) == ("Accepted", True)
    assert result["proof"]["Who"]["attributes"] == {"name": "Alice", "degree": "Maths"}
    assert len(alice.get("/verifications")) == len(faber.get("/verifications")) == 1


def test_both_sides_show_the_policy_and_the_proposal(faber):
    alice = faber.hosts()
    mine = proposes(alice, faber)
    [seen] = faber.get("/verifications")
    assert mine["policy"] == seen["policy"] == proof_policy.normalise(POLICY)
    assert mine["proposal"] == seen["proposal"]
    assert seen["proposal"]["comment"] == "What I can show"
    names = [
        (one["name"], one["referent"])
        for one in seen["proposal"]["proposedAttributes"]
    ]
    assert names == [("name", "Who"), ("degree", "Who")]
    assert seen["proposal"]["proposedPredicates"] == [
        {"name": "age", "predicate": ">=", "threshold": 18, "referent": "Old enough"}
    ]


def test_it_is_answered_with_a_stored_policy_too(faber):
    alice = faber.hosts()
    proposes(alice, faber)
    newest = proposes(alice, faber)
    other = {
        "name": "Other",
        "version": "2.0",
        "attributes": [{"policyName": "degree"}],
    }
    stored = faber.post("/verificationPolicies", other)["policyId"]
    asked = answers(faber, alice, stored)
    assert (asked["definitionId"], asked["policy"]["name"]) == (stored, "Other")
    assert (
        alice.get(f"/verifications/{newest['verificationId']}")["policy"]["name"]
        == "Other"
    )
    answers(faber, alice, stored)
    error = error_of(answers, faber, alice, stored)
    assert_error(error, 409, "no_proposal")


def test_a_proposed_proof_is_answered_once(faber):
    alice = faber.hosts()
    proposes(alice, faber)
    [seen] = faber.get("/verifications")
    answers(faber, alice, seen["verificationId"])
    error = error_of(answers, faber, alice, seen["verificationId"])
    assert_error(error, 409, "wrong_state")


def test_of_two_answers_at_once_one_wins(faber):
    alice = faber.hosts()
    proposes(alice, faber)
    [seen] = faber.get("/verifications")
    got = races.at_once(*[lambda: answers(faber, alice, seen["verificationId"])] * 3)
    assert races.error_codes(got) == ["wrong_state"] * 2
    assert len(alice.get("/verifications")) == 1


@pytest.mark.parametrize("side", ["verifier", "prover"])
def test_either_side_declines_a_proposed_proof(faber, side):
    alice = faber.hosts()
    mine = proposes(alice, faber)
    [seen] = faber.get("/verifications")
    if side == "prover":
        alice.put(f"/verifications/{mine['verificationId']}/decline")
    else:
        Verification.objects.get(pk=seen["verificationId"]).decline()
    assert set(Verification.objects.values_list("state", flat=True)) == {"Rejected"}


def test_before_it_is_asked_for_nothing_can_be_submitted(faber):
    alice = faber.hosts()
    path = f"/verifications/{proposes(alice, faber)['verificationId']}"
    for call in (
        lambda: alice.put(path, []),
        lambda: alice.put(f"{path}/autoSelect"),
        lambda: alice.get(f"{path}/availableCredentials"),
    ):
        assert_error(error_of(call), 409, "wrong_state")


def test_a_presentation_before_the_request_changes_nothing(faber):
    proposes(faber.hosts(), faber)
    row = Verification.objects.get(role="verifier")
    body = messages.build_presentation({}, row.thread_id, row.message_format)
    with pytest.raises(WrongState):
        verifier.receive_presentation(row, didcomm.read(body))


def test_without_a_connection_it_is_409_or_404(faber, acme):
    alice, bob = faber.hosts(), acme.hosts("Bob")
    error = error_of(alice.put, "/verifications/propose/nobody", POLICY)
    assert_error(error, 404, "not_found")
    bob.meets(acme)
    theirs = bob.known[acme][1]
    error = error_of(alice.put, f"/verifications/propose/{theirs}", POLICY)
    assert_error(error, 404, "not_found")


def test_another_organization_cannot_answer_it(faber, acme):
    alice, bob = faber.hosts(), acme.hosts("Bob")
    proposes(alice, faber)
    [seen] = faber.get("/verifications")
    assert_error(
        error_of(answers, acme, bob, seen["verificationId"]),
        404,
        "not_found",
    )
    where = f"{seen['verificationId']}/connections/{alice.known_as(faber)}"
    error = error_of(acme.put, f"/verifications/proposal/{where}")
    assert_error(error, 404, "not_found")


NOT_PROPOSABLE = [
    (
        {"predicates": [PREDICATE | {"predicateType": "=="}]},
        "predicates[0].predicateType",
    ),
    ({"predicates": [PREDICATE | {"allowText": True}]}, "predicates[0].allowText"),
    (
        {"attributes": [{"policyName": "a", "restrictions": [{"schemaName": "x"}]}]},
        "attributes[0].restrictions",
    ),
    (
        {"attributes": [{"policyName": "a", "restrictions": [{"schemaId": "x"}] * 2}]},
        "attributes[0].restrictions",
    ),
    ({"revocationRequirement": {"validNow": True}}, "revocationRequirement"),
    ({"version": "x"}, "version"),
]


def test_what_cannot_be_proposed_is_400(faber, subtests):
    alice = faber.hosts()
    for changes, path in NOT_PROPOSABLE:
        with subtests.test(str(changes)):
            error = error_of(proposes, alice, faber, POLICY | changes)
            assert_error(error, 400, "invalid_policy")
            assert path in error.body["errors"]
            assert not Verification.objects.exists()


def test_a_phone_proposes_and_is_asked_in_the_same_thread(faber, any_phone):
    row = any_phone.connects(faber)
    preview = {
        "attributes": [{"name": "name", "cred_def_id": "X:3:CL:1:t"}],
        "predicates": [],
    }
    sent = any_phone.says(
        messages.build_proposal(preview, {"name": ""}, MessageFormat(any_phone.prefix))
    )
    [seen] = faber.get("/verifications")
    assert seen["policy"]["attributes"] == [
        {
            "policyName": "name",
            "attributeNames": ["name"],
            "restrictions": [{"credentialDefinitionId": "X:3:CL:1:t"}],
        }
    ]
    path = f"{seen['verificationId']}/connections/{row.connection_id}"
    faber.put(f"/verifications/proposal/{path}")
    queues.worker_catches_up()
    asked = any_phone.newest("present-proof/1.0/request-presentation")
    assert asked.thread_id == sent["@id"]


def test_a_later_proposal_in_the_thread_replaces_the_first_until_it_is_answered(
    faber, phone
):
    row = phone.connects(faber)
    sent = phone.says(proposing(phone, "name"))
    phone.says(proposing(phone, "degree", sent["@id"]))
    [seen] = faber.get("/verifications")
    assert seen["policy"]["attributes"][0]["attributeNames"] == ["degree"]
    faber.put(
        f"/verifications/proposal/{seen['verificationId']}"
        f"/connections/{row.connection_id}"
    )
    phone.says(proposing(phone, "age", sent["@id"]))
    [seen] = faber.get("/verifications")
    assert seen["policy"]["attributes"][0]["attributeNames"] == ["degree"]
    assert phone.inbox[-1].is_problem_report


def proposing(phone, name, thread=None):
    preview = {"attributes": [{"name": name}]}
    return phone.build(PROPOSAL, thread, presentation_proposal=preview)


@pytest.mark.parametrize(
    "preview",
    [
        None,
        7,
        [],
        {},
        {"attributes": 7},
        {"attributes": [7]},
        {"attributes": [{}]},
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
    ],
)
def test_a_proposal_that_cannot_be_asked_for_is_refused(preview):
    body = didcomm.build(PROPOSAL, presentation_proposal=preview)
    with pytest.raises(PeerError):
        previews.read_proposal(didcomm.read(body))


def test_a_refused_proposal_is_answered_by_a_problem_report(faber, phone):
    phone.connects(faber)
    sent = phone.says(phone.build(PROPOSAL, presentation_proposal=7))
    report = phone.inbox[-1]
    assert (report.is_problem_report, report.thread_id) == (True, sent["@id"])
    assert not Verification.objects.exists()
    assert phone.inbox[0].type == connecting.RESPONSE


def test_a_proposal_into_the_thread_of_another_part_changes_nothing(faber, phone):
    row = phone.connects(faber)
    request = {
        "name": "P",
        "version": "1.0",
        "nonce": "7",
        "requested_attributes": {"a": {"name": "name"}},
        "requested_predicates": {},
    }
    asked = phone.says(messages.build_request(request, MessageFormat(phone.prefix)))
    phone.says(proposing(phone, "name", asked["@id"]))
    assert Verification.objects.get(connection=row).role == "prover"


def test_a_preview_and_its_policy_are_the_same():
    restricted = [{"credentialDefinitionId": "c", "schemaId": "s", "issuerDid": "i"}]
    body = proof_policy.normalise(
        POLICY | {"predicates": [PREDICATE | {"restrictions": restricted}]}
    )
    sent = messages.build_proposal(
        previews.build_preview(body), body, MessageFormat(didcomm.PREFIX)
    )
    assert previews.read_proposal(didcomm.read(sent))[1] == body


def test_a_proposed_proof_is_sealed(faber):
    proposes(faber.hosts(), faber)
    for row in Verification.objects.all():
        assert b"degree" not in bytes(row.proposal) + bytes(row.policy)


def test_a_bad_policy_raises_before_anything_is_sent():
    with pytest.raises(Invalid):
        previews.build_preview(
            proof_policy.normalise(
                POLICY | {"revocationRequirement": {"validNow": True}}
            )
        )


@pytest.mark.parametrize("state", ["Requested", "Accepted", "Rejected"])
def test_only_what_is_proposed_can_be_answered(faber, monkeypatch, state):
    row = walks.verification(walks.Walk(faber, monkeypatch), "verifier", state)
    walks.refuses(lambda: verifier.answer_proposal(row))


def test_a_stale_copy_is_refused(faber):
    proposes(faber.hosts(), faber)
    stale = Verification.objects.get(role="verifier")
    walks.fresh(stale).decline()
    walks.refuses(lambda: verifier.answer_proposal(stale))


@pytest.mark.parametrize("absent", ["nonce", "name", "version"])
def test_a_proposal_in_2_0_may_leave_to_the_verifier_what_is_the_verifiers(absent):
    wire, body = MessageFormat(didcomm.PREFIX, "2.0"), proof_policy.normalise(POLICY)
    sent = messages.build_proposal({}, body, wire)
    asked = didcomm.read_attachment(didcomm.read(sent), "proposals~attach")
    del asked[absent]
    received = didcomm.read(sent | attach_as(wire, PROOF_PROPOSAL, asked))
    assert previews.read_proposal(received)[1]["attributes"] == body["attributes"]
