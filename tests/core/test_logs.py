"""Log lines of all kinds of calls, in both formats, are searched for sent values."""

import io
import json
import logging.config
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest
import requests
from celery import Celery
from celery.app.trace import build_tracer
from django.apps import apps
from django.conf import settings as configured
from django.db import IntegrityError
from django.test import Client

from connections.models import Connection
from core.telemetry import logs
from tenants import tokens, vault
from tests.support.processes import database_of_test, eventually, processes, same_server

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "Balthazar-4711"
V1 = "/credentials/v1/credentials"


@pytest.fixture(params=["json", "text"])
def written(request):
    """All lines of the configured handlers, in either format, with any DEBUG."""
    output, console = io.StringIO(), configured.LOGGING["handlers"]["console"]
    console = console | {"stream": output, "formatter": request.param}
    logging.config.dictConfig(configured.LOGGING | {"handlers": {"console": console}})
    yield output
    logging.config.dictConfig(configured.LOGGING)


@pytest.fixture
def breaks(monkeypatch):
    """Replaces what finds an invitation by its token. Responds to a call of it."""

    def call(broken, query=""):
        monkeypatch.setattr(Connection, "find_by_token", broken)
        answer = Client(raise_request_exception=False).get(f"/i/{SECRET}{query}")
        assert answer.status_code == 500
        return answer

    return call


def test_each_of_our_apps_logs_at_the_level_of_the_settings():
    folder, configs = configured.BASE_DIR, apps.get_app_configs()
    ours = {app.label for app in configs if Path(app.path).parent == folder}
    loggers = configured.LOGGING["loggers"]
    assert len(ours) > 7
    assert [name for name in ours if "level" not in loggers.get(name, {})] == []


def lines_of(output, name):
    lines, member = output.getvalue().splitlines(), f'"logger": "{name}"'
    return [line for line in lines if f" {name} " in line or member in line]


@pytest.mark.parametrize(
    "method, path, status, route",
    [
        (
            "get",
            f"/credentials?X-Service-Subscription-Key={SECRET}",
            401,
            "credentials",
        ),
        (
            "get",
            f"{V1}/{SECRET}",
            401,
            "credentials/v1/credentials/<str:credentialId>",
        ),
        ("get", f"/nowhere/{SECRET}?key={SECRET}", 404, "-"),
        ("get", f"/i/{SECRET}", 404, "i/<str:token>"),
        ("get", f"/i/{SECRET}\u201d", 404, "i/<str:token>"),
        ("post", f"/i/{SECRET}", 405, "i/<str:token>"),
        ("get", f"/studio/organizations/{SECRET}?a={SECRET}", 404, "-"),
        ("post", f"/accounts/login/?next=/{SECRET}", 403, "accounts/login/"),
    ],
)
def test_an_error_is_logged_by_route(written, method, path, status, route):
    client = Client(enforce_csrf_checks=status == 403, raise_request_exception=False)
    referer = f"https://elsewhere.example/{SECRET}?key={SECRET}"
    answer = client.generic(
        method.upper(), path, secure=True, headers={"Referer": referer}
    )
    assert answer.status_code == status
    name = "django.security.csrf" if status == 403 else "django.request"
    [line] = lines_of(written, name)
    assert route in line and answer["X-Request-Id"] in line
    assert not line.startswith("{") or json.loads(line)["route"] == route
    assert SECRET not in written.getvalue()


def test_what_breaks_is_logged_with_its_place_and_without_the_call(
    written, breaks, faber
):
    def broken(token):
        Connection.objects.create(tenant=faber.tenant, wallet_id=None, token=SECRET)

    with pytest.raises(IntegrityError, match=SECRET):
        broken("")
    answer = breaks(broken, f"?key={SECRET}")
    text = written.getvalue()
    assert "Traceback" in text and "in broken" in text and "IntegrityError" in text
    assert "null value in column" in text
    assert "i/<str:token>" in text and answer["X-Request-Id"] in text
    assert SECRET not in text


def test_a_key_and_an_address_in_an_error_are_cut(written, breaks):
    address = f"https://peer.example/{SECRET}?c_i={SECRET}"
    for prefix in ("agt", "ags", "agp", "agk", "agw"):
        key = tokens.generate_token(prefix)
        breaks(Mock(side_effect=ValueError(f"cannot call {address} with {key}")))
        text = written.getvalue()
        assert f"cannot call https://peer.example/... with {prefix}_..." in text
        assert SECRET not in text and key not in text


