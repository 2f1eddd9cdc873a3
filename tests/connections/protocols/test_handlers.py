"""Received messages: replayed, unknown threads, strangers, out of order, hostile."""

import pytest

from connections.didcomm import message as didcomm
from connections.didcomm.message import Message, json_attachment
from connections.messaging import router
from connections.models import Connection, InboundMessage
from connections.protocols import trust_ping
from connections.transport import inbox
from credentials.models import Credential
from tests.support import queues
from tests.support.errors import assert_error
from tests.support.outside_agent import Agent
from tests.support.outside_exchanges import accepts_invitation_of
from verifications.models import Verification

ISSUING = (
    "propose-credential offer-credential request-credential issue-credential ack "
    "problem-report"
)
PROVING = "propose-presentation request-presentation presentation ack problem-report"


def in_families(*families):
    """The types of messages in lines of a protocol and its messages' names."""
    split = [family.split(": ") for family in families]
    return {f"{name}/{kind}" for name, kinds in split for kind in kinds.split()}


HANDLED = in_families(
    "connections/1: request response problem-report",
    "did-rotate/1: ack hangup problem-report rotate",
    "didexchange/1: complete problem-report request response",
    "discover-features/1: disclose query",
    "discover-features/2: disclosures queries",
    "notification/1: ack",
    "out-of-band/1: handshake-reuse handshake-reuse-accepted problem-report",
    "trust_ping/1: ping ping-response",
    "basicmessage/1: message",
    f"issue-credential/1: {ISSUING}",
    f"present-proof/1: {PROVING}",
)
TRIED_ELSEWHERE = in_families(  # test_version_two.py and the tests of revocation
    f"issue-credential/2: {ISSUING}",
    f"present-proof/2: {PROVING}",
    "revocation_notification/1: revoke",
    "revocation_notification/2: revoke",
)
ATTACHED = [
    f"{name}~attach"
    for name in (
        "offers", "requests", "credentials", "request_presentations", "presentations",
    )
]  # fmt: skip
JUNK = [
    None, 7, "text", [], {}, [None], [{"data": None}],
    [{"data": {"base64": "!"}}],
    [{"data": {"base64": "bnVsbA=="}}],
    [{"data": {"json": {}}}],
    [{"data": {"json": {"requested_attributes": 7, "requested_predicates": []}}}],
    [{"data": {"json": {"schema_id": [], "cred_def_id": {}, "nonce": None}}}],
    {"attributes": [{"name": "x", "value": 7}]},
    {"attributes": [{"name": "x" * 5000, "value": "y"}]},
    {"DIDDoc": {"service": [{"type": "IndyAgent", "recipientKeys": ["x"]}]}, "DID": "x"},
    {"sig_data": "x", "signature": "y", "signer": "z"},
    {"code": ["no text"]},
]  # fmt: skip


def kind(family):
    name, _, message = family.split("/")
    return f"{name}/1.0/{message}"


def exchanges():
    return [
        list(model.objects.order_by("pk").values("pk", "state", "updated_at"))
        for model in (Connection, Credential, Verification)
    ]


def unhandled():
    return InboundMessage.objects.exclude(status="done").count()


def test_these_are_the_messages_that_are_handled():
    assert router.handled_types() == HANDLED | TRIED_ELSEWHERE


def test_a_message_type_has_one_handler():
    with pytest.raises(RuntimeError):
        router.handles(trust_ping.PING)(print)


@pytest.mark.parametrize("minor", ["0", "1", "9999"])
def test_any_minor_version_and_either_spelling_finds_the_handler(minor):
    for name in ("problem-report", "problem_report"):
        message = Message(f"issue-credential/1.{minor}/{name}", "", "", "", {})
        assert message.major_type == "issue-credential/1/problem-report"


@pytest.fixture
def thread(faber, badge, row, phone):
    """That of an offer to the phone."""
    body = {"connectionId": row.connection_id}
    body["definitionId"] = badge["definitionId"]
    values = {"credentialValues": {"name": "Ann", "level": "7"}}
    faber.post("/credentials", body | values)
    queues.sweep()
    return Credential.objects.get().thread_id


