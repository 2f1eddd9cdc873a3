"""What each state of an exchange says to each who reads of it.

Texts for holders are translated, those for staff are English. What an error of the API
says of a state (`steps` of the models) stands with the transitions, below all faces.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from agency.words.links import LinkState
from connections.models import Connection
from credentials.models import Bulk, Credential
from verifications.models import Verification
from verifications.wording import ended_on

Text = str | Promise
Subject = Connection | Credential | Verification
C, D, V = Connection.State, Credential.State, Verification.State
# What is shown of rows whose state does not say how they ended.
ENDED, VALID, NOT_VALID = "Ended", "Valid", "Not valid"
WAITS = "Waits for your answer"
RUN_OUT = "Run out"  # of a card that is issued, and whose last day is over
WITHOUT_CARD, WITHOUT_ANSWER = "Ended without a card", "Ended without an answer"


@dataclass(frozen=True)
class Words:
    """A row of a table: what is said in one state, of one role.

    staff: what happened last, and what has to happen next. by_link: the same while
    whoever has its link may take part. label: the state in plain words, in lists; step:
    in the row of all steps, if that differs. badge: its CSS class. holder: on
    the page of a web wallet; tag: in one or two words, in its lists. link: what the
    page of its link shows, unless that depends on the link. kiosk: the verdict on a
    screen.
    """

    staff: str
    label: str
    by_link: str = ""
    step: str = ""
    badge: str = "soon"
    holder: Text = ""
    tag: Text = ""
    link: LinkState | None = None
    kiosk: Text = ""


# By the role, and the state or how it ended.
Table = Mapping[tuple[str, str], Words]

CONNECTED = Words(
    "Both sides can offer credentials, ask for proofs and send messages.",
    label="Connected",
    badge="good",
)
HUNG_UP = Words(
    "One side has ended the connection: nothing more goes over it.",
    label=ENDED,
    badge="",
)
CONNECTION: Table = {
    ("inviter", C.INVITED): Words(
        "Nobody has accepted the invitation yet. Send its link again if it was lost.",
        label="Not accepted yet",
        step="Invited",
    ),
    ("inviter", C.NEGOTIATING): Words(
        "The other side has accepted, and the two agents exchange keys. If this takes "
        "longer than a minute, look at the last message below.",
        label="Being set up",
    ),
    ("inviter", C.CONNECTED): CONNECTED,
    ("inviter", ENDED): HUNG_UP,
    ("invitee", C.INVITED): Words(
        "The invitation is being answered. If this takes longer than a minute, look "
        "at the last message below.",
        label="Not answered yet",
        step="Invited",
    ),
    ("invitee", C.NEGOTIATING): Words(
        "The inviter has not answered yet. Look at the last message below; if it was "
        "sent, ask the inviter.",
        label="Being set up",
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
        "cancel.",
        label=WAITS,
        step="Proposed",
    ),
    ("issuer", D.OFFERED): Words(
        "The offer is in the wallet of the holder, who has not accepted it yet.",
        label="Not accepted yet",
        step="Offered",
        by_link="Nobody has accepted it yet.",
    ),
    ("issuer", D.REQUESTED): Words(
        "The holder has accepted. Issue it through the API, unless it is issued "
        "automatically.",
        label="Accepted, to be issued",
        step="Accepted",
        link=LinkState.ACCEPTED,
    ),
    ("issuer", D.ISSUED): Words(
        "The holder has the credential.",
        label="Has the card",
        step="Issued",
        badge="good",
        link=LinkState.DONE,
    ),
    ("issuer", D.REJECTED): Words(
        "It was ended before it was issued. Make a new offer if it is still wanted.",
        label=WITHOUT_CARD,
        badge="bad",
    ),
    ("issuer", D.REVOKED): Words(
        "The credential is revoked. Issue a new one if the holder needs one.",
        label="Revoked",
        badge="bad",
        link=LinkState.DONE,
    ),
    ("holder", D.PROPOSED): Words(
        "The issuer has to answer with an offer.",
        label="Not answered yet",
        step="Proposed",
        holder=ANSWERED_NEXT,
    ),
    ("holder", D.OFFERED): Words(
        "The owner of this wallet has to accept the offer or decline it.",
        label="Not accepted yet",
        step="Offered",
        holder=gettext_lazy(
            "If you accept, this card comes into your wallet. Nothing is shown to "
            "anybody else."
        ),
        tag=gettext_lazy("Offer"),
    ),
    ("holder", D.REQUESTED): Words(
        "The issuer has to issue it.",
        label="Accepted, to be issued",
        step="Accepted",
        holder=gettext_lazy(
            "You have accepted. The card comes into your wallet by itself as soon as "
            "it is issued, also when this page is closed."
        ),
        tag=gettext_lazy("On its way"),
    ),
    ("holder", D.ISSUED): Words(
        "The credential is in this wallet.",
        label="Has the card",
        step="Issued",
        badge="good",
        holder=gettext_lazy("The card is in your wallet."),
        tag=gettext_lazy("Valid"),
    ),
    ("holder", D.REJECTED): Words(
        "It was ended before it was issued. Ask the issuer for a new offer.",
        label=WITHOUT_CARD,
        badge="bad",
        holder=gettext_lazy("This offer was declined or withdrawn."),
    ),
    ("holder", D.REVOKED): Words(
        "The issuer has revoked the credential. Ask the issuer for a new one.",
        label="Revoked",
        badge="bad",
        holder=gettext_lazy("This card was cancelled: it is not valid any more."),
        tag=gettext_lazy("Cancelled"),
    ),
}

VERIFICATION: Table = {
    ("verifier", V.PROPOSED): Words(
        "The holder proposes what to show. Answer with a request through the API, or "
        "cancel.",
        label=WAITS,
        step="Proposed",
    ),
    ("verifier", V.REQUESTED): Words(
        "The request is in the wallet of the holder, who has not answered yet.",
        label="Not answered yet",
        step="Asked",
        by_link="Nobody has answered yet.",
    ),
    ("verifier", V.ACCEPTED): Words(
        "The holder has answered.", label="Answered", link=LinkState.FAILED
    ),
    ("verifier", VALID): Words(
        "The proof is valid: it shows what was asked for.",
        label=VALID,
        badge="good",
        link=LinkState.DONE,
        kiosk=gettext_lazy("Valid"),
    ),
    ("verifier", NOT_VALID): Words(
        "The proof is not valid.",
        label=NOT_VALID,
        badge="bad",
        link=LinkState.FAILED,
        kiosk=gettext_lazy("Not valid"),
    ),
    ("verifier", V.REJECTED): Words(
        "It was ended before a proof came. Ask again if it is still needed.",
        label=WITHOUT_ANSWER,
        badge="bad",
        kiosk=gettext_lazy("The request was declined"),
    ),
    ("prover", V.PROPOSED): Words(
        "The verifier has to answer with a request.",
        label="Not answered yet",
        step="Proposed",
        holder=ANSWERED_NEXT,
    ),
    ("prover", V.REQUESTED): Words(
        "The owner of this wallet has to choose credentials or decline.",
        label="Not answered yet",
        step="Asked",
        holder=gettext_lazy("Nothing is shown before you agree."),
        tag=gettext_lazy("Question"),
    ),
    ("prover", V.ACCEPTED): Words(
        "The proof was sent. The verifier has not said yet whether it is valid.",
        label="Answered",
        holder=gettext_lazy("Your answer was sent. The other side checks it."),
    ),
    ("prover", VALID): Words(
        "The verifier has found the proof valid.",
        label=VALID,
        badge="good",
        holder=gettext_lazy("Your answer was sent and accepted."),
    ),
    ("prover", NOT_VALID): Words(
        "The verifier has found the proof not valid.",
        label=NOT_VALID,
        badge="bad",
        holder=gettext_lazy("Your answer was sent, but it was not accepted."),
    ),
    ("prover", V.REJECTED): Words(
        "It was ended before a proof was sent. Ask the verifier for a new request.",
        label=WITHOUT_ANSWER,
        badge="bad",
        holder=gettext_lazy(
            "This question was declined or withdrawn. Nothing was shown."
        ),
    ),
}
RENEW = "Issue it again if the holder needs one."
UNEXPLAINED = "Only the verifier knows why."
TABLES: Mapping[type[Subject], Table] = {
    Connection: CONNECTION,
    Credential: CREDENTIAL,
    Verification: VERIFICATION,
}

BULK: Mapping[str, Words] = {
    Bulk.State.RUNNING: Words("The offers are being made.", "Running", badge=""),
    Bulk.State.PAUSED: Words(
        "No further offers are made until you resume it.", "Paused"
    ),
    Bulk.State.DONE: Words("No row waits any more.", "Done", badge="good"),
}

ROLES = {
    "inviter": "This side invited",
    "invitee": "This side accepted an invitation",
    "issuer": "This side issues",
    "holder": "This side holds",
    "verifier": "This side verifies",
    "prover": "This side proves",
}


def outcome_of(row: Subject) -> str:
    """The state in the words of the API, or how it ended if the state does not say."""
    if isinstance(row, Connection) and row.left_at:
        return ENDED
    if isinstance(row, Verification) and row.is_valid is not None:
        return VALID if row.is_valid else NOT_VALID
    return str(row.state)


def ran_out_on(row: Subject) -> date | None:
    """The last day of an issued card whose validity is over, else None.

    row: read by with_ends() of the studio. Else its values stay sealed, and it is None.
    """
    sealed = getattr(row, "ending_values", None)
    is_issued = row.state == D.ISSUED
    return ended_in(row.pk, row.tenant_id, sealed) if sealed and is_issued else None


def ended_in(card: UUID, tenant: UUID, sealed: bytes) -> date | None:
    """The last day of a card with these sealed values, if its validity is over."""
    # The constructor costs more than all else, and a list looks at thousands.
    names = ("id", "tenant_id", "values")
    row = Credential.from_db(None, names, (card, tenant, sealed))
    return ended_on(row.unsealed_values() or {})


def words_of(row: Subject) -> Words:
    return TABLES[type(row)][row.role, outcome_of(row)]


def label_of(row: Subject) -> str:
    """The state in plain words, for staff."""
    if isinstance(row, Connection) and not row.left_at:
        if row.problem:
            return "Refused"
        if row.multi_party:
            return "Open to all"
    return RUN_OUT if ran_out_on(row) else words_of(row).label


def labels_of(model: type[Subject], role: str) -> dict[str, str]:
    """The labels of one role by the state, or how it ended."""
    return {
        state: words.label for (of, state), words in TABLES[model].items() if of == role
    }


def step_label(row: Subject, state: str) -> str:
    """What the row of its steps says of a state that it has, had or will have."""
    words = TABLES[type(row)][row.role, state]
    return words.step or words.label


def badge_of(row: Subject) -> str:
    """The CSS class of the state, in the studio."""
    badge = "bad" if ran_out_on(row) else words_of(row).badge
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
    if day := ran_out_on(row):
        return f"Its last day was {day.day} {day:%b %Y}. {RENEW}"
    link = row.live_connection if words.by_link else None
    if link and link.is_open:
        return words.by_link
    is_told = outcome_of(row) == NOT_VALID and row.role == Verification.Role.PROVER
    return (
        f"{words.staff} {UNEXPLAINED}" if is_told and not row.problem else words.staff
    )
