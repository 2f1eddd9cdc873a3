"""The one error shape, and what each wrong use of the API answers."""

import re
from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver

from core.api.serializers import RESERVED_WORDS
from tests.support.errors import assert_error, error_of
from tests.support.people import Holder

pytestmark = pytest.mark.django_db(transaction=True)
UNKNOWN = "0196f3a2-2222-7000-8000-000000000001"
VALUES = {"name": "Alice", "degree": "Maths", "age": "28"}
ATTRIBUTE = {"policyName": "Name", "attributeNames": ["name"]}
PREDICATE = {"attributeName": "age", "predicateType": ">=", "predicateValue": 18}
MEMBERS = {"code", "message", "requestId", "documentationUrl"}
DEFINITION = {"name": "a", "version": "1.0", "attributes": ["a"]}
POLICY = {"name": "Policy", "version": "1.0", "attributes": [ATTRIBUTE]}


def test_what_is_not_there_is_404(faber):
    kinds = "connections credentials definitions/credentials verifications"
    paths = [f"/{kind}/{UNKNOWN}" for kind in [*kinds.split(), "verificationPolicies"]]
    for path in (*paths, f"/api/{UNKNOWN}/connections", "/credentials/x", "/nowhere"):
        error = error_of(faber.get, path)
        assert_error(error, 404, "not_found")
        assert set(error.body) == MEMBERS, path


WRONG = {
    "/verificationPolicies": (POLICY, (
        ({"version": "one"}, "version"),
        ({"version": None}, "version"),
        ({"attributes": []}, "attributes"),
        ({"predicates": [PREDICATE | {"predicateValue": "adult"}]}, "predicates[0]"),
        ({"predicates": [PREDICATE | {"predicateType": "!="}]}, "predicates[0]"),
        ({"predicates": [PREDICATE | {"policyName": "Name"}]}, "predicates[0]"),
        ({"attributes": [ATTRIBUTE | {"restrictions": [{}]}]}, "attributes[0]"),
        ({"attributes": "name"}, "attributes"),
    )),
    "/definitions/credentials": (DEFINITION, (
        ({"name": None}, "name"),
        ({"name": "a:b"}, "name"),
        ({"version": "v1"}, "version"),
        ({"attributes": []}, "attributes"),
        ({"attributes": ["First Name", "firstname"]}, "attributes"),
        ({"attributes": ["master_secret"]}, "attributes"),
        ({"tag": "x" * 65}, "tag"),
        ({"attributes": [f"a{n}" for n in range(126)]}, "attributes"),
    )),
}  # fmt: skip


@pytest.mark.parametrize("path", WRONG)
def test_a_bad_body_names_the_field(faber, path):
    good, wrong = WRONG[path]
    for changes, field in wrong:
        error = error_of(faber.post, path, good | changes)
        assert error.status == 400, changes
        assert any(one.startswith(field) for one in error.body["errors"]), error.body
    assert faber.get(path) == []


def test_wrong_attribute_names_are_400_and_nothing_is_offered(faber):
    alice, definition = faber.hosts(), faber.defines("name", "degree", "age")
    for values, named in (
        ({"name": "Alice", "degree": "Maths"}, "missing: age"),
        (VALUES | {"shoe": "40"}, "not in the schema: shoe"),
        ({"Name": "Alice", "degree": "Maths", "age": "28"}, "missing: name"),
    ):
        error = error_of(faber.offers, alice, definition, values)
        assert_error(error, 400, "wrong_attributes")
        assert named in error.body["errors"]["credentialValues"]
    assert alice.get("/credentials") == faber.get("/credentials") == []


def test_a_bad_invitation_is_400_and_says_what_to_give(faber):
    alice = faber.hosts()
    address = "https://x.example/i/1"
    for given in ("", "not base64!", "e30=", '{"@type": "x"}', address):
        error = error_of(alice.accepts_invitation, given)
        assert error.status == 400, given
        assert "invitation" in error.body["errors"]
    assert alice.get("/connections/invitations") == []


BAD_IDS = [
    "", " ", " a", "a ", "a/b", "a?b", "a#b", ".", "..", "a\n", "a\tb", "a\u200b",
    "do\u0308mein", "x" * 129, True, ["a"], "wallets", "fromData",
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "name"), [("/api/wallets", "walletId"), ("/connections", "connectionId")]
)
def test_a_bad_chosen_id_is_400(faber, path, name):
    for chosen in BAD_IDS:
        error = error_of(faber.post, path, {name: chosen})
        assert error.status == 400, chosen
        [sentence] = error.body["errors"][name]
        known = "1 to 128 printable characters", "a word of our paths"
        assert any(words in sentence for words in known), sentence


CHOSEN = [
    "unique id", "+1 555 1234", "room 2", "dömain", "a%20b", "a+b", "50 %", "a&b=c;d",
    "~x", "-a", "a\\b", '"', "犬", "🐕", "...", "x" * 128,
]  # fmt: skip


