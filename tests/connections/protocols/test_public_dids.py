"""Invitations and requests by public DID, between wallets and with other agents."""

import json
from itertools import product

import pytest
from django.db import transaction

from connections.didcomm import message
from connections.didcomm.message import PREFIX
from connections.models import Connection, OutboundMessage
from connections.protocols import (
    connections_1_0,
    did_exchange,
    out_of_band,
    public_dids,
)
from credentials.ledgers import ledger_of
from tests.support import queues
from tests.support.errors import assert_error, error_of
from tests.support.outside_agent import Agent, listening
from tests.support.races import at_once, while_locked
from tests.support.steps import step


@pytest.fixture
def shop(faber, phone):
    """An outside agent whose DID and endpoint are on Faber's network."""
    publish(phone, faber)
    return phone


def publish(agent, organization):
    ledger = ledger_of(organization.tenant.network)
    with transaction.atomic():
        ledger.publish_did(agent.party.did, agent.verkey)
    ledger.publish_endpoint(agent.party.did, agent.endpoint)


def invitation_of(agent, *handshakes, identifier="invitation-1", prefix="did:sov:"):
    return {
        "@type": PREFIX + out_of_band.INVITATION,
        "@id": identifier,
        "label": "Shop",
        "handshake_protocols": [PREFIX + one for one in handshakes],
        "services": [prefix + agent.party.did],
    }


def responds(agent, kind="didexchange/1.1/request"):
    """Answer our request as its inviter. Return the request."""
    queues.sweep()
    asked = next(one for one in agent.inbox if one.type == kind)
    agent.their_key = did_exchange.read_request(asked).verkey
    agent.says(did_exchange.build_response(agent.party, agent.seed, asked))
    return asked


@pytest.mark.parametrize("version, prefix", [("1.0", ""), ("1.1", "did:sov:")])
def test_an_invitation_with_a_did_as_service_is_answered(alice, shop, version, prefix):
    body = invitation_of(shop, f"didexchange/{version}", prefix=prefix)
    mine = alice.accepts_invitation(json.dumps(body))
    asked = responds(shop, f"didexchange/{version}/request")
    assert asked.parent_id == "invitation-1"
    assert alice.get(f"/connections/{mine['connectionId']}")["state"] == "Connected"


def test_a_connections_1_0_invitation_with_a_did_is_answered(alice, shop):
    body = {
        "@type": PREFIX + connections_1_0.INVITATION,
        "@id": "invitation-1",
        "label": "Shop",
        "did": f"did:sov:{shop.party.did}",
    }
    mine = alice.accepts_invitation(json.dumps(body))
    queues.sweep()
    asked = shop.newest(connections_1_0.REQUEST)
    # Without the invitation's own key, only this says which invitation it answers.
    assert asked.parent_id == "invitation-1"
    shop.their_key = connections_1_0.read_request(asked).verkey
    shop.says(connections_1_0.build_response(shop.party, shop.seed, asked))
    assert alice.get(f"/connections/{mine['connectionId']}")["state"] == "Connected"


def test_a_did_that_does_not_resolve_has_a_code_and_leaves_nothing(alice, phone):
    body = json.dumps(invitation_of(phone, "didexchange/1.1"))
    assert_error(error_of(alice.accepts_invitation, body), 400, "did_not_resolved")
    assert not Connection.objects.exists()


def test_who_reads_too_many_dids_reads_when_to_come_back(open_faber, phone, settings):
    settings.DIDS_PER_MINUTE = 1
    error_of(open_faber.post, "/connections/requests", {"did": phone.party.did})
    body = {"did": f"did:sov:{phone.party.did}"}
    form = {"invitation": json.dumps(invitation_of(phone, "didexchange/1.1"))}
    alice = open_faber.hosts("Alice")
    for refused in (
        open_faber.send("post", "/connections/requests", body),
        open_faber.send("post", "/connections", {"usePublicDid": True}),
        alice.send("post", "/connections/invitation", form=form),
    ):
        assert_error(refused, 429, "too_many_requests")
        assert 0 < int(refused["Retry-After"]) <= 60


