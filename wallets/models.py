"""Wallets, each the agent of one party, and their keys."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.indexes import HashIndex
from django.db import IntegrityError, models
from django.db import connection as database
from django.db.models import Case, F, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce, NullIf
from django.utils import timezone
from uuid_utils.compat import uuid7

from core.database.base import fetch_rows
from core.database.collation import case_insensitive
from core.database.compiled_sql import CompiledQuery, insert_row
from core.errors import Conflict, Invalid, NotFound, OrganizationFrozen, PeerError
from core.work import transactions
from tenants import quotas, vault
from tenants.models import Erasure, LiveRows, NotedRow, Notes, Record, Tenant
from wallets import anoncreds, keys
from wallets.jose import certificates, signing

CLOCK_SKEW = timedelta(minutes=5)  # by which clocks of others may be behind
# A credential is verified with the certificates that its signer had, and may be valid
# for ten years: so theirs are valid for longer, and are renewed before they are not.
LEAF_VALID_FOR = timedelta(days=12 * 365)
RENEW_BEFORE = timedelta(days=11 * 365)
RENEWED_AT_ONCE = 500  # keys
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
    # The public DID of the organization's own wallet: of its first key, or a did:webvh.
    did = models.CharField(max_length=64, blank=True)
    webvh_did = models.CharField(max_length=255, blank=True, default="", db_default="")
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

    @property
    def issuer_did(self) -> str:
        """The public DID of the organization's own wallet, "" of others."""
        return self.webvh_did or self.did

    @classmethod
    def with_issuer_did(cls) -> Coalesce:
        """`issuer_did` in a query."""
        return Coalesce(NullIf("webvh_did", Value("")), "did")

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
        wallet = _own_wallet.first(tenant.pk)
        if wallet is None:
            raise cls.DoesNotExist
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
        return self.webvh_did or f"did:sov:{self.did}"

    @property
    def public_key(self) -> "Key":
        """The first key, that of the organization's public DID. It never changes.

        One query. AssertionError for a hosted wallet, which has no public DID.
        """
        key = self.keys.order_by("pk").first()
        assert key and self.issuer_did, "only an organization has a public DID"
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


_own_wallet = CompiledQuery(
    lambda tenant: Wallet.objects.filter(tenant=tenant, is_organization=True), UUID
)


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


class Authority(Record):
    """The certificate authority of the installation, which names organizations.

    It serves organizations that have uploaded no certificates of another one. Wallets
    that check a list of trusted authorities refuse it. certificate: base64 of its DER.
    """

    tenant_id = None  # sealed under the system's data key

    is_live = models.BooleanField(default=True)
    private_key = models.BinaryField()
    certificate = models.TextField()

    NAME = "Agency"
    VALID_FOR = timedelta(days=25 * 365)

    class Meta:
        verbose_name_plural = "authorities"
        constraints = [
            models.UniqueConstraint(
                fields=["is_live"], condition=Q(is_live=True), name="one_live_authority"
            )
        ]

    def __str__(self) -> str:
        return f"authority {self.pk}"

    @classmethod
    def live(cls) -> Self:
        """Return the authority. It is made when it is first needed."""
        rows = cls.objects.filter(is_live=True)
        if found := rows.first():
            return found
        secret, now = signing.generate_secret(), timezone.now()
        der = certificates.make_authority(
            cls.NAME, secret, now - CLOCK_SKEW, now + cls.VALID_FOR
        )
        made = cls(certificate=certificates.encode_chain([der])[0])
        vault.seal(made, "private_key", signing.encode_base64url(secret))
        try:
            with transactions.atomic():
                made.save(force_insert=True)
        except IntegrityError:  # another process was faster
            return rows.get()
        return made

    @classmethod
    def every_certificate(cls) -> list[certificates.Certificate]:
        """Return those of the live authority and of former ones."""
        return [one.read_certificate() for one in _authorities.all()]

    def read_certificate(self) -> certificates.Certificate:
        return certificates.read_chain([self.certificate])[0]

    def sign_leaf(self, name: str, uri: str, secret: bytes) -> certificates.Certificate:
        """Make the certificate of an organization's key, valid for LEAF_VALID_FOR."""
        own = self.read_certificate()
        now = timezone.now()
        der = certificates.make_leaf(
            name,
            uri,
            secret,
            certificates.der_of(own),
            signing.decode_base64url(vault.unseal(self, "private_key")),
            now - CLOCK_SKEW,
            min(now + LEAF_VALID_FOR, own.not_valid_after_utc),
        )
        return certificates.read_chain(certificates.encode_chain([der]))[0]


