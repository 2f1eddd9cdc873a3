"""The sessions of one's account: listed, ended, bounded."""

from datetime import timedelta
from unittest.mock import patch

from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agency.mails.devices import device_name
from tenants import sessions
from tenants.lifecycle.provisioning import create_organization
from tenants.models import AuditEntry
from tests.agency.studio.conftest import browser_of, person
from tests.support.pages import Browser

PASSWORD = "correct horse battery"
PAGE = "/accounts/sessions/"
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
)
CHROME = (
    "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/140.0.0.0 Mobile Safari/537.36"
)
EDGE = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0"
)


def sign_in(user_agent=FIREFOX, address="203.0.113.7", name="fay"):
    browser = Browser(headers={"User-Agent": user_agent}, REMOTE_ADDR=address)
    form = {"login": f"{name}@faber.example", "password": PASSWORD}
    assert browser.post("/accounts/login/", form)["Location"] == "/studio/"
    return browser


def test_who_works_for_one_organization_begins_at_its_overview(fay, url):
    form = {"login": "fay@faber.example", "password": PASSWORD}
    assert Browser().post("/accounts/login/", form)["Location"] == url
    wanted = Browser().post("/accounts/login/?next=/accounts/sessions/", form)
    assert wanted["Location"] == "/accounts/sessions/"
    create_organization("Second", owner=fay)
    assert Browser().post("/accounts/login/", form)["Location"] == "/studio/"


def is_signed_in(browser):
    return browser.get(PAGE).status_code == 200


def row_of(browser):
    return UserSession.objects.get(session_key=browser.session.session_key)


def test_the_page_lists_ones_sessions_and_marks_this_one(fay):
    desk, phone = sign_in(), sign_in(SAFARI, "2001:db8:1:2::3")
    page = phone.get(PAGE).text
    assert "Firefox on Windows" in page and "203.0.113.7" in page
    assert "Safari on iPhone" in page and "2001:db8:1:2::" in page
    mine = page.split("Safari on iPhone")[1].split("</li>")[0]
    assert "This one" in mine and "<form" not in mine
    assert page.count("This one") == 1
    assert f"{PAGE}{row_of(desk).pk}/end" in page
    assert desk.session.session_key not in page
    desk.post("/accounts/logout/")
    assert "Firefox" not in phone.get(PAGE).text


def test_the_sessions_of_others_are_neither_listed_nor_ended(fay):
    person("sam")
    sam = sign_in(CHROME, "198.51.100.9", name="sam")
    desk = sign_in()
    page = desk.get(PAGE).text
    assert "198.51.100.9" not in page and "nowhere else" in page
    assert desk.post(f"{PAGE}{row_of(sam).pk}/end").status_code == 404
    assert is_signed_in(sam)
    assert not AuditEntry.objects.filter(action="person.sessions_ended").exists()


def test_last_seen_is_the_time_of_the_last_request(fay):
    desk, phone = sign_in(), sign_in(SAFARI)
    later = timezone.now() + timedelta(hours=2)
    with patch("django.utils.timezone.now", return_value=later):
        desk.get("/studio/")
    [first, second] = sessions.list_sessions(fay)
    assert first.key == desk.session.session_key
    assert abs(first.last_seen_at - later) < timedelta(seconds=5)
    assert second.last_seen_at < later - timedelta(hours=1)
    assert first.signed_in_at < later - timedelta(hours=1)
    assert is_signed_in(phone)


def test_a_request_writes_nothing_but_its_own_session(fay):
    desk = sign_in()
    with CaptureQueriesContext(connection) as captured:
        desk.get(PAGE)
    writes = [one["sql"] for one in captured if not one["sql"].startswith("SELECT")]
    assert [sql for sql in writes if "usersessions" in sql] == []


