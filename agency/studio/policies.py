"""The studio's pages of policies, and the page that asks for a proof.

The calls of the API make policies and requests, with the same options.
"""

from collections import Counter
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from agency.studio.choices import choose_from
from agency.studio.conditions import condition_words
from agency.studio.exchange.views import to_object_page
from agency.studio.form_tokens import OnceForm
from agency.studio.lists import POLICIES, render_list
from agency.studio.pages import (
    MemberRequest,
    ids_in,
    member_page,
    refusals_above,
    to_page,
)
from agency.studio.policy_drafts import KINDS, SHOW, restriction_words
from agency.studio.recipients import (
    RecipientForm,
    find_chosen,
    usable_connections,
)
from connections.api.scopes import find_in_scope
from connections.api.serializers import link_protocol
from connections.models import Connection
from core.api.pagination import only_columns
from core.api.views import heavy, or_404
from core.database.uuids import parse_uuid
from core.errors import AgencyError
from core.work import network_reads
from credentials.models import Credential, CredentialDefinition
from tenants import audit
from tenants.models import Permission, Tenant
from verifications.api.verifier import request_function
from verifications.models import Verification, VerificationPolicy
from verifications.proofs.policy import (
    DEFINITION,
    NO_REQUIREMENT,
    Policy,
    Restriction,
)
from wallets.models import Wallet

MAX_SEARCHED = 20  # policies, the newest
NOT_CONNECTED = (
    "The policy is saved, but nobody was asked: that connection is gone or not "
    "connected. Ask by a link, or choose another connection."
)


@member_page("GET")
def show_policies(request: MemberRequest) -> HttpResponse:
    return render_list(request, POLICIES, more={"ask_form": OnceForm()})


def get_policy(tenant: Tenant, object_id: UUID) -> VerificationPolicy:
    rows = VerificationPolicy.objects.filter(tenant=tenant)
    return get_object_or_404(rows, pk=object_id)


@member_page("GET")
def show_policy(request: MemberRequest, object_id: UUID) -> HttpResponse:
    policy = get_policy(request.tenant, object_id)
    asked = policy.unsealed_policy()
    context = {
        "policy": policy,
        **policy_in_words(asked, request.tenant),
        "checks_revocation": asked.requirement != NO_REQUIREMENT,
        "may_ask": request.membership.may(Permission.OPERATE),
        "has_connections": usable_connections(request.tenant).exists(),
        "form": OnceForm(),
    }
    return render(request, "studio/policy.html", context)


def policy_in_words(policy: Policy, tenant: Tenant) -> dict[str, Any]:
    """The items of a policy. Required values are not shown.

    restrictions: for each alternative its parts, `(what, id, name)`. Only definitions
    of the tenant have a name. only_of: the restrictions, if all items have the same.
    """
    names_by_id = name_definitions(tenant, policy)
    found: list[dict[str, Any]] = [
        {
            "names": ", ".join(item.attribute_names),
            "request": f"Only prove: {condition_words(item)}"
            if item.is_predicate
            else KINDS[SHOW],
            "restrictions": [
                [(what, which, names_by_id.get(which)) for what, which in words]
                for words in map(restriction_words, item.restrictions)
            ],
        }
        for item in policy.items
    ]
    first = found[0]["restrictions"]
    is_same = all(row["restrictions"] == first for row in found)
    return {"items": found, "only_of": first if is_same else []}


def name_definitions(tenant: Tenant, policy: Policy) -> dict[str, str]:
    """The names of the tenant's definitions to which items are restricted.

    With the version, if another of these has the name too.
    """
    wanted = {
        restriction.definition_id
        for item in policy.items
        for restriction in item.restrictions
    }
    rows = CredentialDefinition.active_of(tenant).filter(definition_id__in=wanted)
    columns = rows.values_list("definition_id", "schema__name", "schema__version")
    found = list(columns)
    names = Counter(name for _, name, _ in found)
    return {
        which: name if names[name] == 1 else f"{name} {version}"
        for which, name, version in found
    }


@heavy
@member_page("GET", "POST", needs=Permission.OPERATE, once="studio:verifications")
def new_verification(request: MemberRequest) -> HttpResponse:
    """Choose a policy, then ask by a link or over a connection.

    A post without fields, as from the button of a policy, asks by a link. The query may
    have a connection, or a credential that was issued over one. The button `look` only
    searches for recipients.
    """
    tenant = request.tenant
    if credential_id := parse_uuid(request.GET.get("credential", "")):
        return ask_about(tenant, credential_id)
    chosen = request.GET.get("connection", "")
    policy_id = parse_uuid(request.GET.get("policy", ""))
    if not policy_id:
        return render_choice(request)
    policy = get_policy(tenant, policy_id)
    if "look" in request.POST:
        form = RecipientForm(initial=request.POST.dict(), tenant=tenant)
    else:
        form = RecipientForm(request.POST or None, tenant=tenant, chosen=chosen)
    if form.is_valid():
        with refusals_above(form):
            to = form.cleaned_data["connection_id"]
            return to_object_page(send_request(request, policy, to))
    context = {
        "form": form,
        "policy": policy,
        "wanted": urlencode(ids_in(request, "connection", "definition")),
        **policy_in_words(policy.unsealed_policy(), tenant),
    }
    return render(request, "studio/new_verification.html", context)


