"""Public objects of the local network: immutable, readable by anyone."""

from drf_spectacular.utils import OpenApiTypes, extend_schema
from rest_framework import viewsets
from rest_framework.response import Response

from agency.errors import NotFound
from credentials.models import PublishedObject

FOR_EVER = "public, max-age=31536000, immutable"


@extend_schema(tags=["Ledger"], auth=[], responses=OpenApiTypes.OBJECT)
class Ledger(viewsets.ViewSet):
    authentication_classes = []
    permission_classes = []

    @extend_schema(operation_id="getLedgerSchema", summary="A published schema")
    def read_schema(self, request, networkId, objectId):
        return self.published(networkId, PublishedObject.Kind.SCHEMA, objectId)

    @extend_schema(operation_id="getLedgerDefinition", summary="A published definition")
    def read_definition(self, request, networkId, objectId):
        return self.published(networkId, PublishedObject.Kind.DEFINITION, objectId)

    def published(self, network_id, kind, object_id):
        rows = PublishedObject.objects.filter(network_id=network_id, kind=kind, object_id=object_id)
        published = rows.first()
        if not published:
            raise NotFound("not_found", f"There is no such object on the network {network_id}.")
        body = {"id": object_id, "sequenceNumber": published.sequence, **published.body}
        return Response(
            body, headers={"Cache-Control": FOR_EVER, "Access-Control-Allow-Origin": "*"}
        )
