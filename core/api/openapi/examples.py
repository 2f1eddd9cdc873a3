"""The ids and links in the examples of the OpenAPI document.

The demo organization has an object for each of them. On the machine where the demo
ran, /docs shows the ids of these objects instead, so that each example works as it
stands. An operation that ends an object, or needs it in a certain state, has an object
of its own.
"""

WALLET = "0196f3a0-7a5b-7c1e-8f00-6a1d2c3b4e5f"
CONNECTION = "0196f3a1-1111-7000-8000-000000000001"
CONNECTION_OF_WALLET = "0196f3a1-1111-7000-8000-000000000002"
CREDENTIAL = "0196f3a2-2222-7000-8000-000000000001"
CREDENTIAL_OF_WALLET = "0196f3a2-2222-7000-8000-000000000002"
BULK = "0196f3a2-2222-7000-8000-000000000010"
BULK_TO_PAUSE = "0196f3a2-2222-7000-8000-000000000011"
BULK_TO_RESUME = "0196f3a2-2222-7000-8000-000000000012"
BULK_TO_RETRY = "0196f3a2-2222-7000-8000-000000000013"
BULK_TO_DELETE = "0196f3a2-2222-7000-8000-000000000014"
MAILING = "0196f3a2-2222-7000-8000-000000000017"
MAILING_TO_PAUSE = "0196f3a2-2222-7000-8000-000000000018"
MAILING_TO_RESUME = "0196f3a2-2222-7000-8000-000000000019"
MAILING_TO_STOP = "0196f3a2-2222-7000-8000-000000000020"
POLICY = "0196f3a3-3333-7000-8000-000000000001"
KIOSK = "0196f3a8-3333-7000-8000-000000000001"
KIOSK_TO_REVOKE = "0196f3a8-3333-7000-8000-000000000002"
TRUST_ANCHOR_TO_DELETE = "0196f3ab-3333-7000-8000-000000000001"
SIMULATED_HOLDER = "0196f3a9-3333-7000-8000-000000000001"
SIMULATED_HOLDER_TO_DELETE = "0196f3a9-3333-7000-8000-000000000002"
VERIFICATION = "0196f3a4-4444-7000-8000-000000000001"
VERIFICATION_OF_WALLET = "0196f3a4-4444-7000-8000-000000000002"
WEBHOOK = "0196f3a5-5555-7000-8000-000000000001"
DELIVERY = "0196f3a6-6666-7000-8000-000000000001"
MESSAGE = "0196f3a6-6666-7000-8000-000000000003"
MESSAGE_OF_WALLET = "0196f3a6-6666-7000-8000-000000000005"
KEY_TO_REVOKE = "0196f3aa-7777-7000-8000-000000000001"
TENANT = "0196f3a7-7777-7000-8000-000000000001"
SCHEMA = "2NW27jTLopL5zrDKb1Mmx5:2:Degree:1.0"
DEFINITION = "2NW27jTLopL5zrDKb1Mmx5:3:CL:2:default"
DEFINITION_TO_DELETE = "2NW27jTLopL5zrDKb1Mmx5:3:CL:4:default"
REGISTRY = f"2NW27jTLopL5zrDKb1Mmx5:4:{DEFINITION}:CL_ACCUM:1"

