"""Proofs to and from an agent of somebody else, over HTTP."""

import pytest
from django.test import override_settings

from connections.didcomm import message as didcomm
from connections.didcomm.formats import PROOF_REQUEST, MessageFormat, attachment_of
from connections.models import Connection
from tenants.models import Tenant
from tests.fixtures import Stored
from tests.support import forging_prover, queues
from tests.support.errors import error_of
from tests.support.forging_prover import Part
from tests.support.outside_agent import Agent, listening
from tests.support.outside_exchanges import (
    accepts_invitation_of,
    ledger_object,
    ledger_schema,
    takes_offer,
)
from tests.support.people import Organization
from tests.support.presentations import ask, attribute, policy_of, predicate, required
from tests.support.steps import step
from verifications import messages
from verifications.proofs.policy import Policy

CHILD = {"name": "Ann", "age": "15", "degree": "unknown"}
NAME = attribute("name")
ADULT = predicate("age", ">=", 18, policyName="adult")


class Prover:
    """A phone with a credential of Faber, which proves it with its own software."""

    def __init__(self, phone: Agent, faber: Organization, values: dict, **definition):
        self.phone, self.faber, self.values = phone, faber, values
        self.connection_id = phone.connects(faber).connection_id
        made = faber.defines(*values, **definition)
        definition_id, schema_id = made["definitionId"], made["schemaId"]
        body = {"definitionId": definition_id, "automaticIssuance": True}
        body |= {"connectionId": self.connection_id, "credentialValues": values}
        faber.post("/credentials", body)
        queues.sweep()
        public = ledger_object(phone.client, "credential-definitions", definition_id)
        schema = ledger_schema(phone.client, schema_id)
        self.stored = Stored(schema_id, schema, definition_id, public, {}, {})
        credential = takes_offer(phone, phone.client, definition_id)
        self.signed = forging_prover.signature_of(credential)

    def is_asked(self, *items: dict) -> dict:
        """Asks for a policy of these items. Answers the request as it came."""
        path = f"/verifications/policy/connections/{self.connection_id}"
        asked = self.faber.post(path, policy_of(*items))
        self.path = f"/verifications/{asked['verificationId']}"
        queues.sweep()
        self.asked = self.phone.inbox[-1]
        return attachment_of(self.asked, PROOF_REQUEST)

    def forges(
        self, request: dict, referents: list[str] | None = None, **lies: int
    ) -> dict:
        """A hand-made presentation of these referents, or of all, in one sub-proof."""
        parts = request["requested_attributes"], request["requested_predicates"]
        named = [*parts[0], *parts[1]] if referents is None else referents
        part = Part(self.stored, self.values, self.signed, named, lies)
        return forging_prover.prove(request, part)

    def answers(self, presentation: dict) -> dict:
        """Sends it. Answers the verification as Faber sees it then."""
        wire = MessageFormat(self.phone.prefix, self.asked.type.split("/")[1])
        sent = messages.build_presentation(presentation, self.asked.thread_id, wire)
        self.phone.says(sent)
        return self.faber.get(self.path)


def codes(seen: dict) -> set[str]:
    return {one["code"] for one in seen["checks"] if "code" in one}


@step
@override_settings(OUTGOING_ALLOW_LOOPBACK=True)
def known_child(faber):
    with listening(Agent()) as phone:
        return Prover(phone, faber, CHILD)


@pytest.fixture
def child(known_child, phone):
    phone.becomes(known_child.phone)
    known_child.phone = phone
    return known_child


def test_a_number_that_is_shown_too_cannot_be_proven_to_be_another(child):
    asked = child.is_asked(attribute("age"), ADULT)
    seen = child.answers(child.forges(asked, adult=40))
    assert seen["isValid"] is False and "malformed" in codes(seen)
    assert seen["proof"]["adult"]["value"] == "false"


OLD = predicate("degree", ">=", 18, policyName="old")


def test_a_text_meets_a_comparison_only_where_that_is_allowed(child):
    for says_so in (False, True):
        presentation = child.forges(child.is_asked(OLD), ["old"])
        if says_so:
            place = {"old#bound": {"sub_proof_index": 0}}
            presentation["requested_proof"]["predicates"] |= place
        seen = child.answers(presentation)
        assert seen["isValid"] is False
        assert codes(seen) == {"predicate_mismatch" if says_so else "bound_unanswered"}
        assert seen["proof"].keys() == {"old"}
        assert seen["proof"]["old"]["value"] == "false"
    seen = child.answers(child.forges(child.is_asked(OLD), **{"old#bound": 40}))
    assert (seen["isValid"], codes(seen)) == (False, {"predicate_mismatch"})
    request = child.is_asked(OLD | {"allowText": True})
    assert list(request["requested_predicates"]) == ["old"]
    seen = child.answers(child.forges(request))
    assert seen["isValid"] is True
    assert seen["policy"]["predicates"][0]["allowText"] is True


def test_an_honest_agent_is_believed_and_a_declared_integer_has_no_bound(faber, phone):
    claims = {"claims": {"age": {"type": "integer"}}}
    holder = Prover(phone, faber, CHILD | {"age": "28"}, **claims)
    request = holder.is_asked(NAME, ADULT)
    assert holder.answers(holder.forges(request))["isValid"] is True
    declared = {"credentialDefinitionId": holder.stored.definition_id}
    request = holder.is_asked(ADULT | {"restrictions": [declared]})
    assert list(request["requested_predicates"]) == ["adult"]
    assert holder.answers(holder.forges(request))["isValid"] is True
    others = [declared, {"issuerDid": holder.stored.schema["issuerId"]}]
    for item in (ADULT | {"restrictions": others}, OLD | {"restrictions": [declared]}):
        assert len(holder.is_asked(item)["requested_predicates"]) == 2


