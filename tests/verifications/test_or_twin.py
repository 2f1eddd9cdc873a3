"""Policies that allow a definition or its twin (`orTwin`)."""

import pytest

from connections.didcomm.message import PREFIX
from connections.protocols.discover_features import DISCLOSE
from core.errors import Conflict
from credentials.models import CredentialDefinition
from tests.agency.holders.links.test_kiosks import Screen, take_answer
from tests.support.erasing import worker_erases
from tests.support.errors import assert_error, error_of
from tests.support.own_webvh import row_of
from tests.support.people import Organization
from tests.support.pictures import storage
from tests.support.twins import VALUES, acme, alice, badge, faber, twin, twin_path
from verifications.models import Verification
from verifications.proofs.policy import (
    DEFINITION,
    Policy,
    PolicyItem,
    Restriction,
)

__all__ = ["acme", "alice", "badge", "faber", "storage", "twin"]  # fixtures
NOW = {"validNow": True}
PHONE_VERSIONS = ["present-proof/1.0"], ["present-proof/1.0", "present-proof/2.0"]


def restriction_to(definition, **members):
    return {
        "credentialDefinitionId": definition["definitionId"],
        "orTwin": True,
        **members,
    }


def policy_about(*restrictions, **members):
    item = {"policyName": "level", "restrictions": list(restrictions)}
    return {"name": "Level", "version": "1.0", "attributes": [item], **members}


def verify(verifier, holder, policy):
    """Ask by a stored policy; the holder answers with what fits."""
    stored = verifier.post("/verificationPolicies", policy)
    path = f"/verifications/policy/{stored['policyId']}"
    sent = verifier.put(f"{path}/connections/{holder.known_as(verifier)}", {})
    holder.auto_selects()
    return verifier.get(f"/verifications/{sent['verificationId']}")


def asked_definitions(verifier, sent):
    """The definitions that the request of a verification names, as it travels."""
    row = Verification.objects.get(pk=sent["verificationId"])
    body = row.require_proof_request().body
    [asked] = body["requested_attributes"].values()
    return row, [one["cred_def_id"] for one in asked["restrictions"]]


def test_either_of_the_two_is_taken_and_the_answer_says_which(faber, acme, badge, twin):
    for named, held in ((badge, twin), (twin, badge), (badge, badge)):
        holder = faber.hosts()
        holder.receives(faber, held, VALUES)
        policy = policy_about(restriction_to(named), revocationRequirement=NOW)
        proven = verify(acme, holder, policy)
        assert proven["isValid"]
        shown = proven["proof"]["level"]
        assert shown["value"] == "7"
        assert shown["credentialDefinitionId"] == held["definitionId"]


@pytest.mark.parametrize("is_erased", [False, True])
def test_the_twin_of_a_deleted_organization_is_taken(
    faber, acme, badge, twin, is_erased
):
    """What was issued can be proven, also by who names the definition."""
    alice = acme.hosts()
    alice.receives(faber, twin, VALUES)
    faber.delete(f"/tenants/{faber.tenant.public_id}")
    if is_erased:
        worker_erases()
    proven = verify(acme, alice, policy_about(restriction_to(badge)))
    assert proven["isValid"], proven["checks"]
    assert proven["proof"]["level"]["credentialDefinitionId"] == twin["definitionId"]
    elsewhere = Organization("Elsewhere", network_id="webvh")
    ids = [badge["definitionId"]]
    assert CredentialDefinition.twins_of(elsewhere.tenant.pk, ids) == {}


