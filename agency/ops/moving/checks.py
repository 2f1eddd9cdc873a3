"""What each row of a file must be, before it is among the rows of this installation.

A file is believed nothing. Its rows are in the temporary table `moved`; one query finds
one that is not the organization's, that leads to a row of somebody else, or that would
stop the workers of all. The checks come from the models, so they hold for each table
and column of the plan. Rows are looked up by id, so that the time of a batch does not
grow with the organization.
"""

import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib.auth.hashers import identify_hasher
from django.db import models
from django.db.backends.utils import CursorWrapper

from agency.ops.moving import MoveRefused
from agency.ops.moving.tables import (
    BULK,
    IS_OWN_OBJECT,
    OF_PROVIDER,
    OF_TENANT,
    PARTS,
    Part,
    did_in,
    model_of,
)
from core.errors import PeerError
from core.text.bounded_json import Members
from credentials.ledgers.webvh.encoding import next_key_hash, resource_digest
from credentials.ledgers.webvh.log import check_log
from credentials.ledgers.webvh.own_log import multikey_of
from credentials.ledgers.webvh.refusals import Broken, Refused, require
from credentials.ledgers.webvh.resources import check_resource
from credentials.ledgers.webvh.rows import FOLDER
from credentials.models import (
    Credential,
    CredentialDefinition,
    NameKey,
    PublishedObject,
    RevocationRegistry,
    StatusList,
    WebvhDid,
)
from credentials.models.name_search import KEY_BYTES
from tenants import vault
from wallets import keys
from wallets.models import Key, Wallet

OBJECTS = "credentials_publishedobject"
ISSUED: tuple[tuple[type[models.Model], str], ...] = (
    (CredentialDefinition, "definition_id"),
    (RevocationRegistry, "registry_id"),
    (Credential, "revocation_registry_id"),
)
HERE = f"{OBJECTS} AS here USING (network_id, object_id)"
# Public objects are immutable: one of the same id here is the same, or somebody else's.
DIFFERENT_SQL = f"""
SELECT moved.object_id FROM moved JOIN {HERE}
WHERE here.body <> moved.body OR here.kind <> moved.kind LIMIT 1
"""
# Of a remote ledger the rows are copies; those of others are read there again.
COPIES_SQL = f"""
DELETE FROM moved USING tenants_network AS network
WHERE network.id = moved.network_id AND network.kind <> 'local'
    AND NOT ({IS_OWN_OBJECT})
"""
ISSUERS_SQL = f"""
SELECT did, EXISTS (SELECT FROM wallets_wallet AS wallet
        WHERE issuer.did IN (wallet.did, wallet.webvh_did))
    OR EXISTS (SELECT FROM {OBJECTS} AS here WHERE here.object_id = issuer.did)
FROM (
    SELECT DISTINCT {did_in("object_id")} AS did
    FROM moved LEFT JOIN {HERE} WHERE here.id IS NULL AND NOT ({IS_OWN_OBJECT})
) AS issuer ORDER BY did
"""
ORDER = [part.table for part in PARTS]
# What the rows of these tables are known by.
OWNERS = {
    "tenants_tenant": "%(tenant)s",
    "tenants_provider": "%(provider)s",
    "tenants_network": "ANY(%(networks)s)",
}
OWN_COLUMNS = {"tenant_id": OF_TENANT, "provider_id": OF_PROVIDER}
COSTS = {
    "time_cost",
    "memory_cost",
    "parallelism",
    "iterations",
}  # of PASSWORD_HASHERS
# One of each: the costs stand before the salt.
PINS_SQL = r"""
SELECT min(pin) FROM moved WHERE pin <> '' GROUP BY regexp_replace(pin, '\$[^$]*\$[^$]*$', '')
"""
# No year that Python cannot read, and no number that overflows when it is raised: such
# a row would stop a query of a worker for all organizations.
IN_TIME = "{} BETWEEN '1900-01-01' AND '9000-01-01'"
MOST = {models.SmallIntegerField: 32_000, models.IntegerField: 10**9}
PRIVATE = ("lease_owner", "public_id")  # UUIDs that name no row


