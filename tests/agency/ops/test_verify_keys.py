"""`manage.py verify_keys` opens everything, and names what does not open."""

import io

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.core.management import CommandError, call_command
from django.db import models

from agency.management.commands import verify_keys
from tenants import audit, sealed_columns, vault
from tenants.lifecycle.provisioning import remove_organization
from tenants.models import DataKey
from tenants.sealed_columns import NOT_SEALED, list_sealed_tables
from tests.factories import UserFactory
from tests.support.database import restored
from tests.support.people import Organization
from wallets.models import Key, Wallet


def verify():
    said = io.StringIO()
    call_command("verify_keys", stdout=said, stderr=io.StringIO())
    return said.getvalue()


def refusal():
    with pytest.raises(CommandError) as refused:
        verify()
    assert refused.value.returncode == 1
    return str(refused.value)


@restored
def story():
    """Values in many tables, second factors too."""
    faber = Organization("Faber College")
    alice, definition = faber.hosts("Alice"), faber.defines("name", "degree")
    alice.receives(faber, definition, {"name": "Alice", "degree": "Maths"})
    person = UserFactory()
    TOTP.activate(person, generate_totp_secret())
    RecoveryCodes.activate(person)
    return faber


def test_it_counts_what_opens(story, monkeypatch):
    *lines, last = verify().splitlines()
    pairs = (line.split() for line in lines)
    counts = {name: int(number.replace(",", "")) for number, name in pairs}
    assert counts["tenants_datakey"] == DataKey.objects.count()
    assert counts["wallets_wallet"] == Wallet.objects.count()
    assert counts["wallets_key"] == Key.objects.exclude(seed=None).count()
    assert counts["mfa_authenticator"] == Authenticator.objects.count() == 2
    sealed = {"credentials_credential", "credentials_credentialdefinition"}
    assert sealed <= set(counts)
    assert f"All {sum(counts.values()):,} values open." in last
    monkeypatch.setattr(sealed_columns, "BATCH_ROWS", 1)
    assert verify().splitlines() == [*lines, last], "in many batches"


def test_it_names_what_does_not_open_and_what_to_do(story):
    first, second = Wallet.objects.order_by("pk")
    Wallet.objects.filter(pk=second.pk).update(link_secret=first.link_secret)
    said = refusal()
    assert said.startswith("1 values do not open:\n- wallets_wallet: 1")
    assert f"link_secret of {second.pk}" in said
    assert "restore these rows from a backup" in said


def test_a_lost_data_key_closes_all_rows_of_its_organization(story):
    DataKey.objects.filter(tenant=story.tenant).delete()
    vault.forget_keys()
    said = refusal()
    assert "wallets_wallet: 2" in said
    assert "mfa_authenticator" not in said, "it is the system's"


def test_rows_of_a_deleted_organization_are_no_finding(story, acme):
    """Its data key is gone; a worker removes them later."""
    remove_organization(acme.tenant, by=audit.actor_of_command("test"))
    vault.data_key.cache_clear()
    assert Wallet._base_manager.filter(tenant=acme.tenant).exists()
    assert "values open" in verify()


def test_a_changed_second_factor_is_found(story):
    for row in Authenticator.objects.filter(type="totp"):
        row.data = {"secret": row.data["secret"][:-4] + "AAAA"}
        row.save()
    assert "mfa_authenticator: 1" in refusal()


def test_a_row_that_changes_or_goes_meanwhile_is_no_finding(story, monkeypatch):
    is_open, met = verify_keys.opens, []

    def opens(row, column):
        if isinstance(row, Wallet) and len(met) < 2:
            met.append(row.pk)
            row.link_secret = b"as it was before"
            if len(met) == 2:
                row.pk = row.id = DataKey.objects.first().pk  # nobody's any more
        return is_open(row, column)

    monkeypatch.setattr(verify_keys, "opens", opens)
    assert "values open" in verify() and len(met) == 2


def test_only_known_binary_columns_are_left_out():
    """A new binary column is taken for a sealed one."""
    tables = list_sealed_tables()
    listed = {f"{one.name}.{column}" for one in tables for column in one.columns}
    assert "webhooks_attempt.answer" in listed and len(listed) > 25
    assert not listed & set(NOT_SEALED)


def test_each_sealed_table_knows_its_organization(db):
    for table in list_sealed_tables():
        if lookup := table.tenant_lookup:
            list(table.model._base_manager.filter(**{lookup: None})[:1])
        else:
            assert table.model.tenant_id is None
        assert isinstance(table.list_rows(), models.QuerySet)
