"""With many people, no page of them reads or sorts more rows than it may show.

How long that takes beside few people is measured by bench/fill.py, with the same pages.
"""

import json
import os
import re

import pytest
from django.db import connection, transaction

from agency.studio import list_search, lists
from bench import people
from tests.agency.pages.test_routes import BOUNDS, HTML, MAX_QUERIES

pytestmark = pytest.mark.django_db(transaction=True)
MANY = int(os.environ.get("PEOPLE_OF_PAGES", "4000"))
MOST = 1000  # rows that a statement may read of a table, with these limits of ours
LIMITS = (
    (lists, "MAX_COUNTED", 200),
    (lists, "MAX_FOUND", 200),
    (list_search, "MAX_PEOPLE", 200),
)
LARGE = {
    "connections_connection", "connections_basicmessage", "credentials_credential",
    "credentials_namedigests", "verifications_checkdigests",
    "verifications_verification", "wallets_key",
}  # fmt: skip
READS = re.compile(r"\s*(SELECT|WITH)\b")
VALUES = {"name": "Ann", "year": "2020"}


@pytest.fixture
def pages(api, college, monkeypatch):
    for place, name, limit in LIMITS:
        monkeypatch.setattr(place, name, limit)
    card = api.defines(*VALUES, recipientAttribute="name")
    alice = api.hosts("Alice")
    alice.receives(api, card, VALUES)
    api.asks(alice, attributes=[{"policyName": "name"}])
    alice.auto_selects()
    api.post("/messages", {"connectionId": alice.known[api][0], "text": "Hello"})
    offer = {"definitionId": card["definitionId"], "credentialValues": VALUES}
    api.post("/credentials", offer)
    asked = {"name": "Name", "version": "1.0", "attributes": [{"policyName": "name"}]}
    api.post("/verificationPolicies", asked)
    found = people.fill_people(college.tenant, MANY)
    opened = dict(found.lists)
    for name, addresses in found.persons.items():
        opened[name] = addresses[0]
    return opened


def opens(browser, address):
    """Return the page, and the statements that read, with their parameters."""
    statements = []

    def record(execute, sql, params, many, context):
        if sql not in BOUNDS and READS.match(sql):
            statements.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record):
        response = browser.get(address, headers=HTML)
    assert response.status_code == 200, address
    return response.text, statements


def nodes_of(sql, params):
    """The nodes of the plan of a statement, with the rows that it has read."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
        [[plan]] = cursor.fetchall()
    plan = plan if isinstance(plan, list) else json.loads(plan)
    return walk(plan[0]["Plan"])


def tables_without_index(sql, params):
    """The large tables that a statement can only read from one end to the other."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
        [[plan]] = cursor.fetchall()
    plan = plan if isinstance(plan, list) else json.loads(plan)
    for node in walk(plan[0]["Plan"]):
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE:
            yield f"no index of {node['Relation Name']}"


def walk(node):
    yield node
    for inner in node.get("Plans", []):
        yield from walk(inner)


def too_much(sql, params):
    """What a statement reads or sorts beyond MOST rows, in words."""
    for node in nodes_of(sql, params):
        kind, table = node["Node Type"], node.get("Relation Name")
        rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        rows = node["Actual Loops"] * (
            rows + node.get("Rows Removed by Index Recheck", 0)
        )
        if table in LARGE and rows > MOST:
            yield f"{kind} of {rows:.0f} rows of {table}"
        if kind == "Sort" and (read := node["Plans"][0]["Actual Rows"]) > MOST:
            yield f"Sort of {read:.0f} rows"


def open_all(browser, pages):
    """Open the pages, and the second one of each list."""
    for name, address in pages.items():
        page, statements = opens(browser, address)
        yield name, statements
        if following := people.second_page(address, page):
            yield f"{name}, page 2", opens(browser, following)[1]


def test_no_page_reads_more_people_than_it_may_show(browser, pages):
    wrong, names = {}, []
    for name, statements in open_all(browser, pages):
        names.append(name)
        found = [
            f"{one} by {sql}"
            for sql, params in statements
            for one in (*too_much(sql, params), *tables_without_index(sql, params))
        ]
        if len(statements) > MAX_QUERIES:
            found.append(f"{len(statements)} statements")
        if found:
            wrong[name] = found
    assert "cards, page 2" in names and "find a name of many, page 2" in names
    assert not wrong, "\n\n".join(
        "\n  ".join([page, *found]) for page, found in wrong.items()
    )
