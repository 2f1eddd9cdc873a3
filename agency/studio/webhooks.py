"""The studio's pages of webhooks: addresses, their secrets, what they were sent and answered."""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from agency.core.errors import AgencyError
from agency.studio.events import SHOWN, deliveries_of, look
from agency.studio.forms import CountsOnce
from agency.studio.views import counts_once, manager_of, membership_in, page
from agency.studio.webhook_forms import ExampleForm, RecoveryForm, WebhookForm
from tenants import vault
from tenants.models import Membership, Tenant
from webhooks.delivery import examples
from webhooks.models import Attempt, Delivery, Webhook

ANSWER_SHOWN = 500  # characters


@page("GET", "HEAD")
def webhooks(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    return webhooks_page(request, membership_in(request, tenant_id))


def webhooks_page(
    request: HttpRequest, membership: Membership, form: WebhookForm | None = None
) -> HttpResponse:
    context = {
        "membership": membership,
        "tenant": membership.tenant,
        "tab": "webhooks",
        "webhooks": Webhook.for_tenant(membership.tenant).order_by("-pk"),
        "form": form or WebhookForm(),
    }
    return render(request, "studio/webhooks.html", context)


@page("POST")
@counts_once(back="studio:webhooks")
def new_webhook(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    membership = manager_of(request, tenant_id)
    form = WebhookForm(request.POST)
    if not form.is_valid():
        return webhooks_page(request, membership, form)
    wanted = {
        name: form.cleaned_data[name] for name in form.fields if name != "form_token"
    }
    kind, dialect = Webhook.Type.NOTIFICATION, Webhook.Dialect.CLIENT
    try:
        made = Webhook.register(membership.tenant, type=kind, dialect=dialect, **wanted)
    except AgencyError as error:
        form.add_error(None, error.message)
        return webhooks_page(request, membership, form)
    return secret_page(request, made, vault.unseal(made, "secret"))


def secret_page(
    request: HttpRequest, webhook: Webhook, secret: str, until: Any = None
) -> HttpResponse:
    context = {
        "tenant": webhook.tenant,
        "webhook": webhook,
        "secrets": [{"kind": "webhook", "label": "Signing secret", "value": secret}],
        "until": until,
    }
    return render(request, "studio/webhook_secret.html", context)


def webhook_of(membership: Membership, webhook_id: UUID) -> Webhook:
    return get_object_or_404(
        Webhook.for_tenant(membership.tenant).select_related("tenant"), pk=webhook_id
    )


@page("GET", "HEAD")
def webhook(request: HttpRequest, tenant_id: UUID, webhook_id: UUID) -> HttpResponse:
    membership = membership_in(request, tenant_id)
    found = webhook_of(membership, webhook_id)
    rows = deliveries_of(membership.tenant).filter(webhook=found)
    if before := uuid_of(request.GET.get("before", "")):
        rows = rows.filter(pk__lt=before)
    shown = list(rows[: SHOWN + 1])
    context = {
        "membership": membership,
        "tenant": membership.tenant,
        "tab": "webhooks",
        "webhook": found,
        "deliveries": [look(one) for one in shown[:SHOWN]],
        "older": shown[SHOWN - 1].pk if len(shown) > SHOWN else "",
        "example": ExampleForm(),
        "recovery": RecoveryForm(),
    }
    return render(request, "studio/webhook.html", context)


def uuid_of(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


@page("GET", "HEAD", "POST")
@counts_once(back="studio:webhooks")
def rotate_secret(
    request: HttpRequest, tenant_id: UUID, webhook_id: UUID
) -> HttpResponse:
    found = webhook_of(manager_of(request, tenant_id), webhook_id)
    if request.method == "POST":
        secret, until = found.rotate_secret()
        return secret_page(request, found, secret, until)
    context = {"tenant": found.tenant, "webhook": found, "form": CountsOnce()}
    return render(request, "studio/rotate_secret.html", context)


def acts(done: str, form_class: Any = CountsOnce) -> Callable[..., Any]:
    """A button of the webhook's page: does it, says that it was done or why not, and leads back."""

    def decorate(act: Callable[..., Any]) -> Callable[..., HttpResponse]:
        @page("POST")
        @counts_once(back="studio:webhooks")
        def button(
            request: HttpRequest, tenant_id: UUID, webhook_id: UUID
        ) -> HttpResponse:
            found = webhook_of(manager_of(request, tenant_id), webhook_id)
            form = form_class(request.POST)
            try:
                if form.is_valid():
                    act(found, form)
                    messages.success(request, done)
            except AgencyError as error:
                messages.error(request, error.message)
            return redirect(
                "studio:webhook", tenant_id=tenant_id, webhook_id=webhook_id
            )

        return button

    return decorate


@acts("It is called again.")
def enable(found: Webhook, form: CountsOnce) -> None:
    found.enable()


@acts("It is not called any more.")
def disable(found: Webhook, form: CountsOnce) -> None:
    found.disable()


@acts("An example is on its way.", ExampleForm)
def send_example(found: Webhook, form: ExampleForm) -> None:
    examples.send_example(found, form.cleaned_data["type"])


@acts("What failed is being sent again, the oldest first.", RecoveryForm)
def recover(found: Webhook, form: RecoveryForm) -> None:
    found.recover(**form.wanted())


@page("GET", "HEAD", "POST")
def remove_webhook(
    request: HttpRequest, tenant_id: UUID, webhook_id: UUID
) -> HttpResponse:
    found = webhook_of(manager_of(request, tenant_id), webhook_id)
    if request.method != "POST":
        context = {"tenant": found.tenant, "webhook": found}
        return render(request, "studio/remove_webhook.html", context)
    found.delete()
    messages.success(request, "The webhook is deleted.")
    return redirect("studio:webhooks", tenant_id=tenant_id)


def delivery_of(tenant: Tenant, webhook_id: UUID, delivery_id: UUID) -> Delivery:
    return get_object_or_404(deliveries_of(tenant), pk=delivery_id, webhook=webhook_id)


@page("GET", "HEAD")
def delivery(
    request: HttpRequest, tenant_id: UUID, webhook_id: UUID, delivery_id: UUID
) -> HttpResponse:
    membership = membership_in(request, tenant_id)
    found = delivery_of(membership.tenant, webhook_id, delivery_id)
    context = {
        "membership": membership,
        "tenant": membership.tenant,
        "tab": "webhooks",
        "webhook": found.webhook,
        "delivery": look(found),
        "event": found.event,
        "body": json.dumps(json.loads(found.event.body), indent=2),
        "attempts": [shown(attempt) for attempt in found.last_attempts()],
        "form": CountsOnce(),
    }
    return render(request, "studio/delivery.html", context)


def shown(attempt: Attempt) -> dict[str, Any]:
    answer = vault.unseal(attempt, "answer") or ""
    return {
        "attempt": attempt,
        "answer": answer[:ANSWER_SHOWN],
        "is_cut": len(answer) > ANSWER_SHOWN,
        "is_good": attempt.status_code in range(200, 300),
    }


@page("POST")
@counts_once(back="studio:webhooks")
def resend(
    request: HttpRequest, tenant_id: UUID, webhook_id: UUID, delivery_id: UUID
) -> HttpResponse:
    found = delivery_of(manager_of(request, tenant_id).tenant, webhook_id, delivery_id)
    try:
        found.resend()
        messages.success(
            request, "It is sent again, with the same webhook-id and body."
        )
    except AgencyError as error:
        messages.error(request, error.message)
    place = {
        "tenant_id": tenant_id,
        "webhook_id": webhook_id,
        "delivery_id": delivery_id,
    }
    return redirect("studio:delivery", **place)
