"""Which requests go through which middleware, and that no client can tell."""

import re
from unittest import mock

import pytest
from django.conf import settings as configured
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import get_resolver

from agency.server import middleware

HTML = {"Accept": "text/html,*/*"}
ORIGIN = {"Origin": "https://app.example"}
# Expires is the time of the response, in pages that may not be kept.
CHANGING = ("X-Request-Id", "Retry-After", "Expires")


def routes(resolver=None, prefix=""):
    """Every route, with its callback: `agency/v1/^events$` and so on."""
    for pattern in (resolver or get_resolver()).url_patterns:
        path = prefix + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from routes(pattern, path)
        else:
            yield path, pattern.callback


# Pages that need no token of a form: they change nothing, or their link is the secret.
PAGES_WITHOUT_TOKEN = (
    "docs", "kiosk/<str:token>/card", "kiosk/<str:token>/screen", "unsubscribe/<str:token>"
)  # fmt: skip
# The API's, and safe with a token. A page below `.well-known` is as public as the rest.
READ_ONLY = (
    "tails/", "^assets/", "openapi.json", ".well-known/security.txt", "issuers/check/",
    "issuers/<str:segment>/did.jsonl", "issuers/<str:segment>/resources/",
)  # fmt: skip


def test_what_needs_no_csrf_token_is_of_the_api_and_all_else_is_a_page():
    calls = [
        path for path, _ in routes() if middleware.is_call("/" + path.removeprefix("^"))
    ]
    exempt = {path for path, callback in routes() if hasattr(callback, "csrf_exempt")}
    read = {path for path in calls if path.startswith(READ_ONLY)}
    assert exempt - set(PAGES_WITHOUT_TOKEN) | read == set(calls)
    assert not exempt & read and len(read) == len(READ_ONLY) and len(calls) > 300


def test_the_api_leaves_out_what_belongs_to_pages_and_changes_no_order():
    every = configured.MIDDLEWARE
    # In the chain of the API, CORS need not ask whether a request is a call.
    kept = [name.replace("APIMiddle", "Middle") for name in configured.API_MIDDLEWARE]
    assert [name for name in every if name in kept] == kept
    assert {name.rpartition(".")[2] for name in set(every) - set(kept)} == {
        "ChainByPath", "WhiteNoiseMiddleware", "Sessions", "CsrfViewMiddleware",
        "AuthenticationMiddleware", "MessageMiddleware", "AccountMiddleware",
    }  # fmt: skip


@pytest.fixture
def calls(faber):
    """Requests as (method, path, options), successful ones and all kinds of errors."""
    connection = f"/connections/{faber.invites()['connectionId']}"
    keys = faber.headers
    wrong = keys | {"Authorization": "bearer agt_wrong"}
    body = {"content_type": "application/json", "data": "{}"}
    elsewhere = {"SERVER_NAME": "elsewhere.example"}
    return [
        ("get", connection, {"headers": keys}),
        ("get", connection, {"headers": keys | ORIGIN}),
        ("get", f"/agency/v1{connection}", {"headers": keys}),
        ("get", connection, {"headers": wrong}),
        ("get", connection, {"headers": keys | HTML}),
        ("get", connection, {"headers": keys, **elsewhere}),
        ("get", connection, {"headers": HTML, **elsewhere}),
        ("patch", connection, {"headers": keys}),
        ("options", connection, {"headers": ORIGIN}),
        ("head", "/connections", {"headers": keys}),
        ("get", "/connections?text=%00", {"headers": keys}),
        ("get", "/connections/", {"headers": keys}),
        ("get", "/connections/no/such/address", {"headers": HTML}),
        ("post", "/connections/no/such/address", body),
        ("post", "/connections", {"headers": keys, **body, "data": "{"}),
        ("post", "/connections", {"headers": keys, **body, "data": "x" * 300_000}),
        ("post", "/didcomm", body),
        ("get", "/health", {}),
        ("get", "/openapi.json", {"headers": ORIGIN}),
        ("get", f"/assets/{'a' * 22}.png", {"headers": ORIGIN}),
        ("get", "/tails/none", {"headers": ORIGIN}),
        ("get", "/i/none/qr.svg", {}),
        ("get", "/", {}),
        ("get", "/studio/", {}),
        ("post", "/accounts/login/", {}),
        ("get", "/no/such/address", {}),
    ]


def respond(method, path, options):
    response = getattr(Client(enforce_csrf_checks=True), method)(path, **options)
    headers = {name: value for name, value in response.items() if name not in CHANGING}
    tokens = re.compile(rb'(csrfmiddlewaretoken" value|nonce)="[^"]*"')
    body = b"".join(response) if response.streaming else response.content
    # Pages of errors show the id of the request.
    body = body.replace(response.headers["X-Request-Id"].encode(), b"")
    return response.status_code, headers, tokens.sub(b"", body), list(response.cookies)


def all_through_the_whole_chain(monkeypatch):
    monkeypatch.setattr(middleware, "wants_html", lambda request: True)


def test_no_client_can_tell_the_chains_apart(settings, monkeypatch, calls):
    settings.ALLOWED_HOSTS = ["testserver"]
    settings.CORS_ALLOWED_ORIGINS = ["https://app.example"]
    short = [respond(*call) for call in calls]
    all_through_the_whole_chain(monkeypatch)
    whole = [respond(*call) for call in calls]
    for call, first, second in zip(calls, short, whole, strict=True):
        assert first == second, call


def test_a_failure_has_the_same_response_in_both_chains(settings, monkeypatch, faber):
    settings.DEBUG_PROPAGATE_EXCEPTIONS = False

    def fail():
        client = Client(raise_request_exception=False)
        with mock.patch("core.api.views.View.list_response", side_effect=KeyError):
            response = client.get("/connections", headers=faber.headers)
        body = re.sub(r"id [\w-]+", "", response.json()["message"])
        assert "X-Request-Id" in response.headers
        return response.status_code, response.json()["code"], body

    short = fail()
    all_through_the_whole_chain(monkeypatch)
    assert short == fail() and short[0] == 500


def test_a_call_runs_no_middleware_of_pages_and_a_page_for_a_person_does(faber):
    session = SessionStore()
    session["name"] = "value"
    session.create()
    before = Session.objects.get().expire_date

    def is_saved(**headers):
        client = Client()
        client.cookies[configured.SESSION_COOKIE_NAME] = session.session_key
        client.get("/connections", headers=faber.headers | headers)
        return Session.objects.get().expire_date != before

    assert not is_saved()
    assert is_saved(**HTML)
