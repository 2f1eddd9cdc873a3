"""Organizations and their keys in the admin.

Staff with the permission may create organizations, issue keys and revoke them. The
admin's log records each of these.
"""

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.options import InlineModelAdmin
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_protect

from agency.studio.form_tokens import OnceForm
from agency.studio.forms import OrganizationForm
from agency.support.admin.base import (
    DatedAdmin,
    ReadOnly,
    ReadOnlyAdmin,
    ShownOnceAdmin,
)
from agency.support.views import show_customer
from core.errors import AgencyError
from core.work import transactions
from credentials.ledgers.indy.pool import MAX_GENESIS_BYTES, check_genesis
from tenants import audit
from tenants.lifecycle.networks import fetch_genesis
from tenants.lifecycle.provisioning import create_organization
from tenants.models import (
    AgreementAcceptance,
    ApiKey,
    Asset,
    AuditEntry,
    DailyUsage,
    DataKey,
    Erasure,
    FormerDataKey,
    IdempotencyKey,
    Invitation,
    LoggedRequest,
    Membership,
    Network,
    Provider,
    Tenant,
)
from wallets.models import Wallet


class Inline(ReadOnly, admin.TabularInline):
    """Records that belong to the one of the page. They are changed nowhere here."""

    template = "admin/related.html"
    extra = 0
    ordering = ["-pk"]
    show_change_link = True

    def get_readonly_fields(
        self, request: HttpRequest, obj: Model | None = None
    ) -> Any:
        return self.fields


class Members(Inline):
    model = Membership
    fields = ["user", "role", "created_at"]
    verbose_name_plural = "members"


class Keys(Inline):
    model = ApiKey
    fields = [
        "kind", "name", "hint", "scopes", "made_by", "last_used_at",
        "last_used_address", "expires_at", "revoked_at",
    ]  # fmt: skip


