"""Stories that create data of every kind, finished and open, for a fixture.

Everything is made through the API, as other tests do it, except what only people and
operators do.
"""

import io
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from PIL import Image

from connections.models import Connection
from connections.protocols import basic_message, connections_1_0
from credentials.ledgers.base import Agreement
from tenants.lifecycle import networks
from tenants.lifecycle.provisioning import create_organization
from tenants.models import ApiKey, Membership
from tests.fixtures import HERE
from tests.support import queues
from tests.support.keys import stored_spare_key
from tests.support.outside_agent import Agent, listening
from tests.support.people import Api, Holder, Organization, Provider
from tests.support.webhook_receiver import receiving, worker_calls
from tests.support.world import VALUES, Names, World
from wallets import key_generator, keys

PASSWORD = "correct horse battery staple"
EMAIL = "fay@faber.example"
LEDGER = "ledger"
PARTIES = (
    "connection",
    "credential",
    "verification",
)  # pairs of ids: organization's, wallet's


def tell() -> dict[str, Any]:
    """Play all stories.

    Return what a test needs to continue: keys, and ids by what they are.
    """
    world = World()
    people(world)
    operators(world)
    known = {
        "alice": world.alice.wallet_id,
        "branch": world.branch,
        "definition": world.definition,
        "stored_policy": world.stored_policy,
        "stored_request": world.stored_request(),
        "picture": world.provider.call("post", "/assets", form=picture())["publicUri"],
        **{name: getattr(world, name) for name in PARTIES},
        **connections(world),
        **credentials(world),
        **messages(world),
        **webhooks(world),
    }
    known |= verifications(world, known["revoked"][1])
    what_is_gone(world)
    idempotent(world)
    left_on_the_way(world)
    key_generator.store_key(stored_spare_key()._asdict())
    headers = {"organization": world.faber.headers, "provider": world.provider.headers}
    return known | {"headers": headers, "tenant": str(world.faber.tenant.public_id)}


def people(world: World) -> None:
    """Fay signs up in the studio and owns Faber; Vic may read."""
    for email, role in ((EMAIL, "owner"), ("vic@faber.example", "viewer")):
        browser = Client()
        form = {"email": email, "password1": PASSWORD, "password2": PASSWORD}
        assert browser.post(reverse("account_signup"), form).status_code == 302
        user = Membership._meta.get_field("user").related_model.objects.get(email=email)
        Membership.objects.create(tenant=world.faber.tenant, user=user, role=role)
    used = ApiKey.objects.filter(tenant=world.faber.tenant, kind="access_token").get()
    ApiKey.issue(ApiKey.Kind.ACCESS_TOKEN, world.faber.tenant, "Revoked")[0].revoke()
    ApiKey.issue(ApiKey.Kind.ACCESS_TOKEN, world.faber.tenant, "Rotated")[0].rotate()
    assert used.is_live


def operators(world: World) -> None:
    """Add a ledger that does not respond, with an endorser.

    The DID of an organization waits for it.
    """
    genesis = HERE.joinpath("indy_genesis.txt").read_text()
    network = networks.add_network(LEDGER, "A ledger", genesis, keys.generate_seed())
    agreement = Agreement("Be kind.", "1", "a" * 64, {"on_file": "It is on file."})
    networks.accept_agreement(network, None, agreement)
    made = create_organization("Office on a ledger", network_id=LEDGER)
    networks.accept_agreement(network, made.tenant, agreement)


def connections(world: World) -> dict[str, Any]:
    faber, alice, found = world.faber, world.alice, {}
    found["open_invitation"] = faber.invites(name="Bob")["invitation"]
    found["multi_party"] = faber.invites(name="All", multiParty=True)["invitation"]
    alice.accepts_invitation(found["multi_party"])
    alice.accepts_invitation(faber.invites(exchangeVersion="2.0")["invitation"])
    for handshake in ("didexchange/1.1", "didexchange/1.0", "connections/1.0"):
        body = {"protocol": "out-of-band", "handshakes": [handshake]}
        alice.accepts_invitation(faber.invites(**body)["invitation"])
    faber.invites(protocol="out-of-band", multiParty=True)
    with listening(Agent()) as phone:
        row = phone.connects(faber)
        phone.says(phone.build(basic_message.MESSAGE, content="Ahoy"))
    found["phone"] = row.connection_id
    ended, _ = world.connected()
    faber.post(f"/connections/{ended}/hangup")
    rotated, _ = world.connected()
    faber.post(f"/connections/{rotated}/rotate")
    half = Agent()
    invited = faber.invites()
    half.requests(
        Connection.objects.get(connection_id=invited["connectionId"]).invitation
    )
    return found


def credentials(world: World) -> dict[str, Any]:
    """In each state and both versions, of definitions with and without revocation."""
    faber, alice = world.faber, world.alice
    plain = faber.defines("name", "degree", "age")
    values = {"name": "Alice", "degree": "Maths", "age": "28"}
    alice.receives(faber, plain, values)
    second_version(world)
    alice.receives(faber, plain, values)
    second_version(world, "1.0")
    revoked = world.issued()
    faber.delete(f"/credentials/{revoked[0]}")
    alice.post(f"/credentials/{world.offered()[1]}/decline")
    world.wished()
    return {
        "plain": plain,
        "revoked": revoked,
        "offered": world.offered(),
        "requested": world.accepted(),
        "revocable": world.issued(),
        "offer_by_link": world.offer_by_link(),
    }


