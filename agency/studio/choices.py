"""What can be chosen: the newest rows of a list, or those that a search finds.

Never more than MAX_CHOICES, so a page with a choice is bounded whatever there is.
"""

from dataclasses import dataclass
from typing import Generic, TypedDict

from django import forms
from django.db.models import Q
from django.http import HttpRequest

from agency.studio.list_search import Search
from agency.studio.lists import ObjectList
from agency.studio.objects import Row, of_tenant
from core.database.prepared_statements import planned_for_values
from tenants.models import Tenant
from wallets.models import Wallet

MAX_CHOICES = 50


class FindForm(forms.Form):
    q = forms.CharField(
        label="Name or id",
        max_length=200,
        required=False,
        widget=forms.TextInput(
            attrs={"type": "search", "autocomplete": "off", "aria-controls": "choices"}
        ),
    )


def read_text(given: str) -> str:
    """What is searched for; "" for what cannot be."""
    form = FindForm({"q": given})
    return form.cleaned_data["q"] if form.is_valid() else ""


@dataclass(frozen=True)
class Choices(Generic[Row]):
    """text: what was searched for, if anything. has_more: of it than is shown."""

    rows: list[Row]
    has_more: bool
    text: str

    @property
    def summary(self) -> str:
        """What stands below the search, for who sees and who hears it."""
        if not self.has_more:
            return "" if self.rows or not self.text else "Nothing matches."
        if self.text:
            return f"More than {MAX_CHOICES} match. Write more of the name."
        return f"These are the newest {MAX_CHOICES}. Find others by their name or id."


@planned_for_values()
def find_choices(
    kind: ObjectList[Row], tenant: Tenant, text: str = "", usable: Q | None = None
) -> Choices[Row]:
    """Return the newest rows of a list, or the newest of those that match the text.

    usable: the condition that a row meets to be chosen.
    """
    wallet = Wallet.of_organization(tenant)
    rows = kind.rows(wallet)
    if usable:
        rows = rows.filter(usable)
    if text:
        rows = kind.search(rows, Search(wallet, text))
    found = list(rows.order_by("-pk")[: MAX_CHOICES + 1])
    shown = of_tenant(tenant, found[:MAX_CHOICES])
    return Choices(shown, len(found) > MAX_CHOICES, text)


class Choosing(TypedDict, Generic[Row]):
    """The context of a page that lists what can be chosen."""

    find: FindForm
    choices: Choices[Row]


def choose_from(
    request: HttpRequest, kind: ObjectList[Row], tenant: Tenant
) -> Choosing[Row]:
    """Return the context of a page that lists what can be chosen, newest first.

    At most MAX_CHOICES; the search is that of the query.
    """
    found = find_choices(kind, tenant, read_text(request.GET.get("q", "")))
    return {"find": FindForm({"q": found.text}), "choices": found}
