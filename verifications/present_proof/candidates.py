"""The wallet's credentials as candidates for a proof request."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import ParamSpec, TypeVar
from uuid import UUID

from django.db.models import QuerySet, Value

from core.database.compiled_sql import CompiledQuery
from core.work import network_reads
from credentials.ledgers.webvh.refusals import Refused
from credentials.models import Credential, CredentialFormat
from tenants import vault
from verifications.proofs.ledger_reader import LedgerReader
from verifications.proofs.request_reading import ProofRequest
from verifications.proofs.selection import Candidate, RevocationStatus
from wallets.anoncreds.objects import StatusListBody
from wallets.models import Wallet

Found = TypeVar("Found")
Asked = ParamSpec("Asked")
FIRST_BATCH = 5  # rows; more than most wallets hold of what one request asks for


def find_credentials(wallet: Wallet, request: ProofRequest) -> QuerySet[Credential]:
    """The wallet's credentials with any requested attribute, oldest first."""
    return credentials_with(wallet.pk, requested_names(request))


def requested_names(request: ProofRequest) -> list[str]:
    return sorted({label for item in request.items for label in item.labels})


def credentials_with(wallet_id: UUID, names: list[str]) -> QuerySet[Credential]:
    given = Value(names, output_field=Credential._meta.get_field("attribute_names"))
    held = Credential.in_wallet(wallet_id, CredentialFormat.ANONCREDS)
    return held.filter(attribute_names__overlap=given).order_by("pk")


first_credentials = CompiledQuery(
    lambda wallet_id, names: credentials_with(wallet_id, names)[:FIRST_BATCH],
    UUID,
    list,
)


def read_batches(wallet: Wallet, request: ProofRequest) -> Iterator[list[Credential]]:
    """Read what find_credentials() finds, each time twice as many as before.

    A wallet may hold thousands, and each is decrypted to be a candidate. The caller
    stops when it has found enough.
    """
    names = requested_names(request)
    size, batch = FIRST_BATCH, first_credentials.all(wallet.pk, names)
    while batch:
        yield batch
        if len(batch) < size:
            return
        size *= 2
        rows = credentials_with(wallet.pk, names).filter(pk__gt=batch[-1].pk)
        batch = list(rows[:size])


def build_candidates(
    credentials: Sequence[Credential], ledger: LedgerReader
) -> list[Candidate]:
    """Return the credentials as candidates.

    Credentials whose schema or definition is not on the ledger are left out, and those
    of which an object is refused: one issuer's fault leaves the others' usable. Each
    object is read once for all of them. In a transaction, a ledger that must be read
    raises ReadNeeded; the time of now() is the same when it is run again.
    """
    schema_ids = dict.fromkeys(row.schema_id for row in credentials)
    definition_ids = dict.fromkeys(row.definition_id for row in credentials)
    registry_ids = dict.fromkeys(row.revocation_registry_id for row in credentials)
    now = network_reads.now()
    schemas = {name: _read(ledger.schema, name) for name in schema_ids}
    definitions = {name: _read(ledger.definition, name) for name in definition_ids}
    status_lists = {
        name: _read(ledger.status_list, name, now) for name in registry_ids if name
    }
    candidates = []
    for row in credentials:
        schema = schemas[row.schema_id]
        definition = definitions[row.definition_id]
        if schema is None or definition is None:
            continue
        stored = vault.unseal(row, "credential")
        status_list = status_lists.get(row.revocation_registry_id)
        candidate = Candidate(
            credential_id=str(row.pk),
            definition_id=row.definition_id,
            schema_id=row.schema_id,
            definition=definition,
            schema=schema,
            values={name: value["raw"] for name, value in stored["values"].items()},
            credential=stored,
            revocation=_revocation_status(row, status_list),
        )
        candidates.append(candidate)
    return candidates


def _read(
    read: Callable[Asked, Found | None], *asked: Asked.args, **named: Asked.kwargs
) -> Found | None:
    """Read an object, or None if it is refused."""
    with suppress(Refused):
        return read(*asked, **named)
    return None


def _revocation_status(
    row: Credential, status_list: StatusListBody | None
) -> RevocationStatus | None:
    """The status in the newest status list. Not revoked if there is no list."""
    if row.revocation_index is None:
        return None
    is_revoked = False
    if status_list is not None:
        index = row.revocation_index
        # Some lists have no entry for the last index.
        is_revoked = any(status_list["revocationList"][index : index + 1])
    return RevocationStatus(
        row.revocation_registry_id, row.revocation_index, is_revoked
    )