def test_a_second_invitation_of_the_same_did_reuses_the_connection(alice, shop):
    first = invitation_of(shop, "didexchange/1.1")
    mine = alice.accepts_invitation(json.dumps(first))
    again = alice.accepts_invitation(json.dumps(first))
    assert again["connectionId"] == mine["connectionId"]
    responds(shop)
    assert [one.type for one in shop.inbox].count("didexchange/1.1/request") == 1
    second = invitation_of(shop, "didexchange/1.1", identifier="second-1", prefix="")
    again = alice.accepts_invitation(json.dumps(second))
    assert again["connectionId"] == mine["connectionId"]
    queues.sweep()
    reuse = shop.newest(out_of_band.REUSE)
    assert (reuse.parent_id, Connection.objects.count()) == ("second-1", 1)


def test_only_the_key_of_the_did_can_respond(alice, shop):
    mine = alice.accepts_invitation(json.dumps(invitation_of(shop, "didexchange/1.1")))
    queues.sweep()
    mallory = shop.with_next_key()
    responds(mallory)
    path = f"/connections/{mine['connectionId']}"
    assert alice.get(path)["state"] == "Negotiating"
    responds(shop)
    assert alice.get(path)["state"] == "Connected"


def test_an_idempotent_accept_reads_the_did_outside_of_its_transaction(alice, shop):
    form = {"invitation": json.dumps(invitation_of(shop, "didexchange/1.1"))}
    path = "/connections/invitation"
    once, again = (
        alice.send("post", path, form=form, **{"Idempotency-Key": "k"})
        for _ in range(2)
    )
    assert once.status_code == 200 and once.content == again.content
    assert Connection.objects.count() == 1


@step
def open_faber(faber):
    """Faber, whose endpoint is published and whom anybody may ask to connect."""
    shown = faber.post("/tenants/publicDid")
    assert shown["state"] == "Published"
    shown = faber.put("/tenants/publicDid", {"acceptsRequests": True})
    assert shown["acceptsRequests"]
    return faber


def did_of(organization):
    return organization.get("/tenants/publicDid")["did"]


def verkey_of(organization):
    return organization.get("/tenants/publicDid")["verkey"]


def request(agent, parent, version="1.1"):
    return did_exchange.build_request(
        version, "Rex", agent.party, agent.seed, agent.prefix, parent
    )


def asks(agent, organization, parent=None, version="1.1"):
    """Send a request to connect to the public DID; return the message."""
    shown = organization.get("/tenants/publicDid")
    body = request(agent, parent or shown["did"], version)
    if parent == "":
        del body["~thread"]["pthid"]
    return agent.says(body, to=shown["verkey"])


PROTOCOLS = {
    "connections": {},
    "out-of-band": {"protocol": "out-of-band", "handshakes": ["didexchange/1.1"]},
    "out-of-band 1.0": {"protocol": "out-of-band", "handshakes": ["connections/1.0"]},
}


@pytest.mark.parametrize(
    "name, is_for_many", [*product(PROTOCOLS, [True]), ("out-of-band", False)]
)
def test_a_wallet_here_is_invited_by_public_did(open_faber, acme, name, is_for_many):
    body = PROTOCOLS[name] | {"usePublicDid": True, "multiParty": is_for_many}
    invited = open_faber.invites(**body)
    mine = acme.hosts("Alice").accepts_invitation(invited["invitation"])
    assert mine["state"] == "Connected"
    shown = message.decode_json(invited["invitation"])
    did = f"did:sov:{did_of(open_faber)}"
    assert shown.get("did", did) == did and shown.get("services", [did]) == [did]
    theirs = open_faber.get(f"/connections/{invited['connectionId']}")
    assert theirs["state"] == ("Invited" if is_for_many else "Connected")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_an_outside_agent_accepts_an_invitation_by_public_did(open_faber, phone, name):
    invited = open_faber.invites(**PROTOCOLS[name], usePublicDid=True)
    verkey = verkey_of(open_faber)
    parent = message.decode_json(invited["invitation"])["@id"]
    if name == "out-of-band":
        phone.says(request(phone, parent), to=verkey)
        answered = phone.newest("didexchange/1.1/response")
        did_exchange.read_response(answered, verkey)
    else:
        given = ("Rex", "", phone.party, phone.prefix, parent)
        phone.says(connections_1_0.build_request(*given), to=verkey)
        connections_1_0.read_response(phone.newest(connections_1_0.RESPONSE), verkey)
    shown = open_faber.get(f"/connections/{invited['connectionId']}")
    assert shown["theirKey"] == phone.verkey


