"""Serializers of schemas, definitions and credentials."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Unpack

from rest_framework import serializers

from connections.api.serializers import (
    BY_DEFAULT,
    EXCHANGE_VERSION,
    LINK_COLUMNS,
    LINK_PROTOCOLS,
    OPENID4VCI,
    PROBLEM,
    PROBLEM_MESSAGE,
    REASON,
    THREAD_ID,
    VERSIONS,
    ExchangeLinkParameters,
)
from connections.invitation_links import encoded_message
from core.api.notes import (
    BY_REFERENCE,
    NotesContract,
    NotesParameters,
    NotesQuery,
)
from core.api.pagination import ChangingQuery, NamedQuery
from core.api.serializers import (
    METADATA,
    Contract,
    FieldOptions,
    IntegerField,
    Parameters,
    SharedFields,
    TextOptions,
)
from core.text.bounded_json import JSON
from credentials import messages
from credentials.issue_credential import proposal_messages
from credentials.models import (
    Credential,
    CredentialDefinition,
    CredentialFormat,
    Schema,
)
from credentials.models.card_display import Display
from credentials.models.credential import MAX_RECIPIENT_NAME
from credentials.models.definition import BOOLEAN, DATE, INTEGER
from credentials.models.definition_format import (
    DEFAULT_VALIDITY,
    DerivedClaim,
    FormatOptions,
)
from credentials.models.name_search import MIN_LETTERS, searched_beginnings
from wallets.anoncreds import normalise_name

STATES = [(str(state), str(state)) for state in Credential.State]
ROLES = [(str(role), str(role)) for role in Credential.Role]
VERSION = r"^[0-9]+(\.[0-9]+)*\Z"
CLAIM_TYPES = [(INTEGER, INTEGER), (DATE, DATE), (BOOLEAN, BOOLEAN)]
OFFER_PROTOCOLS = [*LINK_PROTOCOLS, OPENID4VCI]
DERIVED_PREDICATES = [(one, one) for one in (">=", ">", "<=", "<")]
CREDENTIAL_FORMATS = [(str(one), str(one)) for one in CredentialFormat]
VCT = r"^(https://[^\s]+|urn:[a-z0-9][a-z0-9-]{0,31}:[^\s]+)\Z"
COLOR = r"^#[0-9a-fA-F]{6}\Z"
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
MAX_LANGUAGES = 50
MAX_DERIVED = 50
FORBIDDEN = re.compile(r"[:/\\?#%\x00-\x1f\x7f]")
MAX_ATTRIBUTES = 125
MAX_FACE = 4


class NameField(serializers.CharField):
    """A name or tag that fits into an id."""

    def __init__(self, **options: Unpack[TextOptions]) -> None:
        super().__init__(max_length=64, **options)

    def to_internal_value(self, data: str) -> str:
        name = super().to_internal_value(data)
        if FORBIDDEN.search(name):
            raise serializers.ValidationError(
                "Leave out : / \\ ? # % and control characters."
            )
        return name


class VersionField(serializers.RegexField):
    """A schema's version has numbers with dots between them."""

    def __init__(self, **options: Unpack[TextOptions]) -> None:
        super().__init__(
            VERSION,
            max_length=64,
            error_messages={"invalid": "Give numbers with dots between them, as 1.0."},
            **options,
        )


class AttributeNamesField(serializers.ListField):
    """1 to 125 names, distinct without case and spaces, as proofs compare them."""

    def __init__(self, **options: Unpack[FieldOptions]) -> None:
        child = serializers.CharField(max_length=256, trim_whitespace=False)
        super().__init__(
            child=child, min_length=1, max_length=MAX_ATTRIBUTES, **options
        )

    def to_internal_value(self, data: list[str]) -> list[str]:
        names = super().to_internal_value(data)
        compared = [normalise_name(name) for name in names]
        if not all(compared):
            raise serializers.ValidationError("A name is blank.")
        if "master_secret" in compared:
            raise serializers.ValidationError(
                "The name master_secret is taken by the protocol."
            )
        twice = sorted(
            {name for name in names if compared.count(normalise_name(name)) > 1}
        )
        if twice:
            raise serializers.ValidationError(
                "These are the same when case and spaces are ignored: "
                f"{', '.join(twice)}."
            )
        return names


