"""Routes of definitions and credentials: relative to the two API prefixes."""

from django.urls import path

from credentials.api.bulk import Bulks
from credentials.api.definitions import CredentialDefinitions, Schemas
from credentials.api.holder import WalletCredentials
from credentials.api.issuer import Credentials
from credentials.api.ledger import Ledger, tails

credentials_api = [
    path("definitions/schemas", Schemas.as_view({"get": "list", "post": "create"})),
    path("definition/schemas", Schemas.as_view({"get": "list", "post": "create"})),
    path(
        "definitions/credentials",
        CredentialDefinitions.as_view({"get": "list", "post": "create"}),
    ),
    path(
        "definitions/credentials/<str:definitionId>",
        CredentialDefinitions.as_view(
            {
                "get": "retrieve",
                "delete": "destroy",
                "patch": "update",
                "post": "create_for_schema",
            }
        ),
    ),
    path("credentials", Credentials.as_view({"get": "list", "post": "create"})),
    path("credentials/revoke", Credentials.as_view({"post": "revoke_many"})),
    path("credentials/bulk", Bulks.as_view({"get": "list", "post": "create"})),
    path(
        "credentials/bulk/<str:bulkId>",
        Bulks.as_view({"get": "retrieve", "delete": "destroy"}),
    ),
    path("credentials/bulk/<str:bulkId>/pause", Bulks.as_view({"post": "pause"})),
    path("credentials/bulk/<str:bulkId>/resume", Bulks.as_view({"post": "resume"})),
    path("credentials/bulk/<str:bulkId>/retry", Bulks.as_view({"post": "retry"})),
    path("credentials/bulk/<str:bulkId>/result", Bulks.as_view({"get": "result"})),
    path(
        "credentials/delete/<str:credentialId>",
        Credentials.as_view({"delete": "destroy"}),
    ),
    path(
        "credentials/purge/<str:definitionId>",
        Credentials.as_view({"delete": "purge"}),
    ),
    path(
        "credentials/<str:credentialId>",
        Credentials.as_view(
            {
                "get": "retrieve",
                "put": "issue",
                "patch": "update",
                "delete": "revoke",
            }
        ),
    ),
    path(
        "credentials/<str:credentialId>/offer",
        Credentials.as_view({"put": "answer_proposal"}),
    ),
]
wallet_api = [
    path("<str:walletId>/credentials", WalletCredentials.as_view({"get": "list"})),
    path(
        "<str:walletId>/credentials/connection/<str:connectionId>",
        WalletCredentials.as_view({"get": "list_of_connection"}),
    ),
    path(
        "<str:walletId>/credentials/propose/<str:connectionId>",
        WalletCredentials.as_view({"put": "propose"}),
    ),
    path(
        "<str:walletId>/credentials/fromData",
        WalletCredentials.as_view({"put": "accept_data"}),
    ),
    path(
        "<str:walletId>/credentials/<str:credentialId>",
        WalletCredentials.as_view(
            {
                "get": "retrieve",
                "post": "accept",
                "patch": "update",
                "delete": "destroy",
            }
        ),
    ),
    path(
        "<str:walletId>/credentials/<str:credentialId>/decline",
        WalletCredentials.as_view({"post": "decline"}),
    ),
    path(
        "<str:walletId>/credentials/<str:credentialId>/propose",
        WalletCredentials.as_view({"put": "counter"}),
    ),
]
public = [
    path("tails/<str:tailsHash>", tails),
    path(
        "ledger/<str:networkId>/revocation-registries/<str:objectId>",
        Ledger.as_view({"get": "read_registry"}),
    ),
    path(
        "ledger/<str:networkId>/revocation-registries/<str:objectId>/status-list",
        Ledger.as_view({"get": "read_status_list"}),
    ),
    path(
        "ledger/<str:networkId>/schemas/<str:objectId>",
        Ledger.as_view({"get": "read_schema"}),
    ),
    path(
        "ledger/<str:networkId>/credential-definitions/<str:objectId>",
        Ledger.as_view({"get": "read_definition"}),
    ),
]
