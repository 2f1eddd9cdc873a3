"""Credentials: offered, asked for, issued, revoked; what they are made from has its own files."""

from functools import cached_property

from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone

from agency.core import network_reads
from agency.core.errors import Conflict, Invalid, PeerError, WrongState
from agency.core.states import move
from connections.didcomm import formats
from connections.didcomm.formats import enclosed
from connections.exchange import Exchange, as_written
from connections.messaging import transport
from connections.models import Connection
from credentials import ledgers
from credentials.definitions import (
    CredentialDefinition,
    PublishedObject,
    Schema,
    compared,
    organization,
    schema_body,
)
from credentials.issue_credential import messages
from credentials.issue_credential.proposals import Proposing
from credentials.publications import Publication
from credentials.revocation import RevocationRegistry, StatusList
from tenants import vault
from tenants.models import Tenant
from wallets import anoncreds
from wallets.models import Wallet
from webhooks.events.types import Type

# Models too, though in files of their own.
__all__ = [
    "CredentialDefinition",
    "Publication",
    "PublishedObject",
    "RevocationRegistry",
    "Schema",
    "StatusList",
    "organization",
    "schema_body",
]


class Credential(Proposing, Exchange):
    """One party's view of an issuance; the other party has a row (or software) of its own.

    issuer   Proposed ─answer→ Offered ─receive_request→ Requested ─issue→ Issued
    holder   Proposed ─receive_offer→ Offered ─accept→ Requested ─receive_credential→ Issued
    issuer   Offered ─receive_proposal→ Proposed;   holder   Offered ─counter→ Proposed
    both     Proposed | Offered | Requested ─decline, receive_problem→ Rejected
    issuer   Issued ─revoke→ Revoked;   holder   Issued ─receive_revocation→ Revoked
    """

    class State(models.TextChoices):
        PROPOSED = "Proposed"
        OFFERED = "Offered"
        REQUESTED = "Requested"
        ISSUED = "Issued"
        REJECTED = "Rejected"
        REVOKED = "Revoked"

    steps = {
        (
            State.PROPOSED,
            State.OFFERED,
        ): "First the issuer answers the proposal with an offer.",
        (
            State.PROPOSED,
            State.REQUESTED,
        ): "First the issuer offers it and the holder accepts.",
        (State.OFFERED, State.REQUESTED): "First the holder accepts the offer.",
        (
            State.OFFERED,
            State.ISSUED,
        ): "First the holder accepts the offer, then issue it.",
        (State.REQUESTED, State.ISSUED): "First issue it.",
    }

    class Role(models.TextChoices):
        ISSUER = "issuer"
        HOLDER = "holder"

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
    OPEN = (State.PROPOSED, State.OFFERED, State.REQUESTED)
    ABANDONED = messages.ABANDONED
    FINISHED = (State.ISSUED, State.REJECTED, State.REVOKED)

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    wallet = models.ForeignKey(
        Wallet, on_delete=models.CASCADE, related_name="credentials"
    )
    role = models.CharField(max_length=6, choices=Role.choices)
    state = models.CharField(max_length=9, choices=State.choices, default=State.OFFERED)
    schema_id = models.CharField(max_length=300, blank=True)
    definition_id = models.CharField(max_length=300, blank=True)
    attribute_names = ArrayField(
        models.CharField(max_length=256)
    )  # as proofs compare them
    automatic_issuance = models.BooleanField(default=False)
    values = models.BinaryField(null=True)
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
                fields=["tenant"],
                condition=Q(state__in=["Proposed", "Offered", "Requested"]),
                name="credential_open",
            ),
        ]

    def __str__(self):
        return str(self.pk)

    @classmethod
    def held(cls, wallet):
        """What a wallet can prove with; a revoked one only until the verifier looks."""
        states = [cls.State.ISSUED, cls.State.REVOKED]
        rows = cls.objects.filter(wallet=wallet, role=cls.Role.HOLDER, state__in=states)
        return rows.select_related("connection")

    @classmethod
    @transaction.atomic
    def offer(cls, connection, definition, values=None, automatic_issuance=False):
        """Issuer: offers on a connection; the values may follow with issue()."""
        connection.require_connected()
        definition.check_offered(values, automatic_issuance)
        names, offer = definition.schema.attribute_names, definition.offer()
        wire = connection.wire_for(messages.ISSUE_CREDENTIAL)
        message = messages.offer(offer, names, values or {}, wire)
        credential = cls(
            tenant_id=connection.tenant_id,
            wallet_id=connection.wallet_id,
            connection=connection,
            role=cls.Role.ISSUER,
            thread_id=message["@id"],
            schema_id=definition.schema.schema_id,
            definition_id=definition.definition_id,
            attribute_names=compared(names),
            automatic_issuance=automatic_issuance,
            wire_version=wire.version,
            wire_format=wire.format,
        )
        vault.seal(credential, "offer_body", offer)
        vault.seal(credential, "values", values)
        credential.insert_within_quota()
        connection.begin(message)
        return credential

    @classmethod
    @transaction.atomic
    def offer_by_link(
        cls, wallet, definition, values, automatic_issuance=False, terms=None
    ):
        """Issuer: offers to whoever opens the link first; with terms, of an out-of-band
        invitation."""
        if values is None:
            message = "An offer without a connection needs credentialValues."
            raise Invalid("values_missing", message, {"credentialValues": [message]})
        connection = Connection.for_exchange(wallet, terms)
        return cls.offer(connection, definition, values, automatic_issuance)

    @classmethod
    @network_reads.atomic_with_reads
    def take(cls, wallet, message):
        """Holder: accepts a shared offer; the same one again gives the same credential. Whether
        another wallet was faster is known when this has committed: Connection.require_mine."""
        connection = Connection.take(wallet, message)
        rows = cls.objects.filter(connection=connection, thread_id=message.thread_id)
        credential = rows.first() or cls.receive_offer(connection, message)
        if credential.state == cls.State.OFFERED:
            credential.accept()
        return credential

    @classmethod
    def receive_offer(cls, connection, message):
        """Holder: notes what the issuer offers, maybe for a proposal; until it is accepted, a later
        offer replaces it. The same one again changes nothing, unless the holder has proposed
        something else meanwhile: then the issuer insists."""
        offer, values = enclosed(message, formats.OFFER), messages.read_preview(message)
        place = {
            "connection": connection,
            "thread_id": message.thread_id,
            "role": cls.Role.HOLDER,
        }
        answerable = [cls.State.PROPOSED, cls.State.OFFERED]
        known = cls._in_thread(**place) or cls._answered_elsewhere(
            connection, message, offer
        )
        if known and known._has_offer(offer, values):
            return known
        party = {"tenant_id": connection.tenant_id, "wallet_id": connection.wallet_id}
        credential = known or cls(**place, **party)
        changes = {
            "schema_id": str(offer.get("schema_id"))[:300],
            "definition_id": str(offer.get("cred_def_id"))[:300],
            "attribute_names": compared(values),
            "offer_body": vault.sealed(credential, "offer_body", offer),
            "values": vault.sealed(credential, "values", values),
            **as_written(message),
        }
        if known:
            move(
                known,
                answerable,
                cls.State.OFFERED,
                thread_id=message.thread_id,
                **changes,
            )
            return known
        for column, value in changes.items():
            setattr(credential, column, value)
        credential.insert_within_quota()
        return credential

    def _has_offer(self, offer, values):
        """Whether this offer came before, and stands or was answered."""
        if self.state == self.State.PROPOSED or not self.is_same("offer_body", offer):
            return False
        return self.state != self.State.OFFERED or self.is_same("values", values)

    @network_reads.atomic_with_reads
    def accept(self):
        """Holder: asks for what was offered."""
        if self.state != self.State.OFFERED:
            raise WrongState(self, [self.State.OFFERED])
        definition = self.public_definition()
        move(
            self, [self.State.OFFERED], self.State.REQUESTED, accepted_at=timezone.now()
        )
        request, metadata = anoncreds.create_request(
            vault.unseal(self, "offer_body"),
            definition,
            self.wallet.secret(),
            self.connection.my_key.did,
        )
        self._keep(request_body=request, request_metadata=metadata)
        self._send(messages.request(request, self.thread_id, self.wire))

    def receive_request(self, message):
        """Issuer: the holder accepted; issues at once if that was agreed. The same request again
        changes nothing."""
        request = enclosed(message, formats.REQUEST)
        if self.state != self.State.OFFERED and self.is_same("request_body", request):
            return
        move(
            self,
            [self.State.OFFERED],
            self.State.REQUESTED,
            accepted_at=timezone.now(),
            request_body=vault.sealed(self, "request_body", request),
            **as_written(message),
        )
        if self.automatic_issuance:
            transaction.on_commit(self.issue_automatically, robust=True)

    def issue_automatically(self):
        """Issuer: after the request is stored; one that cannot be signed is declined, and what was
        ended meanwhile is not issued."""
        try:
            self.issue(place=self.reserve_place())
        except PeerError:
            Credential.objects.get(pk=self.pk).decline()
        except Conflict as error:
            if error.code not in ("wrong_state", "connection_gone"):
                raise

    @cached_property
    def definition(self):
        """Issuer: what it is issued from."""
        definitions = CredentialDefinition.objects.select_related(
            "schema", "tenant__network"
        )
        return definitions.get(tenant=self.tenant, definition_id=self.definition_id)

    def reserve_place(self):
        """Issuer: `(registry, index)` for a revocable credential that can be issued, else None.

        In a transaction of its own, so that the registry is locked for a moment only.
        """
        if self.state == self.State.REQUESTED and self.definition.supports_revocation:
            return RevocationRegistry.allocate(self.definition)
        return None

    @network_reads.atomic_with_reads
    def issue(self, values=None, place=None):
        """Issuer: signs and sends the credential; `values` replace those of the offer.

        place: from reserve_place(), called before this transaction.
        """
        if self.state != self.State.REQUESTED:
            raise WrongState(self, [self.State.REQUESTED])
        registry, index = place or self.reserve_place() or (None, None)
        values = self._values_to_issue(self.definition, values)
        credential = self.definition.sign(
            vault.unseal(self, "offer_body"),
            vault.unseal(self, "request_body"),
            values,
            registry and registry.place(index),
        )
        move(
            self,
            [self.State.REQUESTED],
            self.State.ISSUED,
            issued_at=timezone.now(),
            revocation_registry_id=registry.registry_id if registry else "",
            revocation_index=index,
        )
        self._keep(values=values)
        self._send(messages.issue(credential, self.thread_id, self.wire))

    @property
    def awaits_peer(self):
        """Whether the next step is the other side's, or comes by itself."""
        if self.role == self.Role.HOLDER:
            return self.state in (self.State.PROPOSED, self.State.REQUESTED)
        follows = self.state == self.State.REQUESTED and self.automatic_issuance
        return self.state == self.State.OFFERED or follows

    def revoke(self):
        """Issuer: revoked when this returns: the new list is published, the holder is told.

        503 `ledger_unavailable`: the list follows when the ledger takes it, or with the next call.
        """
        if self.revocation_index is None:
            message = (
                "The credential cannot be revoked: its definition does not support it."
            )
            raise (
                WrongState(self, [self.State.ISSUED])
                if self.state != self.State.ISSUED
                else (Conflict("not_revocable", message))
            )
        if self.state != self.State.REVOKED or self.revocation_published_at:
            with transaction.atomic():
                move(self, [self.State.ISSUED], self.State.REVOKED)
        self.publish_revocation()

    def publish_revocation(self):
        """Issuer: publishes the list, then tells the holder, who looks at it. May be repeated."""
        RevocationRegistry.objects.select_related("tenant__network", "definition").get(
            registry_id=self.revocation_registry_id
        ).publish_revocations()
        with transaction.atomic():
            rows = Credential.objects.filter(pk=self.pk)
            rows.update(revocation_published_at=timezone.now())
            if self.connection:
                place = (self.revocation_registry_id, self.revocation_index)
                transport.tell(self.connection, messages.revocation(*place, self.wire))

    @classmethod
    def receive_revocation(cls, connection, registry_id, index):
        """Holder: the issuer says so, and the published list must say the same."""
        rows = cls.objects.select_related("tenant__network").filter(
            wallet_id=connection.wallet_id,
            role=cls.Role.HOLDER,
            state=cls.State.ISSUED,
            revocation_registry_id=registry_id,
            revocation_index=index,
        )
        for credential in rows:
            registry = ledgers.registry_of(credential.tenant.network)
            if registry.is_revoked(registry_id, index):
                move(credential, [cls.State.ISSUED], cls.State.REVOKED)

    def _values_to_issue(self, definition, values):
        offered = vault.unseal(self, "values")
        if values:
            definition.check_values(values)
        elif offered is None:
            message = "The offer had no values: give them as the body, name by name."
            raise Invalid("values_missing", message)
        if values and offered != values and not self.connection.is_hosted:
            raise Conflict(
                "values_fixed",
                "The holder answered an offer with other values. Offer again with the new ones.",
            )
        return values or offered

    def receive_credential(self, message):
        """Holder: checks, stores and acknowledges the credential; the same one again is only
        acknowledged."""
        credential = enclosed(message, formats.CREDENTIAL)
        if credential.get("cred_def_id") != self.definition_id:
            raise PeerError(
                messages.ABANDONED, "the credential is of another definition"
            )
        if self.state == self.State.ISSUED and self._is_held(credential):
            self._send(messages.ack(self.thread_id, self.wire))
            return
        if self.state != self.State.REQUESTED:
            raise WrongState(self, [self.State.REQUESTED])
        registry_id = credential.get("rev_reg_id") or ""
        registry = ledgers.registry_of(self.tenant.network)
        stored = anoncreds.process_credential(
            credential,
            vault.unseal(self, "request_metadata"),
            self.wallet.secret(),
            self.public_definition(),
            registry.registry(registry_id) if registry_id else None,
        )
        values = {name: value["raw"] for name, value in stored["values"].items()}
        move(
            self,
            [self.State.REQUESTED],
            self.State.ISSUED,
            issued_at=timezone.now(),
            attribute_names=compared(values),
            values=vault.sealed(self, "values", values),
            credential=vault.sealed(self, "credential", stored),
            request_metadata=None,
            revocation_registry_id=registry_id,
            revocation_index=anoncreds.revocation_index(stored)
            if registry_id
            else None,
        )
        self._send(messages.ack(self.thread_id, self.wire))

    def is_same(self, column, content):
        """Whether this came before, in a message with another id."""
        return vault.unseal(self, column) == content

    def _is_held(self, credential):
        """Whether it is the stored one: processing changes the signature only."""
        stored, proof = vault.unseal(self, "credential"), "signature_correctness_proof"
        return all(
            stored.get(name) == credential.get(name) for name in ("values", proof)
        )

    @transaction.atomic
    def decline(self):
        """Either side: ends an open exchange and says so."""
        move(self, self.OPEN, self.State.REJECTED, problem="declined")
        if self.connection:
            transport.tell(self.connection, messages.abandon(self.thread_id, self.wire))

    @classmethod
    def reported(cls, connection, message):
        """The exchange that a problem report is about. Those of Credo in version 1.0 name no
        thread: then it is the only open offer of that version on the connection."""
        try:
            return cls.answered(connection, message, *cls.Role)
        except PeerError:
            names_thread = message.thread_id != message.id
            if (
                names_thread
                or formats.wire_of(message).version != Connection.Version.FIRST
            ):
                raise
            offered = {"role": cls.Role.ISSUER, "state": cls.State.OFFERED}
            rows = cls.objects.filter(connection=connection, **offered)
            offers = rows.filter(wire_version=Connection.Version.FIRST)[:2]
            if len(offers) != 1:
                raise
            return offers[0]

    def receive_problem(self, code):
        """The other side ended the exchange; a report about a finished one changes nothing."""
        if self.state in self.OPEN:
            move(self, self.OPEN, self.State.REJECTED, problem=code)

    def remove(self):
        """Deletes the row and revokes nothing; what is open is declined first."""
        self.publish_waiting(Credential.objects.filter(pk=self.pk))
        connection = self.connection
        with transaction.atomic():
            is_alone = connection and connection.connectionless and connection.hold()
            if self.state in self.OPEN:
                self.decline()
            self.delete()
            if is_alone:
                connection.remove()

    @classmethod
    def purge(cls, wallet, definition_id):
        """Issuer: deletes what is finished of a definition, and revokes nothing."""
        rows = cls.objects.filter(
            wallet=wallet,
            role=cls.Role.ISSUER,
            definition_id=definition_id,
            state__in=cls.FINISHED,
        )
        listed = cls.publish_waiting(rows)
        rows = rows.filter(~Q(state=cls.State.REVOKED) | Q(pk__in=listed))
        with transaction.atomic():
            for connection in Connection.objects.filter(
                connectionless=True, credential__in=rows
            ):
                connection.remove()
            rows.delete()

    @classmethod
    def publish_waiting(cls, rows):
        """Before revoked rows go, their registries list them. The ids of those that are listed."""
        revoked = rows.filter(role=cls.Role.ISSUER, state=cls.State.REVOKED)
        listed = list(revoked.values_list("pk", flat=True))
        names = (
            cls.objects.filter(pk__in=listed)
            .values("revocation_registry_id")
            .distinct()
        )
        waiting = RevocationRegistry.objects.filter(registry_id__in=names)
        for registry in waiting.select_related("tenant__network", "definition"):
            registry.publish_revocations()
        return listed

    def public_definition(self):
        body = ledgers.registry_of(self.tenant.network).definition(self.definition_id)
        if body is None:
            raise Conflict(
                "unknown_definition",
                f"The definition {self.definition_id} is not on {self.tenant.network}.",
            )
        return body

    def shown_values(self):
        return vault.unseal(self, "values")

    def _keep(self, **bodies):
        """Seals what a transition made."""
        sealed = {name: vault.sealed(self, name, body) for name, body in bodies.items()}
        Credential.objects.filter(pk=self.pk).update(**sealed)
