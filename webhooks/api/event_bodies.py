"""The bodies of events in the OpenAPI document: one of its `webhooks` for each type."""

from typing import Any

from webhooks.events.types import Type, object_type_of

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
OF_PARTIES = dict.fromkeys(
    ("connection_id", "ConnectionId", "wallet_id", "WalletId"), TEXT
)
REFERENCE = {"reference": TEXT | {"description": "The object's, if it has one."}}
# The members of `data` by the type of the object.
DATA: dict[str, dict[str, Schema]] = {
    "connection": OF_PARTIES | REFERENCE,
    "credential": OF_PARTIES | {"thread_id": TEXT, "format": TEXT} | REFERENCE,
    "verification": OF_PARTIES | {"thread_id": TEXT, "format": TEXT} | REFERENCE,
    "message": OF_PARTIES,
    "webhook": {"reason": TEXT},
    "bulk": {
        "definition_id": TEXT,
        "rows": NUMBER,
        "offered": NUMBER,
        "failed": NUMBER,
    },
    "mailing": {"bulk_id": TEXT, "mails": NUMBER, "sent": NUMBER},
    "database": {
        "since": {
            "type": ["string", "null"],
            "format": "date-time",
            "description": "What happened from then on may be lost.",
        },
    },
}
STATES = {
    kind: {"$ref": f"#/components/schemas/{kind.title()}State"}
    for kind in ("connection", "credential", "verification", "bulk", "mailing")
}
COMMON = {
    "message_type": {"$ref": "#/components/schemas/MessageType"},
    "object_id": TEXT | {"description": "The id of the object in the API."},
    "object_type": TEXT,
    "event_id": TEXT | {"description": "`webhook-id` is this with `msg_` before it."},
    "sequence": NUMBER | {"description": "Counts the events of the object, from 1."},
    "created_at": TEXT | {"format": "date-time"},
    "example": {"type": "boolean", "description": "The event was asked for."},
}
# When each is emitted; docs/webhooks.md says the same.
MEANINGS = {
    Type.NEW_CONNECTION: "the connection is `Connected`",
    Type.CREDENTIAL_REQUEST: "a holder accepted the offer: `Requested`",
    Type.VERIFICATION: "a proof was received and judged: `Accepted`, whether valid or not",
    Type.NEW_INBOX_MESSAGE: "a basic message was received",
    Type.CREDENTIAL_OFFER: "the wallet was offered a credential: `Offered`",
    Type.VERIFICATION_REQUEST: "the wallet was asked for a proof: `Requested`",
    Type.CONNECTION_INVITED: "the invitation was created or accepted: `Invited`",
    Type.CONNECTION_NEGOTIATING: "keys are being exchanged: `Negotiating`",
    Type.CONNECTION_CONNECTED: "the connection is `Connected`",
    Type.CONNECTION_ENDED: "either side has ended the connection (hangup)",
    Type.CREDENTIAL_PROPOSED: "a credential was proposed: `Proposed`",
    Type.CREDENTIAL_OFFERED: "`Offered`",
    Type.CREDENTIAL_REQUESTED: "the wallet accepted: `Requested`",
    Type.CREDENTIAL_ISSUED: "`Issued`",
    Type.CREDENTIAL_REJECTED: "declined, ended by a problem, or its link expired: `Rejected`",
    Type.CREDENTIAL_REVOKED: "`Revoked`",
    Type.VERIFICATION_PROPOSED: "a proof was proposed: `Proposed`",
    Type.VERIFICATION_REQUESTED: "a proof was requested: `Requested`",
    Type.VERIFICATION_ACCEPTED: "the wallet has responded: `Accepted`",
    Type.VERIFICATION_JUDGED: "the verifier has reported whether the response is valid",
    Type.VERIFICATION_REJECTED: "declined, ended by a problem, or its link expired: `Rejected`",
    Type.MESSAGE_SENT: "a basic message was sent",
    Type.WEBHOOK_DISABLED: "a webhook failed for five days or returned 410, "
    "and is no longer called",
    Type.BULK_FINISHED: "a bulk is `Done`: no row waits any more. "
    "After a retry it is emitted again",
    Type.MAILING_FINISHED: "a mailing is `Done` or `Stopped`: no mail waits any more",
    Type.DATABASE_RESTORED: "the database went back to an earlier state, "
    "by a restore or a fail-over",
}


def add_webhooks(result: Schema, generator: Any, request: Any, public: bool) -> Schema:
    """A hook of drf-spectacular."""
    schemas = result["components"]["schemas"]
    for kind, members in DATA.items():
        schemas[f"{kind.title()}EventData"] = {"type": "object", "properties": members}
    result["webhooks"] = {}
    for event_type in Type:
        name = "".join(word.title() for word in event_type.split("_")) + "Event"
        schemas[name] = body_of(event_type)
        schema = {"$ref": f"#/components/schemas/{name}"}
        result["webhooks"][str(event_type)] = {
            "post": {
                "operationId": f"on{name}",
                "tags": ["Webhooks"],
                "summary": MEANINGS[event_type],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": schema}},
                },
                "responses": {"2XX": {"description": "The event was received."}},
            }
        }
    return result


def body_of(event_type: Type) -> Schema:
    kind = object_type_of(event_type)
    members = COMMON | {
        "message_type": {"const": str(event_type)},
        "object_type": {"const": kind},
        "data": {"$ref": f"#/components/schemas/{kind.title()}EventData"},
    }
    if state := STATES.get(kind):
        members["state"] = state
    required = [name for name in members if name not in ("example", "state")]
    return {"type": "object", "properties": members, "required": required}
