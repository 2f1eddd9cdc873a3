"""The lists of an organization's objects: search, filter, order, pages, errors."""

import re
from urllib.parse import quote

import pytest
from django.utils.html import escape

from agency.studio import lists
from agency.studio.objects import page_of
from connections.models import Connection
from tests.agency.studio.conftest import read
from tests.support.steps import step
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
KINDS = ["wallets", "connections", "credentials", "verifications"]
CELL = re.compile(
    r'data-label="(?:Holder|Name|Credential|Verification)">(.*?)</td>', re.S
)
POLICY = {"version": "1.0", "attributes": [{"policyName": "name"}]}


def shown(response):
    """What the rows of a list are called."""
    assert response.status_code == 200, response.content
    cells = CELL.findall(response.text)
    return [re.sub(r"<[^>]+>", "", cell).strip() for cell in cells]


def leads_to(response, label):
    """The address of a link with this text."""
    page = response.text
    [query] = re.findall(rf'href="(\?[^"]*)">{label}<', page)
    return response.request["PATH_INFO"] + query.replace("&amp;", "&")


def test_an_empty_list_has_one_button_and_one_command_that_works(browser, url, api):
    for name in KINDS:
        page = read(browser, f"{url}/{name}")
        assert "yet</h2>" in page
        empty = page.partition('<div class="empty">')[2]
        assert empty.count('<a class="button"') == 1
        assert empty.count("curl &quot;http") == 1
    for name, kind in (("wallets", lists.WALLETS), ("connections", lists.CONNECTIONS)):
        api.post(*kind.create)
        assert shown(browser.get(f"{url}/{name}")) == ["Alice"]
    assert api.post(*lists.VERIFICATIONS.create)["state"] == "Requested"


def test_the_newest_come_first_or_those_that_are_asked_for(browser, url, api):
    for name in ("Bob", "alice", "Carol"):
        api.hosts(name)
    assert shown(browser.get(f"{url}/wallets")) == ["Carol", "alice", "Bob"]
    by_name = browser.get(f"{url}/wallets?sort=name")
    assert shown(by_name) == ["alice", "Bob", "Carol"]


def test_pages_lead_there_and_back(browser, url, college):
    fields = {"tenant": college.tenant, "link_secret": b""}
    numbers = range(2 * lists.PAGE_SIZE + 1)
    rows = [Wallet(wallet_id=f"w{n}", owner_name=f"{n}", **fields) for n in numbers]
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
    api.invites(name="Open")
    page = browser.get(f"{url}/connections?state=Invited")
    assert shown(page) == ["Open"]
    # In plain words, which are no values of the API.
    assert '<option value="Invited" selected>Not accepted yet</option>' in page.text
    assert '<span class="badge soon">Not accepted yet</span>' in page.text
    response = browser.get(f"{url}/connections?state=Connected")
    assert shown(response) == []
    assert b"No connection matches" in response.content
    part = browser.get(f"{url}/connections", headers={"HX-Request": "true"})
    assert shown(part) == ["Open"] and b"<html" not in part.content
    assert "HX-Request" in part["Vary"]


def test_a_connection_is_found_by_its_name_and_its_id(browser, url, api):
    for name in ("Bob", "Alice"):
        api.invites(name=name, connectionId=f"room of {name}")
    alice = Connection.objects.get(name="Alice")
    Connection.objects.filter(pk=alice.pk).update(connection_id="way 2")
    # The rows are created within a moment, and so their ids begin alike.
    for text in ("ali", "ALICE", "way 2", str(alice.pk), str(alice.pk)[:30]):
        found = browser.get(f"{url}/connections?q={quote(text)}")
        assert shown(found) == ["Alice"], text
    for text in ("lice", "way 3", "2", "zz", "%", "_"):
        assert shown(browser.get(f"{url}/connections?q={quote(text)}")) == [], text


@step
def exchanges(faber):
    """Alice is offered a degree, and her degree and name are asked for."""
    alice, degree = faber.hosts(), faber.defines("name", "year", name="Degree")
    invited = faber.invites(name="Alice at Faber")
    alice.accepts_invitation(invited["invitation"])
    to = invited["connectionId"]
    alice.known[faber] = (to, "")
    policy = POLICY | {"name": "Stored"}
    stored = faber.post("/verificationPolicies", policy)["policyId"]
    asked = faber.put(f"/verifications/policy/{stored}/connections/{to}")
    faber.asks(alice, **POLICY | {"name": "Other"})
    return {
        "connection": to, "definition": degree["definitionId"],
        "credential": faber.offers(alice, degree)["credentialId"], "policy": stored,
        "verification": asked["verificationId"],
    }  # fmt: skip


