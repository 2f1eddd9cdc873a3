"""One search finds records by what a customer names, and reads indexes only."""

import json
import re

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import Permission, User
from django.db import connection

from agency.support import search
from agency.support.search import find_records
from connections.models import Connection
from credentials.models import Credential
from tenants.models import Tenant
from verifications.models import Verification
from wallets.models import Wallet
from webhooks.models import Delivery, Event, Webhook

pytestmark = pytest.mark.django_db(transaction=True)
UNKNOWN_ID = "0b9c3f52-6d0e-4a51-9d64-8f6f0c7f2a11"
OFFICE = "https://office.example/agency-events?room=1"


@pytest.fixture
def records(faber):
    """One record of each kind: a declined proof, a credential, a webhook, a person."""
    alice = faber.hosts("Alice")
    faber.offers(alice, faber.defines("name", "year"), {"name": "Alice", "year": "1"})
    faber.asks(alice, attributes=[{"policyName": "name"}])
    alice.auto_selects()
    webhook = faber.post("/webhooks", {"url": OFFICE})
    faber.post(f"/webhooks/{webhook['id']}/example", {"messageType": "verification"})
    person = User.objects.create_user("nina", "nina@faber.example")
    EmailAddress.objects.create(user=person, email="nina@faber.example")
    Connection.objects.filter(wallet__is_organization=True).update(name="Straße 7")
    return faber.tenant


def found(term, user):
    return [(one.model, one.role) for one in find_records(term, user)]


def test_a_thread_finds_both_sides_the_verifiers_first(records, sue):
    thread = Verification.objects.values_list("thread_id", flat=True).first()
    assert found(thread, sue) == [
        (Verification, "verifier"),
        (Verification, "prover"),
    ]
    thread = Credential.objects.values_list("thread_id", flat=True).first()
    assert found(thread, sue) == [(Credential, "issuer"), (Credential, "holder")]


@pytest.mark.parametrize(
    "model", [Verification, Credential, Connection, Tenant, Wallet, Webhook, Event]
)
def test_an_id_finds_its_record(records, sue, model):
    for key in model.objects.values_list("pk", flat=True):
        assert model in {one for one, _ in found(f" {key} ", sue)}


def test_the_id_of_a_call_finds_the_event_and_its_deliveries(records, sue):
    delivery = Delivery.objects.first()
    assert found(f"msg_{delivery.event_id}", sue) == [(Event, ""), (Delivery, "")]
    [_, result] = find_records(f"msg_{delivery.event_id}", sue)
    assert result.tenant == records


@pytest.mark.parametrize("term", ["Straße 7", "straß", "STRASSE"])
def test_a_connection_is_found_by_the_beginning_of_its_name(records, sue, term):
    expected = [] if term == "STRASSE" else [(Connection, "inviter")]
    assert found(term, sue) == expected


def test_a_did_finds_organizations_and_connections_in_both_spellings(records, sue):
    own = Wallet.objects.get(is_organization=True)
    assert found(own.did, sue) == found(f"did:sov:{own.did}", sue) == [(Wallet, "")]
    theirs = Connection.objects.exclude(their_did="").first().their_did
    assert Connection in {one for one, _ in found(theirs, sue)}


@pytest.mark.parametrize("term", ["nina@faber.example", "Nina@Fab", "nin"])
def test_a_person_is_found_by_the_beginning_of_the_mail(records, sue, term):
    assert found(term, sue) == [(User, "")]


@pytest.mark.parametrize(
    "term", [OFFICE, OFFICE.removeprefix("https://"), "https://office.ex", "office.e"]
)
def test_a_webhook_is_found_by_its_host_or_its_whole_address(records, sue, term):
    assert found(term, sue) == [(Webhook, "")]


@pytest.mark.parametrize("term", ["office.example/agency", OFFICE[:-1], "https://[a"])
def test_a_secret_in_an_address_is_not_found_in_pieces(records, sue, term):
    assert found(term, sue) == []


def test_the_address_of_a_webhook_is_masked(records, sue, browser):
    [webhook] = find_records(OFFICE, sue)
    assert webhook.label == "https://office.example/…"
    pages = ["/admin/webhooks/webhook/", webhook.url]
    for page in pages:
        shown = browser.get(page).content.decode()
        assert "https://office.example/…" in shown
        assert "agency-events" not in shown and "room=1" not in shown


def test_an_organization_is_found_by_the_beginning_of_its_name(records, sue):
    # The holder's connections have the name of the organization too.
    assert found("faber co", sue) == [(Connection, "invitee"), (Tenant, "")]


@pytest.mark.parametrize(
    "term",
    ["", " ", "n", "ollege", "%", "faber_co", "x" * 3000, "nichts", UNKNOWN_ID],
)
def test_what_names_nothing_finds_nothing(records, sue, term):
    assert found(term, sue) == []


def test_only_records_that_may_be_viewed_are_found(records, sue):
    permission = Permission.objects.get(codename="view_webhook")
    sue.user_permissions.set([permission])
    sue = User.objects.get(pk=sue.pk)
    thread = Verification.objects.values_list("thread_id", flat=True).first()
    assert found(thread, sue) == []
    [webhook] = find_records(OFFICE, sue)
    assert webhook.tenant is None


def test_the_page_shows_the_customer_and_leads_to_the_record(browser, records):
    thread = Verification.objects.values_list("thread_id", flat=True).first()
    page = browser.get("/admin/search/", {"q": thread}).content.decode()
    assert "2 records" in page
    first, second = re.findall(
        r'href="(/admin/verifications/verification/[^"]+/change/)"', page
    )
    row = Verification.objects.get(role="verifier")
    assert str(row.pk) in first and str(row.pk) not in second
    assert f"/admin/tenants/tenant/{records.pk}/change/" in page
    assert browser.get(first).status_code == 200


def test_a_search_takes_few_queries(browser, records, django_assert_max_num_queries):
    Connection.objects.update(name="Many")
    with django_assert_max_num_queries(12):
        browser.get("/admin/search/", {"q": "many"})


def test_the_search_is_for_staff(client, records):
    assert client.get("/admin/search/", {"q": "faber"}).status_code == 302


def scans(plan):
    """Yield the nodes of a plan that read a table or an index."""
    if "Scan" in plan["Node Type"] and plan["Node Type"] != "Subquery Scan":
        yield plan
    for inner in plan.get("Plans", []):
        yield from scans(inner)


@pytest.mark.parametrize("term", [UNKNOWN_ID, "did:sov:WgWxqztrNooG92RXvxSTWv", "ni"])
def test_each_branch_reads_an_index_with_a_condition(records, sue, term):
    sql, parameters = search.build_statement(term, sue).query.sql_with_params()
    with connection.cursor() as cursor:
        # Small tables are read whole; a scan that is left has no index to use.
        # Statistics of the rows of other tests would change the plan.
        cursor.execute("ANALYZE")
        for name in ("seqscan", "hashjoin", "mergejoin"):
            cursor.execute(f"SET enable_{name} = off")
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", parameters)
        [[found]] = cursor.fetchall()
        for name in ("seqscan", "hashjoin", "mergejoin"):
            cursor.execute(f"RESET enable_{name}")
    found = found if isinstance(found, list) else json.loads(found)
    nodes = list(scans(found[0]["Plan"]))
    assert len(nodes) >= 10
    unbounded = [node for node in nodes if is_unbounded(node)]
    assert unbounded == [], json.dumps(unbounded)


def is_unbounded(node):
    """Whether a scan reads all of its table or index."""
    if node["Node Type"] == "Bitmap Heap Scan":
        return False  # it reads what the index scan below it has found
    return "Index Cond" not in node
