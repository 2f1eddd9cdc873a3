"""Databases of all releases are migrated with today's code, and still work.

The stories that filled it are in story.py. The process of the tests moves to the
restored database for the time of this module, with the keys and the files of the
release.
"""

import base64
import contextlib
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from django.apps import apps
from django.conf import settings
from django.db import connection, connections
from django.test import Client, override_settings

from agency.ops import database_schema, health
from credentials.ledgers.local import published_body
from tenants import vault
from tenants.models import DataKey, Membership, Provider
from tenants.sealed_columns import list_sealed_tables
from tests.core.api import contract
from tests.core.api.contract_calls import ids
from tests.releases import RELEASES, fingerprint
from tests.releases.former import load_database, read_known
from tests.releases.story import EMAIL, PASSWORD, Restored
from tests.support import keys, queues
from tests.support.database import new_database
from tests.support.paths import ROOT
from tests.support.people import Organization
from tests.support.processes import database_of_test
from tests.support.webhook_receiver import receiving, time_passes, worker_calls
from webhooks.models import Delivery, Webhook

VERSIONS = sorted(one.name for one in RELEASES.iterdir())
FIRST = "0.1.0"
EMPTY = {  # tables of a release without a row in its database, and why
    "account_emailconfirmation": "a confirmation is a signed link, not a row",
    "auth_user_groups": "0.1.0 has no groups of staff",
    "auth_user_user_permissions": "nobody gives one person a permission",
    "django_admin_log": "nobody of staff has changed anything",
}
PASSING = {  # states that a hosted party leaves within the call
    ("Connection", "invitee", "Invited"),
    ("Connection", "invitee", "Negotiating"),
}
# The contract has no such state.
OUR_OWN = "state is no string enum CredentialState: 'Proposed'"


@pytest.fixture(scope="module", params=VERSIONS)
def release(request):
    """Of tests that name a release: one whose migrations changed what it had."""
    return RELEASES / request.param


@pytest.fixture(scope="module")
def known(release):
    return read_known(release)


@pytest.fixture(scope="module")
def new_schema(django_db_setup):
    """Of the test database, which is a new one."""
    return fingerprint.read_parts(database_of_test())


@pytest.fixture(scope="module")
def restored(release, django_db_setup):
    """The URL of a new database with what is in the release."""
    with new_database("released") as url:
        load_database(release, url)
        yield url


@pytest.fixture(scope="module")
def columns(restored):
    """Those of the release, as `table.column`."""
    with psycopg.connect(restored) as database:
        rows = database.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = 'public'"
        )
        return {f"{table}.{column}" for table, column in rows}


@pytest.fixture(scope="module")
def migrated(restored, columns, known):
    """By today's code, in a process of its own, as an operator does it."""
    command = [
        sys.executable,
        "manage.py",
        "migrate",
        "--no-input",
        "--verbosity",
        "0",
    ]
    environment = os.environ | known["keys"] | {"DATABASE_URL": restored}
    subprocess.run(command, env=environment, check=True, cwd=ROOT, timeout=100)
    return restored


@pytest.fixture(scope="module")
def world(release, known, migrated, new_schema, tmp_path_factory, django_db_blocker):
    """The world of the stories, with this process in its database."""
    files = shutil.copytree(
        release / "storage", tmp_path_factory.mktemp("release") / "storage"
    )
    storage = settings.STORAGES["default"] | {"OPTIONS": {"location": str(files)}}
    given = override_settings(
        MASTER_KEY=base64.b64decode(known["keys"]["AGENCY_MASTER_KEY"]),
        SECRET_KEY=known["keys"]["SECRET_KEY"],
        STORAGES=settings.STORAGES | {"default": storage},
        OUTGOING_ALLOW_LOOPBACK=True,
        WEBHOOK_REQUIRE_HTTPS=False,
        WEBHOOK_THREADS=4,
        LEDGER_TIMEOUT=0.5,
    )
    name = urlsplit(migrated).path.removeprefix("/")
    with (
        django_db_blocker.unblock(),
        database(name),
        given,
        pytest.MonkeyPatch.context() as patch,
        keys.stored_keys(),
    ):
        patch.setattr(health, "schema_is_right", False)
        yield Restored(known)


