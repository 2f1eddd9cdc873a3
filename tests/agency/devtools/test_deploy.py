"""The files in deploy/ for hosts without containers match docker-compose.yml."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agency.devtools.supervisor import read_procfile
from tests.agency.devtools.test_commands import COMPOSE
from tests.docs.settings_table import read_names
from tests.production.proxy import CONFIGURATION, Proxy
from tests.support.http_endpoints import certificate
from tests.support.paths import ROOT
from webhooks.api.events import STREAM

UNIT = (ROOT / "deploy" / "agency@.service").read_text()
PAGE = (ROOT / "docs" / "without-containers.md").read_text()


@pytest.mark.needs("nginx")
def test_nginx_takes_the_configuration_without_a_warning(tmp_path: Path) -> None:
    certificate(tmp_path, "localhost")
    tested = Proxy(tmp_path / "nginx", tmp_path, 8000, 8001).test()
    assert tested.returncode == 0, tested.stderr
    assert "[warn]" not in tested.stderr


def test_the_proxy_of_compose_has_this_configuration_and_reaches_both_servers() -> None:
    proxy = COMPOSE["services"]["proxy"]
    [source, target, _] = proxy["volumes"][0].split(":")
    assert (ROOT / source).resolve() == CONFIGURATION
    assert target == "/etc/nginx/conf.d/default.conf"
    names = re.findall(
        r"^ +server (\w+):(\d+);", CONFIGURATION.read_text(), re.MULTILINE
    )
    assert names == [("web", "8000"), ("stream", "8001")]
    assert set(proxy["depends_on"]) == {"web", "stream"}


def test_the_stream_has_its_path_below_every_prefix_and_no_buffer() -> None:
    [pattern, body] = re.findall(
        r"location ~ (\S+) \{(.*?)\}", CONFIGURATION.read_text(), re.DOTALL
    )[0]
    for prefix in ("", "/agency/v1", "/credentials/v1"):
        assert re.fullmatch(pattern, f"{prefix}/{STREAM}")
    assert "proxy_buffering    off;" in body


def test_the_page_makes_the_configuration_one_for_this_host() -> None:
    [expression] = re.findall(r"sed '(s/server [^']+)' deploy/nginx.conf", PAGE)
    made = subprocess.run(
        ["sed", expression, CONFIGURATION], capture_output=True, text=True, check=True
    ).stdout
    assert "server 127.0.0.1:8000;" in made and "server 127.0.0.1:8001;" in made


def test_commands_run_as_the_user_of_the_services() -> None:
    """systemd changes the owner of a StateDirectory to the user of the command."""
    [user] = re.findall(r"^User=(\w+)$", UNIT, re.MULTILINE)
    [command] = re.findall(r"systemd-run (.*?)manage\.py", PAGE, re.DOTALL)
    assert "StateDirectory=agency" in command and f"--uid={user} " in command


@pytest.mark.parametrize(
    "name", [name for name in read_procfile() if name != "migrate"]
)
def test_the_unit_runs_the_line_of_the_procfile(name: str) -> None:
    [line] = re.findall(
        r"^ExecStart=/opt/agency/current/.venv/bin/(.+)$", UNIT, re.MULTILINE
    )
    assert line.replace("%i", name) == read_procfile()[name]


@pytest.mark.needs("systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = UNIT.replace("/opt/agency/current/.venv/bin/python", sys.executable)
    (tmp_path / "agency@web.service").write_text(unit)
    command = [
        "systemd-analyze",
        "verify",
        "--man=no",
        str(tmp_path / "agency@web.service"),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert "agency@" not in ran.stderr, ran.stderr


@pytest.mark.needs("systemd-analyze")
def test_systemd_finds_the_unit_well_locked_up(tmp_path: Path) -> None:
    unit = tmp_path / "agency@web.service"
    unit.write_text(UNIT)
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=20"]
    ran = subprocess.run(
        [*command, str(unit)], capture_output=True, text=True, env=os.environ
    )
    assert ran.returncode == 0, ran.stdout


def test_the_page_enables_every_line_of_the_procfile() -> None:
    [names] = re.findall(r"systemctl enable --now agency@\{([\w,]+)\}", PAGE)
    assert names.split(",") == [name for name in read_procfile() if name != "migrate"]


def test_the_page_names_settings_that_there_are() -> None:
    known = set(read_names((ROOT / "docs" / "settings.md").read_text()))
    named = set(re.findall(r"^    ([A-Z_]+)=", PAGE, re.MULTILINE))
    assert (
        {"SECRET_KEY", "AGENCY_MASTER_KEY", "DATABASE_URL", "ALLOWED_HOSTS"}
        <= named
        <= known
    )


def test_image_and_containers_have_an_init_and_a_health_check() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert "--no-install-recommends tini" in dockerfile
    assert 'ENTRYPOINT ["tini", "--"]' in dockerfile
    [check] = re.findall(
        r"^HEALTHCHECK (?:.*\\\n)*.*CMD (\[.+\])$", dockerfile, re.MULTILINE
    )
    assert check == '["python", "-m", "agency.ops.healthcheck"]'
    for name in read_procfile():
        service = COMPOSE["services"][name]
        assert "entrypoint" not in service and "init" not in service
        assert service["healthcheck"].get("disable", name == "migrate") is (
            name == "migrate"
        )
