"""The same definition below a did:webvh, for wallets that read no other network."""

from unittest.mock import Mock

import pytest

from connections.didcomm.message import PREFIX
from connections.protocols.discover_features import DISCLOSE
from core.errors import Unavailable
from credentials.models import CredentialDefinition, RevocationRegistry, WebvhResource
from tenants import audit
from tenants.lifecycle.provisioning import remove_organization
from tenants.models import Provider
from tests.support.erasing import worker_erases
from tests.support.errors import assert_error, error_of
from tests.support.own_webvh import HOST, read_all, row_of
from tests.support.people import Organization
from tests.support.pictures import storage
from tests.support.races import at_once, error_codes
from tests.support.twins import VALUES, alice, badge, faber, twin, twin_path
from wallets import key_pool

__all__ = ["alice", "badge", "faber", "storage", "twin"]  # fixtures


def proves(faber, alice, definition, **members):
    restriction = {"credentialDefinitionId": definition["definitionId"], **members}
    asked = faber.asks(
        alice,
        attributes=[{"policyName": "level", "restrictions": [restriction]}],
        revocationRequirement={"validNow": True},
    )
    alice.auto_selects()
    return faber.get(f"/verifications/{asked['verificationId']}")


def test_a_twin_is_the_same_definition_with_registries_of_its_own(faber, badge, twin):
    did = row_of(faber).did
    assert twin["twinOf"] == badge["definitionId"]
    assert twin["definitionId"].startswith(f"{did}/resources/zQm")
    assert twin["schemaId"].startswith(f"{did}/resources/zQm")
    same = ("name", "version", "tag", "supportsRevocation", "claims", "formats")
    same += ("recipientAttribute",)
    assert twin["recipientAttribute"] == "Full Name"
    assert [twin.get(name) for name in same] == [badge.get(name) for name in same]
    assert sorted(twin["attributes"]) == sorted(badge["attributes"])
    own, made = CredentialDefinition.objects.order_by("pk")
    registries = RevocationRegistry.objects.order_by("pk")
    assert [row.definition for row in registries] == [own, made]
    assert registries[1].registry_id.startswith(did)
    assert read_all(faber) == 4  # schema, definition, registry and list
    assert faber.get(f"/definitions/credentials/{badge['definitionId']}") == badge


def test_a_credential_of_a_twin_is_proven_until_it_is_revoked(
    faber, badge, twin, alice
):
    alice.receives(faber, twin, VALUES)
    assert proves(faber, alice, twin)["isValid"]
    [credential] = faber.get("/credentials")
    faber.delete(f"/credentials/{credential['credentialId']}")
    assert proves(faber, alice, twin)["isValid"] is False
    lists = WebvhResource.objects.filter(unique_name__startswith="list ")
    assert lists.count() == 2
    read_all(faber)


def test_more_registries_of_a_twin_follow_below_its_did(faber, twin, alice):
    registries = RevocationRegistry.objects.filter(registry_id__startswith="did:")
    assert registries.count() == 1
    registries.update(next_index=7)  # the last of its places that can be used
    for _ in range(2):
        alice.receives(faber, twin, VALUES)
    assert registries.count() > 1
    assert proves(faber, alice, twin)["isValid"]


def test_there_is_one_twin(faber, badge, twin):
    for definition in (badge, twin):
        assert_error(error_of(faber.post, twin_path(definition)), 409, "twin_exists")
    acme = Organization("Acme 2", network_id="webvh")
    own = acme.defines("name")
    assert_error(error_of(acme.post, twin_path(own)), 409, "twin_exists")
    faber.delete(f"/definitions/credentials/{twin['definitionId']}")
    again = faber.post(twin_path(badge))
    assert (again["twinOf"], again["tag"]) == (badge["definitionId"], "default-2")
    assert again["schemaId"] == twin["schemaId"]


def test_of_twins_made_at_once_there_is_one(faber, badge):
    made = at_once(*[lambda: faber.post(twin_path(badge))] * 3)
    assert error_codes(made) == ["twin_exists"] * 2
    assert CredentialDefinition.objects.exclude(twin_of="").count() == 1


def test_the_same_call_again_is_answered_with_the_same_twin(faber, badge):
    answers = [
        faber.call("post", twin_path(badge), **{"Idempotency-Key": "twin-1"})
        for _ in "12"
    ]
    assert answers[0] == answers[1]
    assert CredentialDefinition.objects.exclude(twin_of="").count() == 1


