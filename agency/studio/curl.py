"""Shell commands that call the API, as examples."""

import json
import shlex
from collections.abc import Mapping, Sequence

from django.conf import settings

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]
Body = dict[str, Json]


def example_call(
    path: str,
    body: Json | None = None,
    access_token: str = "$ACCESS_TOKEN",
    subscription_key: str = "$SUBSCRIPTION_KEY",
) -> str:
    """Return a shell command that reads a path of the API, or posts a body to it.

    path: with each variable part quoted. Unless keys are given, they are variables of
    the shell.
    """
    lines = [
        f'curl "{settings.PUBLIC_URL}{path}"',
        f'-H "Authorization: Bearer {access_token}"',
        f'-H "X-Service-Subscription-Key: {subscription_key}"',
    ]
    if body is not None:
        lines += [
            '-H "Content-Type: application/json"',
            f"-d {shlex.quote(json.dumps(body))}",
        ]
    return " \\\n  ".join(lines)
