"""The arguments of each operation of the contract.

Operations not named here need only the world's ids.
"""

import io
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


def offer(world):
    parties = {
        "definitionId": world.definition["definitionId"],
        "connectionId": world.connection[0],
    }
    return parties | {"automaticIssuance": False, "credentialValues": VALUES}


def choice(world):
    """Alice's answer to the world's policy."""
    names = ("Title", "Name", "Of age")
    return [
        {"policyName": name, "credentialId": world.credential[WALLET]}
        for name in names
    ]


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
    connection_id = world.connection[ORGANIZATION]
    return {
        "verificationDefinitionId": world.stored_request(),
        "connectionId": connection_id,
    }


CREDENTIALS = {
    "POST /common/upload": picture,
    "POST /connections": lambda world: body(INVITATION),
    "DELETE /connections/{connectionId}": lambda world: path(
        connectionId=world.connected()[0]
    ),
    "POST /credentials": lambda world: body(offer(world)),
    "PUT /credentials/{credentialId}": lambda world: path(
        credentialId=world.accepted()[0]
    ),
    "DELETE /credentials/{credentialId}": lambda world: path(
        credentialId=world.issued()[0]
    ),
    "DELETE /credentials/delete/{credentialId}": lambda world: path(
        credentialId=world.offered()[0]
    ),
    "DELETE /credentials/purge/{definitionId}": lambda world: path(
        definitionId=world.another_definition()
    ),
    "POST /definitions/credentials": lambda world: body(DEFINITION),
    "POST /definitions/schemas": lambda world: body(SCHEMA),
    "DELETE /definitions/credentials/{credentialDefinitionId}": lambda world: path(
        credentialDefinitionId=world.another_definition()
    ),
    "POST /tenants": lambda world: body(TENANT),
    "DELETE /tenants/{tenantId}": an_organization,
    "POST /verifications": lambda world: body(old_verification(world)),
    "DELETE /verifications/{verificationId}": lambda world: path(
        verificationId=world.asked()[0]
    ),
    "GET /definitions/verifications": lambda world: path(
        definitionId=world.stored_request()
    ),
    "GET /definitions/verifications/{definitionId}": lambda world: path(
        definitionId=world.stored_request()
    ),
    "POST /definitions/verifications": lambda world: body(world.proof_request),
    "DELETE /definitions/verifications/{verificationDefinitionId}": lambda world: path(
        verificationDefinitionId=world.stored_request()
    ),
    "GET /webhooks": lambda world: path(webhookId=world.webhook()),
    "POST /webhooks": lambda world: body(WEBHOOK),
    "DELETE /webhooks/{webhookId}": lambda world: path(webhookId=world.webhook()),
    "PUT /webhooks/{webhookId}/enable": lambda world: path(webhookId=world.webhook()),
    "PUT /webhooks/{webhookId}/disable": lambda world: path(webhookId=world.webhook()),
    "POST /messages": lambda world: body(
        {"connectionId": world.connection[ORGANIZATION], "text": "Hello"}
    ),
    "GET /messages/connection/{connectionId}": lambda world: path(
        messageId=world.message[ORGANIZATION]
    ),
    "GET /messages/{messageId}": lambda world: path(
        messageId=world.message[ORGANIZATION]
    ),
    "POST /definitions/credentials/{schemaId}": lambda world: body(
        {"supportRevocation": False}
    ),
    "POST /verificationPolicies": lambda world: body(world.policy),
    "DELETE /verificationPolicies/{policyId}": lambda world: path(
        policyId=world.another_policy()
    ),
    "POST /verifications/policy": lambda world: body(world.policy),
    "POST /verifications/policy/connections/{connectionId}": lambda world: body(
        world.policy
    ),
    "PUT /verifications/policy/connections/{connectionId}": lambda world: body(
        world.policy
    ),
    "PUT /verifications/proposal/{policyId}/connections/{connectionId}": lambda world: (
        path(policyId=world.proposed()[0])
    ),
}
WALLETS = {
    "POST /api/{walletId}/connections/invitation": lambda world: form(
        invitation=world.faber.invites()["invitation"]
    ),
    "POST /api/{walletId}/credentials/{credentialId}": lambda world: path(
        credentialId=world.offered()[1]
    ),
    "POST /api/wallets": lambda world: body({"ownerName": "Bob"}),
    "DELETE /api/wallets": lambda world: Given(
        query=f"walletId={world.another_wallet()}"
    ),
    "DELETE /api/wallets/{walletId}": lambda world: path(
        walletId=world.another_wallet()
    ),
    "PUT /api/{walletId}/verifications/{verificationId}/autoSelect": lambda world: (
        path(verificationId=world.asked()[1])
    ),
    "PUT /api/{walletId}/verifications/{verificationId}": lambda world: Given(
        {"verificationId": world.asked()[1]}, choice(world)
    ),
    "PUT /api/{walletId}/credentials/fromData": lambda world: form(
        credentialData=world.offer_by_link()
    ),
    "PUT /api/{walletId}/verifications/fromData/autoSelect": lambda world: form(
        verificationData=world.request_by_link()
    ),
    "PUT /api/{walletId}/verifications/fromData": lambda world: body(
        {"verificationData": world.request_by_link(), "parameters": choice(world)}
    ),
    "POST /api/{walletId}/verifications/fromData/availableCredentials": lambda world: (
        form(verificationData=world.request_by_link())
    ),
    "PUT /api/{walletId}/verifications/propose/{connectionId}": lambda world: body(
        world.proposable
    ),
    "DELETE /api/{walletId}/connections/{connectionId}": lambda world: path(
        connectionId=world.connected()[1]
    ),
    "DELETE /api/{walletId}/credentials/{credentialId}": lambda world: path(
        credentialId=world.issued()[1]
    ),
    "DELETE /api/{walletId}/verifications/{verificationId}": lambda world: path(
        verificationId=world.asked()[1]
    ),
}
PROVIDER = {
    "POST /tenants": lambda world: body(TENANT),
    "DELETE /tenants": all_organizations,
    "DELETE /tenants/{tenantId}": lambda world: path(tenantId=world.another_branch()),
    "PUT /tenants/{tenantId}": lambda world: body({"name": "Branch"}),
    "POST /assets": picture,
}
GIVEN = {"credentials": CREDENTIALS, "wallet": WALLETS, "provider": PROVIDER}


def given(operation, world):
    """All that one call of the operation needs, made in the world."""
    make = GIVEN[operation.client].get(
        f"{operation.method} {operation.path}", lambda _: Given()
    )
    made = make(world)
    return made._replace(ids=ids(operation.client, world) | made.ids)
