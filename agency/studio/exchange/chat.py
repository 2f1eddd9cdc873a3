"""The messages of a connection as a chat, for those who may write there.

Only of the organization's own connections: what a holder writes is the holder's.
"""

from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from agency.studio.exchange.kinds import ConnectionPage
from agency.studio.form_tokens import OnceForm
from agency.studio.newest_first import Page, read_page
from agency.studio.pages import MemberRequest, member_page
from agency.words.messages import TEXT_BADGES
from connections.models import BasicMessage, Connection
from connections.protocols import basic_message
from connections.protocols.basic_message import DeliveryState
from core.errors import AgencyError
from tenants import audit
from tenants.models import Permission, Tenant

TEMPLATE = "studio/chat.html"


class TextForm(OnceForm):
    text = forms.CharField(
        label="Your message",
        max_length=basic_message.MAX_CONTENT,
        widget=forms.Textarea({"rows": 3, "dir": "auto"}),
    )

    def clean_text(self) -> str:
        """Return it as it was typed: browsers send each new line as two characters."""
        text: str = self.cleaned_data["text"]
        return text.replace("\r\n", "\n")


@member_page("GET", "POST", needs=Permission.OPERATE, once="studio:chat")
def show_chat(request: MemberRequest, object_id: UUID) -> HttpResponse:
    row = get_own_connection(request.tenant, object_id)
    form = TextForm(request.POST or None)
    if form.is_valid():
        send_text(request, row, form.cleaned_data["text"])
        return redirect("studio:chat", request.tenant.pk, object_id)
    return render(request, TEMPLATE, {**vars(read_chat(request, row)), "form": form})


def send_text(request: HttpRequest, row: Connection, text: str) -> None:
    """Send a text, and record that somebody wrote but not what, in one transaction.

    A refusal, as of a connection that has ended, is shown on the page.
    """
    send = audit.recorded(
        lambda: basic_message.send_text(row, text),
        "connection.written",
        row,
        by=request,
    )
    try:
        send()
    except AgencyError as error:
        messages.error(request, error.message)


@member_page("GET", needs=Permission.OPERATE)
def show_live(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """The messages alone. 204 while they are what the page shows."""
    chat = read_chat(request, get_own_connection(request.tenant, object_id))
    if request.GET.get("seen") == chat.version:
        return HttpResponse(status=204)
    return render(request, f"{TEMPLATE}#live", vars(chat))


def get_own_connection(tenant: Tenant, object_id: UUID) -> Connection:
    """Return a connection of the organization's own wallet.

    404 for a connection of a hosted wallet: its messages are the holder's.
    """
    row = ConnectionPage.find(tenant, object_id).row
    if not row.wallet.is_organization:
        raise Http404
    return row


@dataclass(frozen=True)
class ShownText:
    row: BasicMessage
    is_ours: bool
    text: str
    state: DeliveryState | None

    @property
    def badge(self) -> str:
        return TEXT_BADGES[self.state] if self.state else ""


@dataclass(frozen=True)
class Chat:
    """What the page shows: a page of messages, with the newest at its end.

    version: the browser asks for the version again and again while the newest page is
    shown, and loads the messages if it has changed.
    """

    connection: Connection
    name: str
    texts: list[ShownText]
    page: Page[BasicMessage]
    is_newest: bool
    can_write: bool
    version: str


def read_chat(request: MemberRequest, row: Connection) -> Chat:
    page = read_page(request, BasicMessage.objects.filter(connection=row))
    for text in page.rows:
        text.connection, text.tenant = row, request.tenant
    states = basic_message.read_states(page.rows)
    texts = [
        ShownText(
            row=text,
            is_ours=text.direction == BasicMessage.Direction.OUTGOING,
            text=text.unseal_text(),
            state=states.get(text.pk),
        )
        for text in reversed(page.rows)
    ]
    seen = [(one.row.pk, str(one.state or "")) for one in texts]
    return Chat(
        connection=row,
        name=row.name or row.connection_id,
        texts=texts,
        page=page,
        is_newest=not page.newer,
        can_write=row.state == "Connected" and not row.left_at,
        version=sha256(repr(seen).encode()).hexdigest()[:16],
    )
