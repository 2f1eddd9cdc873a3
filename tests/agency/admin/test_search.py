"""One search finds records by what a customer names, and reads indexes only."""

import json
import re

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection

from agency.support import search
from agency.support.search import find_records
from connections.models import Connection
from credentials.models import Credential
from tenants.models import Tenant
from tests.factories import EmailAddressFactory
from tests.support.database import restored
from tests.support.own_webvh import on_webvh, row_of
from tests.support.people import Organization
from verifications.models import Verification
from wallets.models import Wallet
from webhooks.models import Delivery, Event, Webhook

pytestmark = pytest.mark.django_db(transaction=True)
WEBVH = f"did:webvh:Qm{44 * 'a'}:agency.example.org:issuers:1f6c02ab"
UNKNOWN_ID = "0b9c3f52-6d0e-4a51-9d64-8f6f0c7f2a11"
OFFICE = "https://office.example/agency-events?room=1"


@restored
def records():
    """One record of each kind: a declined proof, a credential, a webhook, a person."""
    faber = Organization("Faber College")
    alice = faber.hosts("Alice")
    faber.offers(alice, faber.defines("name", "year"), {"name": "Alice", "year": "1"})
    faber.asks(alice, attributes=[{"policyName": "name"}])
    alice.auto_selects()
    webhook = faber.post("/webhooks", {"url": OFFICE})
    faber.post(f"/webhooks/{webhook['id']}/example", {"messageType": "verification"})
    EmailAddressFactory(user__username="nina")
    Connection.objects.filter(wallet__is_organization=True).update(name="Straße 7")
    return faber.tenant


def found(term, user):
    return [(one.model, one.role) for one in find_records(term, user)]


def test_a_thread_finds_both_sides_the_verifiers_first(records, sue):
    thread = Verification.objects.values_list("thread_id", flat=True).first()
    assert found(thread, sue) == [(Verification, "verifier"), (Verification, "prover")]
    thread = Credential.objects.values_list("thread_id", flat=True).first()
    assert found(thread, sue) == [(Credential, "issuer"), (Credential, "holder")]


def test_an_id_finds_its_record(records, sue):
    models = (Verification, Credential, Connection, Tenant, Wallet, Webhook, Event)
    for model in models:
        for key in model.objects.values_list("pk", flat=True):
            assert model in {one for one, _ in found(f" {key} ", sue)}


def test_the_id_of_a_call_finds_the_event_and_its_deliveries(records, sue):
    delivery = Delivery.objects.first()
    assert found(f"msg_{delivery.event_id}", sue) == [(Event, ""), (Delivery, "")]
    [_, result] = find_records(f"msg_{delivery.event_id}", sue)
    assert result.tenant == records


def test_a_did_finds_organizations_and_connections_in_both_spellings(records, sue):
    own = Wallet.objects.get(is_organization=True)
    assert found(own.did, sue) == found(f"did:sov:{own.did}", sue) == [(Wallet, "")]
    theirs = Connection.objects.exclude(their_did="").first().their_did
    assert Connection in {one for one, _ in found(theirs, sue)}


def test_a_did_webvh_finds_its_organization_and_connections(records, sue, settings):
    office = on_webvh(settings, "Office")
    office.put("/tenants/publicDid", {"acceptsRequests": True})
    did = row_of(office).did
    assert found(did, sue) == [(Connection, "inviter"), (Wallet, "")]
    wallet = find_records(did, sue)[1]
    assert wallet.tenant == office.tenant


WEBHOOK, PERSON = [(Webhook, "")], [(User, "")]
FOUND = {
    OFFICE: WEBHOOK,
    OFFICE.removeprefix("https://"): WEBHOOK,
    "https://office.ex": WEBHOOK,
    "office.e": WEBHOOK,
    # A secret in an address is not found in pieces.
    "office.example/agency": [],
    OFFICE[:-1]: [],
    "https://[a": [],
    "nina@faber.example": PERSON,
    "Nina@Fab": PERSON,
    "nin": PERSON,
    "Straße 7": [(Connection, "inviter")],
    "straß": [(Connection, "inviter")],
    "STRASSE": [],
    # The holder's connections have the name of the organization too.
    "faber co": [(Connection, "invitee"), (Tenant, "")],
} | dict.fromkeys(
    ["", " ", "n", "ollege", "%", "faber_co", "x" * 3000, "nichts", UNKNOWN_ID], []
)


def test_records_are_found_by_the_beginning_of_their_names(records, sue):
    assert {term: found(term, sue) for term in FOUND} == FOUND


def test_the_address_of_a_webhook_is_masked(records, sue, browser):
    [webhook] = find_records(OFFICE, sue)
    assert webhook.label == "https://office.example/…"
    for page in ("/admin/webhooks/webhook/", webhook.url):
        shown = browser.get(page).text
        assert "https://office.example/…" in shown
        assert "agency-events" not in shown and "room=1" not in shown


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
    page = browser.get("/admin/search/", {"q": thread}).text
    assert "2 records" in page
    link = r'href="(/admin/verifications/verification/[^"]+/change/)"'
    first, second = re.findall(link, page)
    row = Verification.objects.get(role="verifier")
    assert str(row.pk) in first and str(row.pk) not in second
    assert f"/admin/tenants/tenant/{records.pk}/change/" in page
    assert browser.get(first).status_code == 200


def scans(plan):
    """Yield the nodes of a plan that read a table or an index."""
    if "Scan" in plan["Node Type"] and plan["Node Type"] != "Subquery Scan":
        yield plan
    for inner in plan.get("Plans", []):
        yield from scans(inner)


PLANS = ("seqscan", "hashjoin", "mergejoin")


def plan_of(term, user):
    sql, parameters = search.build_statement(term, user).query.sql_with_params()
    with connection.cursor() as cursor:
        # Small tables are read whole; a scan that is left has no index to use.
        # Statistics of the rows of other tests would change the plan.
        cursor.execute("ANALYZE")
        for name in PLANS:
            cursor.execute(f"SET enable_{name} = off")
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", parameters)
        [[plan]] = cursor.fetchall()
        for name in PLANS:
            cursor.execute(f"RESET enable_{name}")
    return (plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"]


def test_each_branch_reads_an_index_with_a_condition(records, sue):
    for term in (UNKNOWN_ID, "did:sov:WgWxqztrNooG92RXvxSTWv", WEBVH, "ni"):
        nodes = list(scans(plan_of(term, sue)))
        assert len(nodes) >= 10
        unbounded = [node for node in nodes if is_unbounded(node)]
        assert unbounded == [], json.dumps(unbounded)


def is_unbounded(node):
    """Whether a scan reads all of its table or index."""
    if node["Node Type"] == "Bitmap Heap Scan":
        return False  # it reads what the index scan below it has found
    return "Index Cond" not in node
