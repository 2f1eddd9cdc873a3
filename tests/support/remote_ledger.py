"""A network that is read as an Indy ledger is; what stands on it is what the local one has."""

from django.db import connection

from credentials.ledgers.indy import pool, reads
from credentials.ledgers.indy.reads import LedgerObject
from credentials.models import PublishedObject, StatusList
from tenants.models import Network, Tenant


class Ledger:
    """Notes what it was asked, and whether a transaction was open meanwhile."""

    def __init__(self, monkeypatch):
        self.asked, self.in_transactions, self.silent_about = [], [], set()
        self.stale_answers = 0  # so many lists are the first ones still
        for kind in ("schema", "definition", "registry"):
            monkeypatch.setattr(
                reads,
                f"fetch_{kind}",
                lambda *asked, kind=kind: self.shows(kind, *asked),
            )
        monkeypatch.setattr(reads, "fetch_status_list", self.newest)

    def shows(self, kind, network, object_id):
        self.hears(network, kind, object_id)
        row = PublishedObject.objects.filter(
            network="local", object_id=object_id
        ).first()
        return row and LedgerObject(row.body, row.sequence)

    def newest(self, network, registry_id, registry, timestamp):
        self.hears(network, "status_list", registry_id)
        if not self.stale_answers:
            return StatusList.newest("local", registry_id, timestamp)
        self.stale_answers -= 1
        return (
            StatusList.objects.filter(registry_id=registry_id)
            .order_by("timestamp")[0]
            .body
        )

    def hears(self, network, *what):
        self.asked.append(what)
        if connection.in_atomic_block:
            self.in_transactions.append(what)
        if what[0] in self.silent_about:
            raise pool.no_response(network)

    def kinds(self):
        """What was asked for since the last call, each kind once."""
        kinds, self.asked = {kind for kind, *_ in self.asked}, []
        return kinds


def moved(organization):
    """The organization, now of a network of others."""
    network = Network.objects.create(
        pk="far", name="Far", kind=Network.Kind.INDY, genesis="-"
    )
    Tenant.objects.filter(pk=organization.tenant.pk).update(network=network)
    return organization
