"""Typical mistakes of callers: each response says what is wrong and how to fix it."""

import json
from typing import Any, NamedTuple

import pytest

pytestmark = pytest.mark.django_db(transaction=True)
UNKNOWN = "0196f3a2-2222-7000-8000-000000000001"
VALUES = {"name": "Alice", "degree": "Maths", "age": "28"}
POLICY = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}
ADULT = {"policyName": "Adult", "attributeName": "age", "predicateType": ">="}
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


class Mistake(NamedTuple):
    """A call, and texts that its response must contain.

    `{name}` in path and body is an id of the world.
    """

    method: str
    path: str
    status: int
    code: str
    says: tuple[str, ...]
    body: Any = None
    content_type: str = JSON
    keys: str = "both"
    field: str | None = None
    header: tuple[str, str] | None = None


OFFER = {"definitionId": "{definition}", "connectionId": "{connection}"}
MISTAKES = {
    "no key": Mistake(
        "get", "/connections", 401, "unauthorized", keys="none",
        says=("No key came", "Authorization: bearer <token>",
              "X-Service-Subscription-Key: <key>")),
    "one key: no subscription key": Mistake(
        "get", "/connections", 401, "unauthorized", keys="token only",
        says=("The subscription key is missing", "X-Service-Subscription-Key: <key>")),
    "one key: no access token": Mistake(
        "get", "/connections", 401, "unauthorized", keys="subscription only",
        says=("The access token is missing", "Authorization: bearer <token>")),
    "keys swapped": Mistake(
        "get", "/connections", 401, "unauthorized", keys="swapped",
        says=("swapped", "begins with agt_", "begins with ags_")),
    "a provider key as token": Mistake(
        "get", "/connections", 401, "unauthorized", ("provider key", "/provider/v1"),
        keys="provider"),
    "an access token at the provider API": Mistake(
        "get", "/provider/v1/tenants", 401, "unauthorized",
        ("access token", "begins with agp_")),
    "trailing slash": Mistake(
        "get", "/connections/", 404, "not_found",
        ("no slash at the end", "/connections", "id is empty")),
    "/api/v1/…, with another method": Mistake(
        "post", "/api/v1/credentials", 405, "method_not_allowed",
        ("Use /credentials",), body={}),
    "/api/v1/…, as a wallet": Mistake(
        "get", "/api/v1/connections", 404, "not_found",
        ("walletId", "Use /connections")),
    "/api/v1/…, not at all": Mistake(
        "get", "/api/v1/definitions/schemas", 404, "not_found",
        ("Use /definitions/schemas",)),
    "another method": Mistake(
        "delete", "/connections", 405, "method_not_allowed", ("GET, POST",)),
    "a read of what only changes": Mistake(
        "get", "/messages", 405, "method_not_allowed", ("POST",)),
    "trailing comma": Mistake(
        "post", "/connections", 400, "malformed_json", ("comma", "line 2, column 16"),
        body='{\n"name": "Alice",\n}'),
    "a form body": Mistake(
        "post", "/connections", 400, "malformed_json",
        (FORM, "Content-Type: application/json"),
        body="name=Alice", content_type=FORM),
    "a misspelt member": Mistake(
        "post", "/connections", 200, "", (),
        body={"nmae": "Alice", "multi party": True, "name": "A"},
        header=("X-Ignored-Members", "nmae, multi%20party")),
    "a misspelt member that is required": Mistake(
        "post", "/credentials", 400, "invalid_request",
        ("definitionId: It is missing.",),
        body={"definitonId": "{definition}"}, field="definitonId",
        header=("X-Ignored-Members", "definitonId")),
    "a misspelt member inside of others": Mistake(
        "post", "/verificationPolicies", 200, "", (),
        body=POLICY | {"attributes": [{"policyName": "a"}, {
            "policyName": "b",
            "restrictions": [{"issuerDID": "x", "issuerDid": "y"}]}]},
        header=("X-Ignored-Members", "attributes[1].restrictions[0].issuerDID")),
    "a misspelt list filter": Mistake(
        "get", "/connections?stat=Invited&state=Invited&conection=", 200, "", (),
        header=("X-Ignored-Parameters", "stat, conection")),
    "a misspelt list filter beside a wrong one": Mistake(
        "get", "/connections?lmit=5&limit=x", 400, "invalid_request",
        ("limit: Give a whole number.",), field="lmit",
        header=("X-Ignored-Parameters", "lmit")),
    "a misspelt member beside wrong values": Mistake(
        "post", "/credentials", 400, "wrong_attributes", ("missing: age",),
        body=OFFER | {"credentialValues": {"name": "A", "degree": "B"},
                      "automaticIssuence": True}, field="automaticIssuence"),
    "an object instead of the selections": Mistake(
        "put", "/api/{wallet}/verifications/" + UNKNOWN, 400, "invalid_request",
        ("Give a list.",), body={"policyName": "a"}),
    "a form that cannot be read": Mistake(
        "post", "/custodian/v1/api/{wallet}/connections/invitation", 400,
        "malformed_form", ("boundary",), body="x",
        content_type="multipart/form-data"),
    "attributes as objects": Mistake(
        "post", "/definitions/credentials", 400, "invalid_request",
        ('attributes[0]', "a text", "an object"),
        body={"name": "D", "version": "1.0", "attributes": [{"name": "age"}]},
        field="attributes[0]"),
    "values as objects": Mistake(
        "post", "/credentials", 400, "invalid_request",
        ("credentialValues.name", "a text"),
        body=OFFER | {"credentialValues": VALUES | {"name": {"value": "Alice"}}},
        field="credentialValues.name"),
    "a list of attributes as an object": Mistake(
        "post", "/verificationPolicies", 400, "invalid_request",
        ("attributes", "a list"),
        body=POLICY | {"attributes": {"policyName": "name"}}, field="attributes"),
    "missing and superfluous values": Mistake(
        "post", "/credentials", 400, "wrong_attributes", ("missing: age", "shoe"),
        body=OFFER | {"credentialValues": {"name": "A", "degree": "B", "shoe": "40"}},
        field="credentialValues"),
    "an unknown operator": Mistake(
        "post", "/verificationPolicies", 400, "invalid_request", (">=, >, <=, <, ==",),
        body=POLICY | {"predicates": [
            ADULT | {"predicateType": "!=", "predicateValue": 18}]},
        field="predicates[0].predicateType"),
    "a text under a predicate": Mistake(
        "post", "/verificationPolicies", 400, "invalid_request",
        ("whole number", "compare whole numbers only"),
        body=POLICY | {"predicates": [ADULT | {"predicateValue": "adult"}]},
        field="predicates[0].predicateValue"),
    "wrong state: issued before it is requested": Mistake(
        "put", "/credentials/{credential}", 409, "wrong_state",
        ("is Offered", "needs Requested", "the holder accepts the offer")),
    "wrong state: an offer without a connection": Mistake(
        "post", "/credentials", 409, "wrong_state",
        ("is Invited", "needs Connected", "the other side accepts the invitation"),
        body=OFFER | {"connectionId": "{invited}"}),
    "wrong state: a request without a connection": Mistake(
        "post", "/verifications/policy/connections/{invited}", 409, "wrong_state",
        ("is Invited", "needs Connected"), body=POLICY),
    "wrong state: revoked before it is issued": Mistake(
        "delete", "/credentials/{credential}", 409, "wrong_state",
        ("is Offered", "needs Issued", "issue it")),
    "unknown id": Mistake(
        "get", f"/credentials/{UNKNOWN}", 404, "not_found",
        ("no credential with the id", "in your organization", "another organization's")),
    "other organization's id": Mistake(
        "get", "/credentials/{foreign}", 404, "not_found",
        ("no credential with the id", "in your organization", "another organization's")),
    "date of a filter": Mistake(
        "get", "/connections?createdAfter=31.1.2026", 400, "invalid_request",
        ("createdAfter", "2026-01-31T08:00:00Z"), field="createdAfter"),
    "date of a filter, with a bare +": Mistake(
        "get", "/connections?createdAfter=2026-01-31T08:00:00+01:00", 400,
        "invalid_request", ("%2B",), field="createdAfter"),
    "date in a body": Mistake(
        "post", "/verificationPolicies", 400, "invalid_request",
        ("2026-01-31T08:00:00Z",),
        body=POLICY | {"revocationRequirement": {"validAt": "yesterday"}},
        field="revocationRequirement.validAt"),
    "page cursor": Mistake(
        "get", "/connections?cursor=2", 400, "invalid_cursor",
        ("Follow the Link header",), field="cursor"),
    "webhook URL: no scheme": Mistake(
        "post", "/webhooks", 400, "invalid_request",
        ("url", "absolute http or https address"), body={"url": "office.example/hook"},
        field="url"),
    "webhook URL: not public": Mistake(
        "post", "/webhooks", 400, "address_refused", ("not public",),
        body={"url": "https://10.0.0.1/hook"}, field="url"),
}  # fmt: skip


