"""The lists of an organization's objects: search, filter, order, pages, errors."""

import re
from urllib.parse import quote

import pytest

from agency.studio import lists
from agency.studio.objects import page_of
from connections.models import Connection
from tests.support.people import Api, Holder
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
KINDS = ["wallets", "connections", "credentials", "verifications"]
CELL = re.compile(
    r'data-label="(?:Holder|Name|Credential|Verification)">(.*?)</td>', re.S
)
POLICY = {"version": "1.0", "attributes": [{"policyName": "name"}]}


@pytest.fixture
def api(college):
    return Api(college.access_token, college.subscription_key)


def shown(response):
    """What the rows of a list are called."""
    assert response.status_code == 200, response.content
    cells = CELL.findall(response.content.decode())
    return [re.sub(r"<[^>]+>", "", cell).strip() for cell in cells]


def leads_to(response, label):
    """The address of a link with this text."""
    page = response.content.decode()
    [query] = re.findall(rf'href="(\?[^"]*)">{label}<', page)
    return response.request["PATH_INFO"] + query.replace("&amp;", "&")


def hosts(api, *names):
    for name in names:
        api.post("/api/wallets", {"ownerName": name})


@pytest.mark.parametrize("name", KINDS)
def test_an_empty_list_has_one_button_and_one_command(browser, url, name):
    page = browser.get(f"{url}/{name}").content.decode()
    assert "yet</h2>" in page
    empty = page.partition('<div class="empty">')[2]
    assert empty.count('<a class="button"') == 1
    assert empty.count("curl &quot;http") == 1


def test_what_the_command_of_an_empty_list_does_is_accepted(browser, url, api):
    for name, kind in (("wallets", lists.WALLETS), ("connections", lists.CONNECTIONS)):
        api.post(*kind.create)
        assert shown(browser.get(f"{url}/{name}")) == ["Alice"]
    assert api.post(*lists.VERIFICATIONS.create)["state"] == "Requested"


def test_the_newest_come_first_or_those_that_are_asked_for(browser, url, api):
    hosts(api, "Bob", "alice", "Carol")
    assert shown(browser.get(f"{url}/wallets")) == ["Carol", "alice", "Bob"]
    by_name = browser.get(f"{url}/wallets?sort=name")
    assert shown(by_name) == ["alice", "Bob", "Carol"]


def test_pages_lead_there_and_back(browser, url, college):
    rows = [
        Wallet(
            tenant=college.tenant,
            wallet_id=f"w{n}",
            owner_name=f"{n}",
            link_secret=b"",
        )
        for n in range(2 * lists.PAGE_SIZE + 1)
    ]
    Wallet.objects.bulk_create(rows)
    newest_first = [row.owner_name for row in reversed(rows)]
    first = browser.get(f"{url}/wallets?q=&sort=-createdAt")
    second = browser.get(leads_to(first, "Next page"))
    third = browser.get(leads_to(second, "Next page"))
    assert [*shown(first), *shown(second), *shown(third)] == newest_first
    assert b"Next page" not in third.content and b"Previous page" not in first.content
    back = browser.get(leads_to(third, "Previous page"))
    assert shown(back) == shown(second)
    start = browser.get(leads_to(back, "Previous page"))
    assert shown(start) == shown(first)
    assert b"Previous page" not in start.content and b"Next page" in start.content


def test_a_filter_by_state_keeps_only_those(browser, url, api):
    api.post("/connections", {"name": "Open"})
    assert shown(browser.get(f"{url}/connections?state=Invited")) == ["Open"]
    response = browser.get(f"{url}/connections?state=Connected")
    assert shown(response) == []
    assert b"No connection matches" in response.content


@pytest.mark.parametrize("text", ["ali", "ALICE", "room 2", "{pk}", "{start}"])
def test_a_connection_is_found_by_its_name_and_its_id(browser, url, api, text):
    for name in ("Bob", "Alice"):
        api.post("/connections", {"name": name, "connectionId": f"room of {name}"})
    alice = Connection.objects.get(name="Alice")
    Connection.objects.filter(pk=alice.pk).update(connection_id="room 2")
    # The rows are created within a moment, and so their ids begin alike.
    start = str(alice.pk)[:30]
    text = text.format(pk=alice.pk, start=start)
    assert shown(browser.get(f"{url}/connections?q={quote(text)}")) == ["Alice"]


@pytest.mark.parametrize("text", ["lice", "room", "0", "zz", "%", "_"])
def test_what_does_not_begin_so_is_not_found(browser, url, api, text):
    api.post("/connections", {"name": "Alice", "connectionId": "room 2"})
    assert shown(browser.get(f"{url}/connections?q={quote(text)}")) == []