def test_a_revoked_twin_is_refused_and_the_other_one_is_not(
    faber, acme, badge, twin, alice
):
    alice.receives(faber, twin, VALUES)
    policy = policy_about(restriction_to(badge), revocationRequirement=NOW)
    assert verify(acme, alice, policy)["isValid"]
    [credential] = faber.get("/credentials")
    stored = acme.post("/verificationPolicies", policy)
    path = f"/verifications/policy/{stored['policyId']}/connections/"
    sent = acme.put(path + alice.known_as(acme), {})
    asked = alice.newest("verifications")["verificationId"]
    faber.delete(f"/credentials/{credential['credentialId']}")
    held = alice.newest("credentials")["credentialId"]
    chosen = [{"policyName": "level", "credentialId": held}]
    alice.put(f"/verifications/{asked}", chosen)
    refused = acme.get(f"/verifications/{sent['verificationId']}")
    assert refused["isValid"] is False
    assert refused["causes"][0]["code"] == "revoked_or_forged"
    assert refused["proof"]["level"]["credentialDefinitionId"] == twin["definitionId"]
    alice.receives(faber, badge, VALUES)
    proven = verify(acme, alice, policy)
    assert proven["isValid"]
    assert proven["proof"]["level"]["credentialDefinitionId"] == badge["definitionId"]


def test_a_twin_that_is_made_after_the_policy_is_allowed_too(faber, acme, badge, alice):
    stored = acme.post("/verificationPolicies", policy_about(restriction_to(badge)))
    path = f"/verifications/policy/{stored['policyId']}/connections/"
    before = acme.put(path + alice.known_as(acme), {})
    assert asked_definitions(acme, before)[1] == [badge["definitionId"]]
    twin = faber.post(twin_path(badge))
    alice.receives(faber, twin, VALUES)
    after = acme.put(path + alice.known_as(acme), {})
    ids = [badge["definitionId"], twin["definitionId"]]
    assert asked_definitions(acme, after)[1] == ids
    restrictions = after["policy"]["attributes"][0]["restrictions"]
    assert restrictions == [restriction_to(badge), restriction_to(twin)]
    policy = acme.get(f"/verificationPolicies/{stored['policyId']}")
    assert policy["attributes"][0]["restrictions"] == [restriction_to(badge)]
    # What a verification shows can be asked for again, and is the same.
    again = acme.post(
        f"/verifications/policy/connections/{alice.known_as(acme)}", after["policy"]
    )
    assert again["policy"] == after["policy"]


def test_who_tries_a_policy_is_told_that_there_is_no_twin_yet(faber, acme, badge):
    policy = policy_about(restriction_to(badge), revocationRequirement=NOW)

    def told():
        found = acme.post("/verificationPolicies/try", policy)["lint"]
        return [one["path"] for one in found if one["code"] == "no_twin"]

    assert told() == ["attributes[0].restrictions[0].orTwin"]
    faber.post(twin_path(badge))
    assert not told()


def test_what_was_issued_of_a_deleted_twin_is_proven(faber, acme, badge, twin, alice):
    alice.receives(faber, twin, VALUES)
    faber.delete(f"/definitions/credentials/{twin['definitionId']}")
    newer = faber.post(twin_path(badge))
    proven = verify(acme, alice, policy_about(restriction_to(badge)))
    assert proven["isValid"]
    restrictions = proven["policy"]["attributes"][0]["restrictions"]
    ids = [one["credentialDefinitionId"] for one in restrictions]
    assert ids == [one["definitionId"] for one in (badge, newer, twin)]


def test_without_it_a_twin_is_refused_and_no_definition_is_named(
    faber, acme, badge, twin, alice
):
    alice.receives(faber, twin, VALUES)
    stated = {"credentialDefinitionId": badge["definitionId"]}
    sent = acme.asks(alice, **policy_about(stated))
    assert asked_definitions(acme, sent)[1] == [badge["definitionId"]]
    fitting = alice.get(
        f"/verifications/{alice.newest('verifications')['verificationId']}"
        "/availableCredentials"
    )
    assert fitting[0]["availableCredentials"] == []
    alice.receives(faber, badge, VALUES)
    plain = {"credentialDefinitionId": badge["definitionId"], "orTwin": False}
    proven = verify(acme, alice, policy_about(plain))
    assert proven["isValid"]
    assert "credentialDefinitionId" not in proven["proof"]["level"]
    assert proven["policy"]["attributes"][0]["restrictions"] == [stated]


