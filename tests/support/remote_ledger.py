"""A network that is read like an Indy ledger and has the objects of the local one."""

from functools import partial

from django.db import connection

from credentials.ledgers.indy import pool, reads
from credentials.ledgers.indy.reads import LedgerObject
from credentials.models import PublishedObject, StatusList
from tenants.models import Tenant
from tests.factories import NetworkFactory


class Ledger:
    """Records its reads, and which of them happened inside a transaction."""

    def __init__(self, monkeypatch):
        self.asked, self.in_transactions, self.silent_about = [], [], set()
        self.stale_answers = 0  # the number of next reads that return the first list
        for kind in ("schema", "definition", "registry"):
            monkeypatch.setattr(reads, f"fetch_{kind}", partial(self.shows, kind))
        monkeypatch.setattr(reads, "fetch_status_list", self.newest)

    def shows(self, kind, network, object_id):
        self.hears(network, kind, object_id)
        rows = PublishedObject.objects.filter(network="local", object_id=object_id)
        row = rows.first()
        return row and LedgerObject(row.body, row.sequence)

    def newest(self, network, registry_id, registry, timestamp):
        self.hears(network, "status_list", registry_id)
        if not self.stale_answers:
            return StatusList.newest("local", registry_id, timestamp)
        self.stale_answers -= 1
        lists = StatusList.objects.filter(registry_id=registry_id)
        return lists.earliest("timestamp").body

    def hears(self, network, *what):
        self.asked.append(what)
        if connection.in_atomic_block:
            self.in_transactions.append(what)
        if what[0] in self.silent_about:
            raise pool.no_response(network)

    def kinds(self):
        """Return the kinds of objects that were read since the last call."""
        kinds, self.asked = {kind for kind, *_ in self.asked}, []
        return kinds


def moved(organization):
    """Move the organization to a remote network, and return it."""
    tenants = Tenant.objects.filter(pk=organization.tenant.pk)
    tenants.update(network=NetworkFactory())
    return organization