def test_a_stranger_changes_nothing(thread, phone, subtests):
    before, stranger = exchanges(), Agent()
    attachments = {name: [json_attachment("x", {})] for name in ATTACHED}
    stranger.their_key = phone.their_key
    for family in sorted(HANDLED):
        with subtests.test(family):
            body = stranger.build(kind(family), thread, **attachments)
            assert stranger.post(stranger.pack(body)).status_code == 202
            inbox.process(*InboundMessage.claim())
            assert exchanges() == before and unhandled() == 0
            assert not queues.pending().exists(), "and nobody is told"


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(HANDLED))
def test_a_hostile_body_is_handled_once_and_breaks_nothing(
    row, thread, phone, caplog, family
):
    members = ATTACHED + [
        "credential_preview", "credential_proposal", "cred_def_id", "status",
        "presentation_proposal", "content", "connection", "connection~sig",
        "description",
    ]  # fmt: skip
    for junk in JUNK:
        body = phone.build(kind(family), thread, **dict.fromkeys(members, junk))
        assert phone.post(phone.pack(body)).status_code == 202
    queues.tasks.sweep()
    assert unhandled() == 0
    assert "Traceback" not in caplog.text
    row.refresh_from_db()
    assert row.state == "Connected"


def test_an_ack_before_its_time_changes_nothing(thread, phone):
    before = exchanges()
    for name in ("issue-credential", "present-proof", "notification"):
        phone.says(phone.build(f"{name}/1.0/ack", thread, status="OK"))
        assert exchanges() == before and unhandled() == 0, name


def test_before_a_request_no_credential_comes_and_offers_change(faber, phone, caplog):
    holder = offered_by(phone, faber)
    credential = {"cred_def_id": holder.definition_id, "values": {}}
    attached = {"credentials~attach": [json_attachment("libindy-cred-0", credential)]}
    kind = "issue-credential/1.0/issue-credential"
    phone.says(phone.build(kind, holder.thread_id, **attached))
    holder.refresh_from_db()
    assert (holder.state, holder.credential) == ("Offered", None)
    assert phone.inbox[-1].is_problem_report
    path = f"/api/{holder.wallet.wallet_id}/credentials/{holder.pk}"
    assert_error(faber.send("post", path), 409, "unknown_definition")
    phone.says(offer(phone, holder.thread_id, value="Bea"))
    holder = Credential.objects.get(role="holder")
    assert (holder.state, holder.unsealed_values()) == ("Offered", {"name": "Bea"})
    holder.decline()
    phone.says(offer(phone, holder.thread_id, value="Cid"))
    holder = Credential.objects.get(role="holder")
    assert (holder.state, holder.unsealed_values()) == ("Rejected", {"name": "Bea"})
    assert unhandled() == 0 and "Traceback" not in caplog.text


def offered_by(phone, faber):
    """Alice's row of an offer that the phone, as an issuer, has made her."""
    accepts_invitation_of(phone, faber.hosts("Alice"))
    phone.says(offer(phone))
    return Credential.objects.get(role="holder")


def offer(phone, thread=None, value="Ann"):
    content = {
        "schema_id": "s",
        "cred_def_id": "Th7MpTaRZVRYnPiabds81Y:3:CL:1:default",
    }
    preview = {"attributes": [{"name": "name", "value": value}]}
    attachments = {"offers~attach": [json_attachment("libindy-cred-offer-0", content)]}
    return phone.build(
        "issue-credential/1.0/offer-credential",
        thread,
        credential_preview=preview,
        **attachments,
    )


def test_another_proof_request_in_the_same_thread_changes_nothing(row, phone, caplog):
    request = {"name": "P", "version": "1.0", "nonce": "7", "requested_predicates": {}}
    request["requested_attributes"] = {"a": {"name": "name"}}
    attached = {"request_presentations~attach": [json_attachment("x", request)]}
    kind = "present-proof/1.0/request-presentation"
    asked = phone.says(phone.build(kind, **attached))
    phone.says(phone.build(kind, asked["@id"], **attached))
    assert Verification.objects.count() == 1
    assert unhandled() == 0 and "Traceback" not in caplog.text


def test_a_ping_is_answered_unless_no_answer_is_asked_for(row, phone):
    ping = phone.says(phone.build(trust_ping.PING))
    assert phone.newest(trust_ping.PING_RESPONSE).thread_id == ping["@id"]
    inbox_size = len(phone.inbox)
    phone.says(phone.build(trust_ping.PING, response_requested=False))
    assert len(phone.inbox) == inbox_size


@pytest.mark.parametrize("members, code", [
    ({"description": {"code": "no", "en": "x"}}, "no"),
    ({"description": "plain text"}, "plain text"),
    ({"explain-ltxt": "old"}, "old"), ({"problem-code": "older"}, "older"),
    ({"description": {"code": "x" * 500}}, "x" * 100),
    ({}, "problem"),
    ({"description": {"code": 7}}, "problem"),
])  # fmt: skip
def test_the_code_of_a_problem_report_is_read_in_every_form(members, code):
    body = didcomm.build("issue-credential/1.0/problem_report", **members)
    assert didcomm.problem_code(didcomm.read(body)) == code
