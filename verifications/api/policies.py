"""Stored policies in the credentials API."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from agency.api.pagination import parameters
from agency.api.views import View, get_or_404
from verifications.api.serializers import (
    VerificationPolicyContract,
    VerificationPolicyParameters,
    VerificationPolicyQuery,
)
from verifications.models import VerificationPolicy

POLICY = {
    "name": "Old enough",
    "version": "1.0.0",
    "attributes": [{"policyName": "Name of the dog", "attributeNames": ["name"]}],
    "predicates": [
        {
            "policyName": "Born before 2023",
            "attributeName": "year",
            "predicateType": "<",
            "predicateValue": 2023,
        }
    ],
}
WANTED = OpenApiExample("A policy", POLICY, request_only=True)
STORED = OpenApiExample(
    "A stored policy",
    {"policyId": "0196f3a3-3333-7000-8000-000000000001", **POLICY},
    response_only=True,
)


@extend_schema(tags=["Policies"])
class VerificationPolicies(View):
    @property
    def rows(self):
        return VerificationPolicy.objects.filter(tenant=self.tenant)

    @extend_schema(
        operation_id="createVerificationPolicy",
        summary="Keep a policy",
        request=VerificationPolicyParameters,
        responses=VerificationPolicyContract,
        examples=[WANTED, STORED],
    )
    def create(self, request):
        body = self.parse_body(VerificationPolicyParameters)
        created = self.perform(VerificationPolicy.create, self.tenant, body)
        return self.to_response(VerificationPolicyContract, created)

    @extend_schema(
        operation_id="listVerificationPolicies",
        summary="List policies, newest first",
        parameters=parameters(VerificationPolicyQuery),
        responses=VerificationPolicyContract(many=True),
        examples=[STORED],
    )
    def list(self, request):
        return self.list_response(
            VerificationPolicyContract, self.rows, VerificationPolicyQuery
        )

    @extend_schema(
        operation_id="getVerificationPolicy",
        summary="Read a policy",
        responses=VerificationPolicyContract,
        examples=[STORED],
    )
    def retrieve(self, request, policyId):
        return self.to_response(
            VerificationPolicyContract, get_or_404(self.rows, policyId)
        )

    @extend_schema(
        operation_id="deleteVerificationPolicy",
        summary="Delete a policy; verifications sent from it stay",
        request=None,
        responses=None,
    )
    def destroy(self, request, policyId):
        get_or_404(self.rows, policyId).delete()
        return Response()
