"""The studio's pages of definitions: what an organization issues.

The calls of the API make definitions, with the same options.
"""

from collections import Counter
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from django.contrib import messages
from django.db.models import Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from agency.studio.definition_forms import (
    MAX_ROWS,
    TYPES,
    DefinitionForm,
    read_header,
)
from agency.studio.form_tokens import OnceForm
from agency.studio.lists import DEFINITIONS, render_list
from agency.studio.pages import (
    MemberRequest,
    member_action,
    member_page,
    refusals_above,
    to_page,
)
from agency.studio.policy_samples import example_value
from agency.words.cards import Card, draw_card
from core.api.pagination import only_columns
from core.api.views import heavy
from core.work import transactions
from credentials import publications, publishing, twins
from credentials.api.definitions import read_schema
from credentials.ledgers import ledger_of, network_with
from credentials.models import (
    Credential,
    CredentialDefinition,
    Publication,
    Schema,
    WebvhDid,
)
from credentials.models.schema import build_schema_body
from tenants import audit
from tenants.models import Network, Permission, Tenant
from wallets.models import Wallet

MAX_COUNTED = 10_000  # credentials of a definition, the newest
MAX_SCHEMAS = 50  # to choose from
MAX_PUBLICATIONS = 10
REFUSED_SHOWN = timedelta(days=7)
PUBLISHED = (
    Publication.Kind.SCHEMA, Publication.Kind.DEFINITION, Publication.Kind.REGISTRY,
)  # fmt: skip


@member_page("GET")
def show_definitions(request: MemberRequest) -> HttpResponse:
    return render_list(
        request,
        DEFINITIONS,
        more={
            "publications": unfinished_publications(request.tenant),
            "may_retry": request.membership.may(Permission.OPERATE),
            "once": OnceForm(),
        },
    )


def unfinished_publications(tenant: Tenant) -> QuerySet[Publication]:
    """What is not published yet, and what was refused lately."""
    status = Publication.Status
    refused = Q(status=status.EXHAUSTED, created_at__gt=timezone.now() - REFUSED_SHOWN)
    rows = Publication.objects.filter(tenant=tenant, kind__in=PUBLISHED)
    rows = rows.filter(Q(status=status.PENDING) | refused)
    return only_columns(rows, ()).order_by("-pk")[:MAX_PUBLICATIONS]


@member_action("studio:definitions", needs=Permission.OPERATE)
def retry_publication(request: MemberRequest, publication_id: UUID) -> str:
    """Make a publication due now, which a worker then tries again.

    One transaction with the audit entry. 409 `publication_ended`, if it has succeeded
    or was given up, is shown on the page.
    """
    rows = Publication.objects.filter(tenant=request.tenant)
    job = get_object_or_404(rows, pk=publication_id)
    with transactions.atomic():
        publications.retry_now(job)
        audit.record("publication.retried", job, by=request)
    return "It is tried again now."


@heavy
@member_page("GET", "POST", needs=Permission.OPERATE, once="studio:definitions")
def new_definition(request: MemberRequest) -> HttpResponse:
    """Ask for a schema and its options, and create the definition.

    `schema` in the query: the id of a published schema, of anybody, which is read from
    the ledger (404). The buttons `more_rows` and `read_header` only change the form.
    Errors of create_definition() are shown above it.
    """
    schema_id = request.GET.get("schema", "").strip()
    schema = read_schema(request.tenant, schema_id) if schema_id else None
    if request.method != "POST":
        return render_form(request, DefinitionForm(schema=schema))
    if not schema and request.POST.keys() & {"more_rows", "read_header"}:
        return render_form(request, fill_rows(request))
    form = DefinitionForm(request.POST, schema)
    if not form.is_valid():
        return render_form(request, form)
    with refusals_above(form):
        made = create_definition(request, form, schema_id)
        if request.POST.get("next") == "issue":
            messages.success(request, "It is ready. Fill in the first card.")
            return to_page(
                "studio:new_credential", request.tenant, {"definition": made.pk}
            )
        messages.success(request, "It is published.")
        return redirect("studio:definition", request.tenant.pk, made.pk)
    return render_form(request, form)


def fill_rows(request: HttpRequest) -> DefinitionForm:
    """The form as it was sent, with more rows or with those of a CSV header."""
    if "more_rows" in request.POST:
        return DefinitionForm.with_rows(request.POST)
    found = read_header(
        request.POST.get("header", ""), request.FILES.get("header_file")
    )
    if not 1 <= len(found) <= MAX_ROWS:
        messages.error(
            request,
            f"There are {len(found)} names in that line; it takes 1 to {MAX_ROWS}.",
        )
        return DefinitionForm.with_rows(request.POST)
    return DefinitionForm.with_rows(request.POST, found)


