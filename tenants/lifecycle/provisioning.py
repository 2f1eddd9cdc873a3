"""Create organizations with their wallet, public DID and keys, and delete them."""

from contextlib import suppress
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from uuid_utils.compat import uuid7

from connections.didcomm.envelope import decode_bytes
from connections.models import Connection
from core.database.columns import Columns, ColumnValue
from core.errors import Conflict, Invalid, PeerError
from core.work import transactions
from core.work.row_locks import lock_in_order
from credentials import name_filling, publishing
from credentials.ledgers import ledger_of
from credentials.ledgers.webvh import own_did
from credentials.models import CredentialDefinition, NameKey, Publication, WebvhDid
from credentials.openid4vci import last_documents
from tenants import audit, quotas, vault
from tenants.models import (
    ApiKey,
    DataKey,
    Erasure,
    FormerDataKey,
    Invitation,
    Membership,
    Network,
    Provider,
    Tenant,
)
from wallets import keys
from wallets.models import Key, Wallet
from webhooks.models import Webhook

LOCAL, WEBVH = "local", own_did.NETWORK
FIRST_KEY_NAME = "First key"
MAX_WALLETS_LOCKED = 1000
# What goes at once with an organization.
OF_ORGANIZATION: tuple[type[Any], ...] = (
    ApiKey, DataKey, FormerDataKey, Membership, Invitation, Webhook
)  # fmt: skip
TENANT_KINDS = (ApiKey.Kind.ACCESS_TOKEN, ApiKey.Kind.SUBSCRIPTION_KEY)


class Organization(NamedTuple):
    """A new organization with its secrets, which cannot be read again."""

    tenant: Tenant
    access_token: str
    subscription_key: str
    provider_key: str


@transactions.atomic()
def create_organization(
    name: str, *, owner: User | None = None, strict: bool = False, **options: Any
) -> Organization:
    """Create an organization with its first keys, in one transaction.

    Return it with the secrets of its three keys, which are shown once. options: as of
    open_organization(). strict: whether its access token is.
    """
    tenant = open_organization(name, owner=owner, **options)
    owners: list[Tenant | Provider] = [tenant, tenant, tenant.provider]
    secrets = {
        kind.value: ApiKey.issue(
            kind,
            of,
            FIRST_KEY_NAME,
            strict=strict and kind == ApiKey.Kind.ACCESS_TOKEN,
            made_by=owner,
        )[1]
        for kind, of in zip(ApiKey.Kind, owners, strict=True)
    }
    return Organization(tenant, **secrets)


@transactions.atomic()
def open_organization(
    name: str,
    *,
    owner: User | None = None,
    network_id: str | None = None,
    host: str = "",
    seed: bytes | None = None,
    **fields: ColumnValue,
) -> Tenant:
    """Create an organization with a provider account of its own, without keys.

    In one transaction. owner: the user who creates it in the studio, and who gets the
    role owner; it then invites by both protocols. network_id: by default the local
    network. host: what require_host() has returned. seed: 32 bytes, of the issuer's
    key. fields: further columns, such as `is_test`.
    """
    provider = new_account(name, owner)
    provider.save(force_insert=True)
    quotas.require_room_for_organization(provider)
    Protocol = Tenant.InvitationProtocol
    tenant = create_tenant(
        provider,
        name,
        network_id,
        seed,
        host,
        invitation_protocol=Protocol.BOTH if owner else Protocol.CONNECTIONS,
        **fields,
    )
    if owner:
        Membership.objects.create(tenant=tenant, user=owner, role=Membership.Role.OWNER)
    return tenant


def new_account(name: str, owner: User | None = None) -> Provider:
    """The account of a new organization, which is not saved.

    Unless the owner is staff, or nobody, it has quotas.
    """
    has_quotas = owner is not None and not owner.is_staff
    return Provider(name=name, person=owner, has_quotas=has_quotas)


@transactions.atomic()
def create_provider_organization(
    provider: Provider,
    name: str,
    *,
    network_id: str | None = None,
    host: str = "",
    seed: bytes | None = None,
    public_id: UUID | None = None,
    **fields: ColumnValue,
) -> Tenant:
    """Create another organization of a provider account, in one transaction.

    Its access token and subscription key are made too; the provider API may show them.
    host: what require_host() has returned. public_id: an id chosen by the caller.
    """
    quotas.require_room_for_organization(provider)
    if public_id:
        fields["public_id"] = public_id
    tenant = create_tenant(
        provider, name, network_id, seed, host, made_by_provider=True, **fields
    )
    for kind in TENANT_KINDS:
        ApiKey.issue(kind, tenant, FIRST_KEY_NAME)
    return tenant


