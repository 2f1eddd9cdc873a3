"""Every POST, PUT and PATCH of the OpenAPI schema, with the data for one call."""

import copy
from typing import Any, NamedTuple
from urllib.parse import quote

from django.apps import apps
from drf_spectacular.generators import SchemaGenerator

from core.database.base import fetch_rows
from tenants.models import ApiKey, IdempotencyKey
from tests.core.api.contract_calls import Given, body, given, path, sends
from tests.support.people import Api, Organization
from tests.support.sd_jwt import Authority
from tests.support.world import VALUES
from wallets.models import SpareKey

PREFIXES = {"/custodian/v1": "wallet", "/provider/v1": "provider", "": "credentials"}
EXAMPLE = {"messageType": "new_connection"}
HOLDER = {"name": "Rex", "behaviour": "accept"}
OPEN = {"acceptsRequests": True}
NOTED = {"reference": "order 4711"}
SINCE = {"since": "2026-01-31T08:00:00Z"}


def with_webhook(sent):
    return lambda world: Given({"webhookId": world.webhook()}, sent)


def with_delivery(world):
    webhook = world.webhook()
    sent = world.faber.post(f"/webhooks/{webhook}/example", EXAMPLE)
    return path(webhookId=webhook, deliveryId=sent["deliveryId"])


def held_by(inviter, invitee):
    """The connection of a request that waits to be confirmed."""
    invited = inviter.post("/connections", {"confirmConnections": True})
    invitee.accepts_invitation(invited["invitation"])
    return invited["connectionId"]


def by_public_did(world):
    office = Organization("Office")
    office.post("/tenants/publicDid")
    return body({"did": office.put("/tenants/publicDid", OPEN)["did"]})


def with_webvh_did(world):
    office = Organization("Office")
    office.put("/tenants/webvhDid")
    return Given(caller=office)


def with_twin(world):
    given = with_webvh_did(world)
    definition = given.caller.defines("name")
    return given._replace(ids={"definitionId": definition["definitionId"]})


def bulk(world, **recipient):
    query = f"definitionId={quote(world.definition['definitionId'])}"
    return Given(body=[{"credentialValues": VALUES} | recipient], query=query)


def with_bulk(*changes, **recipient):
    """The id of a bulk after these changes."""

    def make(world):
        wanted = bulk(world, **recipient)
        made = world.faber.post(f"/credentials/bulk?{wanted.query}", wanted.body)
        for change in changes:
            world.faber.post(f"/credentials/bulk/{made['bulkId']}/{change}")
        return Given({"bulkId": made["bulkId"]})

    return make


def bulk_to_mail(world):
    """With an offer by a link, and the address of who it is for."""
    made = world.bulk({"credentialValues": VALUES, "mailAddress": "ann@club.example"})
    return Given(body={"bulkId": made})


def with_mailing(*changes):
    def make(world):
        made = world.mailing()
        for change in changes:
            world.faber.post(f"/mailings/{made}/{change}")
        return Given({"mailingId": made})

    return make


def deleted_soon(world):
    branch = world.another_branch()
    world.provider.opens({"tenantId": branch}).delete(f"/tenants/{branch}")
    return path(tenantId=branch)


