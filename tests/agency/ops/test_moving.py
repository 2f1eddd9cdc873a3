"""An organization moves: everything works elsewhere, and what is refused, and why."""

import base64
import json
import os
import re
import time
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from agency.holders.wallet import links
from agency.ops.moving import EXIT_CODES, MoveRefused, header, importing
from agency.ops.moving.tables import CLOSING, HELD, LEFT_BEHIND, PARTS, model_of
from connections.messaging import outbox
from connections.messaging.outbox import HostedMessage
from connections.models import Connection, OutboundMessage
from core.work import transactions
from credentials import retention
from credentials.ledgers import published
from credentials.ledgers.webvh import served_logs
from credentials.ledgers.webvh.log import check_log
from credentials.models import PublishedObject, StatusList, WebvhDid
from tenants import audit, sealed_columns, vault
from tenants.lifecycle import freezing
from tenants.lifecycle.provisioning import remove_organization
from tenants.models import ApiKey, AuditEntry, DataKey, Erasure, Network, Tenant
from tenants.models import Provider as Account
from tests.factories import (
    AttemptFactory,
    NetworkFactory,
    StatusListFactory,
    UserFactory,
)
from tests.support import database
from tests.support.aging import age
from tests.support.database import Template
from tests.support.days import id_in, later
from tests.support.erasing import worker_erases
from tests.support.errors import assert_error
from tests.support.move_files import MoveFile
from tests.support.openid_wallet import OpenIdWallet
from tests.support.outside_agent import Agent
from tests.support.own_webvh import (
    at_public_host,
    fetch,
    on_webvh,
    read_all,
    read_log,
    read_resource,
)
from tests.support.paths import ROOT
from tests.support.people import Organization, Provider
from tests.support.pictures import picture, storage, uploads
from tests.tenants.lifecycle.test_erasure import rows_with
from wallets.jose import status_token
from wallets.models import Key, Wallet
from webhooks.delivery import days_of_calls
from webhooks.events.types import Type
from webhooks.models import Attempt, Delivery, Event

# Fixtures: days that pass, and files of each test in a folder of their own.
__all__ = ["later", "storage"]
pytestmark = pytest.mark.django_db(transaction=True)
ASKED = {"policyName": "who", "attributeNames": ["name"]}
BOB = "post", "/api/wallets", {"ownerName": "Bob"}
BOB_KEY = {"Idempotency-Key": "bob-1"}
POLICY = {"name": "Policy", "version": "1.0", "attributes": [ASKED]}


def new_key():
    return base64.b64encode(os.urandom(32)).decode()


MOVE_KEY, NEXT_MASTER_KEY = new_key(), os.urandom(32)


@pytest.fixture(autouse=True)
def move_key(settings, monkeypatch):
    """A key for the files. Nobody else is at work, so nothing waits."""
    settings.AGENCY_MOVE_KEY = MOVE_KEY
    monkeypatch.setattr(freezing, "MARGIN_SECONDS", -settings.LEDGER_TIMEOUT)
    monkeypatch.setattr(freezing, "POLL_SECONDS", 0)
    monkeypatch.setattr("core.work.retention.PAUSE_SECONDS", 0)
    monkeypatch.setattr(transactions, "count_older", lambda moment: 0)


def make_college():
    """Faber with a picture, a webhook, and Alice with a credential."""
    faber = Organization("Faber College")
    webhook = {"url": "https://faber.example", "type": "Zapier"}
    faber.post("/webhooks", webhook | {"messageTypes": [str(one) for one in Type]})
    faber.definition = faber.defines("name", "year", supportRevocation=True)
    faber.alice = faber.hosts()
    faber.alice.receives(faber, faber.definition, {"name": "Alice", "year": "7"})
    stored = faber.post("/verificationPolicies", POLICY)["policyId"]
    faber.post("/kiosks", {"name": "Desk", "policyId": stored})
    assert uploads(faber, picture()).status_code == 200
    return faber


def make_with_files():
    faber = make_college()
    faber.files, faber.rows = read_files(), rows_of(faber)
    return faber


def read_files():
    folder = Path(default_storage.location)
    return {path.relative_to(folder): path.read_bytes() for path in folder.glob("*/*")}


