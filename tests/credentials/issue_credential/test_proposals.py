"""A holder says what it would like; the issuer offers it, or something else."""

from itertools import product

import pytest

from connections.didcomm import message as didcomm
from connections.didcomm.formats import (
    ANONCREDS,
    FILTER,
    HLINDY,
    MessageFormat,
    attach_as,
)
from connections.models import Connection
from core.errors import PeerError
from credentials.issue_credential import proposal_messages
from credentials.models import Credential
from tests.support import races
from tests.support.errors import assert_error, error_of, refusal
from tests.support.steps import step

VALUES = {"name": "Alice", "degree": "Maths"}
BETTER = VALUES | {"degree": "Physics"}
PROPOSE = "issue-credential/1.0/propose-credential"
OTHER_DID = "V4SGRU86Z58d6TV7PBUe6f"


def proposes(holder, organization, **body):
    holder.known_as(organization)
    return holder.put(f"/credentials/propose/{holder.known[organization][1]}", body)


def answers(organization, **body):
    seen = organization.get("/credentials")[0]["credentialId"]
    return organization.put(f"/credentials/{seen}/offer", body)


def counters(holder, **body):
    mine = holder.newest("credentials")["credentialId"]
    return holder.put(f"/credentials/{mine}/propose", body)


def read(body):
    return proposal_messages.read_proposal(didcomm.read(body))


def states():
    return {row.role: row.state for row in Credential.objects.all()}


def rows():
    return list(Credential.objects.order_by("pk").values())


@step
def alice(faber):
    alice = faber.hosts("Alice")
    alice.meets(faber)
    return alice


@step
def definition(faber):
    return faber.defines(*VALUES)["definitionId"]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_proposal_goes_all_the_way(faber, alice, definition, version):
    Connection.objects.update(exchange_version=version)
    mine = proposes(alice, faber, definitionId=definition, credentialValues=VALUES)
    [seen] = faber.get("/credentials")
    assert mine["state"] == seen["state"] == "Proposed"
    offered = answers(faber, automaticIssuance=True)
    assert (offered["state"], offered["definitionId"]) == ("Offered", definition)
    assert offered["credentialId"] == seen["credentialId"]
    assert alice.accepts_offer() == mine["credentialId"]
    got = alice.get(f"/credentials/{mine['credentialId']}")
    assert (got["state"], got["values"]) == ("Issued", VALUES)
    assert faber.get(f"/credentials/{seen['credentialId']}")["state"] == "Issued"
    assert len(alice.get("/credentials")) == len(faber.get("/credentials")) == 1
    assert set(Credential.objects.values_list("wire_version", flat=True)) == {version}


def test_both_sides_show_what_is_proposed_and_it_is_sealed(faber, alice, definition):
    body = {"definitionId": definition, "credentialValues": VALUES}
    body |= {"comment": "Why?", "schemaName": "Badge", "issuerDid": "F" * 22}
    mine = proposes(alice, faber, **body)
    [seen] = faber.get("/credentials")
    assert mine["proposal"] == seen["proposal"] == body
    assert mine["definitionId"] == seen["definitionId"] == definition
    assert seen["schemaId"] == "", "clients cut it into parts"
    assert "values" not in seen
    for row in Credential.objects.all():
        for word in (b"Maths", b"degree"):
            assert word not in bytes(row.proposal)


def test_the_issuer_offers_something_else(faber, alice, definition):
    other = faber.defines("name", "level")["definitionId"]
    proposes(alice, faber, definitionId=definition, credentialValues=VALUES)
    values = {"name": "Alice", "level": "7"}
    answers(faber, definitionId=other, credentialValues=values, automaticIssuance=True)
    alice.accepts_offer()
    got = alice.newest("credentials")
    assert (got["definitionId"], got["values"]) == (other, values)
    assert got["proposal"]["definitionId"] == definition, "it stays to be read"


