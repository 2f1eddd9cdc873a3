"""The did:webvh of the organization, in the credentials API."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.openapi.operation import operation
from core.api.serializers import Contract, IntegerField, Parameters
from core.api.views import View
from credentials.ledgers.webvh import own_did
from credentials.models import WebvhDid
from tenants import audit
from tenants.models import Scope

STATES = [(str(one), str(one)) for one in WebvhDid.State]


class WebvhDidParameters(Parameters):
    host = serializers.CharField(
        required=False,
        max_length=253,
        help_text="A domain that leads here, for life. By default that of the "
        "installation.",
    )


class RotationParameters(Parameters):
    compromised = serializers.BooleanField(
        default=False,
        help_text="Whether somebody else may have the key: it is taken away at once. "
        "Then wallets refuse credentials of the DID for up to five minutes.",
    )


class EndParameters(Parameters):
    deactivate = serializers.BooleanField(
        default=False,
        help_text="Whether nothing that was issued by the DID can be proven any more.",
    )


class WebvhDidContract(Contract[WebvhDid]):
    """Empty while the organization has none."""

    did = serializers.CharField(required=False)
    host = serializers.CharField(required=False)
    logUrl = serializers.CharField(
        source="log_url", required=False, help_text="Where anybody reads its log."
    )
    state = serializers.ChoiceField(STATES, required=False)
    versions = IntegerField(required=False, help_text="How many entries its log has.")
    rotationDueAtUtc = serializers.DateTimeField(
        source="rotation_due_at",
        required=False,
        help_text="When the next step of a rotation is taken.",
    )


class WebvhDids(View):
    @operation("getWebvhDid", Scope.READ, response=WebvhDidContract)
    def retrieve(self, request: Request) -> Response:
        row = WebvhDid.objects.filter(tenant=self.tenant).first()
        return self.to_response(WebvhDidContract, row) if row else Response({})

    @operation(
        "createWebvhDid",
        Scope.ADMINISTRATION,
        request=WebvhDidParameters,
        response=WebvhDidContract,
    )
    def update(self, request: Request) -> Response:
        """Make the DID. The host is asked before the transaction."""
        host = self.parse_body(WebvhDidParameters).get("host", "")

        def prepare() -> str:
            own_did.require_none(self.tenant)
            return own_did.require_host(host, self.tenant.provider_id)

        create = audit.recorded(own_did.create, "did.created", self.tenant, by=request)
        made = self.perform(create, self.tenant, prepare=prepare)
        return self.to_response(WebvhDidContract, made)

    @operation(
        "rotateWebvhKeys",
        Scope.ADMINISTRATION,
        request=RotationParameters,
        response=WebvhDidContract,
        irreversible=True,
    )
    def rotate(self, request: Request) -> Response:
        is_compromised = self.parse_body(RotationParameters)["compromised"]
        rotate = audit.recorded(
            own_did.rotate,
            "did.keys_rotated",
            self.tenant,
            by=request,
            compromised=is_compromised,
        )
        made = self.perform(rotate, self.tenant, is_compromised)
        return self.to_response(WebvhDidContract, made)

    @operation(
        "endWebvhDid",
        Scope.ADMINISTRATION,
        request=EndParameters,
        response=WebvhDidContract,
        irreversible=True,
    )
    def end(self, request: Request) -> Response:
        deactivate = self.parse_body(EndParameters)["deactivate"]
        end = audit.recorded(
            own_did.end, "did.ended", self.tenant, by=request, deactivated=deactivate
        )
        return self.to_response(
            WebvhDidContract, self.perform(end, self.tenant, deactivate)
        )
