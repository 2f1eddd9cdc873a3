"""The one error shape, and what each wrong use of the API answers."""

import re
from urllib.parse import quote

import pytest
from django.urls import get_resolver

from agency.api.serializers import RESERVED_WORDS
from organizations.provisioning import create_organization
from tests.support.errors import assert_error, error_of
from tests.support.people import Api, Holder

pytestmark = pytest.mark.django_db(transaction=True)
UNKNOWN = "0196f3a2-2222-7000-8000-000000000001"
ATTRIBUTE = {"policyName": "Name", "attributeNames": ["name"]}
PREDICATE = {"attributeName": "age", "predicateType": ">=", "predicateValue": 18}
POLICY = {"name": "Policy", "version": "1.0", "attributes": [ATTRIBUTE]}


def test_what_is_not_there_is_404(faber):
    for path in (
        f"/connections/{UNKNOWN}",
        f"/credentials/{UNKNOWN}",
        "/credentials/nonsense",
        f"/definitions/credentials/{UNKNOWN}",
        f"/verificationPolicies/{UNKNOWN}",
        f"/verifications/{UNKNOWN}",
        f"/api/{UNKNOWN}/connections",
        "/nowhere",
    ):
        error = error_of(faber.get, path)
        assert_error(error, 404, "not_found")
        assert set(error.body) == {"code", "message"}, path


def test_a_bad_policy_names_the_field(faber):
    for changes, field in (
        ({"version": "one"}, "version"),
        ({"version": None}, "version"),
        ({"attributes": []}, "attributes"),
        ({"predicates": [PREDICATE | {"predicateValue": "adult"}]}, "predicates[0]"),
        ({"predicates": [PREDICATE | {"predicateType": "!="}]}, "predicates[0]"),
        ({"predicates": [PREDICATE | {"policyName": "Name"}]}, "predicates[0]"),
        ({"attributes": [ATTRIBUTE | {"restrictions": [{}]}]}, "attributes[0]"),
        ({"attributes": "name"}, "attributes"),
    ):
        error = error_of(faber.post, "/verificationPolicies", POLICY | changes)
        assert error.status == 400, changes
        assert any(one.startswith(field) for one in error.body["errors"]), error.body
    assert faber.get("/verificationPolicies") == []


def test_wrong_attribute_names_are_400_and_nothing_is_offered(faber):
    alice, definition = faber.hosts(), faber.defines("name", "degree", "age")
    right = {"name": "Alice", "degree": "Maths", "age": "28"}
    for values, named in (
        ({"name": "Alice", "degree": "Maths"}, "missing: age"),
        (right | {"shoe": "40"}, "not in the schema: shoe"),
        ({"Name": "Alice", "degree": "Maths", "age": "28"}, "missing: name"),
    ):
        error = error_of(faber.offers, alice, definition, values)
        assert_error(error, 400, "wrong_attributes")
        assert named in error.body["errors"]["credentialValues"]
    assert alice.get("/credentials") == faber.get("/credentials") == []


def test_a_bad_definition_names_the_field(faber):
    good = {"name": "a", "version": "1.0", "attributes": ["a"]}
    for changes, field in (
        ({"name": None}, "name"),
        ({"name": "a:b"}, "name"),
        ({"version": "v1"}, "version"),
        ({"attributes": []}, "attributes"),
        ({"attributes": ["First Name", "firstname"]}, "attributes"),
        ({"attributes": ["master_secret"]}, "attributes"),
        ({"tag": "x" * 65}, "tag"),
        ({"attributes": [f"a{n}" for n in range(126)]}, "attributes"),
    ):
        body = {name: one for name, one in (good | changes).items() if one is not None}
        error = error_of(faber.post, "/definitions/credentials", body)
        assert_error(error, 400, "invalid_request")
        assert field in error.body["errors"], changes
    assert faber.get("/definitions/credentials") == []


def test_a_bad_invitation_is_400_and_says_what_to_give(faber):
    alice = faber.hosts()
    for given in (
        "",
        "not base64!",
        "e30=",
        '{"@type": "x"}',
        "https://x.example/i/1",
    ):
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
    "~x", "-a",
    "a\\b", '"', "犬", "🐕", "...", "x" * 128,
]  # fmt: skip


