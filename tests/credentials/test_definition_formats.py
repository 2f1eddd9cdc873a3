"""Definitions that are issued as SD-JWT VC, with AnonCreds or without."""

from datetime import date

import pytest

from credentials.models import (
    CredentialDefinition,
    DefinitionFormat,
    PublishedObject,
)
from credentials.models.definition_format import claim_value, is_met
from tenants import vault
from tests.support.errors import assert_error, error_of
from tests.support.pictures import picture, storage, uploads
from tests.support.steps import step
from wallets.models import issuer_url

__all__ = ["storage"]
OF_AGE = {
    "name": "age_over_18",
    "attributeName": "born",
    "predicateType": "<=",
    "predicateValue": "today-18y",
}
CARD = {"formats": ["dc+sd-jwt"], "claims": {"born": {"type": "date"}}}
DISPLAY = {
    "colors": {"background": "#1a2b3c"},
    "names": {"en": "Card", "de-CH": "Karte"},
    "labels": {"born": {"en": "Date of birth"}},
}


@step
def card(faber):
    return faber.defines("name", "born", derivedClaims=[OF_AGE], **CARD)


def test_a_definition_without_anoncreds_publishes_nothing(faber):
    before = PublishedObject.objects.count()
    made = faber.defines("name", "born", **CARD)
    assert PublishedObject.objects.count() == before
    row = CredentialDefinition.objects.get(definition_id=made["definitionId"])
    assert {vault.unseal(row, "private_key"), vault.unseal(row, "key_proof")} == {""}
    assert made["vct"] == f"{issuer_url(faber.tenant.pk)}/types/{row.pk}"
    assert made["validityDays"] == 365
    assert made["formats"] == ["dc+sd-jwt"]
    assert faber.get(f"/definitions/credentials/{row.definition_id}") == made
    assert made in faber.get("/definitions/credentials")


def test_it_cannot_be_offered_as_anoncreds(faber, card):
    body = {"definitionId": card["definitionId"], "automaticIssuance": True}
    body["credentialValues"] = {"name": "Alice", "born": "19900131"}
    error = error_of(faber.post, "/credentials", body)
    assert_error(error, 409, "format_missing")


def test_anoncreds_gets_the_other_format_later(faber):
    made = faber.defines("name")
    assert made["formats"] == ["anoncreds"] and "vct" not in made
    path = f"/definitions/credentials/{made['definitionId']}/formats"
    chosen = {"vct": "urn:example:card", "validityDays": 30, "display": {}}
    added = faber.put(path, chosen)
    assert added["formats"] == ["anoncreds", "dc+sd-jwt"]
    assert (added["vct"], added["validityDays"]) == ("urn:example:card", 30)
    assert_error(error_of(faber.put, path, {}), 409, "format_exists")
    other = faber.defines("name")
    path = f"/definitions/credentials/{other['definitionId']}/formats"
    error = error_of(faber.put, path, {"vct": "urn:example:card"})
    assert_error(error, 409, "type_taken")


def test_a_definition_of_both_is_made_at_once(faber):
    made = faber.defines("name", formats=["anoncreds", "dc+sd-jwt"], display={})
    assert made["formats"] == ["anoncreds", "dc+sd-jwt"]
    assert faber.post(f"/definitions/credentials/{made['schemaId']}", {})["tag"]


def test_two_organizations_may_have_one_type(faber, acme):
    for one in (faber, acme):
        assert one.defines("name", formats=["dc+sd-jwt"], vct="urn:x:y")["vct"]


def test_what_it_looks_like_is_kept(faber):
    made = faber.defines("name", "born", display=DISPLAY, **CARD)
    assert made["display"] == DISPLAY


def test_cards_of_anoncreds_have_a_look_that_changes(faber):
    made = faber.defines("name", "born", display=DISPLAY)
    assert made["display"] == DISPLAY and made["formats"] == ["anoncreds"]
    path = f"/definitions/credentials/{made['definitionId']}"
    before = list(PublishedObject.objects.values())
    look = {"title": "born", "face": ["name"], "names": {"en": "Pass"}}
    assert (
        faber.call("patch", path, {"display": look, "reference": "4711"})["display"]
        == look
    )
    assert faber.get(path)["reference"] == "4711"
    assert faber.call("patch", path, {"reference": "4712"})["display"] == look
    error = error_of(faber.call, "patch", path, {"display": {"title": "age"}})
    assert_error(error, 400, "invalid_request")
    assert "display" not in faber.call("patch", path, {"display": {}})
    assert list(PublishedObject.objects.values()) == before


