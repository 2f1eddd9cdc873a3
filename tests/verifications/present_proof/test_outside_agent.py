"""Proofs to and from an agent of somebody else, over HTTP."""

import json

import pytest

from connections.didcomm.formats import PROOF_REQUEST, MessageFormat, attachment_of
from connections.didcomm.message import json_attachment, read_attachment
from connections.models import Connection
from connections.protocols import connections_1_0 as connecting
from tenants.models import Tenant
from tests.fixtures import ALICE_LINK_SECRET, Stored
from tests.support import forging_prover, queues
from tests.support.forging_prover import Part
from tests.support.outside_agent import Agent
from tests.support.people import ApiError, Organization
from verifications.present_proof import messages
from wallets import anoncreds

pytestmark = pytest.mark.django_db(transaction=True)
ISSUE = "issue-credential/1.0/"
CHILD = {"name": "Ann", "age": "15", "degree": "unknown"}
ADULT = {
    "policyName": "adult",
    "attributeName": "age",
    "predicateType": ">=",
    "predicateValue": 18,
}
ALSO_SHOWN = {
    "asked openly": {"policyName": "age"},
    "for a restriction": {
        "policyName": "name",
        "restrictions": [{"value": {"attributeName": "age", "attributeValue": "15"}}],
    },
    "in a group": {"policyName": "who", "attributeNames": ["name", "age"]},
}


class Prover:
    """A phone with a credential of Faber, which proves it with its own software."""

    def __init__(self, phone: Agent, faber: Organization, values: dict, **definition):
        self.phone, self.faber, self.values = phone, faber, values
        self.connection_id = phone.connects(faber).connection_id
        made = faber.defines(*values, **definition)
        body = {
            "definitionId": made["definitionId"],
            "connectionId": self.connection_id,
        }
        body |= {"credentialValues": values, "automaticIssuance": True}
        faber.post("/credentials", body)
        queues.sweep()
        self.definition_id, self.schema_id = made["definitionId"], made["schemaId"]
        self.public = self._public("credential-definitions", self.definition_id)
        schema = self._public("schemas", self.schema_id)
        self.schema = {
            n: schema[n] for n in ("issuerId", "name", "version", "attrNames")
        }
        self.credential = self._take()

    def _public(self, kind: str, identifier: str) -> dict:
        return self.phone.client.get(f"/ledger/local/{kind}/{identifier}").json()

    def _take(self) -> dict:
        offered = self.phone.newest(ISSUE + "offer-credential")
        offer, did = read_attachment(offered, "offers~attach"), self.phone.party.did
        request, metadata = anoncreds.create_request(
            offer, self.public, ALICE_LINK_SECRET, did
        )
        attachments = {
            "requests~attach": [json_attachment("libindy-cred-request-0", request)]
        }
        thread = offered.thread_id
        self.phone.says(
            self.phone.build(ISSUE + "request-credential", thread, **attachments)
        )
        issued = read_attachment(
            self.phone.newest(ISSUE + "issue-credential"), "credentials~attach"
        )
        self.phone.says(self.phone.build(ISSUE + "ack", thread, status="OK"))
        return anoncreds.process_credential(
            issued, metadata, ALICE_LINK_SECRET, self.public
        )

    def is_asked(self, *items: dict) -> dict:
        """Asks for a policy of these items. Answers the request as it came."""
        policy = {
            "name": "P",
            "version": "1.0",
            "attributes": [one for one in items if "predicateType" not in one],
            "predicates": [one for one in items if "predicateType" in one],
        }
        path = f"/verifications/policy/connections/{self.connection_id}"
        self.path = f"/verifications/{self.faber.post(path, policy)['verificationId']}"
        queues.sweep()
        self.asked = self.phone.inbox[-1]
        return attachment_of(self.asked, PROOF_REQUEST)

    def forges(
        self, request: dict, referents: list[str] | None = None, **lies: int
    ) -> dict:
        """A hand-made presentation of these referents, or of all, in one sub-proof."""
        parts = request["requested_attributes"], request["requested_predicates"]
        stored = Stored(
            self.schema_id, self.schema, self.definition_id, self.public, {}, {}
        )
        signed = forging_prover.signature_of(self.credential)
        named = [*parts[0], *parts[1]] if referents is None else referents
        return forging_prover.prove(
            request, Part(stored, self.values, signed, named, lies)
        )

    def answers(self, presentation: dict) -> dict:
        """Sends it. Answers the verification as Faber sees it then."""
        wire = MessageFormat(self.phone.prefix, self.asked.type.split("/")[1])
        sent = messages.build_presentation(presentation, self.asked.thread_id, wire)
        self.phone.says(sent)
        return self.faber.get(self.path)


