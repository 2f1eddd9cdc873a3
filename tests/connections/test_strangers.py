"""Strangers who connect by an invitation for many, or by the public DID."""

from datetime import timedelta

import pytest
from django.db.models import F

from connections import strangers
from connections.exchange import OPEN_OF_STRANGER
from connections.models import Connection, InboundMessage
from connections.protocols import connections_1_0, handshakes, public_dids
from connections.tasks import forget_messages
from connections.transport.request_turns import Turns
from core.telemetry.metrics import registry
from tests.factories import UserFactory
from tests.support import queues
from tests.support.errors import assert_error, error_of
from tests.support.outside_agent import Agent
from tests.support.people import Organization
from tests.support.races import at_once
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
MALLORY, SCHOOL, ALICE = "198.51.100.7", "203.0.113.5", "192.0.2.1"
LATER = strangers.SPARED_FOR + timedelta(minutes=1)


@pytest.fixture
def club(transactional_db, stored_keys):
    """An organization with quotas."""
    return Organization("Club", owner=UserFactory(username="fay"))


@pytest.fixture(autouse=True)
def own_buckets(monkeypatch, request):
    """Of each test, and refilled so slowly that its own time does not matter."""
    monkeypatch.setattr("core.valkey.rate_limits.PERIOD_SECONDS", 3600)
    monkeypatch.setattr(
        "core.valkey.rate_limits.KEY_PREFIX", f"{request.node.name}:{id(request)}:"
    )


@pytest.fixture
def public(club):
    """Its invitation for many."""
    return club.invites(multiParty=True)["connectionId"]


def request_of(agent, invitation):
    """The envelope of a request to connect."""
    body = connections_1_0.build_request("Phone", "", agent.party, agent.prefix)
    return agent.pack(body, to=invitation["recipientKeys"][0])


def post(public, address, number=1):
    """So many agents behind one address ask. Return the statuses of their calls."""
    invitation = Connection.objects.get(connection_id=public).invitation
    agents = [Agent() for _ in range(number)]
    posted = [
        one.post(request_of(one, invitation), REMOTE_ADDR=address) for one in agents
    ]
    return [one.status_code for one in posted]


def ask(*given):
    """As `post`, and the worker handles the requests."""
    statuses = post(*given)
    queues.sweep()
    return statuses


def begun():
    return Connection.objects.filter(multi_party=False, role="inviter").order_by("pk")


def grow_old():
    """Of all connections until now."""
    Connection.objects.update(created_at=F("created_at") - LATER)


def of(club, address):
    return begun().filter(stranger=strangers.origin_of(club.tenant.pk, address))


def refusals():
    labels = {"quota": "QUOTA_STRANGERS"}
    return registry.get_sample_value("agency_quota_refusals_total", labels) or 0


def test_strangers_take_nothing_of_the_quota_of_connections(club, public, settings):
    settings.QUOTA_CONNECTIONS, settings.QUOTA_STRANGERS, before = 3, 4, refusals()
    assert set(ask(public, MALLORY, 10)) == {202}
    assert begun().count() == 4 and refusals() == before + 6
    club.invites()
    club.invites()
    assert_error(error_of(club.invites), 409, "quota_exceeded")


def test_the_oldest_of_the_address_that_has_most_makes_room(club, public, settings):
    settings.QUOTA_STRANGERS = 4
    ask(public, ALICE)
    ask(public, MALLORY, 3)
    ask(public, SCHOOL)
    assert not of(club, SCHOOL).exists(), "all are young"
    grow_old()
    oldest = of(club, MALLORY).first()
    ask(public, SCHOOL)
    assert of(club, SCHOOL).count() == of(club, ALICE).count() == 1
    assert oldest not in begun() and of(club, MALLORY).count() == 2
    # Now Mallory has two, and the others one each: the next one is Mallory's again.
    ask(public, MALLORY, 5)
    assert (of(club, SCHOOL).count(), of(club, ALICE).count()) == (1, 1)
    assert of(club, MALLORY).count() == 2


def test_what_the_organization_uses_is_its_own_and_stays(club, public, settings):
    settings.QUOTA_STRANGERS, settings.QUOTA_CONNECTIONS = 2, 2
    phone = Agent()
    row = connects(phone, public)
    club.post("/messages", {"connectionId": row.connection_id, "text": "Hello"})
    row.refresh_from_db()
    assert row.stranger is None
    ask(public, MALLORY, 2)
    grow_old()
    assert begun().count() == 3
    ask(public, MALLORY, 2)
    assert row in begun() and begun().count() == 3
    # The organization has two of its own by now: the invitation and this one.
    grow_old()
    connected = connects(Agent(), public)
    body = {"connectionId": connected.connection_id, "text": "Hello"}
    assert_error(error_of(club.post, "/messages", body), 409, "quota_exceeded")
    connected.refresh_from_db()
    assert connected.stranger is not None


