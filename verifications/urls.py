"""Routes of policies and verifications: below the prefix of an API or a wallet."""

from django.urls import path

from core.api.views import DETAIL, route
from verifications.api import openid4vp
from verifications.api.kiosks import Kiosks
from verifications.api.lab import PolicyTrials
from verifications.api.legacy_definitions import (
    OldVerifications,
    VerificationDefinitions,
)
from verifications.api.policies import VerificationPolicies
from verifications.api.prover import WalletVerifications
from verifications.api.verifier import Verifications

# Of an organization, for wallets of OpenID4VP.
public = [
    path("openid/<uuid:tenantId>/requests/<str:token>", openid4vp.show_request),
    path("openid/<uuid:tenantId>/responses/<str:token>", openid4vp.take_answer),
]
credentials_api = [
    route("verificationPolicies", VerificationPolicies, get="list", post="create"),
    route("verificationPolicies/try", PolicyTrials, post="create"),
    route("verificationPolicies/<str:policyId>", VerificationPolicies, **DETAIL),
    route("kiosks", Kiosks, get="list", post="create"),
    route("kiosks/<str:kioskId>", Kiosks, get="retrieve", delete="destroy"),
    route("verifications", OldVerifications, get="list", post="create"),
    route(
        "definitions/verifications", VerificationDefinitions, get="list", post="create"
    ),
    route(
        "definitions/verifications/<str:verificationDefinitionId>",
        VerificationDefinitions,
        get="retrieve",
        delete="destroy",
    ),
    route(
        "verifications/proposal/<str:policyId>/connections/<str:connectionId>",
        Verifications,
        put="answer_proposal",
    ),
    route("verifications/policy", Verifications, post="share_parameters"),
    route("verifications/policy/<str:policyId>", Verifications, put="share_policy"),
    route(
        "verifications/policy/connections/<str:connectionId>",
        Verifications,
        post="send_parameters",
        put="put_parameters",
    ),
    route(
        "verifications/policy/<str:policyId>/connections/<str:connectionId>",
        Verifications,
        put="send_policy",
    ),
    route("verifications/<str:verificationId>", Verifications, **DETAIL),
    route("verifications/<str:verificationId>/verify", Verifications, get="verify"),
]
in_wallet = [
    route("verifications", WalletVerifications, get="list"),
    route(
        "verifications/connection/<str:connectionId>",
        WalletVerifications,
        get="list_of_connection",
    ),
    route(
        "presentations/connection/<str:connectionId>",
        WalletVerifications,
        get="list_of_connection",
    ),
    route(
        "verifications/propose/<str:connectionId>", WalletVerifications, put="propose"
    ),
    route("verifications/fromData", WalletVerifications, put="submit_data"),
    route(
        "verifications/fromData/autoSelect", WalletVerifications, put="auto_select_data"
    ),
    route(
        "verifications/fromData/availableCredentials",
        WalletVerifications,
        post="available_for_data",
    ),
    route(
        "verifications/<str:verificationId>",
        WalletVerifications,
        **DETAIL,
        put="submit",
    ),
    route("verification/<str:verificationId>", WalletVerifications, get="retrieve"),
    route(
        "verifications/<str:verificationId>/autoSelect",
        WalletVerifications,
        put="auto_select",
    ),
    route(
        "verifications/<str:verificationId>/availableCredentials",
        WalletVerifications,
        get="available",
    ),
    route(
        "verifications/<str:verificationId>/decline", WalletVerifications, put="decline"
    ),
]
