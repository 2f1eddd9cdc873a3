"""A holder proposes a credential, and the issuer offers it."""

import pytest

from tests.interop.peers.acapy import Refused
from tests.interop.peers.agency import reaches
from tests.interop.peers.conftest import EITHER, VALUES
from tests.interop.peers.definitions import is_anoncreds
from tests.interop.peers.exchanges import Issuance, Proof
from tests.interop.peers.test_acapy_proposals import wallet_shows
from tests.support.processes import eventually

OF_INDY = [
    one for one in EITHER if one != ("current", "2.0")
]  # whose API refuses that there
BETTER = VALUES | {"level": "9"}


def preview(issuance, values):
    kind = f"https://didcomm.org/issue-credential/{issuance.version}/credential-preview"
    attributes = [{"name": name, "value": value} for name, value in values.items()]
    return {"@type": kind, "attributes": attributes}


def proposes(issuance, connection_id, definition_id, values):
    """ACA-Py as holder."""
    body = {"connection_id": connection_id, "comment": "Please", "auto_remove": False}
    if issuance.version == "1.0":
        body |= {"cred_def_id": definition_id}
        body |= {"credential_proposal": preview(issuance, values)}
    else:
        body |= {"filter": issuance.formed({"cred_def_id": definition_id})}
        body |= {"credential_preview": preview(issuance, values)}
    record = issuance.flat(issuance.agent.post(f"{issuance.path}/send-proposal", body))
    issuance.agent.known.add(record[issuance.id_name])
    return record


def proposed(person, connection_id):
    wanted = {"state": "Proposed", "connectionId": connection_id}
    listed = eventually(lambda: person.get("/credentials", **wanted))
    return listed[0]


def offers_and_issues(issuance, record, wallet, mine, **counter):
    """ACA-Py answers a proposal, with an offer of this if given. Return the values."""
    issuance.act(record, "send-offer", counter or None)
    offered = reaches(wallet, f"/credentials/{mine}", "Offered")
    wallet.post(f"/credentials/{mine}")
    requested = issuance.until(record, "request-received")
    issuance.act(requested, "issue", {"comment": "Here"})
    got = reaches(wallet, f"/credentials/{mine}", "Issued")
    assert offered["values"] == got["values"]
    return got["values"]


def wishes(wallet, issuance, definition, link, **more):
    """A wallet proposes. Return (our id, ACA-Py's record)."""
    body = {"definitionId": definition, "credentialValues": VALUES} | more
    mine = wallet.put(f"/credentials/propose/{link[0]}", body)["credentialId"]
    return mine, issuance.next("proposal-received", connection_id=link[1])


def counter_of(issuance, definition, values):
    """The body by which ACA-Py answers a proposal with other values."""
    if issuance.version == "1.0":
        shown = {
            "credential_proposal": preview(issuance, values),
            "cred_def_id": definition,
        }
        return {"counter_proposal": shown}
    wanted = issuance.formed({"cred_def_id": definition})
    return {"counter_preview": preview(issuance, values), "filter": wanted}


@pytest.fixture
def met(alice, visit, peer, badge):
    """A wallet and (our id, their id) of its connection with a newer peer.

    The peer has already sent something in the newer format, so the wallet knows it.
    """
    if is_anoncreds(peer):
        badge()
    return alice, visit


def test_acapy_proposes_a_credential_and_is_issued_it(faber, degree, issuance, link):
    record = proposes(issuance, link[1], degree, VALUES)
    seen = proposed(faber, link[0])
    assert seen["proposal"]["definitionId"] == degree
    assert seen["proposal"]["credentialValues"] == VALUES
    path = f"/credentials/{seen['credentialId']}"
    faber.put(f"{path}/offer", {"automaticIssuance": True})
    issuance.act(issuance.until(record, "offer-received"), "send-request")
    stored = issuance.stored(issuance.until(record, "done"))
    reaches(faber, path, "Issued")
    assert issuance.agent.get(f"/credential/{stored}")["attrs"] == VALUES


