"""How often people, and strangers, may try to sign in, sign up and set passwords."""

import os
import re
import socket
import subprocess
import sys
import time

import pytest
from allauth.account.models import EmailAddress
from allauth.core.exceptions import ImmediateHttpResponse
from django.core import mail
from django.core.cache import cache
from django.test import RequestFactory

from agency.studio.accounts.adapter import AccountAdapter
from agency.studio.accounts.rate_limits import duration_text
from core.telemetry.metrics import registry
from core.valkey import rate_limits
from tests.support.pages import Browser
from tests.support.races import at_once

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
HOME, STRANGE = "198.51.100.1", "203.0.113.9"
PROXY = "10.0.0.1"
LOGIN = "/accounts/login/"
PAGE = {"HTTP_ACCEPT": "text/html"}
TRIES = f"""
import django; django.setup()
from django.test import RequestFactory
from agency.studio.accounts.adapter import AccountAdapter
for _ in range(5):
    request = RequestFactory().post("{LOGIN}", REMOTE_ADDR="{STRANGE}")
    AccountAdapter().pre_authenticate(request, email="fay@faber.example")
"""


@pytest.fixture(autouse=True)
def fay_may_sign_in(passwords_are_hashed_fast, fay):
    pass


def sign_in(password, address, email="fay@faber.example", **headers):
    fields = {"login": email, "password": password}
    return Browser().post(LOGIN, fields, REMOTE_ADDR=address, **PAGE | headers)


def through_the_proxy(password, address):
    """Whatever a client writes into the header stands before what the proxy adds."""
    return sign_in(password, PROXY, HTTP_X_FORWARDED_FOR=f"8.8.8.8, {address}")


def statuses(number, *arguments, **options):
    answers = [sign_in("wrong guess", *arguments, **options) for _ in range(number)]
    return [answer.status_code for answer in answers]


def refusals(by):
    return registry.get_sample_value("agency_rate_refusals_total", {"by": by}) or 0


def test_the_owner_gets_in_while_a_stranger_is_held(nothing_is_rendered):
    assert {sign_in(PASSWORD, HOME).status_code for _ in range(7)} == {302}
    before = refusals("login_failed")
    assert statuses(7, STRANGE) == [200] * 5 + [429] * 2
    assert refusals("login_failed") == before + 2
    assert sign_in(PASSWORD, STRANGE).status_code == 429
    assert sign_in(PASSWORD, HOME).status_code == 302


@pytest.mark.parametrize("limits, number", [(None, 5), ({"login": "2/m/ip"}, 2)])
def test_behind_a_proxy_each_address_counts_for_itself(settings, limits, number):
    settings.TRUSTED_PROXIES = 1
    settings.ACCOUNT_RATE_LIMITS = limits or settings.ACCOUNT_RATE_LIMITS
    tries = [through_the_proxy("wrong guess", STRANGE) for _ in range(number + 1)]
    assert [one.status_code for one in tries] == [200] * number + [429]
    assert through_the_proxy(PASSWORD, HOME).status_code == 302


def test_without_a_proxy_nobody_chooses_an_address(nothing_is_rendered):
    for number in range(5):
        sign_in("wrong guess", STRANGE, HTTP_X_FORWARDED_FOR=f"198.51.100.{number}")
    assert statuses(1, STRANGE, HTTP_X_FORWARDED_FOR=HOME) == [429]


def test_neither_another_host_nor_other_letters_give_more_tries(settings):
    settings.ALLOWED_HOSTS = ["*"]
    for number in range(5):
        sign_in("wrong guess", STRANGE, HTTP_HOST=f"agency-{number}.example")
    assert statuses(1, STRANGE, HTTP_HOST="agency.example") == [429]
    assert statuses(1, STRANGE, email="FAY@Faber.example") == [429]


def test_an_address_has_a_limit_over_all_accounts(nothing_is_rendered):
    answers = [sign_in("a guess", STRANGE, email=f"p{n}@x.example") for n in range(21)]
    assert [one.status_code for one in answers] == [200] * 20 + [429]
    assert 50 <= int(answers[-1]["Retry-After"]) <= 60
    assert sign_in(PASSWORD, HOME).status_code == 302


