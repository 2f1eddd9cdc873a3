"""Create the objects of the examples in /docs (core/api/openapi/examples.py).

The demo creates them through the API. Only the id of the revocation registry, which no
operation returns, is read from the database, and the other organization and mailings
are written there. Objects of one kind are interchangeable,
so those of a wallet are read in one call.
"""

import contextlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from django.core.management import CommandError
from django.utils import timezone

from agency.mails import mailings
from agency.studio.curl import Json
from core.api.openapi import examples
from core.work import transactions
from credentials.models import (
    Credential,
    CredentialDefinition,
    Mailing,
    RevocationRegistry,
)
from tenants.lifecycle import public_did
from tenants.models import Tenant
from wallets.jose import certificates, signing

Ids = dict[str, str]
PAUSE_TRIES = 20


class Api(Protocol):
    """The API client. Each method raises CommandError unless the status is 200."""

    def get(self, path: str) -> Any: ...
    def post(self, path: str, body: Any = None) -> Any: ...
    def put(self, path: str, body: Any = None) -> Any: ...
    def call(self, method: str, path: str, **body: Any) -> Any: ...


class Story(NamedTuple):
    """The objects of the demo. policy: the body of the policy `policy_id`."""

    wallet_id: str
    connection_id: str
    connection_of_wallet_id: str
    definition_id: str
    policy_id: str
    policy: dict[str, Json]
    values: dict[str, str]

    @property
    def wallet(self) -> str:
        return f"/custodian/v1/api/{quote(self.wallet_id)}"


def make_examples(api: Api, provider: Api, story: Story) -> Ids:
    """Create the objects. Return their ids and links by the example's id or link."""
    return (
        read_story(api, story)
        | make_connections(api, story)
        | make_credentials(api, story)
        | make_bulks(api, story)
        | make_mailings(api, story)
        | make_named_objects(api, story)
        | make_verifications(api, story)
        | make_webhooks(api)
        | make_organizations(api, provider)
        | make_wallets(api)
    )


def read_story(api: Api, story: Story) -> Ids:
    """Return the objects of the demo.

    Must be called before more objects of these kinds are created, as it reads the
    newest of each.
    """
    api.post(
        "/messages", {"connectionId": story.connection_id, "text": "Congratulations!"}
    )
    api.post(
        f"{story.wallet}/messages",
        {"connectionId": story.connection_of_wallet_id, "text": "Thank you!"},
    )
    registries = RevocationRegistry.objects.filter(
        definition__definition_id=story.definition_id
    )

    def newest(path: str, name: str) -> str:
        return api.get(path)[0][name]

    return {
        examples.WALLET: story.wallet_id,
        examples.CONNECTION: story.connection_id,
        examples.CONNECTION_OF_WALLET: story.connection_of_wallet_id,
        examples.SCHEMA: newest("/definitions/schemas", "id"),
        examples.DEFINITION: story.definition_id,
        examples.REGISTRY: registries.order_by("pk")[0].registry_id,
        examples.CREDENTIAL: newest("/credentials", "credentialId"),
        examples.CREDENTIAL_OF_WALLET: newest(
            f"{story.wallet}/credentials", "credentialId"
        ),
        examples.POLICY: story.policy_id,
        examples.VERIFICATION: newest("/verifications", "verificationId"),
        examples.VERIFICATION_OF_WALLET: newest(
            f"{story.wallet}/verifications", "verificationId"
        ),
        examples.MESSAGE: newest(
            f"/messages/connection/{quote(story.connection_id)}", "id"
        ),
        examples.MESSAGE_OF_WALLET: newest(
            f"{story.wallet}/messages/connection/"
            f"{quote(story.connection_of_wallet_id)}",
            "id",
        ),
    }