@pytest.fixture
def exchanges(api, stored_keys):
    """Alice is offered a degree, and her degree and name are asked for."""
    wallet = api.post("/api/wallets", {"ownerName": "Alice"})
    alice = Holder(api, wallet["walletId"])
    invited = api.post("/connections", {"name": "Alice at Faber"})
    alice.accepts_invitation(invited["invitation"])
    degree = {"name": "Degree", "version": "1.0", "attributes": ["name", "year"]}
    definition = api.post("/definitions/credentials", degree)["definitionId"]
    stored = api.post("/verificationPolicies", POLICY | {"name": "Stored"})["policyId"]
    to = f"/connections/{invited['connectionId']}"
    return {
        "connection": invited["connectionId"],
        "definition": definition,
        "credential": api.post(
            "/credentials",
            {"definitionId": definition, "connectionId": invited["connectionId"]},
        )["credentialId"],
        "policy": stored,
        "verification": api.put(f"/verifications/policy/{stored}{to}")[
            "verificationId"
        ],
        "other": api.post(f"/verifications/policy{to}", POLICY | {"name": "Other"}),
    }


def test_credentials_are_called_by_their_schema(browser, url, exchanges):
    page = browser.get(f"{url}/credentials")
    assert shown(page) == ["Degree"]
    assert "Alice at Faber" in page.content.decode()


def test_verifications_are_called_by_their_policy(browser, url, exchanges):
    assert shown(browser.get(f"{url}/verifications")) == ["Other", "Stored"]


@pytest.mark.parametrize("key", ["credential", "definition", "connection"])
def test_a_credential_is_found_by_what_it_belongs_to(browser, url, exchanges, key):
    found = browser.get(f"{url}/credentials?q={quote(exchanges[key])}")
    assert shown(found) == ["Degree"]
    assert shown(browser.get(f"{url}/credentials?q=alice")) == ["Degree"]
    assert shown(browser.get(f"{url}/credentials?q=degr")) == ["Degree"]
    assert shown(browser.get(f"{url}/credentials?q=bob")) == []


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("verification", ["Stored"]),
        ("policy", ["Stored"]),
        ("connection", ["Other", "Stored"]),
    ],
)
def test_a_verification_is_found_by_what_it_belongs_to(
    browser, url, exchanges, key, names
):
    found = browser.get(f"{url}/verifications?q={quote(exchanges[key])}")
    assert shown(found) == names
    assert shown(browser.get(f"{url}/verifications?q=stor")) == ["Stored"]


def test_a_policy_leads_to_its_verifications(browser, url, exchanges):
    page = browser.get(f"{url}/policies/{exchanges['policy']}").content.decode()
    [link] = re.findall(rf'href="({url}/verifications\?q=[^"]+)"', page)
    assert shown(browser.get(link)) == ["Stored"]


def test_one_search_finds_every_kind(browser, url, api, exchanges):
    api.post("/webhooks", {"url": "https://alice.example/hook"})
    page = browser.get(f"{url}/search?q=alice").content.decode()
    for title in (
        "Connections",
        "Credentials",
        "Verifications",
        "Wallets",
        "Webhooks",
    ):
        assert f">{title}</h2>" in page
    page = browser.get(f"{url}/search?q=degree").content.decode()
    assert ">Definitions</h2>" in page and ">Credentials</h2>" in page
    page = browser.get(f"{url}/search?q=stored").content.decode()
    assert ">Policies</h2>" in page and ">Verifications</h2>" in page
    nothing = browser.get(f"{url}/search?q=bob").content.decode()
    assert "Nothing begins with" in nothing and "</h2>" not in nothing


def test_a_search_with_many_results_leads_to_the_list(browser, url, api):
    hosts(api, *(f"Alice {number}" for number in range(6)))
    page = browser.get(f"{url}/search?q=alice").content.decode()
    assert page.count("<td ") == 5 * 3
    assert f'href="{url}/wallets?q=alice"' in page


def test_a_search_without_a_text_says_what_can_be_found(browser, url):
    for query in ("", "?q=", f"?q={'x' * 201}"):
        page = browser.get(f"{url}/search{query}").content.decode()
        assert "Type the beginning" in page


@pytest.mark.parametrize("name", [*KINDS, "search"])
def test_objects_of_others_are_not_found(stranger, browser, url, api, name):
    assert stranger.get(f"{url}/{name}").status_code == 404
    api.post("/connections", {"name": "Alice"}), hosts(api, "Alice")
    stranger.send("/studio/organizations/new", name="Acme", network_id="local")
    own = Wallet.objects.get(is_organization=True, tenant__name="Acme").tenant_id
    page = stranger.get(f"/studio/organizations/{own}/{name}?q=Alice")
    assert page.status_code == 200 and shown(page) == []