def test_a_holder_proposes_against_an_offer_until_they_agree(faber, alice, definition):
    faber.offers(alice, {"definitionId": definition}, VALUES)
    for automatic in (False, False, True):
        assert states() == {"issuer": "Offered", "holder": "Offered"}
        countered = counters(alice, credentialValues=BETTER, comment="It was physics")
        assert states() == {"issuer": "Proposed", "holder": "Proposed"}
        [seen] = faber.get("/credentials")
        assert seen["proposal"] == countered["proposal"]
        told = seen["proposal"]["definitionId"], seen["values"]
        assert told == (definition, VALUES)
        if not automatic:
            answers(faber, credentialValues=VALUES)
    answers(faber, automaticIssuance=True)
    assert alice.newest("credentials")["values"] == BETTER
    alice.accepts_offer()
    assert states() == {"issuer": "Issued", "holder": "Issued"}
    assert len({row.thread_id for row in Credential.objects.all()}) == 1


def test_without_any_values_they_follow_when_it_is_issued(faber, alice, definition):
    """The blank values of an offer without any are not issued."""
    faber.offers(alice, {"definitionId": definition}, None)
    counters(alice, comment="When?")
    assert error_of(answers, faber, automaticIssuance=True).code == "values_missing"
    path = f"/credentials/{answers(faber)['credentialId']}"
    alice.accepts_offer()
    assert error_of(faber.put, path, {}).code == "values_missing"
    proposes(alice, faber, definitionId=definition)
    assert error_of(answers, faber, automaticIssuance=True).code == "values_missing"
    path = f"/credentials/{answers(faber)['credentialId']}"
    alice.accepts_offer()
    faber.put(path, VALUES)
    assert alice.newest("credentials")["values"] == VALUES


def test_what_was_proposed_and_offered_is_not_proposed_again(faber, alice, definition):
    """The issuer would take it for a replay."""
    faber.offers(alice, {"definitionId": definition}, VALUES)
    counters(alice, comment="Why?")
    answers(faber)
    assert_error(error_of(counters, alice, comment="Why?"), 409, "already_offered")
    assert alice.newest("credentials")["state"] == "Offered"
    counters(alice, comment="Why, still?")
    assert faber.get("/credentials")[0]["state"] == "Proposed"


def test_what_a_counter_proposal_leaves_out_is_as_offered(faber, alice, definition):
    offered = faber.offers(alice, {"definitionId": definition}, VALUES)
    kept = counters(alice, comment="Why?")["proposal"]
    named = {"definitionId": definition, "schemaId": offered["schemaId"]}
    assert kept == named | {"comment": "Why?", "credentialValues": VALUES}
    answers(faber)
    other = counters(alice, schemaName="Passport")["proposal"]
    assert other == {"schemaName": "Passport", "credentialValues": VALUES}


def test_the_definition_may_be_told_by_its_schema(faber, alice):
    made, _ = faber.defines(*VALUES), faber.defines("other", "one")
    issuer = made["definitionId"].partition(":")[0]
    name = {"schemaName": made["name"]}
    for body in (
        {"schemaId": made["schemaId"]},
        name | {"schemaVersion": made["version"]},
        name | {"issuerDid": issuer, "schemaIssuerDid": issuer},
    ):
        proposes(alice, faber, **body, credentialValues=VALUES)
        assert answers(faber)["definitionId"] == made["definitionId"], body


def test_a_definition_that_cannot_be_told_must_be_given(faber, alice, definition):
    faber.defines("other", "one")
    given = {"definitionId": definition, "credentialValues": VALUES}
    for body in (
        {"credentialValues": VALUES}, {"schemaVersion": "1.0"},
        {"definitionId": f"{OTHER_DID}:3:CL:1:default"},
        {"schemaId": f"{OTHER_DID}:2:Badge:1.0"},
    ):  # fmt: skip
        proposes(alice, faber, **body)
        before = rows()
        error = error_of(answers, faber)
        assert_error(error, 400, "definition_unclear")
        assert "definitionId" in error.body["errors"] and rows() == before
        assert answers(faber, **given)["state"] == "Offered"


