"""What an organization chooses for its pages: colors, wallet apps, return addresses."""

import itertools
import re

import pytest

from agency.holders.links import colors
from core.text import colors as shades
from tenants import branding
from tests.agency.holders.links.conftest import POLICY, LinkPage, take_offer, text_of
from tests.support.errors import assert_error, error_of
from tests.support.paths import ROOT
from tests.support.people import Provider

SHEETS = ("agency.css", "exchange.css", "kiosk.css")
APPS = [
    {
        "name": "Purse <1>",
        "urls": [
            "https://apps.apple.com/app/id1",
            "https://play.google.com/store/apps/details?id=purse",
            "https://purse.example/get",
        ],
    }
]
SHOP = "https://shop.example/done"


def change(organization, **columns):
    for name, value in columns.items():
        setattr(organization.tenant, name, value)
    organization.tenant.save()


def test_any_color_becomes_readable():
    steps = (0, 51, 102, 128, 153, 204, 255)
    surfaces = (colors.LIGHT_SURFACE, colors.DARK_SURFACE)
    for rgb, surface in itertools.product(itertools.product(steps, repeat=3), surfaces):
        rules = colors.accent_rules(shades.to_hex(rgb), surface)
        accent, hover, text = map(shades.parse, re.findall("#[0-9a-f]{6}", rules))
        for shade in (accent, hover):
            assert shades.contrast(shade, surface) >= 4.5
            assert shades.contrast(shade, text) >= 4.5
        assert shades.contrast(shades.text_on(rgb), rgb) >= 4.5


def test_a_readable_color_stays_and_contrast_is_that_of_wcag():
    assert shades.contrast(shades.BLACK, shades.WHITE) == 21
    grey = shades.parse("#767676")
    assert round(shades.contrast(grey, shades.WHITE), 2) == 4.54
    assert shades.readable_on(grey, shades.WHITE) == grey


def test_colors_are_a_style_sheet_of_the_link(faber, acme):
    change(faber, primary_color="#ffff00", secondary_color="#123456")
    page = LinkPage(faber.invites()["invitationUrl"])
    body = page.open().text
    assert f'href="{page.path}/colors.css"' in body
    assert "style=" not in body and "<style" not in body
    response = page.client.get(f"{page.path}/colors.css")
    assert response["Content-Type"].startswith("text/css")
    css = response.text
    assert "--band: #123456; --on-band: #ffffff" in css
    assert "--accent: #ffff00" in css  # in dark; in light it is a darker shade
    assert css.count("--accent:") == 2
    other = LinkPage(acme.invites()["invitationUrl"])
    assert "colors.css" not in other.open().text
    assert other.client.get(f"{other.path}/colors.css").content == b""
    assert page.client.get("/i/unknown/colors.css").status_code == 404


STATIC = ROOT / "agency" / "static" / "agency"


@pytest.mark.parametrize("brand", ["#c2185b", "#b3261e", "#0b6b62"])
def test_no_organization_changes_the_colors_of_verdicts(brand):
    """A rule of a mark, badge or ended step names none of the colors of the brand."""
    changed = set(re.findall(r"--[a-z-]+", colors.stylesheet(brand, brand)))
    assert {"--accent", "--band"} <= changed
    rules = "".join((STATIC / name).read_text() for name in SHEETS)
    judged = re.findall(r"^\.[^{]*(?:mark|badge\.|ended)[^{]*\{[^}]*\}", rules, re.M)
    named = set(re.findall(r"var\((--[a-z-]+)", "".join(judged)))
    assert {"--good", "--danger"} <= named and not named & changed


def test_wallet_apps_are_recommended_where_none_opens(faber):
    change(faber, wallet_apps=APPS)
    response = LinkPage(faber.invites()["invitationUrl"]).open()
    assert (
        "Install one of these, then come back to this page and open it again. "
        "Purse <1> Purse <1>: App Store Purse <1>: Google Play "
        "Purse <1>: purse.example" in text_of(response)
    )
    assert 'href="https://purse.example/get"' in response.text


ALLOWED = """
    https://shop.example/done https://shop.example/done/
    https://shop.example/done/Z%C3%BCrich%20Nord/..a https://shop.example/done/%E4
    https://shop.example/done/a?order=1#x https://SHOP.example:443/done
"""
REFUSED = """
    /done //shop.example/done http://shop.example/done https://shop.example
    https://shop.example/doner https://shop.example/done/../x
    https://shop.example/done/%2e%2E/x https://shop.example/done/..%2Fx
    https://shop.example/done/%252e%252e/x https://shop.example/done/%25252e%25252e/x
    https://shop.example/done/%252e%252e%255cx https://shop.example/done/..;a/x
    https://shop.example/done/..%3fx https://shop.example/done/..%2523x
    https://shop.example/done/.%09./x https://shop.example/done/..%0a/x
    https://shop.example/done/%2e%2e%20/x https://shop.example/done/.%00./x
    https://shop.example/done\\..\\..\\x https://shop.example:444/done
    https://shop.example@evil.example/done https://u:p@shop.example/done
    https://shop.example.evil.example/done https://shop.example:x/done
    https://evil.example/https://shop.example/done https://[shop.example/done
    javascript:alert(1)//shop.example/done
"""
SPACED = ["", f"{SHOP}\n", f" {SHOP}", f"{SHOP}/{'x' * 2000}"]


