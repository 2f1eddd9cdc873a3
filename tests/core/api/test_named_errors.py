"""Errors that operations name in the OpenAPI document and only chance would get else."""

from unittest import mock

import pytest

from core.errors import Unavailable
from tests.support.errors import assert_error, error_of
from tests.support.world import NAMES, TENANT, VALUES
from wallets import key_pool

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_holder_confirms_only_what_waits(world):
    path = f"/connections/{world.connection[1]}"
    assert_error(error_of(world.alice.put, path), 409, "nothing_to_confirm")


def test_a_holder_pings_and_proposes_on_a_connection_that_is_made(world):
    invited = world.alice.post("/connections")["connectionId"]
    error = error_of(world.alice.post, f"/connections/{invited}/ping")
    assert_error(error, 409, "wrong_state")
    path = f"/verifications/propose/{invited}"
    assert_error(error_of(world.alice.put, path, world.proposable), 409, "wrong_state")


def test_a_holder_leads_nobody_elsewhere(world):
    body = {"returnUrl": "https://elsewhere.example/"}
    error = error_of(world.alice.post, "/connections", body)
    assert_error(error, 400, "return_url_not_allowed")


def test_a_holder_gives_a_request_that_can_be_read(world):
    body = {"verificationData": "%", "parameters": []}
    error = error_of(world.alice.put, "/verifications/fromData", body)
    assert_error(error, 400, "bad_verificationData")
    path = "/verifications/fromData/availableCredentials"
    error = error_of(world.alice.post, path, body)
    assert_error(error, 400, "bad_verificationData")


def test_a_holder_shows_what_it_has_and_what_was_asked(world):
    other = world.faber.defines(*NAMES, name="Other")
    world.faber.offers(world.alice, other, VALUES, automaticIssuance=True)
    card = world.alice.accepts_offer()
    path = f"/verifications/{world.asked()[1]}"
    for chosen, code in (("x", "unknown_credential"), (card, "restriction_not_met")):
        selection = [{"policyName": "Name", "credentialId": chosen}]
        assert_error(error_of(world.alice.put, path, selection), 400, code)


def test_a_verifier_asks_for_something_on_a_connection_that_is_made(world):
    nothing = world.policy | {"attributes": [], "predicates": []}
    error = error_of(world.faber.post, "/verifications/policy", nothing)
    assert_error(error, 400, "invalid_policy")
    invited = world.faber.invites()["connectionId"]
    path = f"/verifications/policy/connections/{invited}"
    assert_error(error_of(world.faber.put, path, world.policy), 409, "wrong_state")


def test_a_schema_keeps_its_attributes(world):
    body = {"name": world.called.schema, "version": "1.0", "attributeNames": ["other"]}
    error = error_of(world.faber.post, "/definitions/schemas", body)
    assert_error(error, 409, "schema_exists")


def test_a_definition_of_a_known_schema_waits_for_a_key_too(world):
    schema = world.faber.get("/definitions/schemas")[0]["id"]
    refused = Unavailable("key_not_ready", "There is no key yet.")
    with mock.patch.object(key_pool, "reserve_key", side_effect=refused):
        error = error_of(world.faber.post, f"/definitions/credentials/{schema}", {})
    assert_error(error, 503, "key_not_ready")


def test_a_provider_gives_a_picture_and_a_known_network(world):
    error = error_of(world.provider.post, "/assets")
    assert_error(error, 400, "bad_image")
    body = TENANT | {"networkId": "far"}
    error = error_of(world.provider.post, "/tenants", body)
    assert_error(error, 400, "unknown_network")


def test_nobody_asks_or_pings_on_a_connection_that_was_ended(world):
    theirs, ours = world.connection
    policy = world.faber.post("/verificationPolicies", world.policy)["policyId"]
    world.faber.post(f"/connections/{theirs}/hangup")
    path = f"/verifications/policy/connections/{theirs}"
    error = error_of(world.faber.put, path, world.policy)
    assert_error(error, 409, "connection_gone")
    path = f"/verifications/policy/{policy}/connections/{theirs}"
    assert_error(error_of(world.faber.put, path), 409, "connection_gone")
    error = error_of(world.alice.post, f"/connections/{ours}/ping")
    assert_error(error, 409, "connection_gone")


def test_a_holder_declines_nothing_that_it_has_answered(world):
    path = f"/verifications/{world.answered()[1]}/decline"
    assert_error(error_of(world.alice.put, path), 409, "wrong_state")
