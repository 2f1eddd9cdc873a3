"""What the pages of a web wallet say where the template does not: errors, states."""

import math

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agency.holders.wallet.pins import WrongPin
from core.errors import AgencyError

NO_LINK = gettext_lazy(
    "Your wallet cannot use this. Paste the whole link, or ask for a new one."
)
AWAY = gettext_lazy("The other side does not answer now. Try again in a while.")
NOT_CERTAIN = gettext_lazy(
    "It is not certain who is behind this link, so nothing was done. Ask those from whom "
    "you have it."
)
REFUSED = gettext_lazy("The other side has refused. Ask them for a new link.")
NOT_TAKEN = gettext_lazy(
    "The card was not taken: it is not what was offered, or nobody knows for certain who "
    "has issued it. Tell those who have offered it."
)
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
    "passkey_refused": gettext_lazy(
        "This passkey does not open this wallet now. Try again, or enter the PIN."
    ),
    "passkey_limit": gettext_lazy("There are five passkeys. Remove one first."),
    "pin_chosen": gettext_lazy("A PIN was chosen before. Enter that one."),
    "too_many_pins": gettext_lazy("The PIN was wrong too often."),
    "pin_not_usable": gettext_lazy(
        "Choose 6 to 12 digits that nobody guesses at once: no date, no year, nothing "
        "repeated and no row of keys."
    ),
    "card_not_takeable": gettext_lazy(
        "This is no code of a card, or it was scanned before or is older than a minute. "
        "Show a new one."
    ),
    "not_provable": gettext_lazy("The wallet of this card cannot answer here."),
    "wrong_state": gettext_lazy(
        "This was answered before, or withdrawn meanwhile. Nothing was done twice."
    ),
    "choice_missing": gettext_lazy("Choose a card for each question."),
    "restriction_not_met": gettext_lazy(
        "A card that you chose does not answer the question. Choose another one."
    ),
    "transaction_code_missing": gettext_lazy("Enter the code."),
    "transaction_code_wrong": gettext_lazy("This is not the code of this offer."),
    "too_many_requests": gettext_lazy("That was too often."),
    "wallet_not_kept": gettext_lazy(
        "This browser has another wallet, whose link you have not kept. Open that one "
        "and keep its link first: else you lose its cards."
    ),
    "wallet_made": gettext_lazy(
        "This link has made a wallet before, with a PIN. Open it in the browser in "
        "which it was made, or ask for a new link."
    ),
    "bad_mail_address": gettext_lazy(
        "This is no mail address, such as alice@example.org."
    ),
    "mail_link_gone": gettext_lazy(
        "This link confirms no mail address any more. Give the address once more in your "
        "wallet, under “Me”."
    ),
    "bad_link": NO_LINK,
    "bad_credentialData": NO_LINK,
    "bad_verificationData": NO_LINK,
    "issuer_unavailable": AWAY,
    "verifier_unavailable": AWAY,
    "address_refused": NOT_CERTAIN,
    "redirect_refused": NOT_CERTAIN,
    "answer_too_long": NOT_CERTAIN,
    "issuer_unlike_metadata": NOT_CERTAIN,
    "request_not_signed": NOT_CERTAIN,
    "answer_not_encrypted": gettext_lazy(
        "They ask for an answer that others could read. Your wallet does not send that."
    ),
    "unknown_transaction_data": gettext_lazy(
        "They ask you to confirm something that this wallet cannot show you."
    ),
    "issuer_refused": REFUSED,
    "verifier_refused": REFUSED,
    "credential_refused": NOT_TAKEN,
    "credential_of_other_type": NOT_TAKEN,
    "credential_not_bound": NOT_TAKEN,
    "issuer_not_trusted": NOT_TAKEN,
    "nothing_fits": gettext_lazy("No card in your wallet answers this."),
    "answer_in_progress": gettext_lazy(
        "Your answer is on its way. Look again in a moment."
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
    "organization_deleted_soon": gettext_lazy(
        "The organization that hosts this wallet has stopped for now. Ask them."
    ),
    "quota_exceeded": gettext_lazy(
        "There is no more room for this here. Tell the organization that hosts your "
        "wallet."
    ),
}

OTHER_WAYS = gettext_lazy(
    "In another browser that has opened this wallet before you need not wait. Or ask "
    "the organization for a new link, with which you choose a new PIN."
)


def describe_error(error: AgencyError) -> str:
    """What happened and what a holder can do, in the active language."""
    known = ERRORS.get(error.code)
    text = str(known) if known else _("It did not work. Try again in a while.")
    if isinstance(error, WrongPin):
        left = error.tries_left
        return f"{text} {count_tries(left) if left else describe_error(error.next)}"
    if error.code in ("too_many_pins", "too_many_requests") and error.retry_after:
        text = f"{text} {describe_wait(error.retry_after)}"
    return f"{text} {OTHER_WAYS}" if error.code == "too_many_pins" else text


def count_tries(left: int) -> str:
    text = ngettext(
        "You have %(count)s more try.", "You have %(count)s more tries.", left
    )
    return text % {"count": left}


def describe_wait(seconds: int) -> str:
    """In seconds up to two minutes, else in minutes."""
    if seconds <= 120:
        text = ngettext(
            "Try again in %(count)s second.",
            "Try again in %(count)s seconds.",
            seconds,
        )
        return text % {"count": seconds}
    minutes = math.ceil(seconds / 60)
    text = ngettext(
        "Try again in %(count)s minute.", "Try again in %(count)s minutes.", minutes
    )
    return text % {"count": minutes}
