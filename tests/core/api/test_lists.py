"""Every list of the OpenAPI schema is paged and sorted, and reads what it shows."""

import re

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import BinaryField
from django.test.utils import CaptureQueriesContext

from tenants import vault
from tests.core.api.lists import walk
from tests.core.api.test_generated import PRIVATE, SCHEMAS
from tests.support.database import Template
from tests.support.world import caller, filled, restore_world

pytestmark = pytest.mark.django_db(transaction=True)
WHOLE = {  # answered in one piece, and why that is little
    "/common/networks": "an operator's few networks",
    "/provider/v1/networks": "the same",
    "/provider/v1/analytics/usage": "24 months at most",
    "/statistics": "90 days at most",
}
ONE_ROW = {"/tenants"}  # the caller's own organization
BAD = {"date-time": "yesterday", "boolean": "maybe", "integer": "0", "enum": "other"}


def is_list(operation):
    content = operation["responses"]["200"].get("content", {})
    return content.get("application/json", {}).get("schema", {}).get("type") == "array"


ARRAYS = {
    path: one for method, path, one in PRIVATE if method == "get" and is_list(one)
}
# Oldest first, without an end: tests/webhooks/events/test_feed.py.
ON_AND_ON = {"/events"}
LISTS = {path: one for path, one in ARRAYS.items() if path not in {*WHOLE, *ON_AND_ON}}


class Lists:
    """The lists of an organization of the world."""

    def __init__(self, world):
        self.world, self.ids, self.grow = world, world.api_ids(), world.grow

    def calls(self, path, organization=None):
        """Who calls the list, and where."""
        return caller(organization or self.world.faber, path), filled(path, self.ids)

    def get(self, path, **query):
        who, address = self.calls(path)
        return who.get(address, **query)


@Template
def restore_lists():
    lists = Lists(restore_world())
    lists.grow()
    return lists


@pytest.fixture
def lists(transactional_db, stored_keys):
    """With a row more in each list than the world has."""
    lists = restore_lists()
    lists.get("/connections")  # reads the data key
    return lists


def resolved(schema):
    return SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def parameters(operation):
    queries = [one for one in operation["parameters"] if one["in"] == "query"]
    return {one["name"]: resolved(one["schema"]) for one in queries}


def test_every_list_documents_its_pages():
    paged = {"limit", "cursor", "sort", "createdAfter", "createdBefore"}
    for path, operation in LISTS.items():
        assert paged <= set(parameters(operation)), path
        assert "Link" in operation["responses"]["200"]["headers"], path


def test_what_is_answered_whole_is_an_array_still():
    assert WHOLE.keys() | ON_AND_ON <= ARRAYS.keys()


def test_every_list_goes_page_by_page_in_every_order(lists):
    """Three pages of each, in the order of the whole list."""
    for _ in range(2):
        lists.grow()
    for path, operation in LISTS.items():
        who, address = lists.calls(path)
        whole = who.get(address)
        assert len(whole) >= (1 if path in ONE_ROW else 3), path
        third = (len(whole) + 2) // 3
        rows = {
            sort: walk(who, address, limit=third, sort=sort)
            for sort in parameters(operation)["sort"]["enum"]
        }
        for sort, pages in rows.items():
            assert pages == who.get(address, sort=sort), f"{path} {sort}"
            assert sorted(map(str, pages)) == sorted(map(str, whole)), f"{path} {sort}"
        assert walk(who, address, limit=third) == whole, path
        assert rows["createdAt"] == whole[::-1], path


def test_every_list_is_of_one_organization(lists):
    for path in LISTS:
        who, address = lists.calls(path, lists.world.acme)
        response = who.send("get", f"{address}?limit=5&sort=createdAt")
        assert response.status_code in (200, 404), path
        theirs = response.json() if response.status_code == 200 else []
        mine = lists.get(path)
        assert mine and not any(row in mine for row in theirs), path


def test_a_known_parameter_with_a_bad_value_is_named(lists):
    for path, operation in LISTS.items():
        who, address = lists.calls(path)
        for name, schema in parameters(operation).items():
            kind = "enum" if "enum" in schema else schema.get("format", schema["type"])
            response = who.send("get", f"{address}?{name}={BAD.get(kind, 'x' * 2001)}")
            assert response.status_code == 400, f"{path} {name}"
            assert set(response.json()["errors"]) == {name}, f"{path} {name}"


# Whether they are there tells what an inviter shows.
LATER = re.compile('FROM "(connections_outboundmessage|credentials_definitionformat)"')
NOTED = {
    ("connections_connection", "held_response"),
    ("connections_connection", "shared"),
    ("credentials_credential", "recipient_name"),  # empty in a wallet
}
SEALED = {
    (model._meta.db_table, field.column)
    for model in apps.get_models()
    for field in model._meta.fields
    if isinstance(field, BinaryField)
}


def test_a_list_reads_no_sealed_column_but_those_that_it_shows(lists, monkeypatch):
    opened, unseal = set(), vault.unseal

    def noted(row, column):
        opened.add((row._meta.db_table, column))
        return unseal(row, column)

    monkeypatch.setattr(vault, "unseal", noted)
    for path in LISTS:
        opened.clear()
        with CaptureQueriesContext(connection) as captured:
            rows = lists.get(path)
        assert rows, path
        # What became of outgoing messages, and formats, are read after their list.
        statements = (one["sql"] for one in captured)
        *_, listing = (one for one in statements if not LATER.search(one))
        selected = listing.partition(" FROM ")[0]
        read = set(re.findall(r'"(\w+)"\."(\w+)"', selected)) & SEALED
        assert opened <= read <= opened | NOTED, path
