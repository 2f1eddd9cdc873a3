"""Token status lists: a public bit for each revocable SD-JWT VC."""

import secrets
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db import models
from django.db.models import Max

from core.database.base import fetch_rows
from tenants.models import Record, Tenant
from wallets.jose import status_token
from wallets.models import issuer_url

PLACES = 131_072
# Half of them: a place is then found soon, and says nothing about when it was given.
MAX_USED = PLACES // 2
# PostgreSQL counts the bits of a byte as these lists do, from the lowest one.
TAKE_SQL = """
UPDATE credentials_tokenstatuslist
SET taken = set_bit(taken, %(index)s, 1), used = used + 1
WHERE tenant_id = %(tenant)s
  AND number = (
    SELECT max(number) FROM credentials_tokenstatuslist WHERE tenant_id = %(tenant)s
  )
  AND used < %(max_used)s AND get_bit(taken, %(index)s) = 0
RETURNING number
"""


@dataclass(frozen=True)
class Place:
    """The place of a credential in a list. uri: where everybody reads the list."""

    uri: str
    index: int


class TokenStatusList(Record):
    """A list of an organization. A bit that is set: the credential is revoked.

    taken: a bit for each place that was given. It stays set when the credential is
    deleted: its holder still has it. version: grows with each change of the bits.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    number = models.PositiveIntegerField()
    bits = models.BinaryField()
    # None in a list that was made before this column: it gives no places.
    taken = models.BinaryField(null=True)
    used = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "number"], name="one_status_list_per_number"
            )
        ]

    def __str__(self) -> str:
        return self.uri

    @property
    def uri(self) -> str:
        return f"{issuer_url(self.tenant_id)}/status/{self.number}"

    @classmethod
    def take_place(cls, tenant: Tenant) -> Place:
        """Give a random free place to a new credential, in the caller's transaction.

        The list stays locked until that ends, and a deletion of the organization waits:
        it signs the lists for the last time. 404 `not_found` if it was deleted.
        """
        Tenant.put_off_deletion(tenant.pk)
        while True:
            index = secrets.randbelow(PLACES)
            given = {"tenant": tenant.pk, "index": index, "max_used": MAX_USED}
            for (number,) in fetch_rows(TAKE_SQL, given):
                return Place(cls(tenant=tenant, number=number).uri, index)
            cls._make_room(tenant)

    @classmethod
    def _make_room(cls, tenant: Tenant) -> None:
        """Begin a list, if the newest one gives no places any more."""
        lists = cls.objects.filter(tenant=tenant)
        newest = lists.aggregate(newest=Max("number"))["newest"] or 0
        with_room = lists.filter(used__lt=MAX_USED, taken__isnull=False)
        if with_room.filter(number=newest).exists():
            return
        none = bytes(PLACES // 8)
        made = cls(tenant=tenant, number=newest + 1, bits=none, taken=none)
        # Another call may make it at the same time: then this one waits for it.
        TokenStatusList.objects.bulk_create([made], ignore_conflicts=True)

    @classmethod
    def revoke_places(cls, tenant_id: UUID, places: Iterable[Place]) -> None:
        """Mark the credentials at these as revoked, in the caller's transaction.

        A deletion of the organization waits for it, as for take_place(). 404
        `not_found` if it was deleted.
        """
        Tenant.put_off_deletion(tenant_id)
        by_number = defaultdict(list)
        for place in places:
            by_number[int(place.uri.rpartition("/")[2])].append(place.index)
        rows = cls.objects.filter(tenant=tenant_id, number__in=by_number)
        # In one order, so that nobody waits in a circle.
        for row in rows.order_by("number").select_for_update(no_key=True):
            bits = status_token.with_bits(bytes(row.bits), by_number[row.number])
            cls.objects.filter(pk=row.pk).update(bits=bits, version=row.version + 1)
