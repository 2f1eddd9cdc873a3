"""Schemas, credential definitions and credentials, and the public objects behind them."""

from functools import cached_property

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone

from agency import outside
from agency.errors import Conflict, Invalid, PeerError, WrongState
from agency.states import move
from connections.didcomm import exchange, transport
from connections.didcomm.exchange import enclosed
from connections.exchanges import Exchange, as_written
from connections.models import Connection
from credentials import protocol, publishing, registries
from credentials.publications import Publication
from credentials.registries.base import tag_taken
from credentials.revocation import RevocationRegistry, StatusList
from tenants import vault
from tenants.models import Network, Record, Tenant
from wallets import anoncreds, pool
from wallets.models import Wallet
from webhooks.types import Type

# Models too, though in files of their own.
__all__ = ["Publication", "RevocationRegistry", "StatusList"]


class PublishedObject(Record):
    """Something that stands on a network: public, immutable, and there even after its tenant.

    On a remote one this is a copy of what was written or seen there.
    """

    class Kind(models.TextChoices):
        DID = "did"
        SCHEMA = "schema"
        DEFINITION = "definition"
        REGISTRY = "registry"

    network = models.ForeignKey(Network, on_delete=models.PROTECT)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    object_id = models.CharField(max_length=500)
    sequence = models.BigIntegerField()
    body = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["network", "object_id"], name="one_object_per_id"),
            models.UniqueConstraint(fields=["network", "sequence"], name="one_object_per_write"),
        ]

    def __str__(self):
        return self.object_id


class Schema(Record):
    """A schema that a tenant made or uses."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    schema_id = models.CharField(max_length=300)
    name = models.CharField(max_length=64)
    version = models.CharField(max_length=64)
    attribute_names = ArrayField(models.CharField(max_length=256))

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "schema_id"], name="one_schema_per_id")
        ]

    def __str__(self):
        return self.schema_id

    @classmethod
    def prepare(cls, tenant, name, version, attribute_names):
        """For create(), outside of any transaction: on a remote ledger, the published schema."""
        if not registries.registry_of(tenant.network).is_remote:
            return None
        return publishing.schema(tenant, schema_body(tenant, name, version, attribute_names))

    @classmethod
    @transaction.atomic
    def create(cls, tenant, name, version, attribute_names, prepared=None):
        """Publishes the schema under the tenant's DID; the same one again is returned."""
        if prepared:
            return prepared
        body = schema_body(tenant, name, version, attribute_names)
        schema_id = registries.registry_of(tenant.network).publish_schema(body)
        return cls.noted(tenant, schema_id, body)

    @classmethod
    def noted(cls, tenant, schema_id, body):
        defaults = {"name": body["name"], "version": body["version"]}
        defaults["attribute_names"] = body["attrNames"]
        return cls.objects.get_or_create(tenant=tenant, schema_id=schema_id, defaults=defaults)[0]


def schema_body(tenant, name, version, attribute_names):
    return {
        "issuerId": organization(tenant).did,
        "name": name,
        "version": version,
        "attrNames": list(attribute_names),
    }


def organization(tenant):
    return Wallet.objects.get(tenant=tenant, is_organization=True)


