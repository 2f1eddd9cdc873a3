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


def test_the_page_of_the_api(page, failures, live_server):
    page.open(f"{live_server}/docs", ready=IS_SHOWN)
    assert failures() == []


@pytest.mark.parametrize(
    ("tag", "operation", "ready"),
    [
        ("Credentials", "operations-Credentials-createCredential", "select, textarea"),
        (
            "Wallet connections",
            "operations-Wallet_connections-acceptInvitation",
            "input",
        ),
        ("Connections", "operations-Connections-listConnections", "select"),
    ],
)
def test_an_operation_that_is_tried(
    page,
    failures,
    live_server,
    tag,
    operation,
    ready,
):
    page.open(f"{live_server}/docs", ready=IS_SHOWN)
    page.evaluate(TRY_IT % (tag, operation, operation))
    page.wait_for(
        f"!!document.querySelector('#{operation} .opblock-body :is({ready})')"
    )
    page.wait_for(f"!!document.querySelector('#{operation} .btn.execute')")
    assert failures() == []


def test_the_pages_before_signing_in_and_of_a_short_link(
    page, failures, live_server, faber, settings
):
    settings.PUBLIC_URL = live_server.url
    invited = faber.get(f"/connections/{faber.invites()['connectionId']}")
    values = {"Full Name": "Alice", "level": "7"}
    definition = faber.defines(*values)["definitionId"]
    offer = faber.post(
        "/credentials", {"definitionId": definition, "credentialValues": values}
    )
    nowhere = "/nowhere"
    found = {}
    for address in (
        "/",
        "/accounts/login/",
        "/accounts/signup/",
        nowhere,
        invited["invitationUrl"].removeprefix(live_server.url),
        offer["offerUrl"].removeprefix(live_server.url),
    ):
        page.open(live_server.url + address)
        found[address] = failures()
    assert {path: one for path, one in found.items() if one} == {}
