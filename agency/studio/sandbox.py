"""The studio's pages of a test organization's simulated holders."""

from functools import partial
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from agency.studio.form_tokens import OnceForm, once_per_form
from agency.studio.pages import get_membership, studio_page
from core.api.views import heavy
from core.errors import AgencyError
from sandbox import samples
from sandbox.holders import (
    MAX_DELAY,
    MAX_HOLDERS,
    change_holder,
    create_holder,
    remove_holder,
)
from sandbox.models import SimulatedHolder
from tenants import audit
from tenants.models import Permission


class HolderForm(OnceForm):
    name = forms.CharField(label="Name", max_length=200)
    behaviour = forms.ChoiceField(
        label="What it does",
        choices=SimulatedHolder.Behaviour.choices,
        help_text="Of what it is offered and asked for from now on.",
    )
    delay_seconds = forms.IntegerField(
        label="Seconds until it answers",
        initial=0,
        min_value=0,
        max_value=MAX_DELAY,
    )

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of create_holder() and change_holder()."""
        names = ("name", "behaviour", "delay_seconds")
        return {name: self.cleaned_data[name] for name in names}


@studio_page("GET", "HEAD")
def show_sandbox(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    membership = get_membership(request, tenant_id)
    tenant = membership.tenant
    definition = samples.find_definition(tenant) if tenant.is_test else None
    context = {
        "membership": membership,
        "tenant": tenant,
        "holders": SimulatedHolder.live_rows(tenant).order_by("pk")[:MAX_HOLDERS],
        "policy": definition and samples.find_policy(definition),
        "may_change": membership.may(Permission.OPERATE),
        "form": OnceForm(),
    }
    return render(request, "studio/sandbox.html", context)


@heavy
@studio_page("POST")
@once_per_form(back="studio:sandbox")
def set_up_samples(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Make what is missing of the samples, and offer the definition to the holders.

    The samples are a definition, a policy, and a simulated holder of each behaviour. A
    holder is connected only once it is committed, so what is made is committed before
    the transaction that offers. A second click makes what a failure left out. Errors,
    such as 409 `not_a_test_organization` and `quota_exceeded` or 503 `key_not_ready`,
    are shown on the page.
    """
    tenant = get_membership(request, tenant_id, Permission.OPERATE).tenant
    try:
        samples.offer_samples(tenant, samples.prepare_samples(tenant, request))
    except AgencyError as error:
        messages.error(request, error.message)
    else:
        messages.success(
            request, "The samples are set up. The holders accept in a moment."
        )
    return redirect("studio:sandbox", tenant_id=tenant_id)


@studio_page("GET", "HEAD", "POST")
@once_per_form(back="studio:sandbox")
def new_holder(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Make a simulated holder with its wallet and connection.

    One transaction with the audit entry. Errors, as in set_up_samples(), are shown
    above the form.
    """
    tenant = get_membership(request, tenant_id, Permission.OPERATE).tenant
    form = HolderForm(request.POST or None)
    if form.is_valid():
        create = partial(create_holder, tenant, **form.given)
        try:
            audit.recorded(create, "simulated_holder.created", by=request)()
            return redirect("studio:sandbox", tenant_id=tenant_id)
        except AgencyError as error:
            form.add_error(None, error.message)
    context = {"tenant": tenant, "form": form}
    return render(request, "studio/simulated_holder.html", context)


@studio_page("GET", "HEAD", "POST")
@once_per_form(back="studio:sandbox")
def edit_holder(request: HttpRequest, tenant_id: UUID, holder_id: UUID) -> HttpResponse:
    """Change a holder, or delete it with its wallet by the other button of the page.

    Either is one transaction with its audit entry.
    """
    tenant = get_membership(request, tenant_id, Permission.OPERATE).tenant
    holder = get_object_or_404(SimulatedHolder.live_rows(tenant), pk=holder_id)
    if "delete" in request.POST:
        remove = partial(remove_holder, holder)
        audit.recorded(remove, "simulated_holder.deleted", holder, by=request)()
        messages.success(request, f"{holder.wallet.owner_name} is deleted.")
        return redirect("studio:sandbox", tenant_id=tenant_id)
    form = HolderForm(
        request.POST or None,
        initial={
            "name": holder.wallet.owner_name,
            "behaviour": holder.behaviour,
            "delay_seconds": holder.delay_seconds,
        },
    )
    if form.is_valid():
        change_holder(holder, **form.given, by=request)
        return redirect("studio:sandbox", tenant_id=tenant_id)
    context = {"tenant": tenant, "form": form, "holder": holder}
    return render(request, "studio/simulated_holder.html", context)
