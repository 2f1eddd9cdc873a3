"""What the exchange page says of one object: of any kind here, of each in kinds.py.

shown() is the same for the studio's people and for support, without values and links.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone

from agency.studio.exchange.api_answer import MASK, masked_json
from agency.studio.exchange.timeline import Entry, timeline_of
from agency.studio.exchange.values import Value, free_texts
from agency.studio.objects import name_of
from agency.words.cards import Card
from agency.words.reasons import Unproven
from agency.words.states import (
    ROLES,
    Subject,
    badge_of,
    label_of,
    next_step,
    outcome_of,
    step_label,
)
from connections.models import Connection
from core.api.serializers import Contract
from credentials.models import Credential
from tenants.models import Tenant
from verifications.models import Verification, VerificationPolicy
from verifications.proofs.failures import CauseInWords, CheckInWords

Row = TypeVar("Row", bound=Subject)
Thread = TypeVar("Thread", bound=Credential | Verification)
# Seconds for which the page is read again after the last change: webhooks are called
# soon after it.
WATCHED_AFTER_CHANGE = 30


@dataclass(frozen=True)
class Step:
    label: str
    is_past: bool = False
    is_current: bool = False


class Related(NamedTuple):
    """An exchange over a connection. url: the name of its route."""

    pk: UUID
    state: str
    role: str
    created_at: datetime
    kind: str

    @property
    def url(self) -> str:
        return f"studio:{self.kind}"


@dataclass(frozen=True)
class Shown:
    """What the page shows to everybody: the context of its templates.

    is_watched, version: the browser asks for the version again and again while the
    page is watched, and reloads it when that has changed.
    """

    object: Subject
    kind: str
    title: str
    state: str
    badge: str
    steps: list[Step]
    next_step: str
    problem: str
    role: str
    connection: Connection | None
    checks: dict[str, list[CheckInWords]]
    causes: list[CauseInWords]
    unproven: list[Unproven]
    timeline: list[Entry]
    is_watched: bool
    version: str


class ExchangePage(ABC, Generic[Row]):
    """The page of one connection, credential or verification.

    kind: its name, also that of the route. contract: of its answer in the API.
    cancel_labels: of the button that declines it, by role.
    """

    kind: ClassVar[str]
    contract: ClassVar[type[Contract]]
    cancel_labels: ClassVar[dict[str, str]] = {}

    def __init__(self, row: Row) -> None:
        self.row = row

    @classmethod
    @abstractmethod
    def rows(cls) -> QuerySet[Row]:
        """All objects of this kind, with what the page reads of them."""

    @classmethod
    def listed(cls) -> QuerySet[Row]:
        """Those that have a page in the studio."""
        return cls.rows()

    @classmethod
    def find(cls, tenant: Tenant, object_id: UUID) -> Self:
        """The page of an object of the organization. Raises Http404.

        404 too for connections that the API does not list.
        """
        rows = cls.listed().filter(tenant=tenant).select_related("wallet")
        row = get_object_or_404(rows, pk=object_id)
        row.tenant = tenant
        return cls(row)

    @property
    @abstractmethod
    def connection(self) -> Connection | None:
        """The connection of an exchange; None once it was deleted."""

    @property
    def list_url(self) -> str:
        """The address of the list in which the object is."""
        row, name = self.row, f"{self.kind}s"
        if row.wallet.is_organization:
            return reverse(f"studio:{name}", args=[row.tenant_id])
        return reverse(f"studio:wallet_{name}", args=[row.tenant_id, row.wallet_id])

    @abstractmethod
    def states(self) -> list[str]:
        """All steps in their order, for the way that this object took."""

    def steps(self) -> list[Step]:
        """The steps behind it, the current one, and those to come."""
        states = [str(state) for state in self.states()]
        current = states.index(outcome_of(self.row))
        return [
            Step(
                step_label(self.row, state),
                is_past=number < current,
                is_current=number == current,
            )
            for number, state in enumerate(states)
        ]

    @abstractmethod
    def has_ended(self) -> bool:
        """Whether it has reached a state in which nothing more is waited for."""

    def is_watched(self) -> bool:
        """Whether the page is read again. Deliveries follow soon after the last change."""
        age = (timezone.now() - self.row.updated_at).total_seconds()
        return not self.has_ended() or age < WATCHED_AFTER_CHANGE

    def checks(self) -> dict[str, list[CheckInWords]]:
        """The verifier's checks by status. Empty without a verdict."""
        return {}

    def causes(self) -> list[CauseInWords]:
        return []

    def unproven(self, causes: list[CauseInWords]) -> list[Unproven]:
        """What was asked and no card has proven."""
        return []

    @abstractmethod
    def actions(self) -> dict[str, bool]:
        """What its state lets people do now."""

    @property
    def has_verdict(self) -> bool:
        return False

    def card(self, values: Mapping[str, str] | None = None) -> Card | None:
        """The card that it is about, without values unless these are given."""
        return None

    def find_policy(self) -> VerificationPolicy | None:
        """The policy by which it was asked, with which the next one can be asked."""
        return None

    @abstractmethod
    def link(self) -> str:
        """The short link while somebody can use it, or ""."""

    def invitation(self) -> dict[str, str]:
        """The deep link and the JSON of an invitation that link() shows.

        Not of an offer or a request: their messages name values.
        """
        return {}

    def exchanges(self) -> list[Related]:
        """The newest exchanges over a connection."""
        return []

    @abstractmethod
    def reason(self) -> str | None:
        """Why it ended, in the words of somebody."""

    @abstractmethod
    def attributes(self) -> Iterator[Value]:
        """What it is about, with the values."""

    def values(self) -> list[Value]:
        """All names with their values. The caller records who reads them, and why."""
        return [*self.attributes(), *free_texts(self.row, self.reason())]

    def masked_values(self) -> list[Value]:
        """All names, with masks in place of values."""
        return [replace(one, text=MASK) if one.text else one for one in self.values()]

    @property
    def hides_invitation(self) -> bool:
        """Whether the invitation holds a message that names values."""
        return False

    def masked_json(self, request: HttpRequest, *, links: bool) -> str:
        """The JSON of the API with each value masked, and without `links` each link."""
        answer = self.contract(self.row, context={"request": request}).data
        return masked_json(
            self.row, answer, hides_invitation=self.hides_invitation, links=links
        )

    def shown(self) -> Shown:
        row = self.row
        entries = timeline_of(row, self.connection)
        causes = self.causes()
        return Shown(
            object=row,
            kind=self.kind,
            title=name_of(row) or row.public_id,
            state=label_of(row),
            badge=badge_of(row),
            steps=self.steps(),
            next_step=next_step(row),
            problem=row.problem_in_words,
            role=ROLES[row.role],
            connection=self.connection,
            checks=self.checks(),
            causes=causes,
            unproven=self.unproven(causes),
            timeline=entries,
            is_watched=self.is_watched(),
            version=self.version(entries),
        )

    def version(self, entries: list[Entry]) -> str:
        """A digest of all on the page that can change."""
        shown: list[tuple[UUID | str, int | str, int | bool]] = [
            (str(self.row.state), self.row.sequence, self.is_watched())
        ]
        for entry in entries:
            shown.append((entry.row.pk, entry.status, entry.failures))
            told = [one.delivery for one in entry.deliveries]
            shown += [(one.pk, one.status, one.calls) for one in told]
        return sha256(repr(shown).encode()).hexdigest()[:16]


class ThreadPage(ExchangePage[Thread]):
    """The page of a credential or a verification.

    asked: the role and the state in which a holder is asked.
    """

    asked: ClassVar[tuple[str, str]]

    @property
    def connection(self) -> Connection | None:
        return self.row.live_connection

    def has_ended(self) -> bool:
        return self.row.state not in self.row.OPEN

    def actions(self) -> dict[str, bool]:
        is_open = self.row.state in self.row.OPEN
        return {"can_cancel": is_open, "can_accept": self.may_accept}

    @property
    def may_accept(self) -> bool:
        """Whether a hosted wallet has an open offer or request."""
        is_asked = (self.row.role, self.row.state) == self.asked
        return is_asked and not self.row.wallet.is_organization

    def link(self) -> str:
        """The link that the exchange began with, while it can be used."""
        link = self.row.own_link
        if link is None or not link.is_open or self.has_ended():
            return ""
        return link.invitation_url or ""

    def reason(self) -> str | None:
        return self.row.unsealed_reason()
