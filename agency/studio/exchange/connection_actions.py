"""What people do with a connection beside deleting it: ping, new key, hang up."""

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render

from agency.studio.exchange.kinds import ConnectionPage
from agency.studio.form_tokens import OnceForm
from agency.studio.pages import MemberRequest, member_action
from connections.protocols import did_rotate, trust_ping
from tenants import audit
from tenants.models import Permission


@member_action("studio:connection", needs=Permission.OPERATE)
def ping_connection(request: MemberRequest, object_id: UUID) -> str:
    """Send a ping, and record it, in one transaction.

    A wallet that is hosted here has answered before the commit: so the row is read
    again.
    """
    row = ConnectionPage.find(request.tenant, object_id).row
    audit.recorded(trust_ping.send_ping, "connection.pinged", row, by=request)(row)
    row.refresh_from_db(fields=["ping_answered_at"])
    if row.ping_answered_at:
        return "The other side has answered the ping."
    return "The ping is sent. Below is when it was answered."


@member_action("studio:connection", needs=Permission.OPERATE)
def rotate_key(request: MemberRequest, object_id: UUID) -> str:
    """Offer the other side a new key of ours for this connection.

    Sent and recorded in one transaction. 409 `rotation_unknown` and `rotation_pending`
    are shown on the page.
    """
    row = ConnectionPage.find(request.tenant, object_id).row
    audit.recorded(did_rotate.rotate, "connection.key_rotated", row, by=request)(row)
    return "A new key is sent. It is used once the other side agrees."


@member_action("studio:connection", needs=Permission.OPERATE, asks=True)
def end_connection(request: MemberRequest, object_id: UUID) -> HttpResponse | str:
    """Hang up after a question: the connection stays, to be read.

    Its open exchanges end, the other side is told, and it is recorded, in one
    transaction.
    """
    row = ConnectionPage.find(request.tenant, object_id).row
    if request.method != "POST":
        context = {"connection": row, "form": OnceForm()}
        return render(request, "studio/end_connection.html", context)
    audit.recorded(row.end, "connection.ended", row, by=request)()
    return "It is ended, and the other side is told."