WALLET_TO_DELETE = "0196f3a0-7a5b-7c1e-8f00-6a1d2c3b4e60"
WALLET_TO_DELETE_BY_QUERY = "0196f3a0-7a5b-7c1e-8f00-6a1d2c3b4e61"
CONNECTION_TO_DELETE = "0196f3a1-1111-7000-8000-000000000003"
CONNECTION_TO_END = "0196f3a1-1111-7000-8000-000000000004"
CONNECTION_OF_WALLET_TO_DELETE = "0196f3a1-1111-7000-8000-000000000005"
CONNECTION_TO_ACCEPT = "0196f3a1-1111-7000-8000-000000000006"
CONNECTION_OF_WALLET_TO_ACCEPT = "0196f3a1-1111-7000-8000-000000000007"
CREDENTIAL_PROPOSED = "0196f3a2-2222-7000-8000-000000000003"
CREDENTIAL_REQUESTED = "0196f3a2-2222-7000-8000-000000000004"
CREDENTIAL_TO_DELETE = "0196f3a2-2222-7000-8000-000000000005"
CREDENTIAL_TO_REVOKE = "0196f3a2-2222-7000-8000-000000000015"
OFFER_TO_ACCEPT = "0196f3a2-2222-7000-8000-000000000006"
OFFER_TO_DECLINE = "0196f3a2-2222-7000-8000-000000000007"
OFFER_TO_COUNTER = "0196f3a2-2222-7000-8000-000000000008"
OFFER_TO_DELETE = "0196f3a2-2222-7000-8000-000000000009"
POLICY_TO_DELETE = "0196f3a3-3333-7000-8000-000000000002"
POLICY_TO_DELETE_AS_DEFINITION = "0196f3a3-3333-7000-8000-000000000003"
VERIFICATION_TO_DELETE = "0196f3a4-4444-7000-8000-000000000003"
REQUEST_TO_ANSWER = "0196f3a4-4444-7000-8000-000000000004"
REQUEST_TO_ANSWER_BY_CHOICE = "0196f3a4-4444-7000-8000-000000000005"
REQUEST_TO_DECLINE = "0196f3a4-4444-7000-8000-000000000006"
REQUEST_TO_DELETE = "0196f3a4-4444-7000-8000-000000000007"
WEBHOOK_ENABLED = "0196f3a5-5555-7000-8000-000000000002"
WEBHOOK_TO_DELETE = "0196f3a5-5555-7000-8000-000000000003"
DELIVERY_TO_RESEND = "0196f3a6-6666-7000-8000-000000000004"
TENANT_OF_PROVIDER = "0196f3a7-7777-7000-8000-000000000002"
TENANT_OF_PROVIDER_TO_DELETE = "0196f3a7-7777-7000-8000-000000000003"
# Of an organization that accepts requests to connect by its DID.
PUBLIC_DID = "did:sov:V4SGRU86Z58d6TV7PBUe6f"

INVITATION_LINK = "https://agency.example/i/invitation-for-many"
OFFER_LINK = "https://agency.example/i/offer"
REQUEST_LINK = "https://agency.example/i/request"
REQUEST_LINK_FOR_A_CHOICE = "https://agency.example/i/request-for-a-choice"