class SchemaParameters(Parameters):
    aliases = {"attrNames": "attributeNames"}

    name = NameField()
    version = VersionField()
    attributeNames = AttributeNamesField()


class SchemaQuery(NamedQuery):
    version = serializers.CharField(required=False, max_length=64)


class SchemaRecord(Contract[Schema]):
    id = serializers.CharField(source="schema_id")
    typeName = serializers.CharField()
    name = serializers.CharField()
    version = serializers.CharField()
    attributeNames = serializers.ListField(
        source="attribute_names", child=serializers.CharField()
    )
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(source="updated_at")

    def get_typeName(self, schema: Schema) -> str:
        return "SchemaRecord"


class CredentialDataParameters(Parameters):
    credentialData = serializers.CharField(
        max_length=200_000, help_text="The offer as its link, as base64 or as JSON."
    )
    transactionCode = serializers.CharField(
        required=False,
        max_length=64,
        help_text="What the issuer has told the holder besides a link of OpenID4VCI.",
    )


class ClaimParameters(Parameters):
    type = serializers.ChoiceField(CLAIM_TYPES)


def claims_field() -> serializers.DictField:
    return serializers.DictField(
        child=ClaimParameters(),
        required=False,
        help_text="By attribute. Of an integer no text can be offered or issued (400 "
        "`not_an_integer`), so that a predicate on it needs no upper bound: "
        "docs/policies.md. A date is an integer that is a day, as 20260131 "
        "(otherwise 400 `not_a_date`). A boolean is `true` or `false` (otherwise 400 "
        "`not_a_boolean`).",
    )


class TranslationsField(serializers.DictField):
    """Texts by language, as in `{"en": "Member card"}`."""

    def __init__(self, **options: Unpack[FieldOptions]) -> None:
        super().__init__(child=serializers.CharField(max_length=200), **options)

    def to_internal_value(self, data: dict[str, JSON]) -> dict[str, str]:
        texts: dict[str, str] = super().to_internal_value(data)
        if len(texts) > MAX_LANGUAGES:
            raise serializers.ValidationError(
                f"Give at most {MAX_LANGUAGES} languages."
            )
        if wrong := [name for name in texts if not LANGUAGE.fullmatch(name)]:
            raise serializers.ValidationError(
                f"Give languages as en or de-CH, not {', '.join(wrong)[:100]}."
            )
        return texts


class ColorsPart(serializers.Serializer):
    """Colors of a card, as `#1a2b3c`."""

    background = serializers.RegexField(
        COLOR, required=False, help_text="The color of the card."
    )
    text = serializers.RegexField(
        COLOR,
        required=False,
        help_text="The color of what is written on it, with a contrast of at least 4.5.",
    )


def attributes_field(most: int, help_text: str) -> serializers.ListField:
    name = serializers.CharField(max_length=256, trim_whitespace=False)
    return serializers.ListField(
        child=name, required=False, max_length=most, help_text=help_text
    )