def test_an_exchange_by_link_may_name_the_public_did(open_faber, acme):
    definition = open_faber.defines("name", "level")["definitionId"]
    by_did = PROTOCOLS["out-of-band"] | {"usePublicDid": True}
    values = {"credentialValues": {"name": "Ann", "level": "7"}}
    body = {"definitionId": definition}
    offer = open_faber.post("/credentials", by_did | body | values)
    alice = acme.hosts("Alice")
    alice.accepts_invitation(offer["offerUrl"])
    assert alice.newest("credentials")["state"] == "Offered"
    alice.accepts_invitation(open_faber.invites(**by_did)["invitation"])
    assert len(alice.get("/connections")) == 1, "it was reused"
    body |= {"usePublicDid": True, "protocol": "out-of-band"}
    error = error_of(open_faber.post, "/credentials", body)
    assert_error(error, 400, "invalid_request")


def test_a_did_without_endpoint_invites_nobody(faber):
    refused = error_of(faber.invites, usePublicDid=True)
    assert_error(refused, 409, "endpoint_not_published")
    assert not Connection.objects.exists()


@pytest.mark.parametrize("parent, version", [
    ("{}", "1.0"), ("did:sov:{}", "1.1"), ("did:sov:{}#did-communication", "1.1"),
    ("", "1.0"),
])  # fmt: skip
def test_a_request_without_invitation_is_answered(open_faber, phone, parent, version):
    asks(phone, open_faber, parent.format(did_of(open_faber)), version)
    answered = phone.newest(f"didexchange/{version}/response")
    verkey = verkey_of(open_faber)
    phone.their_key = did_exchange.read_response(answered, verkey).verkey
    row = Connection.objects.get(their_key=phone.verkey)
    assert (row.state, row.name) == ("Negotiating", "Rex")
    thread = answered.thread_id
    phone.says(did_exchange.build_complete(version, thread, phone.prefix, parent))
    row.refresh_from_db()
    assert row.state == "Connected"


REPORTS = ["didexchange/1.1/problem-report", "didexchange/1.1/problem_report"]


@step
def published(faber):
    """Faber, whose endpoint is published."""
    faber.post("/tenants/publicDid")
    return faber


def test_by_default_a_request_without_invitation_is_refused(published, phone):
    asked = asks(phone, published)
    assert [one.type for one in phone.inbox] == REPORTS
    assert {one.thread_id for one in phone.inbox} == {asked["@id"]}
    assert message.problem_code(phone.inbox[-1]) == "request_not_accepted"
    assert not Connection.objects.exists()
    phone.says(asked, to=verkey_of(published))
    assert len(phone.inbox) == 2, "a replay changes nothing"
    asks(phone, published, parent="invitation-1")
    assert len(phone.inbox) == 2, "one by an unknown invitation gets no answer"


def test_one_address_gets_few_refusals(faber, acme, phone, monkeypatch):
    """Whatever its path, and whoever refuses."""
    monkeypatch.setattr(public_dids, "REFUSALS_PER_ADDRESS", 2)
    endpoint = phone.endpoint
    for organization, path in ((faber, ""), (acme, "a"), (acme, "b")):
        organization.post("/tenants/publicDid")
        phone.endpoint = endpoint + path
        asks(phone, organization)
    assert len(phone.inbox) == 4
    with listening(Agent()) as other:
        other.endpoint = other.endpoint.replace("127.0.0.1", "127.0.0.2")
        asks(other, faber)
    assert OutboundMessage.objects.count() == 6, "another address has its own limit"


def test_a_refusal_is_tried_once(published, phone):
    phone.status = 503
    asks(phone, published)
    queues.worker_catches_up()
    assert len(phone.inbox) == 2
    found = OutboundMessage.objects.values_list("status", "last_error")
    assert set(found) == {("done", "endpoint_refused")}


@pytest.mark.parametrize("returns", [True, False])
def test_without_endpoint_the_refusal_is_in_the_response(published, pocket, returns):
    says = pocket.asks if returns else pocket.says
    says(request(pocket, did_of(published)), to=verkey_of(published))
    assert [one.type for one in pocket.inbox] == REPORTS[: 1 if returns else 0]
    assert not queues.pending().exists()


def test_no_did_is_resolved_for_a_refusal(published, shop):
    did = f"did:sov:{shop.party.did}"
    body = shop.build("didexchange/1.1/request", label="Shop", did=did)
    shop.says(body, to=verkey_of(published))
    assert not shop.inbox and not Connection.objects.exists()


