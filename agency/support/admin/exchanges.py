"""The exchange page at the top of the admin's page of a row, without values."""

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest, HttpResponse

from agency.studio.exchange.kinds import KINDS
from agency.support.admin.base import ReadOnlyAdmin
from core.api.views import parse_uuid


class ExchangeAdmin(ReadOnlyAdmin):
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
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Model | None = None,
    ) -> HttpResponse:
        if obj is not None:
            shown = KINDS[self.model.OBJECT_TYPE](obj).context()
            # The admin's own template has a `title`.
            shown["exchange_title"] = shown.pop("title")
            context |= shown | {"in_admin": True}
        return super().render_change_form(
            request, context, add=add, change=change, form_url=form_url, obj=obj
        )