def test_only_an_address_below_an_allowed_one_is_allowed():
    for url in ALLOWED.split():
        assert branding.allows_return([SHOP], url), url
        assert branding.allows_return(["https://shop.example"], url), url
        assert not branding.allows_return([], url), url
    for url in REFUSED.split() + SPACED:
        assert not branding.allows_return([SHOP], url), url


@pytest.fixture
def makers(faber, offer):
    """A function for each call that makes a link."""
    stored = faber.post("/verificationPolicies", POLICY)["policyId"]
    return [
        faber.invites,
        offer,
        lambda **body: faber.post("/verifications/policy", POLICY | body),
        lambda **body: faber.put(f"/verifications/policy/{stored}", body),
    ]


def test_a_return_address_is_checked_when_the_link_is_made(faber, makers):
    change(faber, return_urls=[SHOP])
    for make in makers:
        make(returnUrl=f"{SHOP}?order=7")
        error = error_of(make, returnUrl="https://evil.example/")
        assert_error(error, 400, "return_url_not_allowed")
        assert list(error.body["errors"]) == ["returnUrl"]


def test_the_page_leads_back_when_it_has_ended(faber, offer):
    change(faber, return_urls=[SHOP])
    made = offer(returnUrl=f"{SHOP}?order=7")
    page = LinkPage(made["offerUrl"])
    assert SHOP not in page.open().text
    take_offer(faber.hosts("Alice"), made["offerUrl"])
    response = page.look()
    assert page.seen == "done"
    assert f'href="{SHOP}?order=7"' in response.text
    assert "Back to shop.example" in text_of(response)
    change(faber, return_urls=[])
    assert SHOP not in page.open("?seen=waiting").text


def test_a_connection_takes_no_return_address(alice, faber, offer):
    change(faber, return_urls=[SHOP])
    error = error_of(offer, connectionId=alice.known_as(faber), returnUrl=SHOP)
    assert_error(error, 400, "invalid_request")


def test_a_retried_call_keeps_its_return_address(faber):
    change(faber, return_urls=[SHOP])
    faber.headers["Idempotency-Key"] = "one"
    made = [faber.invites(returnUrl=SHOP) for _ in range(2)]
    assert made[0] == made[1]
    rows = faber.tenant.connection_set.filter(return_url=SHOP)
    assert rows.count() == 1


BRANDING = {
    "primaryColor": "#0B6B62", "secondaryColor": "#ffffff", "defaultLanguage": "fr",
    "walletApps": APPS, "returnUrls": [SHOP, "http://localhost:3000/"],
}  # fmt: skip


def test_the_provider_api_writes_and_reads_them(faber):
    provider = Provider(faber)
    expected = BRANDING | {"primaryColor": "#0b6b62"}
    made = provider.makes(**BRANDING)
    assert {name: made[name] for name in BRANDING} == expected
    path = f"/tenants/{made['tenantId']}"
    provider.put(path, {"name": "Other"})
    read = provider.get(path)
    assert {name: read[name] for name in BRANDING} == expected
    provider.put(path, {name: type(value)() for name, value in BRANDING.items()})
    assert not BRANDING.keys() & provider.get(path).keys()


def test_the_provider_api_refuses_others(faber):
    provider = Provider(faber)
    for name, value in (
        ("primaryColor", "red"),
        ("secondaryColor", "#12345"),
        ("secondaryColor", "#12345g"),
        ("secondaryColor", "#123456;}body{display:none"),
        ("defaultLanguage", "xx"),
        ("walletApps", [{"name": "", "urls": ["https://a.example"]}]),
        ("walletApps", [{"name": "A", "urls": []}]),
        ("walletApps", [{"name": "A", "urls": ["javascript:alert(1)"]}]),
        ("walletApps", [{"name": "A", "urls": ["https://a.example"]}] * 6),
        ("walletApps", [1]),
        ("returnUrls", ["http://shop.example"]),
        ("returnUrls", ["https://shop.example?x"]),
        ("returnUrls", [f"https://shop.example/{number}" for number in range(21)]),
        ("returnUrls", "https://shop.example"),
    ):
        error = error_of(provider.makes, **{name: value})
        assert_error(error, 400, "invalid_request")
        assert all(place.startswith(name) for place in error.body["errors"])


def test_the_pages_of_a_test_organization_say_so(faber):
    invited = faber.invites()
    page = LinkPage(invited["invitationUrl"])
    mark = '<span class="badge soon">{}</span>'
    assert mark.format("Test") not in page.open().text
    change(faber, is_test=True)
    shown = page.open(**{"Accept-Language": "es"}).text
    assert mark.format("Prueba") in shown
