"""No page of a link has any finding of axe-core: light, dark, from right to left."""

import pytest
from django.utils import timezone

from connections.models import Connection
from tests.agency.holders.links.conftest import LinkPage, answer, take_offer
from tests.support.chromium import DESKTOP, MARKS, OPEN_ALL, PHONE

pytestmark = MARKS


@pytest.fixture
def addresses(page, faber, offer, ask):
    """`{name: address}` of a page in each state."""
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
    return paths | {"opened": opened.path}


@pytest.mark.parametrize("scheme, language", [("light", "en"), ("dark", "ar")])
def test_every_state(page, axe, addresses, scheme, language):
    page.prefer(scheme)
    page.tab.set_extra_http_headers({"Accept-Language": language})
    found = {}
    for name, address in addresses.items():
        page.open(address)
        assert page.evaluate("document.documentElement.lang") == language
        page.evaluate(OPEN_ALL)
        for width in (PHONE, DESKTOP):
            page.resize(width, 800)
            found[f"{name} {width}"] = page.findings()
    assert {name: one for name, one in found.items() if one} == {}
