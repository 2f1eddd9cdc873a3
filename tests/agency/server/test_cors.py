"""Which calls pages on other origins may make, and how they see a refusal."""

import asyncio
import json
from contextlib import contextmanager
from unittest.mock import AsyncMock

import pytest
import requests
from django.test import Client, override_settings

from agency.server.cors import ASGIMiddleware
from core.api.authentication import SUBSCRIPTION_HEADERS
from tests.support.event_streams import serving
from tests.support.http_servers import http_server
from tests.support.processes import free_port

APP, OTHER = "https://app.example", "https://other.example"
ALLOWED = {"CORS_ALLOWED_ORIGINS": [APP]}
ALLOW = "Access-Control-Allow-Origin"
OTHER_HEADERS = {
    "accept", "content-type", "dpop", "idempotency-key", "if-none-match",
    "last-event-id", "prefer", "x-agency-api-version", "x-ms-command-name", "x-request-id",
}  # fmt: skip
KEY_HEADERS = ["Authorization", *SUBSCRIPTION_HEADERS, "X-Streetcred-Tenant-Id"]
API = (
    "/connections", "/credentials/v1/connections", "/custodian/v1/api/wallets",
    "/api/nowhere",
)  # fmt: skip
PUBLIC = (
    "/health", "/health/ready", "/credentials/v1/health", "/custodian/health",
    "/wallet/v1/health", "/provider/v1/health", "/api/health", "/i/none",
    "/i/none/qr.svg", "/tails/none", "/ledger/local/schemas/none",
)  # fmt: skip
PAGES = (
    "/", "/docs", "/studio/", "/accounts/login/", "/admin/", "/metrics", "/w/", "/w/pin",
    "/kiosk/none", "/invitations/none", "/connectionsx",
)  # fmt: skip

pytestmark = pytest.mark.django_db(transaction=True)


def request_from(path, origin=APP, method="get", **options):
    return getattr(Client(), method)(path, headers={"Origin": origin}, **options)


def preflight(path, origin=APP, headers=()):
    given = {"Origin": origin, "Access-Control-Request-Method": "PUT"}
    given["Access-Control-Request-Headers"] = ", ".join(headers).lower()
    return Client().options(path, headers=given)


def assert_closed(*paths):
    for path in paths:
        assert ALLOW not in request_from(path).headers
        assert ALLOW not in preflight(path).headers


def test_without_a_setting_no_page_elsewhere_may_call_the_api():
    assert_closed(*API)


@override_settings(**ALLOWED)
def test_pages_of_the_listed_origins_may_call_the_api():
    for path in API:
        answer, allowed = request_from(path), preflight(path, headers=KEY_HEADERS)
        assert answer.headers[ALLOW] == APP
        assert "origin" in answer.headers["Vary"]
        assert ALLOW not in request_from(path, OTHER).headers
        assert ALLOW not in request_from(path, f"{APP}.evil.example").headers
        assert (allowed.status_code, allowed.headers[ALLOW]) == (200, APP)
        names = allowed.headers["Access-Control-Allow-Headers"].lower().split(", ")
        assert set(names) == {name.lower() for name in KEY_HEADERS} | OTHER_HEADERS
        assert "Access-Control-Allow-Credentials" not in allowed.headers


def test_what_is_public_may_be_read_from_every_origin():
    for path in PUBLIC:
        for answer in (request_from(path, OTHER), Client().get(path)):
            assert answer.headers[ALLOW] == "*", (path, answer.content)


@override_settings(CORS_ALLOW_ALL_ORIGINS=True)
def test_no_page_of_ours_is_opened_to_another_origin():
    assert_closed(*PAGES)


@override_settings(**ALLOWED, INBOX_PER_ADDRESS=1)
def test_pages_of_the_listed_origins_can_read_refusals():
    large = {"data": "x" * 300_000, "content_type": "application/json"}
    envelope = {"content_type": "application/didcomm-envelope-enc", "data": b"{}"}
    envelope["method"] = "post"
    for path, options, status in (
        ("/connections", {}, 401),
        ("/api/no/such/path", {}, 404),
        ("/connections", {"method": "put"}, 401),
        ("/connections", {"method": "post"} | large, 413),
        ("/connections?a=%00", {}, 400),
        ("/didcomm", envelope, 400),
        ("/didcomm", envelope, 429),
    ):
        refused = request_from(path, **options)
        assert (refused.status_code, refused.headers[ALLOW]) == (status, APP)
        assert "X-Request-Id" in refused.headers["Access-Control-Expose-Headers"]


