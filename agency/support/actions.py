"""What staff may do for a customer: each action by its permission, with a reason.

The change and its row of the audit log are one transaction. Each action has a page that
asks for the reason; the record's page leads to it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from allauth.account.models import EmailAddress
from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse

from agency.studio.form_tokens import OnceForm
from agency.support.customers import Staff, may_view
from connections.messaging import outbox
from connections.models import OutboundMessage
from core.errors import Conflict, Invalid
from credentials import publications
from credentials.models import Publication
from tenants import audit, members, sessions
from tenants.lifecycle import departures
from tenants.lifecycle.deletion import end_deletion, undo_deletion
from tenants.models import Membership, Tenant
from tenants.models.people import Role
from webhooks.models import Delivery, Webhook

NOT_DELETED_SOON = "No key of the organization has asked to delete it."


class ReasonForm(OnceForm):
    reason = forms.CharField(
        label="Reason",
        min_length=5,
        max_length=audit.MAX_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="It is written to the log, with your name. Give no values here.",
    )


class RoleForm(ReasonForm):
    role = forms.ChoiceField(choices=Role.choices)
    field_order = ["role", "reason"]


class MemberForm(RoleForm):
    email = forms.EmailField(label="Mail address of the account")
    field_order = ["email", "role", "reason"]


@dataclass(frozen=True)
class Action:
    """One action on records of a model.

    consequence: a sentence on its page. run: called in a transaction with the request,
    the record and the valid form. applies: whether the record is in a state for it;
    otherwise: what a person is told if it is not. related: what is read with the
    record.
    """

    label: str
    model: type[Model]
    permission: str
    consequence: str
    run: Callable[[HttpRequest, Any, ReasonForm], None]
    applies: Callable[[Any], bool] = lambda row: True
    otherwise: str = ""
    form: type[ReasonForm] = ReasonForm
    related: tuple[str, ...] = ()

    def is_allowed(self, user: Staff) -> bool:
        return may_view(user, self.model) and user.has_perm(
            f"support.{self.permission}"
        )


def actions_for(user: Staff, row: Model) -> list[dict[str, str]]:
    """Return the actions that the person may do with this record now."""
    return [
        {
            "label": action.label,
            "url": reverse("admin:support_action", args=[name, row.pk]),
        }
        for name, action in ACTIONS.items()
        if action.model is type(row) and action.is_allowed(user) and action.applies(row)
    ]


def with_log_entry(
    action: str, change: Callable[[Any], object]
) -> Callable[[HttpRequest, Any, ReasonForm], None]:
    """Return a function for Action.run: it changes the record and logs the reason."""

    def run(request: HttpRequest, row: Any, form: ReasonForm) -> None:
        change(row)
        audit.record(action, row, by=request, reason=form.cleaned_data["reason"])

    return run


def add_member(request: HttpRequest, row: Tenant, form: ReasonForm) -> None:
    """Make the active account with this mail address a member.

    Raises Invalid `no_such_person` unless it is exactly one account, and what
    members.add_member() raises.
    """
    given = form.cleaned_data
    mail = given["email"].strip().lower()
    # Without a mail server no address is confirmed; then sign-in uses the account's.
    confirmed = EmailAddress.objects.filter(email=mail, verified=True)
    found = list(User.objects.filter(pk__in=confirmed.values("user"), is_active=True))
    if not found and not settings.EMAIL_URL:
        # Two suffice to see that it is not one.
        found = list(User.objects.filter(email__iexact=mail, is_active=True)[:2])
    if len(found) != 1:
        raise Invalid(
            "no_such_person",
            "Not one active account has this mail address. Let the person sign up, or "
            "let an owner invite the address.",
        )
    [person] = found
    members.add_member(row, person, given["role"], by=request, reason=given["reason"])


def change_member(request: HttpRequest, row: Membership, form: ReasonForm) -> None:
    role = form.cleaned_data["role"]
    # What they made and could make no longer ends: here nobody is asked about it.
    departures.change_role(
        row,
        role,
        departures.Choice(),
        by=request,
        reason=form.cleaned_data["reason"],
    )


def finish_deletion(
    finish: Callable[..., None], request: HttpRequest, row: Tenant, form: ReasonForm
) -> None:
    finish(row, by=request, reason=form.cleaned_data["reason"])


def set_active(
    request: HttpRequest, row: User, form: ReasonForm, *, is_active: bool
) -> None:
    """Let a person sign in, or end the sessions of one who may not any more."""
    require_power_over(request, row)
    User.objects.filter(pk=row.pk).update(is_active=is_active)
    if not is_active:
        sessions.end_sessions(row)
    action = "person.enabled" if is_active else "person.disabled"
    audit.record(action, row, by=request, reason=form.cleaned_data["reason"])


def end_sessions(request: HttpRequest, row: User, form: ReasonForm) -> None:
    require_power_over(request, row)
    ended = sessions.end_sessions(row)
    audit.record(
        "person.sessions_ended",
        row,
        by=request,
        reason=form.cleaned_data["reason"],
        number=ended,
    )


def require_power_over(request: HttpRequest, person: User) -> None:
    """Raise Conflict `not_over_staff` for staff, unless a superuser asks.

    Else one member of staff could shut out the others, or oneself by mistake.
    """
    if person == request.user or (person.is_staff and not request.user.is_superuser):
        raise Conflict(
            "not_over_staff",
            "This account is your own or another member of staff's. Ask a superuser.",
        )


ACTIONS: dict[str, Action] = {
    "resend-message": Action(
        "Send it again",
        OutboundMessage,
        "resend_message",
        "The message is sent again now, with the same id and content.",
        with_log_entry("message.resent", outbox.resend_message),
        applies=lambda row: row.can_be_resent,
        otherwise=outbox.NOT_RESENDABLE,
    ),
    "resend-delivery": Action(
        "Send it again",
        Delivery,
        "resend_delivery",
        "The webhook is called again now, with the same webhook-id and body.",
        with_log_entry("delivery.resent", Delivery.resend),
        related=("webhook", "event"),
    ),
    "retry-publication": Action(
        "Try it again now",
        Publication,
        "retry_publication",
        "A worker tries to publish it at once, not at its next time.",
        with_log_entry("publication.retried", publications.retry_now),
        applies=lambda row: row.status == Publication.Status.PENDING,
        otherwise=publications.ENDED,
    ),
    "enable-webhook": Action(
        "Enable it",
        Webhook,
        "enable_webhook",
        "Calls start again with new events. What was missed is not sent again.",
        with_log_entry("webhook.enabled", Webhook.enable),
        applies=lambda row: not row.is_enabled,
        otherwise="The webhook is enabled already.",
    ),
    "add-member": Action(
        "Add a member",
        Tenant,
        "change_member",
        "The account becomes a member at once. It must exist; others are invited by an "
        "owner in the studio.",
        add_member,
        form=MemberForm,
    ),
    "undo-deletion": Action(
        "Undo the deletion",
        Tenant,
        "end_deletion",
        "The organization works again, with all that waits in its queues. Revoke the "
        "key that asked for its deletion first, if it may be stolen.",
        partial(finish_deletion, undo_deletion),
        applies=lambda row: row.deletion_due_at is not None,
        otherwise=NOT_DELETED_SOON,
    ),
    "end-deletion": Action(
        "Delete it now",
        Tenant,
        "end_deletion",
        "The organization is deleted at once, as one of its keys has asked. This cannot "
        "be undone.",
        partial(finish_deletion, end_deletion),
        applies=lambda row: row.deletion_due_at is not None,
        otherwise=NOT_DELETED_SOON,
    ),
    "change-member": Action(
        "Change the role",
        Membership,
        "change_member",
        "The person has the new role at once. Keys and webhooks that they made and "
        "could make no longer end. An organization keeps one owner.",
        change_member,
        form=RoleForm,
        related=("user", "tenant"),
    ),
    "disable-person": Action(
        "Disable the account",
        User,
        "disable_person",
        "The person is signed out everywhere and cannot sign in. Keys keep working.",
        partial(set_active, is_active=False),
        applies=lambda row: row.is_active,
        otherwise="The account is disabled already.",
    ),
    "enable-person": Action(
        "Enable the account",
        User,
        "disable_person",
        "The person can sign in again.",
        partial(set_active, is_active=True),
        applies=lambda row: not row.is_active,
        otherwise="The account can sign in already.",
    ),
    "end-sessions": Action(
        "End the sessions",
        User,
        "end_sessions",
        "The person is signed out on every device.",
        end_sessions,
    ),
}