def test_a_picture_is_one_that_the_account_has_uploaded(faber, acme, storage):
    made = faber.defines("name")
    path = f"/definitions/credentials/{made['definitionId']}"
    mine, theirs = (uploads(one, picture()).json() for one in (faber, acme))
    changed = faber.call("patch", path, {"display": {"picture": mine}})
    assert changed["display"] == {"picture": mine}
    elsewhere = "https://faber.example/assets/a.png"
    for other in (theirs, elsewhere, f"{mine}?x", mine.replace(".png", ".gif"), "x"):
        error = error_of(faber.call, "patch", path, {"display": {"picture": other}})
        assert_error(error, 400, "invalid_request")
        assert "/common/upload" in error.body["errors"]["display.picture"][0]
    assert faber.get(path)["display"] == {"picture": mine}


def test_a_look_of_the_former_version_is_still_read(faber):
    made = faber.defines("name", "born", **CARD)
    DefinitionFormat.objects.update(display=DISPLAY)
    path = f"/definitions/credentials/{made['definitionId']}"
    assert faber.get(path)["display"] == DISPLAY
    assert "display" not in faber.call("patch", path, {"display": {}})


IMPOSSIBLE = [
    ({"formats": []}, "formats"),
    ({"formats": ["ldp_vc"]}, "formats"),
    ({"formats": ["anoncreds"], "vct": "urn:a:b"}, "vct"),
    ({"vct": "http://faber.example"}, "vct"),
    ({"vct": "urn:a:b c"}, "vct"),
    ({"validityDays": 0}, "validityDays"),
    ({"validityDays": 3651}, "validityDays"),
    ({"display": {"logo": "http://faber.example/x.png"}}, "display.logo"),
    ({"display": {"colors": {"text": "red"}}}, "display.colors.text"),
    ({"display": {"names": {"<b>": "x"}}}, "display.names"),
    ({"display": {"labels": {"age": {"en": "x"}}}}, "display.labels"),
    ({"display": {"title": "age"}}, "display.title"),
    ({"display": {"face": ["born", "age"]}}, "display.face"),
    ({"display": {"face": ["born"] * 5}}, "display.face"),
    ({"display": {"back": ["age"]}}, "display.back"),
    ({"display": {"title": "name", "back": ["name"]}}, "display"),
    ({"display": {"picture": "https://faber.example/x.png"}}, "display.picture"),
    (
        {"display": {"colors": {"background": "#ffffff", "text": "#cccccc"}}},
        "display.colors.text",
    ),
    ({"derivedClaims": [OF_AGE | {"name": "name"}]}, "derivedClaims[0].name"),
    ({"derivedClaims": [OF_AGE | {"name": "vct"}]}, "derivedClaims[0].name"),
    ({"derivedClaims": [OF_AGE, OF_AGE]}, "derivedClaims[1].name"),
    (
        {"derivedClaims": [OF_AGE | {"attributeName": "name"}]},
        "derivedClaims[0].attributeName",
    ),
    (
        {"derivedClaims": [OF_AGE | {"predicateType": ">="}]},
        "derivedClaims[0].predicateValue",
    ),
    (
        {"derivedClaims": [OF_AGE | {"predicateType": "=="}]},
        "derivedClaims[0].predicateType",
    ),
    (
        {"derivedClaims": [OF_AGE | {"predicateValue": "soon"}]},
        "derivedClaims[0].predicateValue",
    ),
]


def test_what_cannot_be_issued_is_refused_by_name(faber, subtests):
    for body, field in IMPOSSIBLE:
        with subtests.test(str(body)):
            error = error_of(faber.defines, "name", "born", **CARD | body)
            assert_error(error, 400, "invalid_request")
            assert [name for name in error.body["errors"] if name.startswith(field)]
    assert not CredentialDefinition.objects.exists()


def test_reserved_names_are_no_attributes(faber):
    error = error_of(faber.defines, "name", "exp", formats=["dc+sd-jwt"])
    assert_error(error, 400, "invalid_request")
    assert faber.defines("name", "exp")["attributes"] == ["name", "exp"]


def test_a_boolean_is_true_or_false(faber, card):
    made = faber.defines("paid", claims={"paid": {"type": "boolean"}})
    assert made["claims"] == {"paid": {"type": "boolean"}}
    offer = {"definitionId": made["definitionId"]}
    error = error_of(
        faber.post, "/credentials", offer | {"credentialValues": {"paid": "yes"}}
    )
    assert_error(error, 400, "not_a_boolean")
    assert faber.post("/credentials", offer | {"credentialValues": {"paid": "true"}})


@pytest.mark.parametrize(
    ("born", "is_adult"), [("20080228", True), ("20080301", False)]
)
def test_a_claim_is_derived_on_the_day_of_issuance(born, is_adult):
    assert is_met(OF_AGE, born, date(2026, 2, 28)) is is_adult


def test_claims_have_the_type_of_their_attribute():
    assert claim_value("integer", "042") == 42
    assert claim_value("date", "19900131") == "1990-01-31"
    assert claim_value("boolean", "true") is True
    assert claim_value("boolean", "false") is False
    assert claim_value("", "42") == "42"