@pytest.mark.parametrize(
    ("method", "origin", "status", "allowed"),
    [("GET", APP, 413, APP), ("GET", OTHER, 413, None), ("OPTIONS", APP, 200, APP)],
)
def test_an_asgi_application_without_django_answers_pages_too(
    method, origin, status, allowed
):
    given = [(b"origin", origin.encode()), (b"access-control-request-method", b"GET")]
    scope = {"type": "http", "method": method, "path": "/connections"}
    keep = AsyncMock()

    async def refuse(scope, receive, send):
        vary = [(b"vary", b"cookie")]
        await send({"type": "http.response.start", "status": 413, "headers": vary})

    with override_settings(**ALLOWED):
        scope |= {"headers": given, "query_string": b""}
        asyncio.run(ASGIMiddleware(refuse)(scope, None, keep))
    [sent] = keep.await_args_list[0].args
    headers = dict(sent["headers"])
    assert sent["status"] == status
    varies = [value for name, value in sent["headers"] if name == b"vary"]
    assert status == 200 or varies == [b"cookie", b"origin"]
    assert headers.get(ALLOW.lower().encode()) == (allowed and allowed.encode())


@pytest.mark.slow
def test_the_stream_of_events_answers_pages_too(faber):
    with serving("stream", free_port(), CORS_ORIGINS=APP) as url:
        path = f"{url}/credentials/v1/events/stream"
        asks = {"Access-Control-Request-Method": "GET"}
        allowed = requests.options(path, headers={"Origin": APP} | asks, timeout=20)
        refused = requests.get(path, headers={"Origin": APP}, timeout=20)
        other = requests.get(path, headers={"Origin": OTHER}, timeout=20)
        keys = {"Origin": APP} | faber.headers
        opened = requests.get(path, headers=keys, stream=True, timeout=20)
        opened.close()
        health = requests.get(f"{url}/health", timeout=20)
    assert (allowed.status_code, allowed.headers[ALLOW]) == (200, APP)
    assert "Authorization" in allowed.headers["Access-Control-Allow-Headers"]
    assert (refused.status_code, refused.headers[ALLOW]) == (401, APP)
    assert (other.status_code, ALLOW in other.headers) == (401, False)
    assert (opened.status_code, opened.headers[ALLOW]) == (200, APP)
    assert health.headers[ALLOW] == "*"


PAGE = """<!doctype html><meta charset="utf-8"><pre id="found"></pre><script>
const calls = CALLS;
(async () => {
  const found = {};
  for (const [name, path, options] of calls) {
    try {
      const answer = await fetch(path, options);
      const seen = {status: answer.status, id: answer.headers.get("X-Request-Id")};
      found[name] = {...seen, text: await answer.text()};
    } catch (error) { found[name] = {blocked: String(error)}; }
  }
  document.querySelector("#found").textContent = JSON.stringify(found);
})();
</script>"""


@pytest.mark.slow
@pytest.mark.needs("chromium-headless-shell")
def test_a_page_in_a_browser_calls_the_api_with_each_header_of_the_clients(
    faber, page, settings
):
    key, token = faber.made.subscription_key, faber.made.access_token
    with_keys = {"Authorization": f"bearer {token}"}
    calls = [
        (name, f"{page.base}/connections", {"headers": with_keys | {name: key}})
        for name in SUBSCRIPTION_HEADERS
    ]
    every = with_keys | dict.fromkeys(SUBSCRIPTION_HEADERS, key)
    every |= {
        "X-Streetcred-Tenant-Id": "1",
        "Idempotency-Key": "a",
        "Prefer": "wait=1",
    }
    every |= {"Content-Type": "application/json", "X-Ms-Command-Name": "npm"}
    body = json.dumps({"connectionId": "from-a-page"})
    put = {"method": "POST", "headers": every, "body": body}
    calls += [
        ("write", f"{page.base}/agency/v1/connections", put),
        ("no keys", f"{page.base}/connections", {}),
        (
            "strange header",
            f"{page.base}/connections",
            {"headers": {"X-Strange": "1"}},
        ),
        ("health", f"{page.base}/health", {}),
    ]
    with page_that_calls(calls) as origin, page_that_calls(calls) as other:
        settings.CORS_ALLOWED_ORIGINS = [origin]
        found, elsewhere = seen_on(page, origin), seen_on(page, other)
    for name in (*SUBSCRIPTION_HEADERS, "write", "health"):
        assert found[name].get("status") == 200, (name, found[name])
    assert found["write"]["id"] and "invitationUrl" in found["write"]["text"]
    assert (
        found["no keys"]["status"] == 401 and "unauthorized" in found["no keys"]["text"]
    )
    assert "blocked" in found["strange header"]
    allowed = [name for name, seen in elsewhere.items() if "blocked" not in seen]
    assert allowed == ["health"]


@contextmanager
def page_that_calls(calls):
    """Yield the address of a page, on an origin of its own, that makes these calls."""
    content = PAGE.replace("CALLS", json.dumps(calls)).encode()
    html = {"Content_Type": "text/html"}
    with http_server(lambda call: call.answer(200, content, **html)) as server:
        yield server.url


def seen_on(page, url):
    """What the page at this address sees of each call, by name."""
    page.open(url, ready="!!document.querySelector('#found').textContent")
    return json.loads(page.text("#found"))
