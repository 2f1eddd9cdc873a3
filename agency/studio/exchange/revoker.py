"""By whom a credential was revoked, as the log of the organization has it."""

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Q

from agency.studio.exchange.timeline import Entry
from credentials.models import Credential
from tenants.models import AuditEntry, LoggedRequest, Membership, Permission
from webhooks.events.types import Type
from webhooks.models import Event

ONE, MANY = "credential.revoked", "credential.many_revoked"
WITHIN = timedelta(minutes=1)  # which revoking many at once takes at most


def find_revoker(
    membership: Membership, row: Credential, timeline: Sequence[Entry]
) -> str:
    """Whoever has revoked a credential, or "" if nobody may be told or it is not known.

    A person of the log, for who may read that; or the key of the API call that caused
    the event in the timeline. In two queries at most.
    """
    is_issuer = row.role == Credential.Role.ISSUER
    if not is_issuer or row.state != Credential.State.REVOKED:
        return ""
    events = (one.row for one in timeline if isinstance(one.row, Event))
    event = next((one for one in events if one.type == Type.CREDENTIAL_REVOKED), None)
    if event and event.request_id:
        calls = LoggedRequest.objects.filter(request_id=event.request_id)
        call = calls.filter(tenant=row.tenant_id).select_related("key").first()
        return f"the key {call.key.name}" if call and call.key.name else "a key"
    if not membership.may(Permission.LOG):
        return ""
    told = Q(action=ONE, object_id=str(row.pk))
    if event:  # that of many is of the transaction of the event
        then = (event.created_at - WITHIN, event.created_at + WITHIN)
        of_many = Q(action=MANY, object_id=str(row.definition.pk))
        told |= of_many & Q(created_at__range=then)
    entries = AuditEntry.objects.filter(told, tenant=row.tenant_id).order_by("pk")[:10]
    own = [one for one in entries if one.action == ONE] or entries
    names = {one.actor_name or one.get_actor_kind_display() for one in own}
    # Of two who have revoked many at that time, it may be either.
    return names.pop() if len(names) == 1 else ""