def verifications(world: World, revoked: str) -> dict[str, Any]:
    """In each state and both versions.

    One has a revoked credential and is not valid.
    """
    faber, alice = world.faber, world.alice
    alice.put(f"/verifications/{world.asked()[1]}/decline")
    small = {"attributes": [{"policyName": "name"}]}
    second_version(world)
    faber.asks(alice, **small)
    alice.auto_selects()
    second_version(world, "1.0")
    faber.asks(alice, **small, revocationRequirement={"validNow": True})
    chosen = [{"policyName": "name", "credentialId": revoked}]
    alice.put(
        f"/verifications/{alice.newest('verifications')['verificationId']}", chosen
    )
    world.proposed()
    return {"asked": world.asked(), "request_by_link": world.request_by_link()}


def second_version(world: World, version: str = "2.0") -> None:
    path = f"/connections/{world.connection[0]}/protocols"
    world.faber.put(path, {"exchangeVersion": version})


def messages(world: World) -> dict[str, Any]:
    here = world.connection[0]
    world.faber.post("/messages", {"connectionId": here, "text": "Hello, Alice"})
    return {"message": world.faber.get(f"/messages/connection/{here}")[0]["id"]}


def webhooks(world: World) -> dict[str, Any]:
    """One gets calls, one returns 500 and is retried, one is gone and disabled."""
    faber, found = world.faber, {}
    with receiving() as steady, receiving() as failing, receiving() as gone:
        failing.answers(500, b"Not now")
        gone.answers(410)
        for name, receiver in (
            ("steady", steady),
            ("failing", failing),
            ("gone", gone),
        ):
            body = {
                "url": receiver.url,
                "type": "Notification",
                "parameters": '{"room": "2"}',
            }
            found[name] = faber.post("/webhooks", body)["id"]
        faber.post(f"/webhooks/{found['steady']}/secret")
        world.accepted()
        worker_calls()
        assert steady.calls and failing.calls and gone.calls
    world.accepted()  # nobody has been called for this yet
    return {"webhooks": found}


def what_is_gone(world: World) -> None:
    """Tombstones of a deleted wallet, and a deleted definition."""
    bob = world.faber.hosts("Bob")
    bob.meets(world.faber)
    world.faber.delete(f"/api/wallets/{bob.wallet_id}")
    world.faber.delete(f"/definitions/credentials/{world.another_definition()}")


def idempotent(world: World) -> None:
    offer = {
        "definitionId": world.definition["definitionId"],
        "credentialValues": VALUES,
    }
    world.faber.call("post", "/credentials", offer, **{"Idempotency-Key": "offer-1"})
    world.faber.call(
        "post", "/tenants", {"name": "Second"}, **{"Idempotency-Key": "office-1"}
    )
    world.provider.call(
        "post", "/tenants", {"name": "Third"}, **{"Idempotency-Key": "office-2"}
    )


def left_on_the_way(world: World) -> None:
    """Messages that no process has delivered or handled yet, as after a crash."""
    stranger = Agent()
    invited = Connection.objects.get(
        connection_id=world.faber.invites()["connectionId"]
    )
    body = connections_1_0.build_request("Phone", "", stranger.party, stranger.prefix)
    data = stranger.pack(body, to=invited.invitation["recipientKeys"][0])
    assert stranger.post(data).status_code == 202
    with pytest.MonkeyPatch.context() as patch:
        queues.crash_before_the_drain(patch)
        world.faber.offers(
            world.alice, world.definition, VALUES, automaticIssuance=True
        )


def picture() -> dict[str, Any]:
    file = io.BytesIO()
    Image.new("RGB", (4, 4)).save(file, "PNG")
    file.seek(0)
    return {"uploadedFiles": file, "filename": "logo.png", "contentType": "image/png"}


class Restored(World):
    """The world of a story that was told by an earlier version."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.known, self.called = known, Names()
        self.faber = with_keys(Organization, known["headers"]["organization"])
        self.faber.tenant = SimpleNamespace(public_id=known["tenant"])
        self.provider = with_keys(
            Provider, known["headers"]["provider"], "/provider/v1"
        )
        self.alice = Holder(self.faber, known["alice"])
        for name in PARTIES:
            setattr(self, name, tuple(known[name]))
        self.alice.known[self.faber] = self.connection
        self.definition, self.branch = known["definition"], known["branch"]
        self.stored_policy = known["stored_policy"]
        self.message = (known["message"], "")  # only the organization's is known
        self.write_requests()

    def stored_request(self) -> str:
        return self.known["stored_request"]


def with_keys(kind: type[Api], headers: dict[str, str], prefix: str = "") -> Any:
    """An organization or provider that exists already."""
    made = kind.__new__(kind)
    made.client, made.headers, made.prefix = (
        Client(raise_request_exception=False),
        headers,
        prefix,
    )
    return made