def ask_about(tenant: Tenant, credential_id: UUID) -> HttpResponse:
    """Lead to the choice of a policy for the holder of a credential.

    Without any policy, first to a new one that is filled in from its definition.
    """
    rows = Credential.objects.filter(wallet=Wallet.of_organization(tenant))
    row = get_object_or_404(only_columns(rows, ()), pk=credential_id)
    # Of one issued by a link, nobody can be asked over the connection of the link.
    usable = find_chosen(tenant, None, str(row.connection_id or ""))
    wanted = {"connection": usable.pk} if usable else {}
    definitions = CredentialDefinition.active_of(tenant)
    found = definitions.filter(definition_id=row.definition_id)
    if definition_id := found.values_list("pk", flat=True).first():
        wanted["definition"] = definition_id
    has_policy = VerificationPolicy.objects.filter(tenant=tenant).exists()
    page = "studio:new_verification" if has_policy else "studio:new_policy"
    return to_page(page, tenant, wanted)


def send_request(
    request: MemberRequest, policy: VerificationPolicy, connection_id: str = ""
) -> Verification:
    """Send the request of a policy over a connection; without an id, make it a link.

    In one transaction with its audit entry, which runs again after each ledger read.
    404 if the connection is gone, 409 `wrong_state` if it is not connected, 400
    `not_yet_due` before the time that the policy names.
    """
    tenant = request.tenant
    connection = None
    if connection_id:
        # Never a link instead: anybody could answer that.
        connection = or_404(
            find_in_scope(tenant.pk, connection_id), Connection, connection_id
        )
    ask = request_function(
        tenant,
        policy=policy.unsealed_policy(),
        policy_id=policy.pk,
        connection=connection,
        link_options={"protocol": link_protocol(tenant)},
    )
    recorded = audit.recorded(ask, "verification.requested", by=request)
    return network_reads.retry_transaction(recorded)


def ask_now(request: MemberRequest, policy: VerificationPolicy) -> HttpResponse:
    """Ask over the connection in the query; without one, by a link.

    A connection in the query that cannot be asked is refused: anybody could answer a
    link.
    """
    key = request.GET.get("connection", "")
    connection = find_chosen(request.tenant, None, key)
    if key and not connection:
        return refuse_to_ask(request, policy)
    return ask_for_policy(request, policy, connection)


def refuse_to_ask(
    request: MemberRequest, policy: VerificationPolicy, why: str = NOT_CONNECTED
) -> HttpResponse:
    """Lead to the policy. By default: the connection that was meant cannot be asked."""
    messages.error(request, why)
    return redirect("studio:policy", request.tenant.pk, policy.pk)


def ask_for_policy(
    request: MemberRequest, policy: VerificationPolicy, connection: Connection | None
) -> HttpResponse:
    """Ask over the connection; without one, by a link. Leads to the request.

    A refusal leads to the page of the policy, with its reason.
    """
    connection_id = connection.connection_id if connection else ""
    try:
        return to_object_page(send_request(request, policy, connection_id))
    except AgencyError as error:
        return refuse_to_ask(request, policy, error.message)


def render_choice(
    request: MemberRequest,
    title: str = "Ask for a proof",
    back: str = "verifications",
) -> HttpResponse:
    """The page that asks which policy. back: the name of the list that it belongs to.

    Without any policy, a request begins with a new one, which *Save and ask* sends.
    There is nothing to choose from one policy, unless it is not about the definition
    in the query, which may want a new one.
    """
    if request.GET.keys() == {"definition"}:
        return lead_to_policy_about(request.tenant, ids_in(request, "definition"))
    context = choose_from(request, POLICIES, request.tenant)
    rows = context["choices"].rows
    wanted = ids_in(request, "connection", "definition")
    if not rows and back == "verifications" and "q" not in request.GET:
        return to_page("studio:new_policy", request.tenant, wanted)
    if len(rows) == 1 and "q" not in request.GET:
        definitions = CredentialDefinition.active_of(request.tenant)
        key = wanted.get("definition")
        definition = definitions.filter(pk=key).first() if key else None
        if definition is None or is_about(rows[0], definition):
            wanted |= {"policy": rows[0].pk}
            return redirect(f"{request.path}?{urlencode(wanted)}")
    shown = {
        **context,
        "title": title,
        "back": back,
        "wanted": wanted,
        "query": urlencode(wanted),
    }
    return render(request, "studio/choose_policy.html", shown)


def lead_to_policy_about(tenant: Tenant, wanted: dict[str, UUID]) -> HttpResponse:
    """Lead to asking by the newest policy about a definition only, else to a new one.

    wanted: the key of the definition, as in the query. 404 if it was deleted.
    """
    rows = CredentialDefinition.active_of(tenant)
    definition = get_object_or_404(rows, pk__in=wanted.values())
    if policy := find_policy_about(tenant, definition):
        return to_page("studio:new_verification", tenant, {"policy": policy.pk})
    return to_page("studio:new_policy", tenant, wanted)


def find_policy_about(
    tenant: Tenant, definition: CredentialDefinition
) -> VerificationPolicy | None:
    """The newest policy about this definition only, among the newest ones, or None."""
    policies = VerificationPolicy.objects.filter(tenant=tenant).order_by("-pk")
    found = (row for row in policies[:MAX_SEARCHED] if is_about(row, definition))
    return next(found, None)


def is_about(policy: VerificationPolicy, definition: CredentialDefinition) -> bool:
    """Whether all that a policy asks for must be of this definition."""
    only = Restriction({DEFINITION: definition.definition_id})
    either = (only,), (replace(only, or_twin=True),)
    items = policy.unsealed_policy().items
    return all(item.restrictions in either for item in items)
