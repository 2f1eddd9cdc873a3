"""Links with an end: who comes later is told so, as a wallet and as a person."""

from datetime import timedelta
from itertools import chain, product, repeat
from unittest import mock
from unittest.mock import patch

import pytest
from django.db import OperationalError
from django.utils import timezone

from connections import link_expiry, tasks
from connections.models import Connection
from connections.protocols import connections_1_0
from tests.agency.holders.links.conftest import (
    CONNECTING,
    POLICY,
    LinkPage,
    answer,
    offer_link,
    take_offer,
    text_of,
)
from tests.support import queues
from tests.support.errors import assert_error, error_of
from tests.support.outside_agent import Agent
from tests.support.steps import step

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


def soon():
    return (timezone.now() + HOUR).isoformat()


def expire():
    """As if the time of all links were over."""
    past = timezone.now() - timedelta(seconds=1)
    Connection.objects.exclude(expires_at=None).update(expires_at=past)
    Connection.objects.exclude(expiry_due_at=None).update(expiry_due_at=past)


@step
def links(faber, degree):
    """`{kind: link}` of one link of each kind, which end in a day."""
    end = {"expiresAt": (timezone.now() + timedelta(days=1)).isoformat()}
    stored = faber.post("/verificationPolicies", POLICY)["policyId"]
    asked = faber.post("/verifications/policy", POLICY | end)
    by_policy = faber.put(f"/verifications/policy/{stored}", end)
    return {
        "offer": offer_link(faber, degree, **end)["offerUrl"],
        "request": asked["verificationRequestUrl"],
        "request by policy": by_policy["verificationRequestUrl"],
        "invitation": faber.invites(**end)["invitationUrl"],
        "offer that connects": offer_link(faber, degree, **end, **CONNECTING)[
            "offerUrl"
        ],
        "invitation for many": faber.invites(multiParty=True, **end)["invitationUrl"],
    }


def take(kind, holder, link):
    known = {"offer": take_offer, "request": answer, "request by policy": answer}
    return known.get(kind, type(holder).accepts_invitation)(holder, link)


def test_the_page_of_an_expired_link_says_so(links):
    pages = {kind: LinkPage(link) for kind, link in links.items()}
    assert {page.open().status_code for page in pages.values()} == {200}
    expire()
    for kind, page in pages.items():
        response = page.open()
        what = kind.split()[0]
        assert (response.status_code, page.seen) == (410, "expired"), kind
        assert f"This {what} has expired" in text_of(response)
        assert f"ask Faber College for a new {what}" in text_of(response)
        assert "qr.svg" not in response.text
    german = pages["offer"].open(**{"Accept-Language": "de"})
    assert "Dieses Angebot ist abgelaufen" in text_of(german)
    tasks.end_expired_links()
    for kind, page in pages.items():
        assert (page.open().status_code, page.seen) == (410, "expired"), kind


def test_a_page_that_waits_learns_it(offer):
    page = LinkPage(offer(expiresAt=soon())["offerUrl"])
    page.open()
    assert page.seen == "waiting"
    later = timezone.now() + 2 * HOUR
    with patch("core.database.clock.now", return_value=later):
        assert page.state == "expired"


def test_the_message_is_not_handed_out_any_more(links):
    expire()
    for kind, link in links.items():
        page = LinkPage(link)
        for path in ("", "/wallet", "/qr.svg"):
            for accept in ("application/json", "application/didcomm-plain"):
                asked = {"Accept": accept}
                response = page.client.get(page.path + path, headers=asked)
                assert response.status_code == 410, (kind, path)
                assert response.json()["code"] == "link_expired", (kind, path)


def test_what_was_taken_before_its_end_goes_on_as_any(alice, faber, links):
    for kind, link in links.items():
        take(kind, alice if kind == "offer" else faber.hosts(kind), link)
    before = faber.get("/credentials"), faber.get("/verifications")
    pages = {kind: LinkPage(link) for kind, link in links.items()}
    expire()
    tasks.end_expired_links()
    assert (faber.get("/credentials"), faber.get("/verifications")) == before
    assert not Connection.objects.exclude(expiry_due_at=None).exists()
    states = {kind: page.open() and page.seen for kind, page in pages.items()}
    assert states.pop("invitation for many") == "expired"
    assert states.pop("offer that connects") == "opened"  # the offer is answered next
    assert set(states.values()) == {"used"}


def test_a_hosted_holder_is_refused(acme, links):
    carried = {}
    for kind, link in links.items():
        page = LinkPage(link)
        response = page.client.get(page.path, headers={"Accept": "application/json"})
        carried[kind] = response.text
    expire()
    for number, (kind, message) in enumerate(carried.items()):
        holder = acme.hosts(f"Holder {number}")
        error = error_of(take, kind, holder, message)
        assert_error(error, 409, "link_expired")
        assert holder.get("/connections") == holder.get("/credentials") == []
    tasks.end_expired_links()
    late = error_of(take_offer, holder, carried["offer"])
    assert_error(late, 409, "link_expired")


def test_a_remote_wallet_gets_a_problem_report(faber):
    agent = Agent()
    invited = faber.invites(expiresAt=soon())
    row = Connection.objects.get(connection_id=invited["connectionId"])
    expire()
    request = connections_1_0.build_request("Phone", "", agent.party, agent.prefix)
    agent.asks(request, to=row.invitation["recipientKeys"][0])
    report = agent.newest("connection/1.0/problem-report").body
    assert report["problem-code"] == "request_not_accepted"
    assert "The link has expired." in str(report)
    row.refresh_from_db()
    assert (row.state, row.their_key) == ("Invited", "")


