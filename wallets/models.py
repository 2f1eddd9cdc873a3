"""Wallets, each the agent of one party, and their keys."""

from typing import Any
from uuid import UUID

from django.contrib.postgres.indexes import HashIndex
from django.db import connection as database
from django.db import models
from django.db.models import Case, F, Q, QuerySet, When
from django.db.models.functions import Coalesce
from django.utils import timezone
from uuid_utils.compat import uuid7

from core.database.base import fetch_rows
from core.database.collation import case_insensitive
from core.database.compiled_sql import CompiledQuery, insert_row
from core.errors import NotFound, OrganizationFrozen
from core.work import transactions
from tenants import quotas, vault
from tenants.models import Erasure, LiveRows, NotedRow, Notes, Record, Tenant
from wallets import anoncreds, keys

LOCK_SQL = (
    "SELECT id FROM wallets_wallet WHERE id = %s AND deleted_at IS NULL "
    "FOR NO KEY UPDATE"
)


class Wallet(Record, NotedRow):
    """The agent of one party: keys, link secret, connections and exchanges.

    An organization has one wallet of its own, which issues and verifies with a public
    DID, and any number of hosted wallets, one for each holder.

    `objects` has those that are not deleted. Of a deleted one (`deleted_at`) a worker
    removes the rows, and at last its own: tenants/lifecycle/erasure.py.
    """

    api_id = "wallet_id"
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="wallets")
    wallet_id = models.CharField(max_length=128)
    owner_name = models.CharField(max_length=200, blank=True)
    # Whether this is the organization's own wallet.
    is_organization = models.BooleanField(default=False)
    # The public DID of the organization's own wallet.
    did = models.CharField(max_length=255, blank=True)
    # Sealed (tenants/vault.py).
    link_secret = models.BinaryField()
    deleted_at = models.DateTimeField(null=True, editable=False)

    objects = LiveRows()

    # With more connections, a worker ends them after the call.
    MAX_ENDED_AT_ONCE = 50

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "wallet_id"], name="one_wallet_per_id"
            ),
            models.UniqueConstraint(
                fields=["tenant"],
                condition=Q(is_organization=True),
                name="one_wallet_of_the_organization",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-id"]),
            models.Index(
                "tenant", case_insensitive("owner_name"), "id", name="wallet_by_name"
            ),
            models.Index(
                fields=["tenant", "reference", "id"], name="wallet_by_reference"
            ),
            # For support's search over all organizations.
            HashIndex(fields=["wallet_id"], name="wallet_by_chosen_id"),
            HashIndex(fields=["did"], condition=~Q(did=""), name="wallet_by_did"),
        ]

    def __str__(self) -> str:
        return self.wallet_id

    @classmethod
    def create(
        cls,
        tenant: Tenant,
        wallet_id: str | None = None,
        notes: Notes | None = None,
        **fields: Any,
    ) -> "Wallet":
        """Create a wallet with a new link secret. wallet_id: by default the row's id.

        Raises IntegrityError if the organization has a wallet of this id.
        """
        wallet = cls(tenant=tenant, **fields)
        if not wallet.is_organization:
            quotas.require_room(quotas.WALLETS, tenant)
        wallet.wallet_id = wallet_id or str(wallet.pk)
        vault.seal(wallet, "link_secret", anoncreds.create_link_secret())
        wallet.set_notes(notes)
        wallet.save(force_insert=True)
        return wallet

    @classmethod
    def of_organization(cls, tenant: Tenant) -> "Wallet":
        """Return the organization's own wallet, with this object as its `tenant`."""
        wallet = cls.objects.get(tenant=tenant, is_organization=True)
        wallet.tenant = tenant
        return wallet

    @classmethod
    def hosted_by(cls, tenant: Tenant | UUID) -> "models.QuerySet[Wallet]":
        """Return the wallets of holders, without the organization's, in no order."""
        return cls.objects.filter(tenant=tenant, is_organization=False)

    @property
    def name(self) -> str:
        """The organization's name if this is its own wallet, else the holder's."""
        return self.tenant.name if self.is_organization else self.owner_name

    @property
    def image_url(self) -> str:
        """The URL of the organization's picture if this is its own wallet, else ""."""
        return self.tenant.image_url if self.is_organization else ""

    def unseal_link_secret(self) -> str:
        """Return the link secret, as AnonCreds reads it. Decrypts it in each call."""
        return vault.unseal(self, "link_secret")

    @property
    def qualified_did(self) -> str:
        """The public DID with its method, as invitations have it."""
        return self.did if ":" in self.did else f"did:sov:{self.did}"

    @property
    def public_key(self) -> "Key":
        """The first key, that of the organization's public DID. It never changes.

        One query. AssertionError for a hosted wallet, which has no public DID.
        """
        key = self.keys.order_by("pk").first()
        assert key and self.did, "only an organization has a public DID"
        return key

    def create_key(self, seed: bytes | None = None) -> "Key":
        """Store a new key of this wallet, and return it.

        seed: 32 bytes; by default random ones. IntegrityError if any wallet has its
        key.
        """
        return Key.create(self, seed or keys.generate_seed())

    def lock(self) -> bool:
        """Lock the row until the transaction ends. Return False if it was deleted.

        The lock prevents new connections and the deletion of the wallet. Lock order:
        the wallet before its connections. This object is not reloaded. RuntimeError
        outside of a transaction.
        """
        if not database.in_atomic_block:
            raise RuntimeError("a lock needs an atomic transaction")
        return bool(fetch_rows(LOCK_SQL, [self.pk]))

    def lock_or_404(self) -> None:
        """Lock it as lock() does. 404 `not_found` if it was deleted."""
        if not self.lock():
            raise NotFound("not_found", "There is no such wallet any more.")

    @transactions.atomic()
    def remove(self) -> None:
        """Delete the wallet: from now on it is found nowhere, and its id is free.

        In one transaction, which locks the wallet, then its connections. Its keys are
        kept as tombstones. Few connections end in this transaction; a worker ends
        many, and removes the rows. A second call does nothing.
        """
        if not self.lock():
            return
        self.end_if_few(self.connections.all())
        row = Wallet.objects.filter(pk=self.pk)
        row.update(deleted_at=timezone.now(), wallet_id=uuid7())
        Erasure.start(Erasure.Kind.WALLET, self)

    @classmethod
    def end_if_few(cls, rows: "models.QuerySet[Any]") -> None:
        """End these connections, so that the peers learn it at once.

        If there are more than MAX_ENDED_AT_ONCE, end none: a worker will.
        """
        connections = list(rows.order_by("pk")[: cls.MAX_ENDED_AT_ONCE + 1])
        if len(connections) > cls.MAX_ENDED_AT_ONCE:
            return
        rows.model.lock_all(connections)
        for connection in connections:
            connection.give_up()
        given_up = rows.model.objects.filter(pk__in=[row.pk for row in connections])
        given_up.update(left_at=timezone.now())


