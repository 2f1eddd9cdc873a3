"""The base classes of the admin: lists and pages that change nothing."""

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
from django.views.decorators.cache import never_cache

from agency.studio.exchange.kinds import KINDS, exchange_page
from agency.studio.form_tokens import SENT_BEFORE, claim_form_token
from agency.support.actions import actions_for
from core.database.uuids import parse_uuid


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


class ReadOnlyAdmin(ReadOnly, admin.ModelAdmin):
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
            return self.fields
        times = ("created_at", "updated_at")
        named = [one for one in [*self.list_display, *self.details] if one not in times]
        columns = [column.name for column in self.opts.concrete_fields]
        key = self.opts.pk.name
        shown = [one for one in columns if one == key or one in named]
        shown += [one for one in named if one not in shown]
        return shown + [one for one in times if one in columns]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Add the actions of support to the page of a record."""
        if row := options.get("obj"):
            context["support_actions"] = actions_for(request.user, row)
        return super().render_change_form(request, context, *args, **options)

    def get_list_select_related(self, request: HttpRequest) -> Any:
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

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields if obj else self.form_fields

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

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
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