def test_a_wallet_that_answers_an_offer_too_late_gets_a_problem_report(faber, offer):
    agent = Agent()
    made = offer(expiresAt=soon())
    row = Connection.objects.get(connectionless=True)
    page = LinkPage(made["offerUrl"])
    shared = page.client.get(page.path, headers={"Accept": "application/json"}).json()
    expire()
    [key] = shared["~service"]["recipientKeys"]
    kind = "issue-credential/1.0/request-credential"
    request = agent.build(kind, shared["@id"], **{"requests~attach": []})
    agent.asks(request, to=key)
    queues.sweep()
    agent.newest("issue-credential/1.0/problem-report")
    assert agent.inbox[-1].body["description"]["code"] == "link_expired"
    assert "ask for a new one" in str(agent.inbox[-1].body).lower()
    row.refresh_from_db()
    assert (row.state, row.their_key) == ("Invited", "")
    assert faber.get(f"/credentials/{made['credentialId']}")["state"] == "Offered"


def test_an_end_is_a_time_in_the_future(faber, offer, ask):
    makers = (offer, ask, faber.invites)
    for make, given in product(makers, ("2020-01-01T00:00:00Z", "soon", 7, "")):
        error = error_of(make, expiresAt=given)
        assert_error(error, 400, "invalid_request")
        assert list(error.body["errors"]) == ["expiresAt"]
    to = faber.hosts("Alice").known_as(faber)  # no link, and so no end
    error = error_of(offer, connectionId=to, expiresAt=soon())
    assert_error(error, 400, "invalid_request")


def test_the_connection_shows_its_end(faber):
    end = timezone.now().replace(microsecond=0) + HOUR
    made = faber.invites(expiresAt=end.isoformat())
    read = faber.get(f"/connections/{made['connectionId']}")
    assert read["expiresAtUtc"] == made["expiresAtUtc"]
    assert read["expiresAtUtc"] == end.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert "expiresAtUtc" not in faber.invites()
    assert "expiresAtUtc" not in faber.invites(expiresAt=None)


def test_a_reused_connection_gets_no_exchange_of_an_expired_link(alice, faber, offer):
    first = faber.invites(reuse=True, **CONNECTING)
    alice.accepts_invitation(first["invitationUrl"])
    made = offer(expiresAt=soon(), reuse=True, **CONNECTING)
    page = LinkPage(made["offerUrl"])
    shared = page.client.get(page.path, headers={"Accept": "application/json"})
    expire()
    alice.accepts_invitation(shared.text)
    assert alice.get("/credentials") == []
    assert faber.get(f"/credentials/{made['credentialId']}")["state"] == "Offered"


ENDED = ("Rejected", "link_expired")


@pytest.fixture
def made(offer, ask):
    """A function that reads an offer and a request, whose links end in an hour."""
    end = {"expiresAt": soon()}
    paths = [
        f"/credentials/{offer(**end)['credentialId']}",
        f"/verifications/{ask(**end)['verificationId']}",
    ]

    def read(faber):
        return [faber.get(path) for path in paths]

    return read


def states_of(rows):
    return [(row["state"], row.get("problem")) for row in rows]


def test_what_nobody_took_in_time_ends_once(faber, made):
    tasks.end_expired_links()
    assert states_of(made(faber)) == [("Offered", None), ("Requested", None)]
    expire()
    tasks.end_expired_links()
    first = made(faber)
    assert states_of(first) == [ENDED, ENDED]
    tasks.end_expired_links()
    assert made(faber) == first
    told = [one["messageType"] for one in faber.get("/events?limit=100")]
    for event in ("credential_rejected", "verification_rejected"):
        assert told.count(event) == 1


@pytest.fixture
def fails_once(monkeypatch):
    """Let the next link that is ended fail with an error."""

    def fail(error):
        effects = chain([error], repeat(mock.DEFAULT))
        end_link = mock.Mock(wraps=link_expiry.end_link, side_effect=effects)
        monkeypatch.setattr(link_expiry, "end_link", end_link)

    return fail


def test_after_an_outage_the_next_run_ends_the_other_links(faber, made, fails_once):
    expire()
    fails_once(OperationalError())
    with pytest.raises(OperationalError):
        tasks.end_expired_links()
    tasks.end_expired_links()
    assert states_of(made(faber)).count(ENDED) == 1


def test_a_link_that_fails_does_not_stop_the_others(faber, made, fails_once, caplog):
    expire()
    fails_once(RuntimeError("broken"))
    assert link_expiry.end_expired_links() == 1
    assert "was not ended" in caplog.text
    assert states_of(made(faber)).count(ENDED) == 1
    later = timezone.now() + link_expiry.RETRY_DELAY
    with patch("core.database.clock.now", return_value=later):
        tasks.end_expired_links()
    assert states_of(made(faber)) == [ENDED, ENDED]


def test_a_link_without_an_end_stays_open(faber, offer):
    path = f"/credentials/{offer()['credentialId']}"
    later = timezone.now() + timedelta(days=1000)
    with patch("core.database.clock.now", return_value=later):
        tasks.end_expired_links()
    assert faber.get(path)["state"] == "Offered"
