"""Routes of definitions and credentials: below the prefix of an API or a wallet."""

from django.urls import include, path, register_converter
from django.urls.converters import StringConverter

from core.api.views import DETAIL, route
from credentials.api import openid4vci, webvh
from credentials.api.bulk import Bulks
from credentials.api.definitions import CredentialDefinitions, Schemas
from credentials.api.holder import WalletCredentials
from credentials.api.issuer import Credentials
from credentials.api.ledger import Ledger, tails


class ObjectId(StringConverter):
    """The id of an object of a network. That of a did:webvh has two slashes."""

    regex = "did:webvh:[^/]+/resources/[^/]+|[^/]+"


register_converter(ObjectId, "object_id")

credentials_api = [
    route("definitions/schemas", Schemas, get="list", post="create"),
    route("definition/schemas", Schemas, get="list", post="create"),
    route("definitions/credentials", CredentialDefinitions, get="list", post="create"),
    route(
        "definitions/credentials/<object_id:definitionId>",
        CredentialDefinitions,
        **DETAIL,
        post="create_for_schema",
    ),
    route(
        "definitions/credentials/<object_id:definitionId>/formats",
        CredentialDefinitions,
        put="add_format",
    ),
    route(
        "definitions/credentials/<object_id:definitionId>/twin",
        CredentialDefinitions,
        post="create_twin",
    ),
    route("credentials", Credentials, get="list", post="create"),
    route("credentials/revoke", Credentials, post="revoke_many"),
    route("credentials/bulk", Bulks, get="list", post="create"),
    route("credentials/bulk/<str:bulkId>", Bulks, get="retrieve", delete="destroy"),
    route("credentials/bulk/<str:bulkId>/pause", Bulks, post="pause"),
    route("credentials/bulk/<str:bulkId>/resume", Bulks, post="resume"),
    route("credentials/bulk/<str:bulkId>/retry", Bulks, post="retry"),
    route("credentials/bulk/<str:bulkId>/result", Bulks, get="result"),
    route("credentials/delete/<str:credentialId>", Credentials, delete="destroy"),
    route("credentials/purge/<object_id:definitionId>", Credentials, delete="purge"),
    route(
        "credentials/<str:credentialId>",
        Credentials,
        get="retrieve",
        put="issue",
        patch="update",
        delete="revoke",
    ),
    route("credentials/<str:credentialId>/offer", Credentials, put="answer_proposal"),
]
in_wallet = [
    route("credentials", WalletCredentials, get="list"),
    route(
        "credentials/connection/<str:connectionId>",
        WalletCredentials,
        get="list_of_connection",
    ),
    route("credentials/propose/<str:connectionId>", WalletCredentials, put="propose"),
    route("credentials/fromData", WalletCredentials, put="accept_data"),
    route("credentials/<str:credentialId>", WalletCredentials, **DETAIL, post="accept"),
    route("credentials/<str:credentialId>/decline", WalletCredentials, post="decline"),
    route("credentials/<str:credentialId>/propose", WalletCredentials, put="counter"),
]
# Of an organization, for wallets of OpenID4VC.
openid = [
    path("offers/<str:token>", openid4vci.show_offer),
    path("token", openid4vci.token),
    path("nonce", openid4vci.nonce),
    path("credential", openid4vci.credential),
    path("deferred_credential", openid4vci.deferred_credential),
    path("notification", openid4vci.notification),
    path("types/<uuid:definitionId>", openid4vci.type_metadata),
    path("status/<int:number>", openid4vci.status_list),
]
OF_ORGANIZATION = "openid/<uuid:tenantId>"
public = [
    path("issuers/check/<str:nonce>", webvh.check),
    path("issuers/<str:segment>/did.jsonl", webvh.log),
    path("issuers/<str:segment>/resources/<str:digest>", webvh.resource),
    path(f"{OF_ORGANIZATION}/", include(openid)),
    # Well-known names stand between host and path (RFC 8414).
    path(
        f".well-known/openid-credential-issuer/{OF_ORGANIZATION}",
        openid4vci.issuer_metadata,
    ),
    path(
        f".well-known/oauth-authorization-server/{OF_ORGANIZATION}",
        openid4vci.server_metadata,
    ),
    path(f".well-known/jwt-vc-issuer/{OF_ORGANIZATION}", openid4vci.vc_issuer_metadata),
    path("tails/<str:tailsHash>", tails),
    route(
        "ledger/<str:networkId>/revocation-registries/<object_id:objectId>",
        Ledger,
        get="read_registry",
    ),
    route(
        "ledger/<str:networkId>/revocation-registries/<object_id:objectId>/status-list",
        Ledger,
        get="read_status_list",
    ),
    route(
        "ledger/<str:networkId>/schemas/<object_id:objectId>", Ledger, get="read_schema"
    ),
    route(
        "ledger/<str:networkId>/credential-definitions/<object_id:objectId>",
        Ledger,
        get="read_definition",
    ),
]
