"""Routes of policies and verifications, below each prefix of the two APIs."""

from django.urls import path

from verifications.views import VerificationPolicies, Verifications, WalletVerifications

credentials_api = [
    path("verificationPolicies", VerificationPolicies.as_view({"get": "list", "post": "create"})),
    path(
        "verificationPolicies/<policyId>",
        VerificationPolicies.as_view({"get": "retrieve", "delete": "destroy"}),
    ),
    path("verifications", Verifications.as_view({"get": "list"})),
    path(
        "verifications/policy/connections/<connectionId>",
        Verifications.as_view({"post": "send_parameters", "put": "put_parameters"}),
    ),
    path(
        "verifications/policy/<policyId>/connections/<connectionId>",
        Verifications.as_view({"put": "send_policy"}),
    ),
    path(
        "verifications/<verificationId>",
        Verifications.as_view({"get": "retrieve", "delete": "destroy"}),
    ),
    path("verifications/<verificationId>/verify", Verifications.as_view({"get": "verify"})),
]
one = {"get": "retrieve", "put": "submit", "delete": "destroy"}
wallet_api = [
    path("<walletId>/verifications", WalletVerifications.as_view({"get": "list"})),
    path(
        "<walletId>/verifications/connection/<connectionId>",
        WalletVerifications.as_view({"get": "list_of_connection"}),
    ),
    path("<walletId>/verifications/<verificationId>", WalletVerifications.as_view(one)),
    path(
        "<walletId>/verification/<verificationId>",
        WalletVerifications.as_view({"get": "retrieve"}),
    ),
    path(
        "<walletId>/verifications/<verificationId>/autoSelect",
        WalletVerifications.as_view({"put": "auto_select"}),
    ),
    path(
        "<walletId>/verifications/<verificationId>/availableCredentials",
        WalletVerifications.as_view({"get": "available"}),
    ),
    path(
        "<walletId>/verifications/<verificationId>/decline",
        WalletVerifications.as_view({"put": "decline"}),
    ),
]
