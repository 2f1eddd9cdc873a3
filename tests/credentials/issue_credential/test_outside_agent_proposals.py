"""Proposals of credentials by agents of others, and to them."""

import pytest
from django.test import override_settings

from connections.didcomm import message as didcomm
from connections.didcomm.formats import (
    ANONCREDS,
    FILTER,
    HLINDY,
    OFFER,
    MessageFormat,
    attach_as,
    attachment_of,
)
from connections.models import Connection, InboundMessage
from connections.protocols import trust_ping
from credentials import messages
from credentials.issue_credential import proposal_messages
from credentials.models import Credential
from tests.support import outside_exchanges, queues
from tests.support.killed_worker import FAULT_POINTS, die_and_recover
from tests.support.outside_agent import Agent, listening
from tests.support.outside_exchanges import (
    ISSUE,
    VALUES,
    accepts_invitation_of,
    ids_of_messages,
    takes_offer,
)
from tests.support.steps import step

OTHER = VALUES | {"level": "8"}
PROPOSE = ISSUE + "propose-credential"
PROPOSE_2 = "issue-credential/2.0/propose-credential"


def proposal(phone, thread=None, version="1.0", form=HLINDY, **proposed):
    wire = MessageFormat(phone.prefix, version, form)
    return proposal_messages.build_proposal(proposed, wire, thread)


def proposes(phone, *arguments, **proposed):
    return phone.says(proposal(phone, *arguments, **proposed))


def newest_credential(faber):
    return faber.get("/credentials")[0]


def offers(faber, **body):
    path = f"/credentials/{newest_credential(faber)['credentialId']}/offer"
    offered = faber.put(path, body)
    queues.worker_catches_up()
    return offered


def is_offered(phone, faber, definition):
    """Return the thread of an offer that the phone got."""
    outside_exchanges.offers_to(phone, faber, definition)
    return phone.newest(ISSUE + "offer-credential").thread_id


def is_refused(phone):
    return phone.inbox[-1].is_problem_report


def rows():
    return list(Credential.objects.order_by("pk").values())


@step
def definition(faber):
    return faber.defines("name", "level")["definitionId"]


@pytest.fixture
def wanted(definition):
    return {"definitionId": definition, "credentialValues": VALUES}


def test_a_phone_proposes_and_is_issued(faber, any_phone, client, definition, wanted):
    any_phone.connects(faber)
    sent = proposes(any_phone, **wanted)
    assert newest_credential(faber)["proposal"] == wanted
    offers(faber, automaticIssuance=True)
    offered = any_phone.newest(ISSUE + "offer-credential")
    assert (offered.thread_id, offered.prefix) == (sent["@id"], any_phone.prefix)
    takes_offer(any_phone, client, definition)
    assert newest_credential(faber)["state"] == "Issued"


def test_it_is_answered_in_its_own_version_and_format(faber, peer, wanted):
    for form in (HLINDY, ANONCREDS):
        proposes(peer, None, "2.0", form, **wanted)
        offers(faber)
        offered = peer.newest("issue-credential/2.0/offer-credential")
        assert offered.body["formats"][0]["format"] == OFFER.formats[form]
        found = attachment_of(offered, OFFER)["cred_def_id"]
        assert found == wanted["definitionId"]


def test_a_phone_answers_an_offer_with_a_proposal(faber, peer, client, definition):
    thread = is_offered(peer, faber, definition)
    proposes(peer, thread, credentialValues=OTHER)
    seen = newest_credential(faber)
    assert (seen["state"], seen["definitionId"]) == ("Proposed", definition)
    offered = offers(faber, automaticIssuance=True)
    assert (offered["definitionId"], offered["values"]) == (definition, OTHER)
    assert peer.newest(ISSUE + "offer-credential").thread_id == thread
    takes_offer(peer, client, definition)
    assert newest_credential(faber)["state"] == "Issued" and len(rows()) == 1


