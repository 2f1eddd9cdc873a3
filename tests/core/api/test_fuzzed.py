"""Fuzz the OpenAPI schema over HTTP: never a 5xx, only documented responses.

FUZZ_SEED and FUZZ_EXAMPLES (random cases for each operation) change a run by hand.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.api.fuzzing import Known, configuration
from tests.support.world import Names, World

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]
SEED = os.environ.get("FUZZ_SEED", "20")
EXAMPLES = os.environ.get("FUZZ_EXAMPLES", "5")
PHASES = os.environ.get("FUZZ_PHASES", "examples,coverage,fuzzing,stateful")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
ENDS_THE_CALLER = r"DELETE (/tenants/\{tenantId\}|/provider/v1/tenants)$"


@pytest.fixture
def address(live_server, monkeypatch):
    """Disable Nagle's algorithm.

    With it, each call of the development server takes 40 ms.
    """
    handler = "django.core.servers.basehttp.WSGIRequestHandler.disable_nagle_algorithm"
    monkeypatch.setattr(handler, True)
    return live_server.url


@pytest.fixture
def three(world):
    """Whose objects are read and changed, whose are deleted, and who is deleted."""
    return map(Known, (world, World(Names("Lost")), World(Names("Ended"))))


def test_everything_is_answered_as_documented(three, address, tmp_path, settings):
    settings.DELETION_UNDO_HOURS = 0  # who is deleted is unknown, not about to be
    kept, lost, ended = three
    config = configuration(
        (kept, lost, "(?!DELETE)[A-Z]+"),
        (lost, kept, f"(?!{ENDS_THE_CALLER})DELETE"),
        (ended, kept, f"(?={ENDS_THE_CALLER})DELETE"),
    )
    (tmp_path / "config.toml").write_text(config)
    ran = schemathesis(address, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def schemathesis(address, folder):
    command = [sys.executable, "-m", "schemathesis.cli", "--no-color"]
    command += [
        "--config-file",
        str(folder / "config.toml"),
        "run",
        f"{address}/openapi.json",
        "--url",
        address,
    ]
    command += ["--checks", ",".join(CHECKS), "--phases", PHASES]
    command += ["--seed", SEED, "--max-examples", EXAMPLES, "--continue-on-failure"]
    command += ["--generation-with-security-parameters", "false"]
    command += ["--generation-database", "none"]
    hooks = {"SCHEMATHESIS_HOOKS": str(Path(__file__).with_name("fuzz_hooks.py"))}
    return subprocess.run(
        command, cwd=folder, env=os.environ | hooks, capture_output=True, text=True
    )
