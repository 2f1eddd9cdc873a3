"""An organization's own objects for the examples of the API docs.

Each example gets an object in a state that its operation needs.
"""

from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.db.models import Exists, Model, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Concat

from agency.studio.policy_samples import example_value
from connections.models import BasicMessage, Connection
from core.api.openapi import examples
from credentials.models import (
    Bulk,
    BulkRow,
    Credential,
    CredentialDefinition,
    Mailing,
    RevocationRegistry,
    Schema,
)
from sandbox.models import SimulatedHolder
from tenants.models import ApiKey, Membership, Tenant
from verifications.models import Kiosk, Verification, VerificationPolicy
from wallets.models import TrustAnchor, Wallet
from webhooks.models import Delivery, Webhook

Row = TypeVar("Row", bound=Model)
LOOKED_AT = 200  # of each kind: an organization may have a million


class Source(NamedTuple):
    """The rows of which one fits an example, the best last; and the column of its id.

    is_ended: by the operation. So no other example has the row.
    """

    rows: QuerySet[Model]
    column: str = "pk"
    is_ended: bool = False


def find_own_ids(membership: Membership) -> dict[str, Any]:
    """Return the ids of the organization's objects, by the ids in the examples.

    `credentialValues`: what stands there in the examples, for its definition.

    What it has none of is left out. So are links, which are secrets. The examples of
    operations that delete or end something get objects in test organizations only:
    nobody shall do that to one that is in use because it stood in an example.
    """
    tenant = membership.tenant
    own, hosted = Wallet.of_organization(tenant), find_hosted_wallet(tenant)
    wanted = sources_of_tenant(tenant) | sources_of_own_wallet(own)
    if hosted:
        wanted |= sources_of_hosted_wallet(hosted)
    if membership.role == Membership.Role.OWNER and not tenant.made_by_provider:
        wanted |= sources_of_account(tenant)
    taken: dict[type[Model], set[UUID | int | str]] = {}
    found: dict[str, Any] = {}
    for example, (rows, column, is_ended) in wanted.items():
        if is_ended and not tenant.is_test:
            continue
        used = taken.setdefault(rows.model, set())
        rows = newest(rows if rows.ordered else rows.order_by("pk")).reverse()
        keys = list(rows.values_list("pk", column)[: len(used) + 1])
        unused = [key for key in keys if key[0] not in used]
        picked = next(iter(unused or ([] if is_ended else keys)), None)
        if picked:
            used.add(picked[0])
            found[example] = str(picked[1])
    if definition := found.get(examples.DEFINITION):
        found["credentialValues"] = values_of(tenant, definition)
    return found


def newest(rows: QuerySet[Model]) -> QuerySet[Any]:
    """The LOOKED_AT newest of the rows, in the order of these."""
    return rows.filter(pk__in=rows.order_by("-pk").values("pk")[:LOOKED_AT])


def values_of(tenant: Tenant, definition_id: str) -> dict[str, str]:
    """The `credentialValues` of the examples: the attributes of this definition."""
    definition = CredentialDefinition.active_of(tenant).get(definition_id=definition_id)
    return {
        name: example_value(name, definition.type_of(name))
        for name in definition.schema.attribute_names
    }


def find_hosted_wallet(tenant: Tenant) -> Wallet | None:
    """The hosted wallet in the examples: the newest of those that have most to show."""
    offers = Credential.objects.filter(state=Credential.State.OFFERED)
    requests = Verification.objects.filter(state=Verification.State.REQUESTED)
    connected = Connection.objects.filter(Connection.USABLE)
    rows = newest(Wallet.hosted_by(tenant)).alias(
        **{
            name: Exists(found.filter(wallet=OuterRef("pk")))
            for name, found in (
                ("offered", offers), ("asked", requests), ("connected", connected)
            )
        }
    )  # fmt: skip
    return rows.order_by("-connected", "-offered", "-asked", "-pk").first()


