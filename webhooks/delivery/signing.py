"""Signatures of calls, by Standard Webhooks 1.0.0 (symmetric, `v1`)."""

import base64
import os
from collections.abc import Iterable
from datetime import UTC, datetime

from standardwebhooks import Webhook


def headers(
    message_id: str, body: str, secrets: Iterable[str], moment: datetime
) -> dict[str, str]:
    """`webhook-id`, `webhook-timestamp` (of this call) and `webhook-signature`.

    message_id: the same for every call of one event. secrets: those that are live, in the form
    `whsec_…`; each signs. moment: aware, in any zone.
    """
    moment = moment.astimezone(UTC)  # the library takes the clock's reading for UTC
    signatures = [Webhook(secret).sign(message_id, moment, body) for secret in secrets]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def new_secret() -> str:
    """The key that signs calls, in the form that receivers' libraries read."""
    return f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