def make_exported():
    """Faber, frozen, and the content of its file."""
    faber = make_with_files()
    file = Path(default_storage.location) / "faber"
    exports(faber, file, "--move")
    faber.exported = file.read_bytes()
    return faber


def make_settled():
    """Faber, which has moved here, what was there before, and what the import said."""
    faber = make_with_files()
    for name in ("olivia", "oscar"):
        user = UserFactory(username=name)
        faber.tenant.memberships.create(user=user, role="operator")
    wallet = Wallet.objects.get(wallet_id=faber.alice.wallet_id)
    links.create_link(wallet, by=audit.SYSTEM)
    faber.bob = faber.send(*BOB, **BOB_KEY).json()
    faber.held = faber.alice.get("/credentials")
    faber.events = faber.get("/events", after="start")
    faber.hints = set(ApiKey.live().values_list("hint", flat=True))
    faber.rows, faber.files_before = rows_of(faber), faber.files
    file = Path(default_storage.location) / "faber"
    exports(faber, file, "--move")
    database.clear()
    for path in faber.files:
        (file.parent / path).unlink()
    user = UserFactory(email="olivia@faber.example")
    user.emailaddress_set.create(email=user.email, verified=True)
    vault.forget_keys()
    with override_settings(MASTER_KEY=NEXT_MASTER_KEY):
        faber.said, faber.files = imports(file), read_files()
    return faber


restore_college, restore_exported, restore_settled = map(
    Template, (make_with_files, make_exported, make_settled)
)


@pytest.fixture
def restores(transactional_db, stored_keys, settings, storage):
    """Call it with a template to get its rows and files."""
    settings.REVOCATION_FIRST_REGISTRY_SIZE = settings.REVOCATION_REGISTRY_SIZE = 4

    def restore(template):
        faber = template()
        for path, content in faber.files.items():
            (storage / path).parent.mkdir(exist_ok=True)
            (storage / path).write_bytes(content)
        return faber

    yield restore
    vault.forget_keys()


@pytest.fixture
def college(restores):
    return restores(restore_college)


@pytest.fixture
def exported(restores, file):
    """The college, which has been exported to the file."""
    faber = restores(restore_exported)
    file.write_bytes(faber.exported)
    return faber


@pytest.fixture
def settled(restores, settings):
    """The college, which has come from another installation."""
    faber = restores(restore_settled)
    settings.MASTER_KEY = NEXT_MASTER_KEY
    vault.forget_keys()
    return faber


@pytest.fixture
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("files") / "faber"


def said_by(*command):
    out = StringIO()
    call_command(*map(str, command), stdout=out, stderr=out)
    return out.getvalue()


def exports(organization, *given):
    """given: the file, and options."""
    return said_by("export_organization", organization.tenant.public_id, *given)


def imports(file, *options):
    return said_by("import_organization", file, *options)


def refused(code, file, *options):
    with pytest.raises(MoveRefused) as raised:
        imports(file, *options)
    assert (raised.value.code, raised.value.returncode) == (code, EXIT_CODES[code])
    return str(raised.value)


@pytest.fixture
def leaves(settings):
    """Call it to go to another installation: empty, with another master key."""

    def leave():
        database.clear()
        settings.MASTER_KEY = NEXT_MASTER_KEY
        vault.forget_keys()

    yield leave
    vault.forget_keys()


@pytest.fixture
def moved(exported, file, leaves):
    """The file of an organization that has left its installation for another one."""
    leaves()
    return file


@pytest.fixture
def dies_in(monkeypatch):
    """Imports so many batches of two rows of a file, and ends as a killed process."""

    def run(file, batches):
        left = iter(range(batches - 1))

        def end(name):
            if name == "inside_import" and next(left, None) is None:
                raise Interrupted

        with monkeypatch.context() as patched, pytest.raises(Interrupted):
            patched.setattr(importing, "BATCH_ROWS", 2)
            patched.setattr(importing.faults, "fault_point", end)
            imports(file)

    return run


class Interrupted(Exception):
    pass


def end_lease():
    past = timezone.now() - timedelta(seconds=1)
    assert Erasure.objects.filter(kind="import").update(lease_until=past) == 1


def rows_left(organization):
    return rows_with("tenant", organization.tenant.pk)


