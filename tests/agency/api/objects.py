"""Objects for all ids in the API's paths, for tests made from the OpenAPI schema."""

from tenants.models import Tenant
from tests.support.people import Provider

WALLET = "/api/{walletId}"
PROVIDER = "/provider/v1/"


def objects_of(organization):
    """Return one object per kind of id in a path.

    Those of one API are under its part.
    """
    alice, definition = (
        organization.hosts(),
        organization.defines("name", "degree", "age"),
    )
    values = {"name": "Alice", "degree": "Maths", "age": "28"}
    credential = organization.offers(alice, definition, values)
    policy = {"name": "P", "version": "1", "attributes": [{"policyName": "name"}]}
    asked = organization.asks(alice, attributes=policy["attributes"])
    policy_id = organization.post("/verificationPolicies", policy)["policyId"]
    kiosk = organization.post("/kiosks", {"name": "Desk", "policyId": policy_id})
    Tenant.objects.filter(pk=organization.tenant.pk).update(is_test=True)
    rex = {"name": "Rex", "behaviour": "silent"}
    holder = organization.post("/sandbox/holders", rex)
    connection_id = alice.known_as(organization)
    organization.post("/messages", {"connectionId": connection_id, "text": "Hello"})
    webhook = organization.post(
        "/webhooks", {"url": "https://office.example", "type": "Zapier"}
    )
    example = {"messageType": "verification"}
    sent = organization.post(f"/webhooks/{webhook['id']}/example", example)
    rows = [{"connectionId": connection_id, "credentialValues": values}]
    path = f"/credentials/bulk?definitionId={definition['definitionId']}"
    return {
        "bulkId": organization.post(path, rows)["bulkId"],
        "webhookId": webhook["id"],
        "deliveryId": sent["deliveryId"],
        "holderId": holder["holderId"],
        "kioskId": kiosk["kioskId"],
        "messageId": organization.get(f"/messages/connection/{connection_id}")[0][
            "id"
        ],
        "tenantId": str(organization.tenant.public_id),
        "networkId": "local",
        "verificationDefinitionId": policy_id,
        PROVIDER: {"tenantId": Provider(organization).makes()["tenantId"]},
        "walletId": alice.wallet_id,
        "connectionId": connection_id,
        "definitionId": definition["definitionId"],
        "credentialId": credential["credentialId"],
        "policyId": policy_id,
        "verificationId": asked["verificationId"],
        WALLET: {
            "messageId": message_of(alice),
            "walletId": alice.wallet_id,
            "connectionId": alice.newest("connections")["connectionId"],
            "credentialId": alice.newest("credentials")["credentialId"],
            "verificationId": alice.newest("verifications")["verificationId"],
        },
    }


def filled(path, ids):
    """Fill in the ids of a path.

    Paths of a wallet or the provider API get those of that side.
    """
    for part in (WALLET, PROVIDER):
        ids = ids | (ids.get(part, {}) if part in path else {})
    for name, value in ids.items():
        if isinstance(value, str):
            path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, f"no object for {path}"
    return path


def caller(organization, path):
    """Who calls this path with an organization's keys."""
    if not path.startswith(PROVIDER):
        return organization
    provider = Provider(organization)
    provider.prefix = ""
    return provider


def message_of(holder):
    connection_id = holder.newest("connections")["connectionId"]
    holder.post("/messages", {"connectionId": connection_id, "text": "Hello"})
    return holder.get(f"/messages/connection/{connection_id}")[0]["id"]
