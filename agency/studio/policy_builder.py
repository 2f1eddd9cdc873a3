"""The page that builds a policy: from fields, as JSON, and tried on samples.

The three views are one form. Each button sends it, so it works without scripts, and
the next page shows what the API says of the policy.
"""

import json
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from agency.api.exceptions import flatten_errors
from agency.api.views import heavy, parse_uuid
from agency.core import bounded_json
from agency.core.errors import AgencyError, Invalid
from agency.holder_pages.contents import predicate_of, shown_attributes
from agency.studio.choices import find_choices
from agency.studio.definitions import get_definition
from agency.studio.form_tokens import OnceForm, once_per_form
from agency.studio.lists import DEFINITIONS
from agency.studio.pages import get_membership, studio_page
from agency.studio.policies import ask_now, get_policy
from agency.studio.policy_drafts import (
    KINDS,
    Draft,
    Json,
    draft_of,
    draft_of_definition,
    next_version,
    read_draft,
)
from agency.studio.policy_samples import Sample, add_sample, read_samples
from credentials.models import CredentialDefinition, PublishedObject
from tenants import audit
from tenants.models import Membership, Permission, Tenant
from verifications.api.lab import review_policy, sample_result
from verifications.api.serializers import VerificationPolicyParameters
from verifications.models import VerificationPolicy
from verifications.policy_lab.lint import Finding
from verifications.policy_lab.trial import Trial
from verifications.proofs import proof_policy

SAVE, SAVE_AND_ASK = SAVING = "save", "save_and_ask"
BUILDER, AS_JSON, TRY = "builder", "json", "try"
VIEWS = {BUILDER: "Build", AS_JSON: "JSON", TRY: "Try"}
MAX_KNOWN = 300  # public objects of the network to choose from, the newest
# Of a public object: in words, and by which a definition names its schema.
MEMBERS = ("name", "version", "schemaId", "tag", "issuerId")
TOO_LARGE = "It is larger than the builder shows. Change it here."


@dataclass
class PolicyBuilder:
    """What is on the page. text: the policy as JSON, where the view has no fields.

    errors: sentences by the path in the policy.
    """

    view: str = BUILDER
    draft: Draft = field(default_factory=Draft)
    text: str = ""
    samples: list[Sample] = field(default_factory=list)
    errors: dict[str, list[str]] = field(default_factory=dict)
    policy: Json | None = None  # normalised, if it is valid

    def read_body(self) -> Json:
        """The policy as it is now. Raises bounded_json.BadJSON."""
        if self.view == BUILDER:
            return self.draft.body()
        found = bounded_json.loads(self.text, unique_keys=True)
        if not isinstance(found, dict):
            raise bounded_json.BadJSON("not a JSON object")
        return found

    def check_policy(self) -> None:
        """Set `policy` or `errors`, as the API judges it."""
        try:
            body = self.read_body()
            self.policy = read_policy(body)
        except bounded_json.BadJSON as error:
            self.errors = {"": [f"This is not JSON that can be read: {error}."]}
        except Invalid as error:
            self.errors = error.errors or {"": [error.message]}

    def change_view(self, view: str) -> None:
        """Change to another view. What the builder cannot show stays JSON."""
        if view == BUILDER:
            self.check_policy()
            if self.policy is None:
                return
            draft = draft_of(self.policy)
            if not draft.fits_page:
                self.errors = {"": [TOO_LARGE]}
                return
            self.draft = draft
        elif self.view == BUILDER:
            self.text = as_text(self.draft.body())
        self.view, self.errors = view, {}


def read_policy(body: Json) -> Json:
    """The normalised policy, by the rules of the API. Raises Invalid."""
    read = VerificationPolicyParameters(data=body)
    if not read.is_valid():
        errors = flatten_errors(read.errors)
        raise Invalid("invalid_request", "The policy is not valid.", errors)
    return proof_policy.normalise(dict(read.validated_data))


def as_text(body: Json) -> str:
    return json.dumps(body, indent=2, ensure_ascii=False)


