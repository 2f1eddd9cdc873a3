"""A credential of a did:webvh, with holders and verifiers of another network."""

from threading import Event

import pytest
from django.db import connection

from credentials.ledgers import reads
from credentials.ledgers.webvh import served_logs
from credentials.ledgers.webvh.reading import Reader
from credentials.ledgers.webvh.refusals import Refused
from credentials.models import Credential, RevocationRegistry
from tests.credentials.ledgers.webvh.conftest import VALUES
from tests.support.errors import assert_error, error_of
from tests.support.own_webvh import read_log, read_resource, row_of
from tests.support.races import at_once
from verifications.models import Verification


@pytest.fixture
def alice(acme):
    return acme.hosts()


def asks(acme, alice, **restriction):
    asked = acme.asks(
        alice,
        attributes=[{"policyName": "level", "restrictions": [restriction]}],
        revocationRequirement={"validNow": True},
    )
    alice.auto_selects()
    return acme.get(f"/verifications/{asked['verificationId']}")


def test_it_is_taken_proven_and_no_more_when_it_is_revoked(faber, badge, acme, alice):
    alice.receives(faber, badge, VALUES)
    did = row_of(faber).did
    for restriction in (
        {"issuerDid": did},
        {"schemaIssuerDid": did},
        {"credentialDefinitionId": badge["definitionId"]},
    ):
        shown = asks(acme, alice, **restriction)
        assert shown["isValid"], shown["checks"]
    rows = [*Credential.objects.all(), *Verification.objects.all()]
    formats = {(row.wire_version, row.wire_format) for row in rows}
    assert formats == {("2.0", "anoncreds")}
    [credential] = faber.get("/credentials")
    faber.delete(f"/credentials/{credential['credentialId']}")
    shown = asks(acme, alice, issuerDid=did)
    assert not shown["isValid"]


def test_restrictions_by_its_did_have_the_names_that_the_library_holds(
    faber, acme, alice
):
    did = row_of(faber).did
    acme.asks(
        alice,
        attributes=[
            {
                "policyName": "level",
                "restrictions": [{"issuerDid": did, "schemaIssuerDid": did}],
            }
        ],
    )
    request = Verification.objects.get(role="verifier").require_proof_request().body
    [restriction] = request["requested_attributes"]["level"]["restrictions"]
    assert restriction == {"issuer_id": did, "schema_issuer_id": did}


def test_version_1_is_refused(faber, badge, alice):
    connection = alice.known_as(faber)
    faber.put(f"/connections/{connection}/protocols", {"exchangeVersion": "1.0"})
    body = {
        "connectionId": connection,
        "definitionId": badge["definitionId"],
        "credentialValues": VALUES,
    }
    refused = error_of(faber.post, "/credentials", body)
    assert_error(refused, 409, "needs_version_2")
    faber.put(f"/connections/{connection}/protocols", {"exchangeVersion": "2.0"})
    assert faber.post("/credentials", body)["credentialId"]


def test_no_request_or_proposal_that_names_it_goes_to_a_peer_of_version_1(
    faber, badge, acme, alice
):
    connection = alice.known_as(acme)
    theirs = alice.known[acme][1]
    policy = {"name": "Policy", "version": "1.0"}
    policy["attributes"] = [
        {"policyName": "level", "restrictions": [{"issuerDid": row_of(faber).did}]}
    ]
    asks = (acme.post, f"/verifications/policy/connections/{connection}", policy)
    wish = {"definitionId": badge["definitionId"], "credentialValues": VALUES}
    proposes = (alice.put, f"/credentials/propose/{theirs}", wish)
    first = {"exchangeVersion": "1.0"}
    acme.put(f"/connections/{connection}/protocols", first)
    assert_error(error_of(*asks), 409, "needs_version_2")
    refused = error_of(*proposes[:2], wish | first)
    assert_error(refused, 409, "needs_version_2")
    acme.put(f"/connections/{connection}/protocols", {"exchangeVersion": "2.0"})
    call, *given = asks
    assert call(*given)["verificationId"]
    call, *given = proposes
    assert call(*given)["credentialId"]


def test_a_did_that_is_refused_leaves_other_credentials_usable(
    faber, badge, acme, alice, monkeypatch
):
    other = acme.defines(*VALUES)
    alice.receives(faber, badge, VALUES)
    alice.receives(acme, other, VALUES)

    def refuse(reader, did, kept_for):
        raise Refused("did_deactivated", did, "deactivated")

    # As if the DID had been made elsewhere, and ended.
    monkeypatch.setattr(reads, "find_webvh_ledger", lambda name: None)
    monkeypatch.setattr(Reader, "_log", refuse)
    asked = acme.asks(alice, attributes=[{"policyName": "level"}])
    alice.auto_selects()
    shown = acme.get(f"/verifications/{asked['verificationId']}")
    assert shown["isValid"], shown["checks"]


def test_fifty_phones_read_a_registry_while_credentials_are_revoked(
    faber, badge, acme, storage
):
    """Whatever a phone reads fits together: each link leads to a list of its time."""
    for name in ("Alice", "Bob", "Carol"):
        acme.hosts(name).receives(faber, badge, VALUES)
    issued = [one["credentialId"] for one in faber.get("/credentials")]
    registry_id = RevocationRegistry.objects.get().registry_id
    is_over = Event()

    def revoke():
        try:
            for credential_id in issued:
                faber.delete(f"/credentials/{credential_id}")
        finally:
            is_over.set()

    def look():
        """Read the registry and its newest list: its time and places."""
        log = read_log(faber).document
        link = read_resource(registry_id, "anonCredsRevocRegDef", log).links[-1]
        listed = read_resource(link.resource_id, "anonCredsStatusList", log).content
        assert listed["timestamp"] == link.timestamp
        return link.timestamp, listed["revocationList"]

    def refuse_writes(execute, sql, params, many, context):
        assert sql.lstrip().startswith("SELECT"), sql
        return execute(sql, params, many, context)

    def phones():
        """Ten or more that look in turn; the last one when all is revoked."""
        seen = []
        with connection.execute_wrapper(refuse_writes):
            while not is_over.is_set() or len(seen) < 9:
                seen.append(look())
            return [*seen, look()]

    done, *found = at_once(revoke, *[phones] * 5)
    assert done is None
    lists = {}
    for seen in found:
        assert seen == sorted(seen), "time and revocations go on"
        assert sum(seen[-1][1]) == len(issued)
        for timestamp, places in seen:
            assert lists.setdefault(timestamp, places) == places
    assert len(lists) > 1
    assert len(served_logs.list_served(served_logs.scid_in(row_of(faber).did))) == 1
