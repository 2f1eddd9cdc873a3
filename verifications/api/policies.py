"""Stored policies in the credentials API."""

from functools import partial

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.notes import NotesParameters, notes_in
from core.api.openapi.operation import operation
from core.api.pagination import list_parameters
from core.api.views import View, get_or_404
from tenants.models import Scope
from verifications.api.serializers import (
    NotedPolicyParameters,
    VerificationPolicyContract,
    VerificationPolicyQuery,
)
from verifications.models import VerificationPolicy
from verifications.proofs import proof_policy


class VerificationPolicies(View):
    @property
    def rows(self) -> QuerySet[VerificationPolicy]:
        return VerificationPolicy.objects.filter(tenant=self.tenant)

    @operation(
        "createVerificationPolicy",
        Scope.VERIFY,
        request=NotedPolicyParameters,
        response=VerificationPolicyContract,
    )
    def create(self, request: Request) -> Response:
        body = self.parse_body(NotedPolicyParameters)
        policy = proof_policy.normalise(body)
        created = self.perform(
            VerificationPolicy.create, self.tenant, policy, notes=notes_in(body)
        )
        return self.to_response(VerificationPolicyContract, created)

    @operation(
        "listVerificationPolicies",
        Scope.READ,
        response=VerificationPolicyContract(many=True),
        parameters=list_parameters(VerificationPolicyQuery),
    )
    def list(self, request: Request) -> Response:
        return self.list_response(
            VerificationPolicyContract, self.rows, VerificationPolicyQuery
        )

    @operation("getVerificationPolicy", Scope.READ, response=VerificationPolicyContract)
    def retrieve(self, request: Request, policyId: str) -> Response:
        return self.to_response(
            VerificationPolicyContract, get_or_404(self.rows, policyId)
        )

    @operation(
        "updateVerificationPolicy",
        Scope.VERIFY,
        request=NotesParameters,
        response=VerificationPolicyContract,
    )
    def update(self, request: Request, policyId: str) -> Response:
        return self.change_notes(
            VerificationPolicyContract, partial(get_or_404, self.rows, policyId)
        )

    @operation("deleteVerificationPolicy", Scope.VERIFY)
    def destroy(self, request: Request, policyId: str) -> Response:
        get_or_404(self.rows, policyId).delete()
        return Response()
