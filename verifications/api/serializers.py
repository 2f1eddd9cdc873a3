"""Serializers of policies and verifications (rules of a policy: proof_policy.py)."""

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from connections.api.serializers import (
    BY_DEFAULT,
    EXCHANGE_VERSION,
    LINK_COLUMNS,
    LINK_PROTOCOLS,
    OPENID4VP,
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
    IntegerField,
    Parameters,
    drop_nulls,
    format_utc,
)
from core.text.bounded_json import JSON
from core.text.relative_dates import (
    GRAMMAR,
    PATTERN,
    is_relative_date,
    seems_relative,
)
from credentials.api.serializers import CredentialContract
from credentials.models import Credential, CredentialFormat
from tenants import vault
from verifications.models import Verification, VerificationPolicy
from verifications.proofs.failures import list_causes
from verifications.proofs.proof_items import Item
from verifications.proofs.proof_policy import MAX_GRACE_SECONDS, MAX_PROVEN_BY
from verifications.proofs.proof_values import Proof
from verifications.proofs.selection import Selection
from wallets.anoncreds import INT32

STATES = [(str(state), str(state)) for state in Verification.State]
ROLES = [(str(role), str(role)) for role in Verification.Role]
FORMATS = [(str(one), str(one)) for one in CredentialFormat]
REQUEST_PROTOCOLS = [*LINK_PROTOCOLS, OPENID4VP]
NOT_COMPARED = (
    "Give a whole number: predicates compare whole numbers only. A date compares as "
    "one, as 20260131 or today-18y; a text is asked for by a restriction on its value."
)
PREDICATE_VALUE = (
    "The whole number on the right of the comparison. Of an attribute that holds dates "
    "(YYYYMMDD) also `today`, or `today` with + or - and a number of days, months or "
    "years, as `today+30d`, `today-6m` or `today-18y`: the policy keeps it, and each "
    "verification has the number of the day (UTC) on which it was created."
)
VALID_FROM = (
    "The start of an interval that ends at `validAt` or with `validNow`: the credential "
    "must not have been revoked at some moment in it."
)
GRACE_SECONDS = (
    "With `validNow`: for how many seconds a status list still counts after a newer one "
    "was published while the holder answered. A credential that was revoked in this "
    "time can pass. 60 without it."
)
ONLY_BY_OPENID = "A request by DIDComm leaves an alternative with it out."
PREDICATES = [(kind, kind) for kind in (">=", ">", "<=", "<", "==")]


def optional_text(limit: int = 300, **options: Any) -> serializers.CharField:
    return serializers.CharField(required=False, max_length=limit, **options)


class RestrictedAttribute(Parameters):
    attributeName = serializers.CharField(max_length=256, trim_whitespace=False)
    attributeValue = serializers.CharField(
        max_length=10_000, allow_blank=True, trim_whitespace=False
    )


class CredentialFilter(Parameters):
    """Which credentials are allowed: all of what is given must hold."""

    schemaId = optional_text()
    schemaIssuerDid = optional_text()
    schemaName = optional_text()
    schemaVersion = optional_text()
    issuerDid = optional_text()
    credentialDefinitionId = optional_text()


class VerificationPolicyRestriction(CredentialFilter):
    """All of what is given must hold (AND); several restrictions are alternatives (OR)."""

    value = RestrictedAttribute(required=False)
    vct = optional_text(500, help_text=f"The type of an SD-JWT VC. {ONLY_BY_OPENID}")
    trustAnchorId = optional_text(
        64,
        help_text="The authority behind another issuer of SD-JWT VCs, which signs "
        f"credentials of the type `vct`. {ONLY_BY_OPENID}",
    )
    provenBy = serializers.ListField(
        child=serializers.CharField(max_length=256, trim_whitespace=False),
        required=False,
        min_length=1,
        max_length=MAX_PROVEN_BY,
        help_text="Of a predicate: the boolean claims of an SD-JWT VC each of which "
        f"proves it. {ONLY_BY_OPENID}",
    )
    orTwin = serializers.BooleanField(
        required=False,
        help_text="Whether the twin of `credentialDefinitionId` is allowed too, or what "
        "that is the twin of. `proof` then says which of the two was shown.",
    )


class ItemRevocationRequirement(Parameters):
    """What one item asks for in place of the policy."""

    validFrom = serializers.DateTimeField(required=False, help_text=VALID_FROM)
    validAt = serializers.DateTimeField(required=False)


