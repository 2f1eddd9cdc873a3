"""Stories that create data of every kind, finished and open, for a fixture.

Everything is made through the API, as other tests do it, except what only people and
operators do.
"""

import io
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone
from PIL import Image
from uuid_utils.compat import uuid7

from agency.holders.wallet import links
from agency.ops.models import Heartbeat, PeriodicRun
from connections.models import Connection, InboundMessage, SeenMessage
from connections.protocols import basic_message, connections_1_0
from connections.retention import forget_messages
from core.version import describe_version
from credentials.ledgers.base import Agreement
from credentials.ledgers.webvh.read_rows import ReadLog, ReadResource
from tenants import audit, data_key_rotation
from tenants.lifecycle import networks
from tenants.lifecycle.daily_usage import count_usage
from tenants.lifecycle.provisioning import create_organization
from tenants.models import ApiKey, IdempotencyLease, Membership
from tests.factories import LoggedRequestFactory
from tests.fixtures import HERE
from tests.support import queues
from tests.support.aging import age
from tests.support.keys import stored_spare_key
from tests.support.outside_agent import Agent, listening
from tests.support.own_webvh import HOST, read_log, read_resource, row_of
from tests.support.people import Holder, Organization, Provider
from tests.support.webhook_receiver import receiving, worker_calls
from tests.support.world import VALUES, Names, World
from wallets import key_generator, keys
from wallets.models import KeyFiller, KeyRequest, Wallet

PASSWORD = "correct horse battery staple"
EMAIL = "fay@faber.example"
PIN, WRONG_PIN = "284615", "739204"
LEDGER = "ledger"
SCHEMA = "anonCredsSchema"
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
    publishes_by_webvh()
    meets_phones(world)
    with_notes(world)
    holds_a_web_wallet(world)
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
    processes(world)
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
    invited = {"email": "ann@faber.example", "role": "operator", "form_token": "1"}
    faber = f"/studio/organizations/{world.faber.tenant.pk}"
    fay = Client()
    assert fay.post("/accounts/login/", {"login": EMAIL, "password": PASSWORD}).url
    assert fay.post(f"{faber}/members/invite", invited).status_code == 200
    TOTP.activate(user, generate_totp_secret())
    user.groups.add(Group.objects.get(name="Support"))


def operators(world: World) -> None:
    """Rotate the keys of Faber, as after a restore, and publish where it is.

    And add a ledger that does not respond, with an endorser. The DID of an organization
    waits for it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_key_rotation, "PAUSE_SECONDS", 0.0)
        tenant_id = str(world.faber.tenant.public_id)
        call_command("rotate_data_keys", tenant_id, stdout=io.StringIO())
    call_command("begin_epoch", stdout=io.StringIO())
    world.faber.post("/tenants/publicDid")
    genesis = HERE.joinpath("indy_genesis.txt").read_text()
    network = networks.add_network(LEDGER, "A ledger", genesis, keys.generate_seed())
    agreement = Agreement("Be kind.", "1", "a" * 64, {"on_file": "It is on file."})
    networks.accept_agreement(network, None, agreement)
    made = create_organization("Office on a ledger", network_id=LEDGER)
    networks.accept_agreement(network, made.tenant, agreement)


def publishes_by_webvh() -> None:
    """An organization without a ledger, whose keys are being rotated.

    Somebody has read what it published.
    """
    address = {"PUBLIC_URL": f"https://{HOST}", "ALLOWED_HOSTS": ["testserver", HOST]}
    with override_settings(**address):
        office = Organization("Office of the web", network_id="webvh")
        schema_id = office.defines("name", supportRevocation=True)["schemaId"]
        checked = read_log(office)
        ReadLog.remember(row_of(office).did, checked)
        found = read_resource(schema_id, SCHEMA, checked.document)
        ReadResource.remember(schema_id, SCHEMA, found)
        office.post("/tenants/webvhDid/rotation", {})


def meets_phones(world: World) -> None:
    """A phone holds a card; an offer with a code and a request wait for another."""
    world.issued_to_a_phone()
    world.offered_to_a_phone(transactionCode=True)
    restrictions = [{"credentialDefinitionId": world.card["definitionId"]}]
    name = {"policyName": "name", "attributeNames": ["name"]}
    policy = {"name": "Card", "version": "1.0"}
    policy |= {"attributes": [name | {"restrictions": restrictions}]}
    world.faber.post("/verifications/policy", policy | {"protocol": "openid4vp"})


def with_notes(world: World) -> None:
    """One of each kind with a reference and metadata of the organization's own."""
    faber, notes = world.faber, {"reference": "7", "metadata": {"room": "2"}}
    faber.post("/api/wallets", {"ownerName": "Noted"} | notes)
    faber.invites(**notes)
    faber.defines("name", **notes)
    faber.post("/verificationPolicies", world.policy | notes)
    world.offered(**notes)
    faber.asks(world.alice, **world.policy, **notes)
    row = {"credentialValues": world.values, "connectionId": world.connection[0]}
    world.bulk(row | notes)
    # Its rows are sealed until a worker offers them.
    path = f"/credentials/bulk?definitionId={quote(world.definition['definitionId'])}"
    by_link = {"credentialValues": world.values, "recipientName": "Bob"}
    faber.post(path, [row | notes, by_link])


def holds_a_web_wallet(world: World) -> None:
    """Alice opens her link in a browser, chooses a PIN, and gives a wrong one later."""
    made = links.create_link(
        Wallet.objects.get(wallet_id=world.alice.wallet_id), by=audit.SYSTEM
    )
    for pin, status in ((PIN, 302), (WRONG_PIN, 403)):
        browser = Client()
        browser.get(f"/w/{made.token}")
        assert browser.post("/w/pin", {"pin": pin}).status_code == status


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
    age(InboundMessage.objects.exclude(status="pending"), 1000)
    assert forget_messages() and SeenMessage.objects.exists()
    alice.accepts_invitation(faber.invites(confirmConnections=True)["invitation"])
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


def processes(world: World) -> None:
    """What processes keep in the database for one another."""
    count_usage()
    now = timezone.now()
    Heartbeat.objects.create(kind="web", host="h", pid=1, version=describe_version())
    IdempotencyLease.objects.create(id=uuid7(), holder=uuid7(), leased_until=now)
    PeriodicRun.objects.create(task="webhooks.tasks.maintain", began_at=now)
    KeyFiller.objects.create(host="h", leased_until=now)
    KeyRequest.objects.create(organization=world.faber.tenant.pk, alive_until=now)
    LoggedRequestFactory(tenant=world.faber.tenant)
    simulated = world.faber.get("/sandbox/holders")[0]
    body = {"definitionId": world.definition["definitionId"]}
    body["connectionId"] = simulated["connectionId"]
    world.faber.post("/credentials", body | {"credentialValues": world.values})


def picture() -> dict[str, Any]:
    file = io.BytesIO()
    Image.new("RGB", (4, 4)).save(file, "PNG")
    file.seek(0)
    return {"uploadedFiles": file, "filename": "logo.png", "contentType": "image/png"}


class Restored(World):
    """The world of a story that was told by an earlier version."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.known, self.called = known, Names()
        self.faber = Organization.with_keys(known["headers"]["organization"])
        self.faber.tenant = SimpleNamespace(public_id=known["tenant"])
        self.provider = Provider.with_keys(
            known["headers"]["provider"], prefix="/provider/v1"
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
