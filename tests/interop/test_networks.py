"""Organizations that anchor what they issue on an Indy ledger, through the API."""

import os
import subprocess
import sys
from base64 import b64encode

import pytest
from django.conf import settings

from credentials.ledgers.indy import pool
from credentials.ledgers.local import published_body
from credentials.models import PublishedObject
from tests.support.ledger_networks import add_network
from tests.support.people import Organization
from tests.support.processes import database_of_test

VALUES = {"Full Name": "Alice", "level": "7"}
NOW = {
    "attributes": [{"policyName": "level"}],
    "revocationRequirement": {"validNow": True},
}


@pytest.fixture
def faber(network, stored_keys):
    return Organization("Faber College", network_id=network.pk)


def beside(environment):
    """The environment of a process on the database of the test."""
    return os.environ | {"DATABASE_URL": database_of_test()} | environment


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


def test_what_is_not_at_hand_is_read_while_no_transaction_is_open(faber, monkeypatch):
    definition, alice = faber.defines(*VALUES, supportRevocation=True), faber.hosts()
    alice.receives(faber, definition, VALUES)
    asked, send = [], pool.send
    monkeypatch.setattr(
        pool, "send", lambda *given: asked.append(given) or send(*given)
    )
    PublishedObject.objects.all().delete()
    published_body.cache_clear()
    assert verdict(faber, alice) is True
    assert len(asked) >= 5, (
        "the schema, the definition and what it names, the registry, its lists"
    )
    assert set(PublishedObject.objects.values_list("kind", flat=True)) == {
        "schema",
        "definition",
        "registry",
    }


def test_the_command_says_how_the_ledger_stands_to_the_endorser(
    transactional_db, indy_pool, monkeypatch
):
    answers = {
        "ENDORSER": "The ledger answers.\n",
        "STEWARD": "is no endorser",
        None: "is no",
    }
    for role, said in answers.items():
        monkeypatch.setenv(
            "ENDORSER_SEED", b64encode(indy_pool.register(role)).decode()
        )
        assert said in add_network("--genesis", str(indy_pool.genesis), "--endorser")


@pytest.mark.parametrize("is_there", [True, False])
def test_a_process_that_asked_a_ledger_ends_well(network, indy_pool, is_there):
    genesis = (
        indy_pool.genesis
        if is_there
        else settings.BASE_DIR / "tests/fixtures/indy_genesis.txt"
    )
    command = ["manage.py", "add_network", "--id", "other", "--genesis", str(genesis)]
    done = subprocess.run(
        [sys.executable, *command],
        env=beside({"LEDGER_TIMEOUT": "2"}),
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert ("The ledger answers." in done.stdout) is is_there
