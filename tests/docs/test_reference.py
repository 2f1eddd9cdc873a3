"""The tables of settings, errors and checks are complete, without unknown entries."""

import ast
import re
import subprocess
import sys

import pytest

from agency.command_line import processes
from connections.didcomm.reasons import DECLINES
from core.api.exceptions import CODES
from core.api.openapi.error_codes import FILE, read_tables
from tests.docs import settings_table
from tests.docs.test_index import ANCHOR, LINK, headings
from tests.measures.source import read_modules
from tests.support.paths import DOCS
from verifications.policy_lab.lint import RULES
from verifications.policy_lab.trial import REASONS
from verifications.proofs import failures

OF_GRANIAN = {"GRANIAN_HOST"}
RAISED = {
    "Invalid", "NotFound", "Conflict", "Unavailable", "InProgress", "Unprocessable",
    "CallFailed", "failing", "plain_problem", "problem",
}  # fmt: skip
NOT_FOR_CALLERS = {
    "invalid_offer", "invalid_registry", "invalid_status_list", "unknown_index",
    "already_revoked", "timestamp_earlier",
}  # fmt: skip


def codes_raised():
    """Every code that is a literal in the call of an error or error response."""
    found = set(CODES.values()) | {"wrong_state", "malformed_json"}
    for module in read_modules().values():
        for call in module.nodes:
            if isinstance(call, ast.Call) and name_of(call.func) in RAISED:
                found |= {code for code in map(code_in, call.args[:2]) if code}
    return found - NOT_FOR_CALLERS


def name_of(function):
    return getattr(function, "id", getattr(function, "attr", None))


def code_in(argument):
    text = argument.value if isinstance(argument, ast.Constant) else None
    is_code = isinstance(text, str) and re.fullmatch(r"[a-z]+(_[a-z]+)*", text)
    return text if is_code else None


def documented_codes():
    return {code for table in read_tables() for code in table.rows}


def test_every_code_stands_in_the_table_of_errors():
    assert codes_raised() - documented_codes() == set()


def test_the_table_of_errors_names_nothing_that_is_never_raised():
    nodes = [node for one in read_modules().values() for node in one.nodes]
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    text = "\n".join(one for one in constants if isinstance(one, str))
    fields = "invitation", "credentialData", "verificationData"
    unknown = {code for code in documented_codes() if code not in text}
    assert unknown - {f"bad_{field}" for field in fields} == set()


def test_links_of_errors_lead_somewhere():
    text = FILE.read_text()
    assert all((DOCS / target).exists() for target in LINK.findall(text))
    links = ANCHOR.findall(text)
    assert links and all(anchor in headings(DOCS / page) for page, anchor in links)


def test_the_table_of_settings_is_made_from_their_comments():
    assert settings_table.make_page() == settings_table.PAGE.read_text(), (
        "run: make docs-tables"
    )


@pytest.mark.slow
def test_the_settings_of_granian_are_granians_and_the_product_overrules_none_of_them():
    command = [sys.executable, "-m", "granian", "--help"]
    printed = subprocess.check_output(command, text=True)
    web = processes()["web"]
    for name in OF_GRANIAN:
        assert name in printed
        assert f"--{name.removeprefix('GRANIAN_').lower()} " not in web


def test_every_check_stands_with_its_cause():
    page = (DOCS / "verification.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", page, re.MULTILINE)
    assert [code for code, _, _ in rows] == [cause.code for cause in failures.CAUSES]
    [others] = re.findall(r"^The others are ((?:.+\n)+)", page, re.MULTILINE)
    listed = [cell for _, _, cell in rows[:-1]] + [others]
    for (_, message, _), codes, cause in zip(
        rows, listed, failures.CAUSES, strict=True
    ):
        assert message == cause.message
        assert re.findall(r"`(\w+)`", codes) == list(cause.failures), cause.code


def test_every_reason_of_a_decline_stands_in_its_table():
    page = (DOCS / "api.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (The .*) \|$", page, re.MULTILINE)
    assert dict(rows) == DECLINES


def test_every_finding_about_a_policy_and_every_reason_are_listed_in_order():
    page = (DOCS / "policies.md").read_text()
    reasons, findings = map(listed_codes, page.split("\n### ")[1:])
    assert reasons == list(REASONS)
    assert findings == [rule.__name__ for rule in RULES]


def listed_codes(section):
    heads = re.findall(r"^- (`.*?):", section, re.MULTILINE)
    return [code for head in heads for code in re.findall(r"`(\w+)`", head)]
