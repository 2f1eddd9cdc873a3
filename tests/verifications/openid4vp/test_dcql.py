"""Queries in DCQL from strangers: what they may cost, and what they may leave out."""

import base64

import pytest

from core.errors import AgencyError
from tests.support.sd_jwt import (
    VCT,
    Issuer,
    with_constraints_twice,
    with_wrong_version,
)
from verifications.openid4vp import dcql
from wallets.jose import sd_jwt

CLAIM = {"id": "d", "path": ["degree"]}
QUERY = {
    "id": "a",
    "format": "dc+sd-jwt",
    "meta": {"vct_values": [VCT]},
    "claims": [CLAIM],
}
CARD = sd_jwt.read(Issuer().present())


def counted(monkeypatch, part, name):
    calls, known = [], getattr(part, name)

    def count(*given):
        calls.append(given)
        return known(*given)

    monkeypatch.setattr(part, name, count)
    return calls


def refused(query):
    with pytest.raises(AgencyError) as found:
        dcql.read_items(query)
    assert found.value.code == "bad_token"


def read_one(**changes):
    [[wanted]] = dcql.read_items({"credentials": [QUERY | changes]}).values()
    return wanted


def test_a_query_is_read_once_however_often_it_is_named(monkeypatch):
    calls = counted(monkeypatch, dcql, "_read_query")
    one_set = {"options": [["a"]] * dcql.MAX_SETS}
    sets = [one_set] * dcql.MAX_SETS
    items = dcql.read_items({"credentials": [QUERY], "credential_sets": sets})
    assert {name: len(one) for name, one in items.items()} == {"a": 1}
    assert len(calls) == 1


def test_the_lists_in_lists_are_bounded():
    many = [["a"] * (dcql.MAX_QUERIES + 1)]
    refused({"credentials": [QUERY], "credential_sets": [{"options": many}]})
    sets = [["d"] * (dcql.MAX_CLAIMS + 1)]
    refused({"credentials": [QUERY | {"claim_sets": sets}]})


def test_a_claim_is_looked_up_once_in_a_credential(monkeypatch):
    other = {"id": "x", "path": ["x"]}
    sets = [["d", "x"]] * dcql.MAX_SETS
    wanted = read_one(claims=[CLAIM, other], claim_sets=sets)
    calls = counted(monkeypatch, sd_jwt, "find_claims")
    assert wanted.paths_shown_by(CARD) is None
    assert len(calls) == 2


@pytest.mark.parametrize("name", [5, None, True, ["a"]])
def test_an_id_is_text(name):
    refused({"credentials": [QUERY | {"id": name}]})


@pytest.mark.parametrize("value", [None, {}, ["Maths"]])
def test_values_are_scalars(value):
    refused({"credentials": [QUERY | {"claims": [CLAIM | {"values": [value]}]}]})


def test_a_value_is_of_its_kind():
    for value, fits in (("Maths", True), ("x", False), (1, False), (True, False)):
        wanted = read_one(claims=[CLAIM | {"values": ["y", value]}])
        assert (wanted.paths_shown_by(CARD) is not None) is fits


@pytest.mark.parametrize("changes", [{"claims": []}, {"claim_sets": [[]]}])
def test_no_claim_need_be_asked_for(changes):
    wanted = read_one(**changes)
    assert wanted.names == [] and wanted.paths_shown_by(CARD) == []


@pytest.mark.parametrize("x5c", [None, "x", with_wrong_version, with_constraints_twice])
def test_a_card_with_a_strange_chain_is_of_no_authority(x5c):
    given = x5c
    if callable(x5c):
        der = base64.b64decode(Issuer().x5c[0])
        given = [base64.b64encode(x5c(der)).decode()]
    header = CARD.token.header | {"x5c": given}
    card = CARD._replace(token=CARD.token._replace(header=header))
    aki = [{"type": "aki", "values": ["AAAA"]}]
    assert read_one(trusted_authorities=aki).paths_shown_by(card) is None


@pytest.mark.parametrize("path", [["degree"], ["a", None]])
def test_what_is_asked_for_in_all_queries_is_bounded(path):
    """A card may have many claims, and a request many queries for each."""
    limit = dcql.MAX_WILDCARDS if None in path else dcql.MAX_CLAIMS

    def asked(count):
        claims = [[{"path": path}] * (count // 2), [{"path": path}] * -(-count // 2)]
        return {
            "credentials": [
                QUERY | {"id": f"q{number}", "claims": some}
                for number, some in enumerate(claims)
            ]
        }

    assert len(dcql.read_items(asked(limit))) == 2
    refused(asked(limit + 1))


def test_a_path_that_selects_very_much_selects_nothing(monkeypatch):
    steps = counted(monkeypatch, sd_jwt, "_step_into")
    most = sd_jwt.MAX_FOUND
    grid = {"a": [[0] * 1000] * 250}
    assert sd_jwt.find_claims(grid, ("a", None, None)) == []
    assert len(steps) < 20
    assert len(sd_jwt.find_claims({"a": [0] * most}, ("a", None))) == most