class DisplayPart(serializers.Serializer):
    """How cards of a definition look: on our pages and in wallets of OpenID4VC."""

    colors = ColorsPart(required=False, help_text="Of the background and the text.")
    logo = serializers.RegexField(
        r"^https://\S+\Z",
        required=False,
        max_length=2000,
        help_text="The https address of a picture. Our pages draw it if it was uploaded "
        "here, else the logo of the organization.",
    )
    picture = serializers.CharField(
        required=False,
        max_length=2000,
        help_text="A picture on the face: the address that `POST /common/upload` "
        "answered. Wallets of OpenID4VC get it as the background.",
    )
    names = TranslationsField(
        required=False, help_text="Of the credential, by language."
    )
    labels = serializers.DictField(
        child=TranslationsField(),
        required=False,
        help_text="Of attributes: by attribute, then by language.",
    )
    title = serializers.CharField(
        required=False,
        max_length=256,
        trim_whitespace=False,
        help_text="The attribute in large letters on the face, the first by default.",
    )
    face = attributes_field(
        MAX_FACE, "Attributes below the title, in this order. The next ones by default."
    )
    back = attributes_field(
        MAX_ATTRIBUTES,
        "Attributes that stand first on the back. All that are nowhere else follow.",
    )


class DerivedClaimPart(serializers.Serializer):
    """A boolean claim that says whether a value meets a condition, without the value."""

    name = serializers.CharField(max_length=256)
    attributeName = serializers.CharField(max_length=256, trim_whitespace=False)
    predicateType = serializers.ChoiceField(DERIVED_PREDICATES)
    predicateValue = serializers.CharField(
        max_length=20,
        help_text="A whole number or, for a date with < or <=, one relative to the day "
        "of issuance, as `today-18y`.",
    )


class FormatParameters(Parameters):
    """How a definition is issued as SD-JWT VC. All of it may be left out."""

    display = DisplayPart(required=False)
    vct = serializers.RegexField(
        VCT,
        required=False,
        max_length=500,
        error_messages={"invalid": "Give an https address or a URN."},
        help_text="The type of its SD-JWT VCs: an https address or a URN. Without it "
        "an address of this server, which answers the type's metadata.",
    )
    validityDays = IntegerField(
        required=False,
        min_value=1,
        max_value=3650,
        help_text="For how long an SD-JWT VC is valid once it is issued: "
        f"{DEFAULT_VALIDITY} days by default.",
    )
    derivedClaims = serializers.ListField(
        child=DerivedClaimPart(),
        required=False,
        max_length=MAX_DERIVED,
        help_text="Boolean claims of an SD-JWT VC by which predicates are proven.",
    )


def format_members(body: Mapping[str, Any]) -> dict[str, Any]:
    """The members of publishing.DefinitionParameters that say in which formats."""
    formats = body.get("formats", [str(CredentialFormat.ANONCREDS)])
    wants_sd_jwt = CredentialFormat.SD_JWT in formats
    return {
        "is_anoncreds": CredentialFormat.ANONCREDS in formats,
        "sd_jwt": format_options(body) if wants_sd_jwt else None,
        "display": body.get("display"),
    }


def format_options(body: Mapping[str, Any]) -> FormatOptions:
    """What valid FormatParameters ask for."""
    return FormatOptions(
        body.get("vct", ""),
        body.get("validityDays", DEFAULT_VALIDITY),
        tuple(body.get("derivedClaims", ())),
    )


class CredentialDefinitionParameters(FormatParameters, NotesParameters):
    supportRevocation = serializers.BooleanField(required=False)
    tag = NameField(required=False)
    claims = claims_field()
    recipientAttribute = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=256,
        trim_whitespace=False,
        help_text="The attribute that names the person: its value is the "
        "`recipientName` of each credential that is offered without one.",
    )
    formats = serializers.ListField(
        child=serializers.ChoiceField(CREDENTIAL_FORMATS),
        required=False,
        min_length=1,
        max_length=len(CREDENTIAL_FORMATS),
        help_text="In which formats it is issued: `anoncreds` by default, `dc+sd-jwt` "
        "for wallets of OpenID4VC. Without `anoncreds` nothing is published.",
    )

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        formats = data.get("formats", [str(CredentialFormat.ANONCREDS)])
        if CredentialFormat.SD_JWT not in formats:
            message = f"This needs the format {CredentialFormat.SD_JWT}."
            others = FormatParameters().fields.keys() - {"display"}
            if given := sorted(name for name in others if name in data):
                raise serializers.ValidationError({name: [message] for name in given})
        return super().validate(data)