class AttributePolicy(Parameters):
    policyName = serializers.CharField(max_length=256, trim_whitespace=False)
    attributeNames = serializers.ListField(
        child=serializers.CharField(max_length=256, trim_whitespace=False),
        required=False,
        max_length=125,
    )
    restrictions = VerificationPolicyRestriction(many=True, required=False)
    revocationRequirement = ItemRevocationRequirement(required=False)


@extend_schema_field(
    {
        "oneOf": [
            {"type": "integer", "minimum": INT32[0], "maximum": INT32[-1]},
            {"type": "string", "pattern": f"^{PATTERN}$", "example": "today-18y"},
        ]
    }
)
class PredicateValueField(IntegerField):
    """A whole number of 32 bits, or a date relative to the day of the request."""

    def to_internal_value(  # type: ignore[override]
        self, data: str | int | float
    ) -> int | str:
        if is_relative_date(data):
            return data
        if seems_relative(data):
            raise serializers.ValidationError(GRAMMAR)
        return super().to_internal_value(data)

    def run_validators(self, value: int | str) -> None:
        if not is_relative_date(value):  # the validators compare numbers
            super().run_validators(value)


class PredicatePolicy(Parameters):
    policyName = serializers.CharField(
        required=False, max_length=256, trim_whitespace=False
    )
    attributeName = serializers.CharField(max_length=256, trim_whitespace=False)
    predicateType = serializers.ChoiceField(PREDICATES)
    predicateValue = PredicateValueField(
        min_value=INT32[0],
        max_value=INT32[-1],
        error_messages={"invalid": NOT_COMPARED},
        help_text=PREDICATE_VALUE,
    )
    allowText = serializers.BooleanField(
        required=False,
        help_text="Of `>=` and `>`: asks for no upper bound, so that any text "
        "meets it too.",
    )
    restrictions = VerificationPolicyRestriction(many=True, required=False)
    revocationRequirement = ItemRevocationRequirement(required=False)


class RevocationRequirement(Parameters):
    validFrom = serializers.DateTimeField(required=False, help_text=VALID_FROM)
    validAt = serializers.DateTimeField(required=False)
    validNow = serializers.BooleanField(required=False)
    graceSeconds = IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_GRACE_SECONDS,
        help_text=GRACE_SECONDS,
    )


class VerificationPolicyParameters(Parameters):
    name = serializers.CharField(max_length=200)
    version = serializers.CharField(max_length=64)
    attributes = AttributePolicy(many=True, required=False)
    predicates = PredicatePolicy(many=True, required=False)
    revocationRequirement = RevocationRequirement(required=False)


class NotedPolicyParameters(VerificationPolicyParameters, NotesParameters):
    """A policy, with notes of what is made of it: the stored one, or a verification."""


class ProposedPolicyParameters(NotedPolicyParameters):
    """A policy that a holder proposes to meet."""

    exchangeVersion = serializers.ChoiceField(
        VERSIONS, required=False, help_text=EXCHANGE_VERSION
    )


class NotedLinkParameters(ExchangeLinkParameters, NotesParameters):
    """How the request is written for a link, and the notes of the verification."""

    protocol = serializers.ChoiceField(
        REQUEST_PROTOCOLS,
        required=False,
        help_text="`out-of-band`: as an out-of-band invitation. `connections/1.0`: the "
        "message itself, with `~service`. `openid4vp`: of SD-JWT VCs, for wallets of "
        "OpenID4VP. " + BY_DEFAULT,
    )


class SharedPolicyParameters(VerificationPolicyParameters, NotedLinkParameters):
    """A policy that is asked for by a link."""


class VerificationPolicyQuery(NamedQuery, NotesQuery):
    sorts = NamedQuery.sorts | BY_REFERENCE

    version = serializers.CharField(required=False, max_length=64)


class VerificationPolicyContract(
    NotesContract[VerificationPolicy], VerificationPolicyParameters
):
    columns = ("body", "reference", "metadata", "tenant", "created_at", "updated_at")
    value_members = (METADATA,)

    policyId = serializers.CharField()
    createdAtUtc = serializers.DateTimeField()
    updatedAtUtc = serializers.DateTimeField()

    def read_members(self, policy: VerificationPolicy) -> dict[str, object]:
        return drop_nulls(
            policyId=str(policy.pk),
            **policy.unsealed_body(),
            createdAtUtc=format_utc(policy.created_at),
            updatedAtUtc=format_utc(policy.updated_at),
            reference=policy.reference or None,
            metadata=vault.unseal(policy, "metadata"),
        )


