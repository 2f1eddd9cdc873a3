"""Trying a policy on sample credentials: serializers and view."""

import time
from functools import cache
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.openapi.operation import operation
from core.api.serializers import Contract, Parameters
from core.api.views import View, get_or_404, heavy
from credentials.api.serializers import values_field
from credentials.ledgers.reads import LedgerReads
from tenants.models import Scope, Tenant
from verifications.api.serializers import VerificationPolicyParameters, optional_text
from verifications.models import VerificationPolicy
from verifications.policy_lab.lint import Finding, lint_policy
from verifications.policy_lab.trial import REASONS, Trial, try_policy
from verifications.present_proof.requests import declared_integers
from verifications.proofs import proof_policy
from verifications.proofs.ledger_reader import LedgerReader
from verifications.proofs.policy import Policy
from verifications.twins import find_twins

MAX_SAMPLES = 20
MANUAL = "Revoked: a holder may choose it, autoSelect does not."
TRIAL_REASONS = [(code, code) for code in REASONS]


class SampleCredential(Parameters):
    """A credential as `GET /credentials/{id}` shows it will do, or one that nobody has yet."""

    aliases = {"credentialDefinitionId": "definitionId"}

    definitionId = optional_text(help_text="The network then knows the rest.")
    schemaId = optional_text()
    schemaIssuerDid = optional_text()
    schemaName = optional_text()
    schemaVersion = optional_text()
    issuerDid = optional_text()
    values = values_field()
    revoked = serializers.BooleanField(required=False)


class PolicyTrialParameters(VerificationPolicyParameters):
    name = serializers.CharField(required=False, max_length=200)
    version = serializers.CharField(required=False, max_length=64)
    policyId = serializers.CharField(
        required=False,
        max_length=128,
        help_text="Of a stored policy, instead of one given here.",
    )
    credentials: serializers.ListSerializer = serializers.ListSerializer(
        child=SampleCredential(), required=False, max_length=MAX_SAMPLES
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if "policyId" in given and given.keys() - {"policyId", "credentials"}:
            message = {
                "policyId": ["Give the id of a stored policy or a policy, not both."]
            }
            raise serializers.ValidationError(message)
        return given


class PolicyTrialSelection(serializers.Serializer):
    policyName = serializers.CharField()
    credential = serializers.IntegerField(help_text="Its place in the list, from 0.")


class PolicyTrialCredential(serializers.Serializer):
    credential = serializers.IntegerField(help_text="Its place in the list, from 0.")
    satisfies = serializers.BooleanField()
    code = serializers.ChoiceField(TRIAL_REASONS, required=False)
    message = serializers.CharField(required=False)


class PolicyTrialItem(serializers.Serializer):
    policyName = serializers.CharField()
    credentials = PolicyTrialCredential(many=True)


class PolicyLint(serializers.Serializer):
    code = serializers.CharField(help_text="Stable: docs/policies.md.")
    path = serializers.CharField()
    message = serializers.CharField()


class PolicyTrialContract(Contract):
    satisfied = serializers.BooleanField(
        help_text="Whether autoSelect finds one for each item."
    )
    selections = PolicyTrialSelection(
        many=True, help_text="What autoSelect would choose."
    )
    items = PolicyTrialItem(many=True)
    lint = PolicyLint(many=True)

    def to_representation(self, tried: tuple[Trial, list[Finding]]) -> dict[str, Any]:
        trial, findings = tried
        items = []
        for item, codes in zip(trial.items, trial.unfit_codes, strict=True):
            pairs = zip(codes, trial.candidates, strict=True)
            results = [
                {"credential": number}
                | sample_result(code, bool(candidate and candidate.is_revoked))
                for number, (code, candidate) in enumerate(pairs)
            ]
            items.append({"policyName": item.policy_name, "credentials": results})
        return {
            "satisfied": trial.is_satisfied,
            "selections": [
                {"policyName": one.policy_name, "credential": int(one.credential_id)}
                for one in trial.selections
            ],
            "items": items,
            "lint": [one._asdict() for one in findings],
        }


def sample_result(code: str | None, is_revoked: bool) -> dict[str, bool | str]:
    """The result of a sample for an item. code: why it does not satisfy it, or None."""
    if code:
        return {"satisfies": False, "code": code, "message": REASONS[code]}
    return {"satisfies": True} | ({"message": MANUAL} if is_revoked else {})


class ReadOnce:
    """A ledger of which each schema and definition is read once.

    Ledgers keep what they found, not what is missing, and a review asks for the same
    ids again and again.
    """

    def __init__(self, ledger: LedgerReader) -> None:
        self.schema = cache(ledger.schema)
        self.definition = cache(ledger.definition)
        self.revocation_registry = ledger.revocation_registry
        self.status_list = ledger.status_list
        self.final_status_list = ledger.final_status_list


def review_policy(
    tenant: Tenant, policy: Policy, samples: list[dict[str, Any]]
) -> tuple[Trial, list[Finding]]:
    """Try a policy on samples, and list what may be a mistake in it.

    Call it outside of transactions: it reads the ledger.
    """
    ledger, now = ReadOnce(LedgerReads(tenant)), int(time.time())
    twins = find_twins(policy, tenant.pk)
    asked = policy.admit_twins(twins)
    integers = declared_integers(asked, tenant.pk)
    tried = try_policy(asked, samples, ledger, now, integers)
    return tried, lint_policy(policy, tried, ledger, now, twins)


class PolicyTrials(View):
    @operation(
        "tryVerificationPolicy",
        Scope.VERIFY,
        request=PolicyTrialParameters,
        response=PolicyTrialContract,
    )
    @heavy
    def create(self, request: Request) -> Response:
        body = self.parse_body(PolicyTrialParameters)
        if "policyId" in body:
            rows = VerificationPolicy.objects.filter(tenant=self.tenant)
            policy = get_or_404(rows, body["policyId"]).unsealed_policy()
        else:
            # Here name and version are required. Without parse_body(), which would name
            # `credentials` as an ignored member.
            required = VerificationPolicyParameters(data=request.data)
            required.is_valid(raise_exception=True)
            policy = proof_policy.normalise(required.validated_data)
        tried = review_policy(self.tenant, policy, body.get("credentials", []))
        return self.to_response(PolicyTrialContract, tried)
