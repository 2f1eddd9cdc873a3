"""Ledgers that want more of an author: an agreement, a registration, a role."""

import io
import secrets

import pytest
from django.core.management import call_command
from indy_vdr import ledger

from credentials.models import Publication
from credentials.tasks import publish_on_ledgers
from tenants.lifecycle.networks import add_network
from tests.interop.test_ledger_faults import defines, made, time_passes
from tests.support.errors import assert_error, error_of
from tests.support.people import Organization
from tests.support.processes import eventually
from wallets import keys

TEXT, MECHANISMS = (
    "Write nothing personal.",
    {"service_agreement": "By contract.", "paper": "Ink."},
)
AGREEMENT, STATUS = "/common/networks/indy/txnAuthorAgreement", "/tenants/issuerStatus"
DAY = 86_400


@pytest.fixture
def faber(network, stored_keys):
    return Organization("Faber College", network_id=network.pk)


@pytest.fixture
def agree(indy_pool, endorser_seed):
    """Put an agreement in force and return its version.

    None is in force after the test.
    """

    def write():
        version = secrets.token_hex(4)
        indy_pool.as_trustee(
            ledger.build_acceptance_mechanisms_request, MECHANISMS, version
        )
        build = ledger.build_txn_author_agreement_request
        indy_pool.as_trustee(build, f"{TEXT} {version}", version, 20_000 * DAY)
        return version

    yield write
    indy_pool.as_trustee(ledger.build_disable_all_txn_author_agreements_request)


@pytest.fixture
def unendorsed(transactional_db, indy_pool, stored_keys):
    """The ledger as a network on which the agency has no DID."""
    return add_network("indy", "Indy", indy_pool.genesis.read_text())


def goes_on():
    """Waiting jobs are looked at, once: a validator may be a moment behind."""
    time_passes()
    publish_on_ledgers()
    return True


def test_nothing_is_written_before_the_agreement_is_accepted(faber, agree):
    version = agree()
    shown = {
        "text": f"{TEXT} {version}",
        "version": version,
        "acceptanceMethods": MECHANISMS,
    }
    assert faber.get(AGREEMENT) == shown
    assert faber.get(STATUS)["requireAcceptance"] is True
    assert_error(error_of(defines, faber), 409, "agreement_not_accepted")
    assert made() == [0, 0, 0]
    faber.put(AGREEMENT)
    status = faber.get(STATUS)
    assert status["requireAcceptance"] is False and status["acceptanceTime"]
    assert defines(faber) and made() == [1, 1, 1]


def test_a_newer_agreement_wants_to_be_accepted_anew(faber, agree):
    agree()
    faber.put(AGREEMENT)
    version = agree()
    assert faber.get(STATUS)["requireAcceptance"] is True
    assert_error(error_of(defines, faber), 409, "agreement_not_accepted")
    faber.put(f"/common/networks/{faber.tenant.public_id}/txnAuthorAgreement")
    assert faber.get(STATUS)["acceptanceVersion"] == version and defines(faber)


def test_the_agency_accepts_for_its_endorser_by_a_command(network, stored_keys, agree):
    version = agree()
    faber = Organization("Faber College", network_id=network.pk)
    status = faber.get(STATUS)
    assert (
        not status["issuerRegistered"] and "accept_agreement indy" in status["problem"]
    )
    out = io.StringIO()
    call_command("accept_agreement", "indy", yes=True, stdout=out)
    assert f"{TEXT} {version}" in out.getvalue()
    eventually(lambda: goes_on() and faber.get(STATUS)["issuerRegistered"])


def test_an_endorser_of_its_own_needs_none_of_the_agency(unendorsed, indy_pool):
    faber = Organization(
        "Faber", network_id="indy", seed=indy_pool.register("ENDORSER")
    )
    status = faber.get(STATUS)
    assert status["issuerRegistered"] and status["issuerCanEndorse"]
    assert defines(faber) and made() == [1, 1, 1]


def test_who_is_not_registered_yet_waits_for_somebody_who_does_it(
    unendorsed, indy_pool
):
    seed = secrets.token_bytes(32)
    faber = Organization("Faber", network_id="indy", seed=seed)
    status = faber.get(STATUS)
    assert not status["issuerRegistered"] and keys.verkey_of(seed) in status["problem"]
    assert_error(error_of(defines, faber), 409, "did_not_registered")
    indy_pool.register(None, seed)
    eventually(
        lambda: goes_on() and Publication.objects.get(kind="did").step == "published"
    )
    assert_error(error_of(defines, faber), 409, "not_endorsed")
    assert made() == [0, 0, 0]
    did = keys.did_of(keys.verkey_of(seed))
    indy_pool.as_trustee(ledger.build_nym_request, did, None, None, "ENDORSER")
    eventually(lambda: faber.get(STATUS)["issuerCanEndorse"])
    assert defines(faber)