# A parameter of the queries in tables.py: an id, ids, or a number.
OwnerValue = str | int | UUID | list[str] | None


def require_own_rows(
    cursor: CursorWrapper, part: Part, owner: Mapping[str, OwnerValue]
) -> None:
    """Raise MoveRefused `foreign_row` unless all rows of `moved` may be inserted.

    owner: parameters of the queries in tables.py, and the ids of its networks.
    """
    cases = " ".join(
        f"WHEN ({condition}) IS NOT TRUE THEN '{name}'"
        for name, condition in list_conditions(part)
    )
    cursor.execute(
        f"SELECT found FROM (SELECT CASE {cases} END AS found FROM moved) AS checked "
        "WHERE found IS NOT NULL LIMIT 1",
        owner,
    )
    if found := cursor.fetchone():
        raise foreign_row(part.table, found[0])


def foreign_row(table: str, column: str) -> MoveRefused:
    return MoveRefused(
        "foreign_row",
        f"A row of {table} ({column}) is not the organization's, leads to a row of "
        "somebody else, or has a value that is never stored. No export writes such a "
        "file: ask whoever gave it to you. Nothing was imported.",
    )


def list_conditions(part: Part) -> list[tuple[str, str]]:
    """Return columns, each with what is true of the organization's own rows."""
    fields = [
        field
        for field in model_of(part.table)._meta.concrete_fields
        # A constant replaces the value, whatever it is.
        if field.column in part.columns
        and field.column in part.changes.get(str(field.column), str(field.column))
    ]
    found = [(str(field.column), check_of(part, field)) for field in fields]
    # What has no owner in a column has that of its foreign keys.
    if part not in BULK or "tenant_id" in part.columns:
        found.insert(0, ("owner", part.rows))
    for name in part.ids:
        text = f'moved."{name}"'
        # As str() of a UUID, so that all find the same row by it.
        check = f"{text}::uuid::text = {text} AND {names_nobody_else(f'{text}::uuid')}"
        found.append((name, f"CASE WHEN {text} = '' THEN true ELSE {check} END"))
    return [*((name, check) for name, check in found if check), ("name", part.must)]


def check_of(part: Part, field: "models.Field[Any, Any]") -> str:
    """Return the condition on a column of `moved`, or "" if it needs none."""
    column = f'moved."{field.column}"'
    conditions = []
    if field.related_model:
        conditions.append(leads_home(part, field, column))
    elif isinstance(field, models.UUIDField) and field.name not in PRIVATE:
        if not field.primary_key:
            conditions.append(names_nobody_else(column))
    elif isinstance(field, models.DateField):
        conditions.append(IN_TIME.format(column))
    elif field.choices:
        known = [str(value) for value, _ in field.flatchoices]
        if field.blank or field.default == "":
            known.append("")
        conditions.append(f"{column} IN ({', '.join(map(quote, known))})")
    for kind, most in MOST.items():
        if isinstance(field, kind) and not isinstance(field, models.BigIntegerField):
            conditions.append(f"{column} <= {most}")
            break
    check = " AND ".join(f"({condition})" for condition in conditions)
    return f"{column} IS NULL OR {check}" if check and field.null else check


def quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def leads_home(part: Part, field: "models.Field[Any, Any]", column: str) -> str:
    """SQL: whether a foreign key leads to a row of the organization."""
    model: Any = field.related_model
    table = model._meta.db_table
    if table in OWNERS:
        return f"{column} = {OWNERS[table]}"
    if table not in ORDER:  # it stays where it is: tables.LEFT_BEHIND
        return "false"
    here = f"SELECT FROM {table} WHERE id = {column}"
    if table == part.table:
        return f"{is_own_row(model, column)} OR EXISTS ({here.replace(table, 'moved')})"
    if not comes_before(model, field.model):
        return f"NOT EXISTS ({here})"  # its own row comes later, if at all
    return is_own_row(model, column)


def comes_before(model: Any, other: Any) -> bool:
    """Whether the rows of a model are there when those of the other one come."""
    return ORDER.index(model._meta.db_table) < ORDER.index(other._meta.db_table)