def make_connections(api: Api, story: Story) -> Ids:
    def invite(name: str, **options: Json) -> dict[str, str]:
        return api.post("/connections", {"name": name, **options})

    def accept(invited: dict[str, str]) -> str:
        form = {"invitation": (None, invited["invitation"])}
        accepted = api.call(
            "POST", f"{story.wallet}/connections/invitation", files=form
        )
        return accepted["connectionId"]

    to_accept = invite("Alice, to be confirmed", confirmConnections=True)
    accept(to_accept)
    wanted = api.post(f"{story.wallet}/connections", {"confirmConnections": True})
    bob = api.post("/api/wallets", {"ownerName": "Bob"})["walletId"]
    form = {"invitation": (None, wanted["invitation"])}
    api.call("POST", f"/api/{bob}/connections/invitation", files=form)
    to_end = invite("Alice, to be ended")
    to_leave = invite("Alice, to be deleted by her")
    accept(to_end)
    return {
        examples.INVITATION_LINK: invite("Anybody", multiParty=True)["invitationUrl"],
        examples.CONNECTION_TO_DELETE: invite("Nobody, to be deleted")["connectionId"],
        examples.CONNECTION_TO_ACCEPT: to_accept["connectionId"],
        examples.CONNECTION_OF_WALLET_TO_ACCEPT: wanted["connectionId"],
        examples.CONNECTION_TO_END: to_end["connectionId"],
        examples.CONNECTION_OF_WALLET_TO_DELETE: accept(to_leave),
    }


def make_credentials(api: Api, story: Story) -> Ids:
    of_connection = {"connectionId": story.connection_id}

    def offer(**options: Json) -> dict[str, str]:
        body = {"definitionId": story.definition_id, "credentialValues": story.values}
        return api.post("/credentials", body | options)

    def offered() -> list[str]:
        """Return the ids of Alice's offers, newest first."""
        rows = api.get(f"{story.wallet}/credentials?state=Offered")
        return [row["credentialId"] for row in rows]

    to_revoke = offer(**of_connection, automaticIssuance=True)
    api.post(f"{story.wallet}/credentials/{quote(offered()[0])}")
    requested = offer(**of_connection)
    api.post(f"{story.wallet}/credentials/{quote(offered()[0])}")
    to_delete, *_ = [offer(**of_connection) for _ in range(5)]
    *four, _ = offered()  # the last one belongs to `to_delete`
    to_accept, to_decline, to_counter, to_be_deleted = four
    wanted = {"definitionId": story.definition_id, "credentialValues": story.values}
    api.put(
        f"{story.wallet}/credentials/propose/{quote(story.connection_of_wallet_id)}",
        wanted,
    )
    ended = {"name": "To be deleted", "version": "1.0", "attributes": ["Degree"]}
    return {
        examples.DEFINITION_TO_DELETE: define_once(api, ended),
        examples.CREDENTIAL_PROPOSED: api.get("/credentials?state=Proposed")[0][
            "credentialId"
        ],
        examples.CREDENTIAL_REQUESTED: requested["credentialId"],
        examples.CREDENTIAL_TO_DELETE: to_delete["credentialId"],
        examples.CREDENTIAL_TO_REVOKE: to_revoke["credentialId"],
        examples.OFFER_TO_ACCEPT: to_accept,
        examples.OFFER_TO_DECLINE: to_decline,
        examples.OFFER_TO_COUNTER: to_counter,
        examples.OFFER_TO_DELETE: to_be_deleted,
        examples.OFFER_LINK: offer()["offerUrl"],
    }


def define_once(api: Api, wanted: Mapping[str, Json]) -> str:
    """Return the id of the definition with this name. Its key takes a while to make."""
    for found in api.get("/definitions/credentials"):
        if found["name"] == wanted["name"]:
            return found["definitionId"]
    return api.post("/definitions/credentials", wanted)["definitionId"]


