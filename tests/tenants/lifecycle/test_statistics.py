"""What an organization did on each day: from the kept counts and what changed since."""

from datetime import UTC, timedelta

import pytest
from django.utils import timezone

from credentials.models import Credential
from tenants.lifecycle import daily_usage, statistics
from tenants.models import DailyUsage
from tests.factories import DailyUsageFactory
from tests.support.database import restored
from tests.support.errors import assert_error, error_of
from tests.support.people import Organization
from verifications.models import Verification
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Alice", "year": "2026"}
NAME = [{"policyName": "name"}]
# In the order of the columns: offers, credentials, valid and invalid proofs.
DONE = (2, 1, 1, 1)


@restored
def busy():
    """Faber with two offers, one of them issued, and a valid and an invalid proof."""
    faber = Organization("Faber College")
    alice, definition = faber.hosts("Alice"), faber.defines(*VALUES)
    faber.asks(alice, attributes=NAME)
    alice.auto_selects()  # has none: the proof is not valid
    alice.receives(faber, definition, VALUES)
    faber.offers(alice, definition, VALUES)
    faber.asks(alice, attributes=NAME)
    alice.auto_selects()
    return faber


def counts(organization, days=7):
    own = Wallet.of_organization(organization.tenant)
    found = statistics.count_by_day(own, days, timezone.now())
    return [tuple(one)[1:] for one in found]


def total(organization):
    return sum(map(sum, counts(organization)))


def test_what_happened_is_counted_at_once(busy, acme):
    assert DONE in counts(busy)[-2:], "or it was midnight"
    assert (total(busy), total(acme)) == (sum(DONE), 0)


def test_the_kept_counts_are_the_same_and_outlive_what_they_count(busy):
    daily_usage.count_usage()
    [row] = DailyUsage.objects.filter(tenant=busy.tenant)
    kept = (row.offers, row.credentials, row.valid_proofs, row.invalid_proofs)
    assert kept == DONE
    assert total(busy) == sum(DONE), "nothing is counted twice"
    Credential.objects.all().delete()
    Verification.objects.all().delete()
    daily_usage.count_usage()
    assert total(busy) == sum(DONE)


def test_earlier_days_are_read_from_the_kept_counts_in_one_query(
    busy, acme, django_assert_num_queries
):
    day = timezone.now().astimezone(UTC).date() - timedelta(days=3)
    for organization, number in ((busy, 7), (acme, 99)):
        DailyUsageFactory(tenant=organization.tenant, day=day, offers=number)
    own = Wallet.of_organization(busy.tenant)
    with django_assert_num_queries(1):
        found = statistics.count_by_day(own, 7, timezone.now())
    assert len(found) == 7 and found[3][1:] == (7, 0, 0, 0)
    assert len(counts(busy, days=30)) == 30


def test_of_a_busy_day_the_last_changes_are_read_and_the_kept_count_counts(
    busy, monkeypatch
):
    monkeypatch.setattr(statistics, "MAX_CHANGED", 1)
    assert total(busy) < sum(DONE)
    daily_usage.count_usage()
    assert total(busy) == sum(DONE)


def test_the_api_answers_the_days_oldest_first(busy):
    found = busy.get("/statistics")
    assert len(found) == 30
    assert [one["day"] for one in found] == sorted(one["day"] for one in found)
    names = ("offers", "issued", "validProofs", "invalidProofs")
    assert tuple(sum(one[name] for one in found) for name in names) == DONE
    assert len(busy.get("/statistics?days=1")) == 1
    assert len(busy.get(f"/statistics?days={statistics.MAX_DAYS}")) == 90


def test_the_days_are_bounded(faber):
    for days in ("0", "91", "week", "-1"):
        error = error_of(faber.get, f"/statistics?days={days}")
        assert_error(error, 400, "invalid_request")


def offers_of(organization, days=7):
    own = Wallet.of_organization(organization.tenant)
    return tuple(statistics.count_offers(own, days, timezone.now())[0])


def test_offers_are_counted_with_what_became_of_them(
    busy, acme, django_assert_num_queries
):
    assert (offers_of(busy), offers_of(acme)) == (
        (2, 1, 1, 1, False),
        (0, 0, 0, 0, False),
    )
    own = Wallet.of_organization(busy.tenant)
    with django_assert_num_queries(1):
        statistics.count_offers(own, 30, timezone.now())
    issued = Credential.objects.filter(role="issuer", state="Issued")
    issued.update(state="Rejected", issued_at=None)
    assert offers_of(busy) == (2, 1, 0, 1, False)


def test_of_many_offers_the_newest_are_counted(busy, monkeypatch):
    monkeypatch.setattr(statistics, "MAX_CHANGED", 1)
    assert offers_of(busy) == (1, 0, 0, 1, True), "the newest is not accepted yet"
