"""No page has a critical or serious finding of axe-core, light or dark.

The pages of the studio, and those before signing in, are in tests/agency/pages.
"""

import pytest

from tests.support.chromium import MARKS, SERIOUS

pytestmark = MARKS
IS_SHOWN = "document.querySelectorAll('.opblock-tag').length > 5"
TRY_IT = """[...document.querySelectorAll(".opblock-tag")]
    .filter((tag) => tag.dataset.tag === "%s").forEach((tag) => tag.click());
setTimeout(() => document.querySelector("#%s .opblock-summary-control").click(), 300);
setTimeout(() => document.querySelector("#%s .try-out__btn").click(), 900);"""


@pytest.fixture
def failures(page, axe):
    """A function that returns what is critical or serious on the page that is open."""

    def run():
        found = []
        for scheme in ("light", "dark"):
            page.prefer(scheme)
            is_dark = "matchMedia('(prefers-color-scheme: dark)').matches"
            assert page.evaluate(is_dark) == (scheme == "dark")
            found += page.findings(rules="rules: {}", impacts=SERIOUS)
        return found

    return run


def test_axe_finds_what_is_wrong(page, failures):
    page.open("/health")
    page.evaluate("document.body.innerHTML = '<img src=\"a.png\"><input>'")
    assert {one.split()[0] for one in failures()} >= {"image-alt", "label"}


@pytest.mark.parametrize(
    ("tag", "operation", "ready"),
    [
        ("Credentials", "Credentials-createCredential", "select, textarea"),
        ("Wallet connections", "Wallet_connections-acceptInvitation", "input"),
        ("Connections", "Connections-listConnections", "select"),
    ],
)
def test_the_page_of_the_api_with_an_operation_that_is_tried(
    page, failures, tag, operation, ready
):
    operation = f"operations-{operation}"
    page.open("/docs", ready=IS_SHOWN)
    page.evaluate(TRY_IT % (tag, operation, operation))
    body = f"document.querySelector('#{operation} .opblock-body :is({ready})')"
    page.wait_for(f"!!{body}")
    page.wait_for(f"!!document.querySelector('#{operation} .btn.execute')")
    assert failures() == []


def test_the_page_of_an_error(page, failures):
    page.open("/nowhere")
    assert failures() == []
