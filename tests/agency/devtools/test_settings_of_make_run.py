"""The web server in the environment of `make run`, as people and programs see it."""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from agency.devtools import run
from agency.devtools.embedded.home import free_port
from agency.devtools.supervisor import Supervisor, read_procfile
from tests.support.database import new_database
from tests.support.paths import ROOT
from tests.support.processes import eventually

PAGE = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
BROKEN = "/i/AAAAAAAAAAAAAAAAAAAAAA"  # it reads a table, and the database has none
PAGES = [
    "/",
    "/nothing",
    "/accounts/login/",
    "/accounts/signup/",
    "/docs",
    "/admin/login/",
]
BYTES_OF_AN_ERROR_PAGE = 2000
TOLD_BY_DEBUG = (
    "Traceback",
    "urlpatterns",
    "URLconf",
    "DEBUG",
    "settings",
    "Django",
    "openapi.json",
)


class Web:
    """A running web server; `log` is all that it printed."""

    def __init__(self, environment: dict[str, str], url: str, log: Path):
        self.environment, self.url, self.log = environment, url, log

    def get(self, path: str, **headers: str) -> requests.Response:
        return requests.get(self.url + path, headers=headers, timeout=30)

    def browse(self, path: str, **headers: str) -> requests.Response:
        return self.get(path, **PAGE, **headers)

    def lines(self, text: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if text in line]


@contextlib.contextmanager
def environment_of_make_run(port: int, **given: str) -> Iterator[dict[str, str]]:
    """The environment of `make run` with this test's servers and nothing else."""
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as cleanup:
        for name in ("DEBUG", "PUBLIC_URL", *run.DEVELOPER_SETTINGS):
            patch.delenv(name, raising=False)
        for name, value in given.items():
            patch.setenv(name, value)
        yield dict(os.environ) | run.build_environment(port, cleanup)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    folder = tmp_path_factory.mktemp("web")
    port, log = free_port(folder / "port"), folder / "log"
    supervisor = Supervisor(mark=str(folder))
    with (
        new_database("without_tables") as empty,
        environment_of_make_run(port, DATABASE_URL=empty) as environment,
        open(log, "w") as output,
    ):
        supervisor.environment |= environment | {
            "METRICS_ROOT": str(folder / "metrics")
        }
        supervisor.services["web"] = supervisor.start_process(
            read_procfile()["web"], stdout=output.fileno(), stderr=output.fileno()
        )
        web = Web(environment, f"http://127.0.0.1:{port}", log)
        try:
            eventually(lambda: answers(web), 60)
            yield web
        finally:
            supervisor.stop(grace=5)


def answers(web: Web) -> bool:
    with contextlib.suppress(requests.RequestException):
        return web.get("/health").ok
    return False


def secrets_of(web: Web) -> list[str]:
    names = ("SECRET_KEY", "AGENCY_MASTER_KEY", "DATABASE_URL", "REDIS_URL")
    return [web.environment[name] for name in names]


def assert_tells_nothing(web: Web, answer: requests.Response) -> None:
    """Small, and without what a page of Django's for debugging shows."""
    assert len(answer.content) < BYTES_OF_AN_ERROR_PAGE
    for word in (*TOLD_BY_DEBUG, *secrets_of(web), str(ROOT)):
        assert word not in answer.text, word


@pytest.mark.parametrize(
    ("path", "headers", "status", "title"),
    [
        ("/nothing", {}, 404, "There is nothing here"),
        ("/studio/nothing", {}, 404, "There is nothing here"),
        ("/wallet/v1/api/nothing/at/all", {}, 404, "There is nothing here"),
        (BROKEN, {}, 500, "Something broke on our side"),
        ("/", {"Host": "elsewhere.example"}, 400, "The request could not be read"),
    ],
)
def test_people_get_a_small_page_of_ours(
    web: Web, path: str, headers: dict[str, str], status: int, title: str
) -> None:
    answer = web.browse(path, **headers)
    assert answer.status_code == status
    assert f"<title>{title} · Agency</title>" in answer.text
    assert "/static/agency/agency.css" in answer.text
    assert_tells_nothing(web, answer)


