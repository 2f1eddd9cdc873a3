"""Reference and metadata: what the owner of an object notes on it."""

import json
import re
from datetime import timedelta

import pytest
from django.db.models import F

from connections.models import Connection
from core.errors import NoSuchObject
from credentials.models import Credential, CredentialDefinition
from tenants.lifecycle.exchange_retention import delete_old_exchanges
from tests.core.api.lists import walk
from tests.core.api.test_scopes import with_scopes
from tests.support.errors import assert_error
from tests.support.paths import DOCS
from tests.support.people import Organization
from tests.support.races import at_once
from tests.support.world import filled
from verifications.models import Verification, VerificationPolicy
from wallets.models import Wallet
from webhooks.models import Event

pytestmark = pytest.mark.django_db(transaction=True)
NOTES = {"reference": "order 4711", "metadata": {"desk": "3", "colour": "grün"}}
WALLET = "/api/{walletId}"
# By the path of the object: its list, and the member with its id.
OBJECTS = {
    "/connections/{connectionId}": ("/connections", "connectionId"),
    "/credentials/{credentialId}": ("/credentials", "credentialId"),
    "/verifications/{verificationId}": ("/verifications", "verificationId"),
    "/verificationPolicies/{policyId}": ("/verificationPolicies", "policyId"),
    "/definitions/credentials/{definitionId}": (
        "/definitions/credentials",
        "definitionId",
    ),
    "/api/wallets/{walletId}": ("/api/wallets", "walletId"),
    f"{WALLET}/connections/{{connectionId}}": (
        f"{WALLET}/connections",
        "connectionId",
    ),
    f"{WALLET}/credentials/{{credentialId}}": (
        f"{WALLET}/credentials",
        "credentialId",
    ),
    f"{WALLET}/verifications/{{verificationId}}": (
        f"{WALLET}/verifications",
        "verificationId",
    ),
}


def every_object(check):
    """A test of one world with each kind of object."""

    def test(world, subtests):
        for path in OBJECTS:
            with subtests.test(path):
                check(world, path)

    return test


def patch(who, path, **notes):
    return who.call("patch", path, notes)


def notes_of(answer):
    return {name: answer[name] for name in ("reference", "metadata") if name in answer}


def listed(world, path, **query):
    """The ids in the list of this kind of object."""
    place, key = OBJECTS[path]
    place = filled(place, world.known_ids())
    return [one[key] for one in world.faber.get(place, **query)]


@every_object
def test_an_owner_notes_changes_and_clears(world, path):
    place = filled(path, world.known_ids())
    before = patch(world.faber, place)
    assert notes_of(before) == {}
    noted = patch(world.faber, place, **NOTES)
    assert noted == before | NOTES | {"updatedAtUtc": noted["updatedAtUtc"]}
    assert noted["updatedAtUtc"] > before["updatedAtUtc"]
    merged = patch(world.faber, place, metadata={"desk": None, "floor": "2"})
    assert merged["metadata"] == {"colour": "grün", "floor": "2"}
    assert merged["reference"] == "order 4711"
    assert notes_of(patch(world.faber, place, reference=None)) == {
        "metadata": merged["metadata"]
    }
    assert notes_of(patch(world.faber, place, metadata=None)) == {}
    assert notes_of(patch(world.faber, place, metadata={"desk": None})) == {}


@every_object
def test_what_is_noted_is_found_sorted_and_paged_by_its_reference(world, path):
    place = filled(path, world.known_ids())
    list_path, key = OBJECTS[path]
    list_path = filled(list_path, world.known_ids())
    patch(world.faber, place, **NOTES)
    [found] = world.faber.get(list_path, reference="order%204711")
    assert notes_of(found) == NOTES
    assert world.faber.get(list_path, reference="order%204") == []
    [*_, last] = walk(world.faber, list_path, sort="reference", limit=1)
    assert last[key] == found[key]


