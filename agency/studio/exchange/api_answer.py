"""What the API answers for an object, without values, and the call that reads it."""

import json
from collections.abc import Mapping
from urllib.parse import quote

from agency.studio.curl import Json
from agency.studio.objects import MASK
from agency.words.states import Subject

# The members whose texts are shown. All others are masked: a new member is no leak.
READABLE = {
    "IssuedAtUtc", "acceptedAtUtc", "advice", "allowText", "attributeName",
    "attributeNames", "code", "connectionId", "createdAtUtc", "credentialDefinitionId",
    "credentialId", "definitionId", "did", "endedAtUtc", "format", "imageUrl", "invitation",
    "invitationUrl", "issuedAtUtc", "issuerDid", "message", "mimeType", "myDid",
    "myKey", "name", "offerUrl", "policyName", "policyNames", "predicate",
    "predicateType", "problem", "problemMessage", "recipientAttribute", "reference",
    "referent", "revocationRegistryId", "rule", "schemaId", "schemaIssuerDid", "schemaName",
    "schemaVersion", "state", "status", "theirDid", "theirKey", "threadId",
    "updatedAtUtc", "uri", "validAt", "validFrom", "verificationId",
    "verificationRequestUrl", "verificationUrl", "verifiedAtUtc", "verkey", "version",
}  # fmt: skip
# The members that are objects with members of their own. Others map names to values.
OBJECTS = {"endpoint", "policy", "proposal", "revocationRequirement", "value"}
BY_ITEM = "proof"  # an object for each item of the policy
# These contain a whole message if one is attached to the invitation.
INVITATIONS = ("invitation", "invitationUrl", "outOfBandInvitation")
# With these somebody can take part in the exchange.
LINKS = (*INVITATIONS, "offerUrl", "verificationRequestUrl", "verificationUrl")


def masked_json(
    row: Subject, answer: Mapping[str, Json], *, hides_invitation: bool, links: bool
) -> str:
    """The API's answer for a row with each value masked, and without `links` each link.

    hides_invitation: whether it holds a message that names values.
    """
    masked = mask_members(answer)
    if hides_invitation:
        masked |= {name: MASK for name in INVITATIONS if name in masked}
    if row.has_free_text:
        masked["problem"] = MASK
    if not links:
        masked |= {name: MASK for name in LINKS if name in masked}
    return json.dumps(masked, indent=2, ensure_ascii=False)


def mask_members(members: Mapping[str, Json]) -> dict[str, Json]:
    """The same structure with masks in place of values."""
    return {name: mask_member(name, value) for name, value in members.items()}


def mask_member(name: str, value: Json) -> Json:
    if isinstance(value, list):
        return [
            mask_members(one) if isinstance(one, dict) else mask_text(name, one)
            for one in value
        ]
    if not isinstance(value, dict):
        return mask_text(name, value)
    if name == BY_ITEM:
        return {
            item: mask_members(one) if isinstance(one, dict) else MASK
            for item, one in value.items()
        }
    return mask_members(value) if name in OBJECTS else dict.fromkeys(value, MASK)


def mask_text(name: str, value: Json) -> Json:
    """Numbers are thresholds of comparisons, which the holder's page shows too."""
    return MASK if isinstance(value, str) and name not in READABLE else value


def api_path(row: Subject) -> str:
    """The path of the object, in the API of the wallet that it belongs to."""
    path = f"{row.OBJECT_TYPE}s/{quote(row.public_id, safe='')}"
    if row.wallet.is_organization:
        return f"/credentials/v1/{path}"
    return f"/custodian/v1/api/{quote(row.wallet.wallet_id, safe='')}/{path}"