def codes(seen: dict) -> set[str]:
    return {one["code"] for one in seen["checks"] if "code" in one}


@pytest.mark.parametrize("shown", ALSO_SHOWN.values(), ids=ALSO_SHOWN)
def test_a_number_that_is_shown_too_cannot_be_proven_to_be_another(
    faber,
    phone,
    shown,
):
    child = Prover(phone, faber, CHILD)
    request = child.is_asked(shown, ADULT)
    lies = {name: 40 for name in request["requested_predicates"] if name == "adult"}
    seen = child.answers(child.forges(request, **lies))
    assert seen["isValid"] is False and "malformed" in codes(seen)
    assert seen["proof"]["adult"]["value"] == "false"


OLD = {
    "policyName": "old",
    "attributeName": "degree",
    "predicateType": ">=",
    "predicateValue": 18,
}


@pytest.mark.parametrize("says_so", [False, True])
def test_a_text_does_not_meet_a_comparison(faber, phone, says_so):
    liar = Prover(phone, faber, CHILD)
    request = liar.is_asked(OLD)
    presentation = liar.forges(request, ["old"])
    if says_so:
        presentation["requested_proof"]["predicates"]["old#bound"] = {
            "sub_proof_index": 0
        }
    seen = liar.answers(presentation)
    assert seen["isValid"] is False
    assert codes(seen) == {"predicate_mismatch" if says_so else "unanswered"}
    assert list(seen["proof"]) == ["old"] and seen["proof"]["old"]["value"] == "false"


def test_a_text_cannot_be_proven_to_meet_the_bound_by_lying_about_it(faber, phone):
    liar = Prover(phone, faber, CHILD)
    seen = liar.answers(liar.forges(liar.is_asked(OLD), **{"old#bound": 40}))
    assert (seen["isValid"], codes(seen)) == (False, {"predicate_mismatch"})


def test_a_text_meets_a_comparison_that_allows_it(faber, phone):
    holder = Prover(phone, faber, CHILD)
    request = holder.is_asked(OLD | {"allowText": True})
    assert list(request["requested_predicates"]) == ["old"]
    seen = holder.answers(holder.forges(request))
    assert (
        seen["isValid"] is True
        and seen["policy"]["predicates"][0]["allowText"] is True
    )


def test_a_declared_integer_needs_no_bound(faber, phone):
    claims = {"claims": {"age": {"type": "integer"}}}
    holder = Prover(phone, faber, CHILD | {"age": "28"}, **claims)
    declared = {"credentialDefinitionId": holder.definition_id}
    request = holder.is_asked(ADULT | {"restrictions": [declared]})
    assert list(request["requested_predicates"]) == ["adult"]
    assert holder.answers(holder.forges(request))["isValid"] is True
    others = [declared, {"issuerDid": holder.schema["issuerId"]}]
    assert (
        len(holder.is_asked(ADULT | {"restrictions": others})["requested_predicates"])
        == 2
    )
    undeclared = OLD | {"restrictions": [declared]}
    assert len(holder.is_asked(undeclared)["requested_predicates"]) == 2


@pytest.mark.parametrize(
    "asked",
    [
        ADULT | {"predicateType": ">", "predicateValue": 2**31 - 1},
        ADULT | {"predicateType": "<", "predicateValue": -(2**31)},
        ADULT | {"policyName": "adult#bound"},
        ADULT
        | {
            "restrictions": [
                {"value": {"attributeName": "Age", "attributeValue": "9"}}
            ]
        },
    ],
)
def test_no_policy_is_proposed_that_could_not_be_stored(faber, phone, asked):
    """The library adds 1 to the first threshold in 32 bits.

    Then every number is above it.
    """
    phone.connects(faber)
    policy = {"name": "P", "version": "1.0", "attributes": [], "predicates": [asked]}
    phone.says(messages.build_proposal({}, policy, MessageFormat(phone.prefix, "2.0")))
    assert phone.inbox[-1].is_problem_report
    assert faber.get("/verifications") == []


def test_an_honest_agent_with_software_of_its_own_is_believed(faber, phone):
    adult = Prover(phone, faber, CHILD | {"age": "28"})
    request = adult.is_asked({"policyName": "name"}, ADULT)
    assert adult.answers(adult.forges(request))["isValid"] is True


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_wallet_shows_what_its_verifier_found(faber, phone, subtests, version):
    alice = faber.hosts()
    connects_to(alice, phone)
    for said, is_valid in (
        ({}, True),
        ({"verification_result": None}, True),
        ({"verification_result": "true"}, True),
        ({"verification_result": True}, True),
        ({"verification_result": "false"}, False),
        ({"verification_result": False}, False),
        ({"verification_result": "unknown"}, False),
    ):
        with subtests.test(str(said)):
            assert shown_after(alice, phone, version, said) is is_valid


