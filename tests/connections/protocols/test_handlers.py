"""Received messages: replayed, unknown threads, strangers, out of order, hostile."""

import pytest

from connections.didcomm.message import Message, json_attachment
from connections.messaging import router
from connections.models import Connection, InboundMessage
from connections.protocols import connections_1_0, trust_ping
from credentials.models import Credential
from tests.support import queues
from tests.support.outside_agent import Agent
from verifications.models import Verification

HANDLED = {
    "connections/1/request",
    "connections/1/response",
    "connections/1/problem-report",
    "did-rotate/1/ack",
    "did-rotate/1/hangup",
    "did-rotate/1/problem-report",
    "did-rotate/1/rotate",
    "didexchange/1/complete",
    "didexchange/1/problem-report",
    "didexchange/1/request",
    "didexchange/1/response",
    "discover-features/1/disclose",
    "discover-features/1/query",
    "discover-features/2/disclosures",
    "discover-features/2/queries",
    "notification/1/ack",
    "out-of-band/1/handshake-reuse",
    "out-of-band/1/handshake-reuse-accepted",
    "out-of-band/1/problem-report",
    "trust_ping/1/ping",
    "trust_ping/1/ping-response",
    "basicmessage/1/message",
    "issue-credential/1/propose-credential",
    "issue-credential/1/offer-credential",
    "issue-credential/1/request-credential",
    "issue-credential/1/issue-credential",
    "issue-credential/1/ack",
    "issue-credential/1/problem-report",
    "present-proof/1/propose-presentation",
    "present-proof/1/request-presentation",
    "present-proof/1/presentation",
    "present-proof/1/ack",
    "present-proof/1/problem-report",
}
TRIED_ELSEWHERE = {  # test_version_two.py and the tests of revocation
    "issue-credential/2/propose-credential",
    "issue-credential/2/offer-credential",
    "issue-credential/2/request-credential",
    "issue-credential/2/issue-credential",
    "issue-credential/2/ack",
    "issue-credential/2/problem-report",
    "present-proof/2/propose-presentation",
    "present-proof/2/request-presentation",
    "present-proof/2/presentation",
    "present-proof/2/ack",
    "present-proof/2/problem-report",
    "revocation_notification/1/revoke",
    "revocation_notification/2/revoke",
}
IN_A_THREAD = sorted(
    kind
    for kind in HANDLED
    if kind.startswith(("issue-credential", "present-proof"))
    and not kind.endswith(
        (
            "offer-credential",
            "propose-presentation",
            "request-presentation",
            "issue-credential/1/ack",
        )
    )
)
ATTACHED = (
    "offers",
    "requests",
    "credentials",
    "request_presentations",
    "presentations",
)
JUNK = [
    None,
    7,
    "text",
    [],
    {},
    [None],
    [{"data": None}],
    [{"data": {"base64": "!"}}],
    [{"data": {"base64": "bnVsbA=="}}],
    [{"data": {"json": {}}}],
    [{"data": {"json": {"requested_attributes": 7, "requested_predicates": []}}}],
    [{"data": {"json": {"schema_id": [], "cred_def_id": {}, "nonce": None}}}],
    {"attributes": [{"name": "x", "value": 7}]},
    {"attributes": [{"name": "x" * 5000, "value": "y"}]},
    {
        "DID": "x",
        "DIDDoc": {"service": [{"type": "IndyAgent", "recipientKeys": ["x"]}]},
    },
    {"sig_data": "x", "signature": "y", "signer": "z"},
    {"code": ["no text"]},
]


@pytest.fixture
def row(faber, phone):
    return phone.connects(faber)


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


def test_a_message_of_an_unknown_thread_is_refused_and_changes_nothing(
    row, phone, subtests
):
    before = exchanges()
    attachments = {f"{name}~attach": [json_attachment("x", {})] for name in ATTACHED}
    for family in IN_A_THREAD:
        phone.inbox.clear()
        with subtests.test(family):
            phone.says(phone.build(kind(family), "no-such-thread", **attachments))
            assert exchanges() == before and unhandled() == 0
            answers = [(one.is_problem_report, one.thread_id) for one in phone.inbox]
            is_answered = not family.endswith(("ack", "problem-report"))
            assert answers == [(True, "no-such-thread")] * is_answered


