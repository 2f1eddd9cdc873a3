"""Organizations that anchor what they issue on an Indy ledger, through the API."""

from base64 import b64encode

import pytest

from tests.people import ApiError, Organization
from tests.tenants.test_add_network import add_network

VALUES = {"Full Name": "Alice", "level": "7"}
NOW = {
    "attributes": [{"policyName": "level"}],
    "revocationRequirement": {"validNow": True},
}


@pytest.fixture
def faber(network, stored_keys):
    return Organization("Faber College", network_id=network.pk)


def refused(call, *arguments, **named):
    """(status, code)"""
    with pytest.raises(ApiError) as error:
        call(*arguments, **named)
    return error.value.status, error.value.code


def verdict(organization, holder):
    asked = organization.asks(holder, **NOW)
    holder.auto_selects()
    return organization.get(f"/verifications/{asked['verificationId']}")["isValid"]


def test_a_credential_is_issued_proven_and_revoked(faber):
    definition = faber.defines(*VALUES, supportRevocation=True)
    alice = faber.hosts()
    alice.receives(faber, definition, VALUES)
    assert verdict(faber, alice) is True
    [credential] = faber.get("/credentials")
    faber.delete(f"/credentials/{credential['credentialId']}")
    assert alice.newest("credentials")["state"] == "Revoked"
    assert verdict(faber, alice) is False


def test_the_command_says_how_the_ledger_stands_to_the_endorser(
    transactional_db, indy_pool, monkeypatch
):
    for role, said in (("ENDORSER", "The ledger answers.\n"), (None, "knows no role")):
        monkeypatch.setenv("ENDORSER_SEED", b64encode(indy_pool.register(role)).decode())
        assert said in add_network("--genesis", str(indy_pool.genesis), "--endorser")