def test_a_predicate_and_a_required_value_hold_for_both(faber, acme, alice):
    claims = {"level": {"type": "integer"}}
    pass_card = faber.defines(*VALUES, claims=claims)
    twin = faber.post(twin_path(pass_card))
    value = {"attributeName": "Full Name", "attributeValue": "Alice"}
    item = {
        "attributeName": "level",
        "predicateType": ">=",
        "predicateValue": 5,
        "restrictions": [restriction_to(pass_card, value=value)],
    }
    policy = {"name": "High", "version": "1.0", "predicates": [item]}
    alice.receives(faber, twin, {**VALUES, "Full Name": "Bob"})
    samples = [
        {"definitionId": one["definitionId"], "values": VALUES | {"Full Name": name}}
        for one in (pass_card, twin)
        for name in ("Alice", "Bob")
    ]
    tried = acme.post("/verificationPolicies/try", policy | {"credentials": samples})
    fits = [one["satisfies"] for one in tried["items"][0]["credentials"]]
    assert fits == [True, False, True, False]
    assert "integer_not_declared" not in [one["code"] for one in tried["lint"]]
    alice.receives(faber, twin, VALUES)
    proven = verify(acme, alice, policy)
    assert proven["isValid"]
    row = Verification.objects.get(pk=proven["verificationId"])
    referents = row.require_proof_request().body["requested_predicates"]
    assert list(referents) == ["level"]  # both declare integers: without a bound
    [shown] = proven["proof"].values()
    assert shown["value"] == "true"
    assert shown["credentialDefinitionId"] == twin["definitionId"]


@pytest.mark.parametrize("disclosed", PHONE_VERSIONS)
@pytest.mark.parametrize("named", ["badge", "twin"])
def test_a_phone_of_version_1_is_asked_for_the_definition_it_can_name(
    faber, badge, twin, phone, disclosed, named
):
    connection = phone.connects(faber).connection_id
    listed = [{"pid": PREFIX + one} for one in disclosed]
    phone.says(phone.build(DISCLOSE, None, protocols=listed))
    policy = policy_about(restriction_to({"badge": badge, "twin": twin}[named]))
    sent = faber.post(f"/verifications/policy/connections/{connection}", policy)
    row, ids = asked_definitions(faber, sent)
    both = [badge["definitionId"], twin["definitionId"]]
    if len(disclosed) == 1:
        assert (row.wire_version, ids) == ("1.0", both[:1])
    else:
        assert (row.wire_version, row.wire_format) == ("2.0", "anoncreds")
        assert sorted(ids) == sorted(both)
    plain = policy_about({"credentialDefinitionId": twin["definitionId"]})
    if len(disclosed) == 1:
        error = error_of(
            faber.post, f"/verifications/policy/connections/{connection}", plain
        )
        assert_error(error, 409, "needs_version_2")


def test_links_ask_for_both(faber, acme, badge, twin, alice):
    stored = acme.post("/verificationPolicies", policy_about(restriction_to(badge)))
    ids = [badge["definitionId"], twin["definitionId"]]
    path = f"/verifications/policy/{stored['policyId']}"
    shared = acme.put(path, {})
    row, named = asked_definitions(acme, shared)
    assert (row.wire_version, named) == ("2.0", ids)
    first = acme.put(path, {"exchangeVersion": "1.0"})
    row, named = asked_definitions(acme, first)
    assert (row.wire_version, named) == ("1.0", ids[:1])
    indy = acme.put(path, {"attachmentFormat": "hlindy"})
    assert asked_definitions(acme, indy)[1] == ids[:1]
    alice.receives(faber, twin, VALUES)
    data = {"verificationData": shared["verificationRequestData"]}
    alice.put_form("/verifications/fromData/autoSelect", **data)
    proven = acme.get(f"/verifications/{shared['verificationId']}")
    assert proven["isValid"]
    assert proven["proof"]["level"]["credentialDefinitionId"] == twin["definitionId"]


