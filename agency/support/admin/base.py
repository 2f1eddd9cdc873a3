"""The base classes of the admin: lists and pages that change nothing."""

import re
from functools import cached_property
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.text import capfirst
from django.views.decorators.cache import never_cache

from agency.studio.exchange.kinds import KINDS, exchange_page
from agency.studio.form_tokens import SENT_BEFORE, claim_form_token
from agency.support.actions import actions_for
from agency.support.customers import may_view, record_url
from agency.support.menu import kind_of, name_of
from core.database.uuids import parse_uuid
from tenants.models import Tenant

ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class BoundedPaginator(Paginator):
    """Counts at most 10,000 rows. Older rows are found by the search."""

    limit = 10_000

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return rows.order_by()[: self.limit].count()


class ReadOnly:
    """Nobody adds, changes or deletes these rows here."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission


def title_of(row: Model) -> str:
    """What a record is called: its kind and name; of whom and when instead of an id."""
    kind = capfirst(kind_of(type(row)))
    name = getattr(row, "email", "") or str(row)
    if not ID.search(name):
        return f"{kind}: {name}"
    tenant, since = tenant_of(row), getattr(row, "created_at", None)
    of_whom = f" of {tenant}" if tenant else ""
    return f"{kind}{of_whom}" + (
        f", {date_format(since, 'DATETIME_FORMAT')} UTC" if since else ""
    )


class Titled(admin.ModelAdmin):
    """Lists are called as in the menu, records by what people know of them."""

    @property
    def kind(self) -> str:
        return kind_of(self.model)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        title = {"title": name_of(self.model)}
        return super().changelist_view(request, title | (extra_context or {}))

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Name the record and its organization, and add the actions of support."""
        context |= {"list_name": name_of(self.model), "subtitle": None}
        if row := options.get("obj"):
            context["title"] = title_of(row)
            context["support_actions"] = actions_for(request.user, row)
            if may_view(request.user, Tenant):
                context["customer"] = customer_of(row)
        else:
            context["title"] = f"New {self.kind}"
        return super().render_change_form(request, context, *args, **options)


def tenant_of(row: Model) -> Tenant | None:
    """The organization of a record. None if it was erased: the log outlives it."""
    try:
        return getattr(row, "tenant", None)
    except Tenant.DoesNotExist:
        return None


def customer_of(row: Model) -> dict[str, str] | None:
    """The name and the page of the organization of a record."""
    tenant = tenant_of(row)
    if tenant is None or tenant.deleted_at:
        return None
    return {"name": tenant.name, "url": record_url(Tenant, tenant.pk)}


@admin.display(ordering="tenant", empty_value="–")
def organization(row: Model) -> str | None:
    """The name, which leads to the customer page."""
    if customer := customer_of(row):
        return format_html('<a href="{url}">{name}</a>', **customer)
    tenant = tenant_of(row)
    return str(tenant) if tenant else None


def with_organization(fields: Any) -> list[Any]:
    """The same fields, with the customer page instead of the record of the tenant."""
    return [organization if one == "tenant" else one for one in fields]