class ProofAttribute(serializers.Serializer):
    name = serializers.CharField(required=False)
    value = serializers.CharField(required=False)
    attributes = serializers.DictField(child=serializers.CharField(), required=False)
    revealed = serializers.BooleanField()
    selfAttested = serializers.BooleanField()
    conditional = serializers.BooleanField()
    format = serializers.ChoiceField(
        FORMATS, required=False, help_text="Of the credentials that are asked for."
    )
    credentialDefinitionId = serializers.CharField(
        required=False,
        help_text="With `orTwin`: the definition whose credential was shown.",
    )


class WalletLinks(serializers.Serializer):
    """Links that open a wallet, by protocol."""

    openid4vp = serializers.CharField(required=False)


class Check(serializers.Serializer):
    """One line of the verifier's checklist: docs/verification.md."""

    policyName = serializers.CharField(
        required=False, help_text="None: the whole answer."
    )
    rule = serializers.CharField()
    status = serializers.ChoiceField(
        [(word, word) for word in ("pass", "fail", "skipped")]
    )
    code = serializers.CharField(required=False, help_text="Of a failure; stable.")
    message = serializers.CharField(required=False)


class Cause(serializers.Serializer):
    """What several failed checks mean: docs/verification.md."""

    code = serializers.CharField(help_text="Stable.")
    message = serializers.CharField()
    advice = serializers.CharField(help_text="What you can do.")
    policyNames = serializers.ListField(
        child=serializers.CharField(), help_text="None: the whole answer."
    )


class ProposedAttribute(serializers.Serializer):
    name = serializers.CharField()
    credentialDefinitionId = serializers.CharField(required=False)
    schemaId = serializers.CharField(required=False)
    issuerDid = serializers.CharField(required=False)
    mimeType = serializers.CharField(required=False)
    value = serializers.CharField(required=False)
    referent = serializers.CharField(required=False)


class ProposedPredicate(serializers.Serializer):
    name = serializers.CharField()
    credentialDefinitionId = serializers.CharField(required=False)
    schemaId = serializers.CharField(required=False)
    issuerDid = serializers.CharField(required=False)
    predicate = serializers.CharField()
    threshold = serializers.IntegerField()
    referent = serializers.CharField(required=False)


class ProofProposal(serializers.Serializer):
    comment = serializers.CharField(required=False)
    proposedAttributes = ProposedAttribute(many=True)
    proposedPredicates = ProposedPredicate(many=True)


class VerificationContract(NotesContract[Verification]):
    columns = (
        "policy_id", "state", "created_at", "updated_at", "is_valid", "verified_at",
        "policy", "proposal", "proof", "checks", "thread_id", "problem", "reason",
        "reference", "metadata", "tenant", "format", "connection__wallet_link",
        "connection__state", *LINK_COLUMNS,
    )  # fmt: skip

    value_members = ("proof", "proposal", "reason", METADATA)
    sealed_members = ("policy", "reason", METADATA)
    value_kind = "proofs"

    verificationId = serializers.CharField(source="pk")
    connectionId = serializers.CharField(source="public_connection_id", required=False)
    definitionId = serializers.CharField(
        source="policy_id", required=False, help_text="The id of the stored policy."
    )
    state = serializers.ChoiceField(STATES)
    format = serializers.ChoiceField(
        FORMATS, help_text="Of the credentials that are asked for."
    )
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(source="updated_at")
    isValid = serializers.BooleanField(source="is_valid", required=False)
    verifiedAtUtc = serializers.DateTimeField(source="verified_at", required=False)
    proof = serializers.DictField(child=ProofAttribute(), required=False)
    checks = Check(
        many=True, required=False, help_text="Why the proof is valid or not."
    )
    causes = Cause(
        many=True, required=False, help_text="Of a proof that is not valid: why."
    )
    policy = VerificationPolicyParameters()
    proposal = ProofProposal(required=False)
    verificationRequestData = serializers.CharField(
        required=False, help_text="Of one by link."
    )
    verificationRequestUrl = serializers.CharField(required=False)
    verificationUrl = serializers.CharField(required=False)
    walletLinks = WalletLinks(
        required=False,
        help_text="Of one by link: what opens a wallet of OpenID4VP.",
    )
    threadId = serializers.CharField(source="thread_id", help_text=THREAD_ID)
    problem = serializers.CharField(required=False, help_text=PROBLEM)
    problemMessage = serializers.CharField(
        source="problem_in_words", required=False, help_text=PROBLEM_MESSAGE
    )
    reason = serializers.CharField(required=False, help_text=REASON)

    def members_with_values(self, verification: Verification) -> tuple[str, ...]:
        free = ("problem",) if verification.has_free_text else ()
        return self.value_members + free

    def get_proof(self, verification: Verification) -> Proof | None:
        return verification.unsealed_proof()

    def get_checks(self, verification: Verification) -> list[dict[str, str]] | None:
        return verification.unsealed_checks()

    def get_causes(
        self, verification: Verification
    ) -> list[dict[str, str | list[str]]] | None:
        if verification.is_valid:
            return None
        causes = list_causes(verification.unsealed_checks() or ())
        return [
            {
                "code": cause.code,
                "message": cause.message,
                "advice": cause.advice,
                "policyNames": list(cause.policy_names),
            }
            for cause in causes
        ] or None

    def get_proposal(self, verification: Verification) -> dict[str, JSON] | None:
        return verification.unsealed_proposal()

    def get_verificationRequestData(self, verification: Verification) -> str | None:
        link = verification.own_link
        return encoded_message(link) if link and link.has_messages else None

    def get_walletLinks(self, verification: Verification) -> dict[str, str] | None:
        connection = verification.live_connection
        if connection and connection.wallet_link and connection.is_open:
            return {OPENID4VP: connection.wallet_link}
        return None

    def get_verificationRequestUrl(self, verification: Verification) -> str | None:
        link = verification.own_link
        return link.invitation_url if link else None

    get_verificationUrl = get_verificationRequestUrl


