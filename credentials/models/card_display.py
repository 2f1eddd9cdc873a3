"""What the `display` of a definition may say about its cards."""

from collections.abc import Collection
from typing import TypedDict
from uuid import UUID

from core.errors import Invalid
from core.text.colors import MIN_CONTRAST, contrast, parse
from tenants.models import Asset


class Colors(TypedDict, total=False):
    background: str
    text: str


class Display(TypedDict, total=False):
    """How cards look. names: by language; labels: by attribute, then by language."""

    colors: Colors
    logo: str
    picture: str
    names: dict[str, str]
    labels: dict[str, dict[str, str]]
    title: str
    face: list[str]
    back: list[str]


def check_display(
    display: Display, attribute_names: Collection[str], tenant_id: UUID
) -> None:
    """400 `invalid_request` unless it fits these attributes and can be read.

    Its picture is one that the organization's account stored here.
    """
    title = [display["title"]] if "title" in display else []
    placed = {
        "labels": [*display.get("labels", {})],
        "title": title,
        "face": display.get("face", []),
        "back": display.get("back", []),
    }
    for member, names in placed.items():
        if unknown := [name for name in names if name not in attribute_names]:
            raise _invalid(
                f"display.{member}",
                f"The schema has no attribute {', '.join(unknown)}.",
            )
    sides = [*title, *placed["face"], *placed["back"]]
    if twice := sorted({name for name in sides if sides.count(name) > 1}):
        raise _invalid("display", f"These stand on a card twice: {', '.join(twice)}.")
    colors = display.get("colors", {})
    if {"background", "text"} <= colors.keys():
        found = contrast(parse(colors["text"]), parse(colors["background"]))
        if found < MIN_CONTRAST:
            raise _invalid(
                "display.colors.text",
                f"Its contrast to the background is {found:.1f}, too low to read. "
                f"{MIN_CONTRAST} is the least.",
            )
    picture = display.get("picture")
    if picture and not Asset.is_stored(tenant_id, picture):
        raise _invalid(
            "display.picture",
            "Upload the picture with POST /common/upload, and give the address that "
            "it answers.",
        )


def _invalid(place: str, sentence: str) -> Invalid:
    return Invalid("invalid_request", f"{place}: {sentence}", {place: [sentence]})
