"""The log of who changed what, why and from where.

Call record() in the transaction of the change: it inserts one row, which is committed
or rolled back with the change. Nobody changes or deletes a row before its time
(AUDIT_RETENTION_DAYS); a trigger of the database enforces that.
"""

import socket
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, models
from django.http import HttpRequest
from django.utils import timezone

from core.call import this_call
from core.database.columns import ColumnValue
from core.net.callers import client_address
from core.work import transactions
from core.work.retention import BatchBudget, days_ago, delete_in_batches
from tenants.models import ApiKey, AuditEntry, Tenant
from tenants.models.names import name_of

# The stable codes of actions, and what people read. docs/team.md lists them.
ACTIONS = {
    "organization.created": "Organization created",
    "organization.changed": "Settings changed",
    "organization.deleted": "Organization deleted",
    "organization.deletion_requested": "Deletion asked for by a key",
    "organization.deletion_undone": "Deletion undone",
    "organization.frozen": "Frozen for its move",
    "organization.thawed": "Works here again",
    "organization.exported": "Exported",
    "organization.imported": "Imported",
    "key.created": "Key created",
    "key.rotated": "Key rotated",
    "key.revoked": "Key revoked",
    "webhook.created": "Webhook created",
    "webhook.changed": "Webhook changed",
    "webhook.enabled": "Webhook enabled",
    "webhook.disabled": "Webhook disabled",
    "webhook.deleted": "Webhook deleted",
    "webhook.secret_rotated": "Signing secret rotated",
    "webhook.recovered": "Failed deliveries sent again",
    "delivery.resent": "Delivery sent again",
    "message.resent": "Message sent again",
    "publication.retried": "Publication tried again",
    "exchange.cancelled": "Exchange cancelled",
    "connection.invited": "Invitation to connect created",
    "connection.accepted": "Request to connect accepted",
    "connection.pinged": "Connection pinged",
    "connection.written": "Message written to a connection",
    "connection.key_rotated": "New key for a connection",
    "connection.ended": "Connection ended",
    "connection.deleted": "Connection deleted",
    "definition.created": "Definition created",
    "definition.designed": "Look of cards changed",
    "credential.offered": "Credential offered",
    "credential.issued": "Credential issued",
    "credential.many_revoked": "Many credentials revoked",
    "credential.revoked": "Credential revoked",
    "credential.mailed": "Link of an offer mailed",
    "bulk.started": "Issuing many started",
    "bulk.paused": "Issuing many paused",
    "bulk.resumed": "Issuing many resumed",
    "bulk.retried": "Failed rows of many tried again",
    "bulk.deleted": "Issuing many deleted",
    "bulk.mailed": "Links of many mailed",
    "bulk.reminded": "Reminders of many mailed",
    "bulk.mails_paused": "Mails of many paused",
    "bulk.mails_resumed": "Mails of many resumed",
    "bulk.mails_stopped": "Mails of many stopped",
    "exchange.accepted": "Accepted for a holder",
    "wallet.created": "Wallet created",
    "wallet.deleted": "Wallet deleted",
    "wallet.link_created": "Personal link created",
    "wallet.link_revoked": "Personal link revoked",
    "wallet.link_opened": "PIN chosen by the holder",
    "wallet.passkey_added": "Passkey added by the holder",
    "wallet.passkey_removed": "Passkey removed by the holder",
    "policy.created": "Policy created",
    "verification.requested": "Proof asked for",
    "kiosk.created": "Kiosk created",
    "kiosk.revoked": "Kiosk revoked",
    "trust_anchor.created": "Trust anchor added",
    "trust_anchor.deleted": "Trust anchor deleted",
    "certificates.uploaded": "Certificates uploaded",
    "certificates.removed": "Uploaded certificates removed",
    "simulated_holder.created": "Simulated holder created",
    "simulated_holder.changed": "Simulated holder changed",
    "simulated_holder.deleted": "Simulated holder deleted",
    "values.revealed": "Values revealed",
    "values.read": "Values read by the API",
    "record.viewed": "Record viewed",
    "member.invited": "Member invited",
    "member.joined": "Member joined",
    "member.added": "Member added",
    "member.role_changed": "Role changed",
    "member.left": "Member left",
    "member.removed": "Member removed",
    "invitation.resent": "Invitation sent again",
    "invitation.withdrawn": "Invitation withdrawn",
    "endpoint.published": "Endpoint of the public DID published",
    "did.created": "DID of did:webvh made",
    "did.keys_rotated": "Keys of the did:webvh rotated",
    "did.ended": "DID of did:webvh ended",
    "invitation.used": "Invitation used by a member",
    "agreement.accepted": "Ledger agreement accepted",
    "network.added": "Network added",
    "network.changed": "Network changed",
    "account.quotas_changed": "Quotas of an account changed",
    "person.signed_up": "Signed up",
    "person.signed_in": "Signed in",
    "person.signed_out": "Signed out",
    "person.sessions_ended": "Sessions ended",
    "person.password_changed": "Password changed",
    "person.email_added": "Mail address added",
    "person.email_confirmed": "Mail address confirmed",
    "person.email_changed": "Mail address changed",
    "person.email_removed": "Mail address removed",
    "person.second_factor_added": "Second factor added",
    "person.second_factor_removed": "Second factor removed",
    "person.recovery_codes_made": "Recovery codes generated",
    "person.disabled": "Person disabled",
    "person.enabled": "Person enabled",
}
MAX_REASON = 500
MAX_VALUE = 200  # characters of a value in the details
ADMIN_PATH = "/admin/"

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Actor(NamedTuple):
    kind: AuditEntry.ActorKind
    id: str = ""
    name: str = ""
    origin: str = ""