class Key(Record):
    """A signing key of a wallet.

    A retired key is kept as a tombstone, so that late messages to it are recognized.
    The tombstone has no seed and no wallet and, if its organization was deleted, no
    tenant.
    """

    # Of a row of with_end().
    is_frozen: bool
    is_deleted_soon: bool

    TOMBSTONE = {"wallet": None, "seed": None}

    tenant = models.ForeignKey(Tenant, on_delete=models.SET_NULL, null=True)
    wallet = models.ForeignKey(
        Wallet, on_delete=models.SET_NULL, null=True, related_name="keys"
    )
    # Base58 of 32 bytes.
    verkey = models.CharField(max_length=44, unique=True)
    seed = models.BinaryField(null=True)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(retired_at=None, seed__isnull=False)
                | Q(retired_at__isnull=False, seed=None, wallet=None),
                name="key_is_live_or_tombstone",
            )
        ]
        # For the first key of a wallet that has many.
        indexes = [models.Index(fields=["wallet", "id"], name="keys_of_wallet")]

    def __str__(self) -> str:
        return self.verkey

    @classmethod
    def create(cls, wallet: Wallet, seed: bytes) -> "Key":
        """Store the key pair of a seed of 32 bytes; the seed is sealed."""
        verkey = keys.verkey_of(seed)
        key = cls(tenant_id=wallet.tenant_id, wallet=wallet, verkey=verkey)
        vault.seal(key, "seed", keys.encode_key(seed))
        insert_row(key)
        return key

    @classmethod
    def with_end(cls) -> "models.QuerySet[Key]":
        """All keys, with `ended_at`: when each was retired or its wallet deleted.

        And with what require_thawed() needs. While an import runs, its organization is
        hidden (`deleted_at`): such a key is frozen, not ended.
        """
        deleted_at = Case(
            When(wallet__tenant__frozen_at=None, then=F("wallet__tenant__deleted_at"))
        )
        return cls.objects.annotate(
            ended_at=Coalesce("retired_at", "wallet__deleted_at", deleted_at),
            is_frozen=Q(wallet__tenant__frozen_at__isnull=False),
            is_deleted_soon=Q(wallet__tenant__deletion_due_at__isnull=False),
        )

    def require_thawed(self) -> None:
        """Raise OrganizationFrozen as Tenant.require_thawed() does.

        The sender keeps its message for a later attempt. For a row of with_end().
        """
        if self.is_frozen:
            raise OrganizationFrozen(self.is_deleted_soon)

    @classmethod
    def find(cls, verkey: str) -> "Key | None":
        """Find the key, retired or not. None if it is no key of a wallet here.

        One query. It has the columns of with_end().
        """
        return _key_by_verkey.first(verkey)

    @classmethod
    def find_any(cls, verkeys: list[str]) -> "Key | None":
        """Find one of these keys, as find() does. None if none is of a wallet here.

        The oldest one that is not retired; else one that is_retired. One query.
        """
        if len(verkeys) == 1:  # the usual case, with compiled SQL
            return cls.find(verkeys[0])
        found = cls.with_end().filter(verkey__in=verkeys)
        return found.order_by(F("ended_at").asc(nulls_first=True), "pk").first()

    @classmethod
    def find_live(cls, verkey: str) -> "Key | None":
        """Find the key as find() does. None too if it is_retired."""
        found = cls.find(verkey)
        return None if found is None or found.is_retired else found

    @property
    def is_retired(self) -> bool:
        """Whether it receives nothing more.

        It was retired or, if it was read by with_end(), its wallet was deleted.
        """
        return getattr(self, "ended_at", self.retired_at) is not None

    @property
    def did(self) -> str:
        """The unqualified DID of the key: see did_of()."""
        return keys.did_of(self.verkey)

    def unseal_seed(self) -> bytes:
        """Return the seed, 32 bytes, of a live key. Decrypts it in each call."""
        return keys.decode_key(vault.unseal(self, "seed"))

    def retire(self) -> None:
        Key.objects.filter(pk=self.pk).update(
            **self.TOMBSTONE, retired_at=timezone.now()
        )


