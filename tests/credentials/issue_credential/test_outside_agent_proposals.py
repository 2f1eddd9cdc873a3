"""Proposals of credentials by agents of others, and to them."""

import pytest

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
from credentials.issue_credential import messages, proposal_messages
from credentials.models import Credential
from tests.support import queues
from tests.support.killed_worker import FAULT_POINTS, die_and_recover
from tests.support.outside_agent import Agent
from tests.support.outside_exchanges import (
    ISSUE,
    VALUES,
    accepts_invitation_of,
    ids_of_messages,
    takes_offer,
)

OTHER = VALUES | {"level": "8"}
PROPOSE = ISSUE + "propose-credential"


def proposes(phone, thread=None, version="1.0", form=HLINDY, **proposed):
    wire = MessageFormat(phone.prefix, version, form)
    return phone.says(proposal_messages.build_proposal(proposed, wire, thread))


def newest_credential(faber):
    return faber.get("/credentials")[0]


def offers(faber, **body):
    offered = faber.put(
        f"/credentials/{newest_credential(faber)['credentialId']}/offer", body
    )
    queues.worker_catches_up()
    return offered


def rows():
    return list(Credential.objects.order_by("pk").values())


@pytest.fixture
def definition(faber):
    return faber.defines("name", "level")["definitionId"]


def test_a_phone_proposes_and_is_issued_it_in_the_same_thread(
    faber, any_phone, client, definition
):
    any_phone.connects(faber)
    sent = proposes(any_phone, definitionId=definition, credentialValues=VALUES)
    assert newest_credential(faber)["proposal"] == {
        "definitionId": definition,
        "credentialValues": VALUES,
    }
    offers(faber, automaticIssuance=True)
    offered = any_phone.newest(ISSUE + "offer-credential")
    assert (offered.thread_id, offered.prefix) == (sent["@id"], any_phone.prefix)
    takes_offer(any_phone, client, definition)
    assert newest_credential(faber)["state"] == "Issued"


@pytest.mark.parametrize("form", [HLINDY, ANONCREDS])
def test_it_is_answered_in_its_own_version_and_format(faber, phone, definition, form):
    phone.connects(faber)
    proposes(
        phone,
        None,
        "2.0",
        form,
        definitionId=definition,
        credentialValues=VALUES,
    )
    offers(faber)
    offered = phone.newest("issue-credential/2.0/offer-credential")
    assert offered.body["formats"][0]["format"] == OFFER.formats[form]
    assert attachment_of(offered, OFFER)["cred_def_id"] == definition


def test_a_phone_answers_an_offer_with_a_proposal(faber, phone, client, definition):
    row = phone.connects(faber)
    body = {"definitionId": definition, "connectionId": row.connection_id}
    faber.post("/credentials", body | {"credentialValues": VALUES})
    queues.worker_catches_up()
    thread = phone.newest(ISSUE + "offer-credential").thread_id
    proposes(phone, thread, credentialValues=OTHER)
    assert (
        newest_credential(faber)["state"],
        newest_credential(faber)["definitionId"],
    ) == (
        "Proposed",
        definition,
    )
    offered = offers(faber, automaticIssuance=True)
    assert (offered["definitionId"], offered["values"]) == (definition, OTHER)
    assert phone.newest(ISSUE + "offer-credential").thread_id == thread
    takes_offer(phone, client, definition)
    assert newest_credential(faber)["state"] == "Issued" and len(rows()) == 1


def test_the_offer_before_a_proposal_is_not_taken_any_more(
    faber, phone, client, definition
):
    row = phone.connects(faber)
    body = {"definitionId": definition, "connectionId": row.connection_id}
    faber.post("/credentials", body | {"credentialValues": VALUES})
    queues.worker_catches_up()
    thread = phone.newest(ISSUE + "offer-credential").thread_id
    proposes(phone, thread, credentialValues=OTHER)
    before = rows()
    asked = messages.build_request(
        {"cred_def_id": definition}, thread, MessageFormat(phone.prefix)
    )
    phone.says(asked)
    assert phone.inbox[-1].is_problem_report and rows() == before


def test_until_it_is_offered_a_later_proposal_replaces_it(faber, phone, definition):
    phone.connects(faber)
    sent = proposes(phone, definitionId="unknown", credentialValues=VALUES)
    proposes(phone, sent["@id"], definitionId=definition, credentialValues=OTHER)
    assert len(rows()) == 1 and newest_credential(faber)["definitionId"] == definition
    assert offers(faber)["values"] == OTHER


