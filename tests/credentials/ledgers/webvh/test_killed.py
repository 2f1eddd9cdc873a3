"""A process that publishes by a did:webvh is killed: all of it is there, or nothing."""

import contextlib

import pytest

from credentials.ledgers.webvh.ledger import WebvhLedger
from credentials.models import Credential, CredentialDefinition, WebvhResource
from tests.support.killed_worker import KilledClient
from tests.support.own_webvh import read_all, read_log

pytestmark = pytest.mark.slow
LEDGER = "credentials.ledgers.webvh.ledger.WebvhLedger"
OWN_DID = "credentials.ledgers.webvh.own_did"
VALUES = {"level": "7"}


@pytest.fixture
def killed(faber, storage):
    """A function: within it calls of Faber are killed after this."""

    @contextlib.contextmanager
    def kill(after):
        client = faber.client
        faber.client = KilledClient(
            after, STORAGE_ROOT=str(storage), REVOCATION_FIRST_REGISTRY_SIZE="8"
        )
        yield
        faber.client = client

    return kill


@pytest.mark.parametrize(
    "after",
    [
        f"{LEDGER}.publish_schema",
        f"{LEDGER}.publish_definition",
        f"{LEDGER}.publish_registry",
        f"{LEDGER}.publish_status_list",
    ],
)
def test_a_definition_is_published_whole_or_not(faber, killed, after):
    body = {"name": "Badge", "version": "1.0", "attributes": list(VALUES)}
    body["supportRevocation"] = True
    with killed(after):
        faber.send("post", "/definitions/credentials", body)
    assert not WebvhResource.objects.exists()
    assert not CredentialDefinition.objects.exists()
    faber.post("/definitions/credentials", body)
    assert read_all(faber) == 4


@pytest.mark.parametrize(
    "after", [f"{LEDGER}.publish_status_list", f"{OWN_DID}.replace_document"]
)
def test_a_revocation_is_published_by_the_next_call(faber, killed, after):
    """It is committed before the list, which is there whole or not."""
    badge = faber.defines(*VALUES, supportRevocation=True)
    faber.hosts().receives(faber, badge, VALUES)
    row = Credential.objects.get(role=Credential.Role.ISSUER)
    path, ledger = f"/credentials/{row.pk}", WebvhLedger(faber.tenant.network)
    place = row.revocation_registry_id, row.revocation_index
    before = read_all(faber)
    with killed(after):
        faber.send("delete", path)
    assert faber.get(path)["state"] == "Revoked" and not ledger.is_revoked(*place)
    assert read_all(faber) == before
    faber.delete(path)
    assert ledger.is_revoked(*place) and read_all(faber) == before + 1


@pytest.mark.parametrize("compromised", [False, True])
def test_a_rotation_has_an_entry_or_none(faber, killed, compromised):
    before = read_log(faber).versions
    body = {"compromised": compromised}
    with killed(f"{OWN_DID}.save"):
        faber.send("post", "/tenants/webvhDid/rotation", body)
    assert read_log(faber).versions == before
    faber.post("/tenants/webvhDid/rotation", body)
    assert read_log(faber).versions > before