def make_bulks(api: Api, story: Story) -> Ids:
    path = f"/credentials/bulk?definitionId={quote(story.definition_id)}"

    def send_row(**recipient: str) -> str:
        body = [{"credentialValues": story.values} | recipient]
        return api.post(path, body)["bulkId"]

    def send_paused() -> str:
        """Send a row and pause it. If a worker has already offered it, send another."""
        for _ in range(PAUSE_TRIES - 1):
            bulk = send_row()
            with contextlib.suppress(CommandError):
                api.post(f"/credentials/bulk/{bulk}/pause")
                return bulk
        bulk = send_row()
        api.post(f"/credentials/bulk/{bulk}/pause")
        return bulk

    return {
        examples.BULK: send_row(),
        examples.BULK_TO_PAUSE: send_row(),
        examples.BULK_TO_RESUME: send_paused(),
        examples.BULK_TO_DELETE: send_paused(),
        # Its row has failed, as there is no such connection yet.
        examples.BULK_TO_RETRY: send_row(connectionId="Room 2"),
    }


def make_mailings(api: Api, story: Story) -> Ids:
    """Store mailings that send nothing until they are resumed, wherever mail is on.

    An organization has few that are not done: those of an earlier demo are stopped.
    """
    wanted = {"definitionId": story.definition_id, "credentialValues": story.values}

    def store() -> Mailing:
        made = api.post("/credentials", wanted)
        offer = Credential.objects.select_related("tenant").get(pk=made["credentialId"])
        mailing = mailings.new_mailing(offer.tenant, mailings.MailOptions())
        recipient = mailings.Recipient(1, offer, "alice@agency.example")
        with transactions.atomic():
            begun = mailings.begin(mailings.prepare(mailing, [[recipient]]))
            begun.pause()
        return begun

    def store_running() -> str:
        later = timezone.now() + timedelta(days=3650)
        mailing = store()
        rows = Mailing.objects.filter(pk=mailing.pk)
        rows.update(paused_at=None, due_at=later)
        return str(mailing.pk)

    definition = CredentialDefinition.objects.get(definition_id=story.definition_id)
    for left in Mailing.unfinished().filter(tenant=definition.tenant_id, bulk=None):
        left.stop()
    return {
        examples.MAILING: store_running(),
        examples.MAILING_TO_PAUSE: store_running(),
        examples.MAILING_TO_RESUME: str(store().pk),
        examples.MAILING_TO_STOP: store_running(),
    }


def make_named_objects(api: Api, story: Story) -> Ids:
    """Make policies, kiosks, keys and simulated holders, which differ by their names."""

    def create(path: str, name: str, body: Mapping[str, Json]) -> dict[str, str]:
        return api.post(path, {**body, "name": name})

    policies, kiosks = "/verificationPolicies", "/kiosks"
    old_address = "To be deleted by its old address"
    to_delete = create(policies, "To be deleted", story.policy)
    to_delete_as_definition = create(policies, old_address, story.policy)
    kiosk = {"policyId": story.policy_id}
    front_desk = create(kiosks, "Front desk", kiosk)
    to_revoke = create(kiosks, "To be revoked", kiosk)
    key_to_revoke = create("/keys", "To be revoked", {"scopes": ["read"]})
    holder = {"behaviour": "accept"}
    rex = create("/sandbox/holders", "Rex", holder)
    holder_to_delete = create("/sandbox/holders", "To be deleted", holder)
    authority = {"certificate": make_authority()}
    anchor_to_delete = create("/openid/trustAnchors", "To be deleted", authority)
    return {
        examples.POLICY_TO_DELETE: to_delete["policyId"],
        examples.POLICY_TO_DELETE_AS_DEFINITION: to_delete_as_definition["policyId"],
        examples.KIOSK: front_desk["kioskId"],
        examples.KIOSK_TO_REVOKE: to_revoke["kioskId"],
        examples.KEY_TO_REVOKE: key_to_revoke["keyId"],
        examples.TRUST_ANCHOR_TO_DELETE: anchor_to_delete["trustAnchorId"],
        examples.SIMULATED_HOLDER: rex["holderId"],
        examples.SIMULATED_HOLDER_TO_DELETE: holder_to_delete["holderId"],
    }


def make_authority() -> str:
    """Return the certificate of an authority in PEM."""
    now = timezone.now()
    ends = now + timedelta(days=3650)
    der = certificates.make_authority("State", signing.generate_secret(), now, ends)
    chain = certificates.read_chain(certificates.encode_chain([der]))
    return certificates.encode_pem(chain)