MORE = {  # what the contract does not have, or names otherwise
    "POST /definitions/credentials/{definitionId}": lambda world: Given(
        {"definitionId": world.definition["schemaId"]}, {"supportRevocation": True}
    ),
    "POST /kiosks": lambda world: body(
        {"name": "Desk", "policyId": world.stored_policy}
    ),
    "POST /openid/trustAnchors": lambda world: body(
        {"name": "State", "certificate": Authority().pem}
    ),
    "PUT /openid/certificates": lambda world: body(
        {"certificates": Authority().certify_key(world.faber.tenant)}
    ),
    "POST /keys": lambda world: body({"name": "Desk", "scopes": ["read"]}),
    "POST /sandbox/holders": lambda world: body(HOLDER),
    "PUT /sandbox/holders/{holderId}": lambda world: Given(
        {"holderId": world.faber.post("/sandbox/holders", HOLDER)["holderId"]},
        HOLDER | {"behaviour": "decline"},
    ),
    "POST /credentials/bulk": bulk,
    "POST /credentials/revoke": lambda world: body(
        {"credentialIds": [world.issued()[0]]}
    ),
    "POST /credentials/bulk/{bulkId}/pause": with_bulk(),
    "POST /credentials/bulk/{bulkId}/resume": with_bulk("pause"),
    "DELETE /credentials/bulk/{bulkId}": with_bulk("pause"),
    "POST /credentials/bulk/{bulkId}/retry": with_bulk(connectionId="nobody"),
    "POST /mailings": bulk_to_mail,
    "POST /mailings/preview": bulk_to_mail,
    "POST /mailings/{mailingId}/pause": with_mailing(),
    "POST /mailings/{mailingId}/resume": with_mailing("pause"),
    "POST /mailings/{mailingId}/stop": with_mailing(),
    "POST /verificationPolicies/try": sends("policy"),
    "POST /api/{walletId}/credentials/{credentialId}/decline": "offered",
    "PUT /credentials/{credentialId}/offer": lambda world: Given(
        {"credentialId": world.wished()[0]}, {"automaticIssuance": True}
    ),
    "PUT /api/{walletId}/credentials/propose/{connectionId}": sends("wish"),
    "PUT /api/{walletId}/credentials/{credentialId}/propose": lambda world: Given(
        {"credentialId": world.offered()[1]}, {"comment": "Please"}
    ),
    "PUT /api/{walletId}/verifications/{verificationId}/decline": "asked",
    "PUT /connections/{connectionId}/protocols": lambda world: Given(
        {"connectionId": world.connected()[0]}, {"exchangeVersion": "2.0"}
    ),
    "PUT /connections/{connectionId}": lambda world: path(
        connectionId=held_by(world.faber, world.faber.hosts())
    ),
    "PUT /api/{walletId}/connections/{connectionId}": lambda world: path(
        connectionId=held_by(world.alice, world.faber.hosts())
    ),
    "POST /connections/{connectionId}/ping": "connected",
    "POST /api/{walletId}/connections/{connectionId}/ping": "connected",
    "PUT /api/{walletId}/connections/{connectionId}/protocols": lambda world: body(
        {"exchangeVersion": "2.0"}
    ),
    "POST /api/{walletId}/connections": lambda world: body({"name": "Alice"}),
    "POST /api/{walletId}/messages": lambda world: body(
        {"connectionId": world.connection[1], "text": "Hello"}
    ),
    "POST /connections/requests": by_public_did,
    "POST /api/{walletId}/connections/requests": by_public_did,
    "PUT /tenants/publicDid": lambda world: body(OPEN),
    "POST /tenants/webvhDid/rotation": with_webvh_did,
    "POST /tenants/webvhDid/end": with_webvh_did,
    "POST /definitions/credentials/{definitionId}/twin": with_twin,
    "POST /connections/{connectionId}/rotate": "connected",
    "POST /connections/{connectionId}/hangup": "connected",
    "PATCH /webhooks/{webhookId}": with_webhook({"retryUnconfirmed": False}),
    "POST /tenants/{tenantId}/deletion/undo": deleted_soon,
    "POST /tenants/{tenantId}/deletion/end": deleted_soon,
    "POST /webhooks/{webhookId}/secret": "webhook",
    "POST /webhooks/{webhookId}/example": with_webhook(EXAMPLE),
    "POST /webhooks/{webhookId}/recover": with_webhook(SINCE),
    "POST /webhooks/{webhookId}/deliveries/{deliveryId}/resend": with_delivery,
}


class Operation(NamedTuple):
    """`path` as the schema has it, with the prefix of the client."""

    method: str
    path: str
    documented: dict[str, Any]

    @property
    def name(self):
        return f"{self.method} {self.path}"

    def ready(self, world):
        """A call that can be made in the world now."""
        prefix = next(prefix for prefix in PREFIXES if self.path.startswith(prefix))
        client, path = PREFIXES[prefix], self.path.removeprefix(prefix)
        call = given(client, f"{self.method} {path}", world, MORE)
        ids = {name: quote(value, safe="") for name, value in call.ids.items()}
        query = f"?{call.query}" if call.query else ""
        own = world.provider if client == "provider" else world.faber
        caller = copy.copy(call.caller or own)
        caller.prefix = ""
        address = self.path.format(**ids) + query
        sent = call.body
        if sent is None and self.method == "PATCH" and client != "provider":
            sent = NOTED
        return Write(caller, self.method.lower(), address, sent, call.form)


class Write(NamedTuple):
    caller: Api
    method: str
    address: str
    body: Any
    form: dict[str, Any] | None

    def send(self, key, **headers):
        for field in (self.form or {}).values():
            if hasattr(field, "seek"):
                field.seek(0)
        headers["Idempotency-Key"] = key
        return self.caller.send(
            self.method, self.address, self.body, self.form, **headers
        )


def operations():
    schema = SchemaGenerator().get_schema(request=None, public=True)
    return [
        Operation(method.upper(), path, documented)
        for path, methods in schema["paths"].items()
        for method, documented in methods.items()
        if method in ("post", "put", "patch")
    ]


def everything():
    """All rows, each with the time of its last change, to detect a second effect."""
    models = {m for m in apps.get_models() if hasattr(m, "updated_at")}
    models -= {IdempotencyKey, SpareKey}  # a spare key that is given back is no effect
    assert ApiKey in models and len(models) > 15
    # Its use, which is stored once a minute, changes the time of a key.
    times = {ApiKey: "COALESCE(revoked_at, created_at)"}
    reads = (
        f"SELECT '{m.__name__}', {m._meta.pk.column}::text, "
        f"{times.get(m, 'updated_at')} FROM {m._meta.db_table}"
        for m in models
    )
    return sorted(fetch_rows(" UNION ALL ".join(reads), []))