@pytest.mark.parametrize("kind", ["connections", "credentials", "verifications"])
def test_a_change_of_notes_is_seen_by_a_sync(world, kind):
    [*_, oldest] = world.faber.get(f"/{kind}")
    newest = max(one["updatedAtUtc"] for one in world.faber.get(f"/{kind}"))
    patch(world.faber, f"/{kind}/{oldest[kind[:-1] + 'Id']}", reference="x")
    [found] = world.faber.get(f"/{kind}", updatedAfter=newest)
    assert found["reference"] == "x"


@every_object
def test_a_key_without_values_gets_no_metadata(world, path):
    place = filled(path, world.known_ids())
    scopes = ("read", "issue", "verify", "connect", "wallets")
    blind = with_scopes(world.faber, *scopes)
    assert notes_of(patch(blind, place, **NOTES)) == {"reference": "order 4711"}
    list_path = filled(OBJECTS[path][0], world.known_ids())
    [found] = blind.get(list_path, reference="order%204711")
    assert "metadata" not in found
    assert notes_of(patch(world.faber, place)) == NOTES


@every_object
def test_metadata_is_sealed(world, path):
    patch(world.faber, filled(path, world.known_ids()), **NOTES)
    kinds = (
        Connection, Credential, Verification, VerificationPolicy, CredentialDefinition,
        Wallet,
    )  # fmt: skip
    rows = [row for kind in kinds for row in kind.objects.exclude(metadata=None)]
    assert rows and all(b"desk" not in bytes(row.metadata) for row in rows)


BAD = {
    "reference": ["x" * 201, "a\nb", "\x7f", {}, "a\u2028b"],
    "metadata": [
        "text",
        {"": "x"},
        {"x" * 41: "x"},
        {"a\tb": "x"},
        {"a": ""},
        {"a": "x" * 501},
        {"a": "\x1b"},
        {"a": {}},
        {str(number): "x" for number in range(21)},
    ],
}


def test_what_cannot_be_noted_is_named(faber):
    path = f"/connections/{faber.invites(**NOTES)['connectionId']}"
    for name, value in [(name, one) for name, given in BAD.items() for one in given]:
        for method, place in (("patch", path), ("post", "/connections")):
            response = faber.send(method, place, {name: value})
            assert response.status_code == 400, value
            assert_error(response, 400, "invalid_request")
            [field] = response.json()["errors"]
            assert field.partition(".")[0] == name, value
    assert notes_of(faber.get(path)) == NOTES
    assert len(faber.get("/connections")) == 1


SENDS_POLICY = "/verifications/policy/{policyId}/connections/{connectionId}"


def test_every_call_refuses_what_cannot_be_noted(world):
    for path in (*OBJECTS, SENDS_POLICY):
        method = "put" if path == SENDS_POLICY else "patch"
        place = filled(path, world.known_ids())
        response = world.faber.send(method, place, {"metadata": {"desk": ""}})
        assert response.status_code == 400, path
        assert_error(response, 400, "invalid_request")
        assert [*response.json()["errors"]] == ["metadata.desk"], path


def test_no_note_has_half_a_character_or_none(faber):
    for text in ("\x00", "\ud800"):
        for notes in ({"reference": text}, {"metadata": {text: "x"}}):
            response = faber.send("post", "/connections", notes)
            assert_error(response, 400, "malformed_json")


def test_the_most_that_can_be_noted_is_taken(faber):
    most = {
        "reference": "ü" * 200,
        "metadata": {"ö" * 39 + chr(65 + number): "ß" * 500 for number in range(20)},
    }
    made = faber.invites(**most)
    assert notes_of(made) == most
    path = f"/connections/{made['connectionId']}"
    assert_error(
        faber.send("patch", path, {"metadata": {"one": "more"}}),
        400,
        "invalid_request",
    )
    [first, *_] = most["metadata"]
    changed = patch(faber, path, metadata={first: None, "one": "more"})
    assert len(changed["metadata"]) == 20


