"""Callers are kept in a process, and yet never out of date."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.api import caller_cache
from tenants.models import ApiKey, Network, Tenant
from wallets.models import Wallet

Kind = ApiKey.Kind
# Changes of rows that a caller consists of. They set no `updated_at`.
CHANGES = {
    "name": lambda tenant: Tenant.objects.filter(pk=tenant.pk).update(name="Changed"),
    "network": lambda _: Network.objects.update(name="Changed"),
    "wallet": lambda _: Wallet.objects.update(owner_name="Changed"),
    "key": lambda tenant: tenant.keys.update(name="Changed"),
}
ENDS = {
    "revoked": lambda keys: keys.first().revoke(),
    "expired": lambda keys: keys.update(expires_at=timezone.now()),
    "deleted": lambda keys: keys.all().delete(),
    "with its organization": lambda keys: keys.first().tenant.delete(),
}


@pytest.fixture(autouse=True)
def nobody_called_before():
    caller_cache._known.clear()


def secrets_of(organization):
    made = organization.made
    key = made.subscription_key
    return {Kind.ACCESS_TOKEN: made.access_token, Kind.SUBSCRIPTION_KEY: key}


def read(caller):
    tenant = caller.tenant
    return (
        tenant.name,
        tenant.network.name,
        caller.wallet.owner_name,
        caller.token.name,
    )


def test_a_known_caller_costs_one_statement(faber):
    secrets = secrets_of(faber)
    first = caller_cache.find_caller(secrets)
    with CaptureQueriesContext(connection) as captured:
        caller = caller_cache.find_caller(secrets)
        assert caller.wallet.tenant is caller.tenant is caller.token.tenant
        assert caller.tenant.network.pk == first.tenant.network_id
    assert len(captured) == 1, captured.captured_queries
    assert caller == first and read(caller) == read(first)


def test_a_change_of_any_row_is_seen_by_the_next_request(faber):
    secrets = secrets_of(faber)
    for number, change in enumerate(CHANGES.values()):
        assert read(caller_cache.find_caller(secrets)).count("Changed") == number
        assert change(faber.tenant)
        assert read(caller_cache.find_caller(secrets)).count("Changed") == number + 1


def test_two_changes_in_one_transaction_are_seen_both(faber):
    """They have the same xmin, so the place of the tuple is compared too."""
    secrets = secrets_of(faber)
    rows = Tenant.objects.filter(pk=faber.tenant.pk)
    with transaction.atomic():
        for name in ("First", "Second"):
            rows.update(name=name)
            assert caller_cache.find_caller(secrets).tenant.name == name


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("kind", [Kind.ACCESS_TOKEN, Kind.SUBSCRIPTION_KEY])
def test_a_key_that_ended_is_refused_by_the_next_request(faber, how, kind):
    secrets = secrets_of(faber)
    assert caller_cache.find_caller(secrets)
    ENDS[how](ApiKey.objects.filter(tenant=faber.tenant, kind=kind))
    assert caller_cache.find_caller(secrets) is None


def test_a_key_expires_although_its_row_stays_as_it_is(faber, monkeypatch):
    secrets, now = secrets_of(faber), timezone.now()
    faber.tenant.keys.update(expires_at=now + timedelta(minutes=5))
    assert caller_cache.find_caller(secrets)
    monkeypatch.setattr(timezone, "now", lambda: now + timedelta(minutes=6))
    assert caller_cache.find_caller(secrets) is None


def test_a_change_while_the_rows_are_read_is_seen_by_the_next_request(
    faber, monkeypatch
):
    secrets, load = secrets_of(faber), caller_cache.load_caller

    def change_after_loading(given):
        found = load(given)
        CHANGES["name"](faber.tenant)
        return found

    monkeypatch.setattr(caller_cache, "load_caller", change_after_loading)
    caller_cache.find_caller(secrets)
    monkeypatch.setattr(caller_cache, "load_caller", load)
    assert caller_cache.find_caller(secrets).tenant.name == "Changed"


def test_each_request_has_rows_of_its_own(faber):
    secrets = secrets_of(faber)
    name = faber.tenant.name
    for _ in range(3):
        caller = caller_cache.find_caller(secrets)
        assert (caller.tenant.name, caller.tenant.network.name != "") == (name, True)
        caller.tenant.name = caller.tenant.network.name = ""


def test_keys_of_two_organizations_are_refused_though_each_is_known(faber, acme):
    ours, theirs = secrets_of(faber), secrets_of(acme)
    assert caller_cache.find_caller(ours) and caller_cache.find_caller(theirs)
    mixed = ours | {Kind.SUBSCRIPTION_KEY: theirs[Kind.SUBSCRIPTION_KEY]}
    assert caller_cache.find_caller(mixed) is None
    token_alone = {Kind.ACCESS_TOKEN: ours[Kind.ACCESS_TOKEN]}
    assert caller_cache.find_caller(token_alone).tenant == faber.tenant


def test_the_last_callers_are_kept(faber, acme, monkeypatch):
    monkeypatch.setattr(caller_cache, "MAX_CALLERS", 1)
    for organization in (faber, acme, faber):
        caller = caller_cache.find_caller(secrets_of(organization))
        assert caller.tenant == organization.tenant
        assert len(caller_cache._known) == 1


KINDS = ("connection", "credential", "verification")


def paths_of(world, side):
    """The paths of objects of Faber (0), or of Alice in the wallet API (1)."""
    prefix = ("", world.alice.prefix)[side]
    return {kind: f"{prefix}/{kind}s/{getattr(world, kind)[side]}" for kind in KINDS}


@pytest.mark.parametrize("side", [0, 1])
def test_one_object_is_read_with_two_statements(world, side):
    """One for the proof of the caller, one for the row in its scope."""
    world.faber.get("/connections")  # stores the use of the key
    for name, path in paths_of(world, side).items():
        world.faber.get(path)
        with CaptureQueriesContext(connection) as captured:
            world.faber.get(path)
        statements = [query["sql"] for query in captured]
        assert len(statements) == 2, (name, *statements)


def test_an_object_of_another_wallet_or_none_is_not_found(world):
    hers = world.alice.wallet_id
    bob = world.faber.hosts("Bob")
    for kind, path in paths_of(world, 1).items():
        for caller, wrong, what in [
            (world.faber, path.replace(hers, bob.wallet_id), kind),
            (world.faber, path + "x", kind),
            (world.faber, path.replace(hers, "nobody"), "wallet"),
            (world.acme, path, "wallet"),
        ]:
            response = caller.send("get", wrong)
            assert response.status_code == 404
            assert f"There is no {what} with the id" in response.json()["message"]
