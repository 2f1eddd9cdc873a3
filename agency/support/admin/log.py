"""The admin's own log of changes."""

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest

from agency.support.admin.base import ReadOnlyAdmin


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin):
    """The log of changes in the admin."""

    list_display = [
        "action_time", "user", "content_type", "object_repr", "action_flag", "what",
    ]  # fmt: skip
    list_filter = ["action_flag", "content_type"]
    search_fields = ["object_repr", "object_id", "user__email"]
    date_hierarchy = "action_time"
    fields = ["action_time", "user", "content_type", "object_id", "object_repr", "what"]

    @admin.display(description="change")
    def what(self, entry: LogEntry) -> str:
        return entry.get_change_message()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        # Not as ReadOnlyAdmin does: primary keys of the log are numbers, and ids of
        # records are found as texts, in `object_id`.
        return admin.ModelAdmin.get_search_results(self, request, queryset, search_term)
