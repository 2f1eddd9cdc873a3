"""The only way to make an organization: its wallet, public DID, data key and keys."""

from typing import NamedTuple

from django.db import transaction

from agency.errors import Invalid
from credentials.registries import registry_of
from tenants import vault
from tenants.models import ApiKey, Membership, Network, Provider, Tenant
from wallets import keys
from wallets.models import Wallet

LOCAL = "local"


class Organization(NamedTuple):
    """A new organization with its secrets, which cannot be read again."""

    tenant: Tenant
    access_token: str
    subscription_key: str
    provider_key: str


@transaction.atomic
def create_organization(name, *, owner=None, image_url="", network_id=None, seed=None):
    """Makes everything or nothing. `owner`: the person who gets the role owner. `seed`: 32 bytes
    of the issuer's key; 409 if its DID stands on the network already."""
    provider = Provider.objects.create(name=name)
    network = find_network(network_id or LOCAL)
    tenant = Tenant.objects.create(
        name=name, image_url=image_url, network=network, provider=provider
    )
    vault.create_data_key(tenant)
    create_organization_wallet(tenant, seed)
    if owner:
        Membership.objects.create(tenant=tenant, user=owner, role=Membership.Role.OWNER)
    Kind = ApiKey.Kind
    owners = {
        Kind.ACCESS_TOKEN: tenant,
        Kind.SUBSCRIPTION_KEY: tenant,
        Kind.PROVIDER_KEY: provider,
    }
    secrets = [ApiKey.issue(kind, who, "First key")[1] for kind, who in owners.items()]
    return Organization(tenant, *secrets)


def create_organization_wallet(tenant, seed=None):
    """The tenant's own wallet, whose DID stands on its network."""
    wallet = Wallet.create(tenant, is_organization=True)
    seed = seed or keys.generate_seed()
    verkey = keys.verkey_of(seed)
    did = keys.did_of(verkey)
    registry_of(tenant.network).publish_did(did, verkey)
    wallet.create_key(seed)
    Wallet.objects.filter(pk=wallet.pk).update(did=did)


def find_network(network_id):
    """The network of this id; the local one is made when it is first needed."""
    if network_id == LOCAL:
        kind = Network.Kind.LOCAL
        defaults = {"name": "Local network", "kind": kind}
        return Network.objects.get_or_create(pk=LOCAL, defaults=defaults)[0]
    network = Network.objects.filter(pk=network_id).first()
    if not network:
        known = ", ".join(Network.objects.values_list("pk", flat=True))
        message = f"There is no network {network_id}. There is: {known}."
        raise Invalid("unknown_network", message, {"networkId": [message]})
    return network