_authorities = CompiledQuery(Authority.objects.all)


class SigningKey(Record):
    """A P-256 key by which an organization is known to wallets of OpenID4VC.

    It has one for each purpose. x5c: its certificates, the leaf first and without the
    authority's, as in the header of what it signs; [] until they are made. They are
    the installation's own until others are uploaded.
    """

    class Purpose(models.TextChoices):
        CREDENTIALS = "credentials"
        REQUESTS = "requests"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    purpose = models.CharField(max_length=11, choices=Purpose.choices)
    private_key = models.BinaryField()
    # RFC 7638.
    thumbprint = models.CharField(max_length=43)
    x5c = models.JSONField(default=list)
    # When the first of these certificates ends.
    ends_at = models.DateTimeField(null=True)
    is_uploaded = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "purpose"], name="one_signing_key_per_purpose"
            )
        ]
        indexes = [models.Index(fields=["ends_at"], name="signing_key_by_end")]

    def __str__(self) -> str:
        return f"{self.purpose} {self.thumbprint}"

    @classmethod
    def of(cls, tenant: Tenant, purpose: "SigningKey.Purpose") -> "SigningKey":
        """Return the key of an organization, with certificates.

        It is made when it is first needed.
        """
        found = _signing_key.first(tenant.pk, str(purpose))
        if found is None:
            secret = signing.generate_secret()
            found = cls(tenant=tenant, purpose=purpose)
            found.thumbprint = signing.thumbprint_of(signing.public_jwk_of(secret))
            vault.seal(found, "private_key", signing.encode_base64url(secret))
            try:
                with transactions.atomic():
                    found.save(force_insert=True)
            except IntegrityError:  # another call was faster
                found = cls.objects.get(tenant=tenant, purpose=purpose)
        found.tenant = tenant
        if not found.x5c:
            found.certify()
        return found

    def certify(self) -> None:
        """Give the key a certificate of the installation's authority."""
        leaf = Authority.live().sign_leaf(
            self.tenant.name, issuer_url(self.tenant_id), self.unseal_secret()
        )
        self.use_certificates([leaf])

    def use_certificates(
        self, chain: list[certificates.Certificate], is_uploaded: bool = False
    ) -> None:
        """Store its certificates. What was signed before keeps those of then."""
        self.x5c = certificates.encode_chain(map(certificates.der_of, chain))
        self.ends_at = certificates.ends_at(chain)
        self.is_uploaded = is_uploaded
        self.updated_at = timezone.now()
        self.save(update_fields=["x5c", "ends_at", "is_uploaded", "updated_at"])

    @classmethod
    def upload(cls, tenant: Tenant, pem: str) -> Self:
        """Use certificates of another authority for the key that the first is of.

        What was signed before stays valid, as the key is the same. 400
        `invalid_certificate`.
        """
        chain = certificates.read_pem(pem)
        try:
            jwk = signing.jwk_of(certificates.key_of(chain[0]))
        except PeerError as error:
            raise Invalid("invalid_certificate", error.message) from None
        rows = cls.objects.filter(tenant=tenant, thumbprint=signing.thumbprint_of(jwk))
        key = rows.first()
        if key is None:
            message = (
                "The first certificate is of no key of the organization. Have the one "
                "signed that `GET /openid/certificateRequest` answers."
            )
            raise Invalid("invalid_certificate", message)
        chain = certificates.check_own_chain(
            chain, issuer_url(tenant.pk), timezone.now()
        )
        key.use_certificates(chain, is_uploaded=True)
        return key

    @property
    def audit_facts(self) -> dict[str, str]:
        return {"purpose": self.purpose, "thumbprint": self.thumbprint}

    @property
    def pem(self) -> str:
        return certificates.encode_pem(certificates.read_chain(self.x5c))

    def make_request(self) -> str:
        """Return a request for its certificate (PKCS#10), in PEM."""
        return certificates.make_request(
            self.tenant.name, issuer_url(self.tenant_id), self.unseal_secret()
        )

    @classmethod
    def ending_before(cls, moment: datetime) -> "models.QuerySet[Self]":
        """Return the keys whose certificates end before, the first to end first."""
        rows = cls.objects.filter(ends_at__lt=moment, tenant__deleted_at=None)
        return rows.select_related("tenant").order_by("ends_at")

    @classmethod
    def renew(cls) -> int:
        """Renew what the installation's own authority has certified, in time.

        Return how many keys there were. Uploaded certificates are for people to renew.
        """
        soon = timezone.now() + RENEW_BEFORE
        keys = cls.ending_before(soon).filter(is_uploaded=False, tenant__frozen_at=None)
        chosen = list(keys[:RENEWED_AT_ONCE])
        for key in chosen:
            key.certify()
        return len(chosen)

    def unseal_secret(self) -> bytes:
        """Return the private key, 32 bytes. Decrypts it in each call."""
        return signing.decode_base64url(vault.unseal(self, "private_key"))

    def sign(self, payload: Mapping[str, object], typ: str) -> str:
        """Sign a token whose header has the certificates."""
        return signing.sign_token(payload, self.unseal_secret(), typ, x5c=self.x5c)