@contextlib.contextmanager
def database(name):
    """This process works in the database of this name."""
    before = connection.settings_dict["NAME"]
    move_to(name)
    try:
        yield
    finally:
        move_to(before)


def move_to(name):
    connections.close_all()
    connection.close_pool()
    connection.settings_dict["NAME"] = settings.DATABASES["default"]["NAME"] = name
    vault.forget_keys()
    published_body.cache_clear()


def rows_by_table():
    with connection.cursor() as cursor:
        counts = {}
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT count(*) FROM "{table}"')
            counts[table] = cursor.fetchone()[0]
    return counts


def test_the_release_has_data_of_every_kind(world, columns):
    tables = {name.partition(".")[0] for name in columns}
    empty = {table for table, count in rows_by_table().items() if not count} & tables
    assert empty <= EMPTY.keys()


@pytest.mark.parametrize(
    ("app", "name"),
    [
        ("connections", "Connection"),
        ("credentials", "Credential"),
        ("verifications", "Verification"),
    ],
)
def test_the_release_has_every_state_of_every_role(world, app, name):
    model = apps.get_model(app, name)
    found = {(name, *one) for one in model.objects.values_list("role", "state")}
    wanted = {
        (name, role, state)
        for role in model.Role.values
        for state in model.State.values
    }
    assert wanted - found <= PASSING


def test_the_migrated_database_is_what_a_new_one_is(world, migrated, new_schema):
    found = fingerprint.read_parts(migrated)
    assert fingerprint.differences(new_schema, found) == []


def test_the_migrated_database_has_the_tables_of_this_version(world):
    assert (
        database_schema.find_differences(
            database_schema.expected_schema(), database_schema.read_schema()
        )
        == []
    )
    assert Client().get("/health/ready").json()["migrations"] == "ok"


def sealed_columns():
    """{table.column: (model, name)} of every binary column with encrypted data."""
    return {
        f"{table.name}.{column}": (table.model, column)
        for table in list_sealed_tables()
        for column in table.columns
    }


def test_every_sealed_value_opens(world, columns):
    opened = defaultdict(int)
    for place, (model, column) in sealed_columns().items():
        for row in model.objects.exclude(**{column: None}):
            assert vault.unseal(row, column) is not None
            opened[place] += 1
    assert columns & set(sealed_columns()) == columns & set(opened)
    for row in DataKey.objects.all():
        assert len(vault.unwrap_data_key(row)) == 32


@pytest.mark.parametrize("release", [FIRST], indirect=True)
def test_accounts_of_the_studio_have_quotas_and_others_have_none(world):
    made = Membership.objects.filter(role="owner", tenant__made_by_provider=False)
    people = dict(made.values_list("tenant__provider", "user"))
    assert people
    for provider in Provider.objects.all():
        assert (provider.has_quotas, provider.person_id) == (
            provider.pk in people,
            people.get(provider.pk),
        )


def reads():
    found = contract.read()
    operations = [contract.operation(row) for row in found["operations"]]
    return found, [one for one in operations if one.method == "GET"]


def test_every_read_of_the_contract_is_answered_as_it_says(world, known):
    found, operations = reads()
    ours = {"messageId": known["message"], "webhookId": known["webhooks"]["steady"]}
    wrong = []
    for one in operations:
        given = ids(one.client, world) | ours
        if one.path.startswith("/definitions/verifications"):
            given["definitionId"] = given["verificationDefinitionId"] = known[
                "stored_request"
            ]
        path = one.paths[0].format(
            **{name: quote(text, safe="") for name, text in given.items()}
        )
        caller = world.provider if one.client == "provider" else world.faber
        response = Client().get(path, headers=caller.headers)
        judge = contract.Judge(found["schemas"][one.client])
        if response.status_code != 200:
            wrong.append(f"{path}: {response.status_code} {response.content[:200]!r}")
        elif one.answer and response["Content-Type"] == "application/json":
            judge.judge(one.answer, response.json(), path)
        wrong += [text for text in judge.wrong if OUR_OWN not in text]
    assert len(operations) > 40
    assert wrong == []


