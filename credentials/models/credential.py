"""Credentials: proposed, offered, requested, issued and revoked."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, ClassVar, Self, TypedDict
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import HashIndex
from django.db import models
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from connections.didcomm.formats import MessageFormat
from connections.didcomm.message import Message, PreparedResults
from connections.exchange import Exchange, format_columns
from connections.models import Connection
from connections.protocols import connectionless, discover_features
from connections.protocols.out_of_band import OutOfBandOptions
from core.database import clock
from core.database.columns import Columns
from core.database.compiled_sql import CompiledQuery, update_rows
from core.errors import AgencyError, Conflict, Invalid, WrongState
from core.states import Transitions, move, sources_of
from core.text.bounded_json import Members
from core.work import network_reads, transactions
from credentials import messages
from credentials.ledgers.reads import LedgerReads
from credentials.messages import Proposal
from credentials.models.definition import CredentialDefinition, normalised_names
from credentials.models.formats import CredentialFormat
from credentials.models.name_search import NameDigests
from credentials.models.registry import RevocationRegistry
from credentials.models.token_status_list import Place, TokenStatusList
from tenants import vault
from tenants.models import Notes, Tenant
from wallets import anoncreds
from wallets.anoncreds.objects import (
    CredentialBody,
    DefinitionBody,
    OfferBody,
    Opaque,
)
from wallets.jose.signing import JWK
from wallets.models import Wallet
from webhooks.events.types import Type

Values = dict[str, str]  # by attribute name


class Taken(TypedDict, total=False):
    """Holder: what the next request to an issuer of OpenID4VCI needs.

    form: of the token request; then access_token is in its place.
    """

    secret: str
    form: dict[str, str]
    access_token: str
    identifier: str
    transaction_id: str
    received: Members


class HeldSDJWT(TypedDict):
    """An SD-JWT VC and the secret of the key to which it is bound."""

    sd_jwt: str
    secret: str


class Offered(TypedDict):
    """What an offer says beside its definition, in all ways to offer."""

    values: Values | None
    automatic_issuance: bool
    notes: Notes | None
    recipient_name: str


# After which a worker asks for what a call did not receive, as its process has ended.
ASK_AFTER = timedelta(seconds=60)
MAX_RECIPIENT_NAME = 200  # characters


# A definition, which never changes, with the rows that signing needs.
definition_with_schema = CompiledQuery(
    lambda tenant_id, definition_id: CredentialDefinition.objects.select_related(
        "schema", "tenant__network"
    ).filter(tenant_id=tenant_id, definition_id=definition_id),
    UUID,
    str,
)
# The definition of an offer of an issuer here, if it will issue it automatically.
automatic_definitions = CompiledQuery(
    lambda thread_id, definition_id: CredentialDefinition.objects.select_related(
        "schema", "tenant__network"
    ).filter(
        Exists(
            Credential.objects.filter(
                tenant=OuterRef("tenant"),
                thread_id=thread_id,
                role=Credential.Role.ISSUER,
                state=Credential.State.OFFERED,
                automatic_issuance=True,
            )
        ),
        definition_id=definition_id,
    ),
    str,
    str,
)


@dataclass(frozen=True)
class RegistrySlot:
    """The slot of a revocable credential in its registry."""

    registry: RevocationRegistry
    index: int


class PreparedIssuance(PreparedResults):
    """What accept() prepares for an issuer hosted here, which issues by itself.

    slot: for a revocable credential.
    """

    def __init__(
        self,
        thread_id: str,
        definition: CredentialDefinition,
        slot: RegistrySlot | None,
    ) -> None:
        super().__init__()
        self.thread_id = thread_id
        self.definition = definition
        self.slot = slot

    def is_for(self, credential: "Credential") -> bool:
        """Whether it is for this credential, of the issuer's side."""
        definition = self.definition
        return (self.thread_id, definition.tenant_id, definition.definition_id) == (
            credential.thread_id,
            credential.tenant_id,
            credential.definition_id,
        )


