"""Routes of schemas, definitions and credentials, below each prefix of the two APIs."""

from django.urls import path

from credentials.ledger import Ledger
from credentials.views import CredentialDefinitions, Credentials, Schemas, WalletCredentials

credentials_api = [
    path("definitions/schemas", Schemas.as_view({"get": "list", "post": "create"})),
    path("definition/schemas", Schemas.as_view({"get": "list", "post": "create"})),
    path(
        "definitions/credentials", CredentialDefinitions.as_view({"get": "list", "post": "create"})
    ),
    path(
        "definitions/credentials/<definitionId>",
        CredentialDefinitions.as_view(
            {"get": "retrieve", "delete": "destroy", "post": "create_for_schema"}
        ),
    ),
    path("credentials", Credentials.as_view({"get": "list", "post": "create"})),
    path("credentials/<credentialId>", Credentials.as_view({"get": "retrieve", "put": "issue"})),
]
wallet_api = [
    path("<walletId>/credentials", WalletCredentials.as_view({"get": "list"})),
    path(
        "<walletId>/credentials/connection/<connectionId>",
        WalletCredentials.as_view({"get": "list_of_connection"}),
    ),
    path(
        "<walletId>/credentials/<credentialId>",
        WalletCredentials.as_view({"get": "retrieve", "post": "accept", "delete": "destroy"}),
    ),
    path(
        "<walletId>/credentials/<credentialId>/decline",
        WalletCredentials.as_view({"post": "decline"}),
    ),
]
public = [
    path("ledger/<networkId>/schemas/<objectId>", Ledger.as_view({"get": "read_schema"})),
    path(
        "ledger/<networkId>/credential-definitions/<objectId>",
        Ledger.as_view({"get": "read_definition"}),
    ),
]
