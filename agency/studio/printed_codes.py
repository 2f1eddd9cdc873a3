"""The QR codes of links on paper: labels, or a page for each, with a name."""

from collections.abc import Sequence
from typing import NamedTuple

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import translation

from agency.studio.pages import MemberRequest
from connections.api import qr_codes


class Code(NamedTuple):
    """A link and whom it is for. about: the card that it brings, or what it asks for."""

    name: str
    about: str
    url: str

    @property
    def picture(self) -> str:
        return qr_codes.data_address(self.url)


def render_codes(
    request: MemberRequest, codes: Sequence[Code], back: str, last: int | None = None
) -> HttpResponse:
    """The page of codes; `form` in its query: `sheets` or `labels`.

    back: the address of the page before. last: the number of the last code, if more
    follow. What holders read is in the organization's language.
    """
    other = "labels" if request.GET.get("form") == "sheets" else "sheets"
    given = request.GET.copy()
    given["form"] = other
    with translation.override(request.tenant.default_language or "en"):
        what_to_do = translation.gettext("Scan this with your phone")
    following = request.GET.copy()
    following["after"] = str(last)
    context = {
        "codes": codes,
        "form": "labels" if other == "sheets" else "sheets",
        "other": given.urlencode(),
        "following": following.urlencode() if last is not None else "",
        "back": back,
        "what_to_do": what_to_do,
        "language": request.tenant.default_language or "en",
    }
    return render(request, "studio/printed_codes.html", context)
