"""Revoke many: by ids or by a filter, with a count first, in one publication."""

from credentials.models import Credential, StatusList
from tests.support.errors import assert_error
from tests.support.steps import step

VALUES = {"name": "Alice", "year": "2001"}


@step
def alice(faber):
    return faber.hosts("Alice")


@step
def definition(faber):
    return faber.defines(*VALUES, supportRevocation=True)


@step
def issued(faber, alice, definition):
    """The ids of three credentials, the newest first."""
    for _ in range(3):
        alice.receives(faber, definition, VALUES)
    return [row["credentialId"] for row in faber.get("/credentials")]


def revokes(faber, path="/credentials/revoke", **body):
    return faber.post(path, body)


def test_all_of_a_definition_are_revoked_in_one_list(faber, alice, definition, issued):
    body = {"definitionId": definition["definitionId"]}
    lists = StatusList.objects.count()
    counted = revokes(faber, "/credentials/revoke?dryRun=true", **body)
    assert counted == {"issued": 3, "revoked": 0}
    assert not Credential.objects.filter(state="Revoked").exists()
    assert revokes(faber, **body) == {"issued": 0, "revoked": 3}
    assert StatusList.objects.count() <= lists + 1
    assert {row["state"] for row in alice.get("/credentials")} == {"Revoked"}
    unpublished = Credential.objects.filter(role="issuer", revocation_published_at=None)
    assert not unpublished.exists()
    assert revokes(faber, **body) == {"issued": 0, "revoked": 3}


def test_only_those_named_are_revoked_and_nobody_elses(faber, acme, definition, issued):
    """Named by their ids, or bounded by the time of their issue."""
    last, second, first = issued
    assert revokes(acme, credentialIds=[first]) == {"issued": 0, "revoked": 0}
    assert revokes(faber, credentialIds=[first]) == {"issued": 0, "revoked": 1}
    assert faber.get(f"/credentials/{second}")["state"] == "Issued"
    moment = faber.get(f"/credentials/{second}")["issuedAtUtc"]
    body = {"definitionId": definition["definitionId"]}
    assert revokes(faber, **body, issuedAfter=moment) == {"issued": 0, "revoked": 1}
    assert faber.get(f"/credentials/{last}")["state"] == "Revoked"
    assert faber.get(f"/credentials/{second}")["state"] == "Issued"
    assert revokes(faber, **body, issuedBefore=moment) == {"issued": 0, "revoked": 1}


def test_a_call_revokes_some_and_tells_the_rest(faber, definition, issued, monkeypatch):
    monkeypatch.setattr("credentials.revocation.REVOKED_AT_ONCE", 2)
    body = {"definitionId": definition["definitionId"]}
    assert revokes(faber, **body) == {"issued": 1, "revoked": 2}
    assert revokes(faber, **body) == {"issued": 0, "revoked": 3}
    assert_error(faber.send("post", "/credentials/revoke", {}), 400, "invalid_request")
