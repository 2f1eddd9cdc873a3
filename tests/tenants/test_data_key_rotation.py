"""New data keys: every sealed value is sealed again, batch by batch, under load."""

from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from itertools import product
from threading import Event
from uuid import UUID

import psycopg
import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from cryptography.exceptions import InvalidTag
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError
from django.db import connection, transaction
from django.utils import timezone

from tenants import data_key_rotation as rotation
from tenants import master_key_rotation, tasks, vault
from tenants.audit import actor_of_command
from tenants.lifecycle.provisioning import remove_organization
from tenants.models import DataKey, FormerDataKey
from tenants.sealed_columns import list_sealed_tables
from tests.factories import UserFactory
from tests.support.commands import output_of
from tests.support.database import restored
from tests.support.people import Organization
from tests.support.races import at_once
from verifications.models import VerificationPolicy
from wallets.models import Key, Wallet

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """One process, which asks the database each time."""
    monkeypatch.setattr(vault, "NEWEST_SECONDS", 0.0)
    monkeypatch.setattr(rotation, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(rotation, "LOCKED_SECONDS", 0.01)


@restored
def organizations():
    """Two organizations with values in some tables, and second factors."""
    organizations = Organization("Faber College"), Organization("Acme Corp")
    for one in organizations:
        one.hosts("Alice").meets(one)
    person = UserFactory()
    TOTP.activate(person, generate_totp_secret())
    RecoveryCodes.activate(person)
    return organizations


@pytest.fixture
def story(organizations):
    return organizations[0]


@pytest.fixture
def acme(organizations):
    return organizations[1]


rotate = partial(output_of, "rotate_data_keys")
verify = partial(output_of, "verify_keys")


def sealed_values():
    """The table, row and column of each."""
    for table in list_sealed_tables():
        for row, column in product(table.list_rows(), table.columns):
            if getattr(row, column) is not None:
                yield table, row, column


def headers(tenant_id):
    """The headers of all sealed values of an organization, or of the system."""
    return {
        vault.header_of(vault.generation_of(bytes(getattr(row, column))))
        for _, row, column in sealed_values()
        if row.tenant_id == tenant_id
    }


def everything():
    """What is sealed, by its place."""
    return {
        (table.name, row.pk, column): vault.unseal(row, column)
        for table, row, column in sealed_values()
    }


FIRST, SECOND = vault.header_of(1), vault.header_of(2)


def test_one_organization_is_sealed_again_and_no_other(story, acme):
    before, keys = everything(), vault.data_key(story.tenant.pk)
    assert "1 data keys were replaced" in rotate(str(story.tenant.public_id))
    assert headers(story.tenant.pk) == {SECOND}
    assert headers(acme.tenant.pk) == {FIRST}
    assert everything() == before
    assert vault.data_key(story.tenant.pk, 2) != keys
    verify()


@contextmanager
def another_session(name):
    """A session of the same role, as another program has it."""
    with psycopg.connect(
        **connection.get_connection_params() | {"application_name": name}
    ) as session:
        yield session.info.backend_pid


def test_nothing_is_rotated_beside_processes_of_the_first_release(story):
    with another_session("") as pid:
        with pytest.raises(CommandError, match=r"0\.1\.0.*--force") as raised:
            rotate(str(story.tenant.public_id))
        assert f"(pid {pid})" in str(raised.value)
        assert headers(story.tenant.pk) == {FIRST}
        rotate(str(story.tenant.public_id), "--force")
    assert headers(story.tenant.pk) == {SECOND}


def test_sessions_of_this_release_and_of_operators_do_not_matter(story):
    names = ("psql", "agency/9.9.9", "agency/9.9.9 mine")
    with ExitStack() as sessions:
        for name in names:
            sessions.enter_context(another_session(name))
        rotate(str(story.tenant.public_id))
    assert headers(story.tenant.pk) == {SECOND}


def test_all_are_sealed_again_the_system_too(story, acme):
    """In all tables: also those of a credential and a proof."""
    alice, definition = story.hosts("Ann"), story.defines("name", "degree")
    alice.receives(story, definition, {"name": "Alice", "degree": "Maths"})
    story.asks(alice, attributes=[{"policyName": "name"}])
    alice.auto_selects()
    before, factor = everything(), factor_secret()
    rotate("--older-than", "0")
    for tenant_id in (story.tenant.pk, acme.tenant.pk):
        assert headers(tenant_id) == {SECOND}
    totp, codes = Authenticator.objects.order_by("-type")
    for text in (totp.data["secret"], codes.data["seed"]):
        assert vault.decode_text(text).startswith(SECOND)
    assert factor_secret() == factor
    assert everything() == before
    verify()


def factor_secret():
    totp = Authenticator.objects.get(type="totp")
    return vault.unseal_text(totp.data["secret"], "second factor")


def test_the_former_data_key_opens_nothing_that_is_new_nor_the_other_way(story):
    former = vault.data_key(story.tenant.pk)
    rotate(str(story.tenant.public_id))
    wallet = Wallet.objects.filter(tenant=story.tenant).first()
    with pytest.raises(InvalidTag):
        vault.unseal_bytes(wallet, "link_secret", former)
    # A value does not open as one of another generation.
    blob = bytes(wallet.link_secret)
    wallet.link_secret = FIRST + blob[len(SECOND) :]
    with pytest.raises(InvalidTag):
        vault.unseal(wallet, "link_secret")


def test_an_interrupted_rotation_is_continued_and_a_third_one_follows(
    story, monkeypatch
):
    before = everything()
    monkeypatch.setattr(rotation, "BATCH_ROWS", 1)

    def interrupt(number):
        raise KeyboardInterrupt

    rotation.create_next_data_key(story.tenant.pk)
    with pytest.raises(KeyboardInterrupt):
        rotation.reseal_values(story.tenant.pk, interrupt)
    assert headers(story.tenant.pk) == {FIRST, SECOND}
    assert everything() == before, "both open"
    rotate(str(story.tenant.public_id))
    assert headers(story.tenant.pk) == {SECOND}
    rotate(str(story.tenant.public_id))
    assert headers(story.tenant.pk) == {vault.header_of(3)}
    assert everything() == before


def test_without_a_name_what_is_unfinished_is_continued_and_what_is_new_is_left(
    story, acme
):
    rotation.create_next_data_key(story.tenant.pk)
    rotate()
    assert headers(story.tenant.pk) == {SECOND}
    assert headers(acme.tenant.pk) == {FIRST}
    assert "0 data keys were replaced" in rotate()


def test_two_commands_at_once_make_one_generation(story):
    tenant_id = story.tenant.pk
    at_once(*[lambda: rotation.create_next_data_key(tenant_id)] * 3)
    assert DataKey.objects.get(tenant=tenant_id).generation == 2
    assert FormerDataKey.objects.count() == 1


def test_a_locked_row_is_sealed_again_later(story):
    wallet = Wallet.objects.filter(tenant=story.tenant).first()
    rotation.create_next_data_key(story.tenant.pk)
    has_locked, may_end = Event(), Event()

    def hold():
        with transaction.atomic():
            Wallet.objects.select_for_update().get(pk=wallet.pk)
            has_locked.set()
            assert may_end.wait(20)

    def reseal():
        assert has_locked.wait(20)
        return rotation.reseal_values(
            story.tenant.pk, lambda number: may_end.set() if not number else None
        )

    assert at_once(hold, reseal)[1] == 0
    assert headers(story.tenant.pk) == {SECOND}


def test_a_process_that_stood_still_loses_nothing(story):
    """It has sealed a value before the rotation, and writes it a long time after."""
    wallet = Wallet.objects.filter(tenant=story.tenant).first()
    late, secret = bytes(wallet.link_secret), wallet.unseal_link_secret()
    rotate(str(story.tenant.public_id))
    Wallet.objects.filter(pk=wallet.pk).update(link_secret=late)
    wallet.refresh_from_db()
    assert wallet.unseal_link_secret() == secret
    FormerDataKey.objects.update(retired_at=timezone.now() - DAY)
    tasks.delete_retired_data_keys()
    assert not FormerDataKey.objects.exists()
    vault.forget_keys()
    wallet.refresh_from_db()
    assert bytes(wallet.link_secret).startswith(SECOND)
    assert wallet.unseal_link_secret() == secret


def test_former_data_keys_are_deleted_a_day_later_the_systems_with_the_events(
    story, settings
):
    settings.EVENT_RETENTION_DAYS = 30
    rotate("--older-than", "0")
    former = FormerDataKey.objects.all()
    assert former.count() == 3
    tasks.delete_retired_data_keys()
    assert former.count() == 3
    former.update(retired_at=timezone.now() - DAY)
    tasks.delete_retired_data_keys()
    assert [row.tenant_id for row in former] == [None]
    former.update(retired_at=timezone.now() - 30 * DAY)
    tasks.delete_retired_data_keys()
    assert not former.exists()
    vault.forget_keys()
    verify()


def test_a_cursor_from_before_continues_the_feed(story):
    first, *following = story.get("/events", after="start")
    rotate("system")
    vault.forget_keys()
    found = story.get("/events", after=first["cursor"])
    assert [one["eventId"] for one in found] == [one["eventId"] for one in following]
    assert found[0]["cursor"] != following[0]["cursor"], "of the new data key"


def test_a_value_that_does_not_open_keeps_its_data_key_and_is_told(story):
    first, second = Key.objects.filter(tenant=story.tenant).exclude(seed=None)[:2]
    Key.objects.filter(pk=second.pk).update(seed=first.seed)
    with pytest.raises(CommandError, match="1 rows do not open.*verify_keys"):
        rotate(str(story.tenant.public_id))
    [former] = FormerDataKey.objects.all()
    assert former.retired_at is None
    FormerDataKey.objects.update(retired_at=timezone.now() - DAY)
    tasks.delete_retired_data_keys()
    assert FormerDataKey.objects.exists(), "whoever repairs the row needs it"


def test_a_new_master_key_wraps_former_data_keys_too(story, settings):
    rotation.create_next_data_key(story.tenant.pk)
    before = everything()
    settings.MASTER_KEY, settings.OLD_MASTER_KEY = bytes(32), settings.MASTER_KEY
    output_of("rotate_master_key")
    settings.OLD_MASTER_KEY = None
    vault.forget_keys()
    vault.check_master_key()
    assert everything() == before
    assert len(master_key_rotation.count_by_master_key()) == 1
    FormerDataKey.objects.update(master_key_id="f" * 16)
    with pytest.raises(ImproperlyConfigured, match="f" * 16):
        vault.check_master_key()


def test_an_organization_that_is_deleted_meanwhile_is_no_failure(story):
    tenant_id = story.tenant.pk
    rotation.create_next_data_key(tenant_id)

    def delete(number):
        if DataKey.objects.filter(tenant=tenant_id).exists():
            remove_organization(story.tenant, by=actor_of_command("test"))
            vault.forget_keys()

    assert rotation.reseal_values(tenant_id, delete) == 0
    assert not FormerDataKey.objects.exists(), "what is sealed is gone for good"
    rotation.create_next_data_key(tenant_id)
    assert rotation.reseal_values(tenant_id) == 0


def test_nobody_of_that_name(transactional_db):
    for name in ("x", str(UUID(int=7))):
        with pytest.raises(CommandError, match=f"There is no organization {name}"):
            rotate(name)


def test_a_process_seals_with_the_new_key_after_its_time(story, monkeypatch):
    monkeypatch.setattr(vault, "NEWEST_SECONDS", 3600.0)
    policy = VerificationPolicy(tenant=story.tenant)
    assert vault.sealed_value(policy, "body", {}).startswith(FIRST)
    rotation.create_next_data_key(story.tenant.pk)
    assert vault.sealed_value(policy, "body", {}).startswith(FIRST)
    vault._newest[story.tenant.pk] = (1, 0.0)  # an hour later
    assert vault.sealed_value(policy, "body", {}).startswith(SECOND)
