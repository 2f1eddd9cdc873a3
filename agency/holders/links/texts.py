"""What a page says in each state: what happened, and what the holder does next."""

from typing import Any

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agency.holders.links.links import Kind, State
from connections.didcomm.reasons import DECLINES
from verifications.models import Verification

Text = str | Promise
Texts = tuple[Text, Text]  # heading, next step
ASK_FOR_OFFER = gettext_lazy("If you still need it, ask {name} for a new offer.")
ASK_FOR_REQUEST = gettext_lazy("If you still need it, ask {name} for a new request.")
ASK_FOR_INVITATION = gettext_lazy(
    "If you still want to connect, ask {name} for a new invitation."
)
IN_WALLET = gettext_lazy("A wallet has opened it. Go on there.")

OFFER: dict[str, Texts] = {
    State.WAITING: (
        gettext_lazy("{name} offers you a credential"),
        gettext_lazy("You see what is in it before you accept."),
    ),
    State.OPENED: (gettext_lazy("{name} offers you a credential"), IN_WALLET),
    State.ACCEPTED: (
        gettext_lazy("The offer is accepted"),
        gettext_lazy(
            "{name} issues the credential next. It then appears in the wallet by "
            "itself, also when this page is closed."
        ),
    ),
    State.DONE: (
        gettext_lazy("The credential is in your wallet"),
        gettext_lazy("You can close this page."),
    ),
    State.DECLINED: (
        gettext_lazy("The offer was declined"),
        ASK_FOR_OFFER,
    ),
    State.WITHDRAWN: (
        gettext_lazy("{name} has withdrawn this offer"),
        ASK_FOR_OFFER,
    ),
    State.EXPIRED: (
        gettext_lazy("This offer has expired"),
        ASK_FOR_OFFER,
    ),
    State.USED: (
        gettext_lazy("This offer was used already"),
        gettext_lazy(
            "If you accepted it, the credential is in your wallet. If somebody else "
            "did, tell {name} and ask for a new offer."
        ),
    ),
}
REQUEST: dict[str, Texts] = {
    State.WAITING: (
        gettext_lazy("{name} asks you for a proof"),
        gettext_lazy("You are asked first. Nothing is shown before you agree."),
    ),
    State.OPENED: (gettext_lazy("{name} asks you for a proof"), IN_WALLET),
    State.DONE: (
        gettext_lazy("{name} has accepted your proof"),
        gettext_lazy("You can close this page."),
    ),
    State.FAILED: (
        gettext_lazy("{name} could not accept the proof"),
        gettext_lazy(
            "It arrived, but could not be accepted. Ask {name} which credential is "
            "needed, and for a new request."
        ),
    ),
    State.DECLINED: (
        gettext_lazy("The request was declined"),
        ASK_FOR_REQUEST,
    ),
    State.WITHDRAWN: (
        gettext_lazy("{name} has withdrawn this request"),
        ASK_FOR_REQUEST,
    ),
    State.EXPIRED: (
        gettext_lazy("This request has expired"),
        ASK_FOR_REQUEST,
    ),
    State.USED: (
        gettext_lazy("This request was answered already"),
        gettext_lazy(
            "If you answered it, there is nothing left to do. If somebody else did, "
            "tell {name} and ask for a new request."
        ),
    ),
}
INVITATION: dict[str, Texts] = {
    State.WAITING: (
        gettext_lazy("{name} invites you to connect"),
        gettext_lazy(
            "Once connected, {name} can offer you credentials and ask for proofs; "
            "you decide about each one."
        ),
    ),
    State.OPENED: (gettext_lazy("{name} invites you to connect"), IN_WALLET),
    State.DONE: (
        gettext_lazy("Your wallet is connected with {name}"),
        gettext_lazy("You can close this page."),
    ),
    State.DECLINED: (
        gettext_lazy("The wallet could not connect with {name}"),
        ASK_FOR_INVITATION,
    ),
    State.WITHDRAWN: (
        gettext_lazy("{name} has withdrawn this invitation"),
        ASK_FOR_INVITATION,
    ),
    State.EXPIRED: (
        gettext_lazy("This invitation has expired"),
        ASK_FOR_INVITATION,
    ),
    State.USED: (
        gettext_lazy("This invitation was used already"),
        gettext_lazy(
            "If you used it, your wallet shows the connection. If somebody else did, "
            "tell {name} and ask for a new invitation."
        ),
    ),
}
TEXTS = {Kind.OFFER: OFFER, Kind.REQUEST: REQUEST, Kind.INVITATION: INVITATION}
# What other modules say, for the catalogs: connections/didcomm/reasons.py,
# verifications/proofs/failures.py.
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
    gettext_lazy("The wallet answered wrongly."),
    gettext_lazy("The proof is not genuine."),
    gettext_lazy("The other side ended the exchange."),
    gettext_lazy("Its link expired before anybody accepted it."),
    gettext_lazy("The other side ended it, for a reason of its own."),
)


def translated_reason(exchange: Any) -> str:
    """Why the other side ended it or found it wrong, in the active language, or "".

    Never a text of a stranger.
    """
    if not exchange.problem or exchange.problem == "declined":
        return ""
    return _(exchange.problem_in_words)


def causes_of(verification: Any) -> list[str]:
    """Why the verifier has no valid proof, in the active language.

    For a screen that anybody may see: of what the holder has said only a known reason.
    """
    if verification.state == Verification.State.ACCEPTED:
        return [_(cause.message) for cause in verification.list_causes()]
    reason = DECLINES.get(verification.problem)
    return [_(reason)] if reason else []


def heading(kind: str, state: str, name: str) -> SafeString:
    """Return the heading of a link's page in the active language.

    name: the sender's.
    """
    return with_name(TEXTS[Kind(kind)][state][0], name)


def next_step(kind: str, state: str, name: str) -> SafeString:
    return with_name(TEXTS[Kind(kind)][state][1], name)


def with_name(text: Text, name: str) -> SafeString:
    """Isolate the name (`<bdi>`): its direction may differ from the sentence's."""
    shown = format_html("<bdi>{}</bdi>", name or _("A wallet"))
    return format_html(str(text), name=shown)