class CredentialDefinition(Record):
    """What a tenant issues: a schema with the keys that sign it."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    schema = models.ForeignKey(Schema, on_delete=models.RESTRICT)
    definition_id = models.CharField(max_length=300)
    tag = models.CharField(max_length=64)
    supports_revocation = models.BooleanField(default=False)
    private_key = models.BinaryField()
    key_proof = models.BinaryField()
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "definition_id"], name="one_definition_per_id"
            )
        ]

    def __str__(self):
        return self.definition_id

    @classmethod
    def offered(cls, tenant):
        """The definitions that are not deleted."""
        return cls.objects.filter(tenant=tenant, deleted_at=None).select_related("schema")

    @classmethod
    @transaction.atomic
    def create(cls, tenant, schema, schema_id, tag=None, supports_revocation=False, prepared=None):
        """Publishes under a prepared key or, without one, one of the pool, in one transaction.

        schema: `{"issuerId", "name", "version", "attrNames"}`, published if it is not there yet.
        """
        if isinstance(prepared, cls):
            return prepared
        wanted = (schema_id, schema, organization(tenant).did, tag or "default")
        wanted += (supports_revocation,)
        made = prepared or pool.take(*wanted) or anoncreds.create_definition(*wanted)
        return cls.publish(tenant, schema, made, tag)

    @classmethod
    def prepare(cls, tenant, schema, schema_id, tag=None, supports_revocation=False):
        """For create(), outside of any transaction: a new key (1.5 to 15 s), None if the pool has
        one; on a remote ledger, the published definition. 409 `tag_taken`."""
        did, registry = organization(tenant).did, registries.registry_of(tenant.network)
        if registry.is_remote:
            return publishing.definition(tenant, schema, schema_id, tag, supports_revocation)
        if tag and registry.has_tag(did, schema_id, tag):
            raise tag_taken(tag)
        if pool.has(len(schema["attrNames"])):
            return None
        return anoncreds.create_definition(
            schema_id, schema, did, tag or "default", supports_revocation
        )

    @classmethod
    @transaction.atomic
    def publish(cls, tenant, schema, made, tag):
        registry = registries.registry_of(tenant.network)
        if schema["issuerId"] == made.public["issuerId"]:
            registry.publish_schema(schema)
        row = cls.noted(tenant, schema, made, registry.publish_definition(made.public, tag))
        if row.supports_revocation:
            RevocationRegistry.build(row, made.public, settings.REVOCATION_FIRST_REGISTRY_SIZE)
        return row

    @classmethod
    def noted(cls, tenant, schema, made, definition_id):
        """The row of a definition that is published."""
        row = cls(tenant=tenant, definition_id=definition_id, tag=made.public["tag"])
        row.schema = Schema.noted(tenant, made.public["schemaId"], schema)
        row.supports_revocation = "revocation" in made.public["value"]
        vault.seal(row, "private_key", made.private)
        vault.seal(row, "key_proof", made.key_proof)
        row.save(force_insert=True)
        return row

    def check_values(self, values):
        """400 unless the names are exactly the schema's."""
        names = self.schema.attribute_names
        missing = [name for name in names if name not in values]
        unknown = [name for name in values if name not in names]
        problems = [f"missing: {', '.join(missing)}"] if missing else []
        problems += [f"not in the schema: {', '.join(unknown)}"] if unknown else []
        if problems:
            problems.append(f"the schema has {', '.join(names)}")
            message = f"credentialValues must name each attribute once: {'; '.join(problems)}."
            raise Invalid("wrong_attributes", message, {"credentialValues": problems})

    def offer(self):
        return anoncreds.create_offer(
            self.schema.schema_id, self.definition_id, vault.unseal(self, "key_proof")
        )

    def sign(self, offer, request, values, place=None):
        """place: where a revocable credential stands in its registry."""
        public = registries.registry_of(self.tenant.network).definition(self.definition_id)
        private = vault.unseal(self, "private_key")
        return anoncreds.create_credential(public, private, offer, request, values, place)

    def credentials_of_registry(self, registry_id):
        """The revoked ones."""
        rows = Credential.objects.filter(revocation_registry_id=registry_id)
        return rows.filter(role=Credential.Role.ISSUER, state=Credential.State.REVOKED)

    def remove(self):
        """Hides it and refuses new offers; what is published and open stays."""
        now = timezone.now()
        CredentialDefinition.objects.filter(pk=self.pk).update(deleted_at=now, updated_at=now)