def test_a_stranger_changes_nothing(faber, row, phone, subtests):
    offered_to(phone, faber, row)
    thread, before = Credential.objects.get().thread_id, exchanges()
    attachments = {f"{name}~attach": [json_attachment("x", {})] for name in ATTACHED}
    for family in sorted(HANDLED):
        stranger, inbox_size = Agent(), len(phone.inbox)
        stranger.their_key = phone.their_key
        with subtests.test(family):
            stranger.says(stranger.build(kind(family), thread, **attachments))
            assert exchanges() == before and unhandled() == 0
            assert len(phone.inbox) == inbox_size, "and nobody is told"


def offered_to(phone, faber, row):
    definition = faber.defines("name", "level")
    values = {"name": "Ann", "level": "7"}
    body = {
        "definitionId": definition["definitionId"],
        "connectionId": row.connection_id,
    }
    faber.post("/credentials", body | {"credentialValues": values})
    queues.sweep()


def test_an_exchange_of_another_connection_is_an_unknown_thread(
    faber, row, phone, settings
):
    offered_to(phone, faber, row)
    thread = Credential.objects.get().thread_id
    other = Agent()
    other.endpoint = phone.endpoint
    invited = Connection.objects.get(connection_id=faber.invites()["connectionId"])
    other.requests(invited.invitation)
    phone.inbox.clear()
    other.their_key = Connection.objects.get(pk=invited.pk).my_key.verkey
    other.says(
        other.build("issue-credential/1.0/problem-report", thread, description="x")
    )
    assert Credential.objects.get().state == "Offered"


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(HANDLED))
def test_a_hostile_body_is_handled_once_and_breaks_nothing(
    faber, row, phone, caplog, family
):
    offered_to(phone, faber, row)
    thread = Credential.objects.get().thread_id
    members = [f"{name}~attach" for name in ATTACHED]
    members += [
        "credential_preview",
        "credential_proposal",
        "cred_def_id",
        "presentation_proposal",
        "content",
        "connection",
        "connection~sig",
        "description",
        "status",
    ]
    for junk in JUNK:
        body = phone.build(kind(family), thread, **dict.fromkeys(members, junk))
        assert phone.post(phone.pack(body)).status_code == 202
    while queues.tasks.process_some():
        pass
    assert unhandled() == 0
    assert "Traceback" not in caplog.text
    row.refresh_from_db()
    assert row.state == "Connected"


@pytest.mark.parametrize(
    "family", ["issue-credential/1/ack", "present-proof/1/ack", "notification/1/ack"]
)
def test_an_ack_before_its_time_changes_nothing(faber, row, phone, family):
    offered_to(phone, faber, row)
    before = exchanges()
    phone.says(
        phone.build(kind(family), Credential.objects.get().thread_id, status="OK")
    )
    assert exchanges() == before and unhandled() == 0


def test_a_credential_before_the_request_changes_nothing(faber, phone):
    holder = offered_by(phone, faber)
    credential = {"cred_def_id": holder.definition_id, "values": {}}
    attachments = {
        "credentials~attach": [json_attachment("libindy-cred-0", credential)]
    }
    phone.says(
        phone.build(
            "issue-credential/1.0/issue-credential", holder.thread_id, **attachments
        )
    )
    holder.refresh_from_db()
    assert (holder.state, holder.credential) == ("Offered", None)
    assert phone.inbox[-1].is_problem_report


def offered_by(phone, faber):
    """Alice's row of an offer that the phone, as an issuer, has made her."""
    alice = faber.hosts("Alice")
    invitation = connections_1_0.build_invitation(
        "Shop", "", phone.verkey, phone.endpoint
    )
    alice.accepts_invitation(connections_1_0.json.dumps(invitation))
    queues.sweep()
    asked = phone.newest(connections_1_0.REQUEST)
    phone.their_key = connections_1_0.read_party(asked.body["connection"]).verkey
    phone.says(connections_1_0.build_response(phone.party, phone.seed, asked))
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


