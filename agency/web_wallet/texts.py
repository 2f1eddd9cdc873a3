"""What the pages of a web wallet say where the template does not: errors, states."""

import math

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agency.core.errors import AgencyError

# By code, what a holder can do about it. The others have a sentence for all.
ERRORS = {
    "wallet_link_gone": gettext_lazy(
        "Your personal link does not work, or not any more. Ask the organization that "
        "gave it to you for a new one."
    ),
    "not_found": gettext_lazy("There is nothing here, or not any more."),
    "forbidden": gettext_lazy(
        "The page was open for too long. Go back, load it again and allow cookies."
    ),
    "wrong_pin": gettext_lazy("This is not the PIN of this wallet."),
    "pin_chosen": gettext_lazy("A PIN was chosen before. Enter that one."),
    "pin_not_usable": gettext_lazy(
        "Choose 6 to 12 digits that are neither all the same nor in a row."
    ),
    "wrong_state": gettext_lazy(
        "This was answered before, or withdrawn meanwhile. Nothing was done twice."
    ),
    "choice_missing": gettext_lazy("Choose a card for each question."),
    "restriction_not_met": gettext_lazy(
        "A card that you chose does not answer the question. Choose another one."
    ),
    "too_many_requests": gettext_lazy("That was too often. Try again in a while."),
    "wallet_not_kept": gettext_lazy(
        "This browser has another wallet, whose link you have not kept. Open that one "
        "and keep its link first: else you lose its cards."
    ),
    "connection_gone": gettext_lazy(
        "The connection with the other side has ended. Ask them to begin again."
    ),
    "offer_taken": gettext_lazy(
        "Another wallet has answered this already. Ask for a new one."
    ),
    "offer_gone": gettext_lazy("This was withdrawn. Ask for a new one."),
    "link_expired": gettext_lazy("The time of this link is over. Ask for a new one."),
    "organization_frozen": gettext_lazy(
        "The wallet is moving to another place. Try again in a while."
    ),
    "quota_exceeded": gettext_lazy(
        "There is no more room for this here. Tell the organization that hosts your "
        "wallet."
    ),
}


def describe_error(error: AgencyError) -> str:
    if error.code == "too_many_pins" and error.retry_after:
        minutes = math.ceil(error.retry_after / 60)
        return ngettext(
            "The PIN was wrong too often. Try again in %(minutes)s minute.",
            "The PIN was wrong too often. Try again in %(minutes)s minutes.",
            minutes,
        ) % {"minutes": minutes}
    known = ERRORS.get(error.code)
    return str(known) if known else _("It did not work. Try again in a while.")