class DefinitionChanges(NotesParameters):
    """Changes of a definition: what is left out stays."""

    display = DisplayPart(
        required=False, help_text="In place of all that it had. `{}` clears it."
    )
    recipientAttribute = serializers.CharField(
        required=False,
        allow_blank=True,
        allow_null=True,
        max_length=256,
        trim_whitespace=False,
        help_text="The attribute that names the person from now on: names that "
        "credentials have stay. Null clears it.",
    )


class CredentialDefinitionFromSchemaParameters(CredentialDefinitionParameters):
    aliases = {"attrNames": "attributes", "attributeNames": "attributes"}

    name = NameField()
    version = VersionField()
    attributes = AttributeNamesField()


class CredentialDefinitionQuery(NamedQuery, NotesQuery):
    sorts = NamedQuery.sorts | BY_REFERENCE
    named = "schema__name"

    schemaId = serializers.CharField(
        source="schema__schema_id", required=False, max_length=300
    )
    version = serializers.CharField(
        source="schema__version", required=False, max_length=64
    )
    tag = serializers.CharField(required=False, max_length=64)
    supportsRevocation = serializers.BooleanField(
        source="supports_revocation", required=False
    )


class CredentialDefinitionContract(NotesContract[CredentialDefinition]):
    columns = (
        "definition_id", "schema__schema_id", "schema__name", "schema__version",
        "schema__attribute_names", "supports_revocation", "tag", "claims", "display",
        "recipient_attribute", "is_anoncreds", "twin_of", "created_at",
        "updated_at", "reference", "metadata", "tenant",
    )  # fmt: skip

    definitionId = serializers.CharField(source="definition_id")
    schemaId = serializers.CharField(source="schema.schema_id")
    name = serializers.CharField(source="schema.name")
    version = serializers.CharField(source="schema.version")
    attributes = serializers.ListField(
        source="schema.attribute_names", child=serializers.CharField()
    )
    supportsRevocation = serializers.BooleanField(source="supports_revocation")
    tag = serializers.CharField()
    claims = claims_field()
    twinOf = serializers.CharField(
        required=False,
        help_text="Of a twin: the id of the definition that it is the same as.",
    )
    recipientAttribute = serializers.CharField(
        required=False,
        help_text="The attribute that names the person, if one does.",
    )
    formats = serializers.ListField(
        child=serializers.ChoiceField(CREDENTIAL_FORMATS),
        help_text="In which formats it is issued.",
    )
    vct = serializers.CharField(required=False, help_text="The type of its SD-JWT VCs.")
    validityDays = serializers.IntegerField(
        required=False, help_text="How long an SD-JWT VC is valid."
    )
    display = DisplayPart(required=False)
    derivedClaims = serializers.ListField(child=DerivedClaimPart(), required=False)
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(source="updated_at")

    def get_claims(
        self, definition: CredentialDefinition
    ) -> dict[str, dict[str, str]] | None:
        return definition.claims or None

    def get_recipientAttribute(self, definition: CredentialDefinition) -> str | None:
        return definition.recipient_attribute or None

    def get_twinOf(self, definition: CredentialDefinition) -> str | None:
        return definition.twin_of or None

    def get_vct(self, definition: CredentialDefinition) -> str | None:
        return definition.sd_jwt.type_id if definition.sd_jwt else None

    def get_validityDays(self, definition: CredentialDefinition) -> int | None:
        return definition.sd_jwt.validity_days if definition.sd_jwt else None

    def get_display(self, definition: CredentialDefinition) -> Display | None:
        return definition.design or None

    def get_derivedClaims(
        self, definition: CredentialDefinition
    ) -> list[DerivedClaim] | None:
        found = definition.sd_jwt
        return (found.derived_claims or None) if found else None


