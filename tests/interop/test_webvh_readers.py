"""Every log that is written here is taken by other readers of did:webvh."""

import fcntl
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from credentials.ledgers.webvh import served_logs
from tests.credentials.ledgers.webvh.test_own_did import pass_time, rotate
from tests.interop.peers.acapy import CACHE
from tests.interop.peers.credo import CURRENT, home
from tests.support import webvh
from tests.support.own_webvh import on_webvh, row_of
from tests.support.pictures import storage

__all__ = ["storage"]  # the fixture: files of each test in a folder of their own
JUDGES = Path(__file__).parent / "peers" / "webvh_readers"
PYTHON_READER = "did-webvh==1.0.1"
# What the other readers take of our vectors although it is wrong.
HOLES = {
    "didwebvh-ts": {
        "after-deactivation", "proof-empty", "proof-empty-first", "parameter-unknown",
        "member-unknown", "member-twice", "next-hashes-omitted",
    },
    "did-webvh": {
        "member-twice", "next-hashes-omitted", "after-deactivation", "time-in-future",
        "purpose-authentication",
    },
}  # fmt: skip


def run_judge(reader, logs, folder):
    """What a reader says of each log: {name: "valid", "deactivated" or why not}."""
    try:
        command = COMMANDS[reader]()
    except LookupError as error:
        pytest.skip(str(error))
    path = folder / "logs.json"
    path.write_text(json.dumps(logs))
    done = subprocess.run(
        [*command, str(path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def of_node():
    folder = home(CURRENT)
    return ["node", shutil.copy(JUDGES / "judge.mjs", folder)]


def of_python():
    folder = CACHE / "did-webvh"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "did-webvh.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".done").exists():
            pip = [str(folder / "bin" / "pip"), "-qq", "--disable-pip-version-check"]
            for command in (
                [sys.executable, "-m", "venv", "--clear", str(folder)],
                [*pip, "install", PYTHON_READER],
            ):
                done = subprocess.run(command, capture_output=True, timeout=300)
                if done.returncode:
                    raise LookupError(f"{PYTHON_READER} was not installed.")
            (folder / ".done").touch()
    return [str(folder / "bin" / "python"), str(JUDGES / "judge.py")]


COMMANDS = {"didwebvh-ts": of_node, "did-webvh": of_python}


@pytest.fixture
def log_of(settings, storage, transactional_db, stored_keys):
    """A function: the log of an organization after these steps of its DID."""
    served_logs.remember.cache_clear()

    def make(name, *steps):
        organization = on_webvh(settings, name)
        for step in steps:
            step(organization)
        return row_of(organization).log

    return make


def freezes(organization):
    organization.post("/tenants/webvhDid/end", {})


def deactivates(organization):
    organization.post("/tenants/webvhDid/end", {"deactivate": True})


def loses_its_key(organization):
    organization.post("/tenants/webvhDid/rotation", {"compromised": True})


def goes_on(organization):
    pass_time()


@pytest.mark.parametrize("reader", COMMANDS)
def test_other_readers_take_every_log(reader, log_of, tmp_path):
    logs = {
        "new": log_of("One"),
        "rotating": log_of("Two", rotate),
        "rotated": log_of("Three", rotate, goes_on, goes_on),
        "rotated twice": log_of("Four", *2 * [rotate, goes_on, goes_on]),
        "compromised": log_of("Seven", loses_its_key),
        "frozen": log_of("Five", rotate, goes_on, goes_on, freezes),
        "deactivated": log_of("Six", deactivates),
    }
    verdicts = run_judge(reader, logs, tmp_path)
    assert verdicts.pop("deactivated") == "deactivated"
    assert set(verdicts.values()) == {"valid"}, verdicts


@pytest.mark.parametrize("reader", COMMANDS)
def test_they_refuse_what_is_refused_here_but_for_known_holes(reader, tmp_path):
    cases = webvh.vectors()["logs"]
    logs = {case["name"]: case["text"] for case in cases}
    verdicts = run_judge(reader, logs, tmp_path)
    taken = {
        name for name, says in verdicts.items() if says in ("valid", "deactivated")
    }
    refused = {case["name"] for case in cases if case["verdict"] == "refused"}
    assert logs.keys() - refused <= taken, verdicts
    assert taken & refused <= HOLES[reader]