def make_verifications(api: Api, story: Story) -> Ids:
    policy = f"/verifications/policy/{quote(story.policy_id)}"
    one_item = {
        name: value for name, value in story.policy.items() if name != "predicates"
    }
    connection = f"connections/{quote(story.connection_id)}"

    to_delete, *_ = [api.put(f"{policy}/{connection}") for _ in range(4)]
    api.post(f"/verifications/policy/{connection}", one_item)
    rows = api.get(f"{story.wallet}/verifications?state=Requested")  # newest first
    # The last one belongs to `to_delete`.
    *four, _ = [row["verificationId"] for row in rows]
    to_choose, to_answer, to_decline, to_be_deleted = four
    for_a_choice = api.post("/verifications/policy", one_item)
    return {
        examples.VERIFICATION_TO_DELETE: to_delete["verificationId"],
        examples.REQUEST_TO_ANSWER: to_answer,
        examples.REQUEST_TO_ANSWER_BY_CHOICE: to_choose,
        examples.REQUEST_TO_DECLINE: to_decline,
        examples.REQUEST_TO_DELETE: to_be_deleted,
        examples.REQUEST_LINK: api.put(policy)["verificationUrl"],
        examples.REQUEST_LINK_FOR_A_CHOICE: for_a_choice["verificationUrl"],
    }


def make_webhooks(api: Api) -> Ids:
    """Register webhooks at an address that does not exist.

    The webhook that stays enabled is called for few events only. Those that a demo has
    left that stopped are deleted: an organization has few.
    """
    url = "https://office.example/agency-events"
    for left in api.get("/webhooks"):
        if left["url"] == url:
            api.call("DELETE", f"/webhooks/{left['id']}")

    def register_webhook(**options: Json) -> str:
        body = {"url": url} | options
        return api.post("/webhooks", body)["id"]

    def send_example(webhook: str) -> str:
        body = {"messageType": "verification"}
        return api.post(f"/webhooks/{webhook}/example", body)["deliveryId"]

    first = register_webhook()
    to_delete = register_webhook()
    enabled = register_webhook(messageTypes=["webhook_disabled"])
    ids = {
        examples.WEBHOOK: first,
        examples.DELIVERY: send_example(first),
        examples.WEBHOOK_ENABLED: enabled,
        examples.DELIVERY_TO_RESEND: send_example(enabled),
        examples.WEBHOOK_TO_DELETE: to_delete,
    }
    for webhook in (first, to_delete):
        api.put(f"/webhooks/{webhook}/disable")
    return ids


def make_organizations(api: Api, provider: Api) -> Ids:
    path = "/provider/v1/tenants"
    to_be_deleted = {"name": "Faber Night School, to be deleted", "isTest": True}
    made = provider.post(path, {"name": "Faber Evening School"})
    to_delete = provider.post(path, to_be_deleted)
    # Anybody may connect to it by its public DID.
    tenant = Tenant.objects.get(public_id=made["tenantId"])
    public_did.publish_endpoint(tenant)
    public_did.set_accepts_requests(tenant, True)
    # So that the organization of the demo can invite by its own DID.
    api.post("/tenants/publicDid")
    did = public_did.read_public_did(tenant).did
    return {
        examples.TENANT: api.get("/tenants")[0]["tenantId"],
        examples.TENANT_OF_PROVIDER: made["tenantId"],
        examples.PUBLIC_DID: f"did:sov:{did}",
        examples.TENANT_OF_PROVIDER_TO_DELETE: to_delete["tenantId"],
    }


def make_wallets(api: Api) -> Ids:
    path = "/custodian/v1/api/wallets"
    to_delete = api.post(path, {"ownerName": "Rex, to be deleted"})
    by_query = api.post(path, {"ownerName": "Rex, to be deleted by query"})
    return {
        examples.WALLET_TO_DELETE: to_delete["walletId"],
        examples.WALLET_TO_DELETE_BY_QUERY: by_query["walletId"],
    }
