"""How cards look is chosen beside a phone that shows it at once, in Chromium."""

import pytest

from credentials.models import CredentialDefinition
from tenants.models import Asset, Tenant
from tenants.pictures import store_picture
from tests.support.chromium import MARKS, PHONE, SMALLEST
from tests.support.pictures import picture, storage

__all__ = ["storage"]
pytestmark = MARKS
HOSTILE = [
    "x" * 200,
    "\u202eevil",
    "<b>bold</b>\"'><script>",
    "🦄" * 100,
    "بطاقة عضوية الجمعية " * 10,
]
SHOWN = "document.querySelector('#phone .id-picture')?.complete === true"
# What of a card's face stands on its picture or outside of the face.
OUT_OF_PLACE = """[...document.querySelectorAll(".id-face")].flatMap((face) => {
  const outer = face.getBoundingClientRect();
  const picture = face.querySelector(".id-picture").getBoundingClientRect();
  return [...face.querySelectorAll(".id-issuer, .id-label, .id-value, .badge")].filter(
    (one) => {
      const box = one.getBoundingClientRect();
      const overlaps = box.right > picture.left + 1 && box.left < picture.right - 1;
      return overlaps || box.bottom > outer.bottom + 1 || box.width < 1;
    }).map((one) => one.className);
})"""


@pytest.fixture
def shown(page, browser, api, url, settings):
    """The page on which the look of a card with 40 attributes is chosen."""
    made = api.defines(*(f"attribute {number}" for number in range(40)))
    found = CredentialDefinition.objects.get(definition_id=made["definitionId"])
    page.sign_in(browser, settings.SESSION_COOKIE_NAME)
    page.prefer("light")
    page.open(f"{url}/definitions/{found.pk}/design")
    return found


def chosen(tmp_path):
    path = tmp_path / "beach.png"
    path.write_bytes(picture(size=(60, 40)))
    return path


def test_the_phone_shows_a_picture_at_once_and_keeps_it(shown, page, axe, tmp_path):
    page.tab.set_input_files("#id_upload", chosen(tmp_path))
    page.wait_for(SHOWN)
    assert page.tab.input_value("#id_upload") == ""  # it is not sent again
    page.tab.fill("#id_name_ar", "بطاقة")
    page.tab.select_option("#id_language", "ar")
    page.wait_for("document.querySelector('#phone').dir === 'rtl'")
    page.wait_for(SHOWN)
    assert page.text("#phone .id-name").strip() == "بطاقة"
    assert page.findings() + page.problems() + page.strange_calls() == []
    page.tab.click("button:text-is('Save')")
    page.tab.wait_for_selector("h1:has-text('1.0')")
    [stored] = Asset.objects.all()
    shown.refresh_from_db()
    assert shown.display["picture"] == stored.address
    assert page.evaluate("document.querySelector('.id-picture').naturalWidth") == 60


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_leaves_its_place_on_a_card(shown, page, axe, tmp_path, text):
    asset = store_picture(shown.tenant.provider, picture(size=(60, 40)))
    names = shown.schema.attribute_names
    shown.change_display(
        {
            "picture": asset.address,
            "names": {"en": text, "ar": text},
            "labels": {name: {"en": text, "ar": text} for name in names},
            "face": names[1:5],
        }
    )
    Tenant.objects.filter(pk=shown.tenant_id).update(name=text)
    address = page.evaluate("location.pathname")
    for width in (SMALLEST, PHONE):
        page.resize(width)
        page.open(address)
        for language in ("en", "ar"):
            page.tab.select_option("#id_language", language)
            page.wait_for(f"document.querySelector('#phone').lang === '{language}'")
            page.wait_for(SHOWN)
            assert page.evaluate(OUT_OF_PLACE) + page.too_wide() == []
            assert page.problems() == []
        assert page.findings() == []