def test_a_form_without_its_token_is_a_small_page_of_ours(web: Web) -> None:
    answer = requests.post(
        f"{web.url}/accounts/login/", data={"a": "b"}, headers=PAGE, timeout=30
    )
    assert answer.status_code == 403 and "The form is too old" in answer.text
    assert_tells_nothing(web, answer)


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("/nothing", {}, 404, "not_found"),
        ("/wallet/v1/api/nothing/at/all", {}, 404, "not_found"),
        (BROKEN, {}, 500, "internal_error"),
        ("/", {"Host": "elsewhere.example"}, 400, "invalid_request"),
    ],
)
def test_programs_get_a_code_and_a_sentence(
    web: Web, path: str, headers: dict[str, str], status: int, code: str
) -> None:
    answer = web.get(path, **headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert_tells_nothing(web, answer)


def test_a_form_of_a_program_is_refused_as_json(web: Web) -> None:
    answer = requests.post(f"{web.url}/accounts/login/", data={"a": "b"}, timeout=30)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_the_page_of_an_error_names_the_id_of_its_line_in_the_log(web: Web) -> None:
    answer = web.browse(BROKEN)
    request_id = answer.headers["X-Request-Id"]
    assert request_id in answer.text
    [line] = web.lines(f"[{request_id}]")
    assert "ERROR" in line and "Internal Server Error" in line


def test_a_refused_request_is_one_line_with_its_id(web: Web) -> None:
    answer = web.browse("/refused-once")
    [line] = web.lines(f"[{answer.headers['X-Request-Id']}]")
    assert "Not Found" in line


def test_no_line_is_printed_twice(web: Web) -> None:
    """Django's own handler, beside the root logger's, did so."""
    for number in range(3):
        web.browse(f"/printed/{number}")
        web.browse("/", Host=f"printed-{number}.example")
    counted = Counter(message_of(line) for line in web.lines("printed"))
    assert {count for line, count in counted.items() if "Traceback" not in line} == {1}


def message_of(line: str) -> str:
    return re.sub(r"^.*?\] (?=\w)", "", line)


@pytest.mark.parametrize("path", PAGES)
def test_every_static_file_of_a_page_is_served(web: Web, path: str) -> None:
    page = web.browse(path).text
    files = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page))
    assert "/static/agency/mark.svg" in files
    assert {file: web.get(file).status_code for file in files} == dict.fromkeys(
        files, 200
    )


@pytest.mark.parametrize("file", ["admin/css/base.css", "agency/admin.css"])
def test_static_files_of_the_admin_are_served(web: Web, file: str) -> None:
    assert web.get(f"/static/{file}").status_code == 200
    assert web.get(f"/static/{file}.none").status_code == 404


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "agency.localhost", "[::1]"]
)
def test_it_answers_to_the_names_of_this_machine(web: Web, host: str) -> None:
    assert web.get("/", Host=host).status_code == 200


@pytest.mark.parametrize(
    "public_url", ["https://office.example", "http://[fd00::1]:8000"]
)
def test_it_answers_to_the_host_of_a_public_url_that_is_given(public_url: str) -> None:
    host = re.split(r"//|(?<=\]):", public_url)[1]
    with environment_of_make_run(8000, PUBLIC_URL=public_url) as environment:
        assert environment["ALLOWED_HOSTS"].split(",")[-1] == host


def settings_read(environment: dict[str, str]) -> dict[str, Any]:
    names = (
        "DEBUG",
        "OUTGOING_ALLOW_LOOPBACK",
        "WEBHOOK_REQUIRE_HTTPS",
        "FAULT_POINT",
    )
    program = (
        "import json; from agency import settings;"
        f"print(json.dumps({{name: getattr(settings, name) for name in {names}}}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return json.loads(ran.stdout)


def test_nothing_but_pages_for_debugging_depends_on_debug() -> None:
    safe = {
        "OUTGOING_ALLOW_LOOPBACK": False,
        "WEBHOOK_REQUIRE_HTTPS": True,
        "FAULT_POINT": "",
    }
    environment = dict(os.environ) | {"FAULT_POINT": "after_claim"}
    for debug in ("0", "1"):
        read = settings_read(environment | {"DEBUG": debug})
        assert read == safe | {"DEBUG": debug == "1"}


def test_a_variable_that_is_given_wins_over_that_of_make_run() -> None:
    with environment_of_make_run(8000, OUTGOING_ALLOW_LOOPBACK="0") as environment:
        read = settings_read(environment)
    assert read == {
        "DEBUG": False,
        "OUTGOING_ALLOW_LOOPBACK": False,
        "WEBHOOK_REQUIRE_HTTPS": False,
        "FAULT_POINT": "",
    }


def test_the_docs_name_what_make_run_sets() -> None:
    text = (ROOT / "docs" / "settings.md").read_text().split("## Variables")[0]
    for name, value in run.DEVELOPER_SETTINGS.items():
        assert f"`{name}={value}`" in text
