"""No page has a critical or serious finding of axe-core, light or dark.

The pages of the studio are in tests/agency/pages.
"""

import pytest

from tests.support import chromium
from tests.support.paths import ROOT
from tests.support.tools import without

AXE = ROOT / "tests" / "clients" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("critical", "serious")
RUN = """axe.run(document, {resultTypes: ["violations"]}).then((found) =>
  found.violations.map((one) => ({
    rule: one.id,
    impact: one.impact,
    nodes: one.nodes.map((node) => `${node.target.join(" ")}: ${node.failureSummary}`),
  })))"""
IS_SHOWN = "document.querySelectorAll('.opblock-tag').length > 5"
TRY_IT = """[...document.querySelectorAll(".opblock-tag")]
    .filter((tag) => tag.dataset.tag === "%s").forEach((tag) => tag.click());
setTimeout(() => document.querySelector("#%s .opblock-summary-control").click(), 300);
setTimeout(() => document.querySelector("#%s .try-out__btn").click(), 900);"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium"),
]


@pytest.fixture(scope="module")
def axe():
    if not AXE.exists():
        without(f"{AXE} is missing: `make test-clients` installs it.")
    return AXE.read_text()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with chromium.running(tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.fixture(params=["light", "dark"])
def scheme(request, page):
    page.prefer(request.param)
    return request.param


@pytest.fixture
def failures(page, axe, scheme):
    """A function that answers what is critical or serious on the page that is open."""

    def run():
        page.evaluate(axe)
        assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == (
            scheme == "dark"
        )
        return [one for one in page.evaluate(RUN) if one["impact"] in SERIOUS]

    return run


def test_axe_finds_what_is_wrong(page, failures, live_server):
    page.open(f"{live_server}/health")
    page.evaluate("document.body.innerHTML = '<img src=\"a.png\"><input>'")
    assert {one["rule"] for one in failures()} >= {"image-alt", "label"}


TRIED = [
    ("Credentials", "createCredential", "select, textarea"),
    ("Wallet connections", "acceptInvitation", "input"),
    ("Connections", "listConnections", "select"),
]


def test_the_page_of_the_api_and_an_operation_that_is_tried(
    page, failures, live_server
):
    page.open(f"{live_server}/docs", ready=IS_SHOWN)
    assert failures() == []
    for tag, name, ready in TRIED:
        page.open(f"{live_server}/docs", ready=IS_SHOWN)
        operation = f"operations-{tag.replace(' ', '_')}-{name}"
        page.evaluate(TRY_IT % (tag, operation, operation))
        body = f"#{operation} .opblock-body"
        page.wait_for(f"!!document.querySelector('{body} :is({ready})')")
        page.wait_for(f"!!document.querySelector('#{operation} .btn.execute')")
        assert failures() == [], name


def test_the_page_of_an_address_that_is_none(page, failures, live_server):
    page.open(f"{live_server}/nowhere")
    assert failures() == []