@pytest.fixture
def world(faber, acme):
    alice, bob = faber.hosts(), acme.hosts("Bob")
    definition, foreign = faber.defines(*VALUES), acme.defines(*VALUES)
    return {
        "definition": definition["definitionId"],
        "credential": faber.offers(alice, definition, VALUES)["credentialId"],
        "connection": alice.known_as(faber),
        "wallet": alice.wallet_id,
        "invited": faber.invites()["connectionId"],
        "foreign": acme.offers(bob, foreign, VALUES)["credentialId"],
    }


def filled(text, world):
    for name, value in world.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def keys_of(faber, which):
    token, key = faber.made.access_token, faber.made.subscription_key
    token, key = {
        "both": (token, key), "none": ("", ""), "token only": (token, ""),
        "subscription only": ("", key), "swapped": (key, token),
        "provider": (faber.made.provider_key, key),
    }[which]  # fmt: skip
    named = {"Authorization": f"bearer {token}"} if token else {}
    return named | ({"X-Service-Subscription-Key": key} if key else {})


def test_each_typical_mistake_is_answered_with_how_to_mend_it(faber, world):
    wrong = {}
    for name, mistake in MISTAKES.items():
        body = mistake.body if mistake.body is not None else ""
        body = body if isinstance(body, str) else json.dumps(body)
        answer = faber.client.generic(
            mistake.method.upper(),
            filled(mistake.path, world),
            filled(body, world),
            mistake.content_type,
            headers=keys_of(faber, mistake.keys),
        )
        if problem := problem_of(mistake, answer):
            wrong[name] = f"{problem}: {answer.status_code} {answer.content!r:.400}"
    assert not wrong, "\n".join(map(": ".join, wrong.items()))


