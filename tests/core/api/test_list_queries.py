"""What a list can be asked: pages, orders and filters."""

import base64
import re
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from connections.models import Connection
from core.api.pagination import MAX_LIMIT
from tests.core.api.lists import walk
from tests.support.errors import assert_error
from tests.support.races import at_once, during
from wallets.models import Wallet

VALUES = {"name": "Alice", "year": "2021"}
OVERLAP = timedelta(minutes=5)
ASKED = [{"policyName": "name"}]
pytestmark = pytest.mark.django_db(transaction=True)


def test_a_limit_is_from_1_to_1000(faber):
    for limit in ("0", "1001", "-1", "ten", "1.5", "9" * 20, "٣", "1_0"):
        response = faber.send("get", f"/connections?limit={limit}")
        assert (response.status_code, [*response.json()["errors"]]) == (400, ["limit"])


def test_empty_and_unknown_parameters_change_nothing(faber):
    faber.invites()
    assert faber.get("/connections", limit="", cursor="", sort="", page="7", name="")


def test_without_parameters_the_newest_1000_come_and_a_link_to_the_rest(faber):
    Wallet.objects.bulk_create(wallet(faber, n) for n in range(MAX_LIMIT + 1))
    response = faber.send("get", "/api/wallets")
    newest = [f"w{number}" for number in range(MAX_LIMIT, 0, -1)]
    assert [one["walletId"] for one in response.json()] == newest
    assert len(walk(faber, "/api/wallets")) == MAX_LIMIT + 1


def wallet(organization, number, **fields):
    return Wallet(
        tenant=organization.tenant, wallet_id=f"w{number}", link_secret=b"", **fields
    )


@pytest.fixture
def invited(faber):
    """Two connections of Faber."""
    return [faber.invites() for _ in "ab"]


def test_the_link_keeps_prefix_and_parameters_and_does_not_believe_the_host(
    faber, invited, settings
):
    settings.ALLOWED_HOSTS = ["*"]
    path = "/agency/v1/connections?state=Invited&limit=1&x=a%20%26b&x=c"
    response = faber.send("get", path, Host="evil.example")
    target, _, relation = response.headers["Link"].partition("; ")
    assert relation == 'rel="next"'
    address, _, query = target.strip("<>").partition("?")
    assert address == f"{settings.PUBLIC_URL}/agency/v1/connections"
    assert query.startswith("state=Invited&limit=1&x=a+%26b&x=c&cursor=")


def test_the_last_page_has_no_link(faber, invited):
    assert "Link" not in faber.send("get", "/connections?limit=2").headers


def cursor_of(faber, path):
    [cursor] = re.findall(r"cursor=([\w%-]+)", faber.send("get", path).headers["Link"])
    return cursor


def test_a_changed_cursor_or_one_of_another_list_or_order_is_refused(faber, invited):
    cursor = cursor_of(faber, "/connections?limit=1")
    changed = (cursor.lower(), cursor[:-4], "x", cursor + "AAAA")
    asked = [f"/connections?limit=1&cursor={one}" for one in changed]
    others = ("/connections?sort=name", "/credentials?limit=1", "/api/wallets?limit=1")
    asked += [f"{other}&cursor={cursor}" for other in others]
    for path in asked:
        response = faber.send("get", path)
        assert_error(response, 400, "invalid_cursor")
        assert set(response.json()["errors"]) == {"cursor"}, path


def test_a_cursor_of_another_organization_shows_nothing_of_it(faber, acme):
    mine = acme.invites()
    faber.invites(), faber.invites()
    cursor = cursor_of(faber, "/connections?limit=1")
    assert acme.get("/connections", cursor=cursor) == [mine]


def test_a_cursor_does_not_tell_the_name_that_it_stands_at(faber):
    faber.hosts("Zenobia"), faber.hosts("Zenobia")
    cursor = cursor_of(faber, "/api/wallets?limit=1&sort=name")
    plain = base64.urlsafe_b64decode(cursor + "==")
    assert b"zenobia" not in plain.lower()