def create_tenant(
    provider: Provider,
    name: str,
    network_id: str | None,
    seed: bytes | None,
    host: str = "",
    **fields: ColumnValue,
) -> Tenant:
    """Create an organization with its data key and its wallet, without API keys.

    In the caller's transaction. network_id: None for the local one. host: what
    require_host() has returned. fields: further columns. 400 `unknown_network`; 409
    `tenant_id_taken`, `did_taken`.
    """
    network = own_did.find_network() if host else require_network(network_id or LOCAL)
    tenant = Tenant(name=name, network=network, provider=provider)
    tenant.public_id = tenant.pk  # unless another one was chosen
    for field, value in fields.items():
        setattr(tenant, field, value)
    try:
        with transactions.atomic():
            tenant.save(force_insert=True)
    except IntegrityError:
        message = f"The tenantId {tenant.public_id} is taken."
        raise Conflict("tenant_id_taken", message) from None
    vault.create_data_key(tenant)
    create_organization_wallet(tenant, seed, host)
    return tenant


def require_host(network_id: str | None, host: str, provider: Provider) -> str:
    """Return the host of a new organization's did:webvh, once it is known to lead here.

    Outside of transactions. "" if none is given: then the DID is at that of PUBLIC_URL.
    provider: its account, whose quota is asked before the host. 400 `unknown_network`,
    `bad_host`; `invalid_request` unless the network is `webvh`; 409 `host_elsewhere`,
    `host_taken`, `no_public_host`, `quota_exceeded`.
    """
    if not host:
        return ""
    quotas.require_room_for_organization(provider)
    # The network may not be there yet, and needs no PUBLIC_URL for another host.
    if network_id != WEBVH:
        network = require_network(network_id or LOCAL)
        if network.kind != Network.Kind.WEBVH:
            message = f"Only an organization on the network {WEBVH} has a host."
            raise Invalid("invalid_request", message, {"host": [message]})
    return own_did.require_host(host, provider.pk)


@transactions.atomic()
def remove_organization(tenant: Tenant, by: audit.Who, *, reason: str = "") -> None:
    """Delete an organization: from now on it is found nowhere, and its id is free.

    by: the request or the actor, for the audit log, which may have a reason. A second
    call does nothing, and one that is deleted soon is deleted now. In one transaction,
    which locks the organization, then its wallets, then its connections.

    Without its data key, what it has sealed cannot be read any more. A worker removes
    the rows (erasure.py). Its published objects stay, and so do its keys as
    tombstones: a message to one of them is refused with `connection_gone`. The log of
    its did:webvh gets its last entry, unless it has ended already, and its status lists
    of OpenID4VC are signed once more (last_documents.py). If it has few connections,
    other agents are told now; nobody can sign for it later.
    """
    row = Tenant.objects.filter(pk=tenant.pk)
    locked = row.select_for_update(of=["self"], no_key=True).first()
    if not locked:
        return
    if locked.deletion_due_at:  # frozen (deletion.py): else nothing could be ended
        row.update(frozen_at=None, deletion_due_at=None, notice_due_at=None)
    else:
        locked.require_thawed()
    audit.record("organization.deleted", tenant, by=by, reason=reason)
    # All wallets, then all connections: others lock in this order too.
    wallets = Wallet.objects.filter(tenant=tenant).order_by("pk")
    few = wallets.select_for_update(no_key=True)[: MAX_WALLETS_LOCKED + 1]
    if len(few) <= MAX_WALLETS_LOCKED:
        Wallet.end_if_few(Connection.objects.filter(tenant=tenant))
    definitions = CredentialDefinition.objects.filter(tenant=tenant)
    if WebvhDid.objects.filter(tenant=tenant, next_key__isnull=False).exists():
        lock_in_order(definitions)  # before the DID, as who publishes a registry does
        own_did.end(tenant)  # while its keys can be read
    signer = last_documents.read_signer(tenant)
    lock_in_order(Webhook.objects.filter(tenant=tenant))
    for model in OF_ORGANIZATION:
        model._default_manager.filter(tenant=tenant).delete()
    jobs = Publication.objects.filter(tenant=tenant)
    jobs.filter(status=Publication.Status.PENDING).delete()
    now = timezone.now()
    CredentialDefinition.keep_twins_of(tenant)
    definitions.update(deleted_at=now)
    # Takes the full lock. Until here, other processes may insert rows that refer to the
    # organization, for connections that they have locked.
    row.update(deleted_at=now, public_id=uuid7())
    if signer:
        last_documents.keep_all(tenant, signer)
    Erasure.start(Erasure.Kind.ORGANIZATION, tenant)
    transaction.on_commit(vault.data_key.cache_clear)