def test_the_offer_before_a_proposal_is_not_taken_any_more(faber, peer, definition):
    thread = is_offered(peer, faber, definition)
    proposes(peer, thread, credentialValues=OTHER)
    before, wire = rows(), MessageFormat(peer.prefix)
    peer.says(messages.build_request({"cred_def_id": definition}, thread, wire))
    assert is_refused(peer) and rows() == before


def test_until_it_is_offered_a_later_proposal_replaces_it(faber, peer, definition):
    """Who is offered something else may insist."""
    sent = proposes(peer, definitionId="unknown", credentialValues=VALUES)
    wanted = {"definitionId": definition, "credentialValues": OTHER}
    proposes(peer, sent["@id"], **wanted)
    assert len(rows()) == 1 and newest_credential(faber)["definitionId"] == definition
    assert offers(faber, credentialValues=VALUES)["values"] == VALUES
    proposes(peer, sent["@id"], **wanted)
    assert newest_credential(faber)["state"] == "Proposed"
    assert offers(faber)["values"] == OTHER


def test_the_same_proposal_under_another_id_changes_nothing(faber, peer, wanted):
    sent = proposes(peer, **wanted)
    for state in ("Proposed", "Offered", "Rejected"):
        if state == "Offered":
            offers(faber)
        if state == "Rejected":
            Credential.objects.get().decline()
            queues.worker_catches_up()
        before, inbox_size = rows(), len(peer.inbox)
        peer.says(sent)
        proposes(peer, sent["@id"], **wanted)
        assert (rows(), len(peer.inbox)) == (before, inbox_size)
        assert before[0]["state"] == state


def test_a_proposal_after_the_request_is_too_late(faber, peer, client, wanted):
    sent = proposes(peer, **wanted)
    offers(faber, automaticIssuance=True)
    takes_offer(peer, client, wanted["definitionId"])
    for changes in ({"state": "Issued"}, {"state": "Requested", "issued_at": None}):
        Credential.objects.update(**changes)
        before, inbox_size = rows(), len(peer.inbox)
        proposes(peer, sent["@id"], credentialValues=OTHER)
        assert is_refused(peer) and peer.inbox[-1].thread_id == sent["@id"]
        assert rows() == before and len(peer.inbox) == inbox_size + 1


def test_what_names_no_definition_here_waits_for_the_issuer(faber, peer, definition):
    for named in ({"definitionId": "V4SGRU86Z58d6TV7PBUe6f:3:CL:1:x"}, {}):
        proposes(peer, **named)
        seen = newest_credential(faber)
        assert (seen["state"], seen["proposal"]) == ("Proposed", named)
        assert offers(faber, definitionId=definition)["definitionId"] == definition


def test_what_a_phone_leaves_out_of_its_answer_is_as_offered(faber, peer, definition):
    proposes(peer, is_offered(peer, faber, definition), comment="Why?")
    again = offers(faber)
    assert (again["definitionId"], again["values"]) == (definition, VALUES)


def test_a_proposal_in_a_thread_that_is_not_here_is_refused(faber, peer):
    proposes(peer, "a-thread-of-nobody", comment="Please")
    assert is_refused(peer) and rows() == []


def test_a_proposal_on_another_connection_changes_nothing(faber, peer, definition):
    sent = proposes(peer, definitionId=definition)
    before, other = rows(), Agent()
    other.endpoint, other.receives = peer.endpoint, peer.receives
    invited = Connection.objects.get(connection_id=faber.invites()["connectionId"])
    peer.receives = lambda data: None
    other.requests(invited.invitation)
    other.their_key = Connection.objects.get(pk=invited.pk).my_key.verkey
    other.says(other.build(trust_ping.PING))
    proposes(other, sent["@id"], definitionId="mine")
    assert rows() == before


