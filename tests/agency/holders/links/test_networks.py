"""What a page says where no wallet app can read the network of the cards."""

import pytest

from connections.models import Connection
from tests.agency.holders.links.conftest import LinkPage, text_of
from tests.agency.holders.links.test_branding import APPS
from tests.factories import NetworkFactory

APP, NEW = 'id="open-wallet"', "/w/new/"
SENTENCES = {
    "en": "Wallet apps from a store cannot read the cards of Faber College: ",
    "de": "Wallet-Apps aus einem Store können die Karten von Faber College nicht lesen: ",
    "fr": "ne peuvent pas lire les cartes de Faber College : ",
    "es": "no pueden leer las tarjetas de Faber College: ",
    "ar": "لا تستطيع تطبيقات المحافظ من المتاجر قراءة بطاقات Faber College: ",
}


@pytest.fixture
def pages(faber, offer, ask):
    urls = (
        offer()["offerUrl"],
        ask()["verificationRequestUrl"],
        faber.invites()["invitationUrl"],
    )
    return [LinkPage(url) for url in urls]


def set_up(faber, **columns):
    vars(faber.tenant).update(columns)
    faber.tenant.save()


def test_on_the_local_network_no_page_leads_into_an_app(faber, pages):
    for page in pages:
        for language, sentence in SENTENCES.items():
            shown = page.open(**{"Accept-Language": language})
            assert sentence in text_of(shown), (page.path, language)
            assert APP not in shown.text
    set_up(faber, visitor_wallets=True)
    offered, asked, invited = (page.open() for page in pages)
    for shown in (offered, invited):
        assert "Continue" in shown.text and APP not in shown.text
    assert "My card is in the browser" in asked.text and APP not in asked.text
    sheet = pages[0].client.get(f"{pages[0].path}/sheet").text
    assert "/i/" in sheet and "wallet app" not in sheet


def test_an_app_is_offered_where_one_can_read_the_network(faber, pages):
    def assert_offered():
        for page in pages:
            shown = page.open()
            assert APP in shown.text and SENTENCES["en"] not in text_of(shown)

    set_up(faber, wallet_apps=APPS)
    assert_offered()
    set_up(faber, wallet_apps=None, network_id=NetworkFactory().pk)
    assert_offered()


def test_programs_get_the_message_on_any_network(faber, pages):
    for page in pages:
        headers = {"Accept": "application/json"}
        on_local = page.client.get(page.path, headers=headers)
        set_up(faber, network_id=NetworkFactory().pk)
        assert page.client.get(page.path, headers=headers).content == on_local.content
        set_up(faber, network_id="local")
    assert Connection.objects.filter(opened_at=None).count() == 0
