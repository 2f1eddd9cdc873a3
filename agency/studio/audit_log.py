"""The studio's page of an organization's audit log, and its download as CSV."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from typing import NamedTuple
from uuid import UUID

from django import forms
from django.db import close_old_connections
from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from agency.studio.curl import Json
from agency.studio.newest_first import query_with, read_page
from agency.studio.pages import MemberRequest, member_page
from core.text.csv_text import line_writer
from tenants import audit
from tenants.models import AuditEntry, Permission, Tenant

CSV_CHUNK_ROWS = 500
MAX_CSV_ROWS = 10_000
# Facts whose value is a list. Of the others a list is a change: old and new.
LISTS = ("scopes", "shown_items")
COLUMNS = (
    "created_at", "action", "actor_kind", "actor_id", "actor_name", "object_type",
    "object_id", "origin", "reason", "request_id", "details",
)  # fmt: skip


class LogFilter(forms.Form):
    """What to show: all fields are exact, and each has an index."""

    action = forms.ChoiceField(
        label="Action", choices=[("", "All actions"), *audit.ACTIONS.items()],
        required=False,
    )  # fmt: skip
    who = forms.CharField(
        label="Who (mail address, or “person” and number)",
        max_length=254,
        required=False,
    )
    since = forms.DateField(
        label="From (day)",
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
    )
    until = forms.DateField(
        label="To (day)",
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
    )

    def lookups(self) -> dict[str, str | UUID]:
        """Return the queryset lookups of the filters that are set."""
        given = self.cleaned_data
        found = {
            "action": given["action"],
            "actor_name": given["who"],
            "pk__gte": given["since"] and first_id_of(given["since"]),
            "pk__lt": given["until"] and first_id_of(given["until"], days_later=1),
        }
        return {lookup: value for lookup, value in found.items() if value}


def first_id_of(day: date, days_later: int = 0) -> UUID:
    """Return the lowest UUIDv7 (RFC 9562, section 5.7) of this day or a later one."""
    start = datetime.combine(day, time.min, tzinfo=UTC)
    # Not by adding to the day: the last one that Python knows has no next one.
    seconds = int(start.timestamp()) + days_later * 86400
    milliseconds = max(0, seconds * 1000)
    return UUID(int=milliseconds << 80)


def filter_entries(tenant: Tenant, form: LogFilter) -> QuerySet[AuditEntry]:
    found = AuditEntry.objects.filter(tenant=tenant)
    return found.filter(**form.lookups()) if form.is_valid() else found.none()


@member_page("GET", needs=Permission.LOG)
def show_log(request: MemberRequest) -> HttpResponse:
    form = LogFilter(request.GET)
    page = read_page(request, filter_entries(request.tenant, form))
    context = {
        "tab": "log",
        "form": form,
        "is_filtered": form.is_valid() and bool(form.lookups()),
        "rows": [log_row(row) for row in page.rows],
        "page": page,
        "download": query_with(request),
        "max_csv_rows": MAX_CSV_ROWS,
    }
    return render(request, "studio/log.html", context)


class LogRow(NamedTuple):
    """An entry. what: somebody did. facts: names with values."""

    entry: AuditEntry
    what: str
    facts: list[tuple[str, str]]


def log_row(entry: AuditEntry) -> LogRow:
    details: dict[str, Json] = entry.details
    facts = [
        (name.replace("_", " "), write_fact(name, value))
        for name, value in details.items()
    ]
    return LogRow(entry, audit.ACTIONS.get(entry.action, entry.action), facts)


def write_fact(name: str, value: Json) -> str:
    """Write a value; of a change, which has two, the old and the new one."""
    if isinstance(value, list) and len(value) == 2 and name not in LISTS:
        return f"{value[0] or '(none)'} → {value[1] or '(none)'}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "(none)"
    return str(value)


@member_page("GET", needs=Permission.LOG)
def download_log(request: MemberRequest) -> HttpResponseBase:
    """The newest MAX_CSV_ROWS entries of the filter."""
    lines = csv_lines(filter_entries(request.tenant, LogFilter(request.GET)))
    name = f"log-{request.tenant.public_id}.csv"
    return StreamingHttpResponse(
        lines,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def csv_lines(entries: QuerySet[AuditEntry]) -> Iterator[str]:
    """Yield the header and the rows, newest first.

    Each chunk has a query of its own, so a slow reader occupies no connection.
    """
    write_line = line_writer()
    yield write_line(COLUMNS)
    left = MAX_CSV_ROWS
    rows = entries.order_by("-pk")
    while left > 0:
        chunk = list(rows[: min(CSV_CHUNK_ROWS, left)])
        close_old_connections()
        yield "".join(write_line(csv_cells(row)) for row in chunk)
        if len(chunk) < CSV_CHUNK_ROWS:
            return
        left -= len(chunk)
        rows = entries.filter(pk__lt=chunk[-1].pk).order_by("-pk")


def csv_cells(entry: AuditEntry) -> list[str]:
    values = {name: getattr(entry, name) for name in COLUMNS}
    values["created_at"] = entry.created_at.isoformat()
    values["details"] = json.dumps(entry.details, ensure_ascii=False)
    return [str(value) for value in values.values()]