@transactions.atomic()
def change_organization(tenant: Tenant, changes: Columns, by: audit.Who) -> None:
    """Set columns of an organization, and record what they were, in one transaction.

    The lock on the organization makes the recorded values those that were replaced. by:
    the request or the actor, for the audit log.
    """
    row = Tenant.objects.select_for_update(no_key=True).filter(pk=tenant.pk).first()
    if not row:  # deleted meanwhile
        return
    row.require_thawed()
    details = audit.describe_changes(row, changes)
    Tenant.objects.filter(pk=row.pk).update(**changes, updated_at=timezone.now())
    if changes.get("name_search") is False:
        # No name is stored for it from now on, so all are when it is on again.
        name_filling.begin_again(NameKey.objects.filter(tenant=row))
    audit.record("organization.changed", row, by=by, **details)


def read_seed(text: str) -> bytes:
    """Read 32 ASCII characters, or the base64 of 32 bytes. Else raises ValueError."""
    if len(text) == 32 and text.isascii():
        return text.encode()
    try:
        seed = decode_bytes(text)
    except PeerError:
        seed = b""
    if len(seed) != 32:
        raise ValueError("Give 32 ASCII characters or the base64 of 32 bytes.")
    return seed


def create_organization_wallet(
    tenant: Tenant, seed: bytes | None = None, host: str = ""
) -> None:
    """Create the organization's own wallet, and publish its DID on the network.

    In the caller's transaction. To a remote network the DID is published after the
    commit, by a worker if the ledger does not respond then. On the network `webvh` the
    DID is made with its log, at the host: by default that of PUBLIC_URL. Raises 409
    `did_taken`, `no_public_host`.
    """
    wallet = Wallet.create(tenant, is_organization=True)
    seed = seed or keys.generate_seed()
    verkey = keys.verkey_of(seed)
    did = keys.did_of(verkey)
    # Of any organization, or a tombstone.
    if Key.objects.filter(verkey=verkey).exists():
        raise Conflict("did_taken", f"The DID {did} is taken.")
    ledger, webvh_did = ledger_of(tenant.network), ""
    if tenant.network.kind == Network.Kind.WEBVH:
        made = own_did.create(tenant, host or own_did.public_host())
        did, webvh_did = "", made.did
    elif ledger.is_remote:
        publishing.enqueue_did(tenant, did, verkey)
    else:
        ledger.publish_did(did, verkey)
    wallet.create_key(seed)
    Wallet.objects.filter(pk=wallet.pk).update(did=did, webvh_did=webvh_did)


def all_networks() -> QuerySet[Network]:
    """All networks; those without a ledger are created when they are first needed.

    There are few, so the list has no pages.
    """
    require_network(LOCAL)
    with suppress(Conflict):  # PUBLIC_URL is no address for it
        require_network(WEBVH)
    return Network.objects.order_by("pk")


def resolve_network(network_id: str) -> Network | None:
    """Return the network with this id or alias (NETWORK_ALIASES), or None."""
    alias_of = settings.NETWORK_ALIASES.get(network_id)
    found = Network.objects.filter(pk__in=[network_id, alias_of])
    return min(found, key=lambda network: network.pk != network_id, default=None)


def require_network(network_id: str) -> Network:
    """Like resolve_network(), but raises Invalid `unknown_network`.

    The networks without a ledger are created when they are first needed. 409
    `no_public_host` if that is `webvh`, and PUBLIC_URL is no address for it.
    """
    network = resolve_network(network_id)
    if network:
        return network
    if LOCAL in (network_id, settings.NETWORK_ALIASES.get(network_id)):
        defaults = {"name": "Local network", "kind": Network.Kind.LOCAL}
        return Network.objects.get_or_create(pk=LOCAL, defaults=defaults)[0]
    if network_id == WEBVH:
        own_did.public_host()
        return own_did.find_network()
    known = ", ".join(Network.objects.values_list("pk", flat=True))
    message = f"There is no network {network_id}. The networks are: {known}."
    raise Invalid("unknown_network", message, {"networkId": [message]})