def test_without_a_live_did_there_is_no_twin(faber, badge, alice):
    other = Organization("Other")
    licence = other.defines("name")
    assert_error(error_of(other.post, twin_path(licence)), 409, "no_webvh_did")
    faber.post("/tenants/webvhDid/end")
    assert_error(error_of(faber.post, twin_path(badge)), 409, "did_ended")
    assert not CredentialDefinition.objects.exclude(twin_of="").exists()


def test_a_definition_without_anoncreds_has_no_twin(faber):
    card = faber.defines("name", formats=["dc+sd-jwt"])
    assert_error(error_of(faber.post, twin_path(card)), 409, "format_missing")
    assert HOST in row_of(faber).did


def offered(faber, definition, connection=None, **members):
    body = {"definitionId": definition["definitionId"], "credentialValues": VALUES}
    if connection:
        body["connectionId"] = connection
    return faber.post("/credentials", body | members)["definitionId"]


def test_an_offer_says_on_which_network(faber, badge, twin, alice):
    own, other = badge["definitionId"], twin["definitionId"]
    for connection in (None, alice.known_as(faber)):
        for named in (badge, twin):
            assert offered(faber, named, connection, network="webvh") == other
            assert offered(faber, named, connection, network="local") == own
    assert offered(faber, badge, alice.known_as(faber)) == own
    licence = faber.defines("name")
    for network in ("webvh", "indy"):
        body = {
            "definitionId": licence["definitionId"],
            "credentialValues": {"name": "Al"},
            "network": network,
        }
        assert_error(error_of(faber.post, "/credentials", body), 409, "no_twin")


@pytest.mark.parametrize(
    "disclosed, is_twin",
    [
        (["issue-credential/1.0"], False),
        (["issue-credential/1.0", "issue-credential/2.0"], True),
    ],
)
def test_a_wallet_elsewhere_gets_the_twin_if_it_takes_that(
    faber, badge, twin, phone, disclosed, is_twin
):
    own, other = badge["definitionId"], twin["definitionId"]
    connection = phone.connects(faber).connection_id
    listed = [{"pid": PREFIX + one} for one in disclosed]
    phone.says(phone.build(DISCLOSE, None, protocols=listed))
    assert offered(faber, badge, connection) == (other if is_twin else own)
    assert offered(faber, badge, connection, network="local") == own


def test_a_proposal_by_names_means_the_definition_and_not_its_twin(
    faber, badge, twin, alice
):
    alice.meets(faber)
    for named, wanted in (
        ({"schemaName": badge["name"]}, badge),
        ({"issuerDid": row_of(faber).did}, twin),
        ({"definitionId": twin["definitionId"]}, twin),
    ):
        path = f"/credentials/propose/{alice.known[faber][1]}"
        alice.put(path, {"credentialValues": VALUES, **named})
        newest = faber.get("/credentials", state="Proposed")[0]["credentialId"]
        faber.put(f"/credentials/{newest}/offer", {})
        made = faber.get(f"/credentials/{newest}")
        assert made["definitionId"] == wanted["definitionId"], named


def test_the_twin_of_a_deleted_organization_is_still_read(faber, twin, alice):
    alice.receives(faber, twin, VALUES)
    number, tenant = read_all(faber), faber.tenant
    row = row_of(faber)
    remove_organization(tenant, by=audit.SYSTEM)
    worker_erases()
    row.refresh_from_db()
    assert (row.state, row.resources.count()) == ("Frozen", number)
    assert not CredentialDefinition.objects.filter(tenant=tenant).exists()


def test_a_twin_counts_as_a_definition(faber, badge, settings, monkeypatch):
    path = twin_path(badge)
    settings.DEFINITIONS_A_MINUTE = 1
    assert_error(error_of(faber.post, path), 429, "too_many_definitions")
    settings.DEFINITIONS_A_MINUTE = 100
    with monkeypatch.context() as patched:
        late = Mock(side_effect=Unavailable("key_not_ready", "There is no key yet."))
        patched.setattr(key_pool, "reserve_key", late)
        assert_error(error_of(faber.post, path), 503, "key_not_ready")
    acme = Organization("Acme again")
    schema = acme.defines("a")
    theirs = faber.post(f"/definitions/credentials/{schema['schemaId']}", {})
    faber.post(twin_path(theirs))
    same = {"name": schema["name"], "version": schema["version"]}
    own = faber.post("/definitions/credentials", same | {"attributes": ["b"]})
    assert_error(error_of(faber.post, twin_path(own)), 409, "schema_exists")
    settings.QUOTA_DEFINITIONS = 1
    Provider.objects.update(has_quotas=True)
    assert_error(error_of(faber.post, path), 409, "quota_exceeded")
