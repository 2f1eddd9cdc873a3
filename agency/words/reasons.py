"""Why an exchange ended or a proof is not valid, in words. Never a value of a credential.

The sentences are fixed texts (connections/didcomm/reasons.py, which the API shows too,
and verifications/proofs/failures.py); the names of items are those of the policy.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agency.words.asking import (
    age_asked,
    asks_expiry,
    condition_in_words,
    definition_ids,
)
from agency.words.cards import definitions_of
from connections.didcomm.reasons import DECLINES
from credentials.models import Credential, CredentialDefinition
from tenants import vault
from verifications.models import Verification
from verifications.proofs.failures import NO_CARD, CauseInWords, list_causes
from verifications.proofs.proof_items import Item

# What holders may read of these sentences, for the catalogs.
SENTENCES = (
    gettext_lazy("The wallet has no card that fits."),
    gettext_lazy("The holder does not want to do it now."),
    gettext_lazy("The holder does not want to show that much."),
    gettext_lazy("The holder does not know who sent this."),
    gettext_lazy("No card that proves this."),
    gettext_lazy("The card was revoked, or the wallet answered with an old list."),
    gettext_lazy("The wallet does not show whether the card was revoked."),
    gettext_lazy("The card was revoked, or the proof is forged."),
    gettext_lazy("The card is not the one that was asked for."),
    gettext_lazy("The card does not show the value that was asked for."),
    gettext_lazy("One card must prove this, and several did."),
    gettext_lazy("The card was not known yet at the time that was asked for."),
    gettext_lazy("The card was revoked."),
    gettext_lazy("Whether the card was revoked is not known right now."),
    gettext_lazy("The card has expired, or is not valid yet."),
    gettext_lazy("The wallet answered wrongly."),
    gettext_lazy("The proof is not genuine."),
    gettext_lazy("The other side ended the exchange."),
    gettext_lazy("The connection was ended or deleted."),
    gettext_lazy("The other agent could not read the message."),
    gettext_lazy("The other side has no room for more at present."),
    gettext_lazy("Its link expired before anybody accepted it."),
    gettext_lazy("A wallet took the offer, and then did not ask for the card."),
    gettext_lazy("A wallet gave a wrong code five times."),
    gettext_lazy("The other side ended it, for a reason of its own."),
)
YOUNGER = "The person is younger, has no such card, or it was revoked."
EXPIRED = "The card has expired, the person has no such card, or it was revoked."
NOT_MET = "The person does not meet this, has no such card, or it was revoked."
NO_SUCH_CARD = "The person has no such card, or it was revoked."


class Unproven(NamedTuple):
    """An item that no card has proven.

    asked: the condition in words, or the name of the item. causes: what may have
    happened, the likeliest first.
    """

    asked: str
    causes: str
    is_condition: bool = False


def list_reasons(
    verification: Verification,
    checks: list[dict[str, Any]] | None,
    with_advice: bool,
) -> list[str]:
    """Return what is wrong in words: the causes, or the problem that ended it.

    checks: the unsealed checklist; None on the prover's side. with_advice: also say
    what to do.
    """
    if causes := list_causes(checks or ()):
        return [reason_of(cause, with_advice) for cause in causes]
    if verification.problem:
        return [verification.problem_in_words]
    if verification.is_valid is False:
        return [
            "The verifier says that the proof is not valid. Its own record has why."
        ]
    return []


def reason_of(cause: CauseInWords, with_advice: bool) -> str:
    names = ", ".join(cause.policy_names)
    sentence = f"{names}: {cause.message}" if names else cause.message
    return f"{sentence} {cause.advice}" if with_advice else sentence


def reasons_of(
    verifications: Sequence[Verification], with_advice: bool = False
) -> dict[UUID, list[str]]:
    """The reasons of each of these rows by its id, with one query for all data keys."""
    checks = vault.unseal_all(verifications, "checks")
    return {
        row.pk: list_reasons(row, checks[row.pk], with_advice) for row in verifications
    }


def translated_reason(exchange: Credential | Verification) -> str:
    """Why the other side ended it or found it wrong, in the active language, or "".

    Never a text of a stranger.
    """
    if not exchange.problem or exchange.problem == "declined":
        return ""
    return _(exchange.problem_in_words)


def causes_of(verification: Verification) -> list[str]:
    """Why the verifier has no valid proof, in the active language.

    For a screen that anybody may see: of what the holder has said only a known reason.
    """
    if verification.state == Verification.State.ACCEPTED:
        causes = verification.list_causes()
        return [
            *(_(cause.message) for cause in causes),
            *(
                one.asked
                for one in list_unproven(verification, causes)
                if one.is_condition
            ),
        ]
    reason = DECLINES.get(verification.problem)
    return [_(reason)] if reason else []


def list_unproven(
    verification: Verification, causes: Sequence[CauseInWords]
) -> list[Unproven]:
    """What was asked of the items that no card has proven, in the active language.

    Of all, if the holder has said that no card fits. causes: of the verdict. With one
    query, if there are any.
    """
    names = {
        name for cause in causes if cause.code == NO_CARD for name in cause.policy_names
    }
    fits_none = says_unfit(verification)
    if not names and not fits_none:
        return []
    items = verification.require_proof_request().items
    known = definitions_of(verification.tenant_id, definition_ids(items))
    day = verification.created_at.date()
    return [
        unproven_of(item, known, day)
        for item in items
        if fits_none or item.policy_name in names
    ]


def says_unfit(verification: Verification) -> bool:
    """Whether the holder has told the verifier that no card fits."""
    return (
        verification.role == Verification.Role.VERIFIER
        and verification.request_body is not None
        and verification.problem == "no_card_fits"
    )


def unproven_of(
    item: Item, known: Mapping[str, CredentialDefinition], day: date
) -> Unproven:
    if not item.is_predicate:
        return Unproven(item.policy_name, NO_SUCH_CARD)
    causes = EXPIRED if asks_expiry(item, day) else NOT_MET
    causes = YOUNGER if age_asked(item, day) else causes
    return Unproven(condition_in_words(item, known, day), causes, is_condition=True)
