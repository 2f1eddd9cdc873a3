"""Clients that generators make of the served OpenAPI document, and their stories.

The commands are those of docs/api.md, the stories and the settings of the type checkers
lie in generated/.
"""

import re
import shutil
import subprocess
from pathlib import Path

from tests.support.paths import DOCS

HERE = Path(__file__).parent
COMMAND = re.compile(
    r"^    \$ ((?:openapi-python-client|npx openapi-typescript) .+)", re.MULTILINE
)
ADDRESS = "http://127.0.0.1:8000"  # in docs/api.md
CHECKS = (
    "python -m mypy --config-file mypy.ini agency_client story.py",
    "npx tsc --project .",
)
# What is not installed is not fetched.
OFFLINE = {"npm_config_offline": "true", "npm_config_update_notifier": "false"}
SECONDS = 240  # for each command
WARNING = re.compile(r"^WARNING (.+)\n+(.+)", re.MULTILINE)
# What openapi-python-client cannot do.
OF_THE_GENERATOR = {
    ("parsing POST /credentials/bulk within credentials.",
     f"Unsupported content type {media_type}")
    for media_type in ("text/csv", "application/x-ndjson")
}  # fmt: skip


def make_clients(folder: Path, environment: dict[str, str]) -> None:
    """Make both clients in a new folder and check their types with their stories."""
    shutil.copytree(HERE / "generated", folder)
    (folder / "node_modules").symlink_to(HERE / "node_modules")
    commands = COMMAND.findall((DOCS / "api.md").read_text())
    assert len(commands) == 2, "docs/api.md no longer says how to make the two clients"
    url = environment["AGENCY_URL"]
    output = "".join(
        run(one.replace(ADDRESS, url), folder, environment) for one in commands
    )
    assert set(WARNING.findall(output)) == OF_THE_GENERATOR, output
    for check in CHECKS:
        run(check, folder, environment)


def run(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Return what the command printed."""
    ran = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment | OFFLINE,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert not ran.returncode, f"{command}:\n{ran.stdout}"
    return ran.stdout
