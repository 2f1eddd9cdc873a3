"""The part of an organization's page that is read again: what there is to do and see."""

import json
from datetime import date, datetime
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from agency.studio.attention import list_attention_items
from agency.studio.checklist import STORY, checklist_of
from agency.studio.pages import MemberRequest, member_page
from agency.words.messages import EVENTS
from connections.models import Connection
from credentials.ledgers.reads import name_of_schema
from credentials.models import Credential
from tenants.lifecycle import statistics
from tenants.lifecycle.statistics import DayCount, OfferCount
from tenants.models import Tenant
from verifications.models import Verification
from wallets.models import Wallet
from webhooks.models import Event

PERIODS = (7, 30)  # days
MAX_EVENTS = 8
MAX_READ = 5 * MAX_EVENTS
# By the kind of what waits: its route, and what is said of it.
WAITING = {
    "offer": ("studio:credential", "Offer without an answer"),
    "acceptance": ("studio:credential", "Accepted, and not issued yet"),
    "request": ("studio:verification", "Request without an answer"),
}
LOOK_AGAIN_MS = 10_000
# Of a chart. Both charts of a pair have the same scale.
BAR_WIDTH, BAR_GAP, HEIGHT, LEAST_HEIGHT = 8, 2, 100, 4
PAIRS = (
    (("offers", "Offers"), ("credentials", "Issued")),
    (("valid_proofs", "Valid proofs"), ("invalid_proofs", "Proofs not valid")),
)


class Bar(NamedTuple):
    """x, y, height: in units of the chart."""

    day: date
    number: int
    x: int
    y: int
    height: int


class Chart(NamedTuple):
    name: str
    label: str
    total: int
    most: int
    bars: list[Bar]

    @property
    def width(self) -> int:
        return len(self.bars) * (BAR_WIDTH + BAR_GAP) - BAR_GAP


class Step(NamedTuple):
    """What became of the offers of a period. percent: of those offered, or None."""

    label: str
    number: int
    percent: int | None = None


class Wait(NamedTuple):
    """An exchange that nobody has gone on with.

    row: with what a list shows of its person. url: the name of its route.
    """

    row: Credential | Verification
    since: datetime
    about: str
    url: str
    label: str


class NewEvent(NamedTuple):
    pk: UUID
    title: str
    object_id: str
    created_at: datetime


@member_page("GET")
def show_live(request: MemberRequest) -> HttpResponse:
    """The live part alone. 204 while it is what the page shows."""
    own = Wallet.of_organization(request.tenant)
    context = overview_context(request, own)
    if request.GET.get("seen") == context["version"]:
        return HttpResponse(status=204)
    return render(request, "studio/overview.html", context)


def overview_context(request: MemberRequest, own: Wallet) -> dict[str, Any]:
    """Return what the live part shows.

    own: the organization's own wallet.
    version: the browser reads it again if that has changed. `days` in the query: 30,
    else 7.
    """
    days = 30 if request.GET.get("days") == "30" else 7
    counts = statistics.count_by_day(own, days, timezone.now())
    offers, found = statistics.count_offers(own, days, timezone.now())
    waiting = [describe_wait(own, one) for one in found]
    items = list_attention_items(request.membership)
    steps = checklist_of(request.membership)
    events = newest_events(request.tenant)
    shown = repr((items, steps, counts, offers, found, events))
    story = steps[: len(STORY)]
    return {
        "attention_items": items,
        "checklist": steps,
        "counts": counts,
        "offer_steps": steps_of(offers),
        "not_accepted": offers.waiting,
        "not_accepted_since": counts[0].day,
        "is_cut": offers.is_cut,
        "valid_percent": share_of_valid(counts),
        "waiting": waiting,
        "events": events,
        "is_begun": all(step.is_done for step in story),
        "first_steps": story,
        "more_steps": steps[len(STORY) :],
        # Where the next step is done, if this person may do it.
        "next_url": next((step.url for step in story if step.url), ""),
        "version": sha256(shown.encode()).hexdigest()[:16],
        "look_again_ms": LOOK_AGAIN_MS,
        "days": days,
        "periods": PERIODS,
        "charts": charts_of(counts),
        "height": HEIGHT,
        "bar_width": BAR_WIDTH,
    }


def charts_of(counts: list[DayCount]) -> list[Chart]:
    charts = []
    for pair in PAIRS:
        most = max(getattr(count, name) for count in counts for name, _ in pair)
        charts += [draw_chart(counts, name, label, most) for name, label in pair]
    return charts


def draw_chart(counts: list[DayCount], name: str, label: str, scale: int) -> Chart:
    """A bar for each day. scale: the number that is as high as the chart."""
    numbers = [getattr(count, name) for count in counts]
    bars = []
    for place, (count, number) in enumerate(zip(counts, numbers, strict=True)):
        # Whatever there was can be seen.
        height = max(LEAST_HEIGHT, HEIGHT * number // scale) if number else 0
        x = place * (BAR_WIDTH + BAR_GAP)
        bars.append(Bar(count.day, number, x, HEIGHT - height, height))
    return Chart(name, label, sum(numbers), max(numbers), bars)


def steps_of(offers: OfferCount) -> list[Step]:
    """From the offer to its use. Nothing without an offer."""
    if not offers.offered:
        return []
    return [
        Step("Offered", offers.offered),
        Step("Accepted", offers.accepted, percent_of(offers.accepted, offers.offered)),
        Step("In use", offers.in_use, percent_of(offers.in_use, offers.offered)),
    ]


def share_of_valid(counts: list[DayCount]) -> int | None:
    """The percentage of valid proofs among all that were checked, or None."""
    valid = sum(count.valid_proofs for count in counts)
    checked = valid + sum(count.invalid_proofs for count in counts)
    return percent_of(valid, checked) if checked else None


def percent_of(part: int, whole: int) -> int:
    """Rounded down, so that 100 means all."""
    return 100 * part // whole


def describe_wait(own: Wallet, found: statistics.Wait) -> Wait:
    url, label = WAITING[found.kind]
    about = name_of_schema(found.schema_id) if found.schema_id else ""
    return Wait(waiting_row(own, found), found.since, about, url, label)


def waiting_row(own: Wallet, found: statistics.Wait) -> Credential | Verification:
    """What was read of it, as the row of which a list shows the person."""
    peer = None
    if found.peer_connection_id is not None:
        peer = Connection(
            pk=found.peer,
            tenant_id=own.tenant_id,
            connection_id=found.peer_connection_id,
            name=found.peer_name or "",
            connectionless=bool(found.is_by_link),
        )
    read: dict[str, Any] = {
        "pk": found.pk,
        "tenant_id": own.tenant_id,
        "wallet": own,
        "connection": peer,
        "reference": found.reference,
    }
    if found.kind == "request":
        return Verification(role=Verification.Role.VERIFIER, **read)
    return Credential(
        role=Credential.Role.ISSUER, recipient_name=found.recipient_name, **read
    )


def newest_events(tenant: Tenant) -> list[NewEvent]:
    """Return the newest of the organization's own side.

    Without those that were sent as examples to a webhook, and among MAX_READ: the same
    step in a wallet hosted here has an event of its own.
    """
    rows = Event.objects.filter(tenant=tenant, is_example=False).order_by("-pk")
    columns = ("pk", "type", "object_id", "created_at", "body")
    own = [
        NewEvent(pk, EVENTS.get(kind, kind), object_id, created_at)
        for pk, kind, object_id, created_at, body in rows.values_list(*columns)[
            :MAX_READ
        ]
        if "wallet_id" not in json.loads(body)["data"]
    ]
    return own[:MAX_EVENTS]
