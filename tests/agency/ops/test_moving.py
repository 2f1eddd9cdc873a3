"""An organization moves: everything works elsewhere, and what is refused, and why."""

import base64
import json
import os
import re
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from agency.core import transactions
from agency.ops.moving import header, importing
from agency.ops.moving.refusals import EXIT_CODES, MoveRefused
from agency.ops.moving.tables import CLOSING, HELD, LEFT_BEHIND, PARTS, model_of
from connections.messaging import outbox
from connections.messaging.outbox import HostedMessage
from connections.models import Connection, OutboundMessage
from credentials.models import PublishedObject
from organizations import freezing
from tenants import audit, sealed_columns, vault
from tenants.models import ApiKey, AuditEntry, DataKey, Erasure, Network, Tenant
from tests.organizations.test_erasure import rows_with
from tests.support import database
from tests.support.database import Template
from tests.support.erasing import worker_erases
from tests.support.errors import assert_error
from tests.support.outside_agent import Agent
from tests.support.paths import ROOT
from tests.support.people import Organization, Provider
from tests.support.pictures import picture, storage, uploads
from wallets.models import Key
from webhooks.events.types import Type
from webhooks.models import Delivery, Event

__all__ = ["storage"]  # the fixture: files of each test in a folder of their own
pytestmark = pytest.mark.django_db(transaction=True)


def new_key():
    return base64.b64encode(os.urandom(32)).decode()


@pytest.fixture(autouse=True)
def move_key(settings, monkeypatch):
    settings.AGENCY_MOVE_KEY = new_key()
    monkeypatch.setattr(freezing, "MARGIN_SECONDS", -settings.LEDGER_TIMEOUT)
    monkeypatch.setattr(transactions, "count_older", lambda moment: 0)


def make_college():
    """Faber with a picture, a webhook, and Alice with a credential."""
    faber = Organization("Faber College")
    wanted = {"messageTypes": [str(one) for one in Type]}
    faber.post(
        "/webhooks", {"url": "https://faber.example", "type": "Zapier"} | wanted
    )
    faber.definition = faber.defines("name", "year", supportRevocation=True)
    faber.alice = faber.hosts()
    faber.alice.receives(faber, faber.definition, {"name": "Alice", "year": "7"})
    policy = {"name": "P", "version": "1", "attributes": [{"policyName": "name"}]}
    stored = faber.post("/verificationPolicies", policy)["policyId"]
    faber.post("/kiosks", {"name": "Desk", "policyId": stored})
    assert uploads(faber, picture()).status_code == 200
    folder = Path(default_storage.location)
    faber.files = {
        path.relative_to(folder): path.read_bytes() for path in folder.glob("*/*")
    }
    return faber


restore_college = Template(make_college)


@pytest.fixture
def college(transactional_db, stored_keys, settings, storage):
    settings.REVOCATION_FIRST_REGISTRY_SIZE = settings.REVOCATION_REGISTRY_SIZE = 4
    faber = restore_college()
    for path, content in faber.files.items():
        (storage / path).parent.mkdir(exist_ok=True)
        (storage / path).write_bytes(content)
    return faber


@pytest.fixture
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("files") / "faber"


def exports(organization, file, *options):
    out = StringIO()
    call_command(
        "export_organization",
        str(organization.tenant.public_id),
        str(file),
        *options,
        stdout=out,
        stderr=out,
    )
    return out.getvalue()


def imports(file, *options):
    out = StringIO()
    call_command("import_organization", str(file), *options, stdout=out, stderr=out)
    return out.getvalue()


def refused(code, file, *options):
    with pytest.raises(MoveRefused) as raised:
        imports(file, *options)
    assert (raised.value.code, raised.value.returncode) == (code, EXIT_CODES[code])
    return str(raised.value)


@pytest.fixture
def other_installation(settings):
    """Call it to empty the database, and to have another master key."""

    def move_there():
        database.clear(None)
        settings.MASTER_KEY = os.urandom(32)
        vault.forget_keys()

    yield move_there
    vault.forget_keys()


class Interrupted(Exception):
    pass


def begins_to_import(file, monkeypatch, batches):
    """Import so many batches of two rows, and end as a killed process does."""
    left = iter(range(batches - 1))

    def end(name):
        if name == "inside_import" and next(left, None) is None:
            raise Interrupted

    with monkeypatch.context() as patched:
        patched.setattr(importing, "BATCH_ROWS", 2)
        patched.setattr(importing.faults, "fault_point", end)
        with pytest.raises(Interrupted):
            imports(file)