class Credential(Exchange):
    """One party's view of an issuance; the other party has a row (or software) of its own.

    issuer   Offered ─receive_request→ Requested ─issue→ Issued
    holder   Offered ─accept→ Requested ─receive_credential→ Issued
    both     Offered | Requested ─decline, receive_problem→ Rejected
    issuer   Issued ─revoke→ Revoked;   holder   Issued ─receive_revocation→ Revoked
    """

    class State(models.TextChoices):
        OFFERED = "Offered"
        REQUESTED = "Requested"
        ISSUED = "Issued"
        REJECTED = "Rejected"
        REVOKED = "Revoked"

    class Role(models.TextChoices):
        ISSUER = "issuer"
        HOLDER = "holder"

    OBJECT_TYPE = "credential"
    EVENTS = {
        (Role.ISSUER, State.OFFERED): Type.CREDENTIAL_OFFERED,
        (Role.ISSUER, State.REQUESTED): Type.CREDENTIAL_REQUEST,
        (Role.ISSUER, State.ISSUED): Type.CREDENTIAL_ISSUED,
        (Role.ISSUER, State.REJECTED): Type.CREDENTIAL_REJECTED,
        (Role.ISSUER, State.REVOKED): Type.CREDENTIAL_REVOKED,
        (Role.HOLDER, State.OFFERED): Type.CREDENTIAL_OFFER,
        (Role.HOLDER, State.REQUESTED): Type.CREDENTIAL_REQUESTED,
        (Role.HOLDER, State.ISSUED): Type.CREDENTIAL_ISSUED,
        (Role.HOLDER, State.REJECTED): Type.CREDENTIAL_REJECTED,
        (Role.HOLDER, State.REVOKED): Type.CREDENTIAL_REVOKED,
    }
    OPEN = (State.OFFERED, State.REQUESTED)
    FINISHED = (State.ISSUED, State.REJECTED, State.REVOKED)

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    wallet = models.ForeignKey(Wallet, on_delete=models.CASCADE, related_name="credentials")
    role = models.CharField(max_length=6, choices=Role.choices)
    state = models.CharField(max_length=9, choices=State.choices, default=State.OFFERED)
    schema_id = models.CharField(max_length=300)
    definition_id = models.CharField(max_length=300)
    attribute_names = ArrayField(models.CharField(max_length=256))  # as proofs compare them
    automatic_issuance = models.BooleanField(default=False)
    values = models.BinaryField(null=True)
    offer_body = models.BinaryField()
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
                fields=["connection", "thread_id", "role"], name="one_credential_per_thread"
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
                condition=Q(state__in=["Offered", "Rejected"]) | Q(accepted_at__isnull=False),
                name="past_offered_has_its_time",
            ),
            models.CheckConstraint(
                condition=~Q(role="holder", state="Issued") | Q(credential__isnull=False),
                name="holder_has_what_was_issued",
            ),
        ]
        indexes = [
            models.Index(fields=["wallet", "-id"]),
            models.Index(fields=["wallet", "state", "id"]),
            models.Index(fields=["wallet", "updated_at", "id"]),
            models.Index(fields=["wallet", "definition_id", "id"]),
            models.Index(fields=["wallet", "schema_id", "id"]),
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
        if values is not None:
            definition.check_values(values)
        elif automatic_issuance:
            message = "automaticIssuance needs credentialValues."
            raise Invalid("values_missing", message, {"credentialValues": [message]})
        names, offer = definition.schema.attribute_names, definition.offer()
        wire = connection.wire_for(protocol.ISSUE_CREDENTIAL)
        message = protocol.offer(offer, names, values or {}, wire)
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
        credential.save(force_insert=True)
        connection.begin(message)
        return credential

    @classmethod
    @transaction.atomic
    def offer_by_link(cls, wallet, definition, values, automatic_issuance=False, terms=None):
        """Issuer: offers to whoever opens the link first; with terms, of an out-of-band
        invitation."""
        if values is None:
            message = "An offer without a connection needs credentialValues."
            raise Invalid("values_missing", message, {"credentialValues": [message]})
        connection = Connection.for_exchange(wallet, terms)
        return cls.offer(connection, definition, values, automatic_issuance)

    @classmethod
    @outside.atomic
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
        """Holder: notes what the issuer offers; until it is answered, a later offer replaces it.
        The same one again changes nothing."""
        offer, values = enclosed(message, exchange.OFFER), protocol.read_preview(message)
        place = {"connection": connection, "thread_id": message.thread_id, "role": cls.Role.HOLDER}
        known = cls.objects.filter(**place).first()
        written = as_written(message)
        if known and known.state != cls.State.OFFERED and known.is_same("offer_body", offer):
            return known
        if known:
            move(known, [cls.State.OFFERED], cls.State.OFFERED, **written)
        credential = known or cls(
            tenant_id=connection.tenant_id, wallet_id=connection.wallet_id, **place, **written
        )
        credential.schema_id = str(offer.get("schema_id"))[:300]
        credential.definition_id = str(offer.get("cred_def_id"))[:300]
        credential.attribute_names = compared(values)
        vault.seal(credential, "offer_body", offer)
        vault.seal(credential, "values", values)
        credential.save(force_insert=not known)
        return credential

    @outside.atomic
    def accept(self):
        """Holder: asks for what was offered."""
        definition = self.public_definition()
        move(self, [self.State.OFFERED], self.State.REQUESTED, accepted_at=timezone.now())
        request, metadata = anoncreds.create_request(
            vault.unseal(self, "offer_body"),
            definition,
            self.wallet.secret(),
            self.connection.my_key.did,
        )
        self._keep(request_body=request, request_metadata=metadata)
        self._send(protocol.request(request, self.thread_id, self.wire))

    def receive_request(self, message):
        """Issuer: the holder accepted; issues at once if that was agreed. The same request again
        changes nothing."""
        request = enclosed(message, exchange.REQUEST)
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
        """Issuer: after the request is stored; a request that cannot be signed is declined."""
        try:
            self.issue(place=self.reserve_place())
        except PeerError:
            Credential.objects.get(pk=self.pk).decline()

    @cached_property
    def definition(self):
        """Issuer: what it is issued from."""
        definitions = CredentialDefinition.objects.select_related("schema", "tenant__network")
        return definitions.get(tenant=self.tenant, definition_id=self.definition_id)

    def reserve_place(self):
        """Issuer: `(registry, index)` for a revocable credential that can be issued, else None.

        In a transaction of its own, so that the registry is locked for a moment only.
        """
        if self.state == self.State.REQUESTED and self.definition.supports_revocation:
            return RevocationRegistry.allocate(self.definition)
        return None

    @transaction.atomic
    def issue(self, values=None, place=None):
        """Issuer: signs and sends the credential; `values` replace those of the offer.

        place: from reserve_place(), called before this transaction.
        """
        registry, index = place or self.reserve_place() or (None, None)
        move(
            self,
            [self.State.REQUESTED],
            self.State.ISSUED,
            issued_at=timezone.now(),
            revocation_registry_id=registry.registry_id if registry else "",
            revocation_index=index,
        )
        values = self._values_to_issue(self.definition, values)
        credential = self.definition.sign(
            vault.unseal(self, "offer_body"),
            vault.unseal(self, "request_body"),
            values,
            registry and registry.place(index),
        )
        self._keep(values=values)
        self._send(protocol.issue(credential, self.thread_id, self.wire))

    @property
    def awaits_peer(self):
        """Whether the next step is the other side's, or comes by itself."""
        if self.role == self.Role.HOLDER:
            return self.state == self.State.REQUESTED
        follows = self.state == self.State.REQUESTED and self.automatic_issuance
        return self.state == self.State.OFFERED or follows

    def revoke(self):
        """Issuer: revoked when this returns: the new list is published, the holder is told.

        503 `ledger_unavailable`: the list follows when the ledger takes it, or with the next call.
        """
        if self.revocation_index is None:
            message = "The credential cannot be revoked: its definition does not support it."
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
                transport.tell(self.connection, protocol.revocation(*place, self.wire))

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
            registry = registries.registry_of(credential.tenant.network)
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
        credential = enclosed(message, exchange.CREDENTIAL)
        if credential.get("cred_def_id") != self.definition_id:
            raise PeerError(protocol.ABANDONED, "the credential is of another definition")
        if self.state == self.State.ISSUED and self._is_held(credential):
            self._send(protocol.ack(self.thread_id, self.wire))
            return
        if self.state != self.State.REQUESTED:
            raise WrongState(self, [self.State.REQUESTED])
        registry_id = credential.get("rev_reg_id") or ""
        registry = registries.registry_of(self.tenant.network)
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
            revocation_index=anoncreds.revocation_index(stored) if registry_id else None,
        )
        self._send(protocol.ack(self.thread_id, self.wire))

    def is_same(self, column, content):
        """Whether this came before, in a message with another id."""
        return vault.unseal(self, column) == content

    def _is_held(self, credential):
        """Whether it is the stored one: processing changes the signature only."""
        stored, proof = vault.unseal(self, "credential"), "signature_correctness_proof"
        return all(stored.get(name) == credential.get(name) for name in ("values", proof))

    @transaction.atomic
    def decline(self):
        """Either side: ends an open exchange and says so."""
        move(self, self.OPEN, self.State.REJECTED, problem="declined")
        if self.connection:
            transport.tell(self.connection, protocol.abandon(self.thread_id, self.wire))

    def receive_problem(self, code):
        """The other side ended the exchange; a report about a finished one changes nothing."""
        if self.state in self.OPEN:
            move(self, self.OPEN, self.State.REJECTED, problem=code)

    def remove(self):
        """Deletes the row and revokes nothing; what is open is declined first."""
        self.publish_waiting(Credential.objects.filter(pk=self.pk))
        with transaction.atomic():
            if self.state in self.OPEN:
                self.decline()
            self.delete()
            if self.connection and self.connection.connectionless:
                self.connection.remove()

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
            shared = list(Connection.objects.filter(connectionless=True, credential__in=rows))
            rows.delete()
            for connection in shared:
                connection.remove()

    @classmethod
    def publish_waiting(cls, rows):
        """Before revoked rows go, their registries list them. The ids of those that are listed."""
        revoked = rows.filter(role=cls.Role.ISSUER, state=cls.State.REVOKED)
        listed = list(revoked.values_list("pk", flat=True))
        names = cls.objects.filter(pk__in=listed).values("revocation_registry_id").distinct()
        waiting = RevocationRegistry.objects.filter(registry_id__in=names)
        for registry in waiting.select_related("tenant__network", "definition"):
            registry.publish_revocations()
        return listed

    def public_definition(self):
        body = registries.registry_of(self.tenant.network).definition(self.definition_id)
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


def compared(names):
    """Attribute names as proofs compare them, for finding what fits a request."""
    return [anoncreds.common_view(name)[:256] for name in names]
