"""URL patterns of policies and verifications, for the prefixes of the two APIs."""

from django.urls import path

from verifications.api.kiosks import Kiosks
from verifications.api.lab import PolicyTrials
from verifications.api.legacy_definitions import (
    OldVerifications,
    VerificationDefinitions,
)
from verifications.api.policies import VerificationPolicies
from verifications.api.prover import WalletVerifications
from verifications.api.verifier import Verifications

credentials_api = [
    path(
        "verificationPolicies",
        VerificationPolicies.as_view({"get": "list", "post": "create"}),
    ),
    path("verificationPolicies/try", PolicyTrials.as_view({"post": "create"})),
    path(
        "verificationPolicies/<str:policyId>",
        VerificationPolicies.as_view(
            {"get": "retrieve", "patch": "update", "delete": "destroy"}
        ),
    ),
    path("kiosks", Kiosks.as_view({"get": "list", "post": "create"})),
    path(
        "kiosks/<str:kioskId>",
        Kiosks.as_view({"get": "retrieve", "delete": "destroy"}),
    ),
    path("verifications", OldVerifications.as_view({"get": "list", "post": "create"})),
    path(
        "definitions/verifications",
        VerificationDefinitions.as_view({"get": "list", "post": "create"}),
    ),
    path(
        "definitions/verifications/<str:verificationDefinitionId>",
        VerificationDefinitions.as_view({"get": "retrieve", "delete": "destroy"}),
    ),
    path(
        "verifications/proposal/<str:policyId>/connections/<str:connectionId>",
        Verifications.as_view({"put": "answer_proposal"}),
    ),
    path("verifications/policy", Verifications.as_view({"post": "share_parameters"})),
    path(
        "verifications/policy/<str:policyId>",
        Verifications.as_view({"put": "share_policy"}),
    ),
    path(
        "verifications/policy/connections/<str:connectionId>",
        Verifications.as_view({"post": "send_parameters", "put": "put_parameters"}),
    ),
    path(
        "verifications/policy/<str:policyId>/connections/<str:connectionId>",
        Verifications.as_view({"put": "send_policy"}),
    ),
    path(
        "verifications/<str:verificationId>",
        Verifications.as_view(
            {"get": "retrieve", "patch": "update", "delete": "destroy"}
        ),
    ),
    path(
        "verifications/<str:verificationId>/verify",
        Verifications.as_view({"get": "verify"}),
    ),
]
one = {"get": "retrieve", "put": "submit", "patch": "update", "delete": "destroy"}
wallet_api = [
    path("<str:walletId>/verifications", WalletVerifications.as_view({"get": "list"})),
    path(
        "<str:walletId>/verifications/connection/<str:connectionId>",
        WalletVerifications.as_view({"get": "list_of_connection"}),
    ),
    path(
        "<str:walletId>/presentations/connection/<str:connectionId>",
        WalletVerifications.as_view({"get": "list_of_connection"}),
    ),
    path(
        "<str:walletId>/verifications/propose/<str:connectionId>",
        WalletVerifications.as_view({"put": "propose"}),
    ),
    path(
        "<str:walletId>/verifications/fromData",
        WalletVerifications.as_view({"put": "submit_data"}),
    ),
    path(
        "<str:walletId>/verifications/fromData/autoSelect",
        WalletVerifications.as_view({"put": "auto_select_data"}),
    ),
    path(
        "<str:walletId>/verifications/fromData/availableCredentials",
        WalletVerifications.as_view({"post": "available_for_data"}),
    ),
    path(
        "<str:walletId>/verifications/<str:verificationId>",
        WalletVerifications.as_view(one),
    ),
    path(
        "<str:walletId>/verification/<str:verificationId>",
        WalletVerifications.as_view({"get": "retrieve"}),
    ),
    path(
        "<str:walletId>/verifications/<str:verificationId>/autoSelect",
        WalletVerifications.as_view({"put": "auto_select"}),
    ),
    path(
        "<str:walletId>/verifications/<str:verificationId>/availableCredentials",
        WalletVerifications.as_view({"get": "available"}),
    ),
    path(
        "<str:walletId>/verifications/<str:verificationId>/decline",
        WalletVerifications.as_view({"put": "decline"}),
    ),
]
