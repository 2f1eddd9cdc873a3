"""An organization makes so many definitions in a minute and in a day, and no more."""

from datetime import timedelta

import pytest
from django.utils import timezone

from credentials.models import CredentialDefinition
from tests.support.errors import assert_error, error_of
from tests.support.people import numbers
from wallets.models import SpareKey


@pytest.fixture(autouse=True)
def limits(settings):
    settings.DEFINITIONS_A_MINUTE, settings.DEFINITIONS_A_DAY = 2, 14


def define(organization, prefix=""):
    body = {"name": f"Rate {next(numbers)}", "version": "1", "attributes": ["a"]}
    return organization.send("post", f"{prefix}/definitions/credentials", body)


def test_more_in_a_minute_are_429_until_the_first_is_a_minute_old(faber, acme):
    made = [define(faber) for _ in range(2)]
    assert [one.status_code for one in made] == [200, 200]
    refused = define(faber)
    assert refused.status_code == 429
    assert refused.json()["code"] == "too_many_definitions"
    assert 50 <= int(refused["Retry-After"]) <= 60
    assert define(acme).status_code == 200
    CredentialDefinition.objects.update(
        created_at=timezone.now() - timedelta(seconds=61)
    )
    assert define(faber).status_code == 200


@pytest.mark.parametrize("prefix", ["/agency/v1", "/credentials/v1"])
def test_the_original_clients_may_make_six_times_as_many(faber, settings, prefix):
    settings.DEFINITIONS_A_MINUTE = 1
    made = [define(faber, prefix).status_code for _ in range(7)]
    assert made == [200] * 6 + [429]


def test_a_deleted_one_gives_none_back_and_a_refused_call_takes_none(faber, settings):
    settings.DEFINITIONS_A_DAY = 1
    error = error_of(faber.defines, "a", "A")
    assert_error(error, 400, "invalid_request")
    made = faber.defines("a")
    faber.delete(f"/definitions/credentials/{made['definitionId']}")
    CredentialDefinition.objects.update(created_at=timezone.now() - timedelta(hours=23))
    refused = define(faber)
    assert_error(error_of(faber.defines, "a"), 429, "too_many_definitions")
    assert 3500 < int(refused["Retry-After"]) <= 3600
    assert not SpareKey.objects.exists()


def test_0_is_no_limit(faber, settings):
    settings.DEFINITIONS_A_MINUTE = settings.DEFINITIONS_A_DAY = 0
    assert {define(faber).status_code for _ in range(4)} == {200}
