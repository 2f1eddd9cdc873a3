"""Declared attribute types of a definition, enforced in offers and issuance."""

from credentials.models import CredentialDefinition
from tests.support.errors import assert_error, error_of
from tests.support.steps import step

CLAIMS = {"claims": {"age": {"type": "integer"}}}
ENDS = {"valid until": {"type": "date"}}
NOT_INTEGERS = ["", "unknown", "7_0", "٧٠", " 70", "1.0", "2147483648", "0" * 81]


@step
def licence(faber):
    return faber.defines("name", "age", **CLAIMS)


@step
def alice(faber):
    return faber.hosts()


def values(age):
    return {"name": "Alice", "age": age}


def test_a_definition_shows_what_it_declares(faber, licence):
    assert licence["claims"] == CLAIMS["claims"]
    assert faber.get(f"/definitions/credentials/{licence['definitionId']}") == licence
    again = faber.post(f"/definitions/credentials/{licence['schemaId']}", CLAIMS)
    assert again["claims"] == CLAIMS["claims"]
    assert "claims" not in faber.defines("name", "age")
    assert "claims" not in faber.defines("name", "age", claims={})


IMPOSSIBLE = [
    ({"salary": {"type": "integer"}}, "claims.salary"), ([], "claims"),
    ({"Age": {"type": "integer"}}, "claims.Age"), ({"age": "integer"}, "claims.age"),
    ({"age": {"type": "number"}}, "claims.age.type"), ({"age": {}}, "claims.age.type"),
]  # fmt: skip


def test_a_declaration_that_cannot_be_is_refused_by_name(faber, acme, subtests):
    path = f"/definitions/credentials/{acme.defines('name', 'age')['schemaId']}"
    for claims, field in IMPOSSIBLE:
        with subtests.test(str(claims)):
            error = error_of(faber.defines, "name", "age", claims=claims)
            assert_error(error, 400, "invalid_request")
            assert [name for name in error.body["errors"] if name.startswith(field)]
            of_a_schema = error_of(acme.post, path, {"claims": claims})
            assert_error(of_a_schema, 400, "invalid_request")
            assert CredentialDefinition.objects.get().tenant == acme.tenant


def test_integers_are_issued_as_written_and_no_text(faber, licence, alice, subtests):
    for age in NOT_INTEGERS:
        with subtests.test(age):
            error = error_of(faber.offers, alice, licence, values(age))
            assert_error(error, 400, "not_an_integer")
            assert list(error.body["errors"]) == ["credentialValues.age"]
            assert not alice.get("/credentials")
    for age in ("28", "-5", "01067", "-0", "2147483647", "-2147483648", "+5"):
        with subtests.test(age):
            faber.offers(alice, licence, values(age), automaticIssuance=True)
            assert alice.newest("credentials")["values"] == values(age)
    alice.accepts_offer()
    seen = alice.newest("credentials")
    assert (seen["state"], seen["values"]) == ("Issued", values("+5"))


@step
def pass_card(faber):
    """A definition with a date."""
    return faber.defines("name", "valid until", claims=ENDS)


NO_DAYS = ["", "2026-01-31", "20260230", "2026W011", "٢٠٢٦٠١٣١", "260131", "+20260131"]


def test_a_date_is_issued_as_a_number_and_no_text(faber, pass_card, alice, subtests):
    assert pass_card["claims"] == ENDS
    for day in NO_DAYS:
        with subtests.test(day):
            given = {"name": "Alice", "valid until": day}
            error = error_of(faber.offers, alice, pass_card, given)
            assert_error(error, 400, "not_a_date")
            assert list(error.body["errors"]) == ["credentialValues.valid until"]
    given = {"name": "Alice", "valid until": "20280229"}
    alice.receives(faber, pass_card, given)
    assert alice.newest("credentials")["values"] == given
    name = pass_card["definitionId"]
    known = CredentialDefinition.integer_attributes(faber.tenant.pk, {name})
    assert known == {name: {"validuntil"}}


def test_a_text_is_not_issued_whatever_was_offered_or_proposed(faber, licence, alice):
    for offered, text in ((values("28"), "old"), (None, "")):
        path = f"/credentials/{faber.offers(alice, licence, offered)['credentialId']}"
        alice.accepts_offer()
        assert error_of(faber.put, path, values(text)).code == "not_an_integer"
    faber.put(path, values("29"))
    assert alice.newest("credentials")["values"]["age"] == "29"
    body = {"definitionId": licence["definitionId"], "credentialValues": values("old")}
    alice.put(f"/credentials/propose/{alice.known[faber][1]}", body)
    path = f"/credentials/{faber.get('/credentials')[0]['credentialId']}/offer"
    assert error_of(faber.put, path).code == "not_an_integer"


def test_another_organization_knows_what_was_declared_here(faber, acme, licence):
    def known(name):
        return CredentialDefinition.integer_attributes(acme.tenant.pk, {name})

    name = licence["definitionId"]
    assert known(name) == {name: {"age"}}
    faber.delete(f"/definitions/credentials/{name}")
    assert known(name) == {name: {"age"}}
    assert known("none") == {}