def values_field(**options: Unpack[FieldOptions]) -> serializers.DictField:
    child = serializers.CharField(allow_blank=True, trim_whitespace=False)
    return serializers.DictField(child=child, **options)


class CredentialOfferParameters(ExchangeLinkParameters, NotesParameters):
    aliases = ExchangeLinkParameters.aliases | {"attributeValues": "credentialValues"}

    definitionId = serializers.CharField(max_length=300)
    connectionId = serializers.CharField(
        required=False, max_length=128, help_text="Without it the offer is a link."
    )
    network = serializers.CharField(
        required=False,
        max_length=64,
        help_text="Of the definition and its twin, offers the one that is on this "
        "network. Without it a wallet elsewhere that takes them gets an offer of the "
        "twin of a definition on the local network, which it could not read.",
    )
    automaticIssuance = serializers.BooleanField(required=False)
    credentialValues = values_field(required=False)
    protocol = serializers.ChoiceField(
        OFFER_PROTOCOLS,
        required=False,
        help_text="`out-of-band`: as an out-of-band invitation. `connections/1.0`: the "
        "message itself, with `~service`. `openid4vci`: as an SD-JWT VC, for wallets of "
        "OpenID4VC. " + BY_DEFAULT,
    )
    transactionCode = serializers.BooleanField(
        required=False,
        help_text="With `openid4vci`: whether the wallet must give a code of six digits, "
        "which the answer has, and nobody can read again. Tell it to the holder in "
        "another way than the link.",
    )
    recipientName = serializers.CharField(
        required=False,
        max_length=MAX_RECIPIENT_NAME,
        help_text="For whom it is, to find it again; otherwise the value of the "
        "definition's `recipientAttribute`. Holders do not see it.",
    )

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        checked = super().validate(data)
        if data.get("transactionCode") and checked["protocol"] != OPENID4VCI:
            message = f"This needs the protocol {OPENID4VCI}."
            raise serializers.ValidationError({"transactionCode": [message]})
        return checked


class RevocationParameters(Parameters):
    """Which credentials are meant: these, or all of a definition in some time."""

    credentialIds = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        max_length=1000,
        help_text="The credentials, by their credentialId.",
    )
    definitionId = serializers.CharField(
        required=False, max_length=300, help_text="Those of this definition."
    )
    issuedAfter = serializers.DateTimeField(
        required=False, help_text="Only what was issued after this moment."
    )
    issuedBefore = serializers.DateTimeField(
        required=False, help_text="Only what was issued before this moment."
    )

    def validate(self, wanted: dict[str, Any]) -> dict[str, Any]:
        if not wanted.keys() & {"credentialIds", "definitionId"}:
            message = "Give the credentials or a definition."
            raise serializers.ValidationError({"credentialIds": [message]})
        return wanted


class RevocationQuery(SharedFields):
    dryRun = serializers.BooleanField(
        default=False, help_text="Only count: nothing is revoked."
    )


class RevocationContract(Contract):
    issued = serializers.IntegerField(
        help_text="How many of them are issued: what a call will revoke."
    )
    revoked = serializers.IntegerField(help_text="How many of them are revoked.")


class CredentialAnswerParameters(Parameters):
    aliases = {"attributeValues": "credentialValues"}

    definitionId = serializers.CharField(
        required=False,
        max_length=300,
        help_text="Without it, the one that the proposal means.",
    )
    automaticIssuance = serializers.BooleanField(required=False)
    credentialValues = values_field(
        required=False, help_text="Without them, the proposed ones."
    )


