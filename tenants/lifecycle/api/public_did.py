"""The public DID of the organization, in the credentials API."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.openapi.operation import operation
from core.api.serializers import Contract, Parameters
from core.api.views import View
from tenants import audit
from tenants.lifecycle import public_did
from tenants.models import Scope

STATES = [public_did.UNPUBLISHED, *dict.fromkeys(public_did.STATES.values())]


class PublicDidParameters(Parameters):
    aliases = {"accepts_requests": "acceptsRequests"}

    acceptsRequests = serializers.BooleanField(
        help_text="Whether anybody who knows the DID may connect without an invitation."
    )


class PublicDidContract(Contract):
    did = serializers.CharField()
    verkey = serializers.CharField()
    endpoint = serializers.CharField(
        required=False, help_text="What is published, or being published."
    )
    state = serializers.ChoiceField(STATES, help_text="Of the endpoint.")
    problem = serializers.CharField(
        required=False, help_text="Why the endpoint is not published yet."
    )
    acceptsRequests = serializers.BooleanField(
        source="accepts_requests",
        help_text="Whether anybody who knows the DID may connect without an invitation.",
    )


class PublicDids(View):
    @operation("getPublicDid", Scope.READ, response=PublicDidContract)
    def retrieve(self, request: Request) -> Response:
        return self.to_response(
            PublicDidContract, public_did.read_public_did(self.tenant)
        )

    @operation("publishEndpoint", Scope.ADMINISTRATION, response=PublicDidContract)
    def publish(self, request: Request) -> Response:
        """Publish the endpoint, in one transaction with the audit entry.

        On a remote ledger that only enqueues the job, which begins after the commit.
        """
        publish = audit.recorded(
            public_did.publish_endpoint, "endpoint.published", self.tenant, by=request
        )
        self.perform(publish, self.tenant)
        return self.retrieve(request)

    @operation(
        "setPublicDid",
        Scope.ADMINISTRATION,
        request=PublicDidParameters,
        response=PublicDidContract,
    )
    def update(self, request: Request) -> Response:
        """Accept requests or not, in one transaction with the audit entry."""
        is_accepting = self.parse_body(PublicDidParameters)["acceptsRequests"]
        change = audit.recorded(
            public_did.set_accepts_requests,
            "organization.changed",
            self.tenant,
            by=request,
            accepts_requests=is_accepting,
        )
        self.perform(change, self.tenant, is_accepting)
        return self.retrieve(request)
