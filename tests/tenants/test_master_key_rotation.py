"""A new master key beside the old one, batch by batch, and the end of the old one."""

import os
from functools import partial
from threading import Event

import pytest
from cryptography.exceptions import InvalidTag
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError
from django.db import connection

from core.work import transactions
from tenants import master_key_rotation, vault
from tenants.lifecycle.provisioning import create_organization
from tenants.models import ApiKey, DataKey
from tests.support.commands import output_of
from tests.support.races import at_once, is_waited_for, wait_until
from wallets.models import Wallet


@pytest.fixture
def new_master_key(faber, settings):
    """As after the restart of all processes with both keys. Return the old one."""
    old = settings.MASTER_KEY
    use_keys(settings, os.urandom(32), old)
    return old


def use_keys(settings, master_key, old_master_key=None):
    settings.MASTER_KEY, settings.OLD_MASTER_KEY = master_key, old_master_key
    vault.forget_keys()


rotate = partial(output_of, "rotate_master_key")


def link_secret_of(organization):
    return Wallet.objects.get(tenant=organization.tenant).unseal_link_secret()


def wrapped_by():
    return set(DataKey.objects.values_list("master_key_id", flat=True))


def test_every_data_key_is_wrapped_by_the_new_key_and_stays_the_same(
    faber, acme, new_master_key, settings
):
    before = {row.pk: vault.unwrap_data_key(row) for row in DataKey.objects.all()}
    said = rotate()
    assert wrapped_by() == {vault.master_key_id()}
    use_keys(settings, settings.MASTER_KEY)  # the old one is no longer needed
    after = {row.pk: vault.unwrap_data_key(row) for row in DataKey.objects.all()}
    assert after == before and len(after) == 3
    assert "All 3 data keys" in said and "Remove AGENCY_OLD_MASTER_KEY" in said


def test_the_old_key_opens_nothing_afterwards(faber, new_master_key, settings):
    rotate()
    for row in DataKey.objects.all():
        for column in ("wrapped", "digest_key"):
            if blob := getattr(row, column):
                associated = vault.wrapping_data(row, column)
                with pytest.raises(InvalidTag):
                    vault.decrypt_bytes(new_master_key, bytes(blob), associated)
    use_keys(settings, new_master_key)
    with pytest.raises(ImproperlyConfigured, match="is not the key this database"):
        vault.check_master_key()


def test_what_is_sealed_opens_before_between_and_after(
    faber, acme, new_master_key, monkeypatch, settings
):
    found = link_secret_of(faber), link_secret_of(acme)
    monkeypatch.setattr(master_key_rotation, "BATCH_ROWS", 1)
    steps = [master_key_rotation.put_master_key_in_force]
    steps += [master_key_rotation.wrap_batch] * 2
    for step in steps:
        step()
        use_keys(settings, settings.MASTER_KEY, new_master_key)
        vault.check_master_key()
        assert (link_secret_of(faber), link_secret_of(acme)) == found
    assert master_key_rotation.wrap_batch() == 0


def test_an_interrupted_rotation_is_finished_by_the_next(
    faber, acme, new_master_key, monkeypatch
):
    monkeypatch.setattr(master_key_rotation, "BATCH_ROWS", 1)
    master_key_rotation.put_master_key_in_force()
    master_key_rotation.wrap_batch()
    assert len(wrapped_by()) == 2
    rotate()
    assert wrapped_by() == {vault.master_key_id()}
    assert "All 3 data keys" in rotate(), "and one more does no harm"


def test_a_rotation_has_no_key_in_a_statement_and_can_be_taken_back(
    faber, new_master_key, settings
):
    with connection.execute_wrapper(refuse_keys(new_master_key)):
        rotate()
    use_keys(settings, new_master_key, settings.MASTER_KEY)
    rotate()
    use_keys(settings, new_master_key)
    assert link_secret_of(faber)


def test_until_the_rotation_new_organizations_get_the_key_that_all_processes_know(
    faber, new_master_key, settings
):
    """A process that was not restarted yet knows the old one only."""
    made = create_organization("Acme").tenant
    use_keys(settings, new_master_key)
    vault.check_master_key()
    assert Wallet.objects.get(tenant=made).unseal_link_secret()


def test_an_organization_that_is_being_created_is_waited_for(faber, new_master_key):
    has_created, may_commit = Event(), Event()

    def create():
        with transactions.atomic():
            create_organization("Acme")
            has_created.set()
            wait_until(is_waited_for)
            may_commit.set()

    def switch():
        assert has_created.wait(20)
        master_key_rotation.put_master_key_in_force()
        return may_commit.is_set()

    assert at_once(create, switch)[1] is True
    rotate()
    assert wrapped_by() == {vault.master_key_id()}


def test_a_locked_data_key_is_skipped_and_done_later(faber, new_master_key):
    master_key_rotation.put_master_key_in_force()
    has_locked, may_end = Event(), Event()

    def hold():
        with transactions.atomic():
            DataKey.objects.select_for_update().get(tenant=faber.tenant)
            has_locked.set()
            assert may_end.wait(20)

    def wrap():
        assert has_locked.wait(20)
        wrapped = master_key_rotation.wrap_batch()
        may_end.set()
        return wrapped

    assert at_once(hold, wrap)[1] == 0
    assert master_key_rotation.wrap_batch() == 1


def test_keys_and_writes_of_before_are_recognized_under_the_new_master_key(
    faber, new_master_key, settings
):
    def write():
        once = {"Idempotency_Key": "once"}
        return faber.send("post", "/connections", {"name": "Alice"}, **once).json()

    first, digest = write(), vault.keyed_digest("a secret")
    # API keys of the former version have a keyed digest only.
    ApiKey.objects.update(sha256=None)
    rotate()
    use_keys(settings, settings.MASTER_KEY)
    assert vault.keyed_digest("a secret") == digest
    assert write() == first


def test_a_key_that_is_not_given_is_named_and_nothing_is_changed(faber, settings):
    before = wrapped_by()
    use_keys(settings, os.urandom(32))
    [needed] = before
    with pytest.raises(CommandError, match=needed):
        rotate()
    assert wrapped_by() == before


def test_a_check_says_that_the_old_key_is_needless(faber, new_master_key):
    database = {"tags": [checks.Tags.database], "databases": ["default"]}
    assert checks.run_checks(**database) == []
    rotate()
    assert [one.id for one in checks.run_checks(**database)] == ["agency.W012"]


def test_one_data_key_by_an_unknown_master_key_is_noticed(faber, acme, settings):
    """As after a restore of single rows."""
    row = DataKey.objects.get(tenant=acme.tenant)
    DataKey.objects.filter(pk=row.pk).update(master_key_id="f" * 16)
    with pytest.raises(ImproperlyConfigured, match="f" * 16):
        vault.check_master_key()
    # A changed data key is told from a wrong master key.
    row.wrapped = bytes(row.wrapped)[:-1] + bytes([bytes(row.wrapped)[-1] ^ 1])
    with pytest.raises(ImproperlyConfigured, match="Restore it from a backup"):
        vault.unwrap_data_key(row)


def refuse_keys(old):
    def wrapper(execute, sql, params, many, context):
        for value in params or ():
            assert value not in (old, vault.settings.MASTER_KEY)
        return execute(sql, params, many, context)

    return wrapper