def create_definition(
    request: MemberRequest, form: DefinitionForm, schema_id: str
) -> CredentialDefinition:
    """Create and publish what the form asks for, as the API does.

    The key is reserved (on a remote ledger, all is published) before the transaction
    that stores the definition and its audit entry. If that fails, the key goes back to
    the pool. 409 `tag_taken`, `schema_exists`, `quota_exceeded`; 503 `key_not_ready`,
    `ledger_unavailable`, `organization_frozen`.
    """
    tenant = request.tenant
    body = form.parameters
    schema = form.schema or build_schema_body(
        tenant, body["name"], body["version"], body["attributes"]
    )
    wanted = publishing.DefinitionParameters(
        tenant=tenant,
        schema_body=schema,
        # that of the address, for an existing schema
        schema_id=schema_id or ledger_of(tenant.network).schema_id_of(schema),
        tag=body.get("tag"),
        supports_revocation=body.get("supportRevocation", False),
        claims=body.get("claims"),
        recipient_attribute=body.get("recipientAttribute", ""),
    )
    create = audit.recorded(
        publishing.create_definition, "definition.created", by=request
    )
    with publishing.preparing_definition(wanted) as prepare:
        return create(wanted, prepare())


def render_form(request: MemberRequest, form: DefinitionForm) -> HttpResponse:
    schemas = Schema.objects.filter(tenant=request.tenant).order_by("-pk")[:MAX_SCHEMAS]
    context = {
        "form": form,
        "schema": form.schema,
        "schemas": [] if form.schema else schemas,
        "max_rows": MAX_ROWS,
    }
    return render(request, "studio/new_definition.html", context)


@member_page("GET")
def show_definition(request: MemberRequest, object_id: UUID) -> HttpResponse:
    found = get_definition(request.tenant, object_id)
    context = {
        "definition": found,
        "card": example_card(found),
        "attributes": [
            (name, TYPES[found.type_of(name)]) for name in found.schema.attribute_names
        ],
        "counts": count_credentials(found),
        "max_counted": MAX_COUNTED,
        "registry": registry_fill(found),
        "may_issue": request.membership.may(Permission.OPERATE),
        "network": network_with(request.tenant.network, found.definition_id),
        "twin": twins.find_twin(found),
        "form": OnceForm(),
    }
    context["may_have_twin"] = not context["twin"] and may_have_twin(found)
    return render(request, "studio/definition.html", context)


def may_have_twin(definition: CredentialDefinition) -> bool:
    """Whether there is a did:webvh beside its network, by which it can be published."""
    if definition.twin_of or not definition.is_anoncreds:
        return False
    if definition.tenant.network.kind == Network.Kind.WEBVH:
        return False
    live = WebvhDid.objects.filter(tenant=definition.tenant, next_key__isnull=False)
    return live.exists()


@heavy
@member_action("studio:definition", needs=Permission.OPERATE)
def make_twin(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """Publish the definition by the organization's did:webvh too, as the API does.

    Leads to the twin. The errors of create_twin() are shown on the page.
    """
    found = get_definition(request.tenant, object_id)
    create = audit.recorded(twins.create_twin, "definition.created", by=request)
    with twins.preparing_twin(found) as prepare:
        made = create(found, prepare())
    messages.success(request, "The twin is published.")
    return redirect("studio:definition", request.tenant.pk, made.pk)


def example_card(definition: CredentialDefinition) -> Card:
    values = {
        name: example_value(name, definition.type_of(name))
        for name in definition.schema.attribute_names
    }
    return draw_card(definition, values)


def get_definition(tenant: Tenant, object_id: UUID) -> CredentialDefinition:
    """Return a definition of the organization that is not deleted. Raises Http404.

    Without its private keys.
    """
    rows = only_columns(CredentialDefinition.active_of(tenant), ())
    found = get_object_or_404(rows, pk=object_id)
    found.tenant = tenant
    return found


class CredentialCounts(NamedTuple):
    states: list[tuple[str, int]]
    all: int


def count_credentials(definition: CredentialDefinition) -> CredentialCounts:
    """How many of the newest credentials are in each state, and how many in all."""
    own = Wallet.objects.filter(tenant=definition.tenant, is_organization=True)
    rows = Credential.objects.filter(
        wallet=Subquery(own.values("pk")[:1]),
        definition_id=definition.definition_id,
    )
    newest = rows.order_by("-pk").values_list("state", flat=True)[:MAX_COUNTED]
    states = Counter(newest)
    counted = [(str(state), states[str(state)]) for state in Credential.State]
    return CredentialCounts(counted, states.total())


def registry_fill(definition: CredentialDefinition) -> dict[str, int] | None:
    """The places of a revocable definition: used, of how many, in percent."""
    if not definition.supports_revocation:
        return None
    sizes = list(definition.registries.values_list("size", "next_index"))
    places = sum(size - 1 for size, _ in sizes)
    used = sum(next_index - 1 for _, next_index in sizes)
    percent = round(100 * used / places) if places else 0
    return {
        "registries": len(sizes),
        "places": places,
        "used": used,
        "percent": percent,
    }