def made_by(world):
    """What each call that creates an object answers, with NOTES in its body."""
    faber, alice = world.faber, world.alice
    connection, mine = world.connection
    policy = f"/verifications/policy/{world.stored_policy}"
    over = f"connections/{connection}"
    schema = {"name": "Cat", "version": "1.0", "attributes": ["name"]}
    office = Organization("Office")
    office.post("/tenants/publicDid")
    did = office.put("/tenants/publicDid", {"acceptsRequests": True})["did"]
    by_id = {"verificationDefinitionId": world.stored_policy}
    yield faber.post("/api/wallets", NOTES)
    yield faber.post("/connections", NOTES)
    yield alice.post("/connections", NOTES)
    yield faber.post("/connections/requests", {"did": did} | NOTES)
    yield alice.post("/connections/requests", {"did": did} | NOTES)
    yield faber.post("/definitions/credentials", schema | NOTES)
    to = {"connectionId": connection}
    yield faber.post("/credentials", world.wish | to | NOTES)
    yield faber.post("/credentials", world.wish | NOTES)
    yield alice.put(f"/credentials/propose/{mine}", world.wish | NOTES)
    yield faber.post("/verificationPolicies", world.policy | NOTES)
    yield faber.put(f"{policy}/{over}", NOTES)
    yield faber.put(policy, NOTES)
    yield faber.post(f"/verifications/policy/{over}", world.policy | NOTES)
    yield faber.post("/verifications/policy", world.policy | NOTES)
    yield faber.post("/verifications", by_id | to | NOTES)
    yield faber.post("/verifications", by_id | NOTES)
    yield alice.put(f"/verifications/propose/{mine}", world.proposable | NOTES)


def test_every_call_that_creates_takes_notes_and_each_event_has_the_reference(world):
    Event.objects.all().delete()
    for answer in made_by(world):
        assert notes_of(answer) == NOTES, answer
    [offer, *_] = world.alice.get("/credentials", state="Offered")
    world.alice.post(f"/credentials/{offer['credentialId']}")
    bodies = [json.loads(body) for body in Event.objects.values_list("body", flat=True)]
    noted = [one for one in bodies if one["data"].get("reference") == "order 4711"]
    assert {one["message_type"] for one in noted} >= {
        "connection_invited", "connection_negotiating", "credential_offered",
        "credential_proposed", "verification_requested", "verification_proposed",
        "credential_request",
    }  # fmt: skip
    assert not any("desk" in json.dumps(one) for one in bodies)


def test_the_other_party_sees_no_notes(world):
    offered, received = world.offered()
    patch(world.faber, f"/credentials/{offered}", **NOTES)
    patch(world.alice, f"/credentials/{received}", reference="mine")
    world.alice.post(f"/credentials/{received}")
    assert world.alice.get(f"/credentials/{received}")["reference"] == "mine"
    assert "metadata" not in world.alice.get(f"/credentials/{received}")
    assert notes_of(world.faber.get(f"/credentials/{offered}")) == NOTES


def test_a_finished_exchange_takes_notes_and_emits_nothing(world):
    offered, received = world.offered()
    world.alice.post(f"/credentials/{received}/decline")
    events = Event.objects.count()
    answer = patch(world.faber, f"/credentials/{offered}", **NOTES)
    assert (answer["state"], notes_of(answer)) == ("Rejected", NOTES)
    assert Event.objects.count() == events


def test_pairs_that_are_set_at_once_are_all_kept(faber):
    path = f"/api/wallets/{faber.hosts().wallet_id}"

    def note(number):
        return lambda: patch(faber, path, metadata={f"pair {number}": "x"})

    at_once(*(note(number) for number in range(6)))
    assert len(patch(faber, path)["metadata"]) == 6


def test_notes_outlast_a_transition_at_the_same_time(faber):
    alice, definition = faber.hosts(), faber.defines("name")
    made = faber.offers(alice, definition, {"name": "Alice"}, automaticIssuance=True)
    path = f"/credentials/{made['credentialId']}"
    at_once(alice.accepts_offer, lambda: patch(faber, path, **NOTES))
    answer = faber.get(path)
    assert (answer["state"], notes_of(answer)) == ("Issued", NOTES)