def test_acapy_is_offered_other_values_than_it_proposed(faber, degree, issuance, link):
    record = proposes(issuance, link[1], degree, VALUES)
    seen = proposed(faber, link[0])["credentialId"]
    body = {"credentialValues": BETTER, "automaticIssuance": True}
    faber.put(f"/credentials/{seen}/offer", body)
    issuance.act(issuance.until(record, "offer-received"), "send-request")
    stored = issuance.stored(issuance.until(record, "done"))
    assert issuance.agent.get(f"/credential/{stored}")["attrs"] == BETTER


def test_acapy_hears_that_its_proposal_is_declined(faber, degree, issuance, link):
    record = proposes(issuance, link[1], degree, VALUES)
    faber.delete(f"/credentials/delete/{proposed(faber, link[0])['credentialId']}")
    issuance.until(record, "abandoned")


def test_a_wallet_proposes_a_credential_and_acapy_issues_it(
    met, issuance, their_definition
):
    wallet, link = met
    mine, record = wishes(wallet, issuance, their_definition, link)
    assert offers_and_issues(issuance, record, wallet, mine) == VALUES
    issuance.until(record, "done")


@pytest.mark.parametrize("spoken", OF_INDY, ids="-".join, indirect=True)
def test_acapy_offers_other_values_than_the_wallet_proposed(
    met, issuance, their_definition
):
    wallet, link = met
    counter = counter_of(issuance, their_definition, BETTER)
    mine, record = wishes(wallet, issuance, their_definition, link)
    assert offers_and_issues(issuance, record, wallet, mine, **counter) == BETTER
    issuance.until(record, "done")


def test_acapy_declines_what_the_wallet_proposes(met, issuance, their_definition):
    wallet, link = met
    mine, record = wishes(wallet, issuance, their_definition, link)
    issuance.decline(record)
    reaches(wallet, f"/credentials/{mine}", "Rejected")


def test_a_wallet_answers_an_offer_of_acapy_with_a_proposal(
    met, issuance, their_definition
):
    """ACA-Py creates a second record of the thread, and uses it after the first."""
    wallet, link = met
    first = issuance.offer(link[1], their_definition, VALUES)
    issuance.agent.known.add(first[issuance.id_name])
    offered = {"state": "Offered", "connectionId": link[0]}
    mine = eventually(lambda: wallet.get("/credentials", **offered))[0]["credentialId"]
    wallet.put(f"/credentials/{mine}/propose", {"credentialValues": BETTER})
    second = issuance.next("proposal-received", connection_id=link[1])
    assert second["thread_id"] == first["thread_id"]
    issuance.agent.call("DELETE", f"{issuance.path}/records/{first[issuance.id_name]}")
    assert offers_and_issues(issuance, second, wallet, mine) == BETTER


@pytest.mark.parametrize("chosen", ["1.0", "2.0"])
def test_a_wallet_proposes_in_the_version_that_it_chose(
    acapy, defined, newly_met, chosen
):
    wallet, link = newly_met(acapy)
    definition, version = defined(acapy), {"exchangeVersion": chosen}
    issuance = Issuance(acapy, chosen)
    mine, record = wishes(wallet, issuance, definition, link, **version)
    offers_and_issues(issuance, record, wallet, mine)
    proof = Proof(acapy, chosen)
    _, asked = wallet_shows(wallet, link, proof, definition, **version)
    assert proof.verdict(asked) is True


def test_a_wallet_that_chose_the_format_is_understood_at_once(
    current, defined, newly_met
):
    wallet, link = newly_met(current)
    wallet.put(f"/connections/{link[0]}/protocols", {"attachmentFormat": "anoncreds"})
    issuance, definition = Issuance(current, "2.0"), defined(current)
    mine, record = wishes(wallet, issuance, definition, link)
    assert offers_and_issues(issuance, record, wallet, mine) == VALUES
    proof = Proof(current, "2.0")
    _, asked = wallet_shows(wallet, link, proof, definition)
    assert proof.verdict(asked) is True


def test_a_wallet_that_proposes_first_finds_the_format_of_its_peer(
    current, defined, newly_met
):
    wallet, link = newly_met(current)
    issuance = Issuance(current, "2.0")
    mine, first = wishes(wallet, issuance, defined(current), link)
    with pytest.raises(Refused, match="anoncreds"):
        issuance.act(first, "send-offer")
    second = issuance.next("proposal-received", connection_id=link[1])
    assert offers_and_issues(issuance, second, wallet, mine) == VALUES