def test_what_breaks_in_a_task_is_logged_without_secrets(written, faber):
    """Celery writes the error into the message and, in JSON, once more beside it."""
    key = faber.made.access_token
    row = f"DETAIL:  Failing row contains ({SECRET})."
    app = Celery("breaking", set_as_current=False)

    @app.task(name="breaks", shared=False)
    def breaks():
        raise ValueError(
            f"https://me:{SECRET}@peer.example/{SECRET}?a={SECRET} {key}\n{row}"
        )

    build_tracer("breaks", breaks, app=app)("an id", (), {})
    text = written.getvalue()
    assert "https://peer.example/... agt_..." in text and "in breaks" in text
    assert SECRET not in text and key not in text


def test_an_error_that_ends_a_process_or_a_thread_is_one_line(written, monkeypatch):
    for place in ("sys.excepthook", "threading.excepthook"):
        monkeypatch.setattr(place, None)
    with monkeypatch.context() as patched:
        patched.setattr(logging, "captureWarnings", lambda capture: None)
        logs.log_uncaught()
    try:
        raise ValueError(f"https://peer.example/{SECRET}")
    except ValueError as error:
        sys.excepthook(type(error), error, error.__traceback__)
        arguments = (type(error), error, error.__traceback__, None)
        threading.excepthook(threading.ExceptHookArgs(arguments))
    text = written.getvalue()
    assert "the process ends: https://peer.example/..." in text
    assert "thread - ends: https://peer.example/..." in text
    assert SECRET not in text
    if text.startswith("{"):
        levels = [json.loads(line)["level"] for line in text.splitlines()]
        assert levels == ["CRITICAL", "ERROR"]


def test_work_of_a_row_has_the_id_of_its_request_and_then_no_more():
    with logs.continue_request("order-4711"):
        assert logs.current_request_id() == "order-4711"
        with logs.continue_request(""):
            assert logs.current_request_id() == "order-4711"
    assert logs.current_request_id() == ""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_process_writes_json_and_nothing_else(faber, tmp_path, capfd):
    vault.data_key(None)
    servers = {
        "DATABASE_URL": database_of_test(),
        "REDIS_URL": same_server(configured.REDIS_URL, "9"),
        "LOG_FORMAT": "json",
        "LOG_LEVEL": "INFO",
    }
    printed = []

    def lines(name):
        printed.extend(capfd.readouterr().out.splitlines())
        return [
            json.loads(line.partition("|")[2])
            for line in printed
            if line.startswith(f"{name:<6} |")
        ]

    with processes(tmp_path, **servers) as product:
        names = ("stream", "worker", "deliver", "beat")
        for name in names:
            product.start(name)
        product.start_web()
        product.children("web")[-1].kill()
        wanted = {name: "starts: " for name in names} | {"web": "exit"}
        for name, text in wanted.items():
            eventually(
                lambda name=name, text=text: any(
                    text in line["message"] for line in lines(name)
                ),
                120,
            )
            assert all(line["time"] and line["level"] for line in lines(name))
        assert {line["logger"] for line in lines("web")} >= {"_granian"}


@pytest.mark.slow
@pytest.mark.parametrize("form, debug", [("json", "0"), ("text", "1")])
def test_no_process_prints_an_address(faber, tmp_path, capsys, form, debug):
    vault.data_key(None)
    servers = {
        "DATABASE_URL": database_of_test(),
        "REDIS_URL": same_server(configured.REDIS_URL, "9"),
        "ALLOWED_HOSTS": "127.0.0.1",
    }
    with processes(
        tmp_path, **servers, DEBUG=debug, LOG_FORMAT=form, LOG_LEVEL="INFO"
    ) as product:
        product.start_web()
        paths = [
            f"/i/{SECRET}",
            f"/x/{SECRET}?k={SECRET}",
            f"/credentials?key={SECRET}",
        ]
        for path in paths:
            answer = requests.get(
                f"{product.url}{path}",
                headers={"Accept": "application/json"},
                timeout=10,
            )
            assert answer.status_code in (401, 404)
    printed = capsys.readouterr().out
    assert (
        printed.count("agency.requests")
        == printed.count("django.request")
        == len(paths)
    )
    assert SECRET not in printed