def is_own_row(model: Any, key: str, depth: int = 0) -> str:
    """SQL: whether there is a row with this id, and it is the organization's."""
    table, name = model._meta.db_table, f"row{depth}"
    columns = {field.column: field for field in model._meta.concrete_fields}
    owned = " OR ".join(sql for own, sql in OWN_COLUMNS.items() if own in columns)
    if not owned:
        field = next(
            one
            for one in columns.values()
            if one.related_model and comes_before(one.related_model, model)
        )
        owner = f'{name}."{field.column}"'
        owned = is_own_row(field.related_model, owner, depth + 1)
    return f"(SELECT {owned} FROM {table} AS {name} WHERE {name}.id = {key}) IS TRUE"


def names_nobody_else(column: str) -> str:
    """SQL: whether no row of another organization has this id, whatever it is."""
    tables = [("tenants_tenant", "id = %(tenant)s")]
    for table in dict.fromkeys(ORDER):
        names = {field.column: field for field in model_of(table)._meta.concrete_fields}
        if "tenant_id" in names and isinstance(names.get("id"), models.UUIDField):
            tables.append((table, OF_TENANT))
    return " AND ".join(
        f"(SELECT {owned} FROM {table} WHERE id = {column}) IS NOT FALSE"
        for table, owned in tables
    )


def require_own_objects(
    cursor: CursorWrapper, owner: Mapping[str, OwnerValue], trusts_issuers: bool
) -> None:
    """Check the public objects in `moved`, and take out what a ledger can be asked for.

    Those of others are taken if they are here, or if the operator trusts their issuers,
    unless these are here. Raises MoveRefused `foreign_row`, `foreign_objects`,
    `object_differs`.
    """
    cursor.execute(COPIES_SQL, owner)
    cursor.execute(DIFFERENT_SQL)
    if found := cursor.fetchone():
        raise MoveRefused(
            "object_differs",
            f"{found[0]} is published here with another content. Two installations "
            "have given the same id: it cannot be moved here.",
        )
    cursor.execute(ISSUERS_SQL, owner)
    issuers = cursor.fetchall()
    if any(is_here or not did.isprintable() for did, is_here in issuers):
        raise foreign_row(OBJECTS, "object_id")
    if issuers and not trusts_issuers:
        names = ", ".join(did for did, _ in issuers)
        raise MoveRefused(
            "foreign_objects",
            "The file has public objects of issuers that are not here, and nothing "
            f"proves that they made them: {names}. Import their organizations first; "
            "or, if you trust whoever gave you the file in this, import it with "
            "--trust-issuers. Nothing was imported.",
        )


def require_possession() -> None:
    """Raise MoveRefused `foreign_row` unless the seeds of keys in `moved` are theirs.

    The messages of organizations here are handed to the owner of a key without being
    sealed: so nobody may bring the key of somebody else's peer.
    """
    query = f"SELECT * FROM {Key._meta.db_table} WHERE id IN (SELECT id FROM moved)"
    for key in Key.objects.raw(query):
        try:
            is_own = key.seed is None or keys.verkey_of(key.unseal_seed()) == key.verkey
        except (*vault.UNSEAL_ERRORS, PeerError, TypeError, AttributeError):
            is_own = False
        if not is_own:
            raise foreign_row("wallets_key", "seed")


def require_name_key() -> None:
    """Raise MoveRefused `foreign_row` unless the key in `moved` makes digests.

    With another one no name of the organization could be stored any more.
    """
    table = NameKey._meta.db_table
    query = f"SELECT * FROM {table} WHERE id IN (SELECT id FROM moved)"
    for row in NameKey.objects.raw(query):
        try:
            is_right = len(row.unsealed_key()) == KEY_BYTES
        except (*vault.UNSEAL_ERRORS, TypeError, AttributeError):
            is_right = False
        if not is_right:
            raise foreign_row(table, "key")