def test_an_offer_of_a_definition_that_nobody_knows_cannot_be_accepted(faber, phone):
    holder = offered_by(phone, faber)
    path = f"/api/{holder.wallet.wallet_id}/credentials/{holder.pk}"
    answer = faber.send("post", path)
    assert (answer.status_code, answer.json()["code"]) == (409, "unknown_definition")
    holder.refresh_from_db()
    assert holder.state == "Offered"


def test_another_offer_in_the_same_thread_replaces_the_first(faber, phone, caplog):
    holder = offered_by(phone, faber)
    phone.says(offer(phone, holder.thread_id, value="Bea"))
    holder = Credential.objects.get(role="holder")
    assert (holder.state, holder.unsealed_values()) == ("Offered", {"name": "Bea"})
    assert unhandled() == 0 and "Traceback" not in caplog.text


def test_another_offer_after_the_answer_changes_nothing(faber, phone, caplog):
    holder = offered_by(phone, faber)
    holder.decline()
    phone.says(offer(phone, holder.thread_id, value="Bea"))
    holder = Credential.objects.get(role="holder")
    assert (holder.state, holder.unsealed_values()) == ("Rejected", {"name": "Ann"})
    assert unhandled() == 0 and "Traceback" not in caplog.text


def test_another_proof_request_in_the_same_thread_changes_nothing(
    faber,
    phone,
    caplog,
):
    offered_by(phone, faber)
    request = {
        "name": "P",
        "version": "1.0",
        "nonce": "7",
        "requested_attributes": {"a": {"name": "name"}},
        "requested_predicates": {},
    }
    attachments = {"request_presentations~attach": [json_attachment("x", request)]}
    asked = phone.build("present-proof/1.0/request-presentation", **attachments)
    phone.says(asked)
    again = phone.build(
        "present-proof/1.0/request-presentation", asked["@id"], **attachments
    )
    phone.says(again)
    assert Verification.objects.count() == 1
    assert unhandled() == 0 and "Traceback" not in caplog.text


def test_a_ping_is_answered_unless_no_answer_is_asked_for(row, phone):
    ping = phone.says(phone.build(trust_ping.PING))
    assert phone.newest(trust_ping.PING_RESPONSE).thread_id == ping["@id"]
    inbox_size = len(phone.inbox)
    phone.says(phone.build(trust_ping.PING, response_requested=False))
    assert len(phone.inbox) == inbox_size


@pytest.mark.parametrize(
    "name", ["questions/1.0/ask", "connections/2.0/request", "x/1.0/y"]
)
def test_an_unknown_message_is_answered_by_a_problem_report(row, phone, name):
    sent = phone.says(phone.build(name))
    report = phone.inbox[-1]
    assert (report.is_problem_report, report.thread_id) == (True, sent["@id"])


def test_an_unknown_problem_report_is_never_answered(row, phone):
    inbox_size = len(phone.inbox)
    phone.says(phone.build("questions/1.0/problem-report", description={"code": "x"}))
    assert len(phone.inbox) == inbox_size


def test_the_code_of_a_problem_report_is_read_in_every_form(
    faber, row, phone, subtests
):
    for members, code in (
        ({"description": {"code": "no", "en": "x"}}, "no"),
        ({"description": "plain text"}, "plain text"),
        ({"explain-ltxt": "old"}, "old"),
        ({"problem-code": "older"}, "older"),
        ({"description": {"code": "x" * 500}}, "x" * 100),
        ({}, "problem"),
        ({"description": {"code": 7}}, "problem"),
    ):
        offered_to(phone, faber, row)
        credential = Credential.objects.latest("pk")
        with subtests.test(str(members)[:60]):
            report = "issue-credential/1.0/problem_report"
            phone.says(phone.build(report, credential.thread_id, **members))
            credential.refresh_from_db()
            assert (credential.state, credential.problem) == ("Rejected", code)
