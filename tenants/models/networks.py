"""Networks on which organizations publish, and acceptances of their agreements."""

from django.db import models
from django.db.models import Q

from core.database.base import fetch_rows
from core.database.compiled_sql import Row
from tenants.models.record import Record

NEXT_SQL = """
SELECT nextval('tenants_networksequence') FROM (
    SELECT FROM tenants_network WHERE id = %s FOR SHARE
) AS network
"""


class Network(Row):
    """A ledger on which DIDs, schemas and definitions are published."""

    tenant_id = None  # sealed under the system's data key

    class Kind(models.TextChoices):
        LOCAL = "local"
        INDY = "indy"
        WEBVH = "webvh"  # https addresses, each below a DID of its own

    id = models.SlugField(primary_key=True)
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    # Counts the writes of version 0.1.0 to the local network. See next_sequence().
    sequence = models.BigIntegerField(default=0)
    # For an Indy network: the transaction of one validator on each line.
    genesis = models.TextField(blank=True)
    # The agency's own DID on the network, which registers and endorses organizations,
    # and its sealed seed; both or neither.
    endorser_did = models.CharField(max_length=22, blank=True)
    endorser_seed = models.BinaryField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="indy") & ~Q(genesis="")
                | Q(kind__in=["local", "webvh"], genesis="", endorser_did=""),
                name="indy_networks_have_a_genesis",
            ),
            models.CheckConstraint(
                condition=Q(endorser_did="", endorser_seed=None)
                | ~Q(endorser_did="") & Q(endorser_seed__isnull=False),
                name="endorser_is_whole",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def next_sequence(self) -> int:
        """Return the number of the next write to a network of rows.

        Of a write that is rolled back none gets the number: else each would wait for
        the end of the one before. An import, which brings numbers, locks the network.
        """
        [[number]] = fetch_rows(NEXT_SQL, [self.pk])
        return number


class AgreementAcceptance(Record):
    """The last acceptance of a transaction author agreement of a network.

    An organization accepts it for its own writes. If `tenant` is None, the agency
    accepted it for the writes of its endorser.
    """

    network = models.ForeignKey(Network, on_delete=models.CASCADE)
    tenant = models.ForeignKey("tenants.Tenant", on_delete=models.CASCADE, null=True)
    version = models.CharField(max_length=256)
    digest = models.CharField(max_length=64)
    mechanism = models.CharField(max_length=256)
    accepted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["network", "tenant"],
                nulls_distinct=False,
                name="one_acceptance_each",
            )
        ]

    def __str__(self) -> str:
        return f"{self.tenant or 'the agency'}: {self.version} on {self.network}"