BY_PARAMETER = {
    "bulkId": BULK,
    "connectionId": CONNECTION,
    "credentialId": CREDENTIAL,
    "definitionId": DEFINITION,
    "deliveryId": DELIVERY,
    "holderId": SIMULATED_HOLDER,
    "keyId": KEY_TO_REVOKE,
    "kioskId": KIOSK,
    "mailingId": MAILING,
    "messageId": MESSAGE,
    "networkId": "local",
    "policyId": POLICY,
    "tenantId": TENANT,
    "verificationDefinitionId": POLICY,
    "verificationId": VERIFICATION,
    "walletId": WALLET,
    "webhookId": WEBHOOK,
}
BY_PARAMETER_IN_WALLETS = {
    "connectionId": CONNECTION_OF_WALLET,
    "credentialId": CREDENTIAL_OF_WALLET,
    "messageId": MESSAGE_OF_WALLET,
    "verificationId": VERIFICATION_OF_WALLET,
}
BY_PARAMETER_OF_PROVIDERS = {"tenantId": TENANT_OF_PROVIDER}
BY_LEDGER_PATH = {
    "/schemas/": SCHEMA,
    "/credential-definitions/": DEFINITION,
    "/revocation-registries/": REGISTRY,
}
BY_OPERATION = {
    ("acceptConnection", "connectionId"): CONNECTION_TO_ACCEPT,
    ("acceptCredentialOffer", "credentialId"): OFFER_TO_ACCEPT,
    ("acceptWalletConnection", "connectionId"): CONNECTION_OF_WALLET_TO_ACCEPT,
    ("counterCredentialOffer", "credentialId"): OFFER_TO_COUNTER,
    ("createCredentialDefinitionForSchemaId", "definitionId"): SCHEMA,
    ("declineCredentialOffer", "credentialId"): OFFER_TO_DECLINE,
    ("declineVerification", "verificationId"): REQUEST_TO_DECLINE,
    ("deleteConnection", "connectionId"): CONNECTION_TO_DELETE,
    ("deleteCredential", "credentialId"): CREDENTIAL_TO_DELETE,
    ("deleteCredentialDefinition", "definitionId"): DEFINITION_TO_DELETE,
    ("deleteProviderTenant", "tenantId"): TENANT_OF_PROVIDER_TO_DELETE,
    ("deleteVerification", "verificationId"): VERIFICATION_TO_DELETE,
    (
        "deleteVerificationDefinition",
        "verificationDefinitionId",
    ): POLICY_TO_DELETE_AS_DEFINITION,
    ("deleteBulk", "bulkId"): BULK_TO_DELETE,
    ("deleteVerificationPolicy", "policyId"): POLICY_TO_DELETE,
    ("deleteWallet", "walletId"): WALLET_TO_DELETE,
    ("deleteWalletByQuery", "walletId"): WALLET_TO_DELETE_BY_QUERY,
    ("deleteWalletConnection", "connectionId"): CONNECTION_OF_WALLET_TO_DELETE,
    ("deleteWalletCredential", "credentialId"): OFFER_TO_DELETE,
    ("deleteWalletVerification", "verificationId"): REQUEST_TO_DELETE,
    ("endConnection", "connectionId"): CONNECTION_TO_END,
    ("issueCredential", "credentialId"): CREDENTIAL_REQUESTED,
    ("offerCredentialFromProposal", "credentialId"): CREDENTIAL_PROPOSED,
    ("pauseBulk", "bulkId"): BULK_TO_PAUSE,
    ("pauseMailing", "mailingId"): MAILING_TO_PAUSE,
    ("purgeCredentials", "definitionId"): DEFINITION_TO_DELETE,
    ("removeWebhook", "webhookId"): WEBHOOK_TO_DELETE,
    ("deleteSimulatedHolder", "holderId"): SIMULATED_HOLDER_TO_DELETE,
    ("revokeCredential", "credentialId"): CREDENTIAL_TO_REVOKE,
    ("revokeKiosk", "kioskId"): KIOSK_TO_REVOKE,
    ("deleteTrustAnchor", "trustAnchorId"): TRUST_ANCHOR_TO_DELETE,
    ("resendWebhookDelivery", "deliveryId"): DELIVERY_TO_RESEND,
    ("resendWebhookDelivery", "webhookId"): WEBHOOK_ENABLED,
    ("resumeBulk", "bulkId"): BULK_TO_RESUME,
    ("resumeMailing", "mailingId"): MAILING_TO_RESUME,
    ("retryBulk", "bulkId"): BULK_TO_RETRY,
    ("stopMailing", "mailingId"): MAILING_TO_STOP,
    ("submitVerification", "verificationId"): REQUEST_TO_ANSWER_BY_CHOICE,
    ("submitVerificationAutoSelect", "verificationId"): REQUEST_TO_ANSWER,
}
BY_FORM_FIELD = {
    "AcceptInvitationForm.invitation": INVITATION_LINK,
    "CredentialDataForm.credentialData": OFFER_LINK,
    "VerificationDataForm.verificationData": REQUEST_LINK,
}


def find_parameter_example(path: str, operation_id: str, name: str) -> str | None:
    if name == "objectId":
        return next(
            (text for part, text in BY_LEDGER_PATH.items() if part in path), None
        )
    if example := BY_OPERATION.get((operation_id, name)):
        return example
    examples = dict(BY_PARAMETER)
    if "/api/{walletId}" in path:
        examples |= BY_PARAMETER_IN_WALLETS
    if path.startswith("/provider/"):
        examples |= BY_PARAMETER_OF_PROVIDERS
    return examples.get(name)