def test_who_proposed_does_not_offer_in_the_same_thread(faber, peer, definition):
    sent = proposes(peer, definitionId=definition)
    before, wire = rows(), MessageFormat(peer.prefix)
    offer = {"schema_id": "s", "cred_def_id": definition}
    peer.says(messages.build_offer(offer, ["name"], {}, wire, sent["@id"]))
    assert is_refused(peer) and rows() == before


def test_a_connection_that_was_ended_takes_no_proposal(faber, peer):
    row = Connection.objects.get()
    faber.post(f"/connections/{row.connection_id}/hangup")
    sent = proposes(peer, comment="Please")
    assert InboundMessage.objects.get(message_id=sent["@id"]).status == "done"
    assert rows() == []


def test_an_invitation_takes_no_proposal(faber, phone):
    row = Connection.objects.get(connection_id=faber.invites()["connectionId"])
    body = proposal(phone, comment="Please")
    phone.says(body, to=row.invitation["recipientKeys"][0])
    row.refresh_from_db()
    assert (row.state, rows(), phone.inbox) == ("Invited", [], [])


def test_an_offer_by_link_takes_no_proposal(faber, phone, wanted):
    faber.post("/credentials", wanted)
    connection = Connection.objects.get()
    phone.their_key, before = connection.my_key.verkey, rows()
    proposes(phone, Credential.objects.get().thread_id, credentialValues=OTHER)
    assert rows() == before
    connection.refresh_from_db()
    assert connection.state == "Invited", "and who proposed has not taken the offer"


def test_a_format_that_is_not_known_is_refused(faber, peer):
    for formats in (None, [{"attach_id": "x", "format": "aries/ld-proof@v1.0"}]):
        body = peer.build(PROPOSE_2, formats=formats)
        said = peer.says(body | {"filters~attach": [didcomm.json_attachment("x", {})]})
        assert is_refused(peer) and peer.inbox[-1].thread_id == said["@id"]
    assert rows() == []


def test_a_minor_version_and_other_formats_beside_ours_are_read(faber, peer):
    proposes(peer, comment="One")
    peer.says(peer.build("issue-credential/1.1/propose-credential", comment="Two"))
    wire = MessageFormat(peer.prefix, "2.0", ANONCREDS)
    body = attach_as(wire, FILTER, {"issuer_id": "i"})
    body["formats"].insert(0, {"attach_id": "z", "format": "aries/ld-proof@v1.0"})
    peer.says(peer.build(PROPOSE_2, **body))
    read = [one["proposal"] for one in faber.get("/credentials")]
    assert read == [{"issuerDid": "i"}, {"comment": "Two"}, {"comment": "One"}]


IDS = {"schema_id": "s:2:n:1", "cred_def_id": "s:3:CL:1:t", "nonce": "1"}


def offers_to(phone, thread, values, **ids):
    """Return the id of the phone's offer."""
    wire = MessageFormat(phone.prefix)
    body = messages.build_offer(IDS | ids, list(values), values, wire, thread)
    return phone.says(body)["@id"]


@step
@override_settings(OUTGOING_ALLOW_LOOPBACK=True)
def known_issuer(faber):
    """Alice, and a phone that issues, with which she is connected."""
    alice = faber.hosts("Alice")
    with listening(Agent()) as phone:
        alice.with_phone = accepts_invitation_of(phone, alice)
    return alice, phone


@pytest.fixture
def alice(known_issuer, phone):
    alice, known = known_issuer
    phone.becomes(known)
    return alice


def test_a_hosted_wallet_proposes_to_another_agent_and_goes_on(alice, phone):
    body = {"definitionId": "s:3:CL:1:t", "credentialValues": VALUES}
    path = f"/credentials/propose/{alice.with_phone}"
    mine = f"/credentials/{alice.put(path, body)['credentialId']}"
    queues.worker_catches_up()
    received = phone.newest(PROPOSE)
    assert proposal_messages.read_proposal(received) == body
    assert received.thread_id == received.id
    offers_to(phone, received.id, OTHER)
    assert alice.get(mine)["values"] == OTHER
    assert alice.put(f"{mine}/propose", {"comment": "No"})["state"] == "Proposed"
    queues.worker_catches_up()
    assert phone.newest(PROPOSE).thread_id == received.id
    offers_to(phone, received.id, VALUES)
    assert alice.get(mine)["state"] == "Offered" and len(rows()) == 1