def problem_of(mistake, answer):
    """What the answer lacks, or None."""
    if answer.status_code != mistake.status:
        return f"the status is not {mistake.status}"
    if mistake.header and answer.headers.get(mistake.header[0]) != mistake.header[1]:
        return f"{mistake.header} is not among {dict(answer.headers)}"
    if mistake.status == 200:
        return None
    body = answer.json()
    if body["code"] != mistake.code:
        return f"the code is not {mistake.code}"
    if missing := [words for words in mistake.says if words not in body["message"]]:
        return f"{missing} is not said"
    if mistake.field and mistake.field not in body.get("errors", {}):
        return f"{mistake.field} is not named"
    return None


def test_what_is_spelt_right_names_nothing_as_ignored(faber):
    body = {"connection_id": "a", "multi_party": None}
    answer = faber.send("post", "/connections", body)
    assert "X-Ignored-Members" not in answer.headers
    answer = faber.send("get", "/connections?limit=1&state=")
    assert "X-Ignored-Parameters" not in answer.headers


def test_names_that_are_ignored_make_no_header_of_their_own(faber):
    names = ["a\r\nX-Evil: 1", "ä", "", "x" * 10_000, *(f"m{n}" for n in range(100))]
    answer = faber.send("post", "/connections", dict.fromkeys(names, 1))
    assert answer.status_code == 200 and "X-Evil" not in answer.headers
    named = answer.headers["X-Ignored-Members"]
    assert named.startswith("a%0D%0AX-Evil%3A%201, %C3%A4, ")
    assert named.endswith(", ...") and len(named) < 3000
