"""The studio's pages of webhooks: addresses, secrets and deliveries."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from agency.studio.deliveries import add_badge, list_deliveries
from agency.studio.form_tokens import OnceForm, once_per_form
from agency.studio.live_lists import render_live_list
from agency.studio.newest_first import read_page
from agency.studio.pages import get_membership, lock_membership, studio_page
from agency.studio.webhook_forms import (
    DeliveryFilter,
    ExampleForm,
    RecoveryForm,
    WebhookForm,
)
from core.database.uuid7_bounds import smallest_uuid7, unix_milliseconds
from core.errors import AgencyError
from core.work import transactions
from core.work.retention import days_ago
from tenants import audit, vault
from tenants.models import Membership, Permission, Tenant
from webhooks.delivery import examples, health
from webhooks.models import Attempt, Delivery, Webhook

MAX_ANSWER_SHOWN = 500  # characters of a response
MAX_COUNTED = 2000  # deliveries of the last day


@studio_page("GET", "HEAD")
def show_webhooks(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    return render_webhooks(request, get_membership(request, tenant_id))


def render_webhooks(
    request: HttpRequest, membership: Membership, form: WebhookForm | None = None
) -> HttpResponse:
    context = {
        "membership": membership,
        "tenant": membership.tenant,
        "webhooks": Webhook.for_tenant(membership.tenant).order_by("-pk"),
        "form": form or WebhookForm(),
    }
    return render(request, "studio/webhooks.html", context)


@studio_page("POST")
@once_per_form(back="studio:webhooks")
def new_webhook(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Register a webhook, and show its secret in this response only.

    It is recorded in the same transaction, which locks the organization. 409
    `webhook_limit` is shown above the form.
    """
    membership = get_membership(request, tenant_id, Permission.DEVELOP)
    form = WebhookForm(request.POST)
    if not form.is_valid():
        return render_webhooks(request, membership, form)
    options = {
        name: form.cleaned_data[name] for name in form.fields if name != "form_token"
    }
    register = audit.recorded(Webhook.register, "webhook.created", by=request)
    try:
        with transactions.atomic():
            lock_membership(request, tenant_id, Permission.DEVELOP)
            webhook = register(
                membership.tenant,
                # The usual ones of the API.
                type=Webhook.Type.NOTIFICATION,
                dialect=Webhook.Dialect.CLIENT,
                made_by=request.user,
                **options,
            )
    except AgencyError as error:
        form.add_error(None, error.message)
        return render_webhooks(request, membership, form)
    return render_secret(request, webhook, vault.unseal(webhook, "secret"))


def render_secret(
    request: HttpRequest, webhook: Webhook, secret: str, until: Any = None
) -> HttpResponse:
    context = {
        "tenant": webhook.tenant,
        "webhook": webhook,
        "secrets": [{"kind": "webhook", "label": "Signing secret", "value": secret}],
        "until": until,
    }
    return render(request, "studio/webhook_secret.html", context)


def get_webhook(membership: Membership, webhook_id: UUID) -> Webhook:
    return get_object_or_404(
        Webhook.for_tenant(membership.tenant).select_related("tenant"), pk=webhook_id
    )


@studio_page("GET", "HEAD")
def show_webhook(
    request: HttpRequest, tenant_id: UUID, webhook_id: UUID
) -> HttpResponse:
    membership = get_membership(request, tenant_id)
    found = get_webhook(membership, webhook_id)
    form = DeliveryFilter(request.GET)
    deliveries = list_deliveries(membership.tenant).filter(webhook=found)
    if form.is_valid():
        deliveries = deliveries.filter(**form.lookups())
    page = read_page(request, deliveries)
    context = {
        "filter": form,
        "is_filtered": form.is_valid() and bool(form.lookups()),
        "day": count_last_day(found),
        "membership": membership,
        "tenant": membership.tenant,
        "webhook": found,
        "deliveries": [add_badge(row) for row in page.rows],
        "example": ExampleForm(),
        "recovery": RecoveryForm(),
    }
    shown = [(row.pk, row.status, row.calls) for row in page.rows]
    return render_live_list(request, "studio/webhook.html", context, page, shown)


def count_last_day(webhook: Webhook) -> dict[str, int]:
    """Count the newest deliveries of the last 24 hours, at most MAX_COUNTED."""
    since = smallest_uuid7(unix_milliseconds(days_ago(1)))
    rows = webhook.deliveries.filter(pk__gte=since).order_by("-pk")
    statuses = Counter(rows.values_list("status", flat=True)[:MAX_COUNTED])
    return {"all": statuses.total(), "delivered": statuses[Delivery.Status.DONE]}


