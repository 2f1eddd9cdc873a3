"""Trust of OpenID4VC in the credentials API: anchors and certificates."""

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.openapi.operation import operation
from core.api.pagination import ListQuery, list_parameters
from core.api.serializers import Contract, Parameters
from core.api.views import View, get_or_404
from tenants import audit
from tenants.models import Scope
from wallets.jose.certificates import MAX_PEM
from wallets.models import SigningKey, TrustAnchor

PURPOSES = [(str(one), str(one)) for one in SigningKey.Purpose.values]


class TrustAnchorParameters(Parameters):
    name = serializers.CharField(max_length=100)
    certificate = serializers.CharField(
        max_length=MAX_PEM, help_text="Of the authority, in PEM."
    )


class TrustAnchorContract(Contract[TrustAnchor]):
    trustAnchorId = serializers.CharField(source="pk")
    name = serializers.CharField()
    certificate = serializers.CharField(
        source="pem", help_text="Of the authority, in PEM."
    )
    fingerprint = serializers.CharField(
        help_text="SHA-256 of the certificate, in hexadecimal digits."
    )
    endsAtUtc = serializers.DateTimeField(source="ends_at")
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(source="updated_at")


class TrustAnchors(View):
    @property
    def own_anchors(self) -> QuerySet[TrustAnchor]:
        return TrustAnchor.objects.filter(tenant=self.tenant)

    @operation(
        "createTrustAnchor",
        Scope.ADMINISTRATION,
        request=TrustAnchorParameters,
        response=TrustAnchorContract,
    )
    def create(self, request: Request) -> Response:
        body = self.parse_body(TrustAnchorParameters)
        made = self.perform(
            audit.recorded(TrustAnchor.create, "trust_anchor.created", by=request),
            self.tenant,
            body["name"],
            body["certificate"],
        )
        return self.to_response(TrustAnchorContract, made)

    @operation(
        "listTrustAnchors",
        Scope.READ,
        response=TrustAnchorContract(many=True),
        parameters=list_parameters(ListQuery),
    )
    def list(self, request: Request) -> Response:
        return self.list_response(TrustAnchorContract, self.own_anchors)

    @operation("deleteTrustAnchor", Scope.ADMINISTRATION)
    def destroy(self, request: Request, trustAnchorId: str) -> Response:
        anchor = get_or_404(self.own_anchors, trustAnchorId)
        audit.recorded(anchor.delete, "trust_anchor.deleted", anchor, by=request)()
        return Response()


class PurposeQuery(Parameters):
    purpose = serializers.ChoiceField(
        PURPOSES,
        default=str(SigningKey.Purpose.CREDENTIALS),
        help_text="What the key signs: credentials and status lists, or "
        "requests for proofs.",
    )


class CertificateRequestContract(Contract[SigningKey]):
    purpose = serializers.ChoiceField(PURPOSES)
    thumbprint = serializers.CharField()
    certificateRequest = serializers.CharField(help_text="PKCS#10, in PEM.")

    def get_certificateRequest(self, key: SigningKey) -> str:
        return key.make_request()


class CertificatesParameters(Parameters):
    certificates = serializers.CharField(
        max_length=MAX_PEM,
        help_text="In PEM: that of the key first, then those of the authorities "
        "between, each signed by the next.",
    )


class CertificatesContract(Contract[SigningKey]):
    purpose = serializers.ChoiceField(PURPOSES)
    thumbprint = serializers.CharField()
    certificates = serializers.CharField(
        source="pem", help_text="In PEM, as they are sent with what the key signs."
    )
    endsAtUtc = serializers.DateTimeField(source="ends_at")


class CertificateRequests(View):
    @operation(
        "getCertificateRequest",
        Scope.ADMINISTRATION,
        response=CertificateRequestContract,
        parameters=[PurposeQuery],
    )
    def retrieve(self, request: Request) -> Response:
        purpose = self.parse_query(PurposeQuery).validated_data["purpose"]
        key = SigningKey.of(self.tenant, SigningKey.Purpose(purpose))
        return self.to_response(CertificateRequestContract, key)


class Certificates(View):
    @operation(
        "uploadCertificates",
        Scope.ADMINISTRATION,
        request=CertificatesParameters,
        response=CertificatesContract,
    )
    def update(self, request: Request) -> Response:
        body = self.parse_body(CertificatesParameters)
        key = self.perform(
            audit.recorded(SigningKey.upload, "certificates.uploaded", by=request),
            self.tenant,
            body["certificates"],
        )
        return self.to_response(CertificatesContract, key)

    @operation(
        "deleteCertificates",
        Scope.ADMINISTRATION,
        # Else the document says that a DELETE answers nothing.
        response={200: CertificatesContract},
        parameters=[PurposeQuery],
    )
    def destroy(self, request: Request) -> Response:
        purpose = self.parse_query(PurposeQuery).validated_data["purpose"]
        key = SigningKey.of(self.tenant, SigningKey.Purpose(purpose))
        if key.is_uploaded:
            audit.recorded(key.certify, "certificates.removed", key, by=request)()
        return self.to_response(CertificatesContract, key)