def test_what_belongs_to_a_holder_is_not_in_the_list(browser, url, exchanges):
    """Alice's wallet has a connection, an offer and two requests of its own."""
    assert Connection.objects.count() == 2
    assert len(shown(browser.get(f"{url}/connections"))) == 1
    assert len(shown(browser.get(f"{url}/credentials"))) == 1
    assert len(shown(browser.get(f"{url}/verifications"))) == 2


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("sort=size", "invalid_request"),
        ("state=Lost", "invalid_request"),
        ("after=x", "invalid_cursor"),
        ("before=x", "invalid_cursor"),
        ("after=" + "x" * 2001, "invalid_request"),
    ],
)
def test_an_error_has_code_sentence_docs_and_request_id(browser, url, query, code):
    response = browser.get(
        f"{url}/connections?{query}", headers={"X-Request-Id": "request-of-fay"}
    )
    page = response.content.decode()
    assert response.status_code == 400
    assert f'<a href="/docs/errors#{code}"><code>{code}</code></a>' in page
    assert "request-of-fay" in page and page.count("<h1>") == 1
    assert f'id="{code}"' in browser.get("/docs/errors").content.decode()


def test_htmx_gets_the_rows_alone(browser, url, api):
    hosts(api, "Alice")
    response = browser.get(f"{url}/wallets", headers={"HX-Request": "true"})
    assert shown(response) == ["Alice"]
    assert b"<html" not in response.content
    assert "HX-Request" in response["Vary"]


def test_the_page_of_a_wallet_has_what_is_in_it_and_no_values(
    browser, stranger, url, exchanges
):
    page = browser.get(f"{url}/wallets").content.decode()
    [address] = re.findall(rf'href="({url}/wallets/[\da-f-]{{36}})"', page)
    found = browser.get(address)
    assert shown(found) == ["Alice at Faber", "Degree", "Other", "Stored"]
    [connection] = re.findall(rf"{url}/connections/[\w-]+", found.content.decode())[:1]
    assert browser.get(connection).status_code == 200
    assert stranger.get(address).status_code == 404
    own = Wallet.objects.get(is_organization=True)
    assert browser.get(f"{url}/wallets/{own.pk}").status_code == 404


def test_the_connection_of_a_link_has_no_page_of_its_own(db):
    assert page_of(Connection(connectionless=True)) == ""


OF_WALLETS = {
    "connections": ["Alice at Faber"],
    "credentials": ["Degree"],
    "verifications": ["Other", "Stored"],
}


@pytest.fixture
def hosted(url, exchanges):
    """The address of Alice's wallet."""
    return f"{url}/wallets/{Wallet.objects.get(owner_name='Alice').pk}"


@pytest.mark.parametrize("name", OF_WALLETS)
def test_a_hosted_wallet_has_lists_of_its_own(browser, stranger, hosted, name):
    page = browser.get(f"{hosted}/{name}")
    assert shown(page) == OF_WALLETS[name]
    assert f"<h1>{name.capitalize()} of <bdi>Alice</bdi></h1>" in page.content.decode()
    assert f'href="{hosted}/{name}"' in browser.get(hosted).content.decode()
    assert shown(browser.get(f"{hosted}/{name}?q=nobody")) == []
    assert stranger.get(f"{hosted}/{name}").status_code == 404


def test_the_lists_of_a_wallet_are_filtered(browser, hosted):
    assert shown(browser.get(f"{hosted}/connections?q=alice")) == ["Alice at Faber"]
    assert shown(browser.get(f"{hosted}/connections?state=Invited")) == []
    offered = browser.get(f"{hosted}/credentials?state=Offered&q=alice")
    assert shown(offered) == ["Degree"]


def test_the_lists_of_the_own_wallet_have_one_address(browser, url, exchanges):
    own = Wallet.objects.get(is_organization=True)
    assert browser.get(f"{url}/wallets/{own.pk}/connections").status_code == 404


def test_an_empty_list_of_a_wallet_says_how_it_begins(browser, url, api):
    made = api.post("/api/wallets", {"ownerName": "Bob"})
    bob = Wallet.objects.get(wallet_id=made["walletId"])
    page = browser.get(f"{url}/wallets/{bob.pk}/credentials").content.decode()
    assert "No credential yet" in page
    path, body = lists.first_call(lists.CREDENTIALS, bob)
    assert f"{path}&quot;" in page
    link = api.post("/connections", {})["invitationUrl"]
    met = api.post(path, dict.fromkeys(body, link))
    assert met["state"] == "Connected"
