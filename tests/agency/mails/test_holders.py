"""A holder of a web wallet is told by mail that something waits, and nobody else is."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agency.holders.wallet.mail_address import ADDRESSES_A_DAY, UNCONFIRMED_FOR
from agency.holders.wallet.models import PersonalLink
from agency.mails import holders, unsubscribing
from agency.mails.models import AskedAddress
from core import faults
from credentials.models import Credential, MailDay
from tenants.models import Tenant
from tests.agency.holders.wallet.conftest import link_of, opens_wallet
from tests.agency.mails.people import server
from tests.support.policies import attribute, policy
from verifications.models import Verification

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["server"]
ADDRESS = "alice@home.example"
HOURS = timedelta(hours=1)


@pytest.fixture(autouse=True)
def known_for_long(faber, server):
    Tenant.objects.update(created_at=timezone.now() - timedelta(days=9))


@pytest.fixture
def alice(faber):
    return faber.hosts("Alice")


@pytest.fixture
def wallet(alice):
    return opens_wallet(alice)


def gives(wallet, address=ADDRESS):
    return wallet.post("/w/mail", {"address": address})


def path_in(mail):
    [line] = [one for one in mail.get_content().split() if "/w/" in one]
    return line.removeprefix("https://agency.example")


def confirms(server):
    reader = Client(headers={"Accept": "text/html", "Accept-Language": "en"})
    return reader.post(path_in(server.read(-1)))


def is_told(wallet, server, address=ADDRESS):
    """Who has given an address and confirmed it."""
    assert gives(wallet, address).status_code == 302
    holders.send_due()
    assert confirms(server).status_code == 200


def hours_pass(hours):
    """As if all that was stored had been stored earlier."""
    for link in PersonalLink.objects.all():
        for name in ("given", "confirmed", "due", "sent"):
            moment = getattr(link, f"mail_{name}_at")
            if moment:
                setattr(link, f"mail_{name}_at", moment - hours * HOURS)
        link.save()
    for model, column in ((Credential, "updated_at"), (AskedAddress, "asked_at")):
        for row in model.objects.all():
            moment = getattr(row, column) - hours * HOURS
            model.objects.filter(pk=row.pk).update(**{column: moment})


def link_row():
    return PersonalLink.objects.get()


def test_a_holder_gives_an_address_confirms_it_and_removes_it(wallet, server):
    assert "Tell me by mail" in wallet.get("/w/me").text
    assert gives(wallet).status_code == 302
    shown = wallet.get("/w/me").text
    assert ADDRESS in shown and "We send a mail there" in shown
    assert ADDRESS.encode() not in bytes(link_row().mail_address)
    holders.send_due()
    holders.send_due()
    assert server.addresses == [ADDRESS]
    mail = server.read()
    body = mail.get_content()
    assert mail.get_content_type() == "text/plain" and body.count("http") == 1
    assert mail["Subject"].startswith("Confirm your mail address for your wallet at")
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    stranger = Client(headers={"Accept": "text/html", "Accept-Language": "en"})
    page = stranger.get(path_in(mail))
    assert "Is this mail address yours?" in page.text
    # From a page with `no-referrer` a browser sends `Origin: null`, which is refused.
    assert page["Referrer-Policy"] == "same-origin"
    assert link_row().mail_confirmed_at is None  # a program may have looked at it
    assert "is confirmed" in confirms(server).text
    assert "You get a mail when something new waits" in wallet.get("/w/me").text
    wallet.post("/w/mail", {"remove": "yes"})
    assert ADDRESS not in wallet.get("/w/me").text
    row = link_row()
    assert row.mail_address is row.mail_given_at is row.mail_due_at is None
    assert stranger.post(path_in(mail)).status_code == 404


def test_who_has_confirmed_is_told_once_a_day_of_what_is_new(
    faber, alice, wallet, server
):
    definition = faber.defines("name")
    is_told(wallet, server)
    holders.send_due()
    assert len(server.messages) == 1  # nothing waits
    faber.offers(alice, definition, {"name": "Balthazar-4711"})
    holders.send_due()
    assert len(server.messages) == 1  # perhaps she looks already
    hours_pass(1)
    holders.send_due()
    holders.send_due()
    assert server.addresses == [ADDRESS] * 2
    mail = server.read()
    body = server.read(-1).get_content()
    assert server.read(-1)["Subject"].startswith("Something waits in your wallet at")
    assert path_in(server.read(-1)) == "/w/inbox" and body.count("http") == 1
    assert "Balthazar" not in body and "Title" not in body
    assert mail["Message-ID"] != server.read(-1)["Message-ID"]
    faber.offers(alice, definition, {"name": "Bo"})
    hours_pass(12)
    holders.send_due()
    assert len(server.messages) == 2
    hours_pass(13)
    holders.send_due()
    assert len(server.messages) == 3
    hours_pass(25)
    holders.send_due()
    assert len(server.messages) == 3  # of the same she was told


def test_what_was_answered_waits_no_more(faber, alice, wallet, server):
    is_told(wallet, server)
    faber.offers(alice, faber.defines("name"), {"name": "Ann"})
    alice.accepts_offer()
    hours_pass(25)
    holders.send_due()
    assert len(server.messages) == 1


def test_a_question_waits_too(faber, alice, wallet, server):
    alice.receives(faber, faber.defines("name"), {"name": "Ann"})
    is_told(wallet, server)
    faber.asks(alice, **policy(attribute("name")))
    changed = timezone.now() - HOURS
    hours_pass(2)
    Verification.objects.update(updated_at=changed)
    holders.send_due()
    assert server.addresses == [ADDRESS] * 2


def test_nobody_is_told_who_has_not_confirmed(faber, alice, wallet, server):
    gives(wallet)
    holders.send_due()
    faber.offers(alice, faber.defines("name"), {"name": "Ann"})
    hours_pass(25)
    holders.send_due()
    assert len(server.messages) == 1


def test_an_address_is_asked_once_a_day_over_all_organizations(
    faber, acme, wallet, server
):
    Tenant.objects.update(created_at=timezone.now() - timedelta(days=9))
    others = [opens_wallet(one.hosts("Eve")) for one in (faber, acme)]
    for browser, address in zip(
        [wallet, *others], [ADDRESS, "ALICE+2@home.example", ADDRESS], strict=True
    ):
        assert gives(browser, address).status_code == 302
    holders.send_due()
    holders.send_due()
    assert len(server.messages) == 1
    hours_pass(2)
    holders.send_due()
    assert len(server.messages) == 1
    hours_pass(23)
    holders.send_due()
    assert len(server.messages) == 2


def test_a_wallet_and_an_organization_try_few_addresses(
    faber, wallet, server, settings
):
    for number in range(ADDRESSES_A_DAY):
        assert gives(wallet, f"a{number}@home.example").status_code == 302
    refused = gives(wallet, "a9@home.example")
    assert refused.status_code == 429 and "too often" in refused.text
    assert "Retry-After" in refused
    settings.ORGANIZATION_MAILS_A_DAY = 6
    others = [opens_wallet(faber.hosts(f"Eve {number}")) for number in range(2)]
    codes = [
        gives(one, f"{n}{number}@home.example").status_code
        for n, one in enumerate(others)
        for number in range(2)
    ]
    assert codes[0] == 302 and codes[-1] == 429


def test_a_class_gives_its_addresses_in_one_lesson(faber, server):
    for number in range(30):
        pupil = opens_wallet(faber.hosts(f"Pupil {number}"))
        assert gives(pupil, f"pupil{number}@home.example").status_code == 302


def test_what_is_no_address_is_said_on_the_page(wallet, server):
    for wrong in ("", "alice", "a@b.example, c@d.example", "a@localhost"):
        shown = gives(wallet, wrong)
        assert shown.status_code == 400 and "This is no mail address" in shown.text
    assert link_row().mail_address is None


def test_who_wants_no_mails_and_who_does_not_exist_gets_none(faber, wallet, server):
    unsubscribing.unsubscribe(unsubscribing.digest_of(ADDRESS))
    gives(wallet)
    other = opens_wallet(faber.hosts("Bo"))
    server.refused = {"bo@home.example": "550 5.1.1 unknown"}
    gives(other, "bo@home.example")
    holders.send_due()
    holders.send_due()
    assert server.addresses == []
    for browser in (wallet, other):
        assert "No mail goes there" in browser.get("/w/me").text
    assert MailDay.objects.get().sent == 1  # nobody tries addresses without end


def test_what_the_server_cannot_take_now_is_sent_later(wallet, server, settings):
    gives(wallet)
    port, settings.EMAIL_PORT = settings.EMAIL_PORT, 1
    holders.send_due()
    settings.EMAIL_PORT = port
    server.refused = {ADDRESS: "451 later"}
    holders.send_due()
    server.refused = {}
    holders.send_due()
    assert server.addresses == []
    hours_pass(2)
    holders.send_due()
    assert server.addresses == [ADDRESS]


def test_an_address_at_which_the_connection_ends_stops_no_other(faber, wallet, server):
    server.refused = {ADDRESS: ""}
    gives(wallet)
    gives(opens_wallet(faber.hosts("Bo")), "bo@home.example")
    holders.send_due()
    holders.send_due()
    assert server.addresses == ["bo@home.example"]


def test_a_mail_counts_for_the_day_of_the_organization(wallet, server, settings):
    settings.ORGANIZATION_MAILS_A_DAY = 1
    MailDay.take_one(Tenant.objects.get(pk=link_row().tenant_id))
    gives(wallet)
    holders.send_due()
    assert server.addresses == []
    assert link_row().mail_due_at == MailDay.next_day()
    MailDay.objects.all().delete()
    holders.send_due()
    assert server.addresses == []
    hours_pass(25)
    holders.send_due()
    assert server.addresses == [ADDRESS]


def test_what_the_server_puts_off_after_the_text_is_told_on_another_day(
    faber, alice, wallet, server
):
    is_told(wallet, server)
    faber.offers(alice, faber.defines("name"), {"name": "Ann"})
    hours_pass(1)
    server.at_data = {ADDRESS: "454 4.7.0 throttled"}
    holders.send_due()
    server.at_data = {}
    told = len(server.messages)
    holders.send_due()
    assert len(server.messages) == told  # not at once
    assert "No mail goes there" not in wallet.get("/w/me").text
    hours_pass(25)
    holders.send_due()
    assert len(server.messages) == told + 1


def test_one_thread_of_a_process_sends(wallet, server):
    gives(wallet)
    with holders._runs:
        holders.send_due()
    assert server.addresses == []
    holders.send_due()
    assert server.addresses == [ADDRESS]


@pytest.mark.parametrize("point", ["before_mail_data", "after_mail_data"])
def test_a_process_that_ends_on_the_way_sends_no_mail_twice(
    faber, alice, wallet, server, monkeypatch, point
):
    is_told(wallet, server)
    faber.offers(alice, faber.defines("name"), {"name": "Ann"})
    hours_pass(1)
    with monkeypatch.context() as patch:
        patch.setattr(faults, "fault_point", lambda name: name == point and exit())
        with pytest.raises(SystemExit):
            holders.send_due()
    sent = len(server.messages)
    assert sent == (1 if point == "before_mail_data" else 2)
    holders.send_due()
    assert len(server.messages) == sent
    assert link_row().mail_due_at > timezone.now()


def test_an_answer_that_never_came_is_not_tried_again(wallet, server):
    server.at_data = {ADDRESS: ""}
    gives(wallet)
    holders.send_due()
    holders.send_due()
    assert server.addresses == [ADDRESS]


def test_where_nobody_sends_mails_nothing_is_asked_for(wallet, server, settings):
    gives(wallet)
    settings.ORGANIZATION_MAIL = False
    holders.send_due()
    assert server.addresses == []
    assert gives(wallet).status_code == 409
    wallet.post("/w/mail", {"remove": "yes"})
    assert "Tell me by mail" not in wallet.get("/w/me").text


def test_another_address_or_link_ends_what_was_asked_before(alice, wallet, server):
    gives(wallet)
    holders.send_due()
    path = path_in(server.read())
    gives(wallet, "alice@work.example")
    assert Client().post(path).status_code == 404
    holders.send_due()
    opens_wallet(alice, link_of(alice))
    assert link_row().mail_address is None
    assert Client().post(path_in(server.read(-1))).status_code == 404
    assert Client().post(f"{path}x").status_code == 404


def test_an_address_that_nobody_confirms_is_forgotten(wallet, server):
    gives(wallet)
    holders.send_due()
    hours_pass(UNCONFIRMED_FOR // HOURS + 1)
    holders.send_due()
    row = link_row()
    assert row.mail_address is None and not AskedAddress.objects.exists()


@pytest.mark.parametrize(
    ("language", "subject"),
    [
        ("de", "Bestätigen Sie Ihre E-Mail-Adresse"),
        ("fr", "Confirmez votre adresse"),
        ("es", "Confirme su dirección"),
        ("ar", "أكّد عنوان بريدك"),
    ],
)
def test_pages_and_mails_are_in_the_holders_language(wallet, server, language, subject):
    headers = {"Accept": "text/html", "Accept-Language": language}
    wallet.post("/w/mail", {"address": ADDRESS}, headers=headers)
    assert "Tell me by mail" not in wallet.get("/w/me", headers=headers).text
    holders.send_due()
    mail = server.read()
    assert subject in str(mail["Subject"]) and mail["Content-Language"] == language
    assert "Somebody" not in mail.get_content()
    assert "mail address" not in wallet.get(path_in(mail), headers=headers).text


def test_an_organization_cannot_write_into_the_mail(faber, wallet, server):
    name = "Win at evil.example <b>\r\nBcc: x@y.example"
    Tenant.objects.filter(pk=faber.tenant.pk).update(name=name)
    gives(wallet)
    holders.send_due()
    mail = server.read()
    assert mail["Bcc"] is None
    assert mail.get_content().count("http") == 1
    assert "evil.example" not in mail.get_content() + str(mail["Subject"])
