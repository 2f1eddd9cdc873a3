"""What is done with the rows that are ticked in a list, after a page that names them.

At most a page of rows. What is done with one is what its own page does, in one
transaction with its entry in the log.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from agency.studio import ask_again
from agency.studio.exchange.kinds import KINDS, VerificationPage, exchange_page
from agency.studio.form_tokens import OnceForm
from agency.studio.lists import (
    ACTS,
    LINKS,
    PAGE_SIZE,
    REVOKE,
    ListForm,
    ObjectList,
)
from agency.studio.named_people import name_people
from agency.studio.objects import (
    Row,
    mark_of,
    name_of,
    of_tenant,
    recipient_of,
    with_policy_names,
    with_schema_names,
)
from agency.studio.pages import MemberRequest, View, member_page
from agency.studio.printed_codes import Code, render_codes
from agency.words.states import Subject
from connections.messaging import outbox
from connections.models import Connection, OutboundMessage
from core.api.views import heavy
from core.database.uuids import parse_uuid
from core.errors import AgencyError
from core.text.csv_text import line_writer, safe_cell
from core.work import network_reads, transactions
from credentials import revocation
from credentials.models import Credential
from credentials.offer_again import offer_again, why_not_again
from tenants import audit
from tenants.models import Membership, Permission, Tenant
from verifications.models import Verification
from wallets.models import Wallet

MAX_QUERY = 1000  # characters of the filter of the list
NOTHING = "Tick at least one row first."
NO_LINK = "It has no link that waits."
REVOKED = "It is revoked: open it, and issue it again."
NOT_OURS = "The organization did not begin it."


@dataclass
class Choice:
    """A ticked row, and what would be done with it.

    why_not: a sentence, if nothing is. what: else in words. link: that waits, which is
    shown instead of doing anything.
    unsent: its messages that have not arrived.
    """

    row: Subject
    why_not: str = ""
    what: str = ""
    link: str = ""
    is_done: bool = False
    unsent: list[OutboundMessage] = field(default_factory=list)


def chosen_page(kind: ObjectList[Row]) -> View:
    """Return the view for the ticked rows of a list."""

    @heavy
    @member_page("GET", "POST", needs=Permission.OPERATE, once=f"studio:{kind.name}")
    def act_on_chosen(request: MemberRequest) -> HttpResponse:
        """Show what is about to be done with each row; a form does it once.

        What cannot be done any more is left out, and counted in the answer.
        """
        given = request.POST if request.method == "POST" else request.GET
        act = given.get("act", "")
        rows = find_rows(request.tenant, kind, given.getlist("chosen"))
        if act not in kind.acts or not rows:
            messages.warning(request, NOTHING)
            return to_list(request, kind, given)
        choices = plan(act, rows)
        if request.method == "POST" and act != LINKS:
            perform(request, act, choices)
            return to_list(request, kind, given)
        linked = [one for one in choices if one.link]
        if linked and request.GET.get("as") == "csv":
            return download_links(linked, request.membership)
        if linked and request.GET.get("as") == "print":
            return print_links(request, linked)
        meant = [one for one in choices if not one.why_not and not one.link]
        context = {
            "kind": kind,
            "act": act,
            "label": ACTS[act],
            "meant": meant,
            "others": [one for one in choices if one.why_not],
            "linked": linked,
            "links": lines_of(linked, request.membership),
            "back": list_query(given),
            "form": OnceForm(),
        }
        return render(request, "studio/chosen.html", context)

    return act_on_chosen


def find_rows(
    tenant: Tenant, kind: ObjectList[Row], given: Sequence[str]
) -> list[Subject]:
    """The rows of the organization's own wallet among these keys, the newest first."""
    keys = [key for one in given[:PAGE_SIZE] if (key := parse_uuid(one))]
    if not keys:
        return []
    rows = KINDS[kind.singular].listed()
    if rows.model is Credential:
        rows = with_schema_names(rows)
    elif rows.model is Verification:
        rows = with_policy_names(rows)
    own = rows.filter(wallet=Wallet.of_organization(tenant), pk__in=keys)
    found: list[Subject] = of_tenant(tenant, own.order_by("-pk"))
    for row in found:
        row.wallet.tenant = tenant
    name_people(tenant, found)
    return found


