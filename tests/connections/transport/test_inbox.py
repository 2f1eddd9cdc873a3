"""`POST /didcomm`: what strangers may send. They only learn 202 or one 400."""

import json
import zlib
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from connections.didcomm import envelope, message
from connections.messaging import envelopes
from connections.models import Connection, InboundMessage
from connections.protocols import connections_1_0, trust_ping
from connections.transport import inbox
from tests.support import queues
from tests.support.errors import assert_error
from tests.support.outside_agent import Agent
from wallets import keys
from wallets.models import Key

CANNOT_OPEN = "The envelope cannot be opened here."


def assert_cannot_open(answer):
    error = answer.json()
    assert error.pop("requestId") == answer["X-Request-Id"]
    assert error.pop("documentationUrl").endswith("/docs/errors#cannot_open")
    assert error == {"code": "cannot_open", "message": CANNOT_OPEN}
    assert answer.status_code == 400


def handled(**fields):
    return InboundMessage.objects.filter(status="done", **fields).count()


def test_a_valid_envelope_is_stored_and_answered_202_and_another_type_415(row, phone):
    for content_type in (
        "application/ssi-agent-wire", "application/didcomm-envelope-enc",
        "application/json", "application/json; charset=utf-8",
        "application/octet-stream", "",
    ):  # fmt: skip
        ping = phone.build(trust_ping.PING)
        answer = phone.post(phone.pack(ping), content_type=content_type)
        assert (answer.status_code, answer.content) == (202, b""), content_type
        assert "Content-Type" not in answer.headers
        stored = InboundMessage.objects.get(message_id=ping["@id"])
        assert (stored.status, stored.sender_key) == ("pending", phone.verkey)
    for content_type in (
        "x/y", "text/plain", "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x", "application/didcomm-encrypted+json",
        "nonsense",
    ):  # fmt: skip
        answer = phone.post(b"{}", content_type=content_type)
        assert_error(answer, 415, "unsupported_media_type")


def test_of_several_recipients_a_live_key_opens(row, phone, django_assert_num_queries):
    retired, live, newer = [row.wallet.create_key() for _ in range(3)]
    retired.retire()
    body = json.dumps(phone.build(trust_ping.PING)).encode()

    def packed(*recipients):
        sender = envelope.Sender(phone.verkey, phone.seed)
        return envelope.pack(body, [key.verkey for key in recipients], sender)

    opened_by, _ = envelopes.open_envelope(packed(newer, retired, live))
    assert opened_by == live
    with django_assert_num_queries(1):
        assert Key.find_any([live.verkey, retired.verkey]) == live
    with pytest.raises(envelopes.RetiredKey):
        envelopes.open_envelope(packed(retired, Agent()))


def test_a_replayed_envelope_is_answered_202_and_handled_once(row, phone):
    ping = phone.build(trust_ping.PING)
    data = phone.pack(ping)
    for _ in range(3):
        assert phone.post(data).status_code == 202
        queues.worker_catches_up()
    assert handled(message_id=ping["@id"]) == 1
    assert [one.type for one in phone.inbox].count(trust_ping.PING_RESPONSE) == 1


def test_what_nobody_packed_for_us_gets_the_same_400(db, phone, subtests):
    ping = phone.build(trust_ping.PING)
    for data in (
        b"", b"{}", b"[]", b"null", b"7", b'"text"', b"\xff\xfe", b"[" * 5000,
        b"\x00" * 100, b'{"protected":"!"}', json.dumps(ping),
        phone.pack(ping, to=Agent().verkey),
    ):  # fmt: skip
        with subtests.test(str(data)[:40]):
            assert_cannot_open(phone.post(data))
    assert not InboundMessage.objects.exists()


def test_a_stored_message_that_cannot_be_read_any_more_stops_no_other(row, phone):
    for _ in range(3):
        phone.post(phone.pack(phone.build(trust_ping.PING)))
    broken = InboundMessage.objects.filter(status="pending").earliest("pk")
    InboundMessage.objects.filter(pk=broken.pk).update(body=b"unreadable")
    queues.sweep()
    assert not InboundMessage.objects.filter(status="pending").exclude(pk=broken.pk)
    left = InboundMessage.objects.get(pk=broken.pk)
    assert (left.attempts, left.last_error) == (1, "internal_error")


def test_a_message_whose_turn_comes_after_its_lease_is_left_to_its_owner(row, phone):
    phone.post(phone.pack(phone.build(trust_ping.PING)))
    [late] = InboundMessage.claim(10)
    late.lease_until -= timedelta(hours=1)
    phone.inbox.clear()
    inbox.process(late)
    assert (
        phone.inbox == [] and InboundMessage.objects.get(pk=late.pk).status == "pending"
    )


