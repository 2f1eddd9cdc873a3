"""What the API answers for an object, without values, and the call that reads it."""

import json
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest

from connections.api.serializers import ConnectionContract
from credentials.api.serializers import CredentialContract
from verifications.api.serializers import VerificationContract

MASK = "••••••"
CONTRACTS: dict[str, Any] = {
    "connection": ConnectionContract,
    "credential": CredentialContract,
    "verification": VerificationContract,
}
# Members that are a value, or a text of the other side.
VALUES = ("attributeValue", "comment", "value")
# Members that are objects of values by name. Arrays of these names hold no values.
VALUES_BY_NAME = ("attributes", "values")
# A message in base64 that contains values.
MESSAGES = ("offerData", "verificationRequestData")
# The same of an invitation, if a message is attached to it.
INVITATIONS = ("invitation", "invitationUrl")
HEADERS = (
    '-H "Authorization: Bearer $ACCESS_TOKEN"',
    '-H "X-Service-Subscription-Key: $SUBSCRIPTION_KEY"',
)


def masked_json(request: HttpRequest, row: Any) -> str:
    """The JSON of the API with each value masked."""
    contract = CONTRACTS[row.OBJECT_TYPE](row, context={"request": request})
    answer = mask(contract.data)
    if row.OBJECT_TYPE == "connection" and carries_message(row):
        answer |= {name: MASK for name in INVITATIONS if name in answer}
    return json.dumps(answer, indent=2, ensure_ascii=False)


def carries_message(connection: Any) -> bool:
    is_attached = connection.carries_exchange or connection.shared is not None
    return is_attached or "requests~attach" in connection.invitation


def mask(data: Any) -> Any:
    """The same structure with masks in place of values."""
    if isinstance(data, list):
        return [mask(one) for one in data]
    if not isinstance(data, dict):
        return data
    return {name: mask_member(name, value) for name, value in data.items()}


def mask_member(name: str, value: Any) -> Any:
    if name in VALUES_BY_NAME and isinstance(value, dict):
        return dict.fromkeys(value, MASK)
    if name in (*VALUES, *MESSAGES) and isinstance(value, str) and value:
        return MASK
    return mask(value)


def curl_command(row: Any) -> str:
    """A shell command that reads the object. Its keys are variables of the shell."""
    lines = [f'curl "{settings.PUBLIC_URL}{api_path(row)}"', *HEADERS]
    return " \\\n  ".join(lines)


def api_path(row: Any) -> str:
    """The path of the object, in the API of the wallet that it belongs to."""
    path = f"{row.OBJECT_TYPE}s/{quote(row.public_id, safe='')}"
    if row.wallet.is_organization:
        return f"/credentials/v1/{path}"
    return f"/custodian/v1/api/{quote(row.wallet.wallet_id, safe='')}/{path}"