def test_a_credential_is_found_by_what_it_belongs_to(browser, url, exchanges):
    page = browser.get(f"{url}/credentials")
    assert shown(page) == ["Degree"]
    assert "Alice at Faber" in page.text
    ids = [exchanges[key] for key in ("credential", "definition", "connection")]
    for text in (*ids, "alice", "degr"):
        found = browser.get(f"{url}/credentials?q={quote(text)}")
        assert shown(found) == ["Degree"], text
    assert shown(browser.get(f"{url}/credentials?q=bob")) == []


def test_a_verification_is_found_by_what_it_belongs_to(browser, url, exchanges):
    page = read(browser, f"{url}/policies/{exchanges['policy']}")
    [link] = re.findall(rf'href="{url}/verifications\?q=([^"]+)"', page)
    for text, names in {
        "": ["Other", "Stored"],
        exchanges["connection"]: ["Other", "Stored"],
        exchanges["verification"]: ["Stored"],
        exchanges["policy"]: ["Stored"],
        link: ["Stored"],
        "stor": ["Stored"],
    }.items():
        assert shown(browser.get(f"{url}/verifications?q={text}")) == names, text


def test_one_search_finds_every_kind(browser, url, api, exchanges):
    api.post("/webhooks", {"url": "https://alice.example/hook"})
    for text, titles in {
        "alice": "Connections Credentials Verifications Wallets Webhooks",
        "degree": "Definitions Credentials",
        "stored": "Policies Verifications",
    }.items():
        page = read(browser, f"{url}/search?q={text}")
        for title in titles.split():
            assert f">{title}</h2>" in page
    nothing = read(browser, f"{url}/search?q=bob")
    assert "Nothing begins with" in nothing and "</h2>" not in nothing


def test_a_search_with_many_results_leads_to_the_list(browser, url, api):
    for number in range(6):
        api.hosts(f"Alice {number}")
    page = read(browser, f"{url}/search?q=alice")
    assert page.count("<td ") == 5 * 3
    assert f'href="{url}/wallets?q=alice"' in page
    # Without a text it says what can be found.
    for query in ("", "?q=", f"?q={'x' * 201}"):
        page = read(browser, f"{url}/search{query}")
        assert "Type the beginning" in page


def test_objects_of_others_are_not_found(stranger, api):
    api.invites(name="Alice"), api.hosts()
    stranger.send("/studio/organizations/new", name="Acme", network_id="local")
    own = Wallet.objects.get(is_organization=True, tenant__name="Acme").tenant_id
    for name in (*KINDS, "search"):
        page = stranger.get(f"/studio/organizations/{own}/{name}?q=Alice")
        assert shown(page) == [], name


WRONG = {
    "sort=size": "invalid_request", "state=Lost": "invalid_request",
    "after=x": "invalid_cursor", "before=x": "invalid_cursor",
    "after=" + "x" * 2001: "invalid_request",
}  # fmt: skip


def test_an_error_has_code_sentence_docs_and_request_id(browser, url):
    docs = read(browser, "/docs/errors")
    for query, code in WRONG.items():
        headers = {"X-Request-Id": "request-of-fay"}
        response = browser.get(f"{url}/connections?{query}", headers=headers)
        page = response.text
        assert response.status_code == 400
        assert f'<a href="/docs/errors#{code}"><code>{code}</code></a>' in page
        assert "request-of-fay" in page and page.count("<h1>") == 1
        assert f'id="{code}"' in docs


def test_the_page_of_a_wallet_has_what_is_in_it(browser, url, exchanges):
    page = read(browser, f"{url}/wallets")
    [address] = re.findall(rf'href="({url}/wallets/[\da-f-]{{36}})"', page)
    found = browser.get(address)
    assert shown(found) == ["Alice at Faber", "Degree", "Other", "Stored"]
    [connection] = re.findall(rf"{url}/connections/[\w-]+", found.text)[:1]
    assert browser.get(connection).status_code == 200
    own = Wallet.objects.get(is_organization=True)
    # The lists of the organization's wallet have one address, and none of a holder's.
    for path in ("", "/connections"):
        assert browser.get(f"{url}/wallets/{own.pk}{path}").status_code == 404
    assert Connection.objects.count() == 2
    for name, number in (("connections", 1), ("credentials", 1), ("verifications", 2)):
        assert len(shown(browser.get(f"{url}/{name}"))) == number
    assert page_of(Connection(connectionless=True)) == ""