def test_a_connection_is_called_as_the_caller_chooses(faber):
    for chosen in CHOSEN:
        path = f"/connections/{quote(chosen, safe='')}"
        assert faber.invites(connectionId=chosen)["connectionId"] == chosen
        assert faber.get(path)["connectionId"] == chosen
        faber.delete(path)
        assert_error(error_of(faber.get, path), 404, "not_found")
    chosen = '+1 a%20b&c=d; 50 % "犬\\'
    alice, path = faber.hosts(), f"/connections/{quote(chosen)}"
    alice.accepts_invitation(faber.invites(connectionId=chosen)["invitationUrl"])
    assert faber.get(path)["state"] == "Connected"
    asked = faber.post(f"/verifications/policy{path}", POLICY)
    assert asked["connectionId"] == chosen
    found = faber.get("/verifications", connectionId=quote(chosen))
    assert [one["verificationId"] for one in found] == [asked["verificationId"]]


def test_a_wallet_is_called_as_the_caller_chooses(faber):
    for chosen in CHOSEN:
        assert faber.post("/api/wallets", {"walletId": chosen})["walletId"] == chosen
        alice = Holder(faber, quote(chosen, safe=""))
        assert alice.get("/connections") == []
        faber.delete(f"/api/wallets/{quote(chosen, safe='')}")
        assert_error(error_of(alice.get, "/connections"), 404, "not_found")


def test_a_call_with_a_chosen_id_is_made_once_however_it_is_encoded(faber):
    faber.hosts().accepts_invitation(faber.invites(connectionId="+1 é")["invitation"])
    faber.headers["Idempotency-Key"] = "one call"
    path = "/verifications/policy/connections/"
    made = [faber.post(path + id, POLICY) for id in ("%2B1%20%C3%A9", "+1%20%c3%a9")]
    assert made[0] == made[1]


def test_no_word_of_a_path_can_be_chosen():
    """Words in one path where another has an id: the wrong route could respond."""
    every = {tuple(route.split("/")) for route in routes(get_resolver())}
    chosen = {"<str:connectionId>", "<str:walletId>"}
    words = {
        other[index]
        for one in every
        for index, segment in enumerate(one)
        for other in every
        if segment in chosen and could_be(one, other, index)
    }
    assert words and words <= RESERVED_WORDS


def routes(resolver, prefix=""):
    for pattern in resolver.url_patterns:
        route = f"{prefix}{pattern.pattern}"
        if hasattr(pattern, "url_patterns"):
            yield from routes(pattern, route)
        else:
            yield route


def could_be(one, other, index):
    """Whether a path of the first route, with a word as the id, matches the other."""
    if len(one) != len(other) or other[index].startswith("<"):
        return False
    pairs = [*zip(one, other, strict=True)]
    del pairs[index]
    return all(a == b or "<" in (a[:1], b[:1]) for a, b in pairs)


def test_a_chosen_id_is_taken_once(faber):
    faber.post("/api/wallets", {"walletId": "rex@example.org"})
    error = error_of(faber.post, "/api/wallets", {"walletId": "rex@example.org"})
    assert_error(error, 409, "wallet_id_taken")
    faber.invites(connectionId="rex")
    assert error_of(faber.invites, connectionId="rex").code == "connection_id_taken"


def test_a_setting_lists_where_the_subscription_key_is_optional(faber, acme, settings):
    settings.SUBSCRIPTION_KEY_OPTIONAL = ("/agency/v1/",)
    key = "X-Streetcred-Subscription-Key"
    faber.headers |= {key: "", "X-Trinsic-Subscription-Key": acme.headers[key]}
    assert error_of(faber.get, "/agency/v1/connections").status == 401, "it counts"
    del faber.headers["X-Trinsic-Subscription-Key"]
    assert faber.get("/agency/v1/connections") == []
    for path in ("/connections", "/credentials/v1/connections"):
        assert error_of(faber.get, path).status == 401


def test_the_subscription_key_goes_under_each_known_name(faber):
    key = faber.headers.pop("X-Streetcred-Subscription-Key")
    named = [f"X-{word}-Subscription-Key" for word in ("Service", "Trinsic")]
    for header in (*named, "X-Scrd-Api-Key", "XStreetcredSubscriptionKey"):
        assert faber.send("get", "/connections", **{header: key}).json() == []
        wrong = {header: key[:-1] + ("a" if key[-1] != "a" else "b")}
        refused = faber.send("get", "/credentials/v1/connections", **wrong)
        assert refused.status_code == 401, header


HOSTILE = [
    "[" * 5000, "{", '{"name": NaN}', '"\\ud800"', '{"a": "\\u0000"}', b"\xff", "[]", "1",
    '{"ownerName": 1e999}', '{"ownerName": {"a": 1}}',
]  # fmt: skip


