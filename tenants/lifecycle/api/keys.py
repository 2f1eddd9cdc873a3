"""The organization's own keys in the credentials API. No secret is shown twice."""

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.openapi.operation import operation
from core.api.pagination import ListQuery, list_parameters
from core.api.serializers import Contract, IntegerField, Parameters
from core.api.views import View, get_or_404, lock_for_token
from core.errors import Conflict
from core.work import transactions
from tenants import audit
from tenants.lifecycle.provisioning import TENANT_KINDS
from tenants.models import ApiKey, Scope, Tenant
from tenants.models.keys import MAX_LIVE_KEYS

KINDS = [(str(kind), str(kind)) for kind in TENANT_KINDS]
SCOPES = [(scope, scope) for scope in Scope.values]


class KeyParameters(Parameters):
    name = serializers.CharField(max_length=100, help_text="Where it will be used.")
    kind = serializers.ChoiceField(KINDS, default=str(ApiKey.Kind.ACCESS_TOKEN))
    scopes = serializers.ListField(
        child=serializers.ChoiceField(SCOPES),
        required=False,
        min_length=1,
        max_length=len(SCOPES),
        help_text="Of an access token: what it may do. None that the calling key does "
        "not have. Without them, those of the calling key.",
    )
    strict = serializers.BooleanField(
        required=False,
        help_text="Of an access token: whether lists answer 400 to a filter that they "
        "do not know, or that comes twice, on paths without a prefix.",
    )
    days = IntegerField(
        required=False,
        min_value=1,
        max_value=3650,
        help_text="After which it ends by itself.",
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        for name in ("scopes", "strict"):
            if given.get(name) and given["kind"] != ApiKey.Kind.ACCESS_TOKEN:
                message = f"Only an access token has `{name}`."
                raise serializers.ValidationError({name: [message]})
        return given


class KeyContract(Contract):
    keyId = serializers.CharField(source="pk")
    kind = serializers.ChoiceField(KINDS)
    name = serializers.CharField()
    beginsWith = serializers.CharField(source="hint")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(SCOPES),
        required=False,
        help_text="Of an access token.",
    )
    strict = serializers.BooleanField(
        required=False, help_text="Whether lists refuse filters that they do not know."
    )
    createdAtUtc = serializers.DateTimeField(source="created_at")
    updatedAtUtc = serializers.DateTimeField(source="updated_at")
    lastUsedAtUtc = serializers.DateTimeField(source="last_used_at", required=False)
    expiresAtUtc = serializers.DateTimeField(
        source="expires_at", required=False, help_text="When it ends by itself."
    )

    def get_strict(self, key: ApiKey) -> bool | None:
        return key.strict or None

    def get_scopes(self, key: ApiKey) -> list[str] | None:
        return [scope for scope in Scope.values if scope in key.granted] or None


class NewKeyContract(KeyContract):
    """A key that was just made. Its secret is in this answer only."""

    secret = serializers.CharField()


@transactions.atomic()
def create_key(
    tenant: Tenant, maker: ApiKey, body: dict[str, Any], by: Request
) -> ApiKey:
    """Make a key with at most the scopes and the time of the maker, in one transaction.

    The lock on the organization makes the count of live keys exact. body: valid
    KeyParameters. 409 `key_limit`.
    """
    lock_for_token(maker)
    kind = body["kind"]
    if ApiKey.live().filter(tenant=tenant, kind=kind).count() >= MAX_LIVE_KEYS:
        message = (
            f"There are {MAX_LIVE_KEYS} live keys of this kind. Revoke one that is "
            "not used."
        )
        raise Conflict("key_limit", message)
    scopes = body.get("scopes", maker.scopes)
    lifetime = timedelta(days=body["days"]) if "days" in body else None
    if maker.expires_at:
        left = maker.expires_at - timezone.now()
        lifetime = min(lifetime, left) if lifetime else left
    key, secret = ApiKey.issue(
        kind,
        tenant,
        body["name"],
        lifetime,
        scopes=scopes if kind == ApiKey.Kind.ACCESS_TOKEN else None,
        strict=body.get("strict", False),
        made_by=audit.person_of(by),
    )
    audit.record("key.created", key, by=by)
    key.secret = secret  # type: ignore[attr-defined]
    return key


class Keys(View):
    @property
    def own_keys(self) -> QuerySet[ApiKey]:
        """Its live keys. A provider key is its account's."""
        return ApiKey.live().filter(tenant=self.tenant)

    @operation(
        "createKey",
        Scope.ADMINISTRATION,
        request=KeyParameters,
        response=NewKeyContract,
    )
    def create(self, request: Request) -> Response:
        body = self.parse_body(KeyParameters)
        for scope in body.get("scopes", ()):
            self.require_scope(scope)
        made = self.perform(
            create_key,
            self.tenant,
            self.token,
            body,
            by=request,
            shown_once=True,  # the response has the secret
        )
        return self.to_response(NewKeyContract, made)

    @operation(
        "listKeys",
        Scope.ADMINISTRATION,
        response=KeyContract(many=True),
        parameters=list_parameters(ListQuery),
    )
    def list(self, request: Request) -> Response:
        return self.list_response(KeyContract, self.own_keys)

    @operation("revokeKey", Scope.ADMINISTRATION)
    def destroy(self, request: Request, keyId: str) -> Response:
        key = get_or_404(self.own_keys, keyId)
        audit.recorded(key.revoke, "key.revoked", key, by=request)()
        return Response()