# A request of Django or of REST framework stands for who sent it.
Who: TypeAlias = HttpRequest | Actor
SYSTEM = Actor(AuditEntry.ActorKind.SYSTEM)


def record(
    action: str,
    target: models.Model,
    *,
    by: Who,
    tenant: Tenant | UUID | None = None,
    reason: str = "",
    **details: Any,
) -> None:
    """Insert the row of one action, in the transaction of the caller.

    action: a code of ACTIONS; ValueError for another. target: the object that was
    changed. tenant: whose
    log shows it; by default the organization of the object, if it has one. details: a
    few facts as JSON values, never secrets, credential values or names of holders;
    `audit_facts` of the object are added.
    """
    if action not in ACTIONS:
        raise ValueError(f"{action} is not in ACTIONS.")
    actor = by if isinstance(by, Actor) else actor_of(by)
    if tenant is None and isinstance(target, Tenant):
        tenant = target
    elif tenant is None:
        tenant = getattr(target, "tenant_id", None)
    request_id = this_call.request_id
    AuditEntry.objects.create(
        action=action,
        tenant_id=tenant.pk if isinstance(tenant, Tenant) else tenant,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_name=actor.name[:254],
        origin=actor.origin[:64],
        object_type=str(target._meta.model_name),
        object_id=str(target.pk),
        reason=reason[:MAX_REASON],
        request_id="" if request_id == "-" else request_id,
        details=getattr(target, "audit_facts", {}) | details,
    )


def record_reading(key: ApiKey, kind: str, *, by: Who) -> None:
    """Record that a key reads values of this kind: once a day (UTC).

    It is no statement at all once the day is on the row.
    """
    today = timezone.now().date().isoformat()
    if key.values_read_on.get(kind) == today:
        return
    with transactions.atomic():
        if key.mark_values_read(kind, today):
            record("values.read", key, by=by, values=kind)


def recorded(
    function: Callable[Parameters, Result],
    action: str,
    target: models.Model | None = None,
    **options: Any,
) -> Callable[Parameters, Result]:
    """Return a function that runs the given one and records it, in one transaction.

    It returns and raises what the given one does. target: the object, which is
    recorded first, because a deleted one has no id any more; by default what the
    function returns. options: of record().
    """

    @wraps(function)
    @transactions.atomic()
    def run_and_record(
        *arguments: Parameters.args, **named: Parameters.kwargs
    ) -> Result:
        if target:  # first, because a deleted object has no id any more
            record(action, target, **options)
        result = function(*arguments, **named)
        if not target:
            record(action, cast(models.Model, result), **options)
        return result

    return run_and_record


def actor_of(request: HttpRequest) -> Actor:
    """Return who sent this request: a person, staff in the admin, or an API key."""
    origin = client_address(request.META)
    key = getattr(request, "auth", None)
    if isinstance(key, ApiKey):
        return Actor(AuditEntry.ActorKind.KEY, str(key.pk), f"{key.hint}…", origin)
    user = getattr(request, "user", None)
    if user is not None and user.is_authenticated:
        return actor_of_person(user, request)
    return SYSTEM._replace(origin=origin)


def person_of(request: HttpRequest) -> User | None:
    """Return the person who sent this request, or who made its API key, or None."""
    key = getattr(request, "auth", None)
    if isinstance(key, ApiKey):
        return key.made_by
    user = getattr(request, "user", None)
    return user if user is not None and user.is_authenticated else None


def actor_of_person(user: User, request: HttpRequest | None) -> Actor:
    """Return this person as the actor, who may act without a request."""
    Kind = AuditEntry.ActorKind
    in_admin = request is not None and request.path.startswith(ADMIN_PATH)
    return Actor(
        Kind.STAFF if in_admin else Kind.PERSON,
        str(user.pk),
        name_of(user),
        client_address(request.META) if request is not None else "",
    )


def actor_of_command(name: str) -> Actor:
    """Return a command of manage.py as the actor, on this host."""
    return Actor(AuditEntry.ActorKind.COMMAND, name, name, socket.gethostname())


def describe_changes(
    row: models.Model, changes: Mapping[str, ColumnValue]
) -> dict[str, Any]:
    """Return the columns that the changes give another value, each with both values."""
    described = {}
    for name, value in changes.items():
        former = getattr(row, name)
        if former != value and (former or value):
            described[name] = [
                "" if one is None else str(one)[:MAX_VALUE] for one in (former, value)
            ]
    return described


def delete_old_entries() -> int:
    """Delete entries older than AUDIT_RETENTION_DAYS; 0 keeps all."""
    if not settings.AUDIT_RETENTION_DAYS:
        return 0
    old = AuditEntry.objects.filter(
        created_at__lt=days_ago(settings.AUDIT_RETENTION_DAYS)
    )
    return delete_in_batches(
        old.only("pk", "created_at"),
        BatchBudget(),
        by="created_at",
        before_delete=allow_deletion,
    )


def allow_deletion(batch: list[AuditEntry]) -> None:
    """Let the trigger accept deletions until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL agency.audit_retention = 'on'")
