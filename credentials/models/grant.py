"""Offers to wallets of OpenID4VC: codes, tokens, and what was used of them."""

import hashlib
from datetime import timedelta
from uuid import UUID

from django.db import models
from django.utils import timezone

from core.database.columns import ColumnValue
from core.database.compiled_sql import CompiledQuery, insert_row, update_rows
from credentials.models.credential import Credential
from tenants import vault
from tenants.models import Record, Tenant

MAX_TRIES = 5  # of a transaction code
TOKEN_SECONDS = 300


class Grant(Record):
    """What a wallet needs to get an offered credential, once.

    The code of the link gets the token, which gets the credential for the first key
    that the wallet proves to have. Codes and tokens are random, so their digests tell
    nothing. transaction_code: what the holder was told besides, sealed. tries: how
    often it was guessed wrong. redeemed_at: when the code was exchanged for the token.
    served_at: when the credential that was issued by hand was fetched. notified: the
    last event of which the wallet has notified us.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    credential = models.OneToOneField(
        Credential, on_delete=models.CASCADE, related_name="grant"
    )
    code_digest = models.BinaryField(unique=True)
    transaction_code = models.BinaryField(null=True)
    tries = models.PositiveSmallIntegerField(default=0)
    redeemed_at = models.DateTimeField(null=True)
    token_digest = models.BinaryField(null=True, unique=True)
    token_expires_at = models.DateTimeField(null=True)
    # RFC 7638: of the key to which the token is bound (DPoP), and of the holder's.
    token_thumbprint = models.CharField(max_length=43, blank=True)
    key_thumbprint = models.CharField(max_length=43, blank=True)
    served_at = models.DateTimeField(null=True)
    notified = models.CharField(max_length=30, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(redeemed_at=None, token_digest=None)
                | models.Q(redeemed_at__isnull=False, token_digest__isnull=False),
                name="redeemed_has_its_token",
            )
        ]

    def __str__(self) -> str:
        return str(self.pk)

    @classmethod
    def find_by_code(cls, tenant: Tenant, code: str) -> "Grant | None":
        return _of_tenant(grant_by_code.first(tenant.pk, digest_of(code)), tenant)

    @classmethod
    def find_by_token(cls, tenant: Tenant, token: str) -> "Grant | None":
        return _of_tenant(grant_by_token.first(tenant.pk, digest_of(token)), tenant)

    def lock(self) -> "Grant | None":
        """Lock the link. Return this row with its credential, as they are then.

        In transactions.atomic(). None if they were deleted.
        """
        connection = self.credential.live_connection
        locked = connection and connection.lock()
        if locked is None:
            return None
        thread_id = self.credential.thread_id
        credential = Credential.find_on_connection(locked, thread_id)
        found = grant_by_id.first(self.pk)
        if credential is None or found is None:
            return None
        found.credential = credential
        return found

    def update(self, **changes: ColumnValue) -> None:
        """Update columns, in the database and on this object."""
        changes["updated_at"] = timezone.now()
        update_rows(Grant, {"id": self.pk}, changes)
        for name, value in changes.items():
            setattr(self, name, value)

    def has_transaction_code(self, given: str) -> bool:
        return vault.unseal(self, "transaction_code") == given

    @property
    def is_token_fresh(self) -> bool:
        """Whether the token is of the time in which a credential is asked for."""
        if self.redeemed_at is None:
            return False
        return timezone.now() < self.redeemed_at + timedelta(seconds=TOKEN_SECONDS)


class SpentNonce(models.Model):
    """What may be used once, such as a nonce, and was: its digest.

    It is kept until it would have expired anyway.
    """

    tenant_id = None

    digest = models.CharField(max_length=43, primary_key=True)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.digest

    @classmethod
    def spend(cls, digest: str, seconds: int) -> bool:
        """Use it up, in the caller's transaction. Return False if it was used before."""
        end = timezone.now() + timedelta(seconds=seconds)
        return insert_row(cls(digest=digest, expires_at=end), ignore_conflict=True)


grant_by_id = CompiledQuery(lambda pk: Grant.objects.filter(pk=pk), UUID)
grant_by_code = CompiledQuery(
    lambda tenant_id, digest: _with_link(tenant=tenant_id, code_digest=digest),
    UUID,
    bytes,
)
grant_by_token = CompiledQuery(
    lambda tenant_id, digest: _with_link(tenant=tenant_id, token_digest=digest),
    UUID,
    bytes,
)


def _with_link(**condition: UUID | bytes) -> models.QuerySet[Grant]:
    rows = Grant.objects.filter(**condition)
    return rows.select_related("credential__connection__my_key")


def _of_tenant(found: Grant | None, tenant: Tenant) -> Grant | None:
    if found:
        found.credential.tenant = tenant
    return found


def digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