def test_who_names_the_address_of_another_gets_no_refusal(published, phone):
    Agent().says(request(phone, did_of(published)), to=verkey_of(published))
    assert not phone.inbox and not OutboundMessage.objects.exists()


def test_who_stops_accepting_keeps_its_connections(open_faber, phone):
    asks(phone, open_faber)
    shown = open_faber.put("/tenants/publicDid", {"acceptsRequests": False})
    assert shown["acceptsRequests"] is False
    with listening(Agent()) as other:
        asks(other, open_faber)
        assert [one.type for one in other.inbox] == REPORTS
    assert [one["name"] for one in open_faber.get("/connections")] == ["Rex"]


def test_a_repeated_request_makes_one_connection(open_faber, acme, phone):
    asks(phone, open_faber, parent=f"did:sov:{did_of(acme)}")
    assert not phone.inbox and Connection.objects.count() == 1, "for another DID"
    body = asks(phone, open_faber)
    verkey = verkey_of(open_faber)
    phone.says(body, to=verkey)
    phone.says(body | {"@id": "another-id-1"}, to=verkey)
    assert Connection.objects.filter(their_key=phone.verkey).count() == 1
    assert len(phone.inbox) == 2, "the first response may have been lost"


def test_requests_to_a_public_did_are_limited(open_faber, phone, settings):
    settings.REQUESTS_PER_DID = 1
    asks(phone, open_faber)
    verkey, body = verkey_of(open_faber), request(phone, did_of(open_faber))
    refused = phone.post(phone.pack(body, to=verkey))
    assert refused.status_code == 429 and refused["Retry-After"]
    # Whoever was invited is not counted.
    invited = open_faber.invites(**PROTOCOLS["out-of-band"], usePublicDid=True)
    body["~thread"]["pthid"] = message.decode_json(invited["invitation"])["@id"]
    assert phone.post(phone.pack(body, to=verkey)).status_code == 202


def test_accepting_requests_twice_or_at_once_makes_one_invitation(faber):
    def accept(is_wanted=True):
        faber.put("/tenants/publicDid", {"acceptsRequests": is_wanted})

    at_once(*[accept] * 4)
    rows = Connection.objects.filter(multi_party=True)
    assert rows.count() == 1 and rows.get().connection_id == did_of(faber)
    for _ in range(2):
        accept(False)
    assert not Connection.objects.exists()
    faber.invites(connectionId=did_of(faber))
    assert_error(error_of(accept), 409, "connection_id_taken")


@pytest.mark.parametrize("is_wallet", [True, False])
def test_who_is_hosted_here_connects_by_a_public_did(open_faber, acme, is_wallet):
    caller = acme.hosts("Alice") if is_wallet else acme
    body = {"did": f"did:sov:{did_of(open_faber)}", "name": "The college"}
    mine = caller.post("/connections/requests", body)
    assert (mine["state"], mine["name"]) == ("Connected", "The college")
    assert "invitation" not in mine
    body = {"did": did_of(open_faber)}
    again = caller.post("/connections/requests", body)
    assert again["connectionId"] == mine["connectionId"]
    other = caller.post("/connections/requests", body | {"another": True})
    assert other["connectionId"] != mine["connectionId"]
    assert other["state"] == mine["state"] and other["myKey"] != mine["myKey"]
    assert Connection.objects.filter(role="invitee").count() == 2


@pytest.mark.parametrize("handshake", out_of_band.HANDSHAKE_VERSIONS)
def test_the_protocol_of_a_request_can_be_chosen(open_faber, acme, shop, handshake):
    """Of one to a DID here, and of one to an agent elsewhere."""
    alice = acme.hosts("Alice")
    body = {"did": did_of(open_faber), "handshake": handshake}
    mine = alice.post("/connections/requests", body)
    assert mine["state"] == "Connected"
    shown = alice.get(f"/connections/{mine['connectionId']}/protocols")
    assert shown["handshake"] == handshake
    body |= {"did": shop.party.did}
    open_faber.post("/connections/requests", body)
    queues.sweep()
    asked = shop.newest(f"{handshake}/request")
    assert asked.parent_id == f"did:sov:{shop.party.did}"


def test_another_protocol_of_a_request_is_400(faber):
    for handshake in ("didexchange/2.0", "rope", 7, []):
        body = {"did": "did:example:1", "handshake": handshake}
        refused = error_of(faber.post, "/connections/requests", body)
        assert_error(refused, 400, "invalid_request")
    assert not Connection.objects.exists()


