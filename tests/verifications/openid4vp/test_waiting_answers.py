"""Status lists of other issuers: read and judged by the worker."""

import time
import zlib
from datetime import timedelta
from threading import Thread
from unittest.mock import Mock

import pytest
from django.core.cache import cache

from core.errors import PeerError, Unavailable
from core.net import http
from core.work import leases
from tests.support.http_endpoints import answers, serving, sleeps
from tests.support.races import wait_until
from tests.support.sd_jwt import Issuer
from tests.verifications.openid4vp.test_other_issuers import (
    STATE,
    anchor,  # noqa: F401
    ask_state,
    codes,
    issue,
    trust,
)
from verifications.models import Verification, WaitingAnswer
from verifications.openid4vp import foreign_lists, waiting_answers
from verifications.openid4vp.queries import Query
from wallets.jose import certificates, signing, status_token
from webhooks.events.types import Type
from webhooks.models import Event

pytestmark = pytest.mark.django_db(transaction=True)
REVOKED = 7  # of the places of the list


@pytest.fixture(autouse=True)
def walls(settings):
    settings.OUTGOING_ALLOW_LOOPBACK = True
    cache.clear()


def sign_list(uri, of=STATE, listed=None, typ=status_token.TYP, **changes):
    now = int(time.time())
    data = status_token.with_bits(bytes(16), [REVOKED])
    packed = {"bits": 1, "lst": signing.encode_base64url(zlib.compress(data))}
    payload = {
        "sub": uri, "iat": now, "exp": now + 600, "ttl": 60,
        "status_list": packed | (listed or {}),
    } | changes  # fmt: skip
    return signing.sign_token(payload, of.secret, typ, x5c=of.x5c).encode()


def response(body, status="200 OK", headers=""):
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


class Host:
    """A host that answers the first that asks: this, or its list with these changes."""

    uri = ""

    def __init__(self, answer=b"", **changes):
        self.answer, self.changes = answer, changes

    def __call__(self, connection):
        listed = self.answer or response(sign_list(self.uri, **self.changes))
        answers(listed)(connection)


def show(acme, anchor_id, uri, index=0):  # noqa: F811
    """Alice shows a card with this status; the verification."""
    phone = issue(status={"status_list": {"idx": index, "uri": uri}})
    asked = ask_state(acme, anchor_id)
    assert phone.answer(asked["walletLinks"]["openid4vp"]).status_code == 200
    phone.asked = asked["verificationId"]
    return phone


def seen(acme, phone):
    return acme.get(f"/verifications/{phone.asked}")


def judged(acme, anchor_id, meet):
    """The verification after the worker has read the list."""
    with serving(meet) as host:
        uri = f"http://{host}/1"
        phone = show(acme, anchor_id, uri)
        before = seen(acme, phone)
        assert before["state"] == "Requested" and "isValid" not in before
        waiting_answers.loop.run()
    assert not WaitingAnswer.objects.exists()
    return seen(acme, phone)


def test_a_list_is_read_by_the_worker_and_kept(acme, anchor):  # noqa: F811
    with serving(host := Host()) as name:
        host.uri = f"http://{name}/1"
        first = show(acme, anchor, host.uri)
        assert seen(acme, first)["state"] == "Requested"
        waiting_answers.loop.run()
        assert seen(acme, first)["isValid"]
        second = show(acme, anchor, host.uri, REVOKED)  # at once: the list is kept
    assert codes(seen(acme, second)) == {"revoked"}


BOMB = signing.encode_base64url(zlib.compress(bytes(5_000_000)))
NO_LISTS = {
    "404": Host(response(b"", "404 Not Found")),
    "redirect": Host(response(b"", "302 Found", "Location: https://else.example/\r\n")),
    "empty": Host(response(b"")), "long": Host(response(b"x" * 2_000_000)),
    "other sub": Host(response(sign_list("https://else.example/1"))),
    "no sub": Host(sub=None), "expired": Host(exp=1), "typ": Host(typ="JWT"),
    "bits 3": Host(listed={"bits": 3}), "bomb": Host(listed={"lst": BOMB}),
    "signer": Host(of=Issuer(STATE.uri)),
}  # fmt: skip
QUERY = Query(
    id="q0", group=0, vct="urn:eu:pid", issuer="", kinds={}, demands=(),
    anchors=tuple(certificates.encode_chain([STATE.authority.der])),
)  # fmt: skip


def status(host, index=0):
    """What the worker reads at this place of a host's list."""
    with serving(host) as name:
        host.uri = f"http://{name}/1"
        listed = {"idx": index, "uri": host.uri}
        return foreign_lists.ListReader().find_status(listed, QUERY)


def test_what_is_no_list_of_the_issuer_has_no_status(transactional_db, subtests):
    assert (status(Host()), status(Host(), REVOKED)) == (0, 1)
    for name, host in NO_LISTS.items():
        with subtests.test(name), pytest.raises(PeerError):
            status(host)
    for index in (128, -1, "0", True, None):
        with subtests.test(str(index)), pytest.raises(PeerError):
            status(Host(), index)