def test_a_connection_is_called_as_the_caller_chooses(faber, subtests):
    alice = faber.hosts()
    for chosen in CHOSEN:
        with subtests.test(chosen):
            assert_connection_is_called(faber, alice, chosen)


def assert_connection_is_called(faber, alice, chosen):
    path = f"/connections/{quote(chosen, safe='')}"
    invited = faber.invites(connectionId=chosen)
    assert invited["connectionId"] == chosen
    alice.accepts_invitation(invited["invitationUrl"])
    assert faber.get(path)["state"] == "Connected"
    policy = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}
    asked = faber.post(f"/verifications/policy{path}", policy)
    assert asked["connectionId"] == chosen
    found = faber.get("/verifications", connectionId=quote(chosen, safe=""))
    assert [one["verificationId"] for one in found] == [asked["verificationId"]]
    faber.delete(path)
    assert_error(error_of(faber.get, path), 404, "not_found")


def test_a_wallet_is_called_as_the_caller_chooses(faber, subtests):
    for chosen in CHOSEN:
        with subtests.test(chosen):
            assert_wallet_is_called(faber, chosen)


def assert_wallet_is_called(faber, chosen):
    assert faber.post("/api/wallets", {"walletId": chosen})["walletId"] == chosen
    alice = Holder(faber, quote(chosen, safe=""))
    assert alice.meets(faber)["state"] == "Connected"
    assert len(alice.get("/connections")) == 1
    faber.delete(f"/api/wallets/{quote(chosen, safe='')}")
    assert_error(error_of(alice.get, "/connections"), 404, "not_found")


def test_a_call_with_a_chosen_id_is_made_once_however_it_is_encoded(faber):
    faber.hosts().accepts_invitation(faber.invites(connectionId="+1 é")["invitation"])
    faber.headers["Idempotency-Key"] = "one call"
    body = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}
    paths = ("%2B1%20%C3%A9", "+1%20%c3%a9")
    made = [
        faber.post(f"/verifications/policy/connections/{path}", body) for path in paths
    ]
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


def test_wrong_states_are_409(faber):
    alice, definition = faber.hosts(), faber.defines("name", "degree", "age")
    values = {"name": "Alice", "degree": "Maths", "age": "28"}
    offered = faber.offers(alice, definition, values)
    error = error_of(faber.put, f"/credentials/{offered['credentialId']}")
    assert_error(error, 409, "wrong_state")
    held = alice.accepts_offer()
    assert_error(error_of(alice.post, f"/credentials/{held}"), 409, "wrong_state")
    invited = faber.invites()["connectionId"]
    body = {"definitionId": definition["definitionId"], "connectionId": invited}
    assert_error(error_of(faber.post, "/credentials", body), 409, "wrong_state")
    assert (
        error_of(
            faber.post, f"/verifications/policy/connections/{invited}", POLICY
        ).status
        == 409
    )


def test_a_call_without_the_right_keys_is_401_with_one_body(faber, acme):
    made, other = faber.made, acme.made
    right = (made.access_token, made.subscription_key)
    assert Api(*right).get("/connections") == []
    faber.tenant.keys.filter(kind="access_token").first().revoke()
    for token, subscription in (
        ("", ""),
        (other.access_token, ""),
        ("agt_" + "x" * 38, made.subscription_key),
        (other.access_token, made.subscription_key),
        right,
    ):
        error = error_of(Api(token, subscription).get, "/connections")
        assert_error(error, 401, "unauthorized")
        assert "Authorization: bearer" in error.body["message"]


def test_the_subscription_key_is_optional_only_for_later_clients(faber):
    del faber.headers["X-Streetcred-Subscription-Key"]
    for sent in (
        {},
        {"X-Streetcred-Subscription-Key": ""},
        {"X-Service-Subscription-Key": " "},
    ):
        for path in ("/credentials/v1/connections", "/wallet/v1/api/wallets"):
            assert faber.send("get", path, **sent).json() == [], (path, sent)
        for path in (
            "/connections",
            "/agency/v1/connections",
            "/custodian/v1/api/wallets",
        ):
            assert faber.send("get", path, **sent).status_code == 401, (path, sent)


