"""The tables of settings, errors and checks are complete, without unknown entries."""

import ast
import re
import subprocess
import sys

import pytest

from agency.api.exceptions import CODES
from tests.support.paths import ROOT
from verifications.policy_lab.lint import RULES
from verifications.policy_lab.trial import REASONS
from verifications.proofs import failures

APPS = (
    "agency",
    "tenants",
    "wallets",
    "webhooks",
    "connections",
    "credentials",
    "verifications",
    "sandbox",
    "organizations",
)
OF_GRANIAN = {"GRANIAN_HOST"}
RAISED = {
    "Invalid",
    "NotFound",
    "Conflict",
    "Unavailable",
    "InProgress",
    "Unprocessable",
    "CallFailed",
    "failing",
    "plain_problem",
    "problem",
}
NOT_FOR_CALLERS = {
    "invalid_registry",
    "invalid_status_list",
    "unknown_index",
    "already_revoked",
    "timestamp_earlier",
}


def sources():
    for app in APPS:
        for path in (ROOT / app).rglob("*.py"):
            if "migrations" not in path.relative_to(ROOT).parts:
                yield ast.parse(path.read_text())


def codes_raised():
    """Every code that is a literal in the call of an error or error response."""
    found = set(CODES.values()) | {"wrong_state", "malformed_json"}
    for tree in sources():
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and name_of(call.func) in RAISED:
                found |= {code for code in map(code_in, call.args[:2]) if code}
    return found - NOT_FOR_CALLERS


def name_of(function):
    return getattr(function, "id", getattr(function, "attr", None))


def code_in(argument):
    is_text = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    return (
        argument.value
        if is_text and re.fullmatch(r"[a-z]+(_[a-z]+)*", argument.value)
        else None
    )


def table(name):
    """The first column of every table row in a page of docs/."""
    return set(
        re.findall(r"^\| `([\w-]+)`", (ROOT / "docs" / name).read_text(), re.MULTILINE)
    )


def test_every_code_stands_in_the_table_of_errors():
    assert codes_raised() - table("errors.md") == set()


def test_the_table_of_errors_names_nothing_that_is_never_raised():
    text = "".join(ast.unparse(tree) for tree in sources())
    assert {code for code in table("errors.md") if code not in text} - {
        f"bad_{field}"
        for field in ("invitation", "credentialData", "verificationData")
    } == set()


def test_every_setting_stands_in_the_table_of_settings():
    tree = (ROOT / "agency" / "settings.py").read_text()
    named = set(re.findall(r'\benv\.\w+\(\s*"([A-Z_]+)"', tree))
    assert table("settings.md") >= named
    assert {
        name for name in table("settings.md") if name.isupper()
    } == named | OF_GRANIAN


@pytest.mark.slow
def test_the_settings_of_granian_are_granians_and_no_line_of_the_procfile_overrules_them():
    command = [sys.executable, "-m", "granian", "--help"]
    printed = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    [web] = re.findall(r"^web: .*$", (ROOT / "Procfile").read_text(), re.MULTILINE)
    for name in OF_GRANIAN:
        assert name in printed
        assert f"--{name.removeprefix('GRANIAN_').lower()} " not in web


def test_every_check_stands_in_the_table_of_checks():
    [codes, _, _] = tables("verification.md")
    assert codes == list(failures.FAILURES)


def test_every_finding_about_a_policy_and_every_reason_stand_in_their_tables_in_order():
    [_, reasons, findings] = tables("verification.md")
    assert reasons == list(REASONS)
    assert findings == [rule.__name__ for rule in RULES]


def tables(name):
    """The first columns of the tables of codes in a page, one by one."""
    parts = (ROOT / "docs" / name).read_text().split("| code |")[1:]
    return [re.findall(r"^\| `([\w-]+)`", part, re.MULTILINE) for part in parts]
