"""A file of somebody who wants more than his organization: refused, nothing left."""

import json
import tracemalloc
from functools import cache
from pathlib import Path

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db.models import (
    BigIntegerField,
    DateField,
    IntegerField,
    SmallIntegerField,
    UUIDField,
)
from django.utils import timezone
from uuid_utils.compat import uuid7

from agency.holders.links.models import ClosedLink
from agency.holders.wallet import links
from agency.ops.moving import MoveRefused, checks, header, importing
from agency.ops.moving.tables import BULK, CLOSING, OPENING, PARTS, model_of
from connections.models import SeenMessage
from core.work import transactions
from credentials.ledgers.webvh import own_did
from credentials.models import (
    Credential,
    DidEndpoint,
    Mailing,
    MailingRow,
    NameDigests,
    Publication,
    PublishedObject,
    RevocationRegistry,
)
from sandbox.models import SimulatedAnswer
from tenants import audit, vault
from tenants.models import (
    AgreementAcceptance,
    IdempotencyKey,
    Network,
    Provider,
    Tenant,
)
from tests.agency.ops.test_moving import exports, imports, move_key, refused
from tests.factories import (
    AttemptFactory,
    DailyUsageFactory,
    ErasureFactory,
    InboundMessageFactory,
    NetworkFactory,
    OutboundMessageFactory,
    UserFactory,
)
from tests.support import database
from tests.support.database import Template
from tests.support.move_files import MoveFile, Rows
from tests.support.outside_agent import Agent
from tests.support.pictures import storage
from tests.support.world import WEBHOOK, World
from verifications.models import CheckDigests, Verification, WaitingAnswer
from wallets.models import Key, Wallet, issuer_url
from webhooks.models import Delivery, Event

__all__ = ["move_key", "storage"]
pytestmark = pytest.mark.django_db(transaction=True)


class Full(World):
    """A world with a row in each table that moves."""

    def __init__(self):
        super().__init__()
        tenant, wallet = self.faber.tenant, self.alice.wallet_id
        own = Wallet.of_organization(tenant)
        key, of = own.public_key, {"tenant": tenant}
        network, now = Network.objects.get(id="local"), timezone.now()
        self.faber.post("/webhooks", WEBHOOK)
        AttemptFactory(delivery=self.faber_says())
        self.bulk()
        AgreementAcceptance.objects.create(network=network, accepted_at=now, **of)
        DailyUsageFactory(**of)
        IdempotencyKey.objects.create(
            fingerprint=b"1", object_model="wallets.wallet", object_id=wallet, **of
        )
        InboundMessageFactory(recipient_key=key.verkey, **of)
        OutboundMessageFactory(my_key=key, **of)
        SeenMessage.objects.create(key=key, digest=b"1")
        links.create_link(Wallet.objects.get(wallet_id=wallet), by=audit.SYSTEM)
        closed = of | {"kind": "invitation", "reason": "used", "moved_to": own.pk}
        ClosedLink.objects.create(token=uuid7().hex, **closed)
        Publication.create_leased(tenant, Publication.Kind.DID, own.did, {})
        holder = tenant.simulatedholder_set.first()
        SimulatedAnswer.objects.create(
            holder=holder, exchange_id=self.credential[1], kind="credential", **of
        )
        self.another_anchor()
        WaitingAnswer.objects.create(verification_id=self.verification[0], **of)
        name = f"{uuid7().hex}.png"
        tenant.provider.assets.create(name=name, size=1)
        default_storage.save(f"assets/{name}", ContentFile(b"1"))
        ErasureFactory(object_key=wallet)
        DidEndpoint.objects.create(network=network, did=own.did, endpoint="https://a")
        self.publish_at_a_domain(tenant)
        self.issued_to_a_phone()
        self.name_somebody(tenant)
        self.mail_somebody(tenant)

    def mail_somebody(self, tenant):
        mailing = Mailing.objects.create(tenant=tenant, language="en")
        row = MailingRow(
            tenant=tenant,
            mailing=mailing,
            number=1,
            credential=Credential.objects.filter(tenant=tenant, role="issuer").first(),
            due_at=timezone.now(),
        )
        vault.seal(row, "address", "ann@club.example")
        row.save(force_insert=True)

    def name_somebody(self, tenant):
        named = Credential.objects.filter(tenant=tenant, role="issuer").first()
        vault.seal(named, "recipient_name", "Ann Lee")
        names = {named.pk: named.unsealed_recipient_name()}
        NameDigests.store(tenant, names)
        check = Verification.objects.filter(tenant=tenant, role="verifier").first()
        CheckDigests.store(tenant, {check.pk: "Ann Lee"})

    def publish_at_a_domain(self, tenant):
        with transactions.atomic():
            did = own_did.create(tenant, "agency.example.org")
            schema = {"issuerId": did.did, "name": "Dog", "version": "1.0"}
            own_did.publish_resource(
                own_did.lock_live(tenant=tenant),
                schema | {"attrNames": ["name"]},
                "anonCredsSchema",
                "Dog",
                "schema Dog 1.0",
            )

    def faber_says(self):
        self.said(self.faber, self.connection[0])
        return Delivery.objects.latest("pk")


