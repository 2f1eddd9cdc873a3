"""The studio's page of the log of API calls."""

from django import forms
from django.conf import settings
from django.http import HttpResponse, QueryDict

from agency.studio.forms import choice_field
from agency.studio.live_lists import render_live_list
from agency.studio.newest_first import read_page
from agency.studio.pages import MemberRequest, member_page
from core.telemetry.metrics import METHODS
from tenants.lifecycle.api.request_log import RequestLogQuery
from tenants.models import ApiKey, LoggedRequest, Tenant

MAX_KEYS = 200  # in the filter, the newest ones
BADGES = {2: "good", 3: "good", 4: "soon", 5: "bad"}  # by the class of the status
STATUSES = {
    "2xx": "2xx: done",
    "4xx": "4xx: refused",
    "5xx": "5xx: failed",
}
# The parameters of the API by the fields of the form.
PARAMETERS = {
    "method": "method",
    "route": "route",
    "status": "status",
    "key": "keyId",
    "error_code": "errorCode",
    "request_id": "requestId",
    "since": "createdAfter",
    "until": "createdBefore",
}


def moment_field(label: str) -> forms.DateTimeField:
    return forms.DateTimeField(
        label=label,
        required=False,
        widget=forms.DateTimeInput(
            attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"
        ),
    )


class RequestFilter(forms.Form):
    """Which calls to show: the filters of the API, all of them exact."""

    method = forms.ChoiceField(
        label="Method",
        choices=[("", "All methods"), *((name, name) for name in sorted(METHODS))],
        required=False,
    )
    status = forms.CharField(
        label="Status (404, 4xx)",
        max_length=3,
        required=False,
        widget=forms.TextInput(attrs={"list": "statuses", "autocomplete": "off"}),
    )
    route = forms.CharField(label="Route", max_length=200, required=False)
    error_code = forms.CharField(label="Error code", max_length=64, required=False)
    key = forms.ChoiceField(label="Key", required=False)
    request_id = forms.CharField(label="Request id", max_length=64, required=False)
    since = moment_field("From (UTC)")
    until = moment_field("To (UTC)")

    def __init__(self, data: QueryDict, tenant: Tenant) -> None:
        super().__init__(data)
        keys = tenant.keys.filter(kind=ApiKey.Kind.ACCESS_TOKEN).order_by("-pk")
        named = [(str(key.pk), f"{key.name} {key.hint}…") for key in keys[:MAX_KEYS]]
        choice_field(self, "key").choices = [("", "All keys"), *named]

    def clean(self) -> None:
        """Let the API judge what it takes, and keep its lookups."""
        super().clean()
        given = self.cleaned_data
        asked = {PARAMETERS[name]: value for name, value in given.items() if value}
        query = RequestLogQuery(data=asked)
        if query.is_valid():
            self.lookups = dict(query.validated_data)
            for name in ("limit", "sort"):
                del self.lookups[name]
        for name, parameter in PARAMETERS.items():
            for message in query.errors.get(parameter, []):
                self.add_error(name, str(message))


@member_page("GET")
def show_requests(request: MemberRequest) -> HttpResponse:
    form = RequestFilter(request.GET, request.tenant)
    calls = LoggedRequest.objects.filter(tenant=request.tenant).select_related("key")
    calls = calls.filter(**form.lookups) if form.is_valid() else calls.none()
    page = read_page(request, calls)
    context = {
        "form": form,
        "statuses": STATUSES,
        "is_filtered": form.is_valid() and any(form.cleaned_data.values()),
        "is_logged": bool(settings.REQUEST_LOG_ROWS),
        "rows": [
            {"call": call, "badge": BADGES.get(call.status // 100, "soon")}
            for call in page.rows
        ],
    }
    shown = [call.pk for call in page.rows]
    return render_live_list(request, "studio/requests.html", context, page, repr(shown))