def test_refused_tries_use_up_nothing_of_an_address(nothing_is_rendered):
    assert statuses(30, STRANGE)[5:] == [429] * 25
    assert statuses(1, STRANGE, email="other@faber.example") == [200]


def test_people_and_programs_are_told_how_long_to_wait(settings):
    statuses(5, STRANGE)
    answer = sign_in("wrong guess", STRANGE)
    page = answer.text
    assert answer.status_code == 429 and 290 <= int(answer["Retry-After"]) <= 300
    assert "Too many attempts" in page and "Wait <strong>5 minutes</strong>" in page
    assert "choose a new one" in page
    settings.EMAIL_URL = ""
    assert b"choose a new one" not in sign_in("wrong guess", STRANGE).content
    answer = sign_in("wrong guess", STRANGE, HTTP_ACCEPT="*/*")
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_requests")
    assert "Wait 5 minutes" in answer.json()["message"] and answer["Retry-After"]


def test_after_the_time_that_was_told_one_may_try_again(settings, monkeypatch):
    settings.ACCOUNT_RATE_LIMITS = {"login_failed": "2/3s/key"}
    statuses(2, STRANGE)
    held = sign_in(PASSWORD, STRANGE)
    seconds = int(held["Retry-After"])
    assert held.status_code == 429 and 2 <= seconds <= 3
    assert f"Wait <strong>{seconds} seconds</strong>" in held.text
    later = time.time() + seconds
    monkeypatch.setattr(time, "time", lambda: later)
    assert sign_in(PASSWORD, STRANGE).status_code == 302


def test_the_time_is_told_in_words():
    texts = ["1 second", "90 seconds", "2 minutes", "5 minutes"]
    assert [duration_text(seconds) for seconds in (1, 90, 91, 300)] == texts


def test_a_new_password_ends_the_wait(settings):
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    statuses(5, HOME)
    assert sign_in(PASSWORD, HOME).status_code == 429
    browser = Browser(REMOTE_ADDR=HOME)
    browser.post("/accounts/password/reset/", {"email": "fay@faber.example"})
    link = re.search(r"/accounts/password/reset/key/\S+", mail.outbox[0].body)[0]
    form = browser.get(link)["Location"]
    new = "another good password"
    fields = {"password1": new, "password2": new}
    assert browser.post(form, fields).status_code == 302
    assert sign_in(new, HOME).status_code == 302


def test_the_admin_is_entered_by_the_same_page():
    statuses(5, STRANGE)
    form = {"username": "fay", "password": PASSWORD, "login": "fay@faber.example"}
    browser = Browser(REMOTE_ADDR=STRANGE)
    answer = browser.post("/admin/login/?next=/admin/", form, follow=True)
    assert answer.redirect_chain == [(f"{LOGIN}?next=%2Fadmin%2F", 302)]
    assert "_auth_user_id" not in answer.client.session


RESET = "/accounts/password/reset/"
ADDED = {"email": "a@x.example", "action_add": ""}
LIMITED = [
    (LOGIN, "login", "ip", {"login": "a@x.example", "password": PASSWORD}),
    ("/accounts/signup/", "signup", "ip", {"email": "a@x.example"}),
    (RESET, "reset_password", "ip", {"email": "a@x.example"}),
    (RESET, "reset_password", "key", {"email": " A@x.example"}),
    (f"{RESET}key/1-x/", "reset_password_from_key", "ip", {}),
    ("/accounts/email/", "manage_email", "user", ADDED),
    ("/accounts/password/change/", "change_password", "user", {"oldpassword": "x"}),
    ("/accounts/password/set/", "change_password", "user", {}),
    ("/accounts/reauthenticate/", "reauthenticate", "user", {"password": "wrong"}),
]


def test_every_limited_page_tells_how_long_to_wait(settings, fay):
    for path, action, per, fields in LIMITED:
        cache.clear()
        settings.ACCOUNT_RATE_LIMITS = {action: f"1/300s/{per}"}
        browser = Browser(**PAGE)
        if per == "user":
            browser.force_login(fay)
        assert browser.post(path, fields).status_code != 429
        held = browser.post(path, fields)
        assert held.status_code == 429 and 290 <= int(held["Retry-After"]) <= 300, path
        assert "Wait <strong>5 minutes</strong>" in held.text