def test_content_that_is_no_message_gets_the_same_400(row, phone, subtests):
    sender = envelope.Sender(phone.verkey, phone.seed)
    endless = ("x" * 300 + "/1.0/y", "x/1.0/" + "y" * 300)
    types = [{"@type": message.PREFIX + one, "@id": "12345678"} for one in endless]
    deep = json.loads("[" * 40 + "]" * 40)
    bodies = [*types, phone.build(trust_ping.PING, comment=deep)]
    contents = [b"no json", b"[]", b"{}", b'{"@type": "x", "@id": "y"}']
    contents += [json.dumps(one).encode() for one in bodies]
    contents.append(zlib.compress(json.dumps(phone.build(trust_ping.PING)).encode()))
    for content in contents:
        with subtests.test(str(content)[:40]):
            packed = envelope.pack(content, [phone.their_key], sender)
            assert_cannot_open(phone.post(packed))


def test_what_was_changed_or_is_for_nobody_gets_the_same_400(
    faber, row, phone, subtests
):
    data = json.loads(phone.pack(phone.build(trust_ping.PING)))
    data["tag"] = envelope.encode_bytes(bytes(16))
    assert_cannot_open(phone.post(json.dumps(data)))
    for member in ("protected", "tag", "header"):
        with subtests.test(f"{member} stands twice"):
            assert_cannot_open(phone.post(doubled(phone, member)))
    faber.delete(f"/connections/{row.connection_id}")
    assert_cannot_open(phone.post(phone.pack(phone.build(trust_ping.PING))))


def test_more_than_the_limit_and_other_methods_are_refused(db, client):
    too_much = b"x" * (settings.MAX_ENVELOPE_BYTES + 1)
    answer = client.post("/didcomm", data=too_much, content_type="application/json")
    assert_error(answer, 413, "body_too_large")
    for method in ("get", "put", "delete"):
        assert getattr(client, method)("/didcomm").status_code == 405


def pack_as(phone, sender_text, body, monkeypatch):
    """An envelope from the phone whose encrypted sender is `sender_text`."""
    seal = keys.seal_anonymous_box

    def sealed(content, to):
        return seal(sender_text if content == phone.verkey.encode() else content, to)

    with monkeypatch.context() as patch:
        patch.setattr(keys, "seal_anonymous_box", sealed)
        return phone.pack(body)


def test_a_sender_in_another_spelling_is_the_same_sender(row, phone, monkeypatch):
    did_key = keys.did_key_of(phone.verkey)
    for spelling in (did_key, f"{did_key}#{did_key[8:]}", phone.verkey + " " * 60):
        ping = phone.build(trust_ping.PING)
        data = pack_as(phone, spelling.encode(), ping, monkeypatch)
        assert phone.post(data).status_code == 202
        queues.sweep()
        assert phone.newest(trust_ping.PING_RESPONSE).thread_id == ping["@id"]


def test_a_sender_that_is_no_key_is_refused(row, phone, subtests, monkeypatch):
    ping = phone.build(trust_ping.PING)
    for sender in (b"", b"\xff" * 44, b"x", b"1" * 44, b"z" * 200_000):
        data = pack_as(phone, sender, ping, monkeypatch)
        with subtests.test(repr(sender[:44])):
            assert_cannot_open(phone.post(data))


def test_a_stranger_with_the_key_and_nobody_anonymous_are_not_the_peer(row, phone):
    stranger = Agent()
    stranger.their_key = phone.their_key
    ping = stranger.says(stranger.build(trust_ping.PING))
    assert handled(message_id=ping["@id"]) == 1, "stored, refused and done with"
    phone.says(phone.build(trust_ping.PING), anonymous=True)
    assert [one.type for one in phone.inbox] == [connections_1_0.RESPONSE]


def test_only_a_request_may_come_by_the_invitations_key(row, phone):
    by_invitation = row.invitation["recipientKeys"][0]
    phone.says(phone.build(trust_ping.PING), to=by_invitation)
    assert "ping-response" not in phone.inbox[-1].major_type
    request = connections_1_0.build_request("Phone", "", phone.party, phone.prefix)
    phone.says(request)
    assert Connection.objects.get(pk=row.pk).state == "Connected"


