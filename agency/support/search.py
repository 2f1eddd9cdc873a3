"""One search over what customers name: ids, threads, names, DIDs, mails, addresses.

All of it is one statement, a union with a branch for each column. Each branch compares
an indexed column, whole or by its beginning, and is read at most MAX_PER_BRANCH times.
So a search stays cheap whatever the size of the tables (a test reads the plans).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.db.models import (
    DateTimeField,
    F,
    Model,
    OuterRef,
    QuerySet,
    Subquery,
    TextField,
    UUIDField,
    Value,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast

from agency.support.customers import Staff, may_view, record_url
from connections.didcomm.dids import DID_WEBVH
from connections.models import (
    BasicMessage,
    Connection,
    InboundMessage,
    OutboundMessage,
)
from core.database.collation import case_insensitive
from credentials.models import (
    Credential,
    CredentialDefinition,
    Publication,
    Schema,
    WebvhDid,
)
from tenants.models import Tenant
from verifications.models import Verification
from wallets.models import Wallet
from webhooks.delivery.endpoints import INDEXED_URL, mask_url, url_prefix
from webhooks.models import Delivery, Event, Webhook

MIN_PREFIX = 2  # characters
MAX_TERM = 2000
MAX_PER_BRANCH = 10
MAX_RESULTS = 50
DID_SOV = "did:sov:"
ONLY_HOST = re.compile(r"[^:]*://[^/?#]*/?")

# In this order the records are listed. (model, label, state, time, tenant)
KINDS: dict[type[Model], tuple[str, str, str, str, str]] = {
    Verification: ("thread_id", "state", "role", "created_at", "tenant"),
    Credential: ("thread_id", "state", "role", "created_at", "tenant"),
    Connection: ("name", "state", "role", "created_at", "tenant"),
    Tenant: ("name", "", "", "created_at", "id"),
    Wallet: ("wallet_id", "", "", "created_at", "tenant"),
    User: ("email", "", "", "date_joined", ""),
    EmailAddress: ("email", "", "", "", ""),
    Webhook: ("url", "type", "disabled_reason", "created_at", "tenant"),
    Event: ("object_id", "type", "", "created_at", "tenant"),
    Delivery: ("last_error", "status", "", "created_at", ""),
    OutboundMessage: ("type", "status", "", "created_at", "tenant"),
    InboundMessage: ("type", "status", "", "created_at", "tenant"),
    BasicMessage: ("direction", "", "", "created_at", "tenant"),
    Publication: ("subject", "status", "", "created_at", "tenant"),
    CredentialDefinition: ("definition_id", "", "", "created_at", "tenant"),
    Schema: ("schema_id", "", "", "created_at", "tenant"),
}
COLUMNS = (
    "found_kind", "found_key", "found_label", "found_state", "found_role", "found_at",
    "found_tenant",
)  # fmt: skip
NAMES = {User: "person", Tenant: "organization", Wallet: "wallet"}
# The side that asks and judges comes first: its record has the reasons.
FIRST_ROLES = {Verification.Role.VERIFIER, Credential.Role.ISSUER, "inviter"}


@dataclass
class Result:
    """One record that was found. tenant: None if it has none, or may not be viewed."""

    model: type[Model]
    key: str
    label: str
    state: str
    role: str
    at: datetime | None
    tenant_id: UUID | None
    tenant: Tenant | None = None

    @property
    def kind(self) -> str:
        return NAMES.get(self.model, str(self.model._meta.verbose_name))

    @property
    def url(self) -> str:
        return record_url(self.model, self.key)


def find_records(term: str, user: Staff) -> list[Result]:
    """Return the records that the term names and the person may view.

    Each once, sorted by kind (KINDS), then the side that asks, then the newest first.
    """
    statement = build_statement(term, user)
    if statement is None:
        return []
    models = {model._meta.label_lower: model for model in KINDS}
    found = {}
    # Enough for all rows: there are at most twice as many branches as kinds.
    for row in statement[: len(KINDS) * 2 * MAX_PER_BRANCH]:
        model = models[row["found_kind"]]
        label = row["found_label"]
        if model is Webhook:
            label = mask_url(label)  # the rest of the address may be a secret
        found[model, row["found_key"]] = Result(
            model=model,
            key=row["found_key"],
            label=label,
            state=row["found_state"],
            role=row["found_role"],
            at=row["found_at"],
            tenant_id=row["found_tenant"],
        )
    order = list(KINDS)
    results = sorted(
        found.values(),
        key=lambda one: one.at.timestamp() if one.at else 0.0,
        reverse=True,
    )
    results.sort(key=lambda one: (order.index(one.model), one.role not in FIRST_ROLES))
    return with_tenants(results[:MAX_RESULTS], user)


def with_tenants(results: list[Result], user: Staff) -> list[Result]:
    """Add the organizations that the person may view; leave out deleted ones."""
    ids = {result.tenant_id for result in results if result.tenant_id}
    tenants = Tenant.objects.only("name").in_bulk(ids) if ids else {}
    results = [one for one in results if not one.tenant_id or one.tenant_id in tenants]
    if may_view(user, Tenant):
        for result in results:
            result.tenant = tenants.get(result.tenant_id)
    return results


def build_statement(term: str, user: Staff) -> QuerySet | None:
    """Return the union of all branches, or None if nothing can match."""
    term = term.strip()
    if not term or len(term) > MAX_TERM or "\x00" in term:
        return None
    branches = [
        project_rows(rows)
        for rows in list_branches(term)
        if may_view(user, shown_as(rows.model))
    ]
    if not branches:
        return None
    return branches[0].union(*branches[1:], all=True)


def list_branches(term: str) -> Iterator[QuerySet]:
    """Yield one queryset for each column that the term may name."""
    try:
        key = UUID(term.removeprefix("msg_"))  # also as the `webhook-id` of a call
    except ValueError:
        key = None
    if key:
        for model in KINDS:
            if model not in (User, EmailAddress):
                yield model._default_manager.filter(pk=key)
        yield Tenant.objects.filter(public_id=key)
        yield Delivery.objects.filter(event=key)
    yield Verification.objects.filter(thread_id=term)
    yield Credential.objects.filter(thread_id=term)
    yield Connection.objects.filter(connection_id=term)
    yield Wallet.objects.filter(wallet_id=term)
    # A DID of an Indy network has two spellings.
    bare = term.removeprefix(DID_SOV)
    is_other_did = bare == term and term.startswith("did:")
    for did in {term} if is_other_did else {bare, DID_SOV + bare}:
        yield Connection.objects.filter(their_did=did)
        yield Connection.objects.filter(my_did=did)
        yield Wallet.objects.filter(did=did)
    if term.startswith(DID_WEBVH):  # a join might read all wallets
        owner = WebvhDid.objects.filter(did=term).values("tenant")
        yield Wallet.objects.filter(is_organization=True, tenant=Subquery(owner[:1]))
    if len(term) >= MIN_PREFIX:
        yield from list_prefixes(term)


def list_prefixes(term: str) -> Iterator[QuerySet]:
    """Yield one queryset for each column that may begin with the term."""
    lower = term.lower()
    names = Connection.objects.filter(connectionless=False).exclude(name="")
    for rows in (names, Tenant.objects.all()):
        named = rows.alias(search=case_insensitive("name"))
        yield named.filter(search__startswith=lower)
    yield EmailAddress.objects.filter(email__startswith=lower)
    yield User.objects.filter(username__startswith=term)
    # People often leave out `https://`.
    for url in [term] if "://" in term else [f"https://{term}", f"http://{term}"]:
        begun = Webhook.objects.alias(search=url_prefix())
        begun = begun.filter(search__startswith=url[:INDEXED_URL])
        # Beyond the host it has to be whole, else a secret could be guessed in pieces.
        is_host = bool(ONLY_HOST.fullmatch(url))
        yield begun.filter(**{"url__startswith" if is_host else "url": url})


def project_rows(rows: QuerySet) -> QuerySet:
    """Select the same columns from each table, of the first rows only."""
    label, state, role, at, tenant = KINDS[rows.model]
    no_time = Cast(Value(None), DateTimeField())
    found_tenant: Combinable = Cast(F(tenant) if tenant else Value(None), UUIDField())
    if rows.model is Delivery:  # a join might read all webhooks
        webhook = Webhook.objects.filter(pk=OuterRef("webhook_id"))
        found_tenant = Subquery(webhook.values("tenant_id"), output_field=UUIDField())
    return rows.annotate(
        found_kind=Value(shown_as(rows.model)._meta.label_lower, TextField()),
        found_key=Cast("user" if rows.model is EmailAddress else "pk", TextField()),
        found_label=as_text(label),
        found_state=as_text(state),
        found_role=as_text(role),
        found_at=Cast(F(at), DateTimeField()) if at else no_time,
        found_tenant=found_tenant,
    ).values(*COLUMNS)[:MAX_PER_BRANCH]


def shown_as(model: type[Model]) -> type[Model]:
    """Return the model whose page shows a row: an address is on its person's."""
    return User if model is EmailAddress else model


def as_text(column: str) -> Combinable:
    return Cast(F(column), TextField()) if column else Value("", TextField())