def end_lease():
    past = timezone.now() - timedelta(seconds=1)
    assert Erasure.objects.filter(kind="import").update(lease_until=past) == 1


def rows_left(organization):
    return rows_with("tenant", organization.tenant.pk)


def rows_of(organization):
    """The rows that move, by table, without what each installation has of its own."""
    found = {}
    for part in PARTS:
        own = {
            "transaction_id",
            "fingerprint",
            "frozen_at",
            "imported_at",
            "person_id",
        }
        columns = ", ".join(f'"{one}"' for one in part.columns if one not in own)
        given = {
            "tenant": organization.tenant.pk,
            "provider": organization.tenant.provider_id,
        }
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {columns} FROM {part.table} WHERE {part.rows}", given
            )
            found.setdefault(part.table, set()).update(map(repr, cursor.fetchall()))
    return found


def test_every_row_moves_and_opens_with_another_master_key(
    college, file, other_installation, storage
):
    before = rows_of(college)
    exports(college, file, "--move")
    old_key = vault.master_key_id()
    other_installation()
    for path in [*storage.glob("*/*")]:
        path.unlink()
    assert "works here" in imports(file)
    after = rows_of(college)
    assert len(after["tenants_auditentry"]) == len(before["tenants_auditentry"]) + 3
    assert before.pop("tenants_auditentry") <= after.pop("tenants_auditentry")
    assert after == before
    assert all(before[name] for name in ("wallets_key", "webhooks_event"))
    assert len([*storage.glob("*/*")]) == 2
    row = DataKey.objects.get(tenant=college.tenant)
    assert row.master_key_id == vault.master_key_id() != old_key
    call_command("verify_keys", stdout=StringIO(), stderr=StringIO())


def test_connections_keys_and_credentials_work_after_the_move(
    college, file, other_installation
):
    [held] = college.alice.get("/credentials")
    exports(college, file, "--move")
    other_installation()
    imports(file)
    alice = college.alice
    assert alice.get("/credentials") == [held]
    policy = {"attributes": [{"policyName": "who", "attributeNames": ["name"]}]}
    asked = college.asks(alice, revocationRequirement={"validNow": True}, **policy)
    alice.auto_selects()
    done = college.get(f"/verifications/{asked['verificationId']}")
    assert (done["state"], done["isValid"]) == ("Accepted", True)
    alice.receives(college, college.definition, {"name": "Alice", "year": "8"})
    assert len(alice.get("/credentials")) == 2


def test_the_feed_goes_on_and_refuses_cursors_of_before(
    college, file, other_installation
):
    events = college.get("/events", after="start")
    ids = [event["eventId"] for event in events]
    exports(college, file, "--move")
    other_installation()
    imports(file)
    assert_error(
        college.send("get", f"/events?after={events[-1]['cursor']}"),
        400,
        "database_restored",
    )
    assert_error(college.send("get", "/events?after=nonsense"), 400, "invalid_cursor")
    college.alice.receives(college, college.definition, {"name": "Alice", "year": "9"})
    after = college.get("/events", after="start")
    assert [event["eventId"] for event in after][: len(ids)] == ids
    assert len(after) > len(ids)
    old = Event.objects.filter(pk__in=ids)
    assert old.order_by("-transaction_id").first().transaction_id <= 0


def test_a_second_import_is_refused(college, file, other_installation):
    exports(college, file, "--move")
    assert "is here already" in refused("organization_exists", file)
    other_installation()
    imports(file)
    refused("organization_exists", file)


def test_an_interrupted_import_is_hidden_and_begins_anew(
    college, file, other_installation, monkeypatch
):
    before = rows_of(college)
    exports(college, file, "--move")
    other_installation()
    begins_to_import(file, monkeypatch, 8)
    assert rows_left(college)["wallets_key"] and not Tenant.objects.exists()
    assert college.send("get", "/connections").status_code == 401
    end_lease()
    imports(file)
    after = rows_of(college)
    assert before.pop("tenants_auditentry") <= after.pop("tenants_auditentry")
    assert after == before
    assert not Erasure.objects.exists()
    assert college.alice.get("/credentials")


def test_a_worker_removes_an_import_that_died(
    college, file, other_installation, monkeypatch
):
    exports(college, file, "--move")
    other_installation()
    begins_to_import(file, monkeypatch, 20)
    worker_erases()
    assert rows_left(college), "the import may be alive"
    end_lease()
    worker_erases()
    assert rows_left(college) == {} and not Key.objects.exists()
    imports(file)
    assert college.alice.get("/credentials")