@admin.register(Tenant)
class TenantAdmin(ShownOnceAdmin):
    form = OrganizationForm
    list_display = ["name", "network", "provider", "created_at"]
    list_filter = ["network", "is_test"]
    search_fields = ["name", "wallets__did"]
    date_hierarchy = "created_at"
    fields = [
        "id", "public_id", "name", "image_url", "network", "did", "endorser", "region",
        "provider", "made_by_provider", "short_qr_codes", "invalid_proof_answer",
        "invitation_protocol",
        "names_for_all", "name_search", "own_wallet_api", "visitor_wallets",
        "visitor_wallets_a_day", "is_test",
        "values_kept_days", "exchanges_kept_days",
        "created_at", "updated_at",
    ]  # fmt: skip
    form_fields = ["name", "image_url", "network_id", "is_test", "form_token"]

    def get_inlines(
        self, request: HttpRequest, obj: Tenant | None
    ) -> list[type[InlineModelAdmin]]:
        return [Members, Keys] if obj else []

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the customer page. Nothing is changed there."""
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        return show_customer(request, object_id)

    @admin.display(description="public DID")
    def did(self, tenant: Tenant) -> str:
        return Wallet.of_organization(tenant).issuer_did

    def create_row(
        self, request: HttpRequest, form: OrganizationForm
    ) -> tuple[Tenant, dict[str, str]]:
        """Create an organization with an audit entry, in the admin's transaction.

        Its provider account has no quotas. Return the secrets by their labels.
        """
        given = form.cleaned_data
        made = create_organization(
            given["name"],
            image_url=given["image_url"],
            network_id=given["network_id"],
            is_test=given["is_test"],
        )
        audit.record("organization.created", made.tenant, by=request)
        Kind = ApiKey.Kind
        return made.tenant, {
            Kind.ACCESS_TOKEN.label: made.access_token,
            Kind.SUBSCRIPTION_KEY.label: made.subscription_key,
            Kind.PROVIDER_KEY.label: made.provider_key,
        }


class IssueKeyForm(OnceForm, forms.ModelForm):
    class Meta:
        model = ApiKey
        fields = ["kind", "tenant", "provider", "name", "strict"]
        labels = {"tenant": "Organization", "provider": "Account of a provider"}
        help_texts = {
            "strict": "Of an access token: filters of lists that nothing reads are "
            "refused.",
            "tenant": "For an access token or a subscription key.",
            "provider": "For a provider key.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for owner in ("tenant", "provider"):
            self.fields[owner].required = False

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        is_provider_key = given.get("kind") == ApiKey.Kind.PROVIDER_KEY
        needed = "provider" if is_provider_key else "tenant"
        excluded = "tenant" if is_provider_key else "provider"
        if not given.get(needed) and needed not in self.errors:
            self.add_error(needed, "This kind of key needs it.")
        if given.get(excluded):
            self.add_error(excluded, "This kind of key has none.")
        if given.get("strict") and given.get("kind") != ApiKey.Kind.ACCESS_TOKEN:
            self.add_error("strict", "Only an access token is strict.")
        return given


@admin.register(ApiKey)
class ApiKeyAdmin(ShownOnceAdmin):
    form = IssueKeyForm
    list_display = [
        "hint", "kind", "name", "owner", "state", "last_used_at", "created_at",
    ]  # fmt: skip
    list_filter = ["kind", ("revoked_at", admin.EmptyFieldListFilter)]
    list_select_related = ["tenant", "provider"]
    search_fields = ["hint", "name", "tenant__name", "provider__name"]
    date_hierarchy = "created_at"
    fields = [
        "id", "kind", "hint", "name", "tenant", "provider", "scopes", "strict",
        "made_by", "state", "created_at", "last_used_at", "last_used_address", "expires_at",
        "revoked_at",
    ]  # fmt: skip
    form_fields = ["kind", "tenant", "provider", "name", "strict", "form_token"]
    raw_id_fields = ["tenant", "provider"]
    actions = ["revoke"]

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("tenants.change_apikey")

    @admin.display(description="state")
    def state(self, key: ApiKey) -> str:
        if key.is_live:
            return "live, ends soon" if key.expires_at else "live"
        return "revoked" if key.revoked_at else "ended"

    def create_row(
        self, request: HttpRequest, form: IssueKeyForm
    ) -> tuple[ApiKey, dict[str, str]]:
        given = form.cleaned_data
        owner = given["tenant"] or given["provider"]
        key, secret = ApiKey.issue(
            given["kind"],
            owner,
            given["name"],
            strict=given["strict"],
            made_by=audit.person_of(request),
        )
        audit.record("key.created", key, by=request)
        return key, {key.get_kind_display(): secret}

    @admin.action(description="Revoke selected keys", permissions=["revoke"])
    def revoke(
        self, request: HttpRequest, keys: QuerySet[ApiKey]
    ) -> HttpResponse | None:
        """Ask for confirmation, then revoke the live keys among the selected."""
        live = keys.filter(pk__in=ApiKey.live().values("pk"))
        live = live.select_related("tenant", "provider")
        if live and "confirmed" not in request.POST:
            context = self.admin_site.each_context(request)
            context |= {"title": "Revoke keys", "keys": live, "opts": self.opts}
            return TemplateResponse(request, "admin/revoke_keys.html", context)
        for key in live:
            audit.recorded(key.revoke, "key.revoked", key, by=request)()
            self.log_change(request, key, f"Revoked, of {key.owner}.")
        number = len(live)
        self.message_user(request, f"{number} keys revoked.", messages.SUCCESS)
        return None


@admin.register(Provider)
class ProviderAdmin(DatedAdmin):
    """Staff with the permission may set or remove the quotas of an account."""

    list_display = ["name", "has_quotas", "person", "created_at"]
    list_filter = ["has_quotas"]
    search_fields = ["name"]
    fields = ["id", "name", "has_quotas", "person", "created_at", "updated_at"]
    readonly_fields = ["id", "name", "person", "created_at", "updated_at"]
    inlines = [Keys]

    def save_model(self, request: HttpRequest, obj: Provider, *others: Any) -> None:
        super().save_model(request, obj, *others)
        audit.record(
            "account.quotas_changed",
            obj,
            by=request,
            name=obj.name,
            has_quotas=obj.has_quotas,
        )

    def has_change_permission(
        self, request: HttpRequest, obj: Provider | None = None
    ) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)


@admin.register(Membership)
class MembershipAdmin(ReadOnlyAdmin):
    list_display = ["user", "tenant", "role", "created_at"]
    list_filter = ["role"]
    search_fields = ["user__email", "tenant__name"]


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    """Open invitations to organizations, without their tokens."""

    list_display = ["email", "tenant", "role", "invited_by", "expires_at"]
    search_fields = ["email", "tenant__name"]


@admin.register(DailyUsage)
class DailyUsageAdmin(ReadOnlyAdmin):
    list_display = [
        "tenant", "day", "connections", "credentials", "verifications", "webhook_calls",
        "offers", "valid_proofs", "invalid_proofs",
    ]  # fmt: skip
    search_fields = ["tenant__name"]
    date_hierarchy = "day"


@admin.register(LoggedRequest)
class LoggedRequestAdmin(ReadOnlyAdmin):
    list_display = [
        "created_at", "tenant", "method", "route", "status", "error_code",
        "milliseconds", "request_id",
    ]  # fmt: skip
    search_fields = ["request_id"]
    fields = [
        "created_at", "tenant", "key", "method", "route", "status", "error_code",
        "milliseconds", "request_id", "address",
    ]  # fmt: skip

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Find the call with exactly this request id, by its index."""
        if not search_term:
            return queryset, False
        return queryset.filter(request_id=search_term), False