def test_a_request_signed_by_another_than_its_document_connects_nobody(faber, phone):
    invited = faber.invites()
    row = Connection.objects.get(connection_id=invited["connectionId"])
    other = connections_1_0.did_document(
        Agent().party._replace(endpoint="https://x.example")
    )
    phone.requests(row.invitation, connection=other)
    assert Connection.objects.get(pk=row.pk).state == "Invited"


def doubled(phone, member):
    """An envelope whose header or body names a member twice."""
    data = json.loads(phone.pack(phone.build(trust_ping.PING)))
    if member == "header":
        header = envelope.decode_bytes(data["protected"]).decode()
        data["protected"] = envelope.encode_bytes(
            header.replace("{", '{"alg":"x",', 1).encode()
        )
        return json.dumps(data)
    return json.dumps(data).replace("{", f'{{"{member}":"x",', 1)


def test_no_key_is_touched_before_the_bounds_are_checked(row, phone, monkeypatch):
    monkeypatch.setattr(envelopes, "Key", None)
    many = [keys.verkey_of(bytes([n]) * 32) for n in range(33)]
    sender = envelope.Sender(phone.verkey, phone.seed)
    for data in (b"{}", doubled(phone, "header"), envelope.pack(b"{}", many, sender)):
        assert_cannot_open(phone.post(data))


def test_for_all_envelopes_that_do_not_open_as_much_is_done(row, phone):
    """Whether somebody here has the key is not to be read from the clock."""
    body, counts = phone.says(phone.build(trust_ping.PING)), []  # reads the data key
    unknown = phone.pack(body, to=Agent().verkey)
    broken = json.loads(phone.pack(body)) | {"tag": envelope.encode_bytes(bytes(16))}
    for data in (unknown, json.dumps(broken)):
        with CaptureQueriesContext(connection) as captured:
            assert_cannot_open(phone.post(data))
        counts.append(len(captured))
    assert counts[0] == counts[1]


def test_a_recipient_named_by_did_key_is_the_same_recipient(row, phone, monkeypatch):
    did_key, lock = keys.did_key_of(phone.their_key), envelope._lock
    for spelling in (did_key, f"{did_key}#{did_key[8:]}"):

        def renamed(*given, spelling=spelling):
            entry = lock(*given)
            return entry | {"header": entry["header"] | {"kid": spelling}}

        ping = phone.build(trust_ping.PING)
        with monkeypatch.context() as patch:
            patch.setattr(envelope, "_lock", renamed)
            data = phone.pack(ping)
        assert phone.post(data).status_code == 202
        queues.sweep()
        assert phone.newest(trust_ping.PING_RESPONSE).thread_id == ping["@id"]


def test_a_message_whose_time_is_over_is_refused_but_clocks_may_differ(row, phone):
    for ago, is_taken in ((600, False), (60, True)):
        end = datetime.now(UTC) - timedelta(seconds=ago)
        for text in (end.isoformat(), end.strftime("%Y-%m-%d %H:%M:%SZ")):
            timing = {"~timing": {"expires_time": text}}
            phone.says(phone.build(trust_ping.PING, **timing))
            assert phone.inbox[-1].is_problem_report != is_taken
    for unread in (7, {"expires_time": None}, {"expires_time": "soon"}):
        ping = phone.says(phone.build(trust_ping.PING, **{"~timing": unread}))
        assert phone.newest(trust_ping.PING_RESPONSE).thread_id == ping["@id"]


def test_one_message_id_of_two_strangers_or_for_two_wallets_is_two(faber, phone):
    invited = faber.invites(multiParty=True)
    row = Connection.objects.get(connection_id=invited["connectionId"])
    other = Agent()
    other.endpoint = phone.endpoint
    for one in (phone, other):
        one.requests(row.invitation, **{"@id": "the-same-id"})
    spawned = Connection.objects.exclude(pk=row.pk)
    assert {one.their_key for one in spawned} == {phone.verkey, other.verkey}
    ping = phone.build(trust_ping.PING)
    for one in (phone.connects(faber), phone.connects(faber)):
        phone.says(ping, to=one.my_key.verkey)
    assert handled(message_id=ping["@id"]) == 2


def test_a_slow_worker_that_lost_its_lease_refuses_nothing(row, phone):
    """Its successor has answered already: what fails now fails because it is done."""
    phone.post(phone.pack(phone.build("issue-credential/1.0/request-credential")))
    [slow] = InboundMessage.claim()
    queues.worker_catches_up()
    answered = len(phone.inbox)
    inbox.process(slow)
    queues.worker_catches_up()
    assert len(phone.inbox) == answered
