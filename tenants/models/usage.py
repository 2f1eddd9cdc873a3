"""How much an organization used on each day."""

from django.db import models

from tenants.models.organizations import Tenant


class DailyUsage(models.Model):
    """What an organization did on one day in UTC, see tenants/lifecycle/daily_usage.py.

    The counted rows may be deleted long before the usage of their month is read.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, db_index=False)
    day = models.DateField()
    connections = models.PositiveIntegerField(default=0)
    credentials = models.PositiveIntegerField(default=0)
    verifications = models.PositiveIntegerField(default=0)
    webhook_calls = models.PositiveIntegerField(default=0)
    # Credentials that were offered, and the verdicts on proofs. Counted since 0021.
    offers = models.PositiveIntegerField(default=0, db_default=0)
    valid_proofs = models.PositiveIntegerField(default=0, db_default=0)
    invalid_proofs = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "day"], name="one_usage_per_organization_and_day"
            )
        ]
        indexes = [models.Index(fields=["day"], name="usage_by_day")]

    def __str__(self) -> str:
        return str(self.day)