def shown_after(alice, phone, version, said):
    """What her wallet shows when the verifier's ack holds these members."""
    wire = MessageFormat(phone.prefix, version)
    asked = phone.says(messages.build_request(request_for("name"), wire))
    alice.put(
        f"/verifications/{alice.newest('verifications')['verificationId']}/autoSelect"
    )
    queues.sweep()
    phone.newest(f"present-proof/{version}/presentation")
    ack = phone.build(
        f"present-proof/{version}/ack",
        asked["@id"],
        status="OK",
        **said,
    )
    phone.says(ack)
    return alice.newest("verifications")["isValid"]


def connects_to(holder, phone):
    """The holder accepts an invitation of the phone."""
    invitation = connecting.build_invitation("Shop", "", phone.verkey, phone.endpoint)
    invitation |= {"@type": phone.prefix + connecting.INVITATION}
    holder.accepts_invitation(json.dumps(invitation))
    queues.sweep()
    asked = phone.newest(connecting.REQUEST)
    phone.their_key = connecting.read_party(asked.body["connection"]).verkey
    phone.says(connecting.build_response(phone.party, phone.seed, asked))


def request_for(name: str) -> dict:
    return {
        "name": "P",
        "version": "1.0",
        "nonce": anoncreds.generate_nonce(),
        "requested_attributes": {name: {"name": name}},
        "requested_predicates": {},
    }


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_an_ack_says_what_was_found(faber, phone, version):
    adult = Prover(phone, faber, CHILD)
    rows = Connection.objects.filter(connection_id=adult.connection_id)
    rows.update(exchange_version=version)
    request = adult.is_asked({"policyName": "name"})
    assert adult.answers(adult.forges(request))["isValid"] is True
    ack = phone.newest(f"present-proof/{version}/ack")
    assert ack.body["verification_result"] == "true"


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_false_proof_gets_the_answer_that_the_organization_chose(
    faber, phone, version
):
    child = Prover(phone, faber, CHILD)
    rows = Connection.objects.filter(connection_id=child.connection_id)
    rows.update(exchange_version=version)
    Tenant.objects.filter(pk=faber.tenant.pk).update(invalid_proof_answer="ack")
    lie = child.forges(child.is_asked({"policyName": "name"}, ADULT), adult=40)
    assert child.answers(lie)["isValid"] is False
    ack = phone.newest(f"present-proof/{version}/ack")
    assert ack.body["status"] == "OK"
    assert ack.body["verification_result"] == "false"
    assert child.answers(lie)["isValid"] is False  # sent again: answered again
    again = phone.newest(f"present-proof/{version}/ack")
    assert again.id != ack.id and again.body["verification_result"] == "false"
    Tenant.objects.filter(pk=faber.tenant.pk).update(
        invalid_proof_answer="problem-report"
    )
    lie = child.forges(child.is_asked({"policyName": "name"}, ADULT), adult=40)
    assert child.answers(lie)["isValid"] is False
    report = phone.newest(f"present-proof/{version}/problem-report")
    assert report.body["description"]["code"] == "proof-not-valid"


def test_a_provider_account_chooses_the_answer_to_a_false_proof(provider):
    made = provider.makes(invalidProofAnswer="ack")
    assert made["invalidProofAnswer"] == "ack"
    path = f"/tenants/{made['tenantId']}"
    provider.put(path, {"name": "Office"})
    office = provider.opens(made)
    assert office.get("/tenants")[0]["invalidProofAnswer"] == "ack"
    bob = office.post("/api/wallets", {})["walletId"]
    invitation = office.post("/connections", {})
    mine = office.post(
        f"/api/{bob}/connections/invitation",
        form={"invitation": invitation["invitation"]},
    )
    for answer in ("ack", "problem-report"):
        provider.put(path, {"invalidProofAnswer": answer})
        asked = office.put(
            f"/verifications/policy/connections/{invitation['connectionId']}",
            {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]},
        )
        shown = office.get(f"/api/{bob}/verifications")[0]["verificationId"]
        office.put(f"/api/{bob}/verifications/{shown}/autoSelect")
        assert office.get(f"/api/{bob}/verifications")[0]["isValid"] is False
        found = office.get(f"/verifications/{asked['verificationId']}")
        assert (found["state"], found["isValid"]) == ("Accepted", False)
    assert mine["state"] == "Connected"
    with pytest.raises(ApiError) as caught:
        provider.put(path, {"invalidProofAnswer": "silence"})
    assert caught.value.body["errors"]["invalidProofAnswer"]
