"""A file of somebody who wants more than his organization: refused, nothing left."""

from functools import cache

import pytest
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

from agency.core import transactions
from agency.holder_pages.models import ClosedLink
from agency.ops.moving import checks, header, importing
from agency.ops.moving.refusals import MoveRefused
from agency.ops.moving.tables import PARTS, model_of
from agency.web_wallet import links
from connections.models import SeenMessage
from credentials.models import DidEndpoint, Publication
from sandbox.models import SimulatedAnswer
from tenants import audit, vault
from tenants.models import AgreementAcceptance, IdempotencyKey, Network
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
from tests.support.move_files import MoveFile, Rows
from tests.support.pictures import storage
from tests.support.world import WEBHOOK, World
from wallets.models import Wallet
from webhooks.models import Delivery

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
        name = f"{uuid7().hex}.png"
        tenant.provider.assets.create(name=name, size=1)
        default_storage.save(f"assets/{name}", ContentFile(b"1"))
        ErasureFactory(object_key=wallet)
        DidEndpoint.objects.create(network=network, did=own.did, endpoint="https://a")

    def faber_says(self):
        self.said(self.faber, self.connection[0])
        return Delivery.objects.latest("pk")


MADE = {}


@pytest.fixture
def file(transactional_db, stored_keys, settings, monkeypatch, tmp_path):
    """A file, in an installation where somebody else is."""
    monkeypatch.setattr(header, "schema_digest", cache(header.schema_digest))
    if MADE:
        settings.AGENCY_MOVE_KEY = MADE["key"]
        database.restore(MADE["rows"])
    else:
        MADE["key"] = settings.AGENCY_MOVE_KEY
        exports(Full().faber, tmp_path / "mine")
        MADE["mine"] = (tmp_path / "mine").read_bytes()
        database.clear()
        NetworkFactory(id="other")
        UserFactory()
        exports(Full().faber, tmp_path / "theirs")
        MADE["theirs"] = (tmp_path / "theirs").read_bytes()
        MADE["rows"] = database.save()
    for name in ("mine", "theirs"):
        (tmp_path / name).write_bytes(MADE[name])
    vault.forget_keys()
    return MoveFile(tmp_path / "mine")


@pytest.fixture
def is_refused(tmp_path):
    def check(file, *codes):
        before = database.save()
        file.write(tmp_path / "changed")
        said = refused(codes[0], tmp_path / "changed", "--copy")
        assert database.save() == before, "something is left"
        return said

    return check


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.table)
def test_a_row_of_somebody_else_is_refused(file, is_refused, part, tmp_path):
    theirs = MoveFile(tmp_path / "theirs").rows(part)
    file.rows(part).blocks.append(theirs.blocks[0])
    code = "file_damaged" if part.table == "tenants_provider" else "foreign_row"
    is_refused(file, code)


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