class VerificationResult(Contract[Verification]):
    value_members = ("proof",)
    value_kind = "proofs"

    valid = serializers.BooleanField()
    proof = serializers.DictField(child=ProofAttribute(), required=False)

    def get_valid(self, verification: Verification) -> bool:
        return bool(verification.is_valid)

    def get_proof(self, verification: Verification) -> Proof | None:
        return verification.unsealed_proof()


class PolicyIdField(serializers.CharField):
    """The id of a stored policy; any other text finds nothing."""

    def run_validation(self, data: Any = serializers.empty) -> uuid.UUID:
        return as_uuid(super().run_validation(data))


def as_uuid(text: str) -> uuid.UUID:
    """The UUID, or one that nothing has."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return uuid.UUID(int=0)


class ConnectionVerificationQuery(ChangingQuery, NotesQuery):
    sorts = ChangingQuery.sorts | BY_REFERENCE

    state = serializers.ChoiceField(STATES, required=False)
    isValid = serializers.BooleanField(source="is_valid", required=False)
    role = serializers.ChoiceField(ROLES, required=False)
    threadId = serializers.CharField(source="thread_id", required=False, max_length=128)


class WalletVerificationQuery(ConnectionVerificationQuery):
    connectionId = serializers.CharField(
        source="connection__connection_id", required=False, max_length=128
    )


class VerificationQuery(WalletVerificationQuery):
    definitionId = PolicyIdField(
        source="policy_id",
        required=False,
        max_length=128,
        help_text="The id of the policy.",
    )


class VerificationDataParameters(Parameters):
    verificationData = serializers.CharField(
        max_length=200_000, help_text="The request as its link, as base64 or as JSON."
    )


class SelectionParameters(Parameters):
    policyName = serializers.CharField(max_length=256, trim_whitespace=False)
    credentialId = serializers.CharField(max_length=128)
    hidden = serializers.BooleanField(required=False)

    def to_internal_value(self, data: JSON) -> Selection:
        value = super().to_internal_value(data)
        return Selection(
            value["policyName"], value["credentialId"], value.get("hidden", False)
        )


class VerificationDataSelections(VerificationDataParameters):
    parameters = SelectionParameters(many=True, required=False)


class VerificationPolicyCredentialContract(Contract[tuple[Item, list[Credential]]]):
    """One item that is asked for, with the credentials that fit it."""

    policyName = serializers.CharField()
    attributeNames = serializers.ListField(child=serializers.CharField())
    availableCredentials = CredentialContract(many=True)
    restrictions = VerificationPolicyRestriction(many=True, required=False)

    def to_representation(
        self, offered: tuple[Item, list[Credential]]
    ) -> dict[str, object]:
        item, credentials = offered
        return {
            "policyName": item.policy_name,
            "attributeNames": list(item.attribute_names),
            "availableCredentials": CredentialContract.show_all(
                credentials, self.context
            ),
            "restrictions": [one.to_json() for one in item.restrictions],
        }


class AvailableCredentials(Contract):
    """The items of a proof request, as the interface has them."""

    attributes = VerificationPolicyCredentialContract(many=True)
    predicates = VerificationPolicyCredentialContract(many=True)