def sources_of_tenant(tenant: Tenant) -> dict[str, Source]:
    definitions = CredentialDefinition.active_of(tenant)
    issued = Credential.objects.filter(
        tenant=tenant, definition_id=OuterRef("definition_id")
    )
    unused = definitions.exclude(Exists(issued))
    policies = VerificationPolicy.objects.filter(tenant=tenant)
    has_kiosk = Exists(Kiosk.objects.filter(policy=OuterRef("pk")))
    policies = policies.alias(has_kiosk=has_kiosk).order_by("has_kiosk", "pk")
    without_kiosk = policies.filter(has_kiosk=False)
    kiosks = Kiosk.objects.filter(tenant=tenant)
    holders = SimulatedHolder.objects.filter(tenant=tenant)
    anchors = TrustAnchor.objects.filter(tenant=tenant)
    keys = ApiKey.live().filter(tenant=tenant, last_used_at=None)
    registries = RevocationRegistry.objects.filter(tenant=tenant)
    return {
        examples.TENANT: Source(Tenant.objects.filter(pk=tenant.pk), "public_id"),
        examples.SCHEMA: Source(Schema.objects.filter(tenant=tenant), "schema_id"),
        examples.DEFINITION: Source(
            definitions.order_by("supports_revocation", "pk"), "definition_id"
        ),
        examples.DEFINITION_TO_DELETE: Source(unused, "definition_id", True),
        examples.REGISTRY: Source(registries, "registry_id"),
        examples.POLICY: Source(policies),
        examples.POLICY_TO_DELETE: Source(without_kiosk, "pk", True),
        examples.POLICY_TO_DELETE_AS_DEFINITION: Source(without_kiosk, "pk", True),
        examples.KIOSK: Source(kiosks),
        examples.KIOSK_TO_REVOKE: Source(kiosks, "pk", True),
        examples.KEY_TO_REVOKE: Source(keys, "pk", True),
        examples.TRUST_ANCHOR_TO_DELETE: Source(anchors, "pk", True),
        examples.SIMULATED_HOLDER: Source(holders),
        examples.SIMULATED_HOLDER_TO_DELETE: Source(holders, "pk", True),
        **sources_of_bulks(tenant),
        **sources_of_mailings(tenant),
        **sources_of_webhooks(tenant),
    }


def sources_of_bulks(tenant: Tenant) -> dict[str, Source]:
    bulks = Bulk.started(tenant)
    done, paused = Q(status=Bulk.Status.DONE), Q(paused_at__isnull=False)
    failed = BulkRow.objects.filter(
        bulk=OuterRef("pk"), status=BulkRow.Status.FAILED, values__isnull=False
    )
    return {
        examples.BULK_TO_RETRY: Source(bulks.filter(Exists(failed))),
        examples.BULK_TO_PAUSE: Source(bulks.exclude(done | paused)),
        examples.BULK_TO_RESUME: Source(bulks.filter(paused)),
        examples.BULK_TO_DELETE: Source(bulks.filter(done | paused), "pk", True),
        examples.BULK: Source(bulks),
    }


def sources_of_mailings(tenant: Tenant) -> dict[str, Source]:
    unfinished = Mailing.unfinished().filter(tenant=tenant)
    running = unfinished.filter(paused_at=None)
    return {
        examples.MAILING_TO_PAUSE: Source(running),
        examples.MAILING_TO_RESUME: Source(unfinished.exclude(paused_at=None)),
        examples.MAILING_TO_STOP: Source(unfinished),
        examples.MAILING: Source(Mailing.objects.filter(tenant=tenant)),
    }


def sources_of_webhooks(tenant: Tenant) -> dict[str, Source]:
    """Deliveries are those of the webhook that is shown: a path has the ids of both."""
    free = Delivery.objects.filter(lease_owner=None)
    is_called = Exists(free.filter(webhook=OuterRef("pk")))
    rows = Webhook.for_tenant(tenant).alias(is_called=is_called)
    rows = rows.order_by("is_called", "pk")
    enabled = rows.filter(is_called=True, is_enabled=True).last()
    others = rows.exclude(pk=enabled.pk) if enabled else rows
    shown = others.last() or enabled
    return {
        examples.WEBHOOK_ENABLED: only(enabled, Webhook),
        examples.DELIVERY_TO_RESEND: Source(free.filter(webhook=enabled)),
        examples.WEBHOOK: only(shown, Webhook),
        examples.DELIVERY: Source(Delivery.objects.filter(webhook=shown)),
        examples.WEBHOOK_TO_DELETE: Source(rows, "pk", True),
    }


def only(row: Model | None, model: type[Model], column: str = "pk") -> Source:
    return Source(model._default_manager.filter(pk=row and row.pk), column)


def sources_of_own_wallet(wallet: Wallet) -> dict[str, Source]:
    listed, usable = connections_of(wallet)
    unused = usable.filter(is_used=False)
    invited = listed.filter(state=Connection.State.INVITED, multi_party=False)
    shown = usable.last() or listed.last()
    State = Credential.State
    issued_here = wallet.credentials.filter(role=Credential.Role.ISSUER)
    revocable = issued_here.filter(state=State.ISSUED, revocation_index__isnull=False)
    asked_here = wallet.verifications.filter(role=Verification.Role.VERIFIER)
    return {
        examples.CONNECTION: only(shown, Connection, "connection_id"),
        examples.MESSAGE: Source(BasicMessage.objects.filter(connection=shown)),
        examples.CONNECTION_TO_ACCEPT: Source(
            listed.filter(held_response__isnull=False), "connection_id"
        ),
        examples.CONNECTION_TO_END: Source(unused, "connection_id", True),
        examples.CONNECTION_TO_DELETE: Source(invited, "connection_id", True),
        examples.CREDENTIAL: in_state(issued_here, State.ISSUED),
        examples.CREDENTIAL_TO_REVOKE: Source(revocable, "pk", True),
        examples.CREDENTIAL_PROPOSED: Source(open_ones(issued_here, State.PROPOSED)),
        examples.CREDENTIAL_REQUESTED: Source(open_ones(issued_here, State.REQUESTED)),
        examples.CREDENTIAL_TO_DELETE: oldest(open_ones(issued_here, State.OFFERED)),
        examples.VERIFICATION: in_state(asked_here, Verification.State.ACCEPTED),
        examples.VERIFICATION_TO_DELETE: oldest(
            open_ones(asked_here, Verification.State.REQUESTED)
        ),
    }


