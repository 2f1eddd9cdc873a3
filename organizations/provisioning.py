"""The only way to make an organization (its wallet, public DID, data key and keys) or delete it."""

from typing import NamedTuple

from django.conf import settings
from django.db import IntegrityError, transaction

from agency.core.errors import Conflict, Invalid
from credentials import publishing
from credentials.ledgers import ledger_of
from tenants import quotas, vault
from tenants.models import ApiKey, Membership, Network, Provider, Tenant
from wallets import keys
from wallets.models import Key, Wallet

LOCAL = "local"
FIRST = "First key"
TENANT_KINDS = (ApiKey.Kind.ACCESS_TOKEN, ApiKey.Kind.SUBSCRIPTION_KEY)


class Organization(NamedTuple):
    """A new organization with its secrets, which cannot be read again."""

    tenant: Tenant
    access_token: str
    subscription_key: str
    provider_key: str


@transaction.atomic
def create_organization(name, *, owner=None, image_url="", network_id=None, seed=None):
    """Makes everything or nothing. `seed`: 32 bytes of the issuer's key; 409 if its DID stands on
    the network already.

    owner: the person who makes it in the studio and gets the role owner. Unless that is staff, the
    account has quotas; 409 `quota_exceeded` for one organization more than a person may have.
    """
    has_quotas = owner is not None and not owner.is_staff
    provider = Provider.objects.create(name=name, person=owner, has_quotas=has_quotas)
    quotas.require_room_for_organization(provider)
    tenant = create_tenant(provider, name, network_id, seed, image_url=image_url)
    if owner:
        Membership.objects.create(tenant=tenant, user=owner, role=Membership.Role.OWNER)
    secrets = [ApiKey.issue(kind, tenant, FIRST)[1] for kind in TENANT_KINDS]
    provider_key = ApiKey.issue(ApiKey.Kind.PROVIDER_KEY, provider, FIRST)[1]
    return Organization(tenant, *secrets, provider_key)


@transaction.atomic
def create_organization_of(
    provider, name, *, network_id=None, seed=None, public_id=None, **fields
):
    """A further organization of a provider account, which reaches it; everything or nothing.

    409 `tenant_id_taken` for a chosen `public_id` that another organization has, and
    `quota_exceeded`.
    """
    quotas.require_room_for_organization(provider)
    if public_id:
        fields["public_id"] = public_id
    tenant = create_tenant(
        provider, name, network_id, seed, made_by_provider=True, **fields
    )
    for kind in TENANT_KINDS:
        ApiKey.issue(kind, tenant, FIRST)
    return tenant


def create_tenant(provider, name, network_id, seed, **fields):
    """The organization with its data key and its wallet, and no keys yet."""
    network = find_network(network_id or LOCAL)
    tenant = Tenant(name=name, network=network, provider=provider)
    for field, value in ({"public_id": tenant.pk} | fields).items():
        setattr(tenant, field, value)
    try:
        with transaction.atomic():
            tenant.save(force_insert=True)
    except IntegrityError:
        message = f"The tenantId {tenant.public_id} is taken."
        raise Conflict("tenant_id_taken", message) from None
    vault.create_data_key(tenant)
    create_organization_wallet(tenant, seed)
    return tenant


@transaction.atomic
def remove_organization(tenant):
    """Deletes an organization with all that is its own.

    Its public objects stay, and the tombstones of its keys: peers are told `connection_gone`.
    What is at work on a connection may refer to the organization until that connection is held.
    """
    row = Tenant.objects.filter(pk=tenant.pk)
    if not row.select_for_update(of=["self"], no_key=True).first():
        return  # somebody else was faster
    for wallet in Wallet.objects.filter(tenant=tenant).order_by("pk"):
        wallet.remove()
    row.select_for_update(of=["self"]).get()
    tenant.delete()


def create_organization_wallet(tenant, seed=None):
    """The tenant's own wallet, whose DID stands on its network; on a remote one soon after."""
    wallet = Wallet.create(tenant, is_organization=True)
    seed = seed or keys.generate_seed()
    verkey = keys.verkey_of(seed)
    did = keys.did_of(verkey)
    if Key.objects.filter(verkey=verkey).exists():
        raise Conflict("did_taken", f"The DID {did} is taken.")
    registry = ledger_of(tenant.network)
    if registry.is_remote:
        publishing.enqueue_did(tenant, did, verkey)
    else:
        registry.publish_did(did, verkey)
    wallet.create_key(seed)
    Wallet.objects.filter(pk=wallet.pk).update(did=did)


def known_network(network_id):
    """The network of this id, else the one that it stands for (NETWORK_ALIASES), else None."""
    named = Network.objects.filter(
        pk__in=[network_id, settings.NETWORK_ALIASES.get(network_id)]
    )
    return min(named, key=lambda network: network.pk != network_id, default=None)


def find_network(network_id):
    """The network of this id, or the one that it stands for (NETWORK_ALIASES); the local one is
    made when it is first needed."""
    network = known_network(network_id)
    if not network and LOCAL in (network_id, settings.NETWORK_ALIASES.get(network_id)):
        kind = Network.Kind.LOCAL
        defaults = {"name": "Local network", "kind": kind}
        return Network.objects.get_or_create(pk=LOCAL, defaults=defaults)[0]
    if not network:
        known = ", ".join(Network.objects.values_list("pk", flat=True))
        message = f"There is no network {network_id}. There is: {known}."
        raise Invalid("unknown_network", message, {"networkId": [message]})
    return network