_signing_key = CompiledQuery(
    lambda tenant, purpose: SigningKey.objects.filter(tenant=tenant, purpose=purpose),
    UUID,
    str,
)


class TrustAnchor(Record):
    """An authority by which an organization knows other issuers of SD-JWT VCs.

    A restriction of a policy names it. certificate: base64 of its DER. fingerprint: its
    SHA-256.
    """

    api_id = "pk"
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    name = models.CharField(max_length=100)
    certificate = models.TextField()
    fingerprint = models.CharField(max_length=64)
    ends_at = models.DateTimeField()

    MAX_OF_TENANT = 100

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "fingerprint"], name="trust_anchor_once"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def audit_facts(self) -> dict[str, str]:
        return {"name": self.name, "fingerprint": self.fingerprint}

    @property
    def pem(self) -> str:
        return certificates.encode_pem([self.read_certificate()])

    def read_certificate(self) -> certificates.Certificate:
        return certificates.read_chain([self.certificate])[0]

    @classmethod
    def find_above(
        cls, tenant: Tenant, chain: Sequence[certificates.Certificate], now: datetime
    ) -> Self | None:
        """The anchor of an organization to which a chain leads, or None."""
        rows = {one.fingerprint: one for one in cls.objects.filter(tenant=tenant)}
        anchors = [one.read_certificate() for one in rows.values()]
        try:
            found = certificates.verify_chain(chain, anchors, now)
        except PeerError:
            return None
        return rows[certificates.fingerprint_of(found)]

    @classmethod
    def read(cls, pem: str) -> certificates.Certificate:
        """The certificate of an authority that may be trusted. 400 `invalid_certificate`."""
        chain = certificates.read_pem(pem)
        if len(chain) > 1:
            raise Invalid("invalid_certificate", "Give one certificate.")
        [found] = chain
        certificates.check_anchor(found, timezone.now())
        for own in Authority.every_certificate():
            # It stands behind all organizations here, so it would prove nothing.
            if own.public_key() == found.public_key():
                message = (
                    "This is the authority of this server. Name definitions in a "
                    "policy, whose organizations are known."
                )
                raise Invalid("invalid_certificate", message)
        return found

    @classmethod
    def create(cls, tenant: Tenant, name: str, pem: str) -> Self:
        """Trust an authority from now on. pem: its certificate.

        400 `invalid_certificate`; 409 `trust_anchor_exists`, `too_many_trust_anchors`.
        """
        found = cls.read(pem)
        made = cls(
            tenant=tenant,
            name=name,
            certificate=certificates.encode_chain([certificates.der_of(found)])[0],
            fingerprint=certificates.fingerprint_of(found),
            ends_at=certificates.ends_at([found]),
        )
        with transactions.atomic():
            # One call at a time counts and inserts.
            tenant.lock_row()
            rows = cls.objects.filter(tenant=tenant)
            if rows.filter(fingerprint=made.fingerprint).exists():
                message = "This certificate is a trust anchor already."
                raise Conflict("trust_anchor_exists", message)
            if rows.count() >= cls.MAX_OF_TENANT:
                message = (
                    f"An organization has at most {cls.MAX_OF_TENANT} trust anchors. "
                    "Delete one first."
                )
                raise Conflict("too_many_trust_anchors", message)
            made.save(force_insert=True)
        return made


def issuer_url(tenant_id: UUID) -> str:
    """Return the issuer identifier of an organization in OpenID4VC."""
    return f"{settings.PUBLIC_URL}/openid/{tenant_id}"


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
