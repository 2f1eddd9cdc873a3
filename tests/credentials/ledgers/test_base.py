"""The ids of what is on a ledger."""

import pytest

from credentials.ledgers.base import schema_id_of, split_schema_id


@pytest.mark.parametrize("name", ["Degree", "a:b", "x:2:y"])
def test_the_id_of_a_schema_is_split_into_what_it_is_made_of(name):
    schema = {"issuerId": "WgWxqztrNooG92RXvxSTWv", "name": name, "version": "1.0"}
    split = split_schema_id(schema_id_of(schema))
    assert split == (schema["issuerId"], name, "1.0")


@pytest.mark.parametrize(
    "other", ["", "x", "a:b:c:d", "did:indy:x:y/SCHEMA/n/1", ":2:"]
)
def test_an_id_of_another_form_has_none_of_them(other):
    assert split_schema_id(other) == ("", "", "")
