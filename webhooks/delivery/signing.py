"""Signatures of calls, by Standard Webhooks 1.0.0 (symmetric, `v1`)."""

import base64
import os
from collections.abc import Iterable
from datetime import UTC, datetime

from standardwebhooks import Webhook


def signature_headers(
    message_id: str, body: str, secrets: Iterable[str], sent_at: datetime
) -> dict[str, str]:
    """`webhook-id`, `webhook-timestamp` (of this call) and `webhook-signature`.

    message_id: the same for every call of one event. secrets: all that are valid now,
    in the form `whsec_…`; each adds a signature. sent_at: aware, in any zone.
    """
    # The library reads the wall clock time as UTC, whatever its zone.
    sent_at = sent_at.astimezone(UTC)
    signatures = [Webhook(secret).sign(message_id, sent_at, body) for secret in secrets]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(sent_at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def new_secret() -> str:
    """A random signing key of 32 bytes, in the form that receivers' libraries read."""
    return f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
