"""Signatures of calls as in Standard Webhooks 1.0.0 (symmetric, `v1`)."""

import base64
import os
from collections.abc import Iterable
from datetime import UTC, datetime

from standardwebhooks import Webhook as Signer


def signature_headers(
    message_id: str, body: str, secrets: Iterable[str], sent_at: datetime
) -> dict[str, str]:
    """Return the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`.

    message_id: the same for all calls of one event. secrets: all valid ones, in the
    form `whsec_…`; each adds a signature. sent_at: the aware time of this call.
    """
    # The library ignores the time zone and takes the time as UTC.
    sent_at = sent_at.astimezone(UTC)
    signatures = [
        Signer(secret).sign(
            message_id,
            sent_at,
            body,
        )
        for secret in secrets
    ]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(sent_at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def new_secret() -> str:
    """Return a random signing key of 32 bytes, in the form of Standard Webhooks."""
    return f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
