"""Public objects of the local network: immutable, readable by anyone."""

import re
import time

from django.core.files.storage import default_storage
from django.http import FileResponse, Http404, HttpRequest
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from rest_framework import viewsets
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import CharField, DictField, ListField

from core.api.openapi.operation import operation
from core.api.serializers import Contract, IntegerField, Parameters
from core.errors import NotFound
from credentials.models import PublishedObject, StatusList
from credentials.tails import TAILS_HASH, tails_name

FOR_EVER = "public, max-age=31536000, immutable"


class StatusListQuery(Parameters):
    timestamp = IntegerField(
        required=False,
        min_value=0,
        max_value=2**40,
        help_text="Unix seconds; now without it.",
    )


class PublishedContract(Contract):
    """A public object in the form of AnonCreds."""

    id = CharField()
    sequenceNumber = IntegerField(
        help_text="Of its write to the network; not every number is given."
    )
    issuerId = CharField()


class PublishedSchema(PublishedContract):
    name = CharField()
    version = CharField()
    attrNames = ListField(child=CharField())


class PublishedDefinition(PublishedContract):
    schemaId = CharField()
    type = CharField(help_text="`CL`")
    tag = CharField()
    value = DictField(help_text="The public keys: `primary`, and `revocation`.")


class RegistryValue(Contract):
    maxCredNum = IntegerField(help_text="For how many credentials it has places.")
    publicKeys = DictField()
    tailsHash = CharField(help_text="SHA-256 of the tails file, in base58.")
    tailsLocation = CharField(help_text="The address of the tails file.")


class PublishedRegistry(PublishedContract):
    credDefId = CharField()
    revocDefType = CharField(help_text="`CL_ACCUM`")
    tag = CharField()
    value = RegistryValue()


class PublishedStatusList(Contract):
    issuerId = CharField()
    revRegDefId = CharField()
    timestamp = IntegerField(help_text="Since when it holds, in Unix seconds.")
    revocationList = ListField(
        child=IntegerField(), help_text="For each place: 1 if it is revoked, else 0."
    )
    currentAccumulator = CharField(help_text="The accumulator of AnonCreds.")


@extend_schema(auth=[])
class Ledger(viewsets.ViewSet):
    authentication_classes = ()
    permission_classes = ()

    @operation("getLedgerSchema", None, response=PublishedSchema)
    def read_schema(self, request: Request, networkId: str, objectId: str) -> Response:
        return self.published(networkId, PublishedObject.Kind.SCHEMA, objectId)

    @operation("getLedgerDefinition", None, response=PublishedDefinition)
    def read_definition(
        self, request: Request, networkId: str, objectId: str
    ) -> Response:
        return self.published(networkId, PublishedObject.Kind.DEFINITION, objectId)

    @operation("getLedgerRegistry", None, response=PublishedRegistry)
    def read_registry(
        self, request: Request, networkId: str, objectId: str
    ) -> Response:
        return self.published(networkId, PublishedObject.Kind.REGISTRY, objectId)

    @operation(
        "getLedgerStatusList",
        None,
        response=PublishedStatusList,
        parameters=[StatusListQuery],
    )
    def read_status_list(
        self, request: Request, networkId: str, objectId: str
    ) -> Response:
        query = StatusListQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        timestamp = query.validated_data.get("timestamp", int(time.time()))
        found = StatusList.find_newest(networkId, objectId, timestamp)
        if not found:
            raise NotFound("not_found", f"The registry has no list at {timestamp}.")
        headers = {
            "Cache-Control": "public, max-age=1",
            "Access-Control-Allow-Origin": "*",
        }
        # A reader may name this list by its time, so no other one may replace it.
        return Response(found.final_body(), headers=headers)

    def published(self, network_id: str, kind: str, object_id: str) -> Response:
        rows = PublishedObject.objects.filter(
            network_id=network_id, kind=kind, object_id=object_id
        )
        published = rows.first()
        if not published:
            raise NotFound(
                "not_found", f"There is no such object on the network {network_id}."
            )
        body = {
            "id": object_id,
            "sequenceNumber": published.sequence,
            **published.body,
        }
        return Response(
            body,
            headers={"Cache-Control": FOR_EVER, "Access-Control-Allow-Origin": "*"},
        )


@require_safe
def tails(request: HttpRequest, tailsHash: str) -> FileResponse:
    """The tails file of a registry, by its hash: it never changes."""
    if not re.fullmatch(TAILS_HASH, tailsHash):
        raise Http404
    if not default_storage.exists(tails_name(tailsHash)):
        raise Http404
    response = FileResponse(default_storage.open(tails_name(tailsHash)))
    response["Content-Type"] = "application/octet-stream"
    response["Cache-Control"] = FOR_EVER
    return response