def plan(act: str, rows: list[Subject]) -> list[Choice]:
    """What the act would do with each row. One query, or none."""
    if act == REVOKE:
        return [plan_revocation(row) for row in rows if isinstance(row, Credential)]
    if act == LINKS:
        return [plan_link(row) for row in rows]
    sent = [row for row in rows if not isinstance(row, Connection)]
    unsent = find_unsent(sent)
    return [plan_sending(row, unsent[row.pk]) for row in sent]


def plan_revocation(row: Credential) -> Choice:
    if row.role != Credential.Role.ISSUER:
        return Choice(row, NOT_OURS)
    if row.state == Credential.State.REVOKED:
        return Choice(row, "It is revoked already.", is_done=True)
    if row.state != Credential.State.ISSUED:
        return Choice(row, "It is not issued.")
    if row.revocation_index is None:
        return Choice(row, "Its definition does not support it.")
    return Choice(row)


def plan_link(row: Subject) -> Choice:
    page = exchange_page(row)
    connection = page.connection
    link = "" if connection is None or connection.is_expired else page.link()
    return Choice(row, link=link) if link else Choice(row, NO_LINK)


def plan_sending(
    row: Credential | Verification, unsent: list[OutboundMessage]
) -> Choice:
    if row.role not in (Credential.Role.ISSUER, Verification.Role.VERIFIER):
        return Choice(row, NOT_OURS)
    if isinstance(row, Verification) and VerificationPage(row).has_verdict:
        return Choice(row, what="A new request, by the same policy")
    if isinstance(row, Credential) and not why_not_again(row):
        return Choice(row, what="A new offer, with the same values")
    if unsent:
        return Choice(row, what="Its message, which has not arrived", unsent=unsent)
    if row.state not in row.OPEN:
        is_rejected = row.state == Credential.State.REJECTED
        if is_rejected and isinstance(row, Credential):
            return Choice(row, why_not_again(row))
        if row.state == Credential.State.REVOKED:
            return Choice(row, REVOKED)
        return Choice(row, "It is done.")
    if (waiting := plan_link(row)).link:
        return waiting
    return Choice(row, "It has arrived, and waits for an answer.")


def find_unsent(
    rows: Iterable[Credential | Verification],
) -> dict[UUID, list[OutboundMessage]]:
    """The messages to other agents that have not arrived, by the key of their row."""
    threads = {(row.connection_id, row.thread_id): row.pk for row in rows}
    found: dict[UUID, list[OutboundMessage]] = defaultdict(list)
    waiting = OutboundMessage.objects.filter(
        connection__in={connection for connection, _ in threads if connection},
        thread_id__in={thread for _, thread in threads},
    ).exclude(status=OutboundMessage.Status.DONE)
    for message in waiting.order_by("pk"):
        key = threads.get((message.connection_id, message.thread_id))
        if key and message.can_be_resent:
            found[key].append(message)
    return found


def lines_of(choices: list[Choice], membership: Membership) -> str:
    """A line for each: whom it is for and the link, in two columns."""
    return "\n".join(
        f"{safe_cell(who_of(one.row, membership))}\t{one.link}" for one in choices
    )


def download_links(choices: list[Choice], membership: Membership) -> HttpResponse:
    """The same as a CSV file."""
    write_line = line_writer()
    lines = [("for", "link")]
    lines += [(who_of(one.row, membership), one.link) for one in choices]
    return HttpResponse(
        "".join(map(write_line, lines)),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="links.csv"'},
    )