def rows_of(organization):
    """The rows that move, by table, without what each installation has of its own."""
    own = {"transaction_id", "fingerprint", "frozen_at", "imported_at", "person_id"}
    own.add("has_quotas")
    tenant = organization.tenant
    given, found = {"tenant": tenant.pk, "provider": tenant.provider_id}, {}
    for part in PARTS:
        columns = ", ".join(f'"{one}"' for one in part.columns if one not in own)
        rows = f"SELECT {columns} FROM {part.table} WHERE {part.rows}"
        with connection.cursor() as cursor:
            cursor.execute(rows, given)
            found.setdefault(part.table, set()).update(map(repr, cursor.fetchall()))
    return found


def test_every_row_moves_and_opens_with_another_master_key(settled):
    assert "works here" in settled.said
    before, after = settled.rows, rows_of(settled)
    assert len(after["tenants_auditentry"]) == len(before["tenants_auditentry"]) + 3
    assert before.pop("tenants_auditentry") <= after.pop("tenants_auditentry")
    assert after == before
    assert all(before[name] for name in ("wallets_key", "webhooks_event"))
    assert settled.files == settled.files_before and len(settled.files) == 2
    row = DataKey.objects.get(tenant=settled.tenant)
    with override_settings(MASTER_KEY=os.urandom(32)):
        assert row.master_key_id != vault.master_key_id()
    assert row.master_key_id == vault.master_key_id()
    said_by("verify_keys")


def test_connections_keys_credentials_and_idempotency_keys_work_after_the_move(settled):
    alice = settled.alice
    assert alice.get("/credentials") == settled.held and len(settled.held) == 1
    assert settled.send(*BOB, **BOB_KEY).json() == settled.bob
    wanted = {"revocationRequirement": {"validNow": True}}
    asked = settled.asks(alice, attributes=POLICY["attributes"], **wanted)
    alice.auto_selects()
    done = settled.get(f"/verifications/{asked['verificationId']}")
    assert (done["state"], done["isValid"]) == ("Accepted", True)
    alice.receives(settled, settled.definition, {"name": "Alice", "year": "8"})
    assert len(alice.get("/credentials")) == 2