def require_payable_pins(cursor: CursorWrapper) -> None:
    """Raise MoveRefused `foreign_row` if hashing a PIN in `moved` takes more than ours.

    A hash names its own costs, up to gigabytes and years.
    """
    cursor.execute(PINS_SQL)
    for [pin] in cursor.fetchall():
        try:
            hasher = identify_hasher(pin)
            costs = hasher.decode(pin)
            is_payable = all(
                value <= getattr(hasher, name)
                for name, value in costs.items()
                if name in COSTS
            )
        except ValueError:
            is_payable = False
        if not is_payable:
            raise foreign_row("webwallet_personallink", "pin")


def require_own_did(organization: Any) -> None:
    """Raise MoveRefused `foreign_row` unless the public DID is that of a key here.

    Or its did:webvh, which require_own_webvh() checks.
    """
    logs = WebvhDid.objects.filter(tenant=organization)
    wallets = Wallet._base_manager.filter(tenant=organization)
    for wallet in wallets.exclude(did=""):
        key = wallet.keys.order_by("pk").first()
        if key is None or key.did != wallet.did:
            raise foreign_row("wallets_wallet", "did")
    for wallet in wallets.exclude(webvh_did=""):
        if not logs.filter(did=wallet.webvh_did).exists():
            raise foreign_row("wallets_wallet", "webvh_did")


def require_own_webvh(organization: Any) -> None:
    """Raise MoveRefused `foreign_row` unless its did:webvh proves what came with it.

    Its log makes the DID, the document in it names the keys here, and by these the
    resources are signed. Its public objects and lists are the contents of resources, and
    its rows name no other did:webvh as their issuer.
    """
    rows = WebvhDid.objects.filter(tenant=organization)
    dids = rows.values_list("did", flat=True)
    for model, column in ISSUED:
        issued = model._base_manager.filter(tenant=organization)
        if model is Credential:
            issued = issued.filter(role=Credential.Role.ISSUER)
        elsewhere = issued.filter(**{f"{column}__startswith": "did:webvh:"})
        for did in dids:
            elsewhere = elsewhere.exclude(**{f"{column}__startswith": f"{did}/"})
        if elsewhere.exists():
            raise foreign_row(model._meta.db_table, column)
    for row in rows:
        try:
            document = require_own_log(row)
            contents = {}
            for resource in row.resources.iterator(chunk_size=200):
                name = f"{row.did}/resources/{resource.digest}"
                kind = resource.parse()["metadata"]["resourceType"]
                data = resource.document.encode()
                contents[name] = check_resource(name, kind, data, document).content
        except (Refused, ValueError, TypeError, KeyError, AttributeError):
            raise foreign_row("credentials_webvhdid", "log") from None
        digests = {resource_digest(content) for content in contents.values()}
        published = PublishedObject.objects.filter(object_id__startswith=f"{row.did}/")
        for found in published.exclude(kind=PublishedObject.Kind.DID):
            if contents.get(found.object_id) != found.body:
                raise foreign_row(OBJECTS, "body")
        lists = StatusList.objects.filter(registry_id__startswith=f"{row.did}/")
        try:
            for one in lists.iterator(chunk_size=200):
                body: Any = one.read()
                require(resource_digest(body) in digests, "another_list")
        except Broken:
            raise foreign_row("credentials_statuslist", "body") from None


def require_own_log(row: WebvhDid) -> Members:
    """Return the document of a did:webvh whose log and keys belong together.

    Refused or ValueError otherwise.
    """
    log = check_log(row.did, row.log.encode(), time.time())
    place = f":{row.host}:{FOLDER}:{row.segment}"
    is_right = row.did.endswith(place) and row.versions == log.versions
    if row.next_key:
        following = multikey_of(row.unseal_seed("next_key"))
        assertion = multikey_of(row.unseal_seed("assertion_key"))
        is_right &= next_key_hash(following) in log.next_key_hashes
        listed = log.document["assertionMethod"]
        is_right &= isinstance(listed, list) and f"{row.did}#{assertion}" in listed
    else:
        is_right &= not log.update_keys and row.is_deactivated == log.is_deactivated
    if not is_right:
        raise ValueError("the columns are not those of the log")
    return log.document