class ReadOnlyAdmin(ReadOnly, Titled):
    """Lists and shows rows, and finds them by their ids.

    The page of a row has the columns of the list, those of `details`, and its times,
    unless `fields` names all of them. Nothing else of a row is shown.
    """

    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = BoundedPaginator
    ordering = ["-pk"]
    actions: list[str] | None = None
    details: tuple[str, ...] | list[str] = ()

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The columns of the page in the order of the model, its times last."""
        if self.fields:
            return with_organization(self.fields)
        times = ("created_at", "updated_at")
        listed = [*self.list_display, *self.details]
        named = [one for one in listed if one not in times]
        columns = [column.name for column in self.opts.concrete_fields]
        key = self.opts.pk.name
        shown = [one for one in columns if one == key or one in named]
        shown += [one for one in named if one not in shown]
        return with_organization(shown + [one for one in times if one in columns])

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Whose a row is comes first."""
        others: list[Any] = [one for one in self.list_display if one != "tenant"]
        return [organization, *others] if "tenant" in self.list_display else others

    def get_list_display_links(self, request: HttpRequest, list_display: Any) -> Any:
        """The first column that is not the organization, which has its own page."""
        return [one for one in list_display if one is not organization][:1]

    def get_list_select_related(
        self, request: HttpRequest
    ) -> bool | list[str] | tuple[str, ...]:
        """The foreign keys in the list, unless the class names what else it reads."""
        return self.list_select_related or [
            column.name
            for column in self.opts.concrete_fields
            if column.is_relation and column.name in self.list_display
        ]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        found = super().get_search_results(request, queryset, search_term)
        try:
            by_id = queryset.filter(pk=UUID(search_term.strip()))
        except ValueError:
            return found
        # Ids of threads are UUIDs too: if no row has this primary key, what the text
        # search has found counts.
        return (by_id, False) if by_id.exists() else found


class DatedAdmin(ReadOnlyAdmin):
    """Also leads to the rows of a year, a month, a day."""

    date_hierarchy = "created_at"


class ExchangeAdmin(DatedAdmin):
    """Base of the admin of connections, credentials and verifications."""

    change_form_template = "admin/exchange.html"

    @admin.display(description="problem")
    def problem_in_words(self, row: Any) -> str:
        return row.problem_in_words

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Model | None:
        """Load the row with what the page and the fields show of other rows."""
        rows = KINDS[self.model.OBJECT_TYPE].rows().select_related("tenant")
        key = parse_uuid(object_id)
        return rows.filter(pk=key).first() if key else None

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Add the exchange page of the studio, without values, above the fields."""
        if row := options.get("obj"):
            shown = vars(exchange_page(row).shown())
            # The admin's own template has a `title`.
            titles = {"title": context["title"], "exchange_title": shown["title"]}
            context |= shown | titles | {"in_admin": True}
        return super().render_change_form(request, context, *args, **options)


class ShownOnceAdmin(ReadOnlyAdmin):
    """Staff with the add permission may create rows, whose secrets are shown once.

    Subclasses define `create_row` and `form`, an OnceForm. Django's admin logs the
    creation.
    """

    form_fields: list[str]

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return with_organization(self.fields) if obj else self.form_fields

    def get_form(
        self,
        request: HttpRequest,
        obj: Model | None = None,
        change: bool = False,
        **kwargs: Any,
    ) -> type[ModelForm]:
        if obj:
            kwargs["form"] = ModelForm
        return super().get_form(request, obj, change, **kwargs)

    def create_row(self, request: HttpRequest, form: Any) -> tuple[Any, dict[str, str]]:
        """Create a row. Return it and its secrets by label."""
        raise NotImplementedError

    def has_add_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if request.method == "POST" and not claim_form_token(request):
            self.message_user(request, SENT_BEFORE, messages.WARNING)
            return redirect("admin:index")
        buttons = {"show_save_and_add_another": False, "show_save_and_continue": False}
        return never_cache(super().add_view)(
            request, form_url, (extra_context or {}) | buttons
        )

    def save_form(self, request: HttpRequest, form: ModelForm, change: bool) -> Model:
        row, secrets = self.create_row(request, form)
        row.secrets = secrets  # on the object only, for response_add()
        return row

    def save_model(
        self, request: HttpRequest, obj: Model, form: ModelForm, change: bool
    ) -> None:
        """create_row() has saved it."""

    def save_related(
        self, request: HttpRequest, form: ModelForm, formsets: Any, change: bool
    ) -> None:
        """create_row() has saved it."""

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        context = self.admin_site.each_context(request) | {
            "title": f"{obj} is made",
            "secrets": obj.secrets,
            "opts": self.opts,
            "next": reverse(name, args=[obj.pk]),
        }
        return TemplateResponse(request, "admin/shown_once.html", context)