def test_a_mailbox_gets_few_links_whoever_asks():
    fields = {"email": "fay@faber.example"}
    for number in range(7):
        Browser(REMOTE_ADDR=f"198.51.100.{number}").post(RESET, fields)
    assert len(mail.outbox) == 5


def test_a_mailbox_gets_one_link_of_confirmation_whoever_asks(settings):
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    EmailAddress.objects.update(verified=False)
    answers = [sign_in(PASSWORD, address) for address in (HOME, STRANGE, HOME)]
    assert {one["Location"] for one in answers} == {"/accounts/confirm-email/"}
    assert len(mail.outbox) == 1


def test_what_is_counted_lies_in_the_broker_and_is_no_pickle():
    statuses(1, STRANGE)
    broker = rate_limits.redis_client()
    [name] = [key for key in broker.keys("agency:cache:*") if b"5/300.0/key" in key]
    assert re.fullmatch(rb"\[\d+\.\d+\]", broker.get(name))
    assert 0 < broker.ttl(name) <= 300


def test_of_many_at_once_as_many_pass_as_may(transactional_db):
    def guess():
        request = RequestFactory().post(LOGIN, REMOTE_ADDR=STRANGE)
        try:
            AccountAdapter().pre_authenticate(request, email="fay@faber.example")
        except ImmediateHttpResponse as refused:
            return refused.response.status_code

    assert sorted(at_once(*[guess] * 12), key=bool) == [None] * 5 + [429] * 7


@pytest.mark.slow
def test_processes_count_together():
    assert statuses(2, STRANGE, email="other@faber.example") == [200, 200]
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "agency.settings"}
    subprocess.run(
        [sys.executable, "-c", TRIES], env=environment, check=True, timeout=60
    )
    assert sign_in(PASSWORD, STRANGE).status_code == 429
    assert sign_in(PASSWORD, HOME).status_code == 302


@pytest.fixture
def silent_server():
    """Takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"


@pytest.fixture
def away(settings, monkeypatch):
    """The server goes away: calls to it lead to the URL from now on."""

    def go(url):
        settings.REDIS_URL = url
        rate_limits.redis_client.cache_clear()

    yield go
    rate_limits.redis_client.cache_clear()


@pytest.fixture(params=["refuses", "unreachable", "silent", "nonsense"])
def no_server(request, away):
    urls = {
        "refuses": "redis://127.0.0.1:1/0", "unreachable": "redis://192.0.2.1:6379/0",
        "nonsense": "nonsense",
    }  # fmt: skip
    away(urls.get(request.param) or request.getfixturevalue("silent_server"))


def test_without_the_server_each_process_counts_by_itself(
    no_server, caplog, nothing_is_rendered, monkeypatch
):
    monkeypatch.setattr(rate_limits, "PAUSE_SECONDS", 3600)
    assert statuses(6, STRANGE) == [200] * 5 + [429]
    assert sign_in(PASSWORD, HOME).status_code == 302
    told = [one for one in caplog.records if "broker is out of reach" in one.message]
    assert len(told) == 1


def test_once_the_server_is_back_processes_count_together(away, settings, monkeypatch):
    url = settings.REDIS_URL
    away("redis://127.0.0.1:1/0")
    statuses(6, STRANGE)
    away(url)
    monkeypatch.setattr(rate_limits, "paused_until", 0.0)
    assert statuses(1, STRANGE) == [200]
    assert rate_limits.redis_client().keys("agency:cache:*")


def test_the_cache_works_as_django_promises_with_the_server_and_without(away):
    for _ in range(2):
        assert cache.add("a", [1.5], 60) and not cache.add("a", [2], 60)
        cache.set("b", {"c": None}, 60)
        assert cache.get_many(["a", "b", "none"]) == {"a": [1.5], "b": {"c": None}}
        assert "a" in cache and cache.touch("a", 60) and cache.delete("a")
        assert cache.get("a", "absent") == "absent"
        cache.set("number", 1)
        assert cache.incr("number") == 2
        with pytest.raises(ValueError):
            cache.incr("absent")
        away("redis://127.0.0.1:1/0")


def test_clearing_leaves_the_keys_of_others_alone():
    rate_limits.redis_client().set("celery", "a task")
    cache.set("ours", 1)
    cache.clear()
    assert rate_limits.redis_client().get("celery") == b"a task"
    assert cache.get("ours") is None
