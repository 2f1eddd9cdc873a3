"""Shell commands that call the API, as examples."""

import json
import shlex
from typing import Any

from django.conf import settings


def example_call(
    path: str,
    body: dict[str, Any],
    access_token: str = "YOUR-ACCESS-TOKEN",
    subscription_key: str = "YOUR-SUBSCRIPTION-KEY",
) -> str:
    """Return a shell command that posts a body to a path of the API with these keys."""
    words = [
        ["curl", f"{settings.PUBLIC_URL}{path}"],
        ["-H", f"Authorization: Bearer {access_token}"],
        ["-H", f"X-Service-Subscription-Key: {subscription_key}"],
        ["-H", "Content-Type: application/json"],
        ["-d", json.dumps(body)],
    ]
    return " \\\n  ".join(shlex.join(line) for line in words)
