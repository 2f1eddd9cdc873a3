"""Definition keys made ahead of need: making one takes seconds, giving it new names takes none.

The keys of CL signatures do not depend on attribute names, only on their number. A spare key is
made with revocation; for a definition without, that part is left out.
"""

from typing import Any

from django.conf import settings
from django.db import connection, transaction

from tenants import vault
from wallets import anoncreds
from wallets.anoncreds import Definition, common_view
from wallets.models import SpareKey

LOCK = 0x61676E63  # the advisory lock of the one process that makes keys
ISSUER = "1" * 22


def has(count: int) -> bool:
    """Whether there is a spare key for so many attributes."""
    return SpareKey.objects.filter(attributes=count).exists()


def take(
    schema_id: str, schema: dict, issuer_id: str, tag: str, support_revocation: bool
) -> Definition | None:
    """A spare key under this schema's names, or None. Leaves the pool when the caller commits."""
    count = len(schema["attrNames"])
    spare = SpareKey.objects.select_for_update(skip_locked=True).filter(attributes=count).first()
    if spare is None:
        return None
    made = Definition(**vault.unseal(spare, "parts"))
    spare.delete()
    return relabel(made, schema_id, schema, issuer_id, tag, support_revocation)


def relabel(
    made: Definition,
    schema_id: str,
    schema: dict,
    issuer_id: str,
    tag: str,
    support_revocation: bool,
) -> Definition:
    """The same key with other attribute names, in place."""
    public, private, proof = made
    primary = public["value"]["primary"]
    known = sorted(set(primary["r"]) - {"master_secret"})
    labels = [common_view(name) for name in schema["attrNames"]]
    renamed = dict(zip(known, labels, strict=True)) | {"master_secret": "master_secret"}
    primary["r"] = {renamed[label]: value for label, value in primary["r"].items()}
    proof["xr_cap"] = [[renamed[label], value] for label, value in proof["xr_cap"]]
    public |= {"schemaId": schema_id, "issuerId": issuer_id, "tag": tag}
    if not support_revocation:
        public["value"].pop("revocation", None)
        private["value"]["r_key"] = None
    return Definition(public, private, proof)


def wanted() -> list[int]:
    """The numbers of attributes for which a key is missing, each as often as it is."""
    numbers = settings.KEY_POOL_ATTRIBUTES
    have = list(SpareKey.objects.values_list("attributes", flat=True))
    return [n for n in numbers for _ in range(settings.KEY_POOL_SIZE - have.count(n))]


def fill(report: Any = print) -> int:
    """Makes what is missing, one key at a time; 0 at once if another process is at it."""
    if not claim():
        return 0
    try:
        made = 0
        while missing := wanted():
            make(missing[0])
            made += 1
            report(f"made a key for {missing[0]} attributes")
        return made
    finally:
        release()


def make(count: int) -> SpareKey:
    names = [f"a{number}" for number in range(count)]
    schema = {"issuerId": ISSUER, "name": "spare", "version": "1", "attrNames": names}
    parts = anoncreds.create_definition(f"{ISSUER}:2:spare:1", schema, ISSUER, "spare", True)
    with transaction.atomic():
        spare = SpareKey(attributes=count)
        vault.seal(spare, "parts", parts._asdict())
        spare.save(force_insert=True)
    return spare


def claim() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        return bool(cursor.fetchone()[0])


def release() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
