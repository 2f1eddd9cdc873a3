"""The arguments of each operation of the contract.

Operations not named here need only the world's ids.
"""

import io
import re
from typing import Any, NamedTuple

from PIL import Image

from tests.support.people import Api, Organization, Provider
from tests.support.world import NAMES, TENANT, VALUES, WEBHOOK

ORGANIZATION, WALLET = 0, 1
SCHEMA = {"name": "Title", "version": "1.0", "attributeNames": NAMES}
DEFINITION = {"name": "Title", "version": "1.0", "attributes": NAMES}
INVITATION = {"name": "Alice", "multiParty": True}


class Given(NamedTuple):
    """One call: ids of its path, a body or form, a query, and whose keys to use."""

    ids: dict[str, str] = {}
    body: Any = None
    form: dict[str, str] | None = None
    query: str = ""
    caller: Api | None = None


def ids(client, world):
    """The ids in a path of this client, unless the operation is given its own."""
    side = WALLET if client == "wallet" else ORGANIZATION
    return {
        "walletId": world.alice.wallet_id,
        "connectionId": world.connection[side],
        "credentialId": world.credential[side],
        "verificationId": world.verification[side],
        "messageId": world.message[side],
        "definitionId": world.definition["definitionId"],
        "schemaId": world.definition["schemaId"],
        "policyId": world.stored_policy,
        "networkId": "local",
        "tenantId": world.branch
        if client == "provider"
        else str(world.faber.tenant.public_id),
    }


def path(**own):
    return Given(ids=own)


def body(value):
    return Given(body=value)


def form(**fields):
    return Given(form=fields)


def sends(name):
    """The body that the world has by this name."""
    return lambda world: body(getattr(world, name))


def by_link(world):
    return form(verificationData=world.request_by_link())


def offer(world):
    offered = {"automaticIssuance": False, "credentialValues": VALUES}
    names = ids("credentials", world)
    return offered | {name: names[name] for name in ("definitionId", "connectionId")}


def choice(world):
    """Alice's answer to the world's policy."""
    chosen = {"credentialId": world.credential[WALLET]}
    return [{"policyName": name} | chosen for name in ("Title", "Name", "Of age")]


def picture(world):
    file = io.BytesIO()
    Image.new("RGB", (4, 4)).save(file, "PNG")
    file.seek(0)
    return form(uploadedFiles=file, filename="logo.png", contentType="image/png")


def an_organization(world):
    gone = Organization("Gone")
    return Given({"tenantId": str(gone.tenant.public_id)}, caller=gone)


def all_organizations(world):
    provider = Provider(Organization("Gone"))
    provider.makes()
    return Given(caller=provider)


def old_verification(world):
    stored = {"verificationDefinitionId": world.stored_request()}
    return stored | {"connectionId": world.connection[ORGANIZATION]}


CREDENTIALS = {
    "POST /common/upload": picture,
    "POST /connections": lambda world: body(INVITATION),
    "DELETE /connections/{connectionId}": "connected",
    "POST /credentials": lambda world: body(offer(world)),
    "PUT /credentials/{credentialId}": "accepted",
    "DELETE /credentials/{credentialId}": "issued",
    "DELETE /credentials/delete/{credentialId}": "offered",
    "DELETE /credentials/purge/{definitionId}": "another_definition",
    "POST /definitions/credentials": lambda world: body(DEFINITION),
    "POST /definitions/schemas": lambda world: body(SCHEMA),
    "DELETE /definitions/credentials/{credentialDefinitionId}": "another_definition",
    "POST /tenants": lambda world: body(TENANT),
    "DELETE /tenants/{tenantId}": an_organization,
    "POST /verifications": lambda world: body(old_verification(world)),
    "DELETE /verifications/{verificationId}": "asked",
    "GET /definitions/verifications": "stored_request",
    "GET /definitions/verifications/{definitionId}": "stored_request",
    "POST /definitions/verifications": sends("proof_request"),
    "DELETE /definitions/verifications/{verificationDefinitionId}": "stored_request",
    "GET /webhooks": "webhook",
    "POST /webhooks": lambda world: body(WEBHOOK),
    "DELETE /webhooks/{webhookId}": "webhook",
    "PUT /webhooks/{webhookId}/enable": "webhook",
    "PUT /webhooks/{webhookId}/disable": "webhook",
    "POST /messages": lambda world: body(
        {"connectionId": world.connection[ORGANIZATION], "text": "Hello"}
    ),
    "POST /definitions/credentials/{schemaId}": lambda world: body(
        {"supportRevocation": False}
    ),
    "POST /verificationPolicies": sends("policy"),
    "DELETE /verificationPolicies/{policyId}": "another_policy",
    "POST /verifications/policy": sends("policy"),
    "POST /verifications/policy/connections/{connectionId}": sends("policy"),
    "PUT /verifications/policy/connections/{connectionId}": sends("policy"),
    "PUT /verifications/proposal/{policyId}/connections/{connectionId}": lambda world: (
        path(policyId=world.proposed()[0])
    ),
}
WALLETS = {
    "POST /api/{walletId}/connections/invitation": lambda world: form(
        invitation=world.faber.invites()["invitation"]
    ),
    "POST /api/{walletId}/credentials/{credentialId}": "offered",
    "POST /api/wallets": lambda world: body({"ownerName": "Bob"}),
    "DELETE /api/wallets": lambda world: Given(
        query=f"walletId={world.another_wallet()}"
    ),
    "DELETE /api/wallets/{walletId}": "another_wallet",
    "PUT /api/{walletId}/verifications/{verificationId}/autoSelect": "asked",
    "PUT /api/{walletId}/verifications/{verificationId}": lambda world: Given(
        {"verificationId": world.asked()[1]}, choice(world)
    ),
    "PUT /api/{walletId}/credentials/fromData": lambda world: form(
        credentialData=world.offer_by_link()
    ),
    "PUT /api/{walletId}/verifications/fromData/autoSelect": by_link,
    "PUT /api/{walletId}/verifications/fromData": lambda world: body(
        {"verificationData": world.request_by_link(), "parameters": choice(world)}
    ),
    "POST /api/{walletId}/verifications/fromData/availableCredentials": by_link,
    "PUT /api/{walletId}/verifications/propose/{connectionId}": sends("proposable"),
    "DELETE /api/{walletId}/connections/{connectionId}": "connected",
    "DELETE /api/{walletId}/credentials/{credentialId}": "issued",
    "DELETE /api/{walletId}/verifications/{verificationId}": "asked",
}
PROVIDER = {
    "POST /tenants": lambda world: body(TENANT),
    "DELETE /tenants": all_organizations,
    "DELETE /tenants/{tenantId}": "another_branch",
    "PUT /tenants/{tenantId}": lambda world: body({"name": "Branch"}),
    "POST /assets": picture,
}
# A function of the world; or the name of the world's method that makes what the last id
# of the path names.
GIVEN = {"credentials": CREDENTIALS, "wallet": WALLETS, "provider": PROVIDER}


def given(client, name, world, more=None):
    """All that one call of an operation needs, made in the world."""
    make = (GIVEN[client] | (more or {})).get(name, lambda _: Given())
    if isinstance(make, str):
        made = getattr(world, make)()
        own = made if isinstance(made, str) else made[client == "wallet"]
        call = Given(dict.fromkeys(re.findall(r"{(\w+)}", name)[-1:], own))
    else:
        call = make(world)
    return call._replace(ids=ids(client, world) | call.ids)