_key_by_verkey = CompiledQuery(lambda verkey: Key.with_end().filter(verkey=verkey), str)


class SpareKey(Record):
    """A definition key generated in advance (see key_pool.py): its primes serve once.

    parts: sealed. attributes: how many the key is for, which processes of 0.1.0 go by.
    leased_until: until when a call has it; None if no call does.
    """

    tenant_id = None  # sealed under the system's data key

    attributes = models.PositiveSmallIntegerField(db_index=True)
    parts = models.BinaryField()
    leased_until = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"spare key {self.pk}"

    def leased_row(self) -> QuerySet["SpareKey"]:
        """This row, if it is still leased to the caller: later leases end later."""
        return SpareKey.objects.filter(pk=self.pk, leased_until=self.leased_until)


class KeyRequest(models.Model):
    """A call that needs a spare key (see key_queue.py).

    organization: the id of a Tenant. is_waiting: whether a thread waits; else the call
    was refused and keeps its place. alive_until: when the place is lost. served_at:
    when it got a key.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.UUIDField()
    is_waiting = models.BooleanField(default=True)
    alive_until = models.DateTimeField()
    served_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"key request {self.pk}"


class KeyFiller(models.Model):
    """A host on which a process generates spare keys (see key_generator.py)."""

    host = models.CharField(primary_key=True, max_length=255)
    leased_until = models.DateTimeField()

    def __str__(self) -> str:
        return self.host
