"""What people do with a connection beside deleting it: ping, new key, hang up."""

from functools import partial
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agency.studio.exchange.actions import run_action
from agency.studio.exchange.kinds import KINDS
from agency.studio.exchange.views import get_object, to_object_page
from agency.studio.form_tokens import OnceForm, once_per_form
from agency.studio.pages import get_membership, studio_page
from connections.protocols import did_rotate, trust_ping
from core.errors import AgencyError
from tenants import audit
from tenants.models import Permission

KIND = KINDS["connection"]
once_per_connection = once_per_form(
    back="studio:connection", keep=("tenant_id", "object_id")
)


@studio_page("POST")
@once_per_connection
def ping_connection(
    request: HttpRequest, tenant_id: UUID, object_id: UUID
) -> HttpResponse:
    """Send a ping, and record it, in one transaction.

    A wallet that is hosted here has answered before the commit: so the row is read
    again.
    """
    tenant = get_membership(request, tenant_id, Permission.OPERATE).tenant
    row = get_object(tenant, KIND, object_id)
    try:
        ping = audit.recorded(
            trust_ping.send_ping, "connection.pinged", row, by=request
        )
        ping(row)
    except AgencyError as error:
        messages.error(request, error.message)
        return to_object_page(row)
    row.refresh_from_db(fields=["ping_answered_at"])
    answered = "The other side has answered the ping."
    sent = "The ping is sent. Below is when it was answered."
    messages.success(request, answered if row.ping_answered_at else sent)
    return to_object_page(row)


@studio_page("POST")
@once_per_connection
def rotate_key(request: HttpRequest, tenant_id: UUID, object_id: UUID) -> HttpResponse:
    """Offer the other side a new key of ours for this connection.

    Sent and recorded in one transaction. 409 `rotation_unknown` and `rotation_pending`
    are shown on the page.
    """
    tenant = get_membership(request, tenant_id, Permission.OPERATE).tenant
    row = get_object(tenant, KIND, object_id)
    rotate = audit.recorded(
        partial(did_rotate.rotate, row), "connection.key_rotated", row, by=request
    )
    done = "A new key is sent. It is used once the other side agrees."
    return run_action(request, row, rotate, done)


@studio_page("GET", "HEAD", "POST")
@once_per_connection
def end_connection(
    request: HttpRequest, tenant_id: UUID, object_id: UUID
) -> HttpResponse:
    """Hang up after a question: the connection stays, to be read.

    Its open exchanges end, the other side is told, and it is recorded, in one
    transaction.
    """
    membership = get_membership(request, tenant_id, Permission.OPERATE)
    row = get_object(membership.tenant, KIND, object_id)
    if request.method != "POST":
        context = {
            "membership": membership,
            "tenant": membership.tenant,
            "connection": row,
            "form": OnceForm(),
        }
        return render(request, "studio/end_connection.html", context)
    end = audit.recorded(row.end, "connection.ended", row, by=request)
    return run_action(request, row, end, "It is ended, and the other side is told.")