@studio_page("GET", "HEAD", "POST")
@once_per_form(back="studio:webhooks")
def rotate_secret(
    request: HttpRequest, tenant_id: UUID, webhook_id: UUID
) -> HttpResponse:
    """Replace the secret after a question, and show the new one in this response only.

    Calls are signed with the former one too for a while. One transaction locks the
    webhook and records it.
    """
    found = get_webhook(
        get_membership(request, tenant_id, Permission.DEVELOP), webhook_id
    )
    if request.method == "POST":
        rotate = audit.recorded(
            found.rotate_secret, "webhook.secret_rotated", found, by=request
        )
        secret, until = rotate()
        return render_secret(request, found, secret, until)
    context = {"tenant": found.tenant, "webhook": found, "form": OnceForm()}
    return render(request, "studio/rotate_secret.html", context)


def webhook_action(
    done: str, action: str, form_class: Any = OnceForm
) -> Callable[..., Any]:
    """Decorator: a button on the page of a webhook, which runs the action.

    The page then shows the message `done`, or the error. action: for the audit log, in
    one transaction with what the button does; "" if it changes nothing that is logged.

    act: called with the webhook and the valid form. POST only, once per form, by members
    with Permission.DEVELOP. An invalid form, which no page sends, changes and shows
    nothing.
    """

    def decorate(act: Callable[..., Any]) -> Callable[..., HttpResponse]:
        @studio_page("POST")
        @once_per_form(back="studio:webhooks")
        def button(
            request: HttpRequest, tenant_id: UUID, webhook_id: UUID
        ) -> HttpResponse:
            found = get_webhook(
                get_membership(request, tenant_id, Permission.DEVELOP), webhook_id
            )
            form = form_class(request.POST)
            try:
                if form.is_valid():
                    run = act
                    if action:
                        run = audit.recorded(act, action, found, by=request)
                    run(found, form)
                    messages.success(request, done)
            except AgencyError as error:
                messages.error(request, error.message)
            return redirect(
                "studio:webhook", tenant_id=tenant_id, webhook_id=webhook_id
            )

        return button

    return decorate


@webhook_action("Webhook enabled.", "webhook.enabled")
def enable_webhook(found: Webhook, form: OnceForm) -> None:
    found.enable()


@webhook_action("Webhook disabled.", "webhook.disabled")
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


@studio_page("GET", "HEAD", "POST")
def remove_webhook(
    request: HttpRequest, tenant_id: UUID, webhook_id: UUID
) -> HttpResponse:
    """Delete a webhook after a question, in one transaction with the audit entry.

    Its deliveries stay until their events are deleted, but no page lists them.
    """
    found = get_webhook(
        get_membership(request, tenant_id, Permission.DEVELOP), webhook_id
    )
    if request.method != "POST":
        context = {"tenant": found.tenant, "webhook": found}
        return render(request, "studio/remove_webhook.html", context)
    audit.recorded(found.delete, "webhook.deleted", found, by=request)()
    messages.success(request, "The webhook is deleted.")
    return redirect("studio:webhooks", tenant_id=tenant_id)


def get_delivery(tenant: Tenant, webhook_id: UUID, delivery_id: UUID) -> Delivery:
    """A delivery of a webhook of the organization. Raises Http404."""
    return get_object_or_404(
        list_deliveries(tenant), pk=delivery_id, webhook=webhook_id
    )


@studio_page("GET", "HEAD")
def show_delivery(
    request: HttpRequest, tenant_id: UUID, webhook_id: UUID, delivery_id: UUID
) -> HttpResponse:
    membership = get_membership(request, tenant_id)
    found = get_delivery(membership.tenant, webhook_id, delivery_id)
    context = {
        "membership": membership,
        "tenant": membership.tenant,
        "webhook": found.webhook,
        "delivery": add_badge(found),
        "event": found.event,
        "body": json.dumps(json.loads(found.event.body), indent=2),
        "attempts": [attempt_context(attempt) for attempt in found.last_attempts()],
        "form": OnceForm(),
    }
    return render(request, "studio/delivery.html", context)


def attempt_context(attempt: Attempt) -> dict[str, Any]:
    answer = vault.unseal(attempt, "answer") or ""
    return {
        "attempt": attempt,
        "answer": answer[:MAX_ANSWER_SHOWN],
        "is_cut": len(answer) > MAX_ANSWER_SHOWN,
        "is_good": attempt.status_code in range(200, 300),
    }


@studio_page("POST")
@once_per_form(back="studio:webhooks")
def resend_delivery(
    request: HttpRequest, tenant_id: UUID, webhook_id: UUID, delivery_id: UUID
) -> HttpResponse:
    """Make a delivery due now, in any status, in one transaction with the audit entry.

    409 `webhook_disabled` and `delivery_in_progress` are shown on the page.
    """
    tenant = get_membership(request, tenant_id, Permission.DEVELOP).tenant
    found = get_delivery(tenant, webhook_id, delivery_id)
    resend = audit.recorded(
        found.resend, "delivery.resent", found, by=request, tenant=tenant
    )
    try:
        resend()
        messages.success(
            request, "It is sent again, with the same webhook-id and body."
        )
    except AgencyError as error:
        messages.error(request, error.message)
    return redirect(
        "studio:delivery",
        tenant_id=tenant_id,
        webhook_id=webhook_id,
        delivery_id=delivery_id,
    )
