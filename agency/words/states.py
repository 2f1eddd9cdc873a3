"""What each state of an exchange says to each who reads of it.

Texts for holders are translated, those for staff are English. What an error of the API
says of a state (`steps` of the models) stands with the transitions, below all faces.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from agency.words.links import LinkState
from connections.models import Connection
from credentials.models import Bulk, Credential
from verifications.models import Verification

Text = str | Promise
Subject = Connection | Credential | Verification
C, D, V = Connection.State, Credential.State, Verification.State
# What is shown of rows whose state does not say how they ended.
ENDED, VALID, NOT_VALID = "Ended", "Valid", "Not valid"


@dataclass(frozen=True)
class Words:
    """A row of a table: what is said in one state, of one role.

    staff: what happened last, and what has to happen next. by_link: the same while
    whoever has its link may take part. badge: the CSS class of the state. holder: on
    the page of a web wallet; tag: in one or two words, in its lists. link: what the
    page of its link shows, unless that depends on the link. kiosk: the verdict on a
    screen.
    """

    staff: str
    by_link: str = ""
    badge: str = "soon"
    holder: Text = ""
    tag: Text = ""
    link: LinkState | None = None
    kiosk: Text = ""


# By the role, and the state or how it ended.
Table = Mapping[tuple[str, str], Words]

CONNECTED = Words(
    "Both sides can offer credentials, ask for proofs and send messages.", badge="good"
)
HUNG_UP = Words(
    "One side has ended the connection: nothing more goes over it.", badge=""
)
CONNECTION: Table = {
    ("inviter", C.INVITED): Words(
        "Nobody has accepted the invitation yet. Send its link again if it was lost."
    ),
    ("inviter", C.NEGOTIATING): Words(
        "The other side has accepted, and the two agents exchange keys. If this takes "
        "longer than a minute, look at the last message below."
    ),
    ("inviter", C.CONNECTED): CONNECTED,
    ("inviter", ENDED): HUNG_UP,
    ("invitee", C.INVITED): Words(
        "The invitation is being answered. If this takes longer than a minute, look "
        "at the last message below."
    ),
    ("invitee", C.NEGOTIATING): Words(
        "The inviter has not answered yet. Look at the last message below; if it was "
        "sent, ask the inviter."
    ),
    ("invitee", C.CONNECTED): CONNECTED,
    ("invitee", ENDED): HUNG_UP,
}
# In place of the words above, of one that is not Connected.
REFUSED = "The other agent refused the handshake. Make a new invitation."
FOR_MANY = (
    "The invitation stays open for everybody who has its link. Each one who accepts "
    "becomes a connection of its own."
)
HELD = (
    "A request to connect waits for an answer. Accept it, or refuse it by deleting the "
    "connection."
)

ANSWERED_NEXT = gettext_lazy("The other side answers next.")
CREDENTIAL: Table = {
    ("issuer", D.PROPOSED): Words(
        "The holder proposes what to issue. Answer with an offer through the API, or "
        "cancel."
    ),
    ("issuer", D.OFFERED): Words(
        "The offer is in the wallet of the holder, who has not accepted it yet.",
        by_link="Nobody has accepted it yet.",
    ),
    ("issuer", D.REQUESTED): Words(
        "The holder has accepted. Issue it through the API, unless it is issued "
        "automatically.",
        link=LinkState.ACCEPTED,
    ),
    ("issuer", D.ISSUED): Words(
        "The holder has the credential.", badge="good", link=LinkState.DONE
    ),
    ("issuer", D.REJECTED): Words(
        "It was ended before it was issued. Make a new offer if it is still wanted.",
        badge="bad",
    ),
    ("issuer", D.REVOKED): Words(
        "The credential is revoked. Issue a new one if the holder needs one.",
        badge="bad",
        link=LinkState.DONE,
    ),
    ("holder", D.PROPOSED): Words(
        "The issuer has to answer with an offer.", holder=ANSWERED_NEXT
    ),
    ("holder", D.OFFERED): Words(
        "The owner of this wallet has to accept the offer or decline it.",
        holder=gettext_lazy(
            "If you accept, this card comes into your wallet. Nothing is shown to "
            "anybody else."
        ),
        tag=gettext_lazy("Offer"),
    ),
    ("holder", D.REQUESTED): Words(
        "The issuer has to issue it.",
        holder=gettext_lazy(
            "You have accepted. The card comes into your wallet by itself as soon as "
            "it is issued, also when this page is closed."
        ),
        tag=gettext_lazy("On its way"),
    ),
    ("holder", D.ISSUED): Words(
        "The credential is in this wallet.",
        badge="good",
        holder=gettext_lazy("The card is in your wallet."),
        tag=gettext_lazy("Valid"),
    ),
    ("holder", D.REJECTED): Words(
        "It was ended before it was issued. Ask the issuer for a new offer.",
        badge="bad",
        holder=gettext_lazy("This offer was declined or withdrawn."),
    ),
    ("holder", D.REVOKED): Words(
        "The issuer has revoked the credential. Ask the issuer for a new one.",
        badge="bad",
        holder=gettext_lazy("This card was cancelled: it is not valid any more."),
        tag=gettext_lazy("Cancelled"),
    ),
}

VERIFICATION: Table = {
    ("verifier", V.PROPOSED): Words(
        "The holder proposes what to show. Answer with a request through the API, or "
        "cancel."
    ),
    ("verifier", V.REQUESTED): Words(
        "The request is in the wallet of the holder, who has not answered yet.",
        by_link="Nobody has answered yet.",
    ),
    ("verifier", V.ACCEPTED): Words("The holder has answered.", link=LinkState.FAILED),
    ("verifier", VALID): Words(
        "The proof is valid: it shows what was asked for.",
        badge="good",
        link=LinkState.DONE,
        kiosk=gettext_lazy("Valid"),
    ),
    ("verifier", NOT_VALID): Words(
        "The proof is not valid.",
        badge="bad",
        link=LinkState.FAILED,
        kiosk=gettext_lazy("Not valid"),
    ),
    ("verifier", V.REJECTED): Words(
        "It was ended before a proof came. Ask again if it is still needed.",
        badge="bad",
        kiosk=gettext_lazy("The request was declined"),
    ),
    ("prover", V.PROPOSED): Words(
        "The verifier has to answer with a request.", holder=ANSWERED_NEXT
    ),
    ("prover", V.REQUESTED): Words(
        "The owner of this wallet has to choose credentials or decline.",
        holder=gettext_lazy("Nothing is shown before you agree."),
        tag=gettext_lazy("Question"),
    ),
    ("prover", V.ACCEPTED): Words(
        "The proof was sent. The verifier has not said yet whether it is valid.",
        holder=gettext_lazy("Your answer was sent. The other side checks it."),
    ),
    ("prover", VALID): Words(
        "The verifier has found the proof valid.",
        badge="good",
        holder=gettext_lazy("Your answer was sent and accepted."),
    ),
    ("prover", NOT_VALID): Words(
        "The verifier has found the proof not valid.",
        badge="bad",
        holder=gettext_lazy("Your answer was sent, but it was not accepted."),
    ),
    ("prover", V.REJECTED): Words(
        "It was ended before a proof was sent. Ask the verifier for a new request.",
        badge="bad",
        holder=gettext_lazy(
            "This question was declined or withdrawn. Nothing was shown."
        ),
    ),
}
UNEXPLAINED = "Only the verifier knows why."
TABLES: Mapping[type[Subject], Table] = {
    Connection: CONNECTION,
    Credential: CREDENTIAL,
    Verification: VERIFICATION,
}

BULK: Mapping[str, Words] = {
    Bulk.State.RUNNING: Words("The offers are being made.", badge=""),
    Bulk.State.PAUSED: Words("No further offers are made until you resume it."),
    Bulk.State.DONE: Words("No row waits any more.", badge="good"),
}

ROLES = {
    "inviter": "This side invited",
    "invitee": "This side accepted an invitation",
    "issuer": "This side issues",
    "holder": "This side holds",
    "verifier": "This side verifies",
    "prover": "This side proves",
}


def label_of(row: Subject) -> str:
    """The state in the words of the API, or how it ended if the state does not say."""
    if isinstance(row, Connection) and row.left_at:
        return ENDED
    if isinstance(row, Verification) and row.is_valid is not None:
        return VALID if row.is_valid else NOT_VALID
    return str(row.state)


def words_of(row: Subject) -> Words:
    return TABLES[type(row)][row.role, label_of(row)]


def badge_of(row: Subject) -> str:
    """The CSS class of the state, in the studio."""
    badge = words_of(row).badge
    return "bad" if row.problem and badge != "good" else badge


def next_step(row: Subject) -> str:
    """What happened last, and what has to happen next, for staff."""
    words = words_of(row)
    if isinstance(row, Connection):
        if row.left_at:
            return words.staff
        if row.problem:
            return REFUSED
        if row.multi_party:
            return FOR_MANY
        return HELD if row.is_held else words.staff
    link = row.live_connection if words.by_link else None
    if link and link.is_open:
        return words.by_link
    is_told = label_of(row) == NOT_VALID and row.role == Verification.Role.PROVER
    return (
        f"{words.staff} {UNEXPLAINED}" if is_told and not row.problem else words.staff
    )
