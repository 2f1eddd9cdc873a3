"""The studio's pages of a test organization's simulated holders."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from agency.studio.form_tokens import OnceForm
from agency.studio.pages import (
    MemberRequest,
    member_action,
    member_page,
    refusals_above,
)
from core.api.views import heavy
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


@member_page("GET")
def show_sandbox(request: MemberRequest) -> HttpResponse:
    tenant = request.tenant
    definition = samples.find_definition(tenant) if tenant.is_test else None
    context = {
        "holders": SimulatedHolder.live_rows(tenant).order_by("pk")[:MAX_HOLDERS],
        "policy": definition and samples.find_policy(definition),
        "may_change": request.membership.may(Permission.OPERATE),
        "form": OnceForm(),
    }
    return render(request, "studio/sandbox.html", context)


@heavy
@member_action("studio:sandbox", needs=Permission.OPERATE)
def set_up_samples(request: MemberRequest) -> str:
    """Make what is missing of the samples, and offer the definition to the holders.

    The samples are a definition, a policy, and a simulated holder of each behaviour. A
    holder is connected only once it is committed, so what is made is committed before
    the transaction that offers. A second click makes what a failure left out. Errors,
    such as 409 `not_a_test_organization` and `quota_exceeded` or 503 `key_not_ready`,
    are shown on the page.
    """
    prepared = samples.prepare_samples(request.tenant, request)
    samples.offer_samples(request.tenant, prepared)
    return "The samples are set up. The holders accept in a moment."


@member_page("GET", "POST", needs=Permission.OPERATE, once="studio:sandbox")
def new_holder(request: MemberRequest) -> HttpResponse:
    """Make a simulated holder with its wallet and connection.

    One transaction with the audit entry. Errors, as in set_up_samples(), are shown
    above the form.
    """
    form = HolderForm(request.POST or None)
    if form.is_valid():
        create = audit.recorded(create_holder, "simulated_holder.created", by=request)
        with refusals_above(form):
            create(request.tenant, **form.given)
            return redirect("studio:sandbox", request.tenant.pk)
    return render(request, "studio/simulated_holder.html", {"form": form})


@member_page("GET", "POST", needs=Permission.OPERATE, once="studio:sandbox")
def edit_holder(request: MemberRequest, holder_id: UUID) -> HttpResponse:
    """Change a holder, or delete it with its wallet by the other button of the page.

    Either is one transaction with its audit entry.
    """
    holder = get_object_or_404(SimulatedHolder.live_rows(request.tenant), pk=holder_id)
    if "delete" in request.POST:
        action = "simulated_holder.deleted"
        audit.recorded(remove_holder, action, holder, by=request)(holder)
        messages.success(request, f"{holder.wallet.owner_name} is deleted.")
        return redirect("studio:sandbox", request.tenant.pk)
    first = {
        "name": holder.wallet.owner_name,
        "behaviour": holder.behaviour,
        "delay_seconds": holder.delay_seconds,
    }
    form = HolderForm(request.POST or None, initial=first)
    if form.is_valid():
        change_holder(holder, **form.given, by=request)
        return redirect("studio:sandbox", request.tenant.pk)
    context = {"form": form, "holder": holder}
    return render(request, "studio/simulated_holder.html", context)
