"""How an organization invites: connections/1.0, out-of-band, or both in one link."""

from functools import partial
from urllib.parse import parse_qs, urlsplit

import pytest
from django.conf import settings

from connections.api import qr_codes
from connections.didcomm import message as didcomm
from connections.models import Connection
from connections.protocols import connections_1_0, did_exchange
from tests.support import queues
from tests.support.errors import assert_error, error_of
from tests.support.outside_agent import Agent
from tests.support.races import at_once
from wallets import keys

CHOICES = ("connections/1.0", "out-of-band", "both")
C_I, OOB = "connections/1.0/invitation", "out-of-band/1.1/invitation"
OLD_HEADERS = (
    "X-Service-Subscription-Key",
    "X-Streetcred-Subscription-Key",
    "X-Trinsic-Subscription-Key",
    "X-Scrd-Api-Key",
    "XStreetcredSubscriptionKey",
)
OLD_PREFIXES = ("/agency/v1", "/credentials/v1")


@pytest.fixture
def chooses(faber):
    """The organization's choice."""

    def choose(protocol):
        faber.tenant.invitation_protocol = protocol
        faber.tenant.save()

    return choose


@pytest.fixture
def program(faber, settings):
    """Calls without what original clients send."""
    settings.SUBSCRIPTION_KEY_OPTIONAL = ("/",)
    token = faber.headers["Authorization"]

    def call(method, path, body=None, **headers):
        given = {"Authorization": token} | headers
        return getattr(faber.client, method)(
            path, body, content_type="application/json", headers=given
        ).json()

    return call


def kind(text):
    return didcomm.read(didcomm.decode_json(text)).type


def query(url):
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def follow(faber, url, accept="*/*"):
    path = url.removeprefix(settings.PUBLIC_URL)
    return faber.client.get(path, headers={"Accept": accept})


def code(made):
    row = Connection.objects.get(connection_id=made["connectionId"])
    return qr_codes.code_of(row).data_list[0].data.decode()


@pytest.mark.parametrize("choice", CHOICES)
def test_an_original_client_gets_connections_1_0_alone(faber, chooses, program, choice):
    chooses(choice)
    key = faber.headers["X-Streetcred-Subscription-Key"]
    calls = [(prefix, {}) for prefix in OLD_PREFIXES]
    calls += [("", {header: key}) for header in OLD_HEADERS]
    for prefix, headers in calls:
        made = program("post", f"{prefix}/connections", {}, **headers)
        assert kind(made["invitation"]) == C_I, (prefix, headers)
        assert "?" not in made["invitationUrl"]
        target = query(follow(faber, made["invitationUrl"])["Location"])
        assert target.keys() == {"c_i", "d_m"} and kind(target["c_i"]) == C_I
        assert query(code(made)).keys() == {"c_i"}
        shown = follow(faber, made["invitationUrl"], "application/json").json()
        assert shown["@type"].endswith(C_I)
        assert ("outOfBandInvitation" in made) == (choice != "connections/1.0")


def test_a_link_with_both_is_shown_to_an_original_client_with_one(
    faber, chooses, program
):
    chooses("both")
    made = program("post", "/connections", {})
    path = f"/connections/{made['connectionId']}"
    for prefix in OLD_PREFIXES:
        shown = program("get", prefix + path)
        assert shown["invitation"] == made["invitation"]
        assert query(shown["invitationUrl"]) == {"c_i": made["invitation"]}
        read = follow(faber, shown["invitationUrl"], "application/json").json()
        assert read == didcomm.decode_json(made["invitation"])
    assert program("get", path)["invitationUrl"] == made["invitationUrl"]


def test_both_are_one_link_under_one_key(faber, chooses, program):
    chooses("both")
    made = program("post", "/connections", {"name": "Faber", "goal": "To say hello"})
    assert kind(made["invitation"]) == C_I
    assert kind(made["outOfBandInvitation"]) == OOB
    first = didcomm.decode_json(made["invitation"])
    second = didcomm.decode_json(made["outOfBandInvitation"])
    assert first["@id"] == second["@id"] and first["label"] == second["label"]
    [service] = second["services"]
    [key] = service["recipientKeys"]
    assert keys.normalise_verkey(key) == first["recipientKeys"][0]
    assert second["handshake_protocols"][-1].endswith("connections/1.0")
    assert second["goal"] == "To say hello" and "goal" not in first
    assert code(made) == made["invitationUrl"]
    target = follow(faber, made["invitationUrl"])["Location"]
    assert query(target) == {
        "c_i": made["invitation"],
        "oob": made["outOfBandInvitation"],
    }
    for url in (made["invitationUrl"], target):
        assert follow(faber, url, "application/json").json() == second
    assert Connection.objects.count() == 1


def test_out_of_band_and_connections_1_0_are_one_invitation(faber, chooses, program):
    chooses("out-of-band")
    made = program("post", "/connections", {})
    assert kind(made["invitation"]) == OOB and "outOfBandInvitation" not in made
    assert query(follow(faber, made["invitationUrl"])["Location"]).keys() == {"oob"}
    for protocol in ("connections", "connections/1.0"):
        made = program("post", "/connections", {"protocol": protocol})
        assert kind(made["invitation"]) == C_I and "outOfBandInvitation" not in made
    chooses("connections/1.0")
    assert kind(program("post", "/connections", {})["invitation"]) == C_I
    made = program("post", "/connections", {"protocol": "both"})
    assert kind(made["outOfBandInvitation"]) == OOB