def test_lists_show_what_was_there(world, known):
    assert len(world.faber.get("/credentials")) >= 10
    assert len(world.alice.get("/verifications")) >= 6
    deliveries = world.faber.get(f"/webhooks/{known['webhooks']['failing']}/deliveries")
    assert {one["status"] for one in deliveries} == {"Pending"}
    message = world.faber.get(f"/messages/{known['message']}")
    assert message["text"] == "Hello, Alice"


def test_a_picture_of_the_release_is_served(world, known):
    picture = urlsplit(known["picture"]).path
    assert Client().get(picture)["Content-Type"] == "image/png"


def test_fay_signs_in(world, known):
    form = {"login": EMAIL, "password": PASSWORD}
    browser = Client()
    assert browser.post("/accounts/login/", form).status_code == 302
    assert b"Faber College" in browser.get("/studio/?all").content


def test_messages_that_were_on_their_way_arrive(world):
    queues.worker_catches_up()
    assert not queues.pending().filter(is_hosted=True).exists()
    assert not queues.InboundMessage.objects.filter(status="pending").exists()


def test_offered_and_requested_credentials_are_issued(world, known):
    world.alice.post(f"/credentials/{known['offered'][1]}")
    for organizations, wallets in (known["offered"], known["requested"]):
        world.faber.put(f"/credentials/{organizations}")
        assert world.alice.get(f"/credentials/{wallets}")["state"] == "Issued"


def test_an_open_request_is_answered_and_valid(world, known):
    organizations, wallets = known["asked"]
    world.alice.put(f"/verifications/{wallets}/autoSelect")
    assert world.faber.get(f"/verifications/{organizations}")["isValid"] is True


def test_an_offer_and_a_request_by_link_are_taken(world, known):
    taken = world.alice.put_form(
        "/credentials/fromData", credentialData=known["offer_by_link"]
    )
    assert taken["state"] == "Requested"
    world.alice.put_form(
        "/verifications/fromData/autoSelect", verificationData=known["request_by_link"]
    )
    assert world.alice.newest("verifications")["state"] == "Accepted"


def test_old_invitations_are_accepted(world, known):
    bob = world.faber.hosts("Bob")
    for name in ("open_invitation", "multi_party"):
        assert bob.accepts_invitation(known[name])["state"] == "Connected"


def test_a_credential_is_revoked_and_not_valid_any_more(world, known):
    organizations, wallets = known["revocable"]
    world.faber.delete(f"/credentials/{organizations}")
    assert world.alice.get(f"/credentials/{wallets}")["state"] == "Revoked"


def test_webhooks_are_called_for_what_waited(world, known):
    with receiving() as receiver:
        Webhook.objects.update(url=receiver.url)
        waiting = (
            Delivery.pending().filter(webhook=known["webhooks"]["failing"]).count()
        )
        time_passes(days=1)
        worker_calls()
        assert waiting and len(receiver.calls) > waiting
    assert not Delivery.pending().filter(webhook=known["webhooks"]["failing"]).exists()


def test_a_write_that_was_repeated_gets_its_first_answer(world):
    body = {
        "definitionId": world.definition["definitionId"],
        "credentialValues": {"name": "Alice", "age": "28"},
    }
    again = world.faber.send(
        "post", "/credentials", body, **{"Idempotency-Key": "offer-1"}
    )
    assert (again.status_code, again["Idempotency-Replayed"]) == (200, "true")


def test_new_and_old_organizations_have_keys(world):
    assert Organization("New").hosts("Carol").wallet_id
    assert world.provider.get(f"/tenants/{world.branch}/keys")["accessToken"]