def test_what_somebody_else_has_made_is_not_ours(faber, alice, definition):
    ours = definition.partition(":")[0]
    body = {"schemaVersion": "1.0", "credentialValues": VALUES}
    for whose in ("issuerDid", "schemaIssuerDid"):
        for did in (ours, f"did:sov:{ours}"):
            proposes(alice, faber, **body, **{whose: did})
            assert answers(faber)["definitionId"] == definition
        proposes(alice, faber, **body, **{whose: OTHER_DID})
        assert error_of(answers, faber).code == "definition_unclear"


def test_no_values_that_do_not_fit_and_no_deleted_definition_are_offered(
    faber, alice, definition
):
    proposes(alice, faber, definitionId=definition, credentialValues={"name": "Alice"})
    assert error_of(answers, faber).code == "wrong_attributes"
    assert states() == {"issuer": "Proposed", "holder": "Proposed"}
    assert answers(faber, credentialValues=VALUES)["values"] == VALUES
    proposes(alice, faber, definitionId=definition, credentialValues=VALUES)
    faber.delete(f"/definitions/credentials/{definition}")
    assert error_of(answers, faber).code == "definition_unclear"
    assert_error(error_of(answers, faber, definitionId=definition), 404, "not_found")


def test_of_answers_at_once_one_wins_and_later_ones_are_late(faber, alice, definition):
    proposes(alice, faber, definitionId=definition, credentialValues=VALUES)
    got = races.at_once(*[lambda: answers(faber)] * 4)
    assert races.error_codes(got) == ["wrong_state"] * 3
    assert states() == {"issuer": "Offered", "holder": "Offered"}
    assert_error(error_of(answers, faber), 409, "wrong_state")


def test_before_its_offer_it_is_neither_accepted_nor_issued(faber, alice, definition):
    mine = proposes(alice, faber, definitionId=definition)["credentialId"]
    [seen] = faber.get("/credentials")
    for call in (
        lambda: alice.post(f"/credentials/{mine}"),
        lambda: alice.put(f"/credentials/{mine}/propose", {"comment": "Please"}),
        lambda: faber.put(f"/credentials/{seen['credentialId']}"),
        lambda: faber.delete(f"/credentials/{seen['credentialId']}"),
    ):
        assert_error(error_of(call), 409, "wrong_state")


def test_either_side_deletes_a_proposed_one_which_ends_it(faber, alice, definition):
    mine = proposes(alice, faber, definitionId=definition)["credentialId"]
    alice.delete(f"/credentials/{mine}")
    assert states() == {"issuer": "Rejected"}
    Credential.objects.all().delete()
    proposes(alice, faber, definitionId=definition)
    [seen] = faber.get("/credentials")
    faber.delete(f"/credentials/delete/{seen['credentialId']}")
    assert states() == {"holder": "Rejected"}


def test_lists_find_it_by_state_and_a_purge_once_declined(faber, alice, definition):
    mine = proposes(alice, faber, definitionId=definition)
    for one in (faber, alice):
        assert len(one.get("/credentials", state="Proposed")) == 1
        assert one.get("/credentials", state="Offered") == []
    assert len(faber.get("/credentials", definitionId=definition)) == 1
    faber.delete(f"/credentials/purge/{definition}")
    assert len(rows()) == 2, "what is open stays"
    alice.post(f"/credentials/{mine['credentialId']}/decline")
    assert states() == {"issuer": "Rejected", "holder": "Rejected"}
    faber.delete(f"/credentials/purge/{definition}")
    assert states() == {"holder": "Rejected"}


def test_without_a_connection_it_is_409_or_404(faber, acme, alice, definition):
    body, bob = {"definitionId": definition}, acme.hosts("Bob")
    bob.meets(acme)
    for absent in ("nobody", bob.known[acme][1]):
        error = error_of(alice.put, f"/credentials/propose/{absent}", body)
        assert_error(error, 404, "not_found")
    faber.post(f"/connections/{alice.known_as(faber)}/hangup")
    assert_error(error_of(proposes, alice, faber, **body), 409, "connection_gone")
    Connection.objects.filter(role="invitee", tenant=acme.tenant).update(
        state="Negotiating"
    )
    assert_error(error_of(proposes, bob, acme, **body), 409, "wrong_state")