def test_a_setting_lists_where_the_subscription_key_is_optional(faber, acme, settings):
    settings.SUBSCRIPTION_KEY_OPTIONAL = ("/agency/v1/",)
    key = "X-Streetcred-Subscription-Key"
    faber.headers |= {key: "", "X-Trinsic-Subscription-Key": acme.headers[key]}
    assert error_of(faber.get, "/agency/v1/connections").status == 401, (
        "one that is sent counts"
    )
    del faber.headers["X-Trinsic-Subscription-Key"]
    assert faber.get("/agency/v1/connections") == []
    for path in ("/connections", "/credentials/v1/connections"):
        assert error_of(faber.get, path).status == 401


def test_the_subscription_key_goes_under_each_known_name(faber):
    key = faber.headers.pop("X-Streetcred-Subscription-Key")
    for header in (
        "X-Service-Subscription-Key",
        "X-Trinsic-Subscription-Key",
        "X-Scrd-Api-Key",
        "XStreetcredSubscriptionKey",
    ):
        assert faber.send("get", "/connections", **{header: key}).json() == []
        wrong = {header: key[:-1] + ("a" if key[-1] != "a" else "b")}
        refused = faber.send("get", "/credentials/v1/connections", **wrong)
        assert refused.status_code == 401, header


def test_the_scheme_word_may_be_written_in_any_way(faber):
    for form in ("Bearer {}", "bearer {}", "BEARER {}", "{}"):
        faber.headers["Authorization"] = form.format(faber.made.access_token)
        assert faber.get("/connections") == []


HOSTILE = [
    "[" * 5000, "{", '{"name": NaN}', '"\\ud800"', '{"a": "\\u0000"}', b"\xff", "[]", "1",
    '{"ownerName": 1e999}', '{"ownerName": {"a": 1}}',
]  # fmt: skip


def test_hostile_json_is_400(faber):
    for body in HOSTILE:
        response = faber.client.post(
            "/api/wallets", data=body, content_type="text/json", headers=faber.headers
        )
        assert response.status_code == 400, (body, response.content)
        assert response.json().keys() - {"errors"} == {"code", "message"}


def test_a_body_over_the_limit_is_413(faber, settings):
    body = {"ownerName": "x" * settings.MAX_BODY_BYTES}
    error = error_of(faber.post, "/api/wallets", body)
    assert_error(error, 413, "body_too_large")


def test_no_body_and_null_mean_an_empty_object(faber):
    for body in ("", "null", "{}"):
        response = faber.client.post(
            "/api/wallets",
            data=body,
            content_type="application/json-patch+json",
            headers=faber.headers,
        )
        assert response.status_code == 200
    assert len(faber.get("/api/wallets")) == 3


def test_a_known_organization_cannot_be_told_from_an_unknown_one(faber, acme):
    alice = faber.hosts()
    mine = faber.invites()["connectionId"]
    known = error_of(acme.get, f"/connections/{mine}")
    unknown = error_of(acme.get, f"/connections/{UNKNOWN}")
    assert known.body == unknown.body
    error = error_of(acme.get, f"/api/{alice.wallet_id}/credentials")
    assert_error(error, 404, "not_found")


def id_of_call(faber, given):
    return faber.send("get", "/connections", **{"X-Request-Id": given})["X-Request-Id"]


def test_every_answer_carries_a_request_id(faber):
    assert re.fullmatch(
        r"my-request-1\.[0-9a-f]{16}", id_of_call(faber, "my-request-1")
    )
    assert len(faber.send("get", "/nowhere")["X-Request-Id"]) == 36


def test_an_id_that_could_not_be_logged_is_not_taken_over(faber):
    for given in ("short", "x" * 48, "with space", "a/b/c/d/e"):
        assert len(id_of_call(faber, given)) == 36, given


def test_nobody_can_give_two_requests_the_same_id(faber):
    first = id_of_call(faber, "my-request-1")
    assert id_of_call(faber, "my-request-1") != first
    assert id_of_call(faber, first) != first


def test_organizations_have_the_same_ids_side_by_side():
    one, other = (create_organization(name) for name in ("One", "Other"))
    for made in (one, other):
        api = Api(made.access_token, made.subscription_key)
        api.post("/api/wallets", {"walletId": "rex"})
        assert [wallet["walletId"] for wallet in api.get("/api/wallets")] == ["rex"]
