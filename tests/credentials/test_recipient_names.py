"""For whom a credential is: as its definition says, or as the offer does."""

from datetime import timedelta

import pytest
from django.db.models import F

from credentials.models import Credential
from tenants.lifecycle.exchange_retention import delete_old_exchanges
from tenants.models import ApiKey, Scope, Tenant
from tests.support.errors import assert_error, error_of
from tests.support.people import Api
from tests.support.steps import step

NAMED = {"recipientAttribute": "name"}


@step
def licence(faber):
    return faber.defines("name", "year", **NAMED)


@step
def alice(faber):
    return faber.hosts()


def values(name="Ann Lee"):
    return {"name": name, "year": "2020"}


def name_in(credential):
    return credential.get("recipientName")


def test_the_attribute_of_the_definition_names_the_person(faber, licence, alice):
    assert licence["recipientAttribute"] == "name"
    assert name_in(faber.offers(alice, licence, values())) == "Ann Lee"
    by_link = {"definitionId": licence["definitionId"], "credentialValues": values()}
    assert name_in(faber.post("/credentials", by_link)) == "Ann Lee"
    for given in ("", "   "):
        assert name_in(faber.offers(alice, licence, values(given))) is None
    assert "recipientAttribute" not in faber.defines("name")
    assert name_in(faber.offers(alice, faber.defines("name"), {"name": "Ann"})) is None


def test_a_given_name_wins_also_over_a_connection(faber, licence, alice):
    offered = faber.offers(alice, licence, values(), recipientName="Ann, room 3")
    assert name_in(offered) == "Ann, room 3"
    assert name_in(faber.get(f"/credentials/{offered['credentialId']}")) == (
        "Ann, room 3"
    )


def test_values_that_follow_name_the_person_too(faber, licence, alice):
    offered = faber.offers(alice, licence)
    assert name_in(offered) is None
    alice.accepts_offer()
    faber.put(f"/credentials/{offered['credentialId']}", values())
    assert name_in(faber.get("/credentials")[0]) == "Ann Lee"


def test_another_attribute_names_the_people_of_later_offers(faber, alice):
    definition = faber.defines("name", "year")
    path = f"/definitions/credentials/{definition['definitionId']}"
    early = faber.offers(alice, definition, values("Ann Lee"))
    changed = faber.call("patch", path, {"recipientAttribute": "name"})
    assert changed["recipientAttribute"] == "name"
    assert changed["updatedAtUtc"] > definition["updatedAtUtc"]
    named = faber.offers(alice, definition, values("Bo Kim"))
    faber.call("patch", path, {"recipientAttribute": "year"})
    assert name_in(faber.offers(alice, definition, values("Cy Poe"))) == "2020"
    for offered, name in ((early, None), (named, "Bo Kim")):
        shown = faber.get(f"/credentials/{offered['credentialId']}")
        assert name_in(shown) == name
    for none in (None, ""):
        faber.call("patch", path, {"recipientAttribute": "name"})
        cleared = faber.call("patch", path, {"recipientAttribute": none})
        assert "recipientAttribute" not in cleared
    assert name_in(faber.offers(alice, definition, values("Di Fox"))) is None


def test_values_that_follow_a_change_name_the_person(faber, licence, alice):
    offered = faber.offers(alice, licence)
    path = f"/definitions/credentials/{licence['definitionId']}"
    faber.call("patch", path, {"recipientAttribute": "year"})
    alice.accepts_offer()
    faber.put(f"/credentials/{offered['credentialId']}", values())
    assert name_in(faber.get("/credentials")[0]) == "2020"


@pytest.mark.parametrize("name", ["Name", "salary", ["name"], "x" * 257])
def test_a_change_to_an_attribute_that_is_not_there_changes_nothing(
    faber, licence, name
):
    path = f"/definitions/credentials/{licence['definitionId']}"
    changes = {"recipientAttribute": name, "reference": "new"}
    error = error_of(faber.call, "patch", path, changes)
    assert_error(error, 400, "invalid_request")
    assert list(error.body["errors"]) == ["recipientAttribute"]
    kept = faber.get(path)
    assert kept["recipientAttribute"] == "name" and "reference" not in kept


@pytest.mark.parametrize("name", ["Name", "salary", 5, ["name"]])
def test_an_attribute_that_is_not_there_is_refused(faber, name):
    error = error_of(faber.defines, "name", "year", recipientAttribute=name)
    if name != 5:  # which is read as a text
        assert_error(error, 400, "invalid_request")
    assert list(error.body["errors"]) == ["recipientAttribute"]


def test_a_long_name_is_cut_and_a_longer_given_one_refused(faber, licence, alice):
    hostile = "\u202e<b>😀</b>" + "x" * 300
    assert name_in(faber.offers(alice, licence, values(hostile))) == hostile[:200]
    error = error_of(faber.offers, alice, licence, values(), recipientName="x" * 201)
    assert_error(error, 400, "invalid_request")


def test_a_name_is_a_value(faber, licence, alice):
    faber.offers(alice, licence, values())
    assert "recipientName" not in alice.get("/credentials")[0]
    row = Credential.objects.get(role="issuer")
    assert b"Ann" not in bytes(row.recipient_name)
    blind = set(Scope.values) - {Scope.VALUES}
    _, token = ApiKey.issue("access_token", faber.tenant, "A", scopes=sorted(blind))
    reader = Api(token, faber.made.subscription_key)
    assert "recipientName" not in reader.get("/credentials")[0]


def test_a_name_goes_with_the_values(faber, licence, alice):
    alice.receives(faber, licence, values())
    Tenant.objects.update(values_kept_days=30)
    Credential.objects.update(updated_at=F("updated_at") - timedelta(days=40))
    assert delete_old_exchanges() == 1
    assert name_in(faber.get("/credentials")[0]) is None
    assert Credential.objects.get(role="issuer").recipient_name is None
