"""What an Indy ledger answers is bounded, as anybody may have written it."""

import pytest

from credentials.ledgers.indy import reads

ISSUER = "F" * 22
REGISTRY_ID = f"{ISSUER}:4:{ISSUER}:3:CL:1:t:CL_ACCUM:0"


@pytest.fixture
def answers(monkeypatch):
    """Says what the ledger answers next."""

    def answer(data):
        monkeypatch.setattr(
            reads, "send_read", lambda *asked: {"data": data, "seqNo": 7}
        )

    return answer


def registry_of(places):
    value = {"maxCredNum": places, "issuanceType": "ISSUANCE_BY_DEFAULT"}
    return {"revocDefType": "CL_ACCUM", "credDefId": "d", "tag": "0", "value": value}


@pytest.mark.parametrize(
    "places, is_found", [(0, False), (-1, False), (10, True), (11, False)]
)
def test_a_registry_is_as_large_as_tails_may_be(answers, settings, places, is_found):
    settings.MAX_PLACES = 10
    answers(registry_of(places))
    assert bool(reads.fetch_registry(None, REGISTRY_ID)) is is_found


def test_a_list_changes_no_place_that_its_registry_has_not(answers):
    newest = {"value": {"accum": "1 0"}, "txnTime": 9}
    answers({"value": {"issued": [], "revoked": [2, 4, -1, 10**9], "accum_to": newest}})
    registry = {"issuerId": ISSUER, **registry_of(3)}
    found = reads.fetch_status_list(None, REGISTRY_ID, registry, 9)
    assert found["revocationList"] == [0, 0, 1, 0]


@pytest.mark.parametrize(
    "fetch", [reads.fetch_schema, reads.fetch_definition, reads.fetch_registry]
)
@pytest.mark.parametrize(
    "object_id",
    ["1:3:CL:12:tag", f"{ISSUER}:3:CL:1:t\0x", "creddef:sov:x", "", "x" * 9000],
)
def test_no_node_is_asked_for_what_is_no_id(monkeypatch, fetch, object_id):
    """A prover writes which definitions a verifier looks up."""
    monkeypatch.setattr(reads, "send_read", lambda *asked: pytest.fail("asked"))
    assert fetch(None, object_id) is None