def test_calls_at_once_send_one_request(faber, shop):
    body = {"did": shop.party.did}
    made = at_once(*[lambda: faber.post("/connections/requests", body)] * 4)
    assert len({one["connectionId"] for one in made}) == 1
    queues.sweep()
    assert [one.type for one in shop.inbox] == ["didexchange/1.1/request"]


@pytest.mark.parametrize("is_wallet", [True, False])
def test_an_agent_elsewhere_is_asked_by_its_public_did(faber, shop, is_wallet):
    caller = faber.hosts("Alice") if is_wallet else faber
    mine = caller.post("/connections/requests", {"did": shop.party.did})
    assert mine["state"] == "Negotiating"
    asked = responds(shop)
    assert asked.parent_id == f"did:sov:{shop.party.did}"
    complete = next(one for one in shop.inbox if one.type.endswith("/complete"))
    assert complete.parent_id == asked.parent_id
    assert caller.get(f"/connections/{mine['connectionId']}")["state"] == "Connected"


def test_a_refused_request_may_be_sent_again(faber, shop):
    first = faber.post("/connections/requests", {"did": shop.party.did})
    queues.sweep()
    asked = shop.newest("didexchange/1.1/request")
    shop.their_key = did_exchange.read_request(asked).verkey
    shop.says(message.problem_report(asked, "request_not_accepted", "Not today."))
    second = faber.post("/connections/requests", {"did": shop.party.did})
    assert second["connectionId"] != first["connectionId"]


@pytest.mark.parametrize("is_wallet", [True, False])
def test_requests_that_cannot_be_sent_have_codes(faber, acme, is_wallet):
    caller = faber.hosts("Alice") if is_wallet else faber

    def refused(**body):
        return error_of(caller.post, "/connections/requests", body)

    assert_error(refused(), 400, "invalid_request")
    assert_error(refused(did="did:example:1"), 400, "did_not_resolved")
    assert_error(refused(did=did_of(acme)), 400, "did_not_resolved")
    acme.post("/tenants/publicDid")
    assert_error(refused(did=did_of(acme)), 409, "requests_not_accepted")
    faber.post("/tenants/publicDid")
    code = "requests_not_accepted" if is_wallet else "own_did"
    assert_error(refused(did=did_of(faber)), 409 if is_wallet else 400, code)
    assert not Connection.objects.exists()


def test_a_requester_may_have_a_public_did_of_its_own(open_faber, shop):
    """Its request has a DID without a document."""
    shown, did = open_faber.get("/tenants/publicDid"), f"did:sov:{shop.party.did}"
    named = {"~thread": {"pthid": shown["did"]}}
    mallory = shop.with_next_key()
    for agent in (mallory, shop):
        assert not shop.inbox and Connection.objects.count() == 1
        body = agent.build("didexchange/1.1/request", label="Shop", did=did)
        agent.says(body | named, to=shown["verkey"])
    assert shop.newest("didexchange/1.1/response")
    assert Connection.objects.get(their_key=shop.verkey).their_did == shop.party.did


def test_a_peer_that_is_connected_by_the_did_is_reused(open_faber, phone):
    """The connection is locked with the invitation, which is older here."""
    invited = open_faber.invites(**PROTOCOLS["out-of-band"], usePublicDid=True)
    former = Connection.objects.get(connection_id=invited["connectionId"])
    asks(phone, open_faber)
    answered = phone.newest("didexchange/1.1/response")
    read = did_exchange.read_response(answered, verkey_of(open_faber))
    phone.their_key = read.verkey
    reuse = phone.build(out_of_band.REUSE)
    parent = message.decode_json(invited["invitation"])["@id"]
    reuse |= {"~thread": {"thid": reuse["@id"], "pthid": parent}}
    rows = Connection.objects.select_for_update(no_key=True)
    while_locked(
        lambda: rows.get(pk=former.pk),
        lambda: phone.says(reuse),
        lambda: rows.get(their_key=phone.verkey),
    )
    accepted = next(one for one in phone.inbox if "reuse-accepted" in one.type)
    assert accepted.parent_id == parent
    shown = [one["name"] for one in open_faber.get("/connections", multiParty="false")]
    assert shown == ["Rex"], "the invitation is used up"


def test_a_hosted_wallet_has_no_public_did(open_faber):
    alice = open_faber.hosts("Alice")
    refused = error_of(alice.post, "/connections", {"usePublicDid": True})
    assert_error(refused, 400, "invalid_request")
