"""Credo with `@credo-ts/webvh`, unmodified: a phone of an issuer here, and an issuer.

Both read what the other publishes over https. No ledger is read.
"""

import pytest

from tests.interop.peers.agency import reaches, the_offer, the_request
from tests.interop.peers.conftest import VALUES
from tests.interop.peers.test_credo_current import offers, received, takes
from tests.interop.peers.web_hosts import AGENCY_HOST, CREDO_HOST
from tests.support.processes import eventually


@pytest.fixture(scope="module")
def credo(credo_on_web):
    return credo_on_web


@pytest.fixture(scope="module")
def faber(agency_on_web):
    return agency_on_web.organization("Faber", "webvh")


@pytest.fixture(scope="module")
def acme(agency_on_web):
    """It verifies, and hosts Alice; on the local network."""
    return agency_on_web.organization("Acme")


def connects(organization, credo):
    """(our id, its id) of a new connection."""
    terms = {"protocol": "out-of-band", "handshakes": ["didexchange/1.1"]}
    invited = organization.invites(name="Credo", **terms)
    url = f"{invited['invitationUrl']}?oob={invited['invitation']}"
    theirs = credo.does("accept", url=url)["id"]
    credo.until(theirs, "completed")
    reaches(organization, f"/connections/{invited['connectionId']}", "Connected")
    return invited["connectionId"], theirs


def asks(organization, connection, restriction):
    body = {"name": "P", "version": "1.0", "revocationRequirement": {"validNow": True}}
    body |= {"attributes": [{"policyName": "level", "restrictions": [restriction]}]}
    made = organization.post(f"/verifications/policy/connections/{connection}", body)
    return f"/verifications/{made['verificationId']}"


def has_rotated(organization):
    """Whether all is signed by the new key, and the old one is dropped.

    Phones remember a DID for five minutes; each step waits that long.
    """
    organization.agency.lets_rotations_go_on()
    return organization.get("/tenants/webvhDid")["state"] == "Active"


def asks_credo(organization, credo, link, restriction, **how):
    """What became of a request that Credo answers."""
    proof = asks(organization, link[0], restriction)
    asked = received(credo, "requests", link[1], "request-received")["id"]
    credo.does("prove", asked, format="anoncreds", **how)
    return organization.reaches(proof, "Accepted")


def test_credo_takes_our_credential_and_proves_it_until_it_is_revoked(
    faber, acme, credo
):
    definition = faber.defines(*VALUES, supportRevocation=True)["definitionId"]
    did = definition.partition("/")[0]
    assert did.startswith("did:webvh:Qm") and AGENCY_HOST in did
    issued_by = {"issuerDid": did}
    link, verifier = connects(faber, credo), connects(acme, credo)
    path = offers(faber, definition, link[0])
    takes(credo, link[1])
    faber.reaches(path, "Issued")
    shown = asks_credo(acme, credo, verifier, issued_by)
    assert shown["isValid"] is True, shown["checks"]

    faber.post("/tenants/webvhDid/rotation", {})
    credo.does("forget", did)
    shown = asks_credo(acme, credo, verifier, issued_by)
    assert shown["isValid"] is True, shown["checks"]
    eventually(lambda: has_rotated(faber), 120)
    credo.does("forget", did)
    shown = asks_credo(acme, credo, verifier, issued_by)
    assert shown["isValid"] is True, shown["checks"]

    faber.delete(path)
    eventually(lambda: any(one["isRevoked"] for one in credo.does("offers", link[1])))
    shown = asks_credo(acme, credo, verifier, issued_by, evenRevoked=True)
    assert shown["isValid"] is False


def test_credo_shows_the_twin_where_a_policy_names_the_definition(
    agency_on_web, acme, credo
):
    college = agency_on_web.organization("College")
    college.put("/tenants/webvhDid", {})
    own = college.defines(*VALUES, supportRevocation=True)["definitionId"]
    twin = college.post(f"/definitions/credentials/{own}/twin", {})["definitionId"]
    link, verifier = connects(college, credo), connects(acme, credo)
    path = offers(college, own, link[0])  # Credo takes the twin
    takes(credo, link[1])
    college.reaches(path, "Issued")
    either = {"credentialDefinitionId": own, "orTwin": True}
    shown = asks_credo(acme, credo, verifier, either)
    assert shown["isValid"] is True, shown["checks"]
    assert shown["proof"]["level"]["credentialDefinitionId"] == twin


def test_a_wallet_here_takes_the_credential_of_credo_and_proves_it_until_it_is_revoked(
    acme, credo, hosts
):
    made = credo.does("publish", CREDO_HOST, name="Degree", attributes=list(VALUES))
    hosts.pages = made["pages"]
    alice = acme.hosts("Alice")
    invited = credo.does("invite")
    ours = alice.accepts_invitation(invited["url"])["connectionId"]
    reaches(alice, f"/connections/{ours}", "Connected")
    theirs = eventually(lambda: credo.does("invited", invited["id"])["id"])
    terms = {"definitionId": made["definitionId"], "values": VALUES, "index": 1}
    offered = credo.does("offer", theirs, **terms)["id"]
    held = the_offer(alice)
    alice.post(f"/credentials/{held}")
    eventually(lambda: credo.does("credential", offered)["state"] == "request-received")
    credo.does("issue", offered)
    reaches(alice, f"/credentials/{held}", "Issued")

    assert proves(acme, alice, made["did"])["isValid"] is True
    credo.does("revoke", "1")
    hosts.pages = credo.does("pages")
    shown = proves(acme, alice, made["did"])
    assert shown["isValid"] is False


def proves(acme, alice, did):
    path = asks(acme, alice.known_as(acme), {"issuerDid": did})
    alice.put(f"/verifications/{the_request(alice)}/autoSelect")
    return acme.reaches(path, "Accepted")