@pytest.mark.parametrize("state", ["Proposed", "Offered", "Rejected"])
def test_the_same_proposal_under_another_id_changes_nothing(
    faber, phone, definition, state
):
    phone.connects(faber)
    sent = proposes(phone, definitionId=definition, credentialValues=VALUES)
    if state == "Offered":
        offers(faber)
    if state == "Rejected":
        Credential.objects.get().decline()
        queues.worker_catches_up()
    before, inbox_size = rows(), len(phone.inbox)
    phone.says(sent)
    proposes(phone, sent["@id"], definitionId=definition, credentialValues=VALUES)
    assert (rows(), len(phone.inbox)) == (before, inbox_size) and before[0][
        "state"
    ] == state


def test_who_is_offered_something_else_may_insist(faber, phone, definition):
    phone.connects(faber)
    sent = proposes(phone, definitionId=definition, credentialValues=VALUES)
    offers(faber, credentialValues=OTHER)
    proposes(phone, sent["@id"], definitionId=definition, credentialValues=VALUES)
    assert newest_credential(faber)["state"] == "Proposed"


@pytest.mark.parametrize("is_issued", [False, True])
def test_a_proposal_after_the_request_is_too_late(
    faber, phone, client, definition, is_issued
):
    phone.connects(faber)
    sent = proposes(phone, definitionId=definition, credentialValues=VALUES)
    offers(faber, automaticIssuance=True)
    takes_offer(phone, client, definition)
    if not is_issued:
        Credential.objects.update(state="Requested", issued_at=None)
    before = rows()
    proposes(phone, sent["@id"], credentialValues=OTHER)
    assert (
        phone.inbox[-1].is_problem_report and phone.inbox[-1].thread_id == sent["@id"]
    )
    assert rows() == before


@pytest.mark.parametrize(
    "named", [{"definitionId": "V4SGRU86Z58d6TV7PBUe6f:3:CL:1:x"}, {}]
)
def test_what_names_no_definition_of_ours_waits_for_the_issuers_word(
    faber, phone, definition, named
):
    phone.connects(faber)
    proposes(phone, **named)
    assert (
        newest_credential(faber)["state"],
        newest_credential(faber)["proposal"],
    ) == ("Proposed", named)
    assert offers(faber, definitionId=definition)["definitionId"] == definition


def test_what_a_phone_leaves_out_of_its_answer_is_as_offered(faber, phone, definition):
    row = phone.connects(faber)
    body = {"definitionId": definition, "connectionId": row.connection_id}
    faber.post("/credentials", body | {"credentialValues": VALUES})
    queues.worker_catches_up()
    proposes(phone, phone.newest(ISSUE + "offer-credential").thread_id, comment="Why?")
    again = offers(faber)
    assert (again["definitionId"], again["values"]) == (definition, VALUES)


def test_a_proposal_in_a_thread_that_is_not_here_is_refused(faber, phone):
    phone.connects(faber)
    proposes(phone, "a-thread-of-nobody", comment="Please")
    assert phone.inbox[-1].is_problem_report and rows() == []


def test_a_proposal_in_the_thread_of_another_connection_changes_nothing(
    faber, phone, definition
):
    phone.connects(faber)
    sent = proposes(phone, definitionId=definition)
    before, other = rows(), Agent()
    other.endpoint, other.receives = phone.endpoint, phone.receives
    invited = Connection.objects.get(connection_id=faber.invites()["connectionId"])
    phone.receives = lambda data: None
    other.requests(invited.invitation)
    other.their_key = Connection.objects.get(pk=invited.pk).my_key.verkey
    other.says(other.build(trust_ping.PING))
    proposes(other, sent["@id"], definitionId="mine")
    assert rows() == before


def test_who_proposed_does_not_offer_in_the_same_thread(faber, phone, definition):
    phone.connects(faber)
    sent = proposes(phone, definitionId=definition)
    before = rows()
    offer = {"schema_id": "s", "cred_def_id": definition}
    phone.says(
        messages.build_offer(
            offer, ["name"], {}, MessageFormat(phone.prefix), sent["@id"]
        )
    )
    assert phone.inbox[-1].is_problem_report and rows() == before


def test_a_connection_that_was_ended_takes_no_proposal(faber, phone):
    row = phone.connects(faber)
    faber.post(f"/connections/{row.connection_id}/hangup")
    sent = proposes(phone, comment="Please")
    assert InboundMessage.objects.get(message_id=sent["@id"]).status == "done"
    assert rows() == []


def test_an_invitation_takes_no_proposal(faber, phone):
    row = Connection.objects.get(connection_id=faber.invites()["connectionId"])
    body = proposal_messages.build_proposal(
        {"comment": "Please"}, MessageFormat(phone.prefix)
    )
    phone.says(body, to=row.invitation["recipientKeys"][0])
    row.refresh_from_db()
    assert (row.state, rows(), phone.inbox) == ("Invited", [], [])


