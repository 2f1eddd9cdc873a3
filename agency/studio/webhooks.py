"""The studio's pages of webhooks: addresses, secrets and deliveries."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple, TypeVar
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from agency.studio.form_tokens import OnceForm
from agency.studio.live_lists import render_live_list
from agency.studio.newest_first import read_page
from agency.studio.objects import list_deliveries
from agency.studio.pages import (
    MemberRequest,
    View,
    lock_organization,
    member_action,
    member_page,
)
from agency.studio.webhook_forms import (
    DeliveryFilter,
    ExampleForm,
    RecoveryForm,
    WebhookForm,
)
from core.database.uuids import smallest_uuid7, unix_milliseconds
from core.errors import AgencyError
from core.work import transactions
from core.work.retention import days_ago
from tenants import audit, vault
from tenants.models import Permission, Tenant
from webhooks.delivery import claim, examples, health
from webhooks.models import Attempt, Delivery, Webhook

Form = TypeVar("Form", bound=OnceForm)
MAX_ANSWER_SHOWN = 500  # characters of a response
MAX_COUNTED = 2000  # deliveries of the last day


@member_page("GET")
def show_webhooks(request: MemberRequest) -> HttpResponse:
    return render_webhooks(request)


def render_webhooks(
    request: MemberRequest, form: WebhookForm | None = None
) -> HttpResponse:
    context = {
        "webhooks": Webhook.for_tenant(request.tenant).order_by("-pk"),
        "form": form or WebhookForm(),
    }
    return render(request, "studio/webhooks.html", context)


@member_page("POST", needs=Permission.DEVELOP, once="studio:webhooks")
def new_webhook(request: MemberRequest) -> HttpResponse:
    """Register a webhook, and show its secret in this response only.

    It is recorded in the same transaction, which locks the organization. 409
    `webhook_limit` is shown above the form.
    """
    form = WebhookForm(request.POST)
    if not form.is_valid():
        return render_webhooks(request, form)
    options = {
        name: form.cleaned_data[name] for name in form.fields if name != "form_token"
    }
    register = audit.recorded(Webhook.register, "webhook.created", by=request)
    try:
        with transactions.atomic():
            lock_organization(request, Permission.DEVELOP)
            webhook = register(
                request.tenant,
                # The usual ones of the API.
                type=Webhook.Type.NOTIFICATION,
                dialect=Webhook.Dialect.CLIENT,
                made_by=request.user,
                **options,
            )
    except AgencyError as error:
        form.add_error(None, error.message)
        return render_webhooks(request, form)
    return render_secret(request, webhook, vault.unseal(webhook, "secret"))


def render_secret(
    request: HttpRequest, webhook: Webhook, secret: str, until: datetime | None = None
) -> HttpResponse:
    context = {
        "webhook": webhook,
        "secrets": [{"kind": "webhook", "label": "Signing secret", "value": secret}],
        "until": until,
    }
    return render(request, "studio/webhook_secret.html", context)


def get_webhook(tenant: Tenant, webhook_id: UUID) -> Webhook:
    rows = Webhook.for_tenant(tenant).select_related("tenant")
    return get_object_or_404(rows, pk=webhook_id)


@member_page("GET")
def show_webhook(request: MemberRequest, webhook_id: UUID) -> HttpResponse:
    found = get_webhook(request.tenant, webhook_id)
    form = DeliveryFilter(request.GET)
    deliveries = list_deliveries(request.tenant).filter(webhook=found)
    if form.is_valid():
        deliveries = deliveries.filter(**form.lookups())
    page = read_page(request, deliveries)
    context = {
        "filter": form,
        "is_filtered": form.is_valid() and bool(form.lookups()),
        "day": count_last_day(found),
        "webhook": found,
        "is_limited": found.is_enabled and bool(claim.limited_by_receiver(found)),
        "deliveries": page.rows,
        "example": ExampleForm(),
        "recovery": RecoveryForm(),
    }
    shown = [(row.pk, row.status, row.calls) for row in page.rows]
    return render_live_list(request, "studio/webhook.html", context, page, repr(shown))


def count_last_day(webhook: Webhook) -> dict[str, int]:
    """Count the newest deliveries of the last 24 hours, at most MAX_COUNTED."""
    since = smallest_uuid7(unix_milliseconds(days_ago(1)))
    rows = webhook.deliveries.filter(pk__gte=since).order_by("-pk")
    statuses = Counter(rows.values_list("status", flat=True)[:MAX_COUNTED])
    return {"all": statuses.total(), "delivered": statuses[Delivery.Status.DONE]}


@member_page("GET", "POST", needs=Permission.DEVELOP, once="studio:webhooks")
def rotate_secret(request: MemberRequest, webhook_id: UUID) -> HttpResponse:
    """Replace the secret after a question, and show the new one in this response only.

    Calls are signed with the former one too for a while. One transaction locks the
    webhook and records it.
    """
    found = get_webhook(request.tenant, webhook_id)
    if request.method == "POST":
        rotate = audit.recorded(
            found.rotate_secret, "webhook.secret_rotated", found, by=request
        )
        secret, until = rotate()
        return render_secret(request, found, secret, until)
    context = {"webhook": found, "form": OnceForm()}
    return render(request, "studio/rotate_secret.html", context)


def webhook_action(
    done: str, action: str, form_class: type[Form]
) -> Callable[[Callable[[Webhook, Form], None]], View]:
    """Decorator: a button on the page of a webhook, which runs the action.

    The page then shows the message `done`, or the error. action: for the audit log, in
    one transaction with what the button does; "" if it changes nothing that is logged.

    act: called with the webhook and the valid form. POST only, once per form, by members
    with Permission.DEVELOP. An invalid form, which no page sends, changes and shows
    nothing.
    """

    def decorate(act: Callable[[Webhook, Form], None]) -> View:
        @member_action(
            "studio:webhook", needs=Permission.DEVELOP, once="studio:webhooks"
        )
        def button(request: MemberRequest, webhook_id: UUID) -> HttpResponse | str:
            found = get_webhook(request.tenant, webhook_id)
            form = form_class(request.POST)
            if not form.is_valid():
                return redirect("studio:webhook", request.tenant.pk, webhook_id)
            run = audit.recorded(act, action, found, by=request) if action else act
            run(found, form)
            return done

        return button

    return decorate


@webhook_action("Webhook enabled.", "webhook.enabled", OnceForm)
def enable_webhook(found: Webhook, form: OnceForm) -> None:
    found.enable()


@webhook_action("Webhook disabled.", "webhook.disabled", OnceForm)
def disable_webhook(found: Webhook, form: OnceForm) -> None:
    health.disable_by_hand(found)


@webhook_action("The example will be sent now.", "", ExampleForm)
def send_example(found: Webhook, form: ExampleForm) -> None:
    examples.send_example(found, form.cleaned_data["type"])


@webhook_action(
    "Failed deliveries are being sent again, oldest first.",
    "webhook.recovered",
    RecoveryForm,
)
def recover_webhook(found: Webhook, form: RecoveryForm) -> None:
    found.start_recovery(**form.recovery_options())


@member_action(
    "studio:webhooks",
    needs=Permission.DEVELOP,
    once="",
    asks=True,
    may_be_refused=False,
)
def remove_webhook(request: MemberRequest, webhook_id: UUID) -> HttpResponse | str:
    """Delete a webhook after a question, in one transaction with the audit entry.

    Its deliveries stay until their events are deleted, but no page lists them.
    """
    found = get_webhook(request.tenant, webhook_id)
    if request.method != "POST":
        return render(request, "studio/remove_webhook.html", {"webhook": found})
    audit.recorded(found.delete, "webhook.deleted", found, by=request)()
    return "The webhook is deleted."


def get_delivery(tenant: Tenant, webhook_id: UUID, delivery_id: UUID) -> Delivery:
    """A delivery of a webhook of the organization. Raises Http404."""
    return get_object_or_404(
        list_deliveries(tenant), pk=delivery_id, webhook=webhook_id
    )


@member_page("GET")
def show_delivery(
    request: MemberRequest, webhook_id: UUID, delivery_id: UUID
) -> HttpResponse:
    found = get_delivery(request.tenant, webhook_id, delivery_id)
    context = {
        "webhook": found.webhook,
        "delivery": found,
        "event": found.event,
        "body": json.dumps(json.loads(found.event.body), indent=2),
        "attempts": [shown_attempt(attempt) for attempt in found.last_attempts()],
        "form": OnceForm(),
    }
    return render(request, "studio/delivery.html", context)


class ShownAttempt(NamedTuple):
    """A call. is_cut: whether the answer is longer."""

    attempt: Attempt
    answer: str
    is_cut: bool
    is_good: bool


def shown_attempt(attempt: Attempt) -> ShownAttempt:
    answer: str = vault.unseal(attempt, "answer") or ""
    return ShownAttempt(
        attempt,
        answer[:MAX_ANSWER_SHOWN],
        is_cut=len(answer) > MAX_ANSWER_SHOWN,
        is_good=attempt.status_code in range(200, 300),
    )


@member_action("studio:delivery", needs=Permission.DEVELOP, once="studio:webhooks")
def resend_delivery(request: MemberRequest, webhook_id: UUID, delivery_id: UUID) -> str:
    """Make a delivery due now, in any status, in one transaction with the audit entry.

    409 `webhook_disabled` and `delivery_in_progress` are shown on the page.
    """
    tenant = request.tenant
    found = get_delivery(tenant, webhook_id, delivery_id)
    audit.recorded(found.resend, "delivery.resent", found, by=request, tenant=tenant)()
    return "It is sent again, with the same webhook-id and body."