def make_files():
    """The content of a file, and of one of an organization that is here too."""
    folder, made = Path(default_storage.location), {}
    for name in ("mine", "theirs"):
        database.clear()
        NetworkFactory(id="other")
        UserFactory()
        exports(Full().faber, folder / name)
        made[name] = (folder / name).read_bytes()
        (folder / name).unlink()
    return made


restore_files = Template(make_files)


@pytest.fixture
def file(transactional_db, stored_keys, monkeypatch, tmp_path):
    """A file, in an installation where somebody else is."""
    monkeypatch.setattr(header, "schema_digest", cache(header.schema_digest))
    for name, content in restore_files().items():
        (tmp_path / name).write_bytes(content)
    vault.forget_keys()
    return MoveFile(tmp_path / "mine")


@pytest.fixture
def is_refused(tmp_path):
    def check(file, code, *options):
        before = database.save()
        file.write(tmp_path / "changed")
        said = refused(code, tmp_path / "changed", "--copy", *options)
        assert database.save() == before, "something is left"
        return said

    return check


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [OPENING[-1], BULK[-1], CLOSING[-1], OPENING[0]],
    ids=lambda part: part.table,
)
def test_a_row_of_somebody_else_is_refused(file, is_refused, part, tmp_path):
    """One of each step of an import, and of the part that has one row or none. The next
    test tries all parts.
    """
    theirs = MoveFile(tmp_path / "theirs").rows(part)
    file.rows(part).blocks.append(theirs.blocks[0])
    is_refused(file, "file_damaged" if part == OPENING[0] else "foreign_row")


class Taken(Exception):
    pass


@pytest.fixture
def attack(monkeypatch, tmp_path):
    """Import a file, but try other rows of each part before its own.

    Return the codes by table and name of the case. change: called with a part and its
    rows, yields names and what to change the rows to.
    """
    insert, found = importing.insert_rows, {}

    def try_rows(part, rows, load):
        try:
            with importing.refusing_conflicts(), transactions.atomic():
                insert(part, rows, load)
                raise Taken
        except MoveRefused as refusal:
            return refusal.code
        except Taken:
            return "taken"

    def run(change):
        def insert_after_attacks(part, given, load):
            rows = list(given)
            for name, changed in change(part, rows):
                found[part.table, name] = try_rows(part, changed, load)
            insert(part, rows, load)

        monkeypatch.setattr(importing, "insert_rows", insert_after_attacks)
        imports(tmp_path / "mine", "--copy")
        return found

    return run


def hostile_values(part, field):
    """What no file may have in a column, by a name."""
    if field.related_model:
        yield "row", str(field.related_model._base_manager.latest("pk").pk)
    elif isinstance(field, UUIDField) and field.name not in checks.PRIVATE:
        if not field.primary_key:
            yield "id", str(Wallet.objects.latest("pk").pk)
    elif field.column in part.ids:
        yield "id", str(Wallet.objects.latest("pk").pk)
    elif isinstance(field, DateField):
        yield from (("never", "-infinity"), ("always", "infinity"))
    elif isinstance(field, IntegerField) and not isinstance(field, BigIntegerField):
        is_small = isinstance(field, SmallIntegerField)
        yield "last", str(2**15 - 1 if is_small else 2**31 - 1)
    elif field.choices:
        yield "choice", "X"


