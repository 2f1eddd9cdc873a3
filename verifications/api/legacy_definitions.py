"""Verification definitions: what the oldest clients call a policy."""

import time
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.notes import NotesParameters, notes_in
from core.api.openapi.operation import operation
from core.api.pagination import list_parameters
from core.api.serializers import Contract, IntegerField, Parameters
from core.api.views import View, get_or_404
from tenants.models import Scope
from verifications.api import legacy_requests
from verifications.api.legacy_requests import NON_REVOKED, PREDICATE, REQUEST
from verifications.api.serializers import (
    PREDICATES,
    CredentialFilter,
    VerificationContract,
    VerificationPolicyQuery,
    optional_text,
)
from verifications.api.verifier import Verifications
from verifications.models import VerificationPolicy
from verifications.proofs.policy import MAX_RESTRICTIONS, MAX_TIMESTAMP
from verifications.proofs.proof_items import (
    MAX_NAMES,
    RESTRICTION_FIELDS,
)

BOTH = (
    "Members are read, and answered, in both spellings, as `requested_attributes` too."
)


def old_spellings(*spellings: dict[str, str]) -> dict[str, str]:
    return {old: name for one in spellings for name, old in one.items()}


class AttributeValue(Parameters):
    name = serializers.CharField(max_length=256, trim_whitespace=False)
    value = serializers.CharField(
        max_length=10_000, allow_blank=True, trim_whitespace=False
    )


class AttributeFilter(CredentialFilter):
    """One alternative of what is allowed; all of its members must hold."""

    aliases = old_spellings(RESTRICTION_FIELDS, {"attributeValue": "attribute_value"})

    attributeValue = AttributeValue(required=False)

    def to_internal_value(self, data: Any) -> Any:
        """Refuse `attr::` members: ignoring them would request less than intended."""
        if isinstance(data, dict) and any(
            str(name).startswith("attr::") for name in data
        ):
            message = "Write attr::<name>::value as attributeValue: {name, value}."
            raise serializers.ValidationError(message)
        return super().to_internal_value(data)


RevocationInterval = type(
    "RevocationInterval",
    (Parameters,),
    {
        name: IntegerField(required=False, min_value=0, max_value=MAX_TIMESTAMP)
        for name in ("from", "to")
    },
)


class ProofAttributeInfo(Parameters):
    aliases = old_spellings(NON_REVOKED)

    name = optional_text(256, trim_whitespace=False)
    names = serializers.ListField(
        child=serializers.CharField(max_length=256, trim_whitespace=False),
        required=False,
        max_length=MAX_NAMES,
    )
    restrictions: serializers.ListSerializer = serializers.ListSerializer(
        child=AttributeFilter(), required=False, max_length=MAX_RESTRICTIONS
    )
    nonRevoked = RevocationInterval(required=False)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("name") and given.get("names"):
            raise serializers.ValidationError("Give name or names, not both.")
        return given


class ProofPredicateInfo(ProofAttributeInfo):
    aliases = old_spellings(NON_REVOKED, PREDICATE)

    names = serializers.ListField(
        child=serializers.CharField(max_length=256, trim_whitespace=False),
        required=False,
        max_length=1,
    )
    predicateType = serializers.ChoiceField(PREDICATES)
    predicateValue = IntegerField(min_value=-(2**31), max_value=2**31 - 1)
    allowText = serializers.BooleanField(required=False)


class ProofRequest(Parameters):
    aliases = old_spellings(REQUEST, NON_REVOKED)

    name = serializers.CharField(max_length=200)
    version = serializers.CharField(max_length=64)
    nonce = serializers.CharField(
        required=False, help_text="Ignored: each request gets its own."
    )
    requestedAttributes = serializers.DictField(
        child=ProofAttributeInfo(), required=False
    )
    requestedPredicates = serializers.DictField(
        child=ProofPredicateInfo(), required=False
    )
    nonRevoked = RevocationInterval(required=False)


class VerificationDefinitionContract(Contract):
    columns = ("body", "tenant")

    id = serializers.CharField()
    proofRequest = ProofRequest(help_text=BOTH)

    def to_representation(self, policy: VerificationPolicy) -> dict[str, Any]:
        asked = policy.unsealed_policy().resolve_dates(int(time.time()))
        shown = legacy_requests.from_policy(asked)
        return {"id": str(policy.pk), "proofRequest": shown}


class VerificationParameters(NotesParameters):
    verificationDefinitionId = serializers.CharField(max_length=128)
    connectionId = serializers.CharField(
        required=False, max_length=128, help_text="Without it the request is a link."
    )


class VerificationDefinitions(View):
    @property
    def rows(self) -> QuerySet[VerificationPolicy]:
        return VerificationPolicy.objects.filter(tenant=self.tenant)

    @operation(
        "createVerificationDefinition",
        Scope.VERIFY,
        request=ProofRequest,
        response=VerificationDefinitionContract,
    )
    def create(self, request: Request) -> Response:
        policy = legacy_requests.to_policy(self.parse_body(ProofRequest))
        created = self.perform(VerificationPolicy.create, self.tenant, policy)
        return self.to_response(VerificationDefinitionContract, created)

    @operation(
        "listVerificationDefinitions",
        Scope.READ,
        response=VerificationDefinitionContract(many=True),
        parameters=list_parameters(VerificationPolicyQuery),
    )
    def list(self, request: Request) -> Response:
        return self.list_response(
            VerificationDefinitionContract, self.rows, VerificationPolicyQuery
        )

    @operation(
        "getVerificationDefinition",
        Scope.READ,
        response=VerificationDefinitionContract,
    )
    def retrieve(self, request: Request, verificationDefinitionId: str) -> Response:
        return self.to_response(
            VerificationDefinitionContract,
            get_or_404(self.rows, verificationDefinitionId),
        )

    @operation("deleteVerificationDefinition", Scope.VERIFY)
    def destroy(self, request: Request, verificationDefinitionId: str) -> Response:
        get_or_404(self.rows, verificationDefinitionId).delete()
        return Response()


class OldVerifications(Verifications):
    @operation(
        "createVerification",
        Scope.VERIFY,
        request=VerificationParameters,
        response=VerificationContract,
    )
    def create(self, request: Request) -> Response:
        body = self.parse_body(VerificationParameters)
        policy = self.get_policy(body["verificationDefinitionId"])
        if "connectionId" in body:
            return self.send_request(
                body["connectionId"],
                policy.unsealed_policy(),
                policy.pk,
                notes_in(body),
            )
        return self.share_request(notes_in(body), policy.unsealed_policy(), policy.pk)
