"""Simulated holders of test organizations, and the queue of their answers."""

from typing import Any, ClassVar, Self
from uuid import UUID

from django.db import models
from django.db.models import OuterRef, Q, QuerySet, Subquery

from connections.models import Connection
from core.database.base import is_outage
from core.errors import AgencyError, Unavailable
from core.work.leases import CausedJob
from tenants.models import Record, Tenant
from wallets.models import Wallet


class SimulatedHolder(Record):
    """A hosted wallet of a test organization that answers by itself.

    It answers offers and proof requests on any of its connections, as its behaviour
    says (behaviours.py). delay_seconds: from the arrival to the answer.
    """

    # Of a row of live_rows(): the organization's newest connection with it, by its id
    # in the API and by the key of its row.
    connection_id: str | None
    connection_pk: UUID | None

    class Behaviour(models.TextChoices):
        ACCEPT = "accept", "Accepts and proves"
        DECLINE = "decline", "Declines"
        SILENT = "silent", "Never answers"
        WRONG_VALUE = "wrongValue", "Shows a value that was not signed"
        REVOKED = "revoked", "Proves with a revoked credential"
        PREDICATE_FAILS = "predicateFails", "Meets no comparison"

    api_id = "pk"
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    wallet = models.OneToOneField(
        Wallet, on_delete=models.CASCADE, related_name="simulated_holder"
    )
    behaviour = models.CharField(max_length=14, choices=Behaviour.choices)
    delay_seconds = models.PositiveSmallIntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["tenant", "-id"], name="holders_of_sandbox")]

    def __str__(self) -> str:
        return f"{self.behaviour} {self.wallet_id}"

    @property
    def audit_facts(self) -> dict[str, str | int]:
        return {"behaviour": self.behaviour, "delay_seconds": self.delay_seconds}

    @classmethod
    def live_rows(cls, tenant: Tenant | UUID) -> QuerySet[Any]:
        """Return those of an organization, with their wallet, in no order.

        Each has `connection_id` and `connection_pk` of the organization's newest
        usable connection with it; None without one.
        """
        # One key, which the index of `their_key` finds among any number of connections.
        theirs = Connection.objects.filter(
            Connection.USABLE, wallet=OuterRef(OuterRef("wallet"))
        ).order_by("-pk")
        ours = Connection.objects.filter(
            Connection.USABLE,
            tenant=OuterRef("tenant"),
            wallet__is_organization=True,
            their_key=Subquery(theirs.values("my_key__verkey")[:1]),
        ).exclude(their_key="")  # as that index has it
        rows = cls.objects.filter(tenant=tenant, wallet__deleted_at=None)
        newest = ours.order_by("-pk")
        return rows.select_related("wallet").annotate(
            connection_id=Subquery(newest.values("connection_id")[:1]),
            connection_pk=Subquery(newest.values("pk")[:1]),
        )


class SimulatedAnswer(Record, CausedJob):
    """An answer that a simulated holder owes.

    The row is deleted once it is given, or not needed any more. An exhausted row
    is one that failed, with the code of its error; nothing tries it again.

    kind: of the exchange, whose row may be gone.
    """

    class Kind(models.TextChoices):
        CREDENTIAL = "credential"
        VERIFICATION = "verification"

    SCHEDULE: ClassVar[tuple[int, ...]] = (5, 30, 120, 600)  # seconds

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    holder = models.ForeignKey(
        SimulatedHolder, on_delete=models.CASCADE, related_name="answers"
    )
    kind = models.CharField(max_length=12, choices=Kind.choices)
    exchange_id = models.UUIDField()

    class Meta:
        indexes = [
            models.Index(
                fields=["tenant", "due_at"],
                condition=Q(status="pending"),
                name="simulated_answer_due",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.exchange_id}"

    def put_back(self, error: Exception) -> None:
        """Unavailable and bugs are retried, other errors end the row.

        An outage of the database is raised.
        """
        if is_outage(error):
            raise error
        if isinstance(error, AgencyError) and not isinstance(error, Unavailable):
            self.exhaust(error.code)
        else:
            super().put_back(error)

    @classmethod
    def claim_after(cls, tenant_id: UUID | None) -> Self | None:
        """Lease the first due row of the organization that comes after this one."""
        rows = cls.due().filter(tenant__deleted_at=None)
        rows = rows.select_related("holder__wallet")
        return cls.claim_in_turn(rows, "tenant", tenant_id)