def test_nothing_of_others_is_reached_and_no_worker_stopped(file, attack, tmp_path):
    theirs = MoveFile(tmp_path / "theirs")

    def change(part, given):
        assert given, f"make a row of {part.table} in Full"
        yield "owner", [*given, theirs.rows(part).blocks[0]]
        for field in model_of(part.table)._meta.concrete_fields:
            constant = part.changes.get(field.column, field.column)
            if field.column in part.columns and field.column in constant:
                for name, value in hostile_values(part, field):
                    rows = Rows(part.columns, [*given])
                    rows.set(0, field.column, value)
                    yield f"{field.column} {name}", rows.blocks

    found = attack(change)
    assert found.pop(("tenants_provider", "owner")) == "file_damaged"
    assert {case: code for case, code in found.items() if code != "foreign_row"} == {}
    assert len(found) > 200


def part_of(table):
    return next(part for part in PARTS if part.table == table)


def test_names_that_are_no_foreign_keys_are_the_organizations_own(file, attack):
    """Else the other could write no event, registry or publication of that name."""
    own = Wallet.objects.get(tenant__name="Faber College", is_organization=True)
    registry = RevocationRegistry.objects.get()
    event = Event.objects.latest("pk")
    values = {
        ("wallets_wallet", "did"): own.did,
        ("wallets_key", "verkey"): Agent().verkey,
        ("connections_inboundmessage", "recipient_key"): own.public_key.verkey,
        ("credentials_credentialdefinition", "definition_id"): f"{own.did}:3:CL:1:x",
        ("credentials_revocationregistry", "registry_id"): f"{registry.registry_id}2",
        ("credentials_publication", "subject"): f"{own.did}:2:Next:1.0",
        ("credentials_credential", "revocation_registry_id"): registry.registry_id,
        ("webhooks_event", "object_key"): str(event.object_key),
        ("tenants_asset", "name"): "../tails/x.png",
        ("tenants_erasure", "kind"): "organization",
        ("credentials_publishedobject", "sequence"): str(2**62),
        ("credentials_publishedobject", "object_id"): f"{own.did}:2:Next:1.0",
    }

    chosen = {"wallets_wallet": ("is_organization", "f")}
    chosen["credentials_credential"] = ("role", "issuer")

    def change(part, given):
        for (table, column), value in values.items():
            if table == part.table:
                rows = Rows(part.columns, [*given])
                rows.set(rows.find(*chosen.get(table, ("id",))), column, value)
                yield column, rows.blocks

    found = attack(change)
    assert found == dict.fromkeys(values, "foreign_row")


def test_nobody_revokes_in_the_status_lists_of_others(file, attack):
    """The last organization and number of the address say which list it is."""
    mine = issuer_url(file.header["organization"])
    other = Tenant.objects.get(name="Faber College").pk
    lists = {"own": f"{mine}/status/1", "number": f"{mine}/status/x"}
    lists["other"] = f"{mine}/status/1/openid/{other}/status/1"

    def change(part, given):
        if part.table == "credentials_credential":
            for name, uri in lists.items():
                rows = Rows(part.columns, [*given])
                chosen = rows.find("format", "dc+sd-jwt")
                rows.set(chosen, "revocation_registry_id", uri)
                yield name, rows.blocks

    found = {name: code for (_, name), code in attack(change).items()}
    assert found == {"own": "taken", "number": "foreign_row", "other": "foreign_row"}


COSTLY = "argon2$argon2id$v=19$m={},t={},p=8$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA"