def test_folded_lists_are_whole_in_the_file_and_fold_again(
    college, file, leaves, monkeypatch
):
    monkeypatch.setattr(published, "month_start", lambda timestamp: 0)
    newest = StatusList.objects.get()
    for seconds in (200, 100):
        timestamp = newest.timestamp - seconds
        StatusListFactory(
            network_id=newest.network_id,
            registry_id=newest.registry_id,
            timestamp=timestamp,
            body=newest.body
            | {"timestamp": timestamp, "revocationList": [0, seconds // 200, 0, 0]},
        )
    lists = StatusList.objects.order_by("timestamp")
    before = [json.dumps(one.body) for one in lists]
    age(StatusList.objects.all(), 30)
    for name in ("here", "there"):
        assert retention.fold_lists() == 2
        assert [one.changed is None for one in lists.all()] == [True, False, True]
        assert [json.dumps(one.read()) for one in lists.all()] == before
        if name == "here":
            exports(college, file, "--move")
            leaves()
            imports(file)
            assert [json.dumps(one.body) for one in lists.all()] == before


def test_cards_of_phones_are_valid_and_revoked_after_the_move(college, file, leaves):
    """The keys and the status lists move; certificates are made anew there."""
    card = college.defines("name", formats=["dc+sd-jwt"], supportRevocation=True)
    offer = {"definitionId": card["definitionId"], "credentialValues": {"name": "Al"}}
    offer |= {"protocol": "openid4vci", "automaticIssuance": True}
    made, phone = college.post("/credentials", offer), OpenIdWallet()
    listed = phone.take(made["walletLinks"]["openid4vci"]).claims["status"]
    key = phone.metadata("jwt-vc-issuer")
    exports(college, file, "--move")
    leaves()
    imports(file)
    assert phone.metadata("jwt-vc-issuer") == key
    only = {"credentialDefinitionId": card["definitionId"]}
    asked = {"protocol": "openid4vp", "revocationRequirement": {"validNow": True}}
    asked |= POLICY | {"attributes": [ASKED | {"restrictions": [only]}]}
    for is_valid in (True, False):
        wanted = college.post("/verifications/policy", asked)
        phone.answer(wanted["walletLinks"]["openid4vp"])
        done = college.get(f"/verifications/{wanted['verificationId']}")
        assert (done["state"], done["isValid"]) == ("Accepted", is_valid)
        uri, index = listed["status_list"]["uri"], listed["status_list"]["idx"]
        text = phone.read(uri).content.decode()
        found = status_token.parse_token(text, uri, time.time()).status_of(index)
        assert found == (not is_valid)
        if is_valid:
            college.delete(f"/credentials/{made['credentialId']}")


def test_the_feed_goes_on_and_refuses_cursors_of_before(settled):
    ids = [event["eventId"] for event in settled.events]
    old, wrong = (
        settled.send("get", f"/events?after={cursor}")
        for cursor in (settled.events[-1]["cursor"], "nonsense")
    )
    assert_error(old, 400, "database_restored")
    assert_error(wrong, 400, "invalid_cursor")
    settled.invites()
    after = settled.get("/events", after="start")
    assert [event["eventId"] for event in after][: len(ids)] == ids
    assert len(after) > len(ids)
    assert not Event.objects.filter(pk__in=ids, transaction_id__gt=0).exists()


def test_an_import_is_refused_where_the_organization_is(exported, file):
    assert "is here already" in refused("organization_exists", file)


def test_an_interrupted_import_is_hidden_and_begins_anew(
    exported, moved, dies_in, monkeypatch
):
    dies_in(moved, 8)
    left = rows_left(exported)
    assert left["wallets_key"] and not Tenant.objects.exists()
    assert exported.send("get", "/connections").status_code == 401
    monkeypatch.setattr(importing, "WAIT_SECONDS", 0)
    refused("organization_busy", moved)
    assert rows_left(exported) == left, "a second import does not disturb the first"
    end_lease()
    imports(moved)
    before, after = exported.rows, rows_of(exported)
    assert before.pop("tenants_auditentry") <= after.pop("tenants_auditentry")
    assert after == before
    assert not Erasure.objects.exists()
    assert exported.alice.get("/credentials")


def test_a_worker_removes_an_import_that_died(exported, moved, dies_in):
    dies_in(moved, 20)
    worker_erases()
    assert rows_left(exported), "the import may be alive"
    end_lease()
    worker_erases()
    assert rows_left(exported) == {}
    tables = {columns.split()[0].strip('"') for columns in database.save()}
    assert tables == {"tenants_datakey", "tenants_network"}, "of the installation"


@pytest.fixture
def place(college, acme):
    """What a peer calls the connection with Alice."""
    college.alice.meets(acme)
    return college.alice.known_as(acme)


def asks(acme, place):
    return acme.send("post", f"/verifications/policy/connections/{place}", POLICY)


def test_messages_to_an_organization_wait_while_it_is_imported(
    college, file, acme, place, leaves, monkeypatch
):
    for one, path in ((acme, file.with_name("acme")), (college, file)):
        exports(one, path, "--move")
    all_keys = Key.objects.filter(tenant=college.tenant).count()
    leaves()
    imports(file.with_name("acme"))
    mine, agent, seen = Connection.objects.get(connection_id=place), Agent(), set()
    ping = agent.build("trust_ping/1.0/ping")
    sent = agent.pack(ping, to=mine.their_key)

    def send(point):
        keys = Key.objects.filter(tenant=college.tenant).count()
        if point != "inside_import" or keys < all_keys:
            return  # until then it is sent elsewhere
        connections = Connection._base_manager.filter(tenant=college.tenant)
        if (is_connected := connections.exists()) in seen:
            return
        seen.add(is_connected)
        assert_error(asks(acme, place), 503, "organization_frozen")
        assert_error(agent.post(sent), 503, "organization_frozen")
        if not is_connected:
            with transactions.atomic():
                peer = Key(verkey=mine.their_key)
                outbox.enqueue_leased(HostedMessage(ping, mine.my_key, peer, mine))

    monkeypatch.setattr(importing, "BATCH_ROWS", 2)
    monkeypatch.setattr(importing.faults, "fault_point", send)
    imports(file)
    assert seen == {False, True}
    row = OutboundMessage.objects.get(recipient_key=mine.their_key, status="pending")
    assert (row.attempts, row.last_error) == (1, "organization_frozen")
    assert asks(acme, place).status_code == 200


def test_calls_of_all_days_that_are_kept_move(college, file, leaves, later):
    delivery = Delivery.objects.first()
    for days in (-9, 0, 2, 9):
        AttemptFactory(delivery=delivery, id=id_in(days))
    kept = set(Attempt.objects.order_by("-pk")[:2])
    exports(college, file, "--move")
    leaves()
    later(31)
    days_of_calls.drop_days()
    imports(file)
    assert set(Attempt.objects.all()) == kept
    remove_organization(college.tenant, by=audit.SYSTEM)
    worker_erases()
    assert not Attempt.objects.exists()


def test_a_frozen_organization_is_refused_everywhere_and_resumes(college, file):
    alice, token = college.alice, college.invites()
    exports(college, file, "--move")
    for api in (college, alice):
        answer = api.send("get", "/connections")
        assert_error(answer, 503, "organization_frozen")
        assert int(answer["Retry-After"]) > 0
    assert not Delivery.due().exists()
    pending = Delivery.objects.filter(status="pending").count()
    with pytest.raises(CommandError, match="writes no file"):
        exports(college, file, "--resume")
    exports(college, "--resume")
    assert Delivery.due().count() == pending > 0
    assert college.get(f"/connections/{token['connectionId']}")
    found = AuditEntry.objects.filter(tenant=college.tenant)
    actions = {f"organization.{one}" for one in ("frozen", "exported", "thawed")}
    assert actions < set(found.values_list("action", flat=True))


def test_peers_hear_that_the_organization_is_frozen_and_send_again(
    college, place, file, acme
):
    verkey = Key.objects.filter(tenant=college.tenant, retired_at=None)[0].verkey
    agent = Agent()
    sent = agent.pack(agent.build("trust_ping/1.0/ping"), to=verkey)
    exports(college, file, "--move")
    assert_error(asks(acme, place), 503, "organization_frozen")
    answer = agent.post(sent)
    assert_error(answer, 503, "organization_frozen")
    assert int(answer["Retry-After"]) > 0
    exports(college, "--resume")
    assert agent.post(sent).status_code == 202


def test_another_network_key_or_address_is_refused(moved):
    NetworkFactory(id="local", kind="indy")
    refused("network_missing", moved)
    Network.objects.all().delete()
    for code, name, value in (
        ("wrong_move_key", "AGENCY_MOVE_KEY", new_key()),
        ("no_move_key", "AGENCY_MOVE_KEY", ""),
        ("other_address", "PUBLIC_URL", "https://other.example"),
    ):
        with override_settings(**{name: value}):
            refused(code, moved)
    refused("file_unreadable", ROOT / "README.md")
    assert Tenant.objects.count() == 0


def test_a_file_without_move_is_for_trials_only(college, file, leaves):
    exports(college, file)
    assert college.get("/connections")
    leaves()
    refused("not_moved", file)
    assert Tenant.objects.count() == 0
    imports(file, "--copy")
    assert college.get("/connections")


def test_a_file_that_was_cut_or_changed_anywhere_imports_nothing(moved):
    data = moved.read_bytes()
    moved.write_bytes(data[: len(data) // 2])
    refused("file_damaged", moved)
    for place in (0.3, 0.6, 0.99):
        changed = bytearray(data)
        changed[int(len(data) * place)] ^= 1
        moved.write_bytes(changed)
        refused("file_damaged", moved)
    line, _, rest = data.partition(b"\n")
    changed = json.loads(line) | {"is_moved": False}
    moved.write_bytes(json.dumps(changed).encode() + b"\n" + rest)
    refused("file_damaged", moved, "--copy")
    assert Tenant.objects.count() == 0


def test_another_release_or_other_tables_are_refused(moved, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(header, "__version__", "0.0.9")
        assert "0.0.9" in refused("other_release", moved)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tenants_provider RENAME COLUMN name TO other")
        try:
            assert "tenants_provider" in refused("other_release", moved)
        finally:
            cursor.execute("ALTER TABLE tenants_provider RENAME COLUMN other TO name")
    assert Tenant.objects.count() == 0


def test_a_row_that_is_here_already_refuses_all_others(exported, file, leaves):
    verkey = Key.objects.filter(tenant=exported.tenant).latest("pk").verkey
    leaves()
    Key.objects.create(verkey=verkey, retired_at=timezone.now())
    said = refused("row_exists", file)
    assert "wallets_key" in said and verkey not in said
    assert rows_left(exported) == {} and not Erasure.objects.exists()
    assert not ApiKey.objects.exists() and not Account.objects.exists()
    Key.objects.all().delete()
    imports(file)
    assert exported.get("/connections")


def test_a_public_object_with_another_content_is_refused(exported, file, leaves):
    [found] = PublishedObject.objects.filter(kind="definition")
    network = Network.objects.get()
    leaves()
    network.save(force_insert=True)
    found.body |= {"tag": "another"}
    found.save(force_insert=True)
    assert found.object_id in refused("object_differs", file)
    assert rows_left(exported) == {}
    assert PublishedObject.objects.count() == 1, "nothing was published"


def test_a_tails_file_that_is_missing_or_damaged_is_refused(
    college, file, leaves, storage
):
    [tails] = storage.glob("tails/*")
    content = tails.read_bytes()
    tails.unlink()
    with pytest.raises(MoveRefused) as raised:
        exports(college, file, "--move")
    assert raised.value.code == "tails_missing" and not file.exists()
    tails.write_bytes(content[::-1])
    exports(college, file, "--move")
    leaves()
    assert tails.name in refused("tails_missing", file)
    assert rows_left(college) == {}


def test_an_organization_that_does_not_become_quiet_stays_frozen(
    college, file, monkeypatch
):
    with monkeypatch.context() as patched:
        patched.setattr(transactions, "count_older", lambda moment: 1)
        patched.setattr(freezing, "WAIT_SECONDS", 0.05)
        with pytest.raises(MoveRefused) as raised:
            exports(college, file, "--move")
    assert raised.value.code == "organization_busy" and not file.exists()
    assert_error(college.send("get", "/connections"), 503, "organization_frozen")
    exports(college, file, "--move")
    assert file.exists()


def test_an_import_that_stood_still_is_over(exported, moved, monkeypatch):
    """A worker has taken its rows away: what it would still write has no place."""

    def stand_still(name):
        end_lease()
        worker_erases()

    monkeypatch.setattr(importing.faults, "fault_point", stand_still)
    refused("organization_busy", moved)
    assert rows_left(exported) == {}


@pytest.fixture
def counts_anew():
    """Call it to count the writes to the network from 1, as the target does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT last_value FROM tenants_networksequence")
        [before] = cursor.fetchone()
        yield lambda: cursor.execute("ALTER SEQUENCE tenants_networksequence RESTART")
        cursor.execute(
            "SELECT setval('tenants_networksequence', GREATEST(last_value, %s)) "
            "FROM tenants_networksequence",
            [before],
        )


def test_objects_with_taken_numbers_keep_their_ids(college, file, leaves, counts_anew):
    with connection.cursor() as cursor:
        cursor.execute("UPDATE credentials_publishedobject SET sequence = -sequence")
        cursor.execute(
            "UPDATE credentials_publishedobject AS own SET sequence = 1 + (SELECT count(*) "
            "FROM credentials_publishedobject AS one WHERE one.sequence > own.sequence)"
        )
    numbers = dict(PublishedObject.objects.values_list("object_id", "sequence"))
    exports(college, file, "--move")
    leaves()
    counts_anew()
    Organization("Other").defines("name", "year")
    taken = set(PublishedObject.objects.values_list("sequence", flat=True))
    imports(file)
    found = dict(PublishedObject.objects.values_list("object_id", "sequence"))
    assert numbers.keys() < found.keys() and taken & {*numbers.values()}
    kept = {one for one, number in numbers.items() if found[one] == number}
    assert {numbers[one] for one in kept} == {*numbers.values()} - taken
    Organization("Third").defines("name", "year")
    college.defines("name", "year")
    # So that version 0.1.0, if an operator goes back to it, counts on from there.
    assert Network.objects.get(pk="local").sequence >= max(numbers.values())


def test_the_command_says_who_has_access_and_members_with_an_account_do(settled):
    assert len(settled.hints) > 2
    for shown in (
        *(f"{hint}…" for hint in settled.hints),
        "'https://faber.example'",
        "kiosk 'Desk'",
        " 1 personal links",
        "limits of QUOTA_",
        "as operator: oscar@faber.example",
        "Is operator here: 'olivia@faber.example'",
    ):
        assert shown in settled.said
    [member] = Tenant.objects.get().memberships.all()
    assert (member.user, member.role) == (User.objects.get(), "operator")


def test_sibling_organizations_share_their_account(college, file, leaves):
    provider = Provider(college)
    branch = provider.opens(provider.makes("Branch"))
    branch.tenant = Tenant.objects.get(name="Branch")
    exports(branch, file.with_name("branch"), "--move")
    exports(college, file, "--move")
    leaves()
    imports(file)
    imports(file.with_name("branch"))
    names = {college.tenant.name, "Branch"}
    assert set(Tenant.objects.values_list("name", flat=True)) == names
    assert "Branch" in {one["name"] for one in provider.get("/tenants")}
    assert ApiKey.objects.filter(kind="provider_key").count() == 1


def test_a_frozen_organization_is_not_deleted(college):
    provider = Provider(college)
    branch = provider.makes("Branch")
    tenant = Tenant.objects.get(name="Branch")
    freezing.freeze(tenant, audit.SYSTEM)
    path = f"/tenants/{branch['tenantId']}"
    assert_error(provider.send("delete", path), 503, "organization_frozen")
    freezing.thaw(tenant, audit.SYSTEM)
    provider.delete(path)


def test_the_page_names_every_exit_code():
    page = (ROOT / "docs/operations/moving.md").read_text()
    named = re.findall(r"`(\w+)`\s(\d+)", page.partition("## Refusals")[2])
    assert {code: int(number) for code, number in named} == EXIT_CODES


def test_every_table_moves_or_stays_for_a_reason():
    moved = {part.table for part in PARTS}
    tables = {model._meta.db_table for model in apps.get_models()}
    assert moved.isdisjoint(LEFT_BEHIND)
    assert tables == moved | set(LEFT_BEHIND)
    # What moves is sealed by the organization.
    for table in sealed_columns.list_sealed_tables():
        assert table.name not in moved or table.tenant_lookup
    for part in PARTS:
        assert set(part.changes) <= set(part.columns) and model_of(part.table)


def test_what_a_worker_would_claim_is_held_until_the_import_ends():
    """Deliveries are not: their webhooks come last."""
    held = {part.table for part in PARTS if part.changes.items() >= HELD.items()}
    queues = {model._meta.db_table for model in freezing.QUEUES}
    assert queues - held == {"webhooks_delivery"}
    assert "webhooks_webhook" in {part.table for part in CLOSING}


def make_webvh_college():
    """On the network `webvh`, with a credential that is revoked."""
    faber = Organization("Faber College", network_id="webvh")
    faber.definition = faber.defines("name", supportRevocation=True)
    faber.alice = faber.hosts()
    faber.alice.receives(faber, faber.definition, {"name": "Alice"})
    [credential] = faber.get("/credentials")
    faber.delete(f"/credentials/{credential['credentialId']}")
    faber.post("/tenants/webvhDid/rotation")
    faber.files = read_files()
    return faber


restore_webvh_college = Template(make_webvh_college)


@pytest.fixture
def webvh_college(restores, settings):
    served_logs.remember.cache_clear()
    at_public_host(settings)
    return restores(restore_webvh_college)


def test_a_did_webvh_moves_with_its_log_keys_and_resources(webvh_college, file, leaves):
    known, number = read_log(webvh_college), read_all(webvh_college)
    exports(webvh_college, file, "--move")
    leaves()
    Organization("Acme", network_id="webvh").defines("name")  # takes the first numbers
    imports(file)
    assert read_all(webvh_college) == number
    webvh_college.post("/tenants/webvhDid/rotation", {"compromised": True})
    assert read_log(webvh_college, known).versions == 3
    webvh_college.defines("name")
    assert PublishedObject.objects.filter(network="webvh").count() == 2 + 3 + 2


def copy_as_the_page_says():
    """Return what takes to another database what deleted organizations have left."""
    page = (ROOT / "docs/operations/moving.md").read_text()
    commands = re.findall(r"^ +copy (\w+) '(.+)'$", page, re.MULTILINE)
    copied = {}
    with connection.cursor() as cursor:
        for table, rows in commands:
            with cursor.copy(f"COPY ({rows}) TO STDOUT") as copy:
                copied[table] = b"".join(map(bytes, copy))

    def paste():
        with connection.cursor() as cursor:
            for table, rows in copied.items():
                with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                    copy.write(rows)

    return paste


def test_the_log_of_an_organization_that_was_deleted_is_copied(webvh_college, leaves):
    """Else nobody proves what it has issued once the address leads to the target."""
    remove_organization(webvh_college.tenant, by=audit.SYSTEM)
    worker_erases()
    row = WebvhDid.objects.get()
    Organization("Acme", network_id="webvh")  # it moves by itself
    resources = list(row.resources.values_list("document", flat=True))
    paste = copy_as_the_page_says()
    leaves()
    paste()
    assert WebvhDid.objects.get().did == row.did
    answer = fetch(row.log_url)
    document = check_log(row.did, answer.content, time.time(), None).document
    for one in map(json.loads, resources):
        read_resource(one["id"], one["metadata"]["resourceType"], document)
    assert len(resources) > 3


def test_a_twin_moves_with_the_definition_that_it_is_of(
    storage,  # noqa: F811
    file,
    settings,
    leaves,
    stored_keys,
):
    on_webvh(settings, "Acme")  # sets the public host
    faber = Organization("Faber College")
    faber.put("/tenants/webvhDid", {})
    own = faber.defines("name", supportRevocation=True)
    twin = faber.post(f"/definitions/credentials/{own['definitionId']}/twin")
    graduate = faber.hosts()
    graduate.receives(faber, twin, {"name": "Alice"})
    either = {"credentialDefinitionId": own["definitionId"], "orTwin": True}
    item = {"policyName": "name", "restrictions": [either]}
    asked = {"name": "P", "version": "1.0", "attributes": [item]}
    policy_id = faber.post("/verificationPolicies", asked)["policyId"]
    exports(faber, file, "--move")
    leaves()
    imports(file)
    for one in (own, twin):
        assert faber.get(f"/definitions/credentials/{one['definitionId']}") == one
    student = faber.hosts()
    student.receives(faber, twin, {"name": "Alice"})
    assert read_all(faber) == 4
    for holder in (graduate, student):
        path = f"/verifications/policy/{policy_id}/connections/"
        sent = faber.put(path + holder.known_as(faber), {})
        holder.auto_selects()
        proven = faber.get(f"/verifications/{sent['verificationId']}")
        shown = proven["proof"]["name"]["credentialDefinitionId"]
        assert proven["isValid"] and shown == twin["definitionId"]


CHANGES = [
    ("credentials_webvhdid", "log", "Z", "X"),
    ("credentials_webvhdid", "host", "agency", "others"),
    ("credentials_credentialdefinition", "definition_id", ":Qm", ":Qn"),
    ("credentials_revocationregistry", "registry_id", ":Qm", ":Qn"),
    ("credentials_credential", "revocation_registry_id", ":Qm", ":Qn"),
    ("credentials_webvhresource", "document", "Schema", "Shcema"),
    ("credentials_publishedobject", "body", "1.0", "2.0"),
    ("credentials_statuslist", "body", "0, 1", "1, 0"),
    ("credentials_statuslist", "body", "0, 1", f"0, {2**60}"),
]


def test_a_did_webvh_whose_signatures_do_not_fit_is_refused(
    webvh_college, file, leaves, subtests
):
    exports(webvh_college, file, "--move")
    leaves()
    for table, column, old, new in CHANGES:
        changed = MoveFile(file)
        [part] = [one for one in PARTS if one.table == table]
        rows = changed.rows(part)
        for number in range(len(rows)):
            value = rows.get(number, column)
            rows.set(number, column, value.replace(old, new))
        changed.write(file.with_name("changed"))
        with subtests.test(f"{table}.{column}: {new}"):
            assert refused("foreign_row", file.with_name("changed"))
            assert not WebvhDid.objects.exists() and not Tenant.objects.exists()