def connects(agent, public, address=ALICE):
    """A request by the invitation, and the ping after it. Return the organization's row."""
    invitation = Connection.objects.get(connection_id=public).invitation
    agent.post(request_of(agent, invitation), REMOTE_ADDR=address)
    queues.sweep()
    row = begun().get(their_key=agent.verkey)
    agent.their_key = row.my_key.verkey
    agent.says(agent.build(connections_1_0.ACK, row.thread_id, status="OK"))
    row.refresh_from_db()
    assert row.state == "Connected"
    return row


def text(agent):
    agent.says(agent.build("basicmessage/1.0/message", content="Hello"))


def test_one_that_has_written_goes_last_and_does_not_stay(club, public, settings):
    settings.QUOTA_STRANGERS = 3
    phones = [Agent(), Agent(), Agent()]
    rows = [connects(one, public, MALLORY) for one in phones]
    text(phones[0])
    text(phones[1])
    grow_old()
    ask(public, ALICE)
    assert set(begun()) >= {rows[0], rows[1]} and rows[2] not in begun()
    # Else one message more for each connection would be all that it takes.
    ask(public, SCHOOL)
    assert rows[0] not in begun() and rows[1] in begun()
    assert of(club, ALICE).exists() and of(club, SCHOOL).exists()


def test_a_stranger_begins_few_exchanges_until_somebody_answers(club, public):
    phone = Agent()
    row = connects(phone, public)

    def propose(times):
        for _ in range(times):
            preview = {"@type": "x", "attributes": [{"name": "a", "value": "b"}]}
            kind = "issue-credential/1.0/propose-credential"
            phone.says(phone.build(kind, credential_proposal=preview))

    propose(OPEN_OF_STRANGER + 3)
    listed = club.get("/credentials")
    assert len(listed) == OPEN_OF_STRANGER
    club.post("/messages", {"connectionId": row.connection_id, "text": "Hello"})
    propose(2)
    assert len(club.get("/credentials")) == OPEN_OF_STRANGER + 2


def test_many_at_once_make_room_once_each(club, public, settings, monkeypatch):
    """In the threads of one worker. A quota takes no lock: it may be exceeded by the
    number of workers.
    """
    monkeypatch.setattr(queues.tasks, "turns", Turns())
    settings.QUOTA_STRANGERS = 6
    ask(public, MALLORY, 6)
    grow_old()
    invitation = Connection.objects.get(connection_id=public).invitation
    agents = [Agent() for _ in range(4)]
    for number, agent in enumerate(agents):
        agent.post(request_of(agent, invitation), REMOTE_ADDR=f"192.0.2.{number}")
    at_once(*[queues.sweep] * 4)
    queues.sweep()
    assert begun().count() == 6 and of(club, MALLORY).count() == 2
    assert begun().filter(their_key__in=[one.verkey for one in agents]).count() == 4


def test_one_that_is_used_just_then_does_not_make_room(club, public, settings):
    settings.QUOTA_STRANGERS = 1
    row = connects(Agent(), public, MALLORY)
    grow_old()
    body = {"connectionId": row.connection_id, "text": "Hello"}
    found = list(strangers.begun_by_strangers(club.tenant.pk))
    club.post("/messages", body)
    # As whoever has found it before the text was sent.
    assert not strangers.remove_unused(found[0])
    assert row in begun()


def test_a_crowd_behind_one_address_gets_in_and_a_flood_does_not(club, public):
    assert ask(public, SCHOOL, 50) == [202] * 50
    assert begun().count() == 50
    assert post(public, SCHOOL, 12) == [202] * 10 + [429] * 2
    assert post(public, ALICE) == [202]


def test_who_has_a_network_is_one_place_in_all_of_it(club, public, settings):
    """A /48 of IPv6, which anybody gets for nothing, has 65,536 addresses as we count."""
    settings.QUOTA_STRANGERS, settings.REQUESTS_PER_INVITATION = 5, 3
    ask(public, SCHOOL, 2)
    for number in range(3):
        assert ask(public, f"2001:db8:7:{number}::1") == [202]
    assert ask(public, "2001:db8:7:3::1") == [429]
    assert begun().values("stranger").distinct().count() == 2
    grow_old()
    ask(public, ALICE)
    assert of(club, SCHOOL).count() == 2, "the network has more"


def test_one_address_takes_a_quarter_of_the_bucket_of_a_public_did(faber, settings):
    faber.post("/tenants/publicDid")
    faber.put("/tenants/publicDid", {"acceptsRequests": True})
    settings.REQUESTS_PER_DID = 20
    wallet = Wallet.of_organization(faber.tenant)
    to = {"recipientKeys": [wallet.public_key.verkey]}

    def statuses(address, number):
        agents = [Agent() for _ in range(number)]
        return [
            one.post(request_of(one, to), REMOTE_ADDR=address).status_code
            for one in agents
        ]

    assert statuses(MALLORY, 9) == [202] * 5 + [429] * 4
    assert statuses(ALICE, 5) == [202] * 5


def test_a_crowd_behind_one_address_fits_into_that_quarter(club):
    club.post("/tenants/publicDid")
    key = Wallet.of_organization(club.tenant).public_key
    place = strangers.origin_of(club.tenant.pk, SCHOOL)
    for _ in range(50):
        public_dids.limit_requests_to_did(key, place)