def test_a_hosted_wallet_has_filtered_lists_of_its_own(browser, url, exchanges):
    hosted = f"{url}/wallets/{Wallet.objects.get(owner_name='Alice').pk}"
    for name, labels, query in (
        ("connections", ["Alice at Faber"], "q=alice"),
        ("credentials", ["Degree"], "state=Offered&q=alice"),
        ("verifications", ["Other", "Stored"], "state=Requested"),
    ):
        page = browser.get(f"{hosted}/{name}")
        title = f"<h1>{name.capitalize()} of <bdi>Alice</bdi></h1>"
        assert shown(page) == labels and title in page.text
        assert f'href="{hosted}/{name}"' in read(browser, hosted)
        assert shown(browser.get(f"{hosted}/{name}?{query}")) == labels
        assert shown(browser.get(f"{hosted}/{name}?q=nobody")) == []
    assert shown(browser.get(f"{hosted}/connections?state=Invited")) == []


def test_an_empty_list_of_a_wallet_says_how_it_begins(browser, url, api):
    made = api.post("/api/wallets", {"ownerName": "Bob"})
    bob = Wallet.objects.get(wallet_id=made["walletId"])
    page = read(browser, f"{url}/wallets/{bob.pk}/credentials")
    assert "No credential yet" in page
    path, body = lists.first_call(lists.CREDENTIALS, bob)
    assert f"{path}&quot;" in page
    link = api.post("/connections", {})["invitationUrl"]
    met = api.post(path, dict.fromkeys(body, link))
    assert met["state"] == "Connected"


NAMES = ["\u202eeve", "<b>Ann</b>", "😀" * 200]


def test_rows_begin_with_whom_for_those_who_may_see_names(browser, viewer, url, api):
    degree = api.defines("name", recipientAttribute="name")
    alice = api.hosts()
    pages = {
        name: f"{url}/credentials/{api.offers(alice, degree, {'name': name})['credentialId']}"
        for name in NAMES
    }
    listed, masked = (read(one, f"{url}/credentials") for one in (browser, viewer))
    for name, page in pages.items():
        for shown in (listed, read(browser, page)):
            assert f"<bdi>{escape(name)}</bdi>" in shown, name
        for hidden in (masked, read(viewer, page)):
            assert escape(name) not in hidden and "<bdi>••••••</bdi>" in hidden, name
    settings = {"names_for_all": "on", "default_language": ""}
    assert browser.send(f"{url}/settings", **settings).status_code == 302
    listed = read(viewer, f"{url}/credentials")
    assert all(f"<bdi>{escape(name)}</bdi>" in listed for name in NAMES)


def test_a_list_says_how_many_and_which_page(browser, url, college, monkeypatch):
    fields = {"tenant": college.tenant, "link_secret": b""}
    Wallet.objects.bulk_create(
        Wallet(wallet_id=f"w{n}", owner_name="Bob", **fields) for n in range(51)
    )
    first = browser.get(f"{url}/wallets?q=bob")
    assert "51 wallets, page 1 of 2" in first.text
    second = browser.get(leads_to(first, "Next page"))
    assert "51 wallets, page 2 of 2" in second.text
    back = browser.get(leads_to(second, "Previous page"))
    assert "51 wallets, page 1 of 2" in back.text
    monkeypatch.setattr(lists, "MAX_COUNTED", 50)
    assert "More than 50 wallets, page 1" in read(browser, f"{url}/wallets")
    monkeypatch.setattr(lists, "MAX_FOUND", 10)
    found = read(browser, f"{url}/wallets?q=bob")
    assert "More than 10 wallets, page 1<" in found
    assert "1 wallet<" in read(browser, f"{url}/wallets?q=w7")


def test_people_are_found_by_who_may_see_their_names(browser, viewer, url, api):
    degree = api.defines("name", name="Degree", recipientAttribute="name")
    ann, bob = api.hosts(), api.hosts()
    api.offers(ann, degree, {"name": "Ann-Sophie Müller"})
    api.offers(bob, degree, {"name": "Bob Zimmer"})
    for text in ("SOPHIE an", "ann", "müll"):
        path = f"credentials?q={quote(text)}"
        found = read(browser, f"{url}/{path}")
        assert "Ann-Sophie" in found and "Bob" not in found and "1 credential" in found
    part = browser.get(f"{url}/{path}", headers={"HX-Request": "true"})
    assert "Ann-Sophie" in part.text
    assert "Ann-Sophie" in read(browser, f"{url}/search?q=SOPHIE%20an")
    assert len(shown(browser.get(f"{url}/connections?q=SOPHIE%20an"))) == 1
    assert "No credential matches" in read(viewer, f"{url}/{path}")
    assert "••••••" not in read(viewer, f"{url}/search?q=SOPHIE%20an")
    assert shown(viewer.get(f"{url}/connections?q=SOPHIE%20an")) == []
    settings = {"default_language": ""}
    assert browser.send(f"{url}/settings", **settings).status_code == 302
    assert shown(browser.get(f"{url}/credentials?q=ann")) == []