class NetworkForm(forms.ModelForm):
    """An Indy network. The endorser's seed is set by a command, never by a form."""

    file = forms.FileField(required=False, help_text="Or a file with them.")
    address = forms.URLField(
        required=False,
        assume_scheme="https",
        help_text="Or the address of such a file.",
    )

    class Meta:
        model = Network
        fields = ["id", "name", "genesis"]
        help_texts = {
            "genesis": "Pool transactions of an Indy ledger, one on each line."
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            self.instance.kind = Network.Kind.INDY

    def clean(self) -> dict[str, Any]:
        """Check the genesis. A file or a URL takes precedence over the text field.

        The URL is called here, outside of a transaction (NetworkAdmin.changeform_view).
        """
        given: dict[str, Any] = super().clean() or {}
        genesis = given.get("genesis", "")
        try:
            if file := given.get("file"):
                genesis = file.read(MAX_GENESIS_BYTES + 1).decode(errors="replace")
            elif address := given.get("address"):
                genesis = fetch_genesis(address)
            given["genesis"] = check_genesis(genesis)
        except AgencyError as error:
            self.add_error("genesis", error.message)
        return given


@admin.register(Network)
class NetworkAdmin(ReadOnlyAdmin):
    """Staff with the permission may add Indy networks, and change names and nodes."""

    form = NetworkForm
    list_display = ["id", "name", "kind", "endorser_did", "sequence"]
    fields = ["id", "name", "kind", "genesis", "endorser_did", "sequence"]
    form_fields = ["id", "name", "genesis", "file", "address"]

    @method_decorator(csrf_protect)
    def changeform_view(self, *args: Any, **kwargs: Any) -> HttpResponse:
        """Run without the admin's transaction, because the form may call a URL."""
        return cast(Any, self)._changeform_view(*args, **kwargs)

    @transactions.atomic()
    def save_model(
        self, request: HttpRequest, obj: Network, form: forms.ModelForm, change: bool
    ) -> None:
        """Save with an audit entry, in a transaction: changeform_view() has none."""
        super().save_model(request, obj, form, change)
        action = "network.changed" if change else "network.added"
        audit.record(action, obj, by=request, name=obj.name)

    def get_fields(self, request: HttpRequest, obj: Network | None = None) -> Any:
        if obj is None:
            return self.form_fields
        may_change = self.has_change_permission(request, obj)
        return [*self.fields, "file", "address"] if may_change else self.fields

    def has_add_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def has_change_permission(
        self, request: HttpRequest, obj: Network | None = None
    ) -> bool:
        is_local = obj is not None and obj.kind == Network.Kind.LOCAL
        return not is_local and admin.ModelAdmin.has_change_permission(
            self, request, obj
        )

    def get_readonly_fields(
        self, request: HttpRequest, obj: Network | None = None
    ) -> list[str]:
        return ["id", "kind", "endorser_did", "sequence"] if obj else []


@admin.register(AgreementAcceptance)
class AgreementAcceptanceAdmin(ReadOnlyAdmin):
    """Acceptances of ledgers' agreements; without organization, by the agency."""

    list_display = ["network", "tenant", "version", "mechanism", "accepted_at"]
    list_filter = ["network"]
    search_fields = ["tenant__name", "version"]
    date_hierarchy = "accepted_at"


@admin.register(Asset)
class AssetAdmin(DatedAdmin):
    list_display = ["name", "provider", "size", "created_at"]
    search_fields = ["name", "provider__name"]


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(DatedAdmin):
    """The writes with idempotency keys. The responses are sealed, and not shown."""

    list_display = ["key", "operation", "tenant", "provider", "created_at"]
    search_fields = ["key", "tenant__name", "provider__name"]
    details = ["object_model", "object_id", "shown_once"]


@admin.register(Erasure)
class ErasureAdmin(DatedAdmin):
    """What was deleted, while a worker removes its rows."""

    list_display = ["kind", "object_key", "created_at", "due_at", "last_error"]
    list_filter = ["kind"]
    details = ["status", "lease_until"]


@admin.register(DataKey)
class DataKeyAdmin(ReadOnlyAdmin):
    """The data keys, and the ids of their master keys. Keys are not shown."""

    list_display = ["tenant", "generation", "master_key_id", "created_at"]
    list_filter = ["master_key_id"]
    search_fields = ["tenant__name", "master_key_id"]
    details = ["rotated_at"]


@admin.register(FormerDataKey)
class FormerDataKeyAdmin(ReadOnlyAdmin):
    """Data keys that were replaced, until they are deleted."""

    list_display = ["tenant", "generation", "master_key_id", "retired_at"]
    list_filter = ["master_key_id"]
    search_fields = ["tenant__name", "master_key_id"]


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """Who changed what, of all organizations."""

    list_display = ["created_at", "action", "actor_name", "tenant", "target", "reason"]
    list_filter = ["actor_kind"]
    search_fields = ["object_id", "actor_name", "action"]
    fields = [
        "created_at", "action", "actor_kind", "actor_id", "actor_name", "origin",
        "tenant", "object_type", "object_id", "facts", "reason", "request_id",
    ]  # fmt: skip

    @admin.display(description="object")
    def target(self, entry: AuditEntry) -> str:
        return f"{entry.object_type} {entry.object_id}"

    @admin.display(description="details")
    def facts(self, entry: AuditEntry) -> str:
        return ", ".join(f"{name}: {value}" for name, value in entry.details.items())

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Find exact values, by the indexes of the columns."""
        if not search_term:
            return queryset, False
        found = Q(object_id=search_term) | Q(actor_name=search_term)
        return queryset.filter(found | Q(action=search_term)), False