@pytest.mark.parametrize("answer", ["404 Not Found", "503 Service Unavailable"])
def test_without_a_list_of_the_issuer_it_is_not_valid(acme, anchor, answer):  # noqa: F811
    seen = judged(acme, anchor, Host(response(b"", answer)))
    assert codes(seen) == {"status_unavailable"}


def test_what_was_read_is_not_read_again(transactional_db, monkeypatch):
    """An answer may need several places of a list, and be no list."""
    reader, asked = foreign_lists.ListReader(), []
    monkeypatch.setattr(reader, "fetch", lambda address: asked.append(address) or "")
    for index in range(2):
        with pytest.raises(PeerError):
            reader.find_status({"idx": index, "uri": "https://state.example/1"}, QUERY)
    assert len(asked) == 1


def test_a_slow_list_ends_in_its_time(acme, anchor, monkeypatch):  # noqa: F811
    monkeypatch.setattr(foreign_lists, "LIST_SECONDS", 0.05)
    monkeypatch.setattr(http, "get", get := Mock(wraps=http.get))
    assert codes(judged(acme, anchor, sleeps)) == {"status_unavailable"}
    assert get.call_args.kwargs["timeout"] <= 0.05


def test_a_private_address_is_not_called(acme, anchor, settings):  # noqa: F811
    settings.OUTGOING_ALLOW_LOOPBACK = False
    for uri in ("file:///etc/passwd", "x" * 3000, 5):
        with pytest.raises((PeerError, Unavailable)):
            foreign_lists.ListReader().find_status({"idx": 0, "uri": uri}, QUERY)
    for uri in ("http://127.0.0.1:9/1", 5):
        phone = show(acme, anchor, uri)
        waiting_answers.loop.run()
        assert codes(seen(acme, phone)) == {"status_unavailable"}


def test_a_second_answer_meanwhile_changes_nothing(acme, anchor):  # noqa: F811
    with serving(host := Host()) as name:
        host.uri = f"http://{name}/1"
        phone = show(acme, anchor, host.uri, REVOKED)
        request = phone.request_object
        said = {"vp_token": phone.vp_token(), "state": request["state"]}
        for other in (said | {"vp_token": {}}, said | {"error": "access_denied"}):
            assert phone.send(response=phone.encrypt(other)).status_code == 400
        assert phone.read(phone.query["request_uri"]).status_code == 410
        waiting_answers.loop.run()
    assert codes(seen(acme, phone)) == {"revoked"}


def test_a_process_that_is_killed_leaves_one_verdict(acme, anchor, monkeypatch):  # noqa: F811
    with serving(host := Host()) as name:
        host.uri = f"http://{name}/1"
        phone = show(acme, anchor, host.uri)

        def crash(*given):
            raise SystemExit

        [job] = WaitingAnswer.claim()
        with monkeypatch.context() as killed, pytest.raises(SystemExit):
            killed.setattr(Verification, "receive_answer", crash)
            leases.work_on(job, waiting_answers.judge_waiting)
    assert seen(acme, phone)["state"] == "Requested"
    assert not WaitingAnswer.claim()  # it is leased
    WaitingAnswer.objects.update(lease_until=job.created_at - timedelta(1))
    waiting_answers.loop.run()  # by the list that was kept
    leases.work_on(job, waiting_answers.judge_waiting)  # the former one wakes up
    assert seen(acme, phone)["isValid"]
    events = Event.objects.filter(type=Type.VERIFICATION)
    assert events.count() == 1 and not WaitingAnswer.objects.exists()


def test_a_fault_of_ours_ends_in_a_verdict(acme, anchor, monkeypatch):  # noqa: F811
    phone = show(acme, anchor, "https://state.example/1")

    def fail(*given):
        raise ZeroDivisionError

    monkeypatch.setattr(foreign_lists.ListReader, "find_status", fail)
    for _ in range(4):
        WaitingAnswer.objects.update(due_at=WaitingAnswer.objects.get().created_at)
        waiting_answers.loop.run()
    assert codes(seen(acme, phone)) == {"status_unavailable"}


def test_what_was_withdrawn_meanwhile_gets_no_verdict(acme, anchor):  # noqa: F811
    phone = show(acme, anchor, "https://state.example/1")
    acme.delete(f"/verifications/{phone.asked}")
    waiting_answers.loop.run()
    assert not WaitingAnswer.objects.exists() and not Verification.objects.exists()


def test_the_slow_list_of_a_stranger_slows_no_neighbour(faber, acme, anchor):  # noqa: F811
    of_faber = trust(faber)
    with serving(*[sleeps] * 9) as slow, serving(host := Host()) as name:
        for number in range(9):
            show(acme, anchor, f"http://{slow}/{number}")
        host.uri = f"http://{name}/1"
        phone = show(faber, of_faber, host.uri)
        loop = waiting_answers.JudgingLoop("judging", waiting_answers.THREADS)
        worker = Thread(target=loop.run)
        worker.start()
        wait_until(lambda: seen(faber, phone)["state"] != "Requested")
        at_work = WaitingAnswer.objects.filter(lease_owner__isnull=False)
        assert at_work.count() == waiting_answers.PER_TENANT, "it waits for slow lists"
        loop.stop()
    worker.join(20)