class ProposalPart(serializers.Serializer):
    """What a holder would like. The issuer chooses what is left out."""

    comment = serializers.CharField(
        required=False, max_length=proposal_messages.MAX_COMMENT, allow_blank=True
    )
    definitionId = serializers.CharField(
        required=False, max_length=messages.MAX_OBJECT_ID
    )
    schemaId = serializers.CharField(required=False, max_length=messages.MAX_OBJECT_ID)
    schemaName = serializers.CharField(
        required=False, max_length=messages.MAX_OBJECT_ID
    )
    schemaVersion = serializers.CharField(
        required=False, max_length=messages.MAX_OBJECT_ID
    )
    schemaIssuerDid = serializers.CharField(
        required=False, max_length=messages.MAX_OBJECT_ID
    )
    issuerDid = serializers.CharField(required=False, max_length=messages.MAX_OBJECT_ID)
    credentialValues = values_field(required=False)


class CredentialProposal(ProposalPart):
    """What was proposed last."""


class CounterProposalParameters(Parameters, ProposalPart):
    aliases = {"attributeValues": "credentialValues"}

    def validate_credentialValues(self, values: dict[str, str]) -> dict[str, str]:
        if problem := proposal_messages.find_problem(values):
            raise serializers.ValidationError(problem)
        return values

    def validate(self, proposed: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in proposed.items() if value}


class CredentialProposalParameters(CounterProposalParameters, NotesParameters):
    exchangeVersion = serializers.ChoiceField(
        VERSIONS, required=False, help_text=EXCHANGE_VERSION
    )

    def validate(self, proposed: dict[str, Any]) -> dict[str, Any]:
        proposed = super().validate(proposed)
        others = {"comment", "exchangeVersion", "reference", METADATA}
        if not proposed.keys() - others:
            message = "Give at least a definition, schema, issuer or values."
            raise serializers.ValidationError({"definitionId": [message]})
        return proposed


class CredentialValues(Parameters):
    """The body of an issue call is the map itself."""

    def to_internal_value(self, data: JSON) -> dict[str, str]:
        if not isinstance(data, dict):
            raise serializers.ValidationError(
                {"body": ["Give an object: name to text."]}
            )
        return values_field().run_validation(data)


TOO_SHORT = f"Give at least {MIN_LETTERS} letters of a word of the name."


class ConnectionCredentialQuery(ChangingQuery, NotesQuery):
    sorts = ChangingQuery.sorts | BY_REFERENCE

    state = serializers.ChoiceField(STATES, required=False)
    definitionId = serializers.CharField(
        source="definition_id", required=False, max_length=300
    )
    schemaId = serializers.CharField(source="schema_id", required=False, max_length=300)
    role = serializers.ChoiceField(ROLES, required=False)
    threadId = serializers.CharField(source="thread_id", required=False, max_length=128)


class SearchedNameField(serializers.CharField):
    """Words of a name, of which one at least is long enough to be found."""

    default_error_messages = {"too_short": TOO_SHORT}

    def to_internal_value(self, data: str) -> str:
        text = super().to_internal_value(data)
        if not searched_beginnings(text):
            self.fail("too_short")
        return text


class WalletCredentialQuery(ConnectionCredentialQuery):
    connectionId = serializers.CharField(
        source="connection__connection_id", required=False, max_length=128
    )


class CredentialQuery(WalletCredentialQuery):
    """Of the issuer's list: only an issuer says whose a credential is."""

    recipientName = SearchedNameField(
        required=False,
        max_length=MAX_RECIPIENT_NAME,
        help_text="Whose names have these words or their beginnings, in any order, case "
        "and accents: at least two letters of one; after the tenth none is compared. "
        "The newest 10,000 are found. Needs the scope `values`.",
    )


class WalletLinksPart(serializers.Serializer):
    """Links that open a wallet, by protocol."""

    openid4vci = serializers.CharField(required=False)


