"""The ids in the examples of the OpenAPI document.

The demo organization has an object for most of them. On the machine where it was made, /docs shows
the examples with the ids of these objects, so that they can be tried as they stand.
"""

WALLET = "0196f3a0-7a5b-7c1e-8f00-6a1d2c3b4e5f"
CONNECTION = "0196f3a1-1111-7000-8000-000000000001"
CONNECTION_OF_WALLET = "0196f3a1-1111-7000-8000-000000000002"
CREDENTIAL = "0196f3a2-2222-7000-8000-000000000001"
CREDENTIAL_OF_WALLET = "0196f3a2-2222-7000-8000-000000000002"
POLICY = "0196f3a3-3333-7000-8000-000000000001"
VERIFICATION = "0196f3a4-4444-7000-8000-000000000001"
VERIFICATION_OF_WALLET = "0196f3a4-4444-7000-8000-000000000002"
WEBHOOK = "0196f3a5-5555-7000-8000-000000000001"
DELIVERY = "0196f3a6-6666-7000-8000-000000000001"
MESSAGE = "0196f3a6-6666-7000-8000-000000000003"
TENANT = "0196f3a7-7777-7000-8000-000000000001"
SCHEMA = "2NW27jTLopL5zrDKb1Mmx5:2:Degree:1.0"
DEFINITION = "2NW27jTLopL5zrDKb1Mmx5:3:CL:2:default"
REGISTRY = f"2NW27jTLopL5zrDKb1Mmx5:4:{DEFINITION}:CL_ACCUM:1"

OF_PATHS = {
    "connectionId": CONNECTION,
    "credentialId": CREDENTIAL,
    "definitionId": DEFINITION,
    "deliveryId": DELIVERY,
    "messageId": MESSAGE,
    "networkId": "local",
    "policyId": POLICY,
    "tenantId": TENANT,
    "verificationDefinitionId": POLICY,
    "verificationId": VERIFICATION,
    "walletId": WALLET,
    "webhookId": WEBHOOK,
}
IN_WALLETS = {
    "connectionId": CONNECTION_OF_WALLET,
    "credentialId": CREDENTIAL_OF_WALLET,
    "verificationId": VERIFICATION_OF_WALLET,
}
ON_LEDGERS = {
    "/schemas/": SCHEMA,
    "/credential-definitions/": DEFINITION,
    "/revocation-registries/": REGISTRY,
}


def of_path(path: str, method: str, name: str) -> str | None:
    """The example of a parameter of this path."""
    if name == "objectId":
        return next((one for part, one in ON_LEDGERS.items() if part in path), None)
    if (path, method, name) == ("/definitions/credentials/{definitionId}", "post", "definitionId"):
        return SCHEMA
    if "/api/{walletId}" in path and name in IN_WALLETS:
        return IN_WALLETS[name]
    return OF_PATHS.get(name)