def test_an_offer_by_link_takes_no_proposal(faber, phone, definition):
    body = {"definitionId": definition, "credentialValues": VALUES}
    faber.post("/credentials", body)
    connection = Connection.objects.get()
    phone.their_key, before = connection.my_key.verkey, rows()
    thread = Credential.objects.get().thread_id
    wire = MessageFormat(phone.prefix)
    phone.says(
        proposal_messages.build_proposal({"credentialValues": OTHER}, wire, thread)
    )
    assert rows() == before
    connection.refresh_from_db()
    assert connection.state == "Invited", "and who proposed has not taken the offer"


@pytest.mark.parametrize(
    "formats", [None, [{"attach_id": "x", "format": "aries/ld-proof@v1.0"}]]
)
def test_a_format_that_is_not_known_is_refused(faber, phone, formats):
    phone.connects(faber)
    body = phone.build("issue-credential/2.0/propose-credential", formats=formats)
    phone.says(body | {"filters~attach": [didcomm.json_attachment("x", {})]})
    assert phone.inbox[-1].is_problem_report and rows() == []


def test_a_minor_version_and_other_formats_beside_ours_are_read(faber, phone):
    phone.connects(faber)
    proposes(phone, comment="One")
    phone.says(phone.build("issue-credential/1.1/propose-credential", comment="Two"))
    body = attach_as(
        MessageFormat(phone.prefix, "2.0", ANONCREDS), FILTER, {"issuer_id": "i"}
    )
    body["formats"].insert(0, {"attach_id": "z", "format": "aries/ld-proof@v1.0"})
    phone.says(phone.build("issue-credential/2.0/propose-credential", **body))
    assert [one["proposal"] for one in faber.get("/credentials")] == [
        {"issuerDid": "i"},
        {"comment": "Two"},
        {"comment": "One"},
    ]


def offers_to(phone, thread, values):
    offer = {"schema_id": "s:2:n:1", "cred_def_id": "s:3:CL:1:t", "nonce": "1"}
    body = messages.build_offer(
        offer, list(values), values, MessageFormat(phone.prefix), thread
    )
    phone.offered = phone.says(body)["@id"]


def test_a_hosted_wallet_proposes_to_another_agent_and_goes_on(faber, phone):
    alice = faber.hosts("Alice")
    connected = accepts_invitation_of(phone, alice)
    body = {"definitionId": "s:3:CL:1:t", "credentialValues": VALUES}
    mine = alice.put(f"/credentials/propose/{connected}", body)["credentialId"]
    queues.worker_catches_up()
    received = phone.newest(PROPOSE)
    assert (
        proposal_messages.read_proposal(received) == body
        and received.thread_id == received.id
    )
    offers_to(phone, received.id, OTHER)
    assert alice.get(f"/credentials/{mine}")["values"] == OTHER
    assert (
        alice.put(f"/credentials/{mine}/propose", {"comment": "No"})["state"]
        == "Proposed"
    )
    queues.worker_catches_up()
    assert phone.newest(PROPOSE).thread_id == received.id
    offers_to(phone, received.id, VALUES)
    assert alice.get(f"/credentials/{mine}")["state"] == "Offered" and len(rows()) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"schema_id": None},
        {"cred_def_id": ""},
        {"cred_def_id": 7},
        {"schema_id": "x" * 301},
    ],
)
def test_an_offer_without_the_ids_of_its_definition_is_refused(faber, phone, wrong):
    alice = faber.hosts("Alice")
    accepts_invitation_of(phone, alice)
    offer = {"schema_id": "s:2:n:1", "cred_def_id": "s:3:CL:1:t", "nonce": "1"} | wrong
    message_format = MessageFormat(phone.prefix)
    phone.says(messages.build_offer(offer, ["name"], VALUES, message_format))
    assert phone.inbox[-1].is_problem_report and not rows()


def test_an_issuer_insists_with_the_same_offer(faber, phone):
    alice = faber.hosts("Alice")
    accepts_invitation_of(phone, alice)
    offers_to(phone, "thread", OTHER)
    mine = alice.newest("credentials")["credentialId"]
    alice.put(f"/credentials/{mine}/propose", {"credentialValues": VALUES})
    offers_to(phone, "thread", OTHER)
    assert alice.newest("credentials")["state"] == "Offered" and len(rows()) == 1


@pytest.mark.parametrize(
    "named, is_taken",
    [
        ({"definitionId": "s:3:CL:1:t"}, True),
        ({"schemaId": "s:2:n:1"}, True),
        ({"credentialValues": VALUES}, True),
        ({"schemaName": "n", "schemaVersion": "1", "issuerDid": "did:sov:s"}, True),
        ({"schemaName": "another"}, False),
        ({"issuerDid": "another"}, False),
        ({"definitionId": "another"}, False),
        ({"schemaId": "another"}, False),
        ({"credentialValues": {"Na me": "Alice"}}, True),
        ({"credentialValues": {"name": "Alice", "another": "1"}}, False),
    ],
)
def test_an_offer_in_a_thread_of_its_own_answers_the_proposal_that_it_fits(
    faber, phone, named, is_taken
):
    """As ACA-Py does in 1.0."""
    alice = faber.hosts("Alice")
    mine = alice.put(
        f"/credentials/propose/{accepts_invitation_of(phone, alice)}", named
    )["credentialId"]
    queues.worker_catches_up()
    offers_to(phone, None, VALUES)
    assert alice.get(f"/credentials/{mine}")["state"] == (
        "Offered" if is_taken else "Proposed"
    )
    assert len(rows()) == (1 if is_taken else 2)
    if is_taken:
        alice.post(f"/credentials/{mine}/decline")
        queues.worker_catches_up()
        assert phone.inbox[-1].thread_id == phone.offered


