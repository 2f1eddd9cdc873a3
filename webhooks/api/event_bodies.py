"""The bodies of events in the OpenAPI document: one of its `webhooks` for each type."""

import re
from pathlib import Path
from typing import Any

from django.conf import settings

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
    "credential": OF_PARTIES | {"thread_id": TEXT} | REFERENCE,
    "verification": OF_PARTIES | {"thread_id": TEXT} | REFERENCE,
    "message": OF_PARTIES,
    "webhook": {"reason": TEXT},
    "bulk": {
        "definition_id": TEXT,
        "rows": NUMBER,
        "offered": NUMBER,
        "failed": NUMBER,
    },
}
STATES = {
    kind: {"$ref": f"#/components/schemas/{kind.title()}State"}
    for kind in ("connection", "credential", "verification", "bulk")
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
# Rows of docs/webhooks.md: the type, three cells, and when the event is emitted.
ROW = re.compile(r"^\| `(\w+)` \|[^|]*\|[^|]*\| (.+) \|$", re.MULTILINE)
LINK = re.compile(r"\[([^]]+)\]\([^)]*\)")


def add_webhooks(result: Schema, generator: Any, request: Any, public: bool) -> Schema:
    """A hook of drf-spectacular."""
    page = Path(settings.BASE_DIR, "docs", "webhooks.md").read_text(encoding="utf-8")
    meanings = dict(ROW.findall(page))
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
                "summary": LINK.sub(r"\1", meanings[event_type]),
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