def posted(faber, body, kind):
    return faber.client.post("/api/wallets", body, kind, headers=faber.headers)


def test_hostile_json_is_400(faber):
    for body in HOSTILE:
        response = posted(faber, body, "text/json")
        assert response.status_code == 400, (body, response.content)
        assert response.json().keys() - {"errors"} == MEMBERS


def test_a_body_over_the_limit_is_413(faber, settings):
    body = {"ownerName": "x" * settings.MAX_BODY_BYTES}
    assert_error(error_of(faber.post, "/api/wallets", body), 413, "body_too_large")


def test_no_body_and_null_mean_an_empty_object(faber):
    for body in ("", "null", "{}"):
        assert posted(faber, body, "application/json-patch+json").status_code == 200
    assert len(faber.get("/api/wallets")) == 3


def test_a_known_organization_cannot_be_told_from_an_unknown_one(faber, acme):
    alice = faber.hosts()
    mine = faber.invites()["connectionId"]
    known = error_of(acme.get, f"/connections/{mine}")
    unknown = error_of(acme.get, f"/connections/{UNKNOWN}")
    assert known.body["message"].replace(mine, UNKNOWN) == unknown.body["message"]
    error = error_of(acme.get, f"/api/{alice.wallet_id}/credentials")
    assert_error(error, 404, "not_found")


def test_an_error_has_the_id_of_its_request_and_the_page_of_its_code(
    faber, client, settings
):
    refused = [
        faber.send("get", "/credentials/x"),
        faber.send("get", "/connections?limit=x"),
        client.get("/connections"),
        client.get("/nowhere"),
        client.get("/connections?name=%00"),
        client.post("/connections", b"x" * 300_000, "application/json"),
    ]
    assert {one.status_code for one in refused} == {404, 400, 401, 413}
    for response in refused:
        error = response.json()
        assert error["requestId"] == response["X-Request-Id"]
        page, _, anchor = error["documentationUrl"].partition("#")
        assert anchor == error["code"]
        path = page.removeprefix(settings.PUBLIC_URL)
        assert f'id="{anchor}"' in client.get(path).content.decode(), path


def test_a_404_says_what_else_of_the_organization_has_the_id(world):
    faber, acme, ids = world.faber, world.acme, world.api_ids()
    for path, given, said in (
        ("/verifications", "connectionId", "It is the id of a connection."),
        ("/connections", "policyId", "It is the id of a verification policy."),
        ("/webhooks", "kioskId", "It is the id of a kiosk."),
        ("/credentials", "webhookId", "It is the id of a webhook."),
        ("/definitions/credentials", "walletId", "It is the id of a wallet."),
        ("/verificationPolicies", "definitionId", "of a credential definition."),
    ):
        error = error_of(faber.get, f"{path}/{quote(ids[given], safe='')}")
        assert f"with the id {ids[given]} in" in error.body["message"]
        assert said in error.body["message"], path
        foreign = error_of(acme.get, f"{path}/{quote(ids[given], safe='')}")
        assert "It is the id" not in foreign.body["message"]


def test_a_404_names_the_hosted_wallet_that_has_the_object(faber):
    alice, definition = faber.hosts(), faber.defines("name")
    faber.offers(alice, definition, {"name": "Alice"})
    [offer] = alice.get("/credentials")
    error = error_of(faber.get, f"/credentials/{offer['credentialId']}")
    said = f"a credential of the hosted wallet {alice.wallet_id}."
    assert said in error.body["message"]


def test_a_404_looks_for_the_id_by_one_statement(faber):
    faber.get("/connections")
    with CaptureQueriesContext(connection) as captured:
        error_of(faber.get, f"/credentials/{UNKNOWN}")
    assert len([one for one in captured if "UNION" in one["sql"]]) == 1


def id_of_call(faber, given):
    return faber.send("get", "/connections", **{"X-Request-Id": given})["X-Request-Id"]


def test_every_answer_carries_a_request_id_of_its_own(faber):
    first = id_of_call(faber, "my-request-1")
    assert re.fullmatch(r"my-request-1\.[0-9a-f]{16}", first)
    assert id_of_call(faber, "my-request-1") != first
    assert id_of_call(faber, first) != first
    assert len(faber.send("get", "/nowhere")["X-Request-Id"]) == 36
    # What could not be logged is not taken over.
    for given in ("short", "x" * 48, "with space", "a/b/c/d/e"):
        assert len(id_of_call(faber, given)) == 36, given


def test_organizations_have_the_same_ids_side_by_side(faber, acme):
    for api in (faber, acme):
        api.post("/api/wallets", {"walletId": "rex"})
        assert [wallet["walletId"] for wallet in api.get("/api/wallets")] == ["rex"]