def test_an_offer_without_the_ids_of_its_definition_is_refused(alice, phone):
    for wrong in ({"schema_id": 7}, {"cred_def_id": ""}, {"schema_id": "x" * 301}):
        offered = offers_to(phone, None, VALUES, **wrong)
        assert is_refused(phone) and phone.inbox[-1].thread_id == offered, wrong
    assert not rows()


def test_an_issuer_insists_with_the_same_offer(alice, phone):
    offers_to(phone, "thread", OTHER)
    mine = alice.newest("credentials")["credentialId"]
    alice.put(f"/credentials/{mine}/propose", {"credentialValues": VALUES})
    offers_to(phone, "thread", OTHER)
    assert alice.newest("credentials")["state"] == "Offered" and len(rows()) == 1


FITTING = [
    {"definitionId": "s:3:CL:1:t"},
    {"schemaId": "s:2:n:1"},
    {"credentialValues": VALUES},
    {"schemaName": "n", "schemaVersion": "1", "issuerDid": "did:sov:s"},
    {"credentialValues": {"Na me": "Alice"}},
]
NOT_FITTING = [
    {"schemaName": "another"},
    {"issuerDid": "another"},
    {"definitionId": "another"},
    {"schemaId": "another"},
    {"credentialValues": {"name": "Alice", "another": "1"}},
]


def test_an_offer_fits_a_proposal_if_it_has_all_that_it_names():
    for named in (*FITTING, *NOT_FITTING):
        fits = proposal_messages.matches_offer(named, IDS, VALUES)
        assert fits is (named in FITTING), named


def test_an_offer_in_its_own_thread_answers_what_it_fits(alice, phone):
    """As ACA-Py does in 1.0."""
    path = f"/credentials/propose/{alice.with_phone}"
    other, mine = [
        f"/credentials/{alice.put(path, named)['credentialId']}"
        for named in (NOT_FITTING[0], FITTING[0])
    ]
    queues.worker_catches_up()
    offered = offers_to(phone, None, VALUES)
    assert [alice.get(one)["state"] for one in (other, mine)] == ["Proposed", "Offered"]
    assert len(rows()) == 2
    alice.post(f"{mine}/decline")
    queues.worker_catches_up()
    assert phone.inbox[-1].thread_id == offered
    offers_to(phone, None, VALUES)
    assert alice.get(other)["state"] == "Proposed" and len(rows()) == 3


@step
def hosted(faber, definition):
    """A holder hosted with the issuer, who has proposed."""
    alice = faber.hosts("Alice")
    alice.meets(faber)
    path = f"/credentials/propose/{alice.known[faber][1]}"
    alice.put(path, {"definitionId": definition})
    return alice


def test_here_an_offer_in_another_thread_is_another_one(faber, hosted, definition):
    alice = hosted
    faber.offers(alice, {"definitionId": definition}, VALUES)
    held = {(one["state"], "proposal" in one) for one in alice.get("/credentials")}
    assert held == {("Proposed", True), ("Offered", False)}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULT_POINTS)
def test_a_proposal_is_noted_and_answered_once_though_a_worker_dies(
    faber, peer, wanted, fault
):
    peer.post(peer.pack(proposal(peer, **wanted)))
    if fault == "inside_handling":
        die_and_recover(fault)
    queues.worker_catches_up()
    assert [one["sequence"] for one in rows()] == [1]
    faber.put(f"/credentials/{newest_credential(faber)['credentialId']}/offer", {})
    if fault != "inside_handling":
        die_and_recover(fault)
    queues.worker_catches_up()
    assert len(ids_of_messages(peer, ISSUE + "offer-credential")) == 1
    assert not queues.pending().exists()


