"""The studio's page that revokes many credentials of a definition, counted before.

The call of the API revokes them.
"""

from datetime import UTC, datetime, time
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from agency.studio.definitions import get_definition
from agency.studio.form_tokens import OnceForm
from agency.studio.pages import MemberRequest, member_page, refusals_above
from core.api.views import heavy
from credentials import revocation
from credentials.api.issuer import find_revocable
from credentials.api.serializers import RevocationParameters
from credentials.models import Credential, CredentialDefinition
from tenants import audit
from tenants.models import Permission


class RevocationForm(OnceForm):
    """Which credentials of a definition are meant. Days are those of UTC."""

    issued_after = forms.DateField(
        label="Issued on this day or later",
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
    )
    issued_before = forms.DateField(
        label="Issued before this day",
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
    )

    def find_rows(self, definition: CredentialDefinition) -> QuerySet[Credential]:
        """The credentials that a valid form means, as the API finds them."""
        body: dict[str, Any] = {"definitionId": definition.definition_id}
        for member, name in (
            ("issuedAfter", "issued_after"),
            ("issuedBefore", "issued_before"),
        ):
            if day := self.cleaned_data[name]:
                body[member] = datetime.combine(day, time.min, tzinfo=UTC)
        wanted = RevocationParameters(data=body)
        wanted.is_valid(raise_exception=True)
        return find_revocable(definition.tenant, wanted.validated_data)


@heavy
@member_page("GET", "POST", needs=Permission.OPERATE, once="studio:definition")
def revoke_many(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """Choose, see how many they are, then revoke them.

    With an error, the counts are those after it: some may be revoked.
    """
    definition = get_definition(request.tenant, object_id)
    form = RevocationForm(request.POST or None)
    context = {
        "definition": definition,
        "form": form,
        "at_once": revocation.REVOKED_AT_ONCE,
    }
    if form.is_valid():
        rows = form.find_rows(definition)
        if "confirmed" in request.POST:
            with refusals_above(form):
                revoke_rows(request, definition, rows)
                return redirect("studio:definition", request.tenant.pk, object_id)
        context["counts"] = revocation.count_revocable(rows)
    return render(request, "studio/revoke_many.html", context)


def revoke_rows(
    request: HttpRequest,
    definition: CredentialDefinition,
    rows: QuerySet[Credential],
) -> None:
    """Revoke the first REVOKED_AT_ONCE of these credentials, as the API does.

    They are revoked and recorded in one transaction, which locks their connections.
    Then one list for each registry is published, and the holders are told. If that
    fails, as by 503 `ledger_unavailable`, they are revoked all the same.
    """
    mark = audit.recorded(
        revocation.mark_revoked, "credential.many_revoked", definition, by=request
    )
    mark(rows)
    revocation.publish_and_notify_all(rows)
    counts = revocation.count_revocable(rows)
    left = f" {counts.issued:,} are left: repeat it." if counts.issued else ""
    messages.success(request, f"{counts.revoked:,} of them are revoked now.{left}")
