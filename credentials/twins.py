"""Twins: a definition once more, below the organization's did:webvh.

An organization on the local network or an Indy ledger reaches by it the wallets that
read neither. A twin is a definition of its own, with its own schema, key and
registries; what was issued stays as it is.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, Unpack

from django.db.models import Q

from connections.didcomm.formats import HLINDY
from connections.models import Connection
from connections.protocols import discover_features
from core.errors import Conflict
from core.work import network_reads, transactions
from credentials import publishing
from credentials.ledgers import ledger_of, network_with
from credentials.ledgers.webvh import own_did
from credentials.messages import ISSUE_CREDENTIAL
from credentials.models import Credential, CredentialDefinition, WebvhDid
from credentials.models.credential import Offered
from credentials.models.definition import format_missing
from credentials.models.formats import CredentialFormat
from credentials.publishing import DefinitionParameters, Prepared
from tenants.models import Network
from wallets.anoncreds.objects import SchemaBody

Finding = Callable[[CredentialDefinition], CredentialDefinition | None]


class PreparedTwin(NamedTuple):
    wanted: DefinitionParameters
    prepared: Prepared


@contextmanager
def preparing_twin(
    definition: CredentialDefinition, by_original_client: bool = False
) -> Iterator[Callable[[], PreparedTwin]]:
    """As preparing_definition(), for create_twin(). The errors of twin_parameters()."""
    with ExitStack() as undo:

        def prepare() -> PreparedTwin:
            wanted = twin_parameters(definition, by_original_client)
            preparing = publishing.preparing_definition(wanted)
            return PreparedTwin(wanted, undo.enter_context(preparing)())

        yield prepare


def twin_parameters(
    definition: CredentialDefinition, by_original_client: bool
) -> DefinitionParameters:
    """What there is to make. The row of the definition has its `tenant`.

    409 `twin_exists`, also if the definition is published by a did:webvh itself;
    `format_missing` for one without AnonCreds; `no_webvh_did`, `did_ended`.
    """
    tenant = definition.tenant
    if not definition.is_anoncreds:
        raise format_missing(CredentialFormat.ANONCREDS)
    if definition.twin_of or tenant.network.kind == Network.Kind.WEBVH:
        raise Conflict(
            "twin_exists", "The definition is published by a did:webvh itself."
        )
    _require_none(definition)
    row = own_did.require_live(WebvhDid.objects.filter(tenant=tenant).first())
    ledger = ledger_of(own_did.find_network())
    schema: SchemaBody = {
        "issuerId": row.did,
        "name": definition.schema.name,
        "version": definition.schema.version,
        "attrNames": definition.schema.attribute_names,
    }
    schema_id = ledger.schema_id_of(schema)
    # That of a twin which was deleted stays taken: then it is the first free one.
    is_taken = ledger.has_tag(row.did, schema_id, definition.tag)
    return DefinitionParameters(
        tenant=tenant,
        schema_body=schema,
        schema_id=schema_id,
        tag=None if is_taken else definition.tag,
        supports_revocation=definition.supports_revocation,
        claims=definition.claims,
        display=definition.display,
        by_original_client=by_original_client,
        twin_of=definition.definition_id,
        recipient_attribute=definition.recipient_attribute,
    )


@transactions.atomic()
def create_twin(
    definition: CredentialDefinition, twin: PreparedTwin
) -> CredentialDefinition:
    """Publish a twin with the key that was reserved for it.

    As create_definition(). One call at a time makes it: 409 `twin_exists` for others.
    """
    rows = CredentialDefinition.objects.select_for_update(no_key=True)
    rows.get(pk=definition.pk)
    _require_none(definition)
    return publishing.create_definition(twin.wanted, twin.prepared)


def find_twin(definition: CredentialDefinition) -> CredentialDefinition | None:
    """The twin of a definition, or what it is the twin of; None if that is deleted."""
    rows = CredentialDefinition.active_of(definition.tenant_id).defer("private_key")
    of_twin = Q(definition_id=definition.twin_of)
    return rows.filter(Q(twin_of=definition.definition_id) | of_twin).first()


def on_network(
    definition: CredentialDefinition, network_id: str
) -> CredentialDefinition:
    """The definition or its twin, whichever is on this network. 409 `no_twin`."""
    network = definition.tenant.network
    if network_with(network, definition.definition_id).pk == network_id:
        return definition
    found = find_twin(definition)
    if found is None or network_with(network, found.definition_id).pk != network_id:
        raise Conflict(
            "no_twin",
            f"{definition.definition_id} has no twin on the network {network_id}.",
        )
    return found


def offer(
    connection: Connection,
    definition: CredentialDefinition,
    find: Finding = find_twin,
    **offered: Unpack[Offered],
) -> Credential:
    """Offer the definition, or its twin if the peer can read that alone.

    As Credential.offer(). Wallets elsewhere do not read the local network, and one of
    did:webvh if they use version 2.0, which they are asked. find: find_twin(), or what
    remembers its answer.
    """
    is_read = connection.seems_hosted or bool(definition.twin_of)
    is_read = is_read or definition.tenant.network.kind != Network.Kind.LOCAL
    twin = None if is_read else find(definition)
    if twin:
        return _offer_readable(connection, definition, twin, **offered)
    return Credential.offer(connection, definition, **offered)


@network_reads.atomic_with_reads
def _offer_readable(
    connection: Connection,
    definition: CredentialDefinition,
    twin: CredentialDefinition,
    **offered: Unpack[Offered],
) -> Credential:
    connection = connection.lock_for_exchange()
    usual = discover_features.choose_format(connection, ISSUE_CREDENTIAL)
    if not usual.is_first and connection.attachment_format != HLINDY:
        definition = twin
    return Credential.offer(connection, definition, **offered)


def _require_none(definition: CredentialDefinition) -> None:
    if found := find_twin(definition):
        raise Conflict("twin_exists", f"Its twin is {found.definition_id}.")