def print_links(request: MemberRequest, choices: list[Choice]) -> HttpResponse:
    """The same as QR codes, each with whom it is for."""
    codes = [
        Code(who_of(one.row, request.membership), name_of(one.row), one.link)
        for one in choices
    ]
    before = request.GET.copy()
    del before["as"]
    return render_codes(request, codes, f"{request.path}?{before.urlencode()}")


def who_of(row: Subject, membership: Membership) -> str:
    """For whom a row is, as the lists say it, in one line."""
    connection = exchange_page(row).connection
    recipient = recipient_of(row, membership)
    mark = "" if isinstance(row, Connection) else mark_of(row, recipient)
    name = recipient or (connection.name if connection else "") or name_of(row)
    return " ".join([*name.split(), *mark.split()]) or row.public_id


def perform(request: MemberRequest, act: str, choices: list[Choice]) -> None:
    """Do it, and say in one sentence what was done and what was not, and why."""
    meant = [one for one in choices if not one.why_not and not one.link]
    if act == REVOKE:
        done, word, refused = revoke_chosen(request, meant), "revoked", Counter[str]()
    else:
        word = "sent again"
        done, refused = send_chosen(request, meant)
    before = sum(one.is_done for one in choices)
    refused += Counter(
        one.why_not for one in choices if one.why_not and not one.is_done
    )
    counted = [f"{done} {word}"]
    if before:
        counted.append(f"{before} already {'was' if before == 1 else 'were'}")
    sentences = [f"{', '.join(counted)}."]
    sentences += [f"{number} not: {why}" for why, number in refused.items()]
    show = messages.success if done else messages.warning
    show(request, " ".join(sentences))


def revoke_chosen(request: MemberRequest, choices: list[Choice]) -> int:
    """Revoke them in one transaction, then publish and tell the holders.

    If a ledger does not answer they are revoked all the same, and the page says that
    the list follows.
    """
    rows = Credential.objects.filter(pk__in=[one.row.pk for one in choices])
    with transactions.atomic():
        revoked = revocation.mark_revoked(rows)
        for row in revoked:
            audit.record("credential.revoked", row, by=request)
    try:
        revocation.publish_and_notify_all(rows)
    except AgencyError as error:
        messages.error(request, error.message)
    return len(revoked)


def send_chosen(
    request: MemberRequest, choices: list[Choice]
) -> tuple[int, Counter[str]]:
    """Send each again, in a transaction of its own. Return how many, and refusals."""
    refused: Counter[str] = Counter()
    for one in choices:
        try:
            send_one(request, one)
        except AgencyError as error:
            refused[error.message] += 1
    return len(choices) - refused.total(), refused


def send_one(request: MemberRequest, choice: Choice) -> None:
    row = choice.row
    send: Callable[[], Credential | Verification]
    if choice.unsent:
        with transactions.atomic():
            for message in choice.unsent:
                outbox.resend_message(message)
                audit.record("message.resent", message, by=request)
        return
    if isinstance(row, Credential):
        action, send = "credential.offered", partial(offer_again, row)
    else:
        assert isinstance(row, Verification), "connections are not sent again"
        action = "verification.requested"
        send = partial(ask_again.send_again, request.tenant, row)
    network_reads.retry_transaction(audit.recorded(send, action, by=request))


def list_query(given: QueryDict) -> str:
    """The query of the list that the rows were ticked in, of what a list knows."""
    back = QueryDict(given.get("back", "")[:MAX_QUERY], mutable=True)
    for name in set(back) - set(ListForm.base_fields):
        del back[name]
    return back.urlencode()


def to_list(
    request: MemberRequest, kind: ObjectList[Row], given: QueryDict
) -> HttpResponse:
    """Redirect to the list, with the filter and the page that it had."""
    address = reverse(f"studio:{kind.name}", args=[request.tenant.pk])
    query = list_query(given)
    return redirect(f"{address}?{query}" if query else address)