def test_one_other_session_is_signed_out_and_then_all_others(fay):
    desk, phone, tablet = sign_in(), sign_in(SAFARI), sign_in(CHROME)
    answer = desk.post(f"{PAGE}{row_of(phone).pk}/end")
    assert answer["Location"] == PAGE
    assert [is_signed_in(one) for one in (desk, phone, tablet)] == [True, False, True]
    assert "Safari on iPhone" not in desk.get(PAGE).text
    person("sam")
    sam, phone = sign_in(name="sam"), sign_in(SAFARI)
    for _ in range(2):  # the second time there is none any more
        assert desk.post(f"{PAGE}others/end")["Location"] == PAGE
    assert [is_signed_in(one) for one in (desk, phone, tablet)] == [True, False, False]
    assert is_signed_in(sam)
    entries = AuditEntry.objects.filter(action="person.sessions_ended").order_by("pk")
    assert [entry.details["number"] for entry in entries] == [1, 2]
    for entry in entries:
        assert (entry.actor_name, entry.object_id) == (fay.email, str(fay.pk))


def test_only_a_form_of_ones_own_page_ends_sessions(client, fay):
    desk = sign_in()
    ends = (f"{PAGE}1/end", f"{PAGE}others/end")
    for answer in (client.get(PAGE), *(client.post(path) for path in ends)):
        assert answer["Location"].startswith("/accounts/login/")
    assert [desk.get(path).status_code for path in ends] == [405, 405]
    strict = Browser(enforce_csrf_checks=True)
    strict.cookies = desk.cookies
    assert strict.post(f"{PAGE}others/end").status_code == 403


def test_a_new_password_ends_the_other_sessions(fay):
    desk, phone = sign_in(), sign_in(SAFARI)
    new = "another horse battery"
    form = {"oldpassword": PASSWORD, "password1": new, "password2": new}
    assert desk.post("/accounts/password/change/", form).status_code == 302
    assert not is_signed_in(phone)
    page = desk.get(PAGE).text
    assert "Firefox on Windows" in page and "Safari" not in page
    assert Session.objects.count() == 1


def test_a_sign_in_ends_the_oldest_beyond_the_limit(fay, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 3)
    browsers = [browser_of(fay) for _ in range(5)]
    assert [is_signed_in(one) for one in browsers] == [False, False, True, True, True]


def test_the_page_takes_as_many_queries_for_many_sessions(fay):
    def count():
        with CaptureQueriesContext(connection) as captured:
            desk.get(PAGE)
        return len(captured)

    desk = sign_in()
    few = count()
    for _ in range(20):
        browser_of(fay)
    assert count() == few <= 12


def test_rows_of_ended_sessions_are_deleted(fay):
    desk, phone = sign_in(), sign_in(SAFARI)
    Session.objects.filter(pk=phone.session.session_key).delete()
    sessions.delete_ended_rows()
    assert [row.pk for row in UserSession.objects.all()] == [row_of(desk).pk]


def test_another_person_in_the_same_browser_has_a_session_of_their_own(fay):
    sam = person("sam")
    browser = browser_of(fay)
    browser.force_login(sam, backend="agency.studio.accounts.sign_in.Backend")
    assert sessions.list_sessions(fay) == []
    [own] = sessions.list_sessions(sam)
    assert own.key == browser.session.session_key


def test_django_admin_leads_to_our_page_of_passwords(db):
    staff = User.objects.create_user("tom", "tom@faber.example", is_staff=True)
    answer = browser_of(staff).get("/admin/password_change/")
    assert answer["Location"] == "/accounts/password/change/"


DEVICES = {
    FIREFOX: "Firefox on Windows",
    SAFARI: "Safari on iPhone",
    CHROME: "Chrome on Android",
    EDGE: "Edge on Windows",
    "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0": "Firefox on Linux",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15)": "macOS",
} | dict.fromkeys(["curl/8.5.0", "", "<script>" * 100], "Unknown device")


def test_a_device_is_named_in_words():
    assert {agent: device_name(agent) for agent in DEVICES} == DEVICES


def test_a_new_secret_key_beside_the_former_one_signs_nobody_out(fay, settings):
    desk = sign_in()
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key, as long as one should be"
    assert is_signed_in(desk)
    settings.SECRET_KEY_FALLBACKS = []
    assert is_signed_in(desk), "the session has moved to the new key"
    settings.SECRET_KEY = "a third key, as long as one should be"
    assert not is_signed_in(desk)