def test_wallets_of_the_organization_are_no_strangers(club, public, settings):
    settings.QUOTA_STRANGERS = 1
    invitation = club.get(f"/connections/{public}")["invitation"]
    for name in ("Alice", "Bob"):
        club.hosts(name).accepts_invitation(invitation)
    assert begun().filter(stranger=None).count() == 2


def test_the_wallets_of_another_organization_are_one_place(
    club, public, faber, acme, settings
):
    settings.QUOTA_STRANGERS = 2
    invitation = club.get(f"/connections/{public}")["invitation"]
    alice, bob, carol = faber.hosts("Alice"), faber.hosts("Bob"), faber.hosts("Carol")
    for holder in (alice, bob):
        holder.accepts_invitation(invitation)
    assert begun().values("stranger").distinct().count() == 1
    refused = error_of(carol.accepts_invitation, invitation)
    assert_error(refused, 409, "invitation_refused")
    grow_old()
    acme.hosts("Dan").accepts_invitation(invitation)
    assert begun().values("stranger").distinct().count() == 2
    # Alice's connection made room, and her wallet reads so when it writes.
    [gone] = alice.get("/connections")
    body = {"connectionId": gone["connectionId"], "text": "Hello"}
    assert_error(error_of(alice.post, "/messages", body), 409, "connection_gone")


def test_an_organization_here_asks_no_more_often_than_an_address(
    club, public, faber, settings
):
    """Its wallets call nothing: each may accept an invitation for many again."""
    settings.REQUESTS_PER_INVITATION = 2
    invitation = club.get(f"/connections/{public}")["invitation"]
    alice = faber.hosts("Alice")
    for _ in range(2):
        alice.accepts_invitation(invitation)
    refused = error_of(faber.hosts("Bob").accepts_invitation, invitation)
    assert_error(refused, 429, "too_many_requests")
    assert begun().count() == 2
    for _ in range(3):
        club.hosts("Carol").accepts_invitation(invitation)


def test_an_organization_here_takes_a_quarter_of_the_bucket_of_a_public_did(
    faber, acme, club, settings
):
    settings.REQUESTS_PER_DID = 8
    club.post("/tenants/publicDid")
    club.put("/tenants/publicDid", {"acceptsRequests": True})
    did = Wallet.of_organization(club.tenant).did
    ask_again = {"did": did, "another": True}
    for _ in range(2):
        faber.post("/connections/requests", ask_again)
    refused = error_of(faber.post, "/connections/requests", ask_again)
    assert_error(refused, 429, "too_many_requests")
    acme.post("/connections/requests", ask_again)


def test_requests_that_wait_to_be_confirmed_make_room_too(club, settings, monkeypatch):
    monkeypatch.setattr(handshakes, "MAX_HELD", 2)
    public = club.invites(multiParty=True, confirmConnections=True)["connectionId"]
    ask(public, MALLORY, 3)
    assert begun().count() == 2
    grow_old()
    ask(public, ALICE)
    assert of(club, ALICE).count() == of(club, MALLORY).count() == 1
    [alice] = of(club, ALICE)
    club.put(f"/connections/{alice.connection_id}")
    alice.refresh_from_db()
    assert alice.stranger is None


def test_an_address_is_kept_as_a_digest_and_not_for_long(club, public, settings):
    invitation = Connection.objects.get(connection_id=public).invitation
    agent = Agent()
    agent.post(request_of(agent, invitation), REMOTE_ADDR=MALLORY)
    [waiting] = InboundMessage.objects.all()
    assert waiting.origin == strangers.origin_of(club.tenant.pk, MALLORY)
    queues.sweep()
    waiting.refresh_from_db()
    assert waiting.origin is None
    [row] = begun()
    assert row.stranger == strangers.origin_of(club.tenant.pk, MALLORY)
    forget_messages()
    assert of(club, MALLORY).count() == 1


def test_after_a_month_nobody_knows_where_a_request_came_from(
    club, public, monkeypatch
):
    ask(public, MALLORY, 2)
    monkeypatch.setattr(strangers, "ORIGIN_KEPT", timedelta(days=-1))
    assert strangers.forget_origins() == 2 and strangers.forget_origins() == 0
    assert [row.stranger for row in begun()] == [row.pk for row in begun()]


def test_who_notes_something_on_a_connection_keeps_it(club, public):
    ask(public, MALLORY)
    path = f"/connections/{begun().get().connection_id}"
    club.call("patch", path, {"reference": "visitor 7"})
    assert begun().get().stranger is None
    assert club.get(path)["reference"] == "visitor 7"


def test_no_answer_of_an_agent_is_a_request_to_connect(public, phone):
    """It would pass by the limits, and its answer could be answered so again."""
    invitation = Connection.objects.get(connection_id=public).invitation
    other, receives = Agent(), phone.receives

    def receive(data):
        receives(data)
        phone.answers = request_of(other, invitation)

    phone.receives = receive
    phone.requests(invitation)
    queues.worker_catches_up()
    assert phone.answers
    assert not Connection.objects.filter(their_key=other.verkey).exists()
    assert InboundMessage.objects.count() == 1
