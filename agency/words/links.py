"""What the page of a link says in each state: what happened, and what to do next."""

from collections.abc import Mapping

from django.db.models import TextChoices
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

Text = str | Promise
Texts = tuple[Text, Text]  # heading, next step


class LinkState(TextChoices):
    """What a page says of its link. Never more than this is public, and no values.

    waiting → opened → accepted → done, failed
    waiting | opened | accepted → declined, withdrawn
    waiting | opened → expired, unless a wallet has answered

    used: it is done, but this page did not see it happen. Whoever opens it may be
    somebody else than the one who used it.
    """

    WAITING = "waiting"
    OPENED = "opened"  # a wallet has it
    ACCEPTED = "accepted"  # the organization issues the credential next
    DONE = "done"
    FAILED = "failed"  # the proof is not valid
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"
    USED = "used"
    EXPIRED = "expired"


ASK_FOR_OFFER = gettext_lazy("If you still need it, ask {name} for a new offer.")
ASK_FOR_REQUEST = gettext_lazy("If you still need it, ask {name} for a new request.")
ASK_FOR_INVITATION = gettext_lazy(
    "If you still want to connect, ask {name} for a new invitation."
)
IN_WALLET = gettext_lazy("A wallet has opened it. Go on there.")

OFFER: Mapping[str, Texts] = {
    LinkState.WAITING: (
        gettext_lazy("{name} offers you a card"),
        gettext_lazy("You see what is in it before you accept."),
    ),
    LinkState.OPENED: (gettext_lazy("{name} offers you a card"), IN_WALLET),
    LinkState.ACCEPTED: (
        gettext_lazy("The offer is accepted"),
        gettext_lazy(
            "{name} issues the card next. It then appears in the wallet by itself, "
            "also when this page is closed."
        ),
    ),
    LinkState.DONE: (
        gettext_lazy("The card is in your wallet"),
        gettext_lazy("You can close this page."),
    ),
    LinkState.DECLINED: (
        gettext_lazy("The offer was declined"),
        ASK_FOR_OFFER,
    ),
    LinkState.WITHDRAWN: (
        gettext_lazy("{name} has withdrawn this offer"),
        ASK_FOR_OFFER,
    ),
    LinkState.EXPIRED: (
        gettext_lazy("This offer has expired"),
        ASK_FOR_OFFER,
    ),
    LinkState.USED: (
        gettext_lazy("This offer was used already"),
        gettext_lazy(
            "If you accepted it, the card is in your wallet. If somebody else "
            "did, tell {name} and ask for a new offer."
        ),
    ),
}
REQUEST: Mapping[str, Texts] = {
    LinkState.WAITING: (
        gettext_lazy("{name} asks to check your card"),
        gettext_lazy("You are asked first. Nothing is shown before you agree."),
    ),
    LinkState.OPENED: (gettext_lazy("{name} asks to check your card"), IN_WALLET),
    LinkState.DONE: (
        gettext_lazy("{name} has accepted your answer"),
        gettext_lazy("You can close this page."),
    ),
    LinkState.FAILED: (
        gettext_lazy("{name} could not accept the answer"),
        gettext_lazy(
            "It arrived, but could not be accepted. Ask {name} which card is "
            "needed, and for a new request."
        ),
    ),
    LinkState.DECLINED: (
        gettext_lazy("The request was declined"),
        ASK_FOR_REQUEST,
    ),
    LinkState.WITHDRAWN: (
        gettext_lazy("{name} has withdrawn this request"),
        ASK_FOR_REQUEST,
    ),
    LinkState.EXPIRED: (
        gettext_lazy("This request has expired"),
        ASK_FOR_REQUEST,
    ),
    LinkState.USED: (
        gettext_lazy("This request was answered already"),
        gettext_lazy(
            "If you answered it, there is nothing left to do. If somebody else did, "
            "tell {name} and ask for a new request."
        ),
    ),
}
INVITATION: Mapping[str, Texts] = {
    LinkState.WAITING: (
        gettext_lazy("{name} invites you to connect"),
        gettext_lazy(
            "Once connected, {name} can offer you cards and ask you to show them; "
            "you decide about each one."
        ),
    ),
    LinkState.OPENED: (gettext_lazy("{name} invites you to connect"), IN_WALLET),
    LinkState.DONE: (
        gettext_lazy("Your wallet is connected with {name}"),
        gettext_lazy("You can close this page."),
    ),
    LinkState.DECLINED: (
        gettext_lazy("The wallet could not connect with {name}"),
        ASK_FOR_INVITATION,
    ),
    LinkState.WITHDRAWN: (
        gettext_lazy("{name} has withdrawn this invitation"),
        ASK_FOR_INVITATION,
    ),
    LinkState.EXPIRED: (
        gettext_lazy("This invitation has expired"),
        ASK_FOR_INVITATION,
    ),
    LinkState.USED: (
        gettext_lazy("This invitation was used already"),
        gettext_lazy(
            "If you used it, your wallet shows the connection. If somebody else did, "
            "tell {name} and ask for a new invitation."
        ),
    ),
}
# By the kind of the link, as ClosedLink.Kind has it.
TEXTS = {"offer": OFFER, "request": REQUEST, "invitation": INVITATION}


def heading(kind: str, state: str, name: str) -> SafeString:
    """Return the heading of a link's page in the active language.

    name: the sender's.
    """
    return with_name(TEXTS[kind][state][0], name)


def next_step(kind: str, state: str, name: str) -> SafeString:
    return with_name(TEXTS[kind][state][1], name)


def with_name(text: Text, name: str) -> SafeString:
    """Isolate the name (`<bdi>`): its direction may differ from the sentence's."""
    shown = format_html("<bdi>{}</bdi>", name or _("A wallet"))
    return format_html(str(text), name=shown)