@heavy
@studio_page("GET", "HEAD", "POST")
@once_per_form(back="studio:policies")
def new_policy(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Build a policy: anew, from a definition, as a new version or a copy of one.

    It can be asked for at once: over the connection in the query, else by a link.
    """
    membership = get_membership(request, tenant_id, Permission.OPERATE)
    tenant = membership.tenant
    if request.method != "POST":
        builder = PolicyBuilder(draft=first_draft(request, tenant))
        if not builder.draft.fits_page:
            builder.change_view(AS_JSON)
        return render_builder(request, membership, builder)
    builder = read_builder(request.POST)
    do = request.POST.get("do", SAVE)
    if do not in SAVING:
        press_button(tenant, builder, do, request.POST)
        return render_builder(request, membership, builder)
    builder.check_policy()
    if builder.policy is None:
        return render_builder(request, membership, builder, is_checked=True)
    create = audit.recorded(VerificationPolicy.create, "policy.created", by=request)
    made = create(tenant, builder.policy)
    if do == SAVE_AND_ASK:
        return ask_now(request, tenant, made)
    return redirect("studio:policy", tenant_id=tenant_id, object_id=made.pk)


def first_draft(request: HttpRequest, tenant: Tenant) -> Draft:
    """The draft of the definition or policy in the query, if any."""
    if chosen := parse_uuid(request.GET.get("definition", "")):
        return draft_of_definition(get_definition(tenant, chosen))
    if chosen := parse_uuid(request.GET.get("policy", "")):
        draft = draft_of(get_policy(tenant, chosen).unsealed_body())
        if "copy" in request.GET:
            draft.name, draft.version = f"{draft.name} (copy)"[:200], "1.0"
        else:
            draft.version = next_version(draft.version)
        return draft
    return Draft()


def read_builder(given: QueryDict) -> PolicyBuilder:
    view = given.get("view", BUILDER)
    return PolicyBuilder(
        view=view if view in VIEWS else BUILDER,
        draft=read_draft(given),
        text=given.get("policy", ""),
        samples=read_samples(given),
    )


def press_button(
    tenant: Tenant, builder: PolicyBuilder, do: str, given: QueryDict
) -> None:
    """Do what a button says; an unknown one only shows the page anew."""
    if do in VIEWS:
        builder.change_view(do)
    elif do == "add_sample":
        builder.check_policy()
        wanted = builder.policy or {"attributes": [], "predicates": []}
        chosen = parse_uuid(given.get("sample_of", ""))
        definition = get_definition(tenant, chosen) if chosen else None
        add_sample(builder.samples, definition, wanted)
    elif do.startswith("remove_sample:"):
        number = do.partition(":")[2]
        if number.isdecimal():
            del builder.samples[int(number) : int(number) + 1]
    else:
        builder.draft.edit(do)


@dataclass
class Review:
    """What the API says of a valid policy."""

    trial: Trial
    findings: list[Finding]
    samples: list[Sample]

    @property
    def shown(self) -> list[str]:
        return shown_attributes(self.trial.items)

    @property
    def proven(self) -> list[Any]:
        return [predicate_of(item) for item in self.trial.items if item.is_predicate]

    @property
    def results(self) -> list[tuple[str, list[Json]]]:
        """For each item its name, and how each sample does."""
        candidates = self.trial.candidates
        return [
            (
                item.policy_name,
                [
                    sample_result(refusal, bool(candidate and candidate.is_revoked))
                    for refusal, candidate in zip(refusals, candidates, strict=True)
                ],
            )
            for item, refusals in zip(
                self.trial.items, self.trial.refusals, strict=True
            )
        ]


def review_builder(
    tenant: Tenant, builder: PolicyBuilder
) -> tuple[Review | None, str]:
    """The review of what is on the page, or why there is none."""
    if builder.policy is None:
        return None, ""
    samples = builder.samples if builder.view == TRY else []
    try:
        bodies = [one.body() for one in samples]
        trial, findings = review_policy(tenant, builder.policy, bodies)
    except AgencyError as error:
        return None, error.message
    return Review(trial, findings, samples), ""


def render_builder(
    request: HttpRequest,
    membership: Membership,
    builder: PolicyBuilder,
    is_checked: bool = False,
) -> HttpResponse:
    """is_checked: whether the errors are shown; a draft may be incomplete."""
    tenant = membership.tenant
    errors = builder.errors
    if not errors:
        builder.check_policy()
        errors = builder.errors if is_checked or builder.view != BUILDER else {}
    review, problem = review_builder(tenant, builder)
    definitions = find_choices(DEFINITIONS, tenant).rows
    context = {
        "membership": membership,
        "tenant": tenant,
        "form": OnceForm(),
        "builder": builder,
        "views": VIEWS.items(),
        "kinds": KINDS.items(),
        "errors": errors.items(),
        "review": review,
        "problem": problem,
        "definitions": definitions,
        "known": known_objects(tenant, definitions),
        "is_new": request.method != "POST" and not request.GET,
    }
    return render(request, "studio/new_policy.html", context)


def known_objects(
    tenant: Tenant, definitions: list[CredentialDefinition]
) -> dict[str, list[tuple[str, str]]]:
    """`(id, words)` of what can be chosen: the newest public objects of the network."""
    Kind = PublishedObject.Kind
    objects = PublishedObject.objects.filter(network=tenant.network)
    newest = objects.order_by("-sequence").values("pk")[:MAX_KNOWN]
    rows = list(
        objects.filter(pk__in=newest, kind__in=[Kind.SCHEMA, Kind.DEFINITION])
        .order_by("-sequence")
        .values("kind", "object_id", *(f"body__{name}" for name in MEMBERS))
    )
    schemas = {
        row["object_id"]: f"{row['body__name']} {row['body__version']}"
        for row in rows
        if row["kind"] == Kind.SCHEMA
    }
    found = {one.definition_id: schema_words(one) for one in definitions}
    for row in rows:
        if row["kind"] == Kind.DEFINITION:
            words = schemas.get(row["body__schemaId"]) or row["body__tag"] or ""
            found.setdefault(row["object_id"], words)
    issuers = dict.fromkeys(row["body__issuerId"] for row in rows)
    attributes = {name for one in definitions for name in one.schema.attribute_names}
    return {
        "definitions": list(found.items()),
        "schemas": list(schemas.items()),
        "issuers": [(did, "") for did in issuers if did],
        "attributes": [(name, "") for name in sorted(attributes)],
    }


def schema_words(definition: CredentialDefinition) -> str:
    return f"{definition.schema.name} {definition.schema.version}"
