"""The page that builds a policy: for one card, from fields, as JSON, and on samples.

The four views are one form. Each button sends it, so it works without scripts, and
the next page shows what the API says of the policy.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from agency.studio.card_policies import (
    CardPolicy,
    NotOneCard,
    card_of_definition,
    card_of_draft,
    read_card,
)
from agency.studio.choices import choose_from, find_choices
from agency.studio.curl import Body, Json
from agency.studio.definitions import get_definition
from agency.studio.form_tokens import OnceForm
from agency.studio.lists import DEFINITIONS
from agency.studio.pages import MemberRequest, ids_in, member_page, process_once
from agency.studio.policies import ask_now, get_policy
from agency.studio.policy_drafts import (
    KINDS,
    PLACE,
    Draft,
    draft_of,
    next_version,
    read_draft,
)
from agency.studio.policy_samples import Sample, add_sample, read_samples
from core.api.exceptions import flatten_errors
from core.api.views import heavy
from core.database.uuids import parse_uuid
from core.errors import AgencyError, Invalid
from core.text import bounded_json
from credentials.models import CredentialDefinition, PublishedObject
from tenants import audit
from tenants.models import Permission, Tenant
from verifications.api.lab import review_policy, sample_result
from verifications.api.serializers import VerificationPolicyParameters
from verifications.models import VerificationPolicy
from verifications.policy_lab.lint import Finding
from verifications.policy_lab.trial import Trial
from verifications.proofs import proof_policy
from verifications.proofs.policy import Policy
from verifications.wording import predicate_of, shown_attributes

CARD, BUILDER, AS_JSON, TRY = "card", "builder", "json", "try"
VIEWS = {CARD: "Choose", BUILDER: "Build", AS_JSON: "JSON", TRY: "Try"}
SAVE, SAVE_AND_ASK = SAVING = "save", "save_and_ask"
MAX_KNOWN = 300  # public objects of the network to choose from, the newest
# Of a public object: in words, and by which a definition names its schema.
MEMBERS = ("name", "version", "schemaId", "tag", "issuerId")
TOO_LARGE = "It is larger than the builder shows. Change it here."
NOT_ONE_CARD = "“Choose” cannot show this policy: {}. Nothing of it is changed."


@dataclass
class PolicyBuilder:
    """What is on the page. text: the policy as JSON, where the view has no fields.

    card: in the view of one card. errors: sentences by the path in the policy.
    """

    view: str = BUILDER
    card: CardPolicy | None = None
    draft: Draft = field(default_factory=Draft)
    text: str = ""
    samples: list[Sample] = field(default_factory=list)
    errors: dict[str, list[str]] = field(default_factory=dict)
    policy: Policy | None = None  # if it is valid

    def read_body(self) -> Body:
        """The policy as it is now. Raises bounded_json.BadJSON."""
        if self.card:
            return self.card.to_draft().body()
        if self.view == BUILDER:
            return self.draft.body()
        found = bounded_json.loads(self.text, unique_keys=True)
        if not isinstance(found, dict):
            raise bounded_json.BadJSON("not a JSON object")
        return found

    def check_policy(self) -> None:
        """Set `policy` or `errors`, as the API judges it."""
        if self.card and (errors := self.card.find_errors()):
            self.errors = errors
            return
        try:
            body = self.read_body()
            self.policy = read_policy(body)
        except bounded_json.BadJSON as error:
            self.errors = {"": [f"This is not JSON that can be read: {error}."]}
        except Invalid as error:
            self.errors = error.errors or {"": [error.message]}

    def change_view(self, view: str, tenant: Tenant) -> None:
        """Change to another view. What it cannot show stays as it is."""
        if self.view in (AS_JSON, TRY) and view in (CARD, BUILDER):
            self.check_policy()
            if self.policy is None:
                return
            self.draft = draft_of(self.policy)
        elif self.card:
            self.draft = self.card.to_draft()
        if refusal := self._refuse_view(view, tenant):
            self.errors = {"": [refusal]}
            return
        if view in (AS_JSON, TRY) and self.view in (CARD, BUILDER):
            self.text = as_text(self.draft.body())
        self.view, self.errors = view, {}

    def _refuse_view(self, view: str, tenant: Tenant) -> str:
        """Set `card` as the view needs it, or return why the view cannot be shown."""
        if view == CARD:
            try:
                self.card = card_of_draft(self.draft, tenant)
            except NotOneCard as error:
                return NOT_ONE_CARD.format(error)
            return ""
        if view == BUILDER and not self.draft.fits_page:
            return TOO_LARGE
        self.card = None
        return ""


def read_policy(body: Body) -> Policy:
    """The policy, by the rules of the API. Raises Invalid."""
    read = VerificationPolicyParameters(data=body)
    if not read.is_valid():
        errors = flatten_errors(read.errors)
        raise Invalid("invalid_request", "The policy is not valid.", errors)
    return proof_policy.normalise(dict(read.validated_data))


def as_text(body: Body) -> str:
    return json.dumps(body, indent=2, ensure_ascii=False)


@heavy
@member_page("GET", "POST", needs=Permission.OPERATE)
def new_policy(request: MemberRequest) -> HttpResponseBase:
    """Build a policy: anew, from a definition, as a new version or a copy of one.

    It can be asked for at once: over the connection in the query, else by a link.
    """
    if request.method != "POST":
        builder = first_builder(request, request.tenant)
        if builder is None:
            return render_choice(request)
        return render_builder(request, builder)
    do = request.POST.get("do", SAVE)
    if do in SAVING:
        return save_policy(request, tenant_id=request.tenant.pk)
    builder = read_builder(request.tenant, request.POST)
    press_button(request.tenant, builder, do, request.POST)
    return render_builder(request, builder)


@process_once("studio:policies")
def save_policy(request: MemberRequest, tenant_id: UUID) -> HttpResponse:
    """Create the policy, and ask for it if wanted.

    It is recorded in the same transaction. A view of its own because this alone claims
    the token of the form: the other buttons store nothing. With errors the page is
    shown again.
    """
    tenant = request.tenant
    builder = read_builder(tenant, request.POST)
    builder.check_policy()
    if builder.policy is None:
        return render_builder(request, builder)
    create = audit.recorded(VerificationPolicy.create, "policy.created", by=request)
    made = create(tenant, builder.policy)
    if request.POST.get("do") == SAVE_AND_ASK:
        return ask_now(request, made)
    return redirect("studio:policy", tenant_id, made.pk)


def first_builder(request: HttpRequest, tenant: Tenant) -> PolicyBuilder | None:
    """The page as it opens; None if a definition must be chosen first."""
    if chosen := parse_uuid(request.GET.get("definition", "")):
        return builder_of(get_definition(tenant, chosen))
    if chosen := parse_uuid(request.GET.get("policy", "")):
        draft = draft_of(get_policy(tenant, chosen).unsealed_policy())
        if "copy" in request.GET:
            draft.name, draft.version = f"{draft.name} (copy)"[:200], "1.0"
        else:
            draft.version = next_version(draft.version)
        # In the first view that can show all of it.
        builder = PolicyBuilder(draft=draft)
        builder.change_view(CARD, tenant)
        if builder.view != CARD:
            builder.change_view(BUILDER if draft.fits_page else AS_JSON, tenant)
        return builder
    if request.GET.get("view") == BUILDER:
        return PolicyBuilder()
    if "q" in request.GET:
        return None
    rows = list(CredentialDefinition.active_of(tenant)[:2])
    if len(rows) > 1:
        return None
    return builder_of(rows[0]) if rows else PolicyBuilder()


def builder_of(definition: CredentialDefinition) -> PolicyBuilder:
    return PolicyBuilder(view=CARD, card=card_of_definition(definition))


def render_choice(request: MemberRequest) -> HttpResponse:
    """The page that asks which definition a policy is about."""
    wanted = ids_in(request, "connection")
    context = {
        **choose_from(request, DEFINITIONS, request.tenant),
        "wanted": wanted,
        "query": urlencode(wanted),
    }
    return render(request, "studio/choose_card.html", context)


def read_builder(tenant: Tenant, given: QueryDict) -> PolicyBuilder:
    """Read the fields of the page. 404 if the definition of the card was deleted."""
    view = given.get("view", BUILDER)
    builder = PolicyBuilder(
        view=view if view in VIEWS else BUILDER,
        draft=read_draft(given),
        text=given.get("policy", ""),
        samples=read_samples(given),
    )
    if view == CARD:
        chosen = parse_uuid(given.get("card", ""))
        builder.card = read_card(given, get_definition(tenant, chosen or UUID(int=0)))
    return builder


def press_button(
    tenant: Tenant, builder: PolicyBuilder, do: str, given: QueryDict
) -> None:
    """Do what a button says; an unknown one only shows the page anew."""
    if do in VIEWS:
        builder.change_view(do, tenant)
    elif do == "add_sample":
        builder.check_policy()
        chosen = parse_uuid(given.get("sample_of", ""))
        definition = get_definition(tenant, chosen) if chosen else None
        add_sample(builder.samples, definition, builder.policy)
    elif do.startswith("remove_sample:"):
        number = do.partition(":")[2]
        if PLACE.fullmatch(number):
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
    def results(self) -> list[tuple[str, list[Mapping[str, Json]]]]:
        """Return, for each item, its name and how each sample does."""
        candidates = self.trial.candidates
        return [
            (
                item.policy_name,
                [
                    sample_result(code, bool(candidate and candidate.is_revoked))
                    for code, candidate in zip(codes, candidates, strict=True)
                ],
            )
            for item, codes in zip(
                self.trial.items, self.trial.unfit_codes, strict=True
            )
        ]


def review_builder(tenant: Tenant, builder: PolicyBuilder) -> tuple[Review | None, str]:
    """The review of what is on the page, or why there is none. May read the ledger."""
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
    request: MemberRequest,
    builder: PolicyBuilder,
) -> HttpResponse:
    """The page of the builder. What a draft still lacks is no error before it is saved.

    The errors of a builder that was checked are shown.
    """
    tenant = request.tenant
    errors = builder.errors
    if not errors:
        builder.check_policy()
        may_be_incomplete = builder.view in (CARD, BUILDER)
        errors = {} if may_be_incomplete else builder.errors
    review, problem = review_builder(tenant, builder)
    is_of_card = builder.view == CARD
    definitions = [] if is_of_card else find_choices(DEFINITIONS, tenant).rows
    context = {
        "form": OnceForm(),
        "builder": builder,
        "views": VIEWS.items(),
        "kinds": KINDS.items(),
        "errors": errors.items(),
        "review": review,
        "problem": problem,
        "definitions": definitions,
        "known": known_objects(tenant, definitions) if builder.view == BUILDER else {},
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
    found = {
        one.definition_id: f"{one.schema.name} {one.schema.version}"
        for one in definitions
    }
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