@pytest.mark.parametrize("sort", ["createdAt", "-createdAt", "name", "-name"])
def test_pages_miss_and_repeat_nothing_while_rows_come(faber, sort):
    rows = [wallet(faber, n, owner_name=f"Owner {n % 4}") for n in range(40)]
    Wallet.objects.bulk_create(rows[:20])
    seen, _ = at_once(
        lambda: walk(faber, "/api/wallets", limit=1, sort=sort),
        lambda: [row.save(force_insert=True) for row in rows[20:]],
    )
    ids = [one["walletId"] for one in seen]
    assert len(set(ids)) == len(ids)
    assert {f"w{n}" for n in range(20)} <= set(ids)


@pytest.mark.parametrize("sort", ["updatedAt", "-updatedAt"])
def test_rows_of_one_instant_keep_their_order(faber, sort):
    invited = [faber.invites()["connectionId"] for _ in range(7)]
    moment = timezone.now()
    Connection.objects.filter(connection_id__in=invited[:5]).update(updated_at=moment)
    pages = walk(faber, "/connections", limit=2, sort=sort)
    rows = sorted(Connection.objects.all(), key=lambda row: (row.updated_at, row.pk))
    expected = [row.connection_id for row in rows][:: -1 if sort[0] == "-" else 1]
    assert [one["connectionId"] for one in pages] == expected


def test_names_are_searched_by_their_beginning_in_any_case_and_taken_literally(faber):
    for name in ("Alice", "ALINA", "Malice", "100%", "1000", "Änne"):
        faber.invites(name=name)
    found = {
        prefix: {one["name"] for one in faber.get("/connections", name=prefix)}
        for prefix in ("ali", "100%25", "_", "ä", "bob")
    }
    assert found == {
        "ali": {"Alice", "ALINA"}, "100%25": {"100%"}, "_": set(), "ä": {"Änne"},
        "bob": set()
    }  # fmt: skip


def test_names_are_sorted_without_case(faber):
    for name in ("bob", "Alice", "alba", "Bo"):
        faber.hosts(name)
    listed = [one["name"] for one in walk(faber, "/api/wallets", limit=1, sort="name")]
    assert listed == ["alba", "Alice", "Bo", "bob"]


def test_times_are_bounds_that_are_not_part_of_it(faber):
    first, second, third = (faber.invites() for _ in range(3))
    after, before = first["createdAtUtc"], third["createdAtUtc"]
    found = faber.get("/connections", createdAfter=after, createdBefore=before)
    assert found == [second]
    changed = Connection.objects.filter(pk=second["connectionId"])
    changed.update(updated_at=timezone.now())
    last = Connection.objects.get(pk=third["connectionId"]).updated_at
    after = last.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    [found] = faber.get("/connections", updatedAfter=after)
    assert found["connectionId"] == second["connectionId"]
    assert found["updatedAtUtc"] > second["updatedAtUtc"] >= second["createdAtUtc"]


def test_a_change_that_is_committed_late_is_in_the_overlap_of_the_next_sync(faber):
    """The time of a change is older than its commit: docs/api.md says how much."""
    slow, fast = (faber.invites()["connectionId"] for _ in range(2))

    def change(connection_id):
        rows = Connection.objects.filter(connection_id=connection_id)
        rows.update(updated_at=timezone.now())

    def sync():
        change(fast)
        return max(one["updatedAtUtc"] for one in faber.get("/connections"))

    _, seen = during(lambda: change(slow), sync)
    after = {
        one["connectionId"] for one in faber.get("/connections", updatedAfter=seen)
    }
    assert after == set()
    since = datetime.fromisoformat(seen) - OVERLAP
    since = since.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    again = faber.get("/connections", updatedAfter=since, sort="updatedAt")
    assert [one["connectionId"] for one in again][-2:] == [slow, fast]