def test_another_organization_cannot_answer_it(faber, acme, alice, definition):
    mine = proposes(alice, faber, definitionId=definition)["credentialId"]
    seen = faber.get("/credentials")[0]["credentialId"]
    for organization, identifier in ((acme, seen), (acme, mine), (faber, mine)):
        error = error_of(organization.put, f"/credentials/{identifier}/offer", {})
        assert_error(error, 404, "not_found")
    theirs = acme.defines("a", "b")["definitionId"]
    assert_error(error_of(answers, faber, definitionId=theirs), 404, "not_found")


NOT_PROPOSABLE = [
    ({}, "definitionId"),
    ({"comment": "Anything"}, "definitionId"),
    ({"credentialValues": {}}, "definitionId"),
    ({"definitionId": "x" * 301}, "definitionId"),
    ({"definitionId": "x", "comment": "x" * 1001}, "comment"),
    ({"credentialValues": {"name": None}}, "credentialValues.name"),
    ({"credentialValues": {"": "Alice"}}, "credentialValues"),
    ({"credentialValues": {"x" * 257: "Alice"}}, "credentialValues"),
    ({"credentialValues": {"name": "x" * 200_000}}, "credentialValues"),
    ({"credentialValues": {str(n): "" for n in range(126)}}, "credentialValues"),
]


def test_what_cannot_be_proposed_is_400(faber, alice, subtests):
    for body, field in NOT_PROPOSABLE:
        with subtests.test(str(body)[:80]):
            error = error_of(proposes, alice, faber, **body)
            assert_error(error, 400, "invalid_request")
            assert field in error.body["errors"]
            assert not Credential.objects.exists()


NAMES = ("comment", "definitionId", "schemaId", "schemaName", "schemaVersion")
NAMES += ("schemaIssuerDid", "issuerDid")
WHOLE = {name: f"a {name}" for name in NAMES} | {"credentialValues": VALUES}


@pytest.mark.parametrize(
    "form, word", [(HLINDY, "issuer_did"), (ANONCREDS, "issuer_id")]
)
def test_a_proposal_is_read_as_it_was_told_in_the_words_of_its_format(form, word):
    for version, proposed in product(
        ("1.0", "2.0"), (WHOLE, {"definitionId": "d"}, {})
    ):
        wire = MessageFormat(didcomm.PREFIX, version, form)
        assert read(proposal_messages.build_proposal(proposed, wire)) == proposed
    body = proposal_messages.build_proposal(WHOLE, wire)
    attached = didcomm.read_attachment(didcomm.read(body), "filters~attach")
    assert attached[word] == WHOLE["issuerDid"]
    assert body["formats"][0]["format"] == FILTER.formats[form]


def attributes(*listed):
    return {"credential_proposal": {"attributes": list(listed)}}


@pytest.mark.parametrize("members", [
    {"comment": 7}, {"cred_def_id": ["x"]}, {"schema_id": "x" * 301},
    {"credential_proposal": 7}, {"credential_proposal": {}}, attributes(),
    attributes(7), attributes({"name": 7, "value": "x"}),
    attributes({"name": "a", "value": 7}), attributes({"name": "", "value": "x"}),
    attributes({"name": "a", "value": "x"}, {"name": "a", "value": "y"}),
    attributes({"name": "x" * 257, "value": "x"}),
    attributes({"name": "a", "value": "x" * 200_000}),
    attributes(*[{"name": str(n), "value": ""} for n in range(126)]),
])  # fmt: skip
def test_a_proposal_that_cannot_be_read_is_refused(members):
    refusal(PeerError, read, didcomm.build(PROPOSE, **members))


def test_neither_is_one_in_2_0_and_a_long_comment_is_cut():
    wire = MessageFormat(didcomm.PREFIX, "2.0")
    for content in ({"cred_def_id": 7}, {"issuer_did": {}}, {"issuer_id": []}):
        body = didcomm.build("issue-credential/2.0/propose-credential")
        refusal(PeerError, read, body | attach_as(wire, FILTER, content))
    found = read(didcomm.build(PROPOSE, comment="x" * 5000))["comment"]
    assert len(found) == proposal_messages.MAX_COMMENT
