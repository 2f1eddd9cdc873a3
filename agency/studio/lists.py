"""The studio's lists of an organization's objects: search, filter, order and pages.

They read what the lists of the API read: hosted wallets, and the connections and
exchanges of the organization's own wallet or of a hosted one. No list has values, but
for the names of people.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from typing import Any, Generic
from urllib.parse import quote
from uuid import UUID

from django import forms
from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers

from agency.studio import list_search
from agency.studio.curl import Json, example_call
from agency.studio.form_tokens import OnceForm
from agency.studio.forms import choice_field
from agency.studio.list_search import Search
from agency.studio.named_people import name_people
from agency.studio.objects import (
    Row,
    get_hosted_wallet,
    of_tenant,
    with_ends,
    with_policy_names,
    with_recipients,
    with_schema_names,
)
from agency.studio.pages import MemberRequest, View, member_page
from agency.words.states import RUN_OUT, Subject, ended_in, labels_of
from connections.api.serializers import ConnectionQuery
from connections.models import Connection
from core.api.pagination import (
    MAX_CURSOR,
    ListQuery,
    only_columns,
    paginate_both_ways,
)
from core.database.prepared_statements import planned_for_values
from core.database.uuids import smallest_uuid7, unix_milliseconds
from core.errors import Invalid
from credentials.api.serializers import CredentialDefinitionQuery, CredentialQuery
from credentials.models import (
    BulkRow,
    Credential,
    CredentialDefinition,
    Publication,
)
from tenants.models import Permission
from verifications.api.serializers import VerificationPolicyQuery, VerificationQuery
from verifications.models import Verification, VerificationPolicy
from wallets.api.wallets import WalletQuery
from wallets.models import Wallet

PAGE_SIZE = 50
MAX_COUNTED = 10_000  # rows of a list
MAX_FOUND = 500  # of a search, and of cards that have run out
LOOKED_AT_ONCE, MAX_LOOKED = 2500, 10_000  # cards whose last day is looked at
NO_CHOICE = "This list has no such state, order or page. Choose from the form."
NEWEST = {"-createdAt": "Newest first", "createdAt": "Oldest first"}
CHANGED = {"-updatedAt": "Last changed first"}
NAMED = {"name": "By name"}
# What is done with ticked rows (chosen.py).
REVOKE, LINKS, AGAIN = "revoke", "links", "again"
ACTS = {REVOKE: "Revoke", LINKS: "Copy links", AGAIN: "Send again"}
# What an empty list of a hosted wallet says instead of `about` and `create`.
OF_A_WALLET = "It begins with an invitation that the wallet accepts."
ACCEPT = "/custodian/v1/api/{}/connections/invitation"
# By the name of a list: its model, and which role the organization has, or a holder.
ROLES_OF: dict[str, tuple[type[Subject], str, str]] = {
    "connections": (Connection, Connection.Role.INVITER, Connection.Role.INVITEE),
    "credentials": (Credential, Credential.Role.ISSUER, Credential.Role.HOLDER),
    "verifications": (
        Verification,
        Verification.Role.VERIFIER,
        Verification.Role.PROVER,
    ),
}
Parameters = Mapping[str, str | int | bool]  # of a query of the API


def states_of(
    model: type[Connection | Credential | Verification],
) -> dict[str, Parameters]:
    return {str(state): {"state": str(state)} for state in model.State}


@dataclass(frozen=True)
class ObjectList(Generic[Row]):
    """A list of one kind of objects.

    name: of its URL. singular: as in "No connection …". query: of the list in the API.
    states: the parameters of that query by the value of the filter. create: path and
    body of the API call that makes such an object, and about what it is. new_page: the
    route of the page that makes one, if there is one. acts: of ACTS, what can be done
    with ticked rows.
    """

    name: str
    title: str
    singular: str
    about: str
    query: type[ListQuery]
    rows: Callable[[Wallet], QuerySet[Row]]
    search: Callable[[QuerySet[Row], Search], QuerySet[Row]]
    sorts: dict[str, str]
    create: tuple[str, Json]
    states: dict[str, Parameters] = field(default_factory=dict)
    new_page: str = ""
    acts: tuple[str, ...] = ()

    def find(self, search: Search) -> QuerySet[Row]:
        return self.search(self.rows(search.wallet), search)

    def labels(self, is_hosted: bool) -> dict[str, str]:
        """The states in plain words, of the role that most rows of a list have."""
        if not self.states:
            return {}
        model, own, of_holder = ROLES_OF[self.name]
        return labels_of(model, of_holder if is_hosted else own)

    @property
    def route(self) -> str:
        return f"studio:{self.name}"

    @property
    def acts_in_words(self) -> dict[str, str]:
        return {act: ACTS[act] for act in self.acts}

    @property
    def template(self) -> str:
        is_exchange = self.name in ("credentials", "verifications")
        return f"studio/lists/{'exchanges' if is_exchange else self.name}.html"


WALLETS = ObjectList(
    name="wallets",
    title="Wallets",
    singular="wallet",
    about="Each is hosted for a holder who has no wallet app.",
    query=WalletQuery,
    rows=lambda wallet: only_columns(Wallet.hosted_by(wallet.tenant), ()),
    search=list_search.search_wallets,
    sorts=NEWEST | NAMED,
    create=("/custodian/v1/api/wallets", {"ownerName": "Alice"}),
    new_page="studio:new_wallet",
)
CONNECTIONS = ObjectList(
    name="connections",
    title="Connections",
    singular="connection",
    about="Over a connection you offer credentials, ask for proofs and send texts.",
    query=ConnectionQuery,
    rows=lambda wallet: only_columns(
        wallet.connections.filter(connectionless=False), ()
    ),
    search=list_search.search_connections,
    sorts=NEWEST | CHANGED | NAMED,
    states=states_of(Connection),
    create=("/credentials/v1/connections", {"name": "Alice"}),
    new_page="studio:new_connection",
    acts=(LINKS,),
)
DEFINITIONS = ObjectList(
    name="definitions",
    title="Definitions",
    singular="definition",
    about="What your credentials say: a schema names the attributes.",
    query=CredentialDefinitionQuery,
    rows=lambda wallet: only_columns(CredentialDefinition.active_of(wallet.tenant), ()),
    search=list_search.search_definitions,
    sorts=NEWEST | NAMED,
    create=(
        "/credentials/v1/definitions/credentials",
        {"name": "Degree", "version": "1.0", "attributes": ["name", "year"]},
    ),
    new_page="studio:new_definition",
)
CREDENTIALS = ObjectList(
    name="credentials",
    title="Credentials",
    singular="credential",
    about="Those that you offered, issued or revoked.",
    query=CredentialQuery,
    rows=lambda wallet: with_schema_names(
        with_ends(with_recipients(wallet.credentials.select_related("connection")))
    ),
    search=list_search.search_credentials,
    sorts=NEWEST | CHANGED,
    states=states_of(Credential) | {RUN_OUT: {"state": Credential.State.ISSUED}},
    create=(
        "/credentials/v1/credentials",
        {"definitionId": "DEFINITION-ID", "credentialValues": {"name": "Alice"}},
    ),
    new_page="studio:new_credential",
    acts=(REVOKE, LINKS, AGAIN),
)
POLICIES = ObjectList(
    name="policies",
    title="Policies",
    singular="policy",
    about="What you ask holders for, each time with one click.",
    query=VerificationPolicyQuery,
    rows=lambda wallet: only_columns(
        VerificationPolicy.objects.filter(tenant=wallet.tenant), ()
    ),
    search=list_search.search_policies,
    sorts=NEWEST | NAMED,
    create=(
        "/credentials/v1/verificationPolicies",
        {"name": "Name", "version": "1.0", "attributes": [{"policyName": "name"}]},
    ),
    new_page="studio:new_policy",
)
VERIFICATIONS = ObjectList(
    name="verifications",
    title="Verifications",
    singular="verification",
    about="Proofs that you asked for, and whether they are valid.",
    query=VerificationQuery,
    # With the policy, whose name is shown, and the proof, which names the person.
    rows=lambda wallet: with_policy_names(
        wallet.verifications.select_related("connection").defer(
            "proposal",
            "request_body",
            "presentation",
            "checks",
            "metadata",
            "connection__shared",
            "connection__metadata",
        )
    ),
    search=list_search.search_verifications,
    sorts=NEWEST | CHANGED,
    states=states_of(Verification)
    | {"Valid": {"isValid": True}, "Not valid": {"isValid": False}},
    create=(
        "/credentials/v1/verifications/policy",
        {"name": "Name", "version": "1.0", "attributes": [{"policyName": "name"}]},
    ),
    new_page="studio:new_verification",
    acts=(LINKS, AGAIN),
)


class CursorField(forms.CharField):
    widget = forms.HiddenInput

    def __init__(self) -> None:
        super().__init__(required=False, max_length=MAX_CURSOR)


class ListForm(forms.Form):
    q = forms.CharField(
        label="Name or id",
        max_length=200,
        required=False,
        widget=forms.TextInput(attrs={"type": "search"}),
    )
    state = forms.ChoiceField(label="State", required=False)
    sort = forms.ChoiceField(label="Order", required=False)
    # Of credentials: those of a file, and those that were made on a day or later.
    file = forms.UUIDField(required=False, widget=forms.HiddenInput)
    since = forms.DateField(required=False, widget=forms.HiddenInput)
    page = forms.IntegerField(
        required=False, min_value=1, max_value=1_000_000, widget=forms.HiddenInput
    )
    after = CursorField()
    before = CursorField()
    saw_all = True  # see find_run_out()

    def __init__(
        self, data: QueryDict, kind: ObjectList[Row], is_hosted: bool = False
    ) -> None:
        super().__init__(data)
        self.sorts, self.states, self.asked = kind.sorts, kind.states, kind.query
        choice_field(self, "sort").choices = list(kind.sorts.items())
        labels = kind.labels(is_hosted)
        states = [
            (name, labels.get(name, name))
            for name in kind.states
            if name != RUN_OUT or not is_hosted
        ]
        choice_field(self, "state").choices = [("", "All states"), *states]
        if not states:
            del self.fields["state"]
        if kind.singular != "credential":
            del self.fields["file"], self.fields["since"]

    @property
    def is_filtered(self) -> bool:
        return bool(self.data.get("q") or self.data.get("state") or self.is_narrowed)

    @property
    def is_narrowed(self) -> bool:
        """Whether it shows only some credentials, whatever is chosen."""
        return any(self.cleaned_data.get(name) for name in ("file", "since"))

    def narrow(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        """The rows of the file and since the day that are asked for. Ids have times.

        And of those that have run out, if these are asked for.
        """
        if file := self.cleaned_data.get("file"):
            of_file = BulkRow.objects.filter(bulk=file).exclude(credential=None)
            rows = rows.filter(pk__in=of_file.values("credential"))
        if day := self.cleaned_data.get("since"):
            began = datetime.combine(day, time(), tzinfo=UTC)
            rows = rows.filter(pk__gte=smallest_uuid7(unix_milliseconds(began)))
        if self.cleaned_data.get("state") == RUN_OUT:
            found, self.saw_all = find_run_out(rows)
            rows = rows.filter(pk__in=found)
        return rows

    def query(self) -> ListQuery:
        """The query of the API for what is asked. Raises Invalid."""
        if not self.is_valid():
            raise Invalid("invalid_request", NO_CHOICE)
        given = self.cleaned_data
        data = {"limit": PAGE_SIZE, **self.states.get(given.get("state", ""), {})}
        data["sort"] = given["sort"] or next(iter(self.sorts))
        if cursor := given["before"] or given["after"]:
            data["cursor"] = cursor
        query = self.asked(data=data)
        query.is_valid(raise_exception=True)
        return query

    def count(self, rows: QuerySet[Row], query: ListQuery) -> int:
        """How many rows are asked for on all pages; one more than `most` if more."""
        found = {
            name: value
            for name, value in query.validated_data.items()
            if name not in ("limit", "sort", "cursor")
        }
        return rows.filter(**found).order_by()[: self.most + 1].count()

    @property
    def most(self) -> int:
        """How many are counted: fewer of a search, as each is looked up."""
        is_found = self.data.get("q") or self.data.get("state") == RUN_OUT
        return MAX_FOUND if is_found else MAX_COUNTED


def find_run_out(rows: QuerySet[Any]) -> tuple[list[UUID], bool]:
    """The newest cards that have run out, and whether all that are issued were seen.

    Their last days are sealed, which no index finds: the newest MAX_LOOKED are looked
    at. One more than MAX_FOUND is returned if there are more.
    """
    issued = rows.filter(state=Credential.State.ISSUED).order_by("-pk")
    columns = issued.values_list("pk", "tenant", "ending_values")
    found: list[UUID] = []
    part = columns[:LOOKED_AT_ONCE]
    for _ in range(MAX_LOOKED // LOOKED_AT_ONCE):
        looked = list(part)
        found += [
            pk
            for pk, tenant, sealed in looked
            if sealed and ended_in(pk, tenant, sealed)
        ]
        if len(looked) < LOOKED_AT_ONCE or len(found) > MAX_FOUND:
            return found[: MAX_FOUND + 1], True
        part = columns.filter(pk__lt=looked[-1][0])[:LOOKED_AT_ONCE]
    return found, False


def render_list(
    request: MemberRequest,
    kind: ObjectList[Row],
    wallet_id: UUID | None = None,
    more: Mapping[str, OnceForm | bool | QuerySet[Publication]] | None = None,
) -> HttpResponse:
    """The page of a list; of a request by htmx only the part with the rows.

    wallet_id: of a hosted wallet, else the list is that of the organization's own.
    more: what the template shows beside the list. 400 `invalid_request` for a state or
    an order that the list does not have, `invalid_cursor` for the cursor of another
    list. 404 for a wallet that is not hosted here.
    """
    tenant = request.tenant
    hosted = get_hosted_wallet(tenant, wallet_id) if wallet_id else None
    wallet = hosted or Wallet.of_organization(tenant)
    form = ListForm(request.GET, kind, is_hosted=hosted is not None)
    query = form.query()
    rows = form.narrow(kind.rows(wallet))
    if text := form.cleaned_data["q"]:
        rows = kind.search(
            rows, Search(wallet, text, request.membership.may(Permission.NAMES))
        )
    with planned_for_values() if text else nullcontext():
        page = paginate_both_ways(rows, query, bool(form.cleaned_data["before"]))
        total = form.count(rows, query)
    number = form.cleaned_data["page"] or 1
    shown = of_tenant(tenant, page.rows)
    name_people(tenant, shown)
    context = {
        "hosted": hosted,
        "kind": kind,
        "may_make": kind.new_page
        and not hosted
        and request.membership.may(Permission.OPERATE),
        "chosen_url": chosen_url(request, kind) if not hosted else "",
        "form": form,
        "rows": shown,
        "total": total,
        "max_counted": form.most,
        "max_looked": 0 if form.saw_all else MAX_LOOKED,
        "page": number,
        "pages": -(-total // PAGE_SIZE),
        "newer": page_query(request, "before", page.previous, max(number - 1, 1)),
        "older": page_query(request, "after", page.next, number + 1),
        "about": OF_A_WALLET if hosted else kind.about,
        "example": example_call(*first_call(kind, hosted)),
    }
    is_part = "HX-Request" in request.headers
    name = "studio/list.html#rows" if is_part else "studio/list.html"
    response = render(request, name, {**context, **(more or {})})
    patch_vary_headers(response, ["HX-Request"])
    return response


def chosen_url(request: MemberRequest, kind: ObjectList[Row]) -> str:
    """Where ticked rows are sent to; "" for who may do nothing with them."""
    if not (kind.acts and request.membership.may(Permission.OPERATE)):
        return ""
    return reverse(f"studio:{kind.name}_chosen", args=[request.tenant.pk])


def first_call(kind: ObjectList[Row], hosted: Wallet | None) -> tuple[str, Json]:
    """The path and the body of the call with which an empty list begins to fill."""
    if hosted is None:
        return kind.create
    link = f"{settings.PUBLIC_URL}/i/TOKEN"
    return ACCEPT.format(quote(hosted.wallet_id)), {"invitation": link}


def page_query(request: HttpRequest, name: str, cursor: str | None, number: int) -> str:
    """The query string of the page at a cursor, with its number, or an empty text."""
    if cursor is None:
        return ""
    query = request.GET.copy()
    for cursor_name in ("before", "after"):
        query.pop(cursor_name, None)
    query[name] = cursor
    query["page"] = str(number)
    return query.urlencode()


def list_page(kind: ObjectList[Row]) -> View:
    """Return the view of a list, of the organization's own wallet or a hosted one."""

    @member_page("GET")
    def show_list(
        request: MemberRequest, wallet_id: UUID | None = None
    ) -> HttpResponse:
        return render_list(request, kind, wallet_id)

    return show_list