def test_between_hosted_parties_an_offer_in_another_thread_is_another_one(
    faber, definition
):
    alice = faber.hosts("Alice")
    alice.meets(faber)
    alice.put(
        f"/credentials/propose/{alice.known[faber][1]}", {"definitionId": definition}
    )
    faber.offers(alice, {"definitionId": definition}, VALUES)
    held = {(one["state"], "proposal" in one) for one in alice.get("/credentials")}
    assert held == {("Proposed", True), ("Offered", False)}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULT_POINTS)
def test_a_proposal_is_noted_and_answered_once_though_a_worker_dies(
    faber, phone, definition, fault
):
    phone.connects(faber)
    wanted = {"definitionId": definition, "credentialValues": VALUES}
    phone.post(
        phone.pack(
            proposal_messages.build_proposal(wanted, MessageFormat(phone.prefix))
        )
    )
    if fault == "inside_handling":
        die_and_recover(fault)
    queues.worker_catches_up()
    assert [one["sequence"] for one in rows()] == [1]
    faber.put(f"/credentials/{newest_credential(faber)['credentialId']}/offer", {})
    if fault != "inside_handling":
        die_and_recover(fault)
    queues.worker_catches_up()
    assert len(ids_of_messages(phone, ISSUE + "offer-credential")) == 1
    assert not queues.pending().exists()


def test_an_offer_of_an_invitation_is_answered_with_a_proposal(faber, definition):
    """The connection is made first, and the exchange goes on there."""
    alice, body = (
        faber.hosts("Alice"),
        {"definitionId": definition, "credentialValues": VALUES},
    )
    body |= {"protocol": "out-of-band", "handshakes": ["didexchange/1.1"]}
    invited = faber.post("/credentials", body)["offerData"]
    alice.accepts_invitation(invited)
    mine = alice.newest("credentials")["credentialId"]
    alice.put(f"/credentials/{mine}/propose", {"credentialValues": OTHER})
    assert newest_credential(faber)["state"] == "Proposed"
    assert offers(faber, automaticIssuance=True)["state"] == "Offered"
    alice.accepts_offer()
    assert alice.newest("credentials")["values"] == OTHER
    assert {row["state"] for row in rows()} == {"Issued"}


@pytest.mark.parametrize("ends", ["connection", "wallet"])
def test_a_proposal_ends_with_its_holder(faber, definition, ends):
    alice = faber.hosts("Alice")
    alice.meets(faber)
    alice.put(
        f"/credentials/propose/{alice.known[faber][1]}", {"definitionId": definition}
    )
    if ends == "connection":
        alice.delete(f"/connections/{alice.known[faber][1]}")
    else:
        faber.delete(f"/api/wallets/{alice.wallet_id}")
    assert newest_credential(faber)["state"] == "Rejected"


def test_a_phone_that_cannot_be_called_gets_the_offer_in_a_later_answer(
    faber, phone, definition
):
    phone.connects(faber)
    Connection.objects.update(their_endpoint="")
    wanted = {"definitionId": definition, "credentialValues": VALUES}
    assert (
        phone.asks(
            proposal_messages.build_proposal(wanted, MessageFormat(phone.prefix))
        ).content
        == b""
    )
    faber.put(f"/credentials/{newest_credential(faber)['credentialId']}/offer", {})
    phone.asks(phone.build(trust_ping.PING, response_requested=False))
    assert phone.newest(ISSUE + "offer-credential")


REFUSAL = {"code": "issuance-abandoned", "en": "issuance-abandoned"}


@pytest.fixture
def proposed(faber, phone, definition):
    """Alice, her proposal, and what the phone received."""
    alice = faber.hosts()
    mine = accepts_invitation_of(phone, alice)
    wanted = {"definitionId": definition, "credentialValues": VALUES}
    body = wanted | {"exchangeVersion": "2.0"}
    path = alice.put(f"/credentials/propose/{mine}", body)["credentialId"]
    queues.sweep()
    return alice, f"/credentials/{path}", phone.newest(PROPOSE_2)


PROPOSE_2 = "issue-credential/2.0/propose-credential"


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