def sources_of_hosted_wallet(wallet: Wallet) -> dict[str, Source]:
    """All of one wallet, because a path has the ids of both."""
    listed, usable = connections_of(wallet)
    shown = usable.last() or listed.last()
    empty = Wallet.hosted_by(wallet.tenant_id).exclude(
        Exists(Connection.objects.filter(wallet=OuterRef("pk")))
    )
    held = wallet.credentials.filter(role=Credential.Role.HOLDER)
    offers = open_ones(held, Credential.State.OFFERED)
    asked = wallet.verifications.filter(role=Verification.Role.PROVER)
    requests = open_ones(asked, Verification.State.REQUESTED)
    return {
        examples.WALLET: only(wallet, Wallet, "wallet_id"),
        examples.WALLET_TO_DELETE: Source(empty, "wallet_id", True),
        examples.WALLET_TO_DELETE_BY_QUERY: Source(empty, "wallet_id", True),
        examples.CONNECTION_OF_WALLET: only(shown, Connection, "connection_id"),
        examples.MESSAGE_OF_WALLET: Source(
            BasicMessage.objects.filter(connection=shown)
        ),
        examples.CONNECTION_OF_WALLET_TO_ACCEPT: Source(
            listed.filter(held_response__isnull=False), "connection_id"
        ),
        examples.CONNECTION_OF_WALLET_TO_DELETE: Source(
            usable.filter(is_used=False), "connection_id", True
        ),
        examples.CREDENTIAL_OF_WALLET: in_state(held, Credential.State.ISSUED),
        examples.OFFER_TO_ACCEPT: Source(offers),
        examples.OFFER_TO_COUNTER: Source(offers),
        examples.OFFER_TO_DECLINE: Source(offers, "pk", True),
        examples.OFFER_TO_DELETE: Source(offers, "pk", True),
        examples.VERIFICATION_OF_WALLET: in_state(asked, Verification.State.ACCEPTED),
        examples.REQUEST_TO_ANSWER_BY_CHOICE: Source(requests),
        examples.REQUEST_TO_ANSWER: Source(requests),
        examples.REQUEST_TO_DECLINE: Source(requests, "pk", True),
        examples.REQUEST_TO_DELETE: Source(requests, "pk", True),
    }


def sources_of_account(tenant: Tenant) -> dict[str, Source]:
    """For owners, as a provider key, which they can make, lists these organizations."""
    made = Tenant.objects.filter(provider=tenant.provider, made_by_provider=True)
    accepting = Wallet.objects.filter(
        Exists(
            Connection.objects.filter(
                wallet=OuterRef("pk"),
                connection_id=OuterRef("did"),
                multi_party=True,
                role=Connection.Role.INVITER,
            )
        ),
        is_organization=True,
        tenant__provider=tenant.provider,
    )
    public = accepting.annotate(public_did=Concat(Value("did:sov:"), "did"))
    return {
        examples.TENANT_OF_PROVIDER: Source(
            made.order_by("-is_test", "pk"), "public_id"
        ),
        examples.TENANT_OF_PROVIDER_TO_DELETE: Source(
            made.filter(is_test=True), "public_id", True
        ),
        examples.PUBLIC_DID: Source(public, "public_did"),
    }


def connections_of(wallet: Wallet) -> tuple[QuerySet[Any], QuerySet[Any]]:
    """Return those that the API lists, and of these what messages can be sent over.

    Of the latter those with credentials or verifications are last.
    """
    listed = wallet.connections.filter(connectionless=False).order_by("pk")
    credentials = Credential.objects.filter(connection=OuterRef("pk"))
    verifications = Verification.objects.filter(connection=OuterRef("pk"))
    is_used = Exists(credentials) | Exists(verifications)
    usable = listed.filter(Connection.USABLE).alias(is_used=is_used)
    return listed, usable.order_by("is_used", "pk")


def open_ones(rows: QuerySet[Row], state: str) -> QuerySet[Row]:
    """Those in this state, over connections that neither side has ended."""
    return rows.filter(
        state=state,
        connection__state=Connection.State.CONNECTED,
        connection__left_at=None,
        connection__connectionless=False,
    )


def in_state(rows: QuerySet[Model], state: str) -> Source:
    """Those in this state, or else any."""
    return Source(rows.alias(fits=Q(state=state)).order_by("fits", "pk"))


def oldest(rows: QuerySet[Model]) -> Source:
    """Of an example that ends its object, which the other side has too.

    The other side's examples have the newest.
    """
    return Source(rows.order_by("-pk"), "pk", True)