def test_a_repeated_change_with_one_key_is_made_once(faber):
    path = f"/connections/{faber.invites()['connectionId']}"
    once = {"Idempotency-Key": "once"}
    first = faber.send("patch", path, {"reference": "a"}, **once)
    patch(faber, path, reference="b")
    again = faber.send("patch", path, {"reference": "a"}, **once)
    assert again.content == first.content
    assert faber.get(path)["reference"] == "b"


def test_what_was_deleted_takes_no_notes(faber):
    made = faber.invites()
    row = Connection.objects.get(connection_id=made["connectionId"])
    path = f"/connections/{made['connectionId']}"
    faber.delete(path)
    assert_error(faber.send("patch", path, NOTES), 404, "not_found")
    definition = CredentialDefinition.objects.get(
        definition_id=faber.defines("name", **NOTES)["definitionId"]
    )
    faber.delete(f"/definitions/credentials/{definition.definition_id}")
    definition.refresh_from_db()
    assert (definition.reference, definition.metadata) == ("", None)
    assert not Connection._base_manager.filter(pk=row.pk).exists()


def test_the_organizations_own_wallet_takes_no_notes(faber):
    own = faber.get("/tenants")[0].get("ownWalletId") or str(faber.tenant.pk)
    response = faber.send("patch", f"/api/wallets/{own}", NOTES)
    assert_error(response, 404, "not_found")


@pytest.mark.parametrize("model", [Credential, Verification])
def test_a_change_of_notes_is_no_transition(world, model):
    """What waits for a transition, or counts days since one, does not see it."""
    made = world.credential if model is Credential else world.asked()
    row = model.objects.get(pk=made[0])
    kind = model.OBJECT_TYPE
    for text in "ab":
        patch(world.faber, f"/{kind}s/{made[0]}", reference=text)
    noted = model.objects.get(pk=row.pk)
    assert noted.updated_at > row.updated_at
    assert noted.in_state_since == row.updated_at
    if model is Verification:
        world.alice.auto_selects()
    else:
        world.faber.delete(f"/credentials/{made[0]}")
    moved = model.objects.get(pk=row.pk)
    assert moved.in_state_since == moved.updated_at > noted.updated_at


def test_a_definition_that_was_deleted_meanwhile_keeps_no_notes(faber):
    faber.defines("name")
    found = CredentialDefinition.objects.get()
    found.remove()
    with pytest.raises(NoSuchObject):
        found.change_notes({"reference": "order 4711"})
    assert CredentialDefinition.objects.get(pk=found.pk).reference == ""


def test_a_patch_of_nothing_changes_nothing(world):
    path = f"/credentials/{world.credential[0]}"
    before = world.faber.get(path)
    assert patch(world.faber, path) == before == world.faber.get(path)


def test_notes_put_off_no_deletion(faber):
    alice, definition = faber.hosts(), faber.defines("name")
    made = faber.offers(
        alice, definition, {"name": "Alice"}, automaticIssuance=True, **NOTES
    )
    alice.accepts_offer()
    path = f"/credentials/{made['credentialId']}"
    Credential.objects.update(updated_at=F("updated_at") - timedelta(days=3))
    patch(faber, path, metadata={"floor": "2"})
    type(faber.tenant).objects.update(values_kept_days=2)
    delete_old_exchanges()
    kept = faber.get(path)
    assert "values" not in kept and "metadata" not in kept
    assert kept["reference"] == "order 4711"
    type(faber.tenant).objects.update(exchanges_kept_days=2)
    delete_old_exchanges()
    assert faber.get("/credentials") == []


def test_the_example_of_the_docs_answers_what_it_says(world):
    page = (DOCS / "api.md").read_text()
    [(sent, answered)] = re.findall(
        r"-d '(\{\"reference\".*)'\n +\{.*…,(\"reference\".*)$", page, re.MULTILINE
    )
    path = f"/credentials/{world.credential[0]}"
    patch(world.faber, path, metadata={"floor": "2"})
    answer = patch(world.faber, path, **json.loads(sent))
    assert notes_of(answer) == json.loads("{" + answered)