def test_a_kiosk_asks_for_both_and_shows_the_answer(faber, acme, badge, twin, alice):
    alice.receives(faber, twin, VALUES)
    stored = acme.post("/verificationPolicies", policy_about(restriction_to(badge)))
    desk = {"name": "Desk", "policyId": stored["policyId"], "shownItems": ["level"]}
    screen = Screen(acme.post("/kiosks", desk)["url"])
    assert screen.state == "asking"
    take_answer(alice, screen)
    assert screen.state == "valid" and VALUES["level"] in screen.page
    row = Verification.objects.get(role="verifier")
    shown = acme.get(f"/verifications/{row.pk}")["proof"]["level"]
    assert shown["credentialDefinitionId"] == twin["definitionId"]


@pytest.mark.parametrize(
    "restriction, path",
    [
        ({"orTwin": True, "schemaId": "S"}, "orTwin"),
        ({"orTwin": True}, "orTwin"),
        ({"orTwin": True, "credentialDefinitionId": "C", "issuerDid": "D"}, "orTwin"),
        ({"orTwin": True, "credentialDefinitionId": "C", "vct": "V"}, "orTwin"),
    ],
)
def test_it_needs_a_definition_and_nothing_else(acme, restriction, path):
    error = error_of(acme.post, "/verificationPolicies", policy_about(restriction))
    assert_error(error, 400, "invalid_policy")
    assert f"attributes[0].restrictions[0].{path}" in error.body["errors"]


def test_it_counts_as_two_alternatives(acme):
    many = [{"credentialDefinitionId": str(one), "orTwin": True} for one in range(51)]
    error = error_of(acme.post, "/verificationPolicies", policy_about(*many))
    assert_error(error, 400, "invalid_policy")
    acme.post("/verificationPolicies", policy_about(*many[:50]))


def test_a_proposal_cannot_say_it(faber, alice, badge):
    alice.meets(faber)
    path = f"/verifications/propose/{alice.known[faber][1]}"
    error = error_of(alice.put, path, policy_about(restriction_to(badge)))
    assert_error(error, 400, "invalid_policy")


def test_a_proposal_is_answered_in_the_format_that_it_has(faber, badge, twin, alice):
    alice.meets(faber)
    ours, theirs = alice.known[faber]
    stored = faber.post("/verificationPolicies", policy_about(restriction_to(twin)))
    for version in ("1.0", "2.0"):
        plain = {"credentialDefinitionId": badge["definitionId"]}
        proposed = policy_about(plain, exchangeVersion=version)
        alice.put(f"/verifications/propose/{theirs}", proposed)
        path = f"/verifications/proposal/{stored['policyId']}/connections/{ours}"
        answered = faber.put(path, {})
        assert asked_definitions(faber, answered)[1] == [badge["definitionId"]]


def test_an_item_never_loses_all_its_restrictions(badge, twin):
    """Else any credential would do."""
    named = Restriction({DEFINITION: twin["definitionId"]}, or_twin=True)
    item = PolicyItem("level", ("level",), restrictions=(named,))
    policy = Policy("Level", "1.0", (item,), ())
    siblings = {twin["definitionId"]: [twin["definitionId"] + "2"]}
    assert policy.admit_twins(siblings)
    with pytest.raises(Conflict) as refused:
        policy.admit_twins(siblings, takes_webvh=False)
    assert refused.value.code == "not_provable"


def test_definitions_of_another_network_are_no_twins(faber, acme, badge, twin):
    elsewhere = Organization("Elsewhere", network_id="webvh")
    ids = [badge["definitionId"]]
    found = CredentialDefinition.twins_of
    assert found(acme.tenant.pk, ids) == {ids[0]: [twin["definitionId"]]}
    assert found(elsewhere.tenant.pk, ids) == {}
    assert row_of(faber).did in twin["definitionId"]