@pytest.mark.parametrize("kind", ["connections", "credentials", "verifications"])
def test_each_object_tells_when_it_changed(faber, kind):
    alice, definition = faber.hosts(), faber.defines("name")
    faber.offers(alice, definition, {"name": "Alice"})
    faber.asks(alice, attributes=[{"policyName": "name"}])
    [before] = faber.get(f"/{kind}")
    assert before["createdAtUtc"] <= before["updatedAtUtc"]
    alice.accepts_offer()
    alice.auto_selects()
    [after] = faber.get(f"/{kind}")
    assert (after["updatedAtUtc"] > before["updatedAtUtc"]) == (kind != "connections")


def test_what_never_moves_tells_its_times_too(world):
    for path in ("/api/wallets", "/definitions/credentials", "/verificationPolicies"):
        for one in world.faber.get(path):
            assert one["createdAtUtc"] <= one["updatedAtUtc"], path
    [organization] = world.faber.get("/tenants")
    changed = world.faber.put(f"/tenants/{organization['tenantId']}", {"name": "New"})
    assert changed["updatedAtUtc"] > organization["updatedAtUtc"]


def test_any_time_is_taken(faber):
    faber.invites()
    for moment in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-31"):
        assert len(faber.get("/connections", createdAfter=moment)) == (moment < "9999")
        before = faber.get("/connections", createdBefore=moment)
        assert len(before) == (moment >= "9999")


def test_credentials_are_found_by_what_they_are_of(faber):
    alice, dogs, cats = faber.hosts(), faber.defines(*VALUES), faber.defines(*VALUES)
    faber.offers(alice, dogs, VALUES | {"name": "Rex"})
    alice.receives(faber, cats, VALUES | {"name": "Tom"})
    for query in (
        {"schemaId": cats["schemaId"]},
        {"definitionId": cats["definitionId"]},
        {"state": "Issued", "role": "issuer"},
    ):
        [found] = faber.get("/credentials", **query)
        assert found["values"]["name"] == "Tom", query
    assert faber.get("/credentials", role="holder") == []
    [offered] = alice.get("/credentials", state="Offered", role="holder")
    assert offered["values"]["name"] == "Rex"
    of = alice.get("/connections")[0]["connectionId"]
    assert alice.get(f"/credentials/connection/{of}", state="Offered") == [offered]


def test_verifications_are_found_by_their_result(faber):
    alice = faber.hosts()
    faber.asks(alice, attributes=ASKED)
    alice.auto_selects()
    asked = faber.asks(alice, attributes=ASKED)
    [wrong] = faber.get("/verifications", isValid="false", role="verifier")
    assert wrong["state"] == "Accepted"
    [still] = faber.get("/verifications", state="Requested")
    assert still["verificationId"] == asked["verificationId"]
    assert faber.get("/verifications", isValid="true") == []


def test_definitions_and_webhooks_are_found_by_their_parts(faber):
    dogs = faber.defines("name", "year", tag="dogs")
    faber.defines("name", "year")
    by_name = {"name": dogs["name"].lower()}
    for query in ({"tag": "dogs"}, {"schemaId": dogs["schemaId"]}, by_name):
        assert faber.get("/definitions/credentials", **query) == [dogs], query
    assert len(faber.get("/definitions/credentials", supportsRevocation="false")) == 2
    office = {"url": "https://office.example"}
    zapier = faber.post("/webhooks", office | {"type": "Zapier"})
    other = faber.post("/webhooks", office)
    faber.put(f"/webhooks/{other['id']}/disable")
    for query in ({"type": "Zapier"}, {"enabled": "true"}):
        [found] = faber.get("/webhooks", **query)
        assert found["id"] == zapier["id"], query


def test_exchanges_are_found_by_their_thread_on_both_sides(faber):
    alice, definition = faber.hosts(), faber.defines("name")
    for name in ("Alice", "Alicia"):
        faber.offers(alice, definition, {"name": name})
        faber.asks(alice, attributes=[{"policyName": "name"}])
    for kind in ("credentials", "verifications"):
        one, other = faber.get(f"/{kind}")
        for api in (faber, alice):
            [found] = api.get(f"/{kind}", threadId=one["threadId"])
            assert found["threadId"] == one["threadId"] != other["threadId"]
        assert faber.get(f"/{kind}", threadId="x") == []
