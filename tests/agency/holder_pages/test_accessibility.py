"""No page of a link has any finding of axe-core: light, dark, from right to left."""

import pytest
from django.utils import timezone

from connections.models import Connection
from tests.agency.holder_pages.conftest import LinkPage, answer, take_offer
from tests.agency.studio.test_accessibility import RUN, axe
from tests.support import chromium

__all__ = ["axe"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium"),
]
OPEN_ALL = (
    "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with chromium.running(tmp_path_factory.mktemp("chromium")) as page:
        page.call("Network.enable")
        yield page


@pytest.fixture
def addresses(faber, offer, ask, live_server, settings):
    """`{name: address}` of a page in each state."""
    settings.PUBLIC_URL = live_server.url
    faber.tenant.primary_color, faber.tenant.secondary_color = "#ffd400", "#808080"
    faber.tenant.wallet_apps = [{"name": "Purse", "urls": ["https://purse.example"]}]
    faber.tenant.return_urls = ["https://shop.example"]
    faber.tenant.save()
    used, failed, gone = offer(), ask(returnUrl="https://shop.example/x"), offer()
    take_offer(faber.hosts("Alice"), used["offerUrl"])
    answer(faber.hosts("Bob"), failed["verificationRequestUrl"])
    faber.delete(f"/credentials/delete/{gone['credentialId']}")
    paths = {
        "offer": LinkPage(offer()["offerUrl"]).path,
        "request": LinkPage(ask()["verificationRequestUrl"]).path,
        "invitation": LinkPage(faber.invites()["invitationUrl"]).path,
        "done": LinkPage(used["offerUrl"]).path + "?seen=waiting",
        "used": LinkPage(used["offerUrl"]).path,
        "failed": LinkPage(failed["verificationRequestUrl"]).path + "?seen=opened",
        "withdrawn": LinkPage(gone["offerUrl"]).path,
        "unknown": "/i/unknown",
    }
    late = faber.invites(expiresAt="2999-01-01T00:00:00Z")
    rows = Connection.objects.filter(connection_id=late["connectionId"])
    rows.update(expires_at=timezone.now())
    paths["expired"] = LinkPage(late["invitationUrl"]).path
    opened = LinkPage(offer()["offerUrl"])
    opened.client.get(opened.path, headers={"Accept": "application/json"})
    paths["opened"] = opened.path
    return {name: live_server.url + path for name, path in paths.items()}


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme, language", [("light", "en"), ("dark", "ar")])
def test_every_state(page, axe, addresses, scheme, language, width):
    page.prefer(scheme)
    page.call("Network.setExtraHTTPHeaders", headers={"Accept-Language": language})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1}
    page.call("Emulation.setDeviceMetricsOverride", **size, mobile=width < 500)
    found = {}
    for name, address in addresses.items():
        page.open(address)
        assert page.evaluate("document.documentElement.lang") == language
        page.evaluate(OPEN_ALL)
        page.evaluate(axe)
        found[name] = page.evaluate(RUN)
    assert {name: one for name, one in found.items() if one} == {}
