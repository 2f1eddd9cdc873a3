"""Offer a credential once more, after its offer was declined or its link has ended."""

from connections.protocols import connectionless
from core.errors import Conflict
from credentials.models import Credential, CredentialDefinition, CredentialFormat
from credentials.models.credential import Offered
from credentials.openid4vci import offers
from tenants import vault


def why_not_again(row: Credential) -> str:
    """Why nobody can be offered the same again, in a sentence; "" if they can.

    row: of the issuer's side, with its connection.
    """
    offer = vault.unseal(row, "offer_body")
    if row.state != Credential.State.REJECTED or offer is None:
        return "Only an offer that was declined or has ended is made again."
    if row.live_connection is None:
        return "Its connection is deleted."
    if row.unsealed_values() is None:
        return "Its values are deleted."
    if row.format == CredentialFormat.SD_JWT and offers.needs_code(offer):
        return "Its holder needs a code, which is shown to who makes the offer."
    return ""


def offer_again(row: Credential) -> Credential:
    """Issuer: make a new offer as the earlier one, and return it.

    For the same person, with the same values and notes, over the same connection or by
    a new link. The earlier one stays as it is. In the caller's transaction; row: with
    its organization, wallet and connection. 409 `wrong_state` for what why_not_again()
    says and once the definition is deleted, and the errors of Credential.offer().
    """
    if sentence := why_not_again(row):
        raise Conflict("wrong_state", sentence)
    definitions = CredentialDefinition.active_of(row.tenant)
    definition = definitions.filter(definition_id=row.definition_id).first()
    if definition is None:
        raise Conflict("wrong_state", "Its definition is deleted.")
    definition.tenant = row.tenant
    connection = row.live_connection
    assert connection, "why_not_again() has looked"
    offered: Offered = {
        "values": row.unsealed_values(),
        "automatic_issuance": row.automatic_issuance,
        "notes": row.notes(),
        "recipient_name": row.unsealed_recipient_name(),
    }
    if row.format == CredentialFormat.SD_JWT:
        return offers.offer_by_link(row.wallet, definition, **offered)
    if connection.connectionless or connection.is_open:  # an invitation that ended
        options = connectionless.default_options(row.tenant)
        return Credential.offer_by_link(
            row.wallet, definition, options=options, **offered
        )
    return Credential.offer(connection, definition, **offered)