def test_an_offer_of_an_invitation_is_answered_with_a_proposal(faber, wanted):
    """The connection is made first, and the exchange goes on there."""
    terms = {"protocol": "out-of-band", "handshakes": ["didexchange/1.1"]}
    alice = faber.hosts("Alice")
    invited = faber.post("/credentials", wanted | terms)["offerData"]
    alice.accepts_invitation(invited)
    mine = alice.newest("credentials")["credentialId"]
    alice.put(f"/credentials/{mine}/propose", {"credentialValues": OTHER})
    assert newest_credential(faber)["state"] == "Proposed"
    assert offers(faber, automaticIssuance=True)["state"] == "Offered"
    alice.accepts_offer()
    assert alice.newest("credentials")["values"] == OTHER
    assert {row["state"] for row in rows()} == {"Issued"}


@pytest.mark.parametrize("ends", ["connection", "wallet"])
def test_a_proposal_ends_with_its_holder(faber, hosted, ends):
    if ends == "connection":
        hosted.delete(f"/connections/{hosted.known[faber][1]}")
    else:
        faber.delete(f"/api/wallets/{hosted.wallet_id}")
    assert newest_credential(faber)["state"] == "Rejected"


def test_a_phone_without_address_gets_the_offer_in_an_answer(faber, peer, wanted):
    Connection.objects.update(their_endpoint="")
    assert peer.asks(proposal(peer, **wanted)).content == b""
    faber.put(f"/credentials/{newest_credential(faber)['credentialId']}/offer", {})
    peer.asks(peer.build(trust_ping.PING, response_requested=False))
    assert peer.newest(ISSUE + "offer-credential")


REFUSAL = {"code": "issuance-abandoned", "en": "issuance-abandoned"}


@pytest.fixture
def proposed(alice, phone, wanted):
    """Alice, her proposal, and what the phone received."""
    body = wanted | {"exchangeVersion": "2.0"}
    path = f"/credentials/propose/{alice.with_phone}"
    mine = alice.put(path, body)["credentialId"]
    queues.sweep()
    return alice, f"/credentials/{mine}", phone.newest(PROPOSE_2)


def refuses(phone, thread, description):
    report = phone.build(
        "issue-credential/2.0/problem-report", thread, description=description
    )
    phone.says(report)


def test_a_proposal_refused_for_its_format_is_sent_once_in_the_other(phone, proposed):
    alice, path, first = proposed
    assert first.body["formats"][0]["format"] == FILTER.formats[HLINDY]
    refuses(phone, first.thread_id, REFUSAL)
    second = phone.newest(PROPOSE_2)
    assert second.body["formats"][0]["format"] == FILTER.formats[ANONCREDS]
    assert second.thread_id == second.id != first.thread_id
    preview = second.body["credential_preview"]
    assert preview == first.body["credential_preview"]
    seen = alice.get(path)
    assert (seen["state"], seen["threadId"]) == ("Proposed", second.id)
    number = len(phone.inbox)
    refuses(phone, first.thread_id, REFUSAL)  # of a thread that is not known any more
    assert alice.get(path)["state"] == "Proposed"
    refuses(phone, second.thread_id, REFUSAL)
    assert alice.get(path)["state"] == "Rejected"
    assert [one.type for one in phone.inbox[number:]].count(PROPOSE_2) == 0


def test_a_proposal_that_somebody_declines_is_not_sent_again(phone, proposed):
    alice, path, first = proposed
    number = len(phone.inbox)
    refuses(phone, first.thread_id, REFUSAL | {"en": "No, thank you."})
    seen = alice.get(path)
    assert (seen["state"], seen["reason"]) == ("Rejected", "No, thank you.")
    assert len(phone.inbox) == number
