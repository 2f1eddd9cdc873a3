"""ACA-Py issues to a hosted wallet, and verifies what it shows."""

import time

from tests.interop.peers.agency import reaches, the_offer, the_request
from tests.interop.peers.conftest import VALUES
from tests.interop.peers.definitions import revoke
from tests.support.processes import eventually

LEVEL = {"name": "level"}
NAME = {"name": "Full Name"}


def now():
    return int(time.time())


def asks(proof, connection_id, attributes=(), predicates=(), **more):
    asked = {"name": "Proof", "version": "1.0", **more}
    asked["requested_attributes"] = {f"a{n}": one for n, one in enumerate(attributes)}
    asked["requested_predicates"] = {f"p{n}": one for n, one in enumerate(predicates)}
    return proof.ask(connection_id, asked)


def shows(holder):
    """The wallet answers what it is asked, by itself."""
    asked = the_request(holder)
    holder.put(f"/verifications/{asked}/autoSelect")
    return asked


def restricted(item, definition_id):
    return item | {"restrictions": [{"cred_def_id": definition_id}]}


def test_a_hosted_wallet_gets_a_credential_of_acapy(alice, badge, their_definition):
    ours, _ = badge()
    shown = alice.get(f"/credentials/{ours}")
    assert (shown["values"], shown["definitionId"]) == (VALUES, their_definition)


def test_acapy_hears_that_an_offer_is_declined_and_takes_one_back(
    alice, visit, issuance, their_definition
):
    record = issuance.offer(visit[1], their_definition, VALUES)
    alice.post(f"/credentials/{the_offer(alice)}/decline")
    issuance.until(record, "abandoned")
    record = issuance.offer(visit[1], their_definition, VALUES)
    ours = the_offer(alice)
    issuance.decline(record)
    reaches(alice, f"/credentials/{ours}", "Rejected")


def test_acapy_verifies_values_and_a_predicate(
    alice, visit, badge, proof, their_definition
):
    badge()
    predicate = {"name": "level", "p_type": ">=", "p_value": 7}
    items = restricted(NAME, their_definition), restricted(predicate, their_definition)
    record = asks(proof, visit[1], [items[0]], [items[1]])
    ours = shows(alice)
    assert proof.verdict(record) is True
    eventually(lambda: alice.get(f"/verifications/{ours}").get("isValid") is True)


def test_acapy_refuses_a_predicate_that_does_not_hold(
    alice, visit, badge, proof, their_definition
):
    badge()
    predicate = {"name": "level", "p_type": ">", "p_value": 7}
    record = asks(proof, visit[1], [], [restricted(predicate, their_definition)])
    shows(alice)
    assert proof.verdict(record) is False


def test_acapy_hears_that_a_request_is_declined_and_takes_one_back(alice, visit, proof):
    record = asks(proof, visit[1], [LEVEL])
    alice.put(f"/verifications/{the_request(alice)}/decline")
    proof.until(record, "abandoned")
    record = asks(proof, visit[1], [LEVEL])
    ours = the_request(alice)
    proof.decline(record)
    reaches(alice, f"/verifications/{ours}", "Rejected")


def test_a_revocation_by_acapy_is_seen_by_the_wallet_and_its_verifier(
    indy_pool, alice, visit, badge, issuance, proof, their_definition
):
    ours, record = badge(level="1")
    item = {"name": "level", "p_type": "<", "p_value": 2}
    item = restricted(item, their_definition)
    before = asks(proof, visit[1], [], [item], non_revoked={"to": now()})
    shows(alice)
    assert proof.verdict(before) is True
    revoke(issuance, record, visit[1])
    reaches(alice, f"/credentials/{ours}", "Revoked")
    indy_pool.settle()
    after = asks(proof, visit[1], [], [item], non_revoked={"to": now()})
    shows(alice)
    assert proof.verdict(after) is False