def test_what_a_protocol_cannot_say_is_refused(faber, chooses):
    for protocol, members in (
        ("both", ["reuse", "handshakes"]),
        ("connections/1.0", ["reuse", "handshakes", "goal"]),
    ):
        body = {"reuse": True, "handshakes": ["connections/1.0"], "goal": "To talk"}
        error = error_of(faber.post, "/connections", body | {"protocol": protocol})
        assert_error(error, 400, "invalid_request")
        assert set(error.body["errors"]) == set(members)


@pytest.fixture
def row(chooses, program):
    chooses("both")
    made = program("post", "/connections", {})
    return Connection.objects.get(connection_id=made["connectionId"])


def request(agent, row, handshake):
    """The request by one of the two invitations, and the key that it goes to."""
    if handshake == "connections/1.0":
        body = connections_1_0.build_request("Phone", "", agent.party, agent.prefix)
    else:
        parent, party = row.out_of_band["@id"], agent.party
        body = did_exchange.build_request(
            "1.1", "Phone", party, agent.seed, agent.prefix, parent
        )
    return body, row.invitation["recipientKeys"][0]


WAYS = ("connections/1.0", "didexchange/1.1")


@pytest.mark.parametrize("handshake", WAYS)
def test_the_first_by_either_has_it_and_the_other_is_told(row, handshake):
    [other] = {*WAYS} - {handshake}
    first, late = Agent(), Agent()
    first.asks(*request(first, row, handshake))
    assert first.inbox[-1].type == f"{handshake}/response"
    late.asks(*request(late, row, other))
    assert late.inbox[-1].is_problem_report
    row.refresh_from_db()
    assert (row.their_key, row.handshake) == (first.verkey, handshake)
    assert Connection.objects.count() == 1


def test_of_two_that_come_at_once_one_has_it(row):
    agents = {handshake: Agent() for handshake in WAYS}
    at_once(
        *(
            partial(agent.asks, *request(agent, row, handshake))
            for handshake, agent in agents.items()
        )
    )
    queues.sweep()
    row.refresh_from_db()
    assert agents[row.handshake].verkey == row.their_key
    assert Connection.objects.count() == 1


def test_many_come_by_either_and_bind_nothing(faber, chooses, program):
    chooses("both")
    made = program("post", "/connections", {"multiParty": True})
    row = Connection.objects.get(connection_id=made["connectionId"])
    for handshake in WAYS:
        agent = Agent()
        agent.asks(*request(agent, row, handshake))
        assert agent.inbox[-1].type == f"{handshake}/response"
    row.refresh_from_db()
    assert (row.state, row.their_key) == ("Invited", "")
    spawned = Connection.objects.exclude(pk=row.pk).order_by("pk")
    assert [one.handshake for one in spawned] == [*WAYS]


def test_a_wallet_here_takes_either_and_the_link(faber, chooses, program):
    chooses("both")
    for number, pick in enumerate(
        ("invitation", "outOfBandInvitation", "invitationUrl")
    ):
        made = program("post", "/connections", {})
        alice = faber.hosts(f"Alice {number}")
        taken = alice.accepts_invitation(made[pick])
        assert taken["state"] == "Connected"
        again = alice.accepts_invitation(made["outOfBandInvitation"])
        assert again["connectionId"] == taken["connectionId"]
        handshake = Connection.objects.get(connection_id=made["connectionId"]).handshake
        expected = "connections/1.0" if pick == "invitation" else "didexchange/1.1"
        assert handshake == expected


def test_the_choice_is_the_default_of_links_of_offers_and_requests(
    faber, chooses, program
):
    definition = faber.defines("name")["definitionId"]
    offer = {"definitionId": definition, "credentialValues": {"name": "Ann"}}
    policy = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}
    made = (
        ("/credentials", offer, "offerData"),
        ("/verifications/policy", policy, "verificationRequestData"),
    )
    for choice in CHOICES:
        chooses(choice)
        for path, body, member in made:
            by_default = kind(program("post", path, body)[member])
            assert (by_default == OOB) == (choice != "connections/1.0"), (choice, path)
            for protocol in ("out-of-band", "connections/1.0"):
                chosen = body | {"protocol": protocol}
                shown = kind(program("post", path, chosen)[member])
                assert (shown == OOB) == (protocol == "out-of-band")
            assert kind(faber.post(path, body)[member]) != OOB, "an original client"


def test_over_a_connection_the_choice_means_nothing(faber, chooses, program):
    chooses("both")
    alice = faber.hosts("Alice")
    to = alice.known_as(faber)
    definition = faber.defines("name")["definitionId"]
    body = {"definitionId": definition, "credentialValues": {"name": "Ann"}}
    made = program("post", "/credentials", body | {"connectionId": to})
    assert made["state"] == "Offered" and "offerUrl" not in made


def test_an_organization_is_made_with_a_choice_and_changes_it(provider):
    made = provider.makes()
    path = f"/tenants/{made['tenantId']}"
    assert made["invitationProtocol"] == "connections/1.0"
    for choice in CHOICES:
        provider.put(path, {"invitationProtocol": choice})
        assert provider.get(path)["invitationProtocol"] == choice
        assert provider.makes(invitationProtocol=choice)["invitationProtocol"] == choice
    error = error_of(provider.put, path, {"invitationProtocol": "oob"})
    assert_error(error, 400, "invalid_request")