def test_a_peer_keeps_its_message_during_an_import(
    college, file, other_installation, acme, monkeypatch
):
    college.alice.meets(acme)
    place, other = college.alice.known_as(acme), file.with_name("acme")
    exports(college, file, "--move")
    exports(acme, other, "--move")
    keys = rows_left(college)["wallets_key"]
    other_installation()
    imports(other)
    policy = {"attributes": [{"policyName": "who", "attributeNames": ["name"]}]}
    policy |= {"name": "Policy", "version": "1.0"}

    def asks():
        return acme.send("post", f"/verifications/policy/connections/{place}", policy)

    seen = set()
    for batches in range(1, 9):
        begins_to_import(file, monkeypatch, batches)
        left = rows_left(college)
        if left.get("wallets_key", 0) == keys:  # until then it is sent elsewhere
            assert_error(asks(), 503, "organization_frozen")
            seen.add("connections_connection" in left)
        end_lease()
    assert seen == {False, True}
    imports(file)
    assert asks().status_code == 200


def test_messages_to_an_organization_wait_while_it_is_imported(
    college, file, other_installation, acme, monkeypatch
):
    college.alice.meets(acme)
    mine = Connection.objects.get(
        tenant=acme.tenant, connection_id=college.alice.known_as(acme)
    )
    agent, other = Agent(), file.with_name("acme")
    ping = agent.build("trust_ping/1.0/ping")
    sent = agent.pack(ping, to=mine.their_key)
    exports(college, file, "--move")
    exports(acme, other, "--move")
    keys = rows_left(college)["wallets_key"]
    other_installation()
    imports(other)
    begins_to_import(file, monkeypatch, (keys + 1) // 2 + 2)
    assert rows_left(college)["wallets_key"] == keys
    with transactions.atomic():
        hosted = HostedMessage(ping, mine.my_key, Key(verkey=mine.their_key), mine)
        outbox.enqueue_leased(hosted)
    row = OutboundMessage.objects.get(recipient_key=mine.their_key, status="pending")
    assert (row.attempts, row.last_error) == (1, "organization_frozen")
    assert_error(agent.post(sent), 503, "organization_frozen")


def test_a_frozen_organization_is_refused_everywhere_and_resumes(college, file):
    alice, token = college.alice, college.invites()
    exports(college, file, "--move")
    for api in (college, alice):
        answer = api.send("get", "/connections")
        assert_error(answer, 503, "organization_frozen")
        assert int(answer["Retry-After"]) > 0
    assert not Delivery.due().exists()
    pending = Delivery.objects.filter(status="pending").count()
    moved = ("export_organization", str(college.tenant.public_id))
    with pytest.raises(CommandError, match="writes no file"):
        call_command(*moved, str(file), "--resume")
    call_command(*moved, "--resume", stdout=StringIO())
    assert Delivery.due().count() == pending > 0
    assert college.get(f"/connections/{token['connectionId']}")
    actions = AuditEntry.objects.filter(tenant=college.tenant)
    assert {
        "organization.frozen",
        "organization.exported",
        "organization.thawed",
    } < set(actions.values_list("action", flat=True))


def test_a_peer_hears_that_the_organization_is_frozen(college, file, acme):
    college.alice.meets(acme)
    exports(college, file, "--move")
    place = college.alice.known_as(acme)
    policy = {"attributes": [{"policyName": "who", "attributeNames": ["name"]}]}
    policy |= {"name": "Policy", "version": "1.0"}
    asked = acme.send("post", f"/verifications/policy/connections/{place}", policy)
    assert_error(asked, 503, "organization_frozen")


def test_a_file_without_move_is_for_trials_only(college, file, other_installation):
    exports(college, file)
    assert college.get("/connections")
    other_installation()
    refused("not_moved", file)
    assert Tenant.objects.count() == 0
    imports(file, "--copy")
    assert college.get("/connections")


def test_another_key_address_or_release_is_refused(
    college, file, other_installation, settings
):
    exports(college, file, "--move")
    other_installation()
    key, settings.AGENCY_MOVE_KEY = settings.AGENCY_MOVE_KEY, new_key()
    refused("wrong_move_key", file)
    settings.AGENCY_MOVE_KEY = ""
    refused("no_move_key", file)
    settings.AGENCY_MOVE_KEY = key
    settings.PUBLIC_URL, address = "https://other.example", settings.PUBLIC_URL
    refused("other_address", file)
    settings.PUBLIC_URL = address
    refused("file_unreadable", ROOT / "README.md")
    assert Tenant.objects.count() == 0


def test_a_file_that_was_cut_or_changed_anywhere_imports_nothing(
    college, file, other_installation
):
    exports(college, file)
    other_installation()
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    refused("file_damaged", file, "--copy")
    for place in (0.3, 0.6, 0.99):
        changed = bytearray(data)
        changed[int(len(data) * place)] ^= 1
        file.write_bytes(changed)
        refused("file_damaged", file, "--copy")
    line, _, rest = data.partition(b"\n")
    changed = json.loads(line) | {"is_moved": True}
    file.write_bytes(json.dumps(changed).encode() + b"\n" + rest)
    refused("file_damaged", file)
    assert Tenant.objects.count() == 0


def test_another_release_or_other_tables_are_refused(
    college, file, other_installation, monkeypatch
):
    exports(college, file, "--move")
    other_installation()
    with monkeypatch.context() as patched:
        patched.setattr(header, "__version__", "0.0.9")
        assert "0.0.9" in refused("other_release", file)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tenants_provider RENAME COLUMN name TO other")
        try:
            assert "tenants_provider" in refused("other_release", file)
        finally:
            cursor.execute("ALTER TABLE tenants_provider RENAME COLUMN other TO name")
    assert Tenant.objects.count() == 0
    imports(file)


def test_a_row_that_is_here_already_refuses_all_others(
    college, file, other_installation
):
    exports(college, file, "--move")
    verkey = Key.objects.filter(tenant=college.tenant).latest("pk").verkey
    other_installation()
    Key.objects.create(verkey=verkey, retired_at=timezone.now())
    said = refused("row_exists", file)
    assert "wallets_key" in said and verkey not in said
    assert rows_left(college) == {} and not Erasure.objects.exists()
    assert not ApiKey.objects.exists()
    Key.objects.all().delete()
    imports(file)
    assert college.get("/connections")


def test_a_public_object_with_another_content_is_refused(
    college, file, other_installation
):
    exports(college, file, "--move")
    [found] = PublishedObject.objects.filter(kind="definition")
    network = Network.objects.get()
    other_installation()
    network.save(force_insert=True)
    found.body |= {"tag": "another"}
    found.save(force_insert=True)
    assert found.object_id in refused("object_differs", file)
    assert rows_left(college) == {}
    assert PublishedObject.objects.count() == 1, "nothing was published"
    found.delete()
    imports(file)
    assert college.get("/connections")


def test_a_tails_file_that_is_missing_or_damaged_is_refused(
    college, file, other_installation, storage
):
    [tails] = storage.glob("tails/*")
    content = tails.read_bytes()
    tails.unlink()
    with pytest.raises(MoveRefused) as raised:
        exports(college, file, "--move")
    assert raised.value.code == "tails_missing" and not file.exists()
    tails.write_bytes(content[::-1])
    exports(college, file, "--move")
    other_installation()
    assert tails.name in refused("tails_missing", file)
    assert rows_left(college) == {}


def test_an_organization_that_does_not_become_quiet_stays_frozen(
    college, file, monkeypatch
):
    with monkeypatch.context() as patched:
        patched.setattr(transactions, "count_older", lambda moment: 1)
        patched.setattr(freezing, "WAIT_SECONDS", 0.5)
        with pytest.raises(MoveRefused) as raised:
            exports(college, file, "--move")
    assert raised.value.code == "organization_busy" and not file.exists()
    assert_error(college.send("get", "/connections"), 503, "organization_frozen")
    exports(college, file, "--move")
    assert file.exists()


def test_a_second_import_does_not_disturb_the_first(
    college, file, other_installation, monkeypatch
):
    exports(college, file, "--move")
    other_installation()
    begins_to_import(file, monkeypatch, 3)
    monkeypatch.setattr(importing, "WAIT_SECONDS", 0)
    before = rows_left(college)
    refused("organization_busy", file)
    assert rows_left(college) == before


def test_an_import_that_stood_still_is_over(
    college, file, other_installation, monkeypatch
):
    """A worker has taken its rows away: what it would still write has no place."""
    exports(college, file, "--move")
    other_installation()

    def stand_still(name):
        end_lease()
        worker_erases()

    monkeypatch.setattr(importing.faults, "fault_point", stand_still)
    refused("organization_busy", file)
    assert rows_left(college) == {}


def test_a_network_must_be_the_same(college, file, other_installation):
    exports(college, file, "--move")
    other_installation()
    data = file.read_bytes()
    line, _, rest = data.partition(b"\n")
    assert list(json.loads(line)["networks"]) == ["local"]
    Network.objects.create(id="local", name="Local", kind="indy", genesis="{}")
    refused("network_missing", file)


def test_objects_with_taken_numbers_keep_their_ids(college, file, other_installation):
    ids = set(PublishedObject.objects.values_list("object_id", flat=True))
    exports(college, file, "--move")
    other_installation()
    other = Organization("Other")
    other.defines("name", "year")
    imports(file)
    found = PublishedObject.objects.values_list("object_id", flat=True)
    assert ids < set(found)
    Organization("Third").defines("name", "year")
    college.defines("name", "year")


def test_members_with_an_account_are_members_there(college, file, other_installation):
    people = get_user_model().objects
    for name in ("olivia", "oscar"):
        user = people.create(username=name, email=f"{name}@faber.example")
        college.tenant.memberships.create(user=user, role="operator")
    exports(college, file, "--move")
    other_installation()
    user = people.create(username="o", email="olivia@faber.example")
    user.emailaddress_set.create(email=user.email, verified=True)
    said = imports(file)
    assert "as operator: oscar@faber.example" in said and "olivia" not in said
    tenant = Tenant.objects.get()
    [member] = tenant.memberships.all()
    assert (member.user, member.role) == (user, "operator")


def test_sibling_organizations_share_their_account(college, file, other_installation):
    provider = Provider(college)
    branch = provider.opens(provider.makes("Branch"))
    branch.tenant = Tenant.objects.get(name="Branch")
    exports(college, file, "--move")
    exports(branch, file.with_name("branch"), "--move")
    other_installation()
    imports(file)
    imports(file.with_name("branch"))
    assert set(Tenant.objects.values_list("name", flat=True)) == {
        college.tenant.name,
        "Branch",
    }
    assert "Branch" in {one["name"] for one in provider.get("/tenants")}
    assert ApiKey.objects.filter(kind="provider_key").count() == 1


def test_an_idempotency_key_is_known_after_the_move(college, file, other_installation):
    body = {"ownerName": "Bob"}
    given = {"Idempotency-Key": "bob-1"}
    made = college.send("post", "/api/wallets", body, **given).json()
    exports(college, file, "--move")
    other_installation()
    imports(file)
    again = college.send("post", "/api/wallets", body, **given)
    assert (again.status_code, again.json()) == (200, made)


def test_another_agent_sends_its_message_again(college, file):
    verkey = Key.objects.filter(tenant=college.tenant, retired_at=None)[0].verkey
    agent = Agent()
    sent = agent.pack(agent.build("trust_ping/1.0/ping"), to=verkey)
    exports(college, file, "--move")
    answer = agent.post(sent)
    assert_error(answer, 503, "organization_frozen")
    assert int(answer["Retry-After"]) > 0
    exports_again = ("export_organization", str(college.tenant.public_id), "--resume")
    call_command(*exports_again, stdout=StringIO())
    assert agent.post(sent).status_code == 202


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
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", page, re.MULTILINE)
    assert {code: int(number) for code, number in rows} == EXIT_CODES


def test_every_table_moves_or_stays_for_a_reason():
    moved = {part.table for part in PARTS}
    tables = {
        model._meta.db_table for model in apps.get_models(include_auto_created=False)
    }
    assert moved.isdisjoint(LEFT_BEHIND)
    assert tables == moved | set(LEFT_BEHIND)


def test_what_a_worker_would_claim_is_held_until_the_import_ends():
    """Deliveries are not: their webhooks come last."""
    held = {part.table for part in PARTS if part.changes == HELD}
    queues = {model._meta.db_table for model in freezing.QUEUES}
    assert queues - held == {"webhooks_delivery"}
    assert "webhooks_webhook" in {part.table for part in CLOSING}


def test_what_moves_is_sealed_by_the_organization():
    moved = {part.table for part in PARTS}
    for table in sealed_columns.list_sealed_tables():
        assert table.name not in moved or table.tenant_lookup
    assert all(set(part.changes) <= set(part.columns) for part in PARTS)
    assert all(model_of(part.table) for part in PARTS)