class CredentialContract(NotesContract[Credential]):
    columns = (
        "state", "definition_id", "schema_id", "created_at", "updated_at", "issued_at",
        "accepted_at", "values", "role", "thread_id", "revocation_registry_id", "revocation_index",
        "proposal", "problem", "reason", "reference", "metadata", "tenant",
        "recipient_name",
        "format", "connection__name", "connection__wallet_link", "connection__state",
        *LINK_COLUMNS,
    )  # fmt: skip

    value_members = (
        "values", "proposal", "offerData", "reason", "recipientName", METADATA,
    )  # fmt: skip
    value_kind = "credentials"
    sealed_members = ("values", "proposal", "reason", METADATA)

    credentialId = serializers.CharField(source="pk")
    state = serializers.ChoiceField(STATES)
    format = serializers.ChoiceField(CREDENTIAL_FORMATS)
    connectionId = serializers.CharField(source="public_connection_id", required=False)
    definitionId = serializers.CharField(
        source="definition_id", help_text="Until an offer as proposed, or empty."
    )
    schemaId = serializers.CharField(source="schema_id")
    offerData = serializers.CharField(required=False, help_text="Of an offer by link.")
    offerUrl = serializers.CharField(required=False)
    walletLinks = WalletLinksPart(
        required=False,
        help_text="Of an offer by link: what opens a wallet of OpenID4VC.",
    )
    transactionCode = serializers.CharField(
        required=False,
        help_text="Once, in the answer that makes it: what the holder gives the wallet.",
    )
    recipientName = serializers.CharField(
        required=False, help_text="For its issuer: for whom it is."
    )
    issuedAtUtc = serializers.DateTimeField(
        help_text="Time of the offer until it is issued."
    )
    IssuedAtUtc = serializers.DateTimeField()
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(source="updated_at")
    acceptedAtUtc = serializers.DateTimeField(source="accepted_at", required=False)
    values = values_field(required=False)
    proposal = CredentialProposal(required=False)
    threadId = serializers.CharField(source="thread_id", help_text=THREAD_ID)
    revocationRegistryId = serializers.CharField(
        required=False,
        help_text="For its issuer: the registry of a revocable credential, once issued.",
    )
    revocationIndex = serializers.IntegerField(
        required=False, help_text="For its issuer: its place in that registry."
    )
    problem = serializers.CharField(required=False, help_text=PROBLEM)
    problemMessage = serializers.CharField(
        source="problem_in_words", required=False, help_text=PROBLEM_MESSAGE
    )
    reason = serializers.CharField(required=False, help_text=REASON)

    def members_with_values(self, credential: Credential) -> tuple[str, ...]:
        free = ("problem",) if credential.has_free_text else ()
        # They show the values; who has made the offer knows them.
        is_offer = self.context["request"].method == "POST"
        links = () if is_offer else ("offerUrl", "walletLinks")
        return self.value_members + free + links

    def get_offerData(self, credential: Credential) -> str | None:
        link = credential.own_link
        return encoded_message(link) if link and link.has_messages else None

    def get_walletLinks(self, credential: Credential) -> dict[str, str] | None:
        connection = credential.live_connection
        if connection and connection.wallet_link and connection.is_open:
            return {OPENID4VCI: connection.wallet_link}
        return None

    def get_transactionCode(self, credential: Credential) -> str | None:
        return self.context.get("transaction_code") or None

    def get_offerUrl(self, credential: Credential) -> str | None:
        link = credential.own_link
        return link.invitation_url if link else None

    def get_recipientName(self, credential: Credential) -> str | None:
        return credential.unsealed_recipient_name() or None

    def get_issuedAtUtc(self, credential: Credential) -> datetime:
        return credential.issued_at or credential.created_at

    get_IssuedAtUtc = get_issuedAtUtc

    def get_revocationRegistryId(self, credential: Credential) -> str | None:
        is_issuer = credential.role == Credential.Role.ISSUER
        return (credential.revocation_registry_id or None) if is_issuer else None

    def get_revocationIndex(self, credential: Credential) -> int | None:
        is_issuer = credential.role == Credential.Role.ISSUER
        return credential.revocation_index if is_issuer else None