def test_no_policy_is_proposed_that_could_not_be_stored(faber, phone):
    """The library adds 1 to the first threshold in 32 bits.

    Then every number is above it.
    """
    phone.connects(faber)
    wire = MessageFormat(phone.prefix, "2.0")
    for changes in (
        {"predicateType": ">", "predicateValue": 2**31 - 1},
        {"predicateType": "<", "predicateValue": -(2**31)},
        {"policyName": "adult#bound"},
        {"restrictions": [required("Age", "9")]},
    ):
        policy = Policy.from_json(policy_of(ADULT | changes))
        said = phone.says(messages.build_proposal({}, policy, wire))
        report = phone.inbox[-1]
        assert report.is_problem_report and report.thread_id == said["@id"], changes
    assert faber.get("/verifications") == []


VERDICTS = [
    ({}, True), ({"verification_result": None}, True),
    ({"verification_result": "true"}, True), ({"verification_result": True}, True),
    ({"verification_result": "false"}, False), ({"verification_result": False}, False),
    ({"verification_result": "unknown"}, False),
]  # fmt: skip


@pytest.mark.parametrize("said, is_valid", VERDICTS)
def test_an_ack_is_read_for_what_was_found(said, is_valid):
    ack = didcomm.build("present-proof/1.0/ack", status="OK", **said)
    assert messages.is_found_valid(didcomm.read(ack)) is is_valid


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_wallet_shows_what_its_verifier_found(faber, phone, version):
    alice = faber.hosts()
    accepts_invitation_of(phone, alice)
    for said, is_valid in (VERDICTS[0], VERDICTS[-2]):
        assert shown_after(alice, phone, version, said) is is_valid


def shown_after(alice, phone, version, said):
    """What her wallet shows when the verifier's ack holds these members."""
    wire = MessageFormat(phone.prefix, version)
    asked = phone.says(messages.build_request(ask(NAME), wire))
    alice.auto_selects()
    queues.sweep()
    phone.newest(f"present-proof/{version}/presentation")
    ack = f"present-proof/{version}/ack"
    phone.says(phone.build(ack, asked["@id"], status="OK", **said))
    return alice.newest("verifications")["isValid"]


@pytest.fixture(params=["1.0", "2.0"])
def version(request, child):
    """Of the protocol that the child's connection speaks."""
    rows = Connection.objects.filter(connection_id=child.connection_id)
    rows.update(exchange_version=request.param)
    return request.param


def test_an_ack_says_what_was_found_or_a_chosen_report(faber, child, phone, version):
    tenants = Tenant.objects.filter(pk=faber.tenant.pk)
    assert child.answers(child.forges(child.is_asked(NAME)))["isValid"] is True
    ack = phone.newest(f"present-proof/{version}/ack")
    assert ack.body["verification_result"] == "true"
    tenants.update(invalid_proof_answer="ack")
    lie, seen = child.forges(child.is_asked(NAME, ADULT), adult=40), {ack.id}
    for number in (2, 3):  # sent again: answered again
        assert child.answers(lie)["isValid"] is False
        ack = phone.newest(f"present-proof/{version}/ack")
        said = ack.body["status"], ack.body["verification_result"]
        seen.add(ack.id)
        assert said == ("OK", "false") and len(seen) == number
    tenants.update(invalid_proof_answer="problem-report")
    lie = child.forges(child.is_asked(NAME, ADULT), adult=40)
    assert child.answers(lie)["isValid"] is False
    report = phone.newest(f"present-proof/{version}/problem-report")
    description = {"code": "proof-not-valid", "en": "The proof is not genuine."}
    assert report.body["description"] == description


def test_a_provider_account_chooses_the_answer_to_a_false_proof(provider):
    made = provider.makes(invalidProofAnswer="ack")
    assert made["invalidProofAnswer"] == "ack"
    path = f"/tenants/{made['tenantId']}"
    provider.put(path, {"name": "Office"})
    office = provider.opens(made)
    assert office.get("/tenants")[0]["invalidProofAnswer"] == "ack"
    bob = office.post("/api/wallets", {})["walletId"]
    invited = office.post("/connections", {})
    form = {"invitation": invited["invitation"]}
    mine = office.post(f"/api/{bob}/connections/invitation", form=form)
    where = f"/verifications/policy/connections/{invited['connectionId']}"
    for answer in ("ack", "problem-report"):
        provider.put(path, {"invalidProofAnswer": answer})
        asked = office.put(where, policy_of(NAME))
        shown = office.get(f"/api/{bob}/verifications")[0]["verificationId"]
        office.put(f"/api/{bob}/verifications/{shown}/autoSelect")
        assert office.get(f"/api/{bob}/verifications")[0]["isValid"] is False
        found = office.get(f"/verifications/{asked['verificationId']}")
        assert (found["state"], found["isValid"]) == ("Accepted", False)
    assert mine["state"] == "Connected"
    error = error_of(provider.put, path, {"invalidProofAnswer": "silence"})
    assert error.body["errors"]["invalidProofAnswer"]
