"""What an agent may send out of order, from elsewhere or once too often, as one table.

Each row: a message, and the answer that the sender gets. Whatever it is, the call is
answered by 202, it is handled once, no state changes and no problem report is
answered. What cannot be opened at all stands in messaging/test_inbox.py.
"""

from uuid import uuid4

import pytest

from connections.didcomm.formats import (
    HLINDY,
    PRESENTATION,
    REQUEST,
    MessageFormat,
    attach_as,
)
from connections.didcomm.message import json_attachment
from connections.models import Connection, InboundMessage, OutboundMessage
from connections.protocols import (
    connections_1_0,
    did_exchange,
    did_rotate,
    discover_features,
    out_of_band,
)
from credentials.models import Credential
from tests.support import queues
from tests.support.outside_agent import NEW
from verifications.models import Verification

REPORT, SILENCE = "problem-report", None
ISSUE, PROVE = "issue-credential/{}/", "present-proof/{}/"
ATTACHED = {
    "propose-credential": "filters~attach",
    "offer-credential": "offers~attach",
    "request-credential": "requests~attach",
    "issue-credential": "credentials~attach",
    "request-presentation": "request_presentations~attach",
    "presentation": "presentations~attach",
}
OUT_OF_ORDER = [  # of exchanges that nobody has begun
    (ISSUE + "propose-credential", REPORT),
    (ISSUE + "request-credential", REPORT),
    (ISSUE + "issue-credential", REPORT),
    (ISSUE + "ack", SILENCE),
    (ISSUE + "problem-report", SILENCE),
    (PROVE + "presentation", REPORT),
    (PROVE + "ack", SILENCE),
    (PROVE + "problem-report", SILENCE),
]
SETTLED = [  # on a connection that stands
    (connections_1_0.RESPONSE, REPORT),
    (connections_1_0.PROBLEM, SILENCE),
    (connections_1_0.ACK, SILENCE),
    ("didexchange/1.1/response", REPORT),
    (did_exchange.COMPLETE, SILENCE),
    (did_exchange.PROBLEM, SILENCE),
    (out_of_band.REUSE, REPORT),
    ("out-of-band/1.1/handshake-reuse-accepted", SILENCE),
    (out_of_band.PROBLEM, SILENCE),
    (did_rotate.ACK, SILENCE),
    (did_rotate.PROBLEM, SILENCE),
    (did_rotate.ROTATE, REPORT),
    (discover_features.QUERY, REPORT),
    (discover_features.DISCLOSE, REPORT),
    ("report-problem/1.0/problem-report", SILENCE),
    ("notification/1.0/problem-report", SILENCE),
    ("unknown/9.9/thing", REPORT),
    ("connections/2.0/request", REPORT),
    ("unknown/9.9/problem_report", SILENCE),
]
TABLE = [
    (kind.format(v), answer) for kind, answer in OUT_OF_ORDER for v in ("1.0", "2.0")
]
TABLE += SETTLED


@pytest.fixture
def row(faber, any_phone):
    return any_phone.connects(faber)


def states():
    models = (Connection, Credential, Verification)
    return [
        list(one.objects.order_by("pk").values("pk", "state", "sequence"))
        for one in models
    ]


def last_part(received):
    return received.major_type.rpartition("/")[2]


def reply_to(phone):
    """The reply to the phone's last message: none or one, by the end of its type."""
    return last_part(phone.inbox[0]) if phone.inbox else SILENCE


def reply_after(phone, body):
    """The envelope is answered by 202 and handled once, and nothing has changed."""
    before = states()
    phone.inbox.clear()
    phone.says(body)
    assert InboundMessage.objects.get(message_id=body["@id"]).status == "done"
    assert states() == before and len(phone.inbox) <= 1
    assert not queues.pending().exists()
    return reply_to(phone)


def test_a_message_out_of_order_is_only_answered_once(row, any_phone):
    phone, before, sent = any_phone, states(), {}
    phone.inbox.clear()
    for kind, _ in TABLE:
        member = ATTACHED.get(kind.rpartition("/")[2])
        members = {member: [json_attachment("x", {"a": 1})]} if member else {}
        sent[kind] = phone.build(kind, str(uuid4()), **members)
    for _ in range(2):  # the second time nothing more is answered
        for body in sent.values():
            assert phone.post(phone.pack(body)).status_code == 202
        queues.sweep()
    kinds = {body["~thread"]["thid"]: kind for kind, body in sent.items()}
    answered = [(kinds[one.thread_id], last_part(one)) for one in phone.inbox]
    assert sorted(answered) == sorted(pair for pair in TABLE if pair[1])
    assert {one.prefix for one in phone.inbox} == {phone.prefix}
    done = InboundMessage.objects.filter(status="done")
    ids = {body["@id"] for body in sent.values()}
    assert ids <= set(done.values_list("message_id", flat=True))
    assert states() == before and not queues.pending().exists()


def open_offer_thread(faber, row, version):
    """A thread of ours that waits for an answer, in either protocol."""
    definition = faber.defines("name", "level")["definitionId"]
    path = f"/connections/{row.connection_id}/protocols"
    faber.put(path, {"exchangeVersion": version})
    body = {"definitionId": definition, "connectionId": row.connection_id}
    values = {"credentialValues": {"name": "A", "level": "1"}}
    faber.post("/credentials", body | values)
    policy = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}
    faber.post(f"/verifications/policy/connections/{row.connection_id}", policy)
    queues.sweep()
    return Credential.objects.get().thread_id, Verification.objects.get().thread_id


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_only_its_peer_answers_an_exchange_in_its_part(faber, row, any_phone, version):
    """The holder of our offer does not issue, and the prover does not ask.

    Another peer of the organization knows the threads, but cannot change them.
    """
    phone = any_phone
    credential, proof = open_offer_thread(faber, row, version)
    for kind, thread in (
        (f"issue-credential/{version}/issue-credential", credential),
        (f"present-proof/{version}/request-presentation", proof),
    ):
        members = {ATTACHED[kind.rpartition("/")[2]]: [json_attachment("x", {"a": 1})]}
        assert reply_after(phone, phone.build(kind, thread, **members)) == REPORT
    other = phone.with_next_key()
    other.receives = phone.receives = lambda data: None
    invited = Connection.objects.get(connection_id=faber.invites()["connectionId"])
    other.requests(invited.invitation)
    other.their_key = Connection.objects.get(pk=invited.pk).my_key.verkey
    other.says(other.build(connections_1_0.ACK))
    before = states()
    for protocol_name, thread, kind, attached in (
        ("issue-credential", credential, "request-credential", REQUEST),
        ("present-proof", proof, "presentation", PRESENTATION),
    ):
        members = attach_as(MessageFormat(NEW, version, HLINDY), attached, {"a": 1})
        other.says(other.build(f"{protocol_name}/{version}/{kind}", thread, **members))
        other.says(other.build(f"{protocol_name}/{version}/problem-report", thread))
        other.says(other.build(f"{protocol_name}/{version}/ack", thread))
        assert states() == before


def test_reports_about_reports_end_at_once(row, any_phone):
    """Two agents that report each other's reports would never stop."""
    any_phone.inbox.clear()
    report = any_phone.says(any_phone.build("unknown/1.0/thing"))
    assert reply_to(any_phone) == REPORT
    kind = "unknown/1.0/problem-report"
    back = any_phone.build(kind, report["@id"], description="?")
    assert reply_after(any_phone, back) is SILENCE
    assert OutboundMessage.objects.filter(type__contains="problem").count() == 1