class Credential(Exchange):
    """One party's view of an issuance. The other party has its own row or agent.

    issuer   Proposed ─answer_proposal→ Offered ─receive_request→ Requested
    issuer   Requested ─issue→ Issued ─revoke→ Revoked
    issuer   Offered ─receive_wallet_request→ Requested
    issuer   Offered ─receive_wallet_failure→ Rejected
    holder   Proposed | Offered ─receive_offer→ Offered ─accept→ Requested
    holder   Requested ─receive_credential→ Issued ─receive_revocation→ Revoked
    holder   Offered ─accept_link→ Requested ─receive_sd_jwt→ Issued
    holder   Requested ─receive_refusal→ Rejected
    issuer   Proposed | Offered ─receive_proposal→ Proposed
    holder   Offered ─counter→ Proposed ─propose_again→ Proposed
    both     Proposed | Offered | Requested ─decline, receive_problem→ Rejected

    Received messages are handled in issue_credential/handlers.py, proposals in
    issue_credential/proposals.py. What follows a revocation is in revocation.py.
    """

    class State(models.TextChoices):
        PROPOSED = "Proposed"
        OFFERED = "Offered"
        REQUESTED = "Requested"
        ISSUED = "Issued"
        REJECTED = "Rejected"
        REVOKED = "Revoked"

    class Role(models.TextChoices):
        ISSUER = "issuer"
        HOLDER = "holder"

    TRANSITIONS: ClassVar[Transitions] = {
        (Role.ISSUER, State.PROPOSED): {State.PROPOSED, State.OFFERED, State.REJECTED},
        (Role.ISSUER, State.OFFERED): {State.PROPOSED, State.REQUESTED, State.REJECTED},
        (Role.ISSUER, State.REQUESTED): {State.ISSUED, State.REJECTED},
        (Role.ISSUER, State.ISSUED): {State.REVOKED},
        (Role.HOLDER, State.PROPOSED): {State.PROPOSED, State.OFFERED, State.REJECTED},
        (Role.HOLDER, State.OFFERED): {
            State.PROPOSED,
            State.OFFERED,
            State.REQUESTED,
            State.REJECTED,
        },
        (Role.HOLDER, State.REQUESTED): {State.ISSUED, State.REJECTED},
        (Role.HOLDER, State.ISSUED): {State.REVOKED},
    }
    steps = {
        (State.PROPOSED, State.OFFERED): (
            "First the issuer answers the proposal with an offer."
        ),
        (State.PROPOSED, State.REQUESTED): (
            "First the issuer offers it and the holder accepts."
        ),
        (State.OFFERED, State.REQUESTED): "First the holder accepts the offer.",
        (State.OFFERED, State.ISSUED): (
            "First the holder accepts the offer, then issue it."
        ),
        (State.REQUESTED, State.ISSUED): "First issue it.",
    }

    OBJECT_TYPE = "credential"
    EVENTS = {
        (Role.ISSUER, State.PROPOSED): Type.CREDENTIAL_PROPOSED,
        (Role.ISSUER, State.OFFERED): Type.CREDENTIAL_OFFERED,
        (Role.ISSUER, State.REQUESTED): Type.CREDENTIAL_REQUEST,
        (Role.ISSUER, State.ISSUED): Type.CREDENTIAL_ISSUED,
        (Role.ISSUER, State.REJECTED): Type.CREDENTIAL_REJECTED,
        (Role.ISSUER, State.REVOKED): Type.CREDENTIAL_REVOKED,
        (Role.HOLDER, State.PROPOSED): Type.CREDENTIAL_PROPOSED,
        (Role.HOLDER, State.OFFERED): Type.CREDENTIAL_OFFER,
        (Role.HOLDER, State.REQUESTED): Type.CREDENTIAL_REQUESTED,
        (Role.HOLDER, State.ISSUED): Type.CREDENTIAL_ISSUED,
        (Role.HOLDER, State.REJECTED): Type.CREDENTIAL_REJECTED,
        (Role.HOLDER, State.REVOKED): Type.CREDENTIAL_REVOKED,
    }
    OPEN = sources_of(TRANSITIONS, State.REJECTED)
    ABANDONED = messages.ABANDONED

    # Of an offer that was just made: what the holder must be told besides, once.
    transaction_code = ""

    api_id = "pk"
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    wallet = models.ForeignKey(
        Wallet, on_delete=models.CASCADE, related_name="credentials"
    )
    role = models.CharField(max_length=6, choices=Role.choices)
    format = models.CharField(
        max_length=9,
        choices=CredentialFormat.choices,
        default=CredentialFormat.ANONCREDS,
        db_default=CredentialFormat.ANONCREDS,
    )
    state = models.CharField(max_length=9, choices=State.choices, default=State.OFFERED)
    # The last proposal, as proposal_messages.read_proposal() returns it.
    proposal = models.BinaryField(null=True)
    # Before there is an offer: the proposed ids, if any.
    schema_id = models.CharField(max_length=300, blank=True)
    definition_id = models.CharField(max_length=300, blank=True)
    # Normalised, as proofs compare them.
    attribute_names = ArrayField(models.CharField(max_length=256))
    automatic_issuance = models.BooleanField(default=False)
    values = models.BinaryField(null=True)
    # Issuer: for whom it is, in the organization's own lists. Sealed.
    recipient_name = models.BinaryField(null=True)
    offer_body = models.BinaryField(null=True)
    request_body = models.BinaryField(null=True)
    request_metadata = models.BinaryField(null=True)
    credential = models.BinaryField(null=True)
    accepted_at = models.DateTimeField(null=True)
    issued_at = models.DateTimeField(null=True)
    revocation_registry_id = models.CharField(max_length=500, blank=True)
    revocation_index = models.PositiveIntegerField(null=True)
    revocation_published_at = models.DateTimeField(null=True)
    problem = models.CharField(max_length=100, blank=True)
    # Holder, OpenID4VCI: when a worker asks the issuer next (openid4vci/holding.py).
    ask_due_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["connection", "thread_id", "role"],
                name="one_credential_per_thread",
            ),
            models.UniqueConstraint(
                fields=["revocation_registry_id", "revocation_index"],
                condition=Q(role="issuer", revocation_index__isnull=False),
                name="one_credential_per_place",
            ),
            models.CheckConstraint(
                condition=Q(revocation_index=None, revocation_registry_id="")
                | Q(revocation_index__isnull=False) & ~Q(revocation_registry_id=""),
                name="place_is_whole",
            ),
            models.CheckConstraint(
                condition=~Q(state="Revoked") | Q(revocation_index__isnull=False),
                name="revoked_had_a_place",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["Issued", "Revoked"], issued_at__isnull=False)
                | ~Q(state__in=["Issued", "Revoked"]) & Q(issued_at=None),
                name="issued_has_its_time",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["Proposed", "Offered", "Rejected"])
                | Q(accepted_at__isnull=False),
                name="past_offered_has_its_time",
            ),
            models.CheckConstraint(
                condition=~Q(state="Proposed") | Q(proposal__isnull=False),
                name="proposed_has_its_proposal",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["Proposed", "Rejected"])
                | Q(offer_body__isnull=False),
                name="past_proposed_has_its_offer",
            ),
            models.CheckConstraint(
                condition=~Q(role="holder", state="Issued")
                | Q(credential__isnull=False),
                name="holder_has_what_was_issued",
            ),
        ]
        indexes = [
            models.Index(fields=["wallet", "-id"]),
            models.Index(fields=["wallet", "state", "id"]),
            models.Index(fields=["wallet", "updated_at", "id"]),
            models.Index(fields=["wallet", "definition_id", "id"]),
            models.Index(fields=["wallet", "schema_id", "id"]),
            models.Index(
                fields=["wallet", "reference", "id"], name="credential_by_reference"
            ),
            models.Index(
                fields=["wallet", "moved_at"],
                condition=Q(moved_at__isnull=False),
                name="credential_moved",
            ),
            models.Index(
                fields=["tenant"],
                condition=Q(state__in=["Proposed", "Offered", "Requested"]),
                name="credential_open",
            ),
            models.Index(
                fields=["updated_at"],
                condition=Q(
                    role="issuer", state="Revoked", revocation_published_at=None
                ),
                name="credential_unpublished",
            ),
            HashIndex(fields=["thread_id"], name="credential_by_thread"),
            models.Index(
                fields=["ask_due_at"],
                condition=Q(ask_due_at__isnull=False),
                name="credential_ask_due",
            ),
        ]

    def __str__(self) -> str:
        return str(self.pk)

    @classmethod
    def in_wallet(
        cls, wallet: Wallet | UUID, credential_format: str | None = None
    ) -> QuerySet[Self]:
        """The credentials that a wallet can use in a proof, of one format or of all.

        Revoked ones are included: a verifier may ask for the status at an earlier
        time, or not at all.
        """
        rows = cls.objects.filter(
            wallet=wallet,
            role=cls.Role.HOLDER,
            state__in=[cls.State.ISSUED, cls.State.REVOKED],
        ).select_related("connection")
        return rows.filter(format=credential_format) if credential_format else rows

    @classmethod
    @network_reads.atomic_with_reads
    def offer(
        cls,
        connection: Connection,
        definition: CredentialDefinition,
        values: Values | None = None,
        automatic_issuance: bool = False,
        notes: Notes | None = None,
        recipient_name: str = "",
    ) -> Self:
        """Issuer: offer a credential. The values may also follow with issue().

        Return the row. In one transaction: it locks the connection, stores the row and
        enqueues the message, or stores it for the link if the connection is a new one.
        If the peer's formats are unknown, choose_format() first asks it.

        400 `values_missing` and the errors of check_values(); 409 `connection_gone`,
        `wrong_state` if not connected, `quota_exceeded`, `needs_version_2`; 503
        `organization_frozen`, `too_many_reads`. Inside of another transaction
        ReadNeeded.

        recipient_name: for whom it is. Without it as the values say, if the definition
        tells which attribute does.
        """
        connection = connection.lock_for_exchange()
        definition.check_offer(values, automatic_issuance)
        message_format = discover_features.choose_format(
            connection, messages.ISSUE_CREDENTIAL, names=[definition.definition_id]
        )
        attribute_names = definition.schema.attribute_names
        offer = definition.create_offer()
        message = messages.build_offer(
            offer, attribute_names, values or {}, message_format
        )
        credential = cls(
            tenant_id=connection.tenant_id,
            wallet_id=connection.wallet_id,
            connection=connection,
            role=cls.Role.ISSUER,
            thread_id=message["@id"],
            schema_id=definition.schema.schema_id,
            definition_id=definition.definition_id,
            attribute_names=normalised_names(attribute_names),
            automatic_issuance=automatic_issuance,
            wire_version=message_format.version,
            wire_format=message_format.format,
        )
        vault.seal(credential, "offer_body", offer)
        vault.seal(credential, "values", values)
        credential.name_recipient(definition, values, recipient_name)
        credential.set_notes(notes)
        credential.insert_within_quota()
        connectionless.send_first_message(connection, message)
        return credential

    @classmethod
    @transactions.atomic()
    def offer_by_link(
        cls,
        wallet: Wallet,
        definition: CredentialDefinition,
        values: Values | None,
        automatic_issuance: bool = False,
        options: OutOfBandOptions | None = None,
        exchange_version: str = "",
        attachment_format: str = "",
        notes: Notes | None = None,
        recipient_name: str = "",
    ) -> Self:
        """Issuer: offer a credential in a link. The first wallet to accept gets it.

        400 `values_missing` without values, and the errors of offer().

        options: those of an out-of-band invitation. Without them the link contains
        the offer itself. recipient_name: as for offer().
        """
        if values is None:
            message = "An offer without a connection needs credentialValues."
            raise Invalid("values_missing", message, {"credentialValues": [message]})
        connection = connectionless.create_link(
            wallet, options, exchange_version, attachment_format
        )
        return cls.offer(
            connection, definition, values, automatic_issuance, notes, recipient_name
        )

    def name_recipient(
        self, definition: CredentialDefinition, values: Values | None, name: str = ""
    ) -> None:
        """Set for whom a new row is: the given name, or as the values say."""
        name = name or named_in(definition, values)
        vault.seal(self, "recipient_name", name or None)

    def _recipient_columns(
        self, definition: CredentialDefinition, values: Values | None
    ) -> Columns:
        """What a row has of the recipient's name once there are later values."""
        name = named_in(definition, values)
        if self.recipient_name is not None or not name:
            return {}
        return {"recipient_name": vault.sealed_value(self, "recipient_name", name)}

    def insert_within_quota(self) -> None:
        """As of each exchange, with what finds it by its recipient's name."""
        super().insert_within_quota()
        if self.recipient_name is not None:
            self._let_name_be_found()

    def _let_name_be_found(self) -> None:
        NameDigests.store(self.tenant, {self.pk: self.unsealed_recipient_name()})

    def unsealed_recipient_name(self) -> str:
        """Return for whom it is, or "". Decrypts in each call.

        Offers by link of former versions have it in the name of their connection.
        """
        if self.role != self.Role.ISSUER:
            return ""
        connection = self.live_connection
        former = connection.name if connection and connection.connectionless else ""
        return vault.unseal(self, "recipient_name") or former

    @network_reads.atomic_with_reads
    def accept(self, slot: RegistrySlot | None = None) -> None:
        """Holder: accept the offer and request the credential.

        The cryptography comes before the lock, also that of an issuer hosted here,
        which will issue in this transaction. So the connection is locked only briefly;
        move() notices if the row has changed meanwhile.

        409 `wrong_state`, `unknown_definition`, `connection_gone`; 503
        `ledger_unavailable`, `organization_frozen`; PeerError `offer_refused`. Inside
        of another transaction ReadNeeded, if the definition must be read from a
        ledger.

        slot: for a revocable credential of such an issuer, reserved before this
        transaction with revocation.reserve_for_issuer(). Without it, the issuer issues
        after the commit.
        """
        if self.state != self.State.OFFERED:
            raise WrongState(self, [self.State.OFFERED])
        offer = vault.unseal(self, "offer_body")
        public = self.public_definition
        link_secret = self.wallet.unseal_link_secret()
        connection = self.require_connection()
        request, metadata = anoncreds.create_request(
            offer,
            public,
            link_secret,
            connection.my_key.did,  # type: ignore[union-attr]
        )
        prepared = None
        if connection.seems_hosted:
            prepared = self._prepare_issuance(
                offer, request, metadata, public, link_secret, slot
            )
        self.lock_to_act()
        move(
            self,
            [self.State.OFFERED],
            self.State.REQUESTED,
            accepted_at=timezone.now(),
            request_body=vault.sealed_value(self, "request_body", request),
            request_metadata=vault.sealed_value(self, "request_metadata", metadata),
        )
        self.send_message(
            messages.build_request(request, self.thread_id, self.message_format),
            prepared,
        )

    def _prepare_issuance(
        self,
        offer: OfferBody,
        request: Opaque,
        metadata: Opaque,
        public: DefinitionBody,
        link_secret: str,
        slot: RegistrySlot | None,
    ) -> PreparedIssuance | None:
        """Holder: sign and process what a hosted issuer will issue automatically.

        public: the definition. Nobody gets this signature unless issue() asks for the
        same one. None if nothing is issued here, or not by itself, or not in this
        transaction.
        """
        definition = automatic_definitions.first(self.thread_id, self.definition_id)
        values = self.unsealed_values()
        if definition is None or values is None:
            return None
        if not definition.supports_revocation:
            slot = None
        elif slot is None or slot.registry.definition_id != definition.pk:
            return None
        prepared = PreparedIssuance(self.thread_id, definition, slot)
        # If this cannot be signed, issue() will find out.
        with suppress(AgencyError):
            signed = definition.sign_credential(
                offer,
                request,
                values,
                slot.registry.signing_info(slot.index) if slot else None,
                prepared,
            )
            prepared.call(
                anoncreds.process_credential,
                signed,
                metadata,
                link_secret,
                public,
                slot.registry.public_part if slot else None,
            )
        return prepared

    @network_reads.atomic_with_reads
    def issue(
        self,
        values: Values | None = None,
        slot: RegistrySlot | None = None,
        prepared: PreparedResults | None = None,
    ) -> None:
        """Issuer: sign and send the credential.

        It is signed before the connection is locked. The state and the message are
        written in one transaction.

        400 `values_missing` and the errors of check_values(); 409 `values_fixed`,
        `wrong_state`, `connection_gone`; 503 `organization_frozen`; PeerError
        `request_refused` if the request does not answer the offer. RuntimeError for a
        revocable credential without a slot.

        values: used instead of those of the offer. slot: for a revocable credential,
        reserved with revocation.reserve_slot() before this transaction. prepared: by
        the holder's accept(), if that is in this transaction.
        """
        if self.state != self.State.REQUESTED:
            raise WrongState(self, [self.State.REQUESTED])
        if self.format == CredentialFormat.SD_JWT:
            self._issue_sd_jwt(self._values_to_issue(values))
            return
        is_revocable = self.definition.supports_revocation
        is_anoncreds = self.format == CredentialFormat.ANONCREDS
        if is_anoncreds and is_revocable and slot is None:
            raise RuntimeError("a revocable credential is issued into a reserved slot")
        values = self._values_to_issue(values)
        prepared = prepared or PreparedResults()
        credential = self.definition.sign_credential(
            vault.unseal(self, "offer_body"),
            vault.unseal(self, "request_body"),
            values,
            slot.registry.signing_info(slot.index) if slot else None,
            prepared,
        )
        self.lock_to_act()
        recipient = self._recipient_columns(self.definition, values)
        move(
            self,
            [self.State.REQUESTED],
            self.State.ISSUED,
            issued_at=timezone.now(),
            values=vault.sealed_value(self, "values", values),
            revocation_registry_id=slot.registry.registry_id if slot else "",
            revocation_index=slot.index if slot else None,
            **recipient,
        )
        if recipient:
            self._let_name_be_found()
        self.send_message(
            messages.build_issue(credential, self.thread_id, self.message_format),
            prepared,
        )

    def _issue_sd_jwt(self, values: Values) -> None:
        """Sign it for the key that asked. The wallet fetches it (openid4vci/)."""
        self.lock_to_act()
        sd_jwt = self.definition.sd_jwt
        assert sd_jwt, "it was offered in this format"
        place = None
        if self.definition.supports_revocation:
            place = TokenStatusList.take_place(self.tenant)
        request = vault.unseal(self, "request_body")
        signed = sd_jwt.sign_credential(values, request["jwk"], place)
        move(
            self,
            [self.State.REQUESTED],
            self.State.ISSUED,
            issued_at=timezone.now(),
            values=vault.sealed_value(self, "values", values),
            credential=vault.sealed_value(self, "credential", {"sd_jwt": signed}),
            revocation_registry_id=place.uri if place else "",
            revocation_index=place.index if place else None,
        )
        self.wake_holders([self])

    @classmethod
    def wake_holders(cls, issued: Iterable[Self]) -> None:
        """Issuer: let a worker ask at once what became of these SD-JWT VCs.

        For the hosted wallets that hold them or wait for them. In the caller's
        transaction.
        """
        where = {
            "thread_id": [one.thread_id for one in issued],
            "role": str(cls.Role.HOLDER),
            "format": str(CredentialFormat.SD_JWT),
            "state": [str(cls.State.REQUESTED), str(cls.State.ISSUED)],
        }
        update_rows(cls, where, {"ask_due_at": clock.now()})

    def _values_to_issue(self, values: Values | None) -> Values:
        """The given values or those of the offer. 400 if none, 409 if they differ."""
        offered = self.unsealed_values()
        if not values and offered is not None:
            return offered
        if not values:
            message = "The offer had no values: give them as the body, name by name."
            raise Invalid("values_missing", message)
        self.definition.check_values(values)
        # Other agents may refuse a credential that differs from the offer.
        connection = self.live_connection
        is_hosted = connection and connection.is_hosted
        if offered != values and not is_hosted:
            raise Conflict(
                "values_fixed",
                "The holder accepted an offer with other values. Send a new offer.",
            )
        return values

    # Further transitions. Like move(), each needs the lock and may raise WrongState.

    def receive_proposal(self, message: Message, proposed: Proposal) -> None:
        """Issuer: the holder has proposed something else."""
        sources = [self.State.PROPOSED, self.State.OFFERED]
        columns = self._proposed_columns(proposed) | format_columns(message)
        move(self, sources, self.State.PROPOSED, **columns)

    def counter(self, proposed: Proposal) -> None:
        """Holder: answer an offer with a proposal."""
        columns = self._proposed_columns(proposed)
        move(self, [self.State.OFFERED], self.State.PROPOSED, **columns)

    def propose_again(self, thread_id: str, message_format: MessageFormat) -> None:
        """Holder: propose the same in another format, in a new thread."""
        move(
            self,
            [self.State.PROPOSED],
            self.State.PROPOSED,
            thread_id=thread_id,
            wire_format=message_format.format,
        )

    def _proposed_columns(self, proposed: Proposal) -> Columns:
        """What a row has of a later proposal. After an offer its ids are the offer's."""
        columns: Columns = {"proposal": vault.sealed_value(self, "proposal", proposed)}
        if self.offer_body is None:
            columns["definition_id"] = proposed.get("definitionId", "")
            columns["schema_id"] = proposed.get("schemaId", "")
        return columns

    def answer_proposal(
        self,
        definition: CredentialDefinition,
        offer: OfferBody,
        values: Values | None,
        automatic_issuance: bool,
    ) -> None:
        """Issuer: offer a credential of this definition to the holder who proposed."""
        recipient = self._recipient_columns(definition, values)
        move(
            self,
            [self.State.PROPOSED],
            self.State.OFFERED,
            schema_id=definition.schema.schema_id,
            definition_id=definition.definition_id,
            attribute_names=normalised_names(definition.schema.attribute_names),
            automatic_issuance=automatic_issuance,
            offer_body=vault.sealed_value(self, "offer_body", offer),
            values=vault.sealed_value(self, "values", values),
            **recipient,
        )
        if recipient:
            self._let_name_be_found()

    def receive_offer(self, message: Message, offer: OfferBody, values: Values) -> None:
        """Holder: the issuer has answered a proposal, or replaced its offer."""
        sources = [self.State.PROPOSED, self.State.OFFERED]
        columns = self.offered_columns(message, offer, values)
        move(self, sources, self.State.OFFERED, **columns)

    def offered_columns(
        self, message: Message, offer: OfferBody, values: Values
    ) -> Columns:
        """What a row has of the offer that was received last."""
        return {
            "thread_id": message.thread_id,
            "schema_id": offer["schema_id"],
            "definition_id": offer["cred_def_id"],
            "attribute_names": normalised_names(values),
            "offer_body": vault.sealed_value(self, "offer_body", offer),
            "values": vault.sealed_value(self, "values", values),
            **format_columns(message),
        }

    def receive_request(self, message: Message, request: Opaque) -> None:
        """Issuer: the holder has accepted the offer."""
        move(
            self,
            [self.State.OFFERED],
            self.State.REQUESTED,
            accepted_at=timezone.now(),
            request_body=vault.sealed_value(self, "request_body", request),
            **format_columns(message),
        )

    def receive_wallet_request(self, jwk: JWK) -> None:
        """Issuer: a wallet of OpenID4VC asks for it, for this key."""
        move(
            self,
            [self.State.OFFERED],
            self.State.REQUESTED,
            accepted_at=timezone.now(),
            request_body=vault.sealed_value(self, "request_body", {"jwk": jwk}),
        )

    def receive_wallet_failure(self, problem: str) -> None:
        """Issuer: the offer ends, as its wallet has done something that ends it."""
        move(self, [self.State.OFFERED], self.State.REJECTED, problem=problem)

    def receive_credential(
        self, stored: CredentialBody, values: Values, registry_id: str
    ) -> None:
        """Holder: the issuer has issued it.

        stored: the credential, verified and completed. registry_id: "" if it cannot be
        revoked.
        """
        index = anoncreds.revocation_index(stored) if registry_id else None
        move(
            self,
            [self.State.REQUESTED],
            self.State.ISSUED,
            issued_at=timezone.now(),
            attribute_names=normalised_names(values),
            values=vault.sealed_value(self, "values", values),
            credential=vault.sealed_value(self, "credential", stored),
            request_metadata=None,
            revocation_registry_id=registry_id,
            revocation_index=index,
        )

    def accept_link(self, taken: Taken, ask_after: timedelta = ASK_AFTER) -> None:
        """Holder: ask for what a link of OpenID4VCI offers. A worker goes on.

        taken: what the next requests to the issuer need; sealed. ask_after: until then
        the caller asks itself.
        """
        move(
            self,
            [self.State.OFFERED],
            self.State.REQUESTED,
            accepted_at=timezone.now(),
            request_metadata=vault.sealed_value(self, "request_metadata", taken),
            ask_due_at=clock.now() + ask_after,
        )

    def receive_sd_jwt(
        self, held: HeldSDJWT, values: Values, place: Place | None
    ) -> None:
        """Holder: the issuer has issued it. held: it and its key; sealed."""
        move(
            self,
            [self.State.REQUESTED],
            self.State.ISSUED,
            issued_at=timezone.now(),
            attribute_names=normalised_names(values),
            values=vault.sealed_value(self, "values", values),
            credential=vault.sealed_value(self, "credential", held),
            request_metadata=None,
            ask_due_at=None,
            revocation_registry_id=place.uri if place else "",
            revocation_index=place.index if place else None,
        )

    def receive_refusal(self, problem: str) -> None:
        """Holder: the issuer does not issue it, or it is not what was offered."""
        move(
            self,
            [self.State.REQUESTED],
            self.State.REJECTED,
            problem=problem,
            request_metadata=None,
            ask_due_at=None,
        )

    def revoke(self) -> None:
        """Issuer: revoke it. revocation.revoke() then publishes that.

        Of an SD-JWT VC it does so in the same transaction.
        """
        is_listed_at_once = self.format == CredentialFormat.SD_JWT
        published_at = timezone.now() if is_listed_at_once else None
        issued, revoked = self.State.ISSUED, self.State.REVOKED
        move(self, [issued], revoked, revocation_published_at=published_at)

    def receive_revocation(self) -> None:
        """Holder: the issuer has revoked it, as the published list says."""
        move(self, [self.State.ISSUED], self.State.REVOKED)

    def build_decline(self, reason: str) -> Members:
        is_issuer = self.role == self.Role.ISSUER
        usual = f"The credential is not {'issued' if is_issuer else 'wanted'}."
        return messages.build_problem_report(
            self.thread_id, self.message_format, reason or usual
        )

    @cached_property
    def definition(self) -> CredentialDefinition:
        """Issuer: the definition of the credential, with its schema.

        One query, then it is kept on this object.
        """
        found = definition_with_schema.first(self.tenant_id, self.definition_id)
        assert found, "credentials keep their definition"
        return found

    @cached_property
    def ledgers(self) -> LedgerReads:
        """Where the published objects of the credential are read."""
        return LedgerReads(self.tenant, for_peer=self.role == self.Role.HOLDER)

    @cached_property
    def public_definition(self) -> DefinitionBody:
        """The definition as published on the network. 409 `unknown_definition`."""
        public = self.ledgers.definition(self.definition_id)
        if public is None:
            raise Conflict(
                "unknown_definition",
                f"The definition {self.definition_id} is not on {self.tenant.network}.",
            )
        return public

    @property
    def awaits_peer(self) -> bool:
        """Whether the next step is the other side's or automatic."""
        if self.role == self.Role.HOLDER:
            return self.state in (self.State.PROPOSED, self.State.REQUESTED)
        if self.state == self.State.REQUESTED:
            return self.automatic_issuance
        return self.state == self.State.OFFERED

    def unsealed_values(self) -> Values | None:
        """Return `{name: value}` as offered or issued, or None. Decrypts each time."""
        return vault.unseal(self, "values")

    def unsealed_proposal(self) -> Proposal | None:
        """Return the last proposal, or None. Decrypts in each call."""
        return vault.unseal(self, "proposal")

    def has_same(self, column: str, content: Any) -> bool:
        """Whether an earlier message has set the sealed column to this content."""
        return vault.unseal(self, column) == content


def named_in(definition: CredentialDefinition, values: Values | None) -> str:
    """Whom these values name, cut to what a name may have; "" if nobody."""
    name = (values or {}).get(definition.recipient_attribute, "")
    return name.strip()[:MAX_RECIPIENT_NAME]