def test_no_pin_takes_more_time_or_memory_than_ours(attack, file, settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
    costly = [COSTLY.format(2**22, 2), COSTLY.format(8, 10**6)]
    costly += ["argon2$x", "unknown$1$2"]

    def change(part, given):
        if part.table == "webwallet_personallink":
            for pin in (make_password("1"), *costly):
                rows = Rows(part.columns, [*given])
                rows.set(0, "pin", pin)
                yield pin, rows.blocks

    found = {pin: code for (_, pin), code in attack(change).items()}
    assert [found.pop(pin) for pin in costly] == ["foreign_row"] * len(costly)
    assert [*found.values()] == ["taken"], "ours"


def test_a_key_of_names_makes_digests(file, is_refused):
    """Else no name of the organization could be stored any more."""
    rows = file.rows(part_of("credentials_namekey"))
    rows.set(0, "key", r"\\x0011")
    is_refused(file, "foreign_row")


def test_files_have_the_names_that_we_write(file, is_refused, storage):
    described, _ = file.named("file")[0]
    for name in ("../../x", "tails/../../x", "assets/x.html", "/etc/x", "assets/", 7):
        described["name"] = name
        is_refused(file, "file_damaged")
    assert not (storage.parent / "x").exists()


def test_a_block_has_a_greatest_length(file, is_refused, monkeypatch):
    monkeypatch.setattr(importing, "MAX_BLOCK_BYTES", 1000)
    is_refused(file, "file_damaged")


def test_a_file_has_a_greatest_size(file, is_refused, monkeypatch, settings):
    file.named("file")[0][1].extend([b"0" * 2000] * 300)
    settings.MAX_TAILS_BYTES = 1000
    monkeypatch.setattr(importing, "MAX_BLOCK_BYTES", 500_000)
    is_refused(file, "file_damaged")


def test_what_inflates_to_much_is_read_in_pieces(file, tmp_path, monkeypatch):
    rows = file.rows(part_of("tenants_auditentry"))
    rows.blocks.append(b"0" * importing.MAX_BLOCK_BYTES)
    file.write(tmp_path / "bomb")
    monkeypatch.setattr(importing, "MAX_BLOCK_BYTES", 1024 * 1024)
    tracemalloc.start()
    try:
        refused("file_damaged", tmp_path / "bomb", "--copy")
        assert tracemalloc.get_traced_memory()[1] < 16 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_a_header_has_the_shape_that_we_write(file, tmp_path, subtests):
    line, _, rest = (tmp_path / "mine").read_bytes().partition(b"\n")
    for member, value in (
        ("organization", "faber"), ("public_id", 7), ("salt", "x"), ("salt", ""),
        ("created_at", "yesterday"), ("created_at", None), ("networks", ["local"]),
        ("networks", {"local": "local"}), ("networks", {"local": [1, 2]}),
        ("rows", 7), ("release", None), ("public_url", []),
    ):  # fmt: skip
        changed = json.dumps(json.loads(line) | {member: value}).encode()
        (tmp_path / "mine").write_bytes(changed + b"\n" + rest)
        with subtests.test(f"{member}: {value}"):
            refused("file_unreadable", tmp_path / "mine", "--copy")


def test_parts_have_the_shape_that_we_write(file, is_refused, subtests):
    for kind, change in (
        ("keys", {"keys": []}), ("keys", {"keys": [{}]}), ("keys", {"files": "x"}),
        ("keys", {"keys": [{"generation": 1, "key": "MTIz", "retired_at": None}]}),
        ("keys", {"kind": "end"}), ("table", {"table": "auth_user"}),
        ("table", {"columns": ["id"]}), ("file", {"kind": "end"}),
        ("people", {"people": [["a@b.example", "god"]]}), ("people", {"people": 7}),
        ("end", {"kind": "people"}),
    ):  # fmt: skip
        described = file.named(kind)[0][0]
        before = dict(described)
        with subtests.test(f"{kind}: {change}"):
            described.update(change)
            is_refused(file, "file_damaged")
        described.update(before)


@pytest.mark.parametrize("table", ["tenants_tenant", "tenants_provider"])
def test_there_is_one_organization_with_one_account(file, is_refused, table):
    file.rows(part_of(table)).blocks.clear()
    is_refused(file, "file_damaged")


def test_a_public_did_is_that_of_a_key_in_the_file(file, is_refused):
    """Of somebody else, it would bring objects of that issuer."""
    wallets = file.rows(part_of("wallets_wallet"))
    theirs = Wallet.objects.exclude(did="").first()
    wallets.set(wallets.find("is_organization", "t"), "did", theirs.did)
    for part in PARTS[PARTS.index(part_of("credentials_schema")) :]:
        file.rows(part).blocks.clear()
    is_refused(file, "foreign_row")


def add_object(file, object_id, **changes):
    """Let a card in the file name a public object, which is in the file too."""
    cards = file.rows(part_of("credentials_credential"))
    cards.set(cards.find("role", "holder"), "schema_id", object_id)
    rows = file.rows(part_of("credentials_publishedobject"))
    rows.blocks.append(rows.blocks[rows.find("kind", "schema")])
    values = {"id": str(uuid7()), "object_id": object_id, "sequence": "900"} | changes
    for column, value in values.items():
        rows.set(len(rows) - 1, column, value)


def test_objects_of_issuers_elsewhere_come_if_the_operator_trusts_them(
    file, is_refused, tmp_path
):
    add_object(file, "Elsewhere:2:Title:1.0")
    assert "made them: Elsewhere." in is_refused(file, "foreign_objects")
    imports(tmp_path / "changed", "--copy", "--trust-issuers")
    assert PublishedObject.objects.filter(object_id="Elsewhere:2:Title:1.0").exists()


def test_nobody_publishes_for_an_issuer_that_lives_here(file, is_refused, tmp_path):
    did = Wallet.objects.exclude(did="").first().did
    add_object(file, f"{did}:2:Forged:1.0")
    is_refused(file, "foreign_row")
    is_refused(file, "foreign_row", "--trust-issuers")


def test_what_is_here_already_may_be_in_the_file(file, tmp_path):
    here = PublishedObject.objects.filter(kind="schema").first()
    theirs = MoveFile(tmp_path / "theirs").rows(part_of("credentials_publishedobject"))
    body = theirs.get(theirs.find("object_id", here.object_id), "body")
    add_object(file, here.object_id, body=body)
    before = PublishedObject.objects.count()
    file.write(tmp_path / "mine")
    imports(tmp_path / "mine", "--copy")
    own = len(file.rows(part_of("credentials_publishedobject"))) - 1
    assert PublishedObject.objects.count() == before + own


def test_an_account_that_is_here_gains_nothing(file, tmp_path):
    account = Provider.objects.get(name="Faber College")
    found = {"keys": account.keys.count(), "assets": account.assets.count()}
    [given] = file.rows(part_of("tenants_provider")).blocks
    old = given.decode().split("\t")[0]
    for _, blocks in file.named("table"):
        blocks[:] = [
            row.replace(old.encode(), str(account.pk).encode()) for row in blocks
        ]
    file.write(tmp_path / "mine")
    imports(tmp_path / "mine", "--copy")
    now = Tenant.objects.get(pk=file.header["organization"]).provider
    assert now == account and not now.has_quotas
    assert {name: getattr(now, name).count() for name in found} == found


def test_what_the_installation_decides_is_not_taken_from_a_file(file, tmp_path):
    late, person = "2100-01-01 00:00:00+00", str(User.objects.get().pk)
    changes = {
        "tenants_provider": {"person_id": person, "has_quotas": "f"},
        "tenants_tenant": {"created_at": late, "deleted_at": "\\N"},
        "tenants_apikey": {"created_at": late, "made_by_id": person},
        "connections_inboundmessage": {"lease_owner": person.zfill(32)},
        "webhooks_event": {"transaction_id": str(2**62)},
    }
    for table, values in changes.items():
        for column, value in values.items():
            file.rows(part_of(table)).set(0, column, value)
    file.write(tmp_path / "mine")
    imports(tmp_path / "mine", "--copy")
    tenant = Tenant.objects.get(pk=file.header["organization"])
    assert (tenant.provider.person, tenant.provider.has_quotas) == (None, True)
    assert tenant.created_at <= tenant.imported_at
    assert all(key.created_at <= tenant.imported_at for key in tenant.keys.all())
    assert not tenant.inboundmessage_set.exclude(lease_owner=None).exists()
    assert not Event.objects.filter(tenant=tenant, transaction_id__gt=0).exists()


def test_a_data_key_of_a_file_can_be_rotated(file, is_refused):
    """Else the next rotation stops before the organizations that follow."""
    for generation in (0, 2**15 - 1):
        file.named("keys")[0][0]["keys"][0]["generation"] = generation
        is_refused(file, "file_damaged")


def test_a_retired_key_of_a_file_ends_no_peer_of_somebody_else(file, tmp_path):
    """Of a key that is retired nobody can prove that he had it."""
    peer, rows = Agent().verkey, file.rows(part_of("wallets_key"))
    rows.blocks.append(rows.blocks[0])
    tombstone = {"id": str(uuid7()), "verkey": peer, "wallet_id": "\\N"}
    tombstone |= {"seed": "\\N", "retired_at": "2026-01-01 00:00:00+00"}
    for column, value in tombstone.items():
        rows.set(len(rows) - 1, column, value)
    file.write(tmp_path / "mine")
    imports(tmp_path / "mine", "--copy")
    assert Key.objects.filter(pk=tombstone["id"]).exists()
    assert Key.find(peer) is None
