"""A verification is deleted while something else happens to it."""

import pytest

from agency.core import transactions
from connections.exchange import PARTIES
from tests.support.people import Organization
from verifications.models import Verification

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def requested(faber: Organization) -> Verification:
    """The verifier's row as another request has read it."""
    faber.asks(faber.hosts("Alice"), attributes=[{"policyName": "name"}])
    return Verification.objects.select_related(*PARTIES).get(role="verifier")


def rows():
    return Verification.objects.filter(role="verifier")


def test_one_that_the_prover_declined_meanwhile_is_deleted(requested):
    with transactions.atomic():
        Verification.objects.select_related(*PARTIES).get(role="prover").decline()
    assert rows().get().state == "Rejected" != requested.state
    requested.remove()
    assert not rows().exists()


def test_one_that_was_deleted_meanwhile_is_not_deleted_again(requested):
    rows().get().remove()
    requested.remove()
    assert not rows().exists()
    assert Verification.objects.get(role="prover").state == "Rejected"
