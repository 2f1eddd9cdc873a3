"""Schemas, credential definitions and credentials, and the public objects behind them."""

from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone

from agency.errors import Conflict, Invalid, PeerError, WrongState
from agency.states import move
from connections.didcomm import transport
from connections.didcomm.message import attached
from connections.models import Connection
from credentials import protocol, registries
from tenants import vault
from tenants.models import Network, Record, Tenant
from wallets import anoncreds, pool
from wallets.models import Wallet


class PublishedObject(Record):
    """Something on the local network: public, immutable, and there even after its tenant."""

    class Kind(models.TextChoices):
        DID = "did"
        SCHEMA = "schema"
        DEFINITION = "definition"

    network = models.ForeignKey(Network, on_delete=models.PROTECT)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    object_id = models.CharField(max_length=300)
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
    @transaction.atomic
    def create(cls, tenant, name, version, attribute_names):
        """Publishes the schema under the tenant's DID; the same one again is returned."""
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
    schema = models.ForeignKey(Schema, on_delete=models.PROTECT)
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
    def create(cls, tenant, schema, schema_id, tag=None, supports_revocation=False):
        """Takes a key from the pool or makes one (1.5 to 15 s), then publishes in one transaction.

        schema: `{"issuerId", "name", "version", "attrNames"}`, published if it is not there yet.
        """
        did = organization(tenant).did
        if tag and registries.registry_of(tenant.network).has_tag(did, schema_id, tag):
            raise registries.local.tag_taken(tag)
        wanted = (schema_id, schema, did, tag or "default", supports_revocation)
        with transaction.atomic():
            made = pool.take(*wanted)
            if made:
                return cls.publish(tenant, schema, made, tag)
        return cls.publish(tenant, schema, anoncreds.create_definition(*wanted), tag)

    @classmethod
    @transaction.atomic
    def publish(cls, tenant, schema, made, tag):
        registry = registries.registry_of(tenant.network)
        if schema["issuerId"] == made.public["issuerId"]:
            registry.publish_schema(schema)
        definition_id = registry.publish_definition(made.public, tag)
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

    def sign(self, offer, request, values, public):
        return anoncreds.create_credential(
            public, vault.unseal(self, "private_key"), offer, request, values
        )

    def remove(self):
        """Hides it and refuses new offers; what is published and open stays."""
        now = timezone.now()
        CredentialDefinition.objects.filter(pk=self.pk).update(deleted_at=now, updated_at=now)


class Credential(Record):
    """One party's view of an issuance; the other party has a row (or software) of its own.

    issuer   Offered ─receive_request→ Requested ─issue→ Issued
    holder   Offered ─accept→ Requested ─receive_credential→ Issued
    both     Offered | Requested ─decline, receive_problem→ Rejected
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

    OPEN = (State.OFFERED, State.REQUESTED)

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    wallet = models.ForeignKey(Wallet, on_delete=models.CASCADE, related_name="credentials")
    connection = models.ForeignKey(Connection, on_delete=models.SET_NULL, null=True)
    role = models.CharField(max_length=6, choices=Role.choices)
    state = models.CharField(max_length=9, choices=State.choices, default=State.OFFERED)
    thread_id = models.CharField(max_length=128)
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
    problem = models.CharField(max_length=100, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["connection", "thread_id", "role"], name="one_credential_per_thread"
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
        indexes = [models.Index(fields=["wallet", "-id"])]

    def __str__(self):
        return str(self.pk)

    @classmethod
    def held(cls, wallet):
        """What a wallet can prove with."""
        return cls.objects.filter(
            wallet=wallet, role=cls.Role.HOLDER, state=cls.State.ISSUED
        ).select_related("connection")

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
        message = protocol.offer(offer, names, values or {}, connection.message_prefix)
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
        )
        vault.seal(credential, "offer_body", offer)
        vault.seal(credential, "values", values)
        credential.save(force_insert=True)
        connection.begin(message)
        return credential

    @classmethod
    @transaction.atomic
    def offer_by_link(cls, wallet, definition, values, automatic_issuance=False):
        """Issuer: offers to whoever opens the link first."""
        if values is None:
            message = "An offer without a connection needs credentialValues."
            raise Invalid("values_missing", message, {"credentialValues": [message]})
        definition.check_values(values)
        connection = Connection.for_exchange(wallet)
        return cls.offer(connection, definition, values, automatic_issuance)

    @classmethod
    def take(cls, wallet, message):
        """Holder: accepts a shared offer; the same one again gives the same credential."""
        with transaction.atomic():
            connection = Connection.take(wallet, message)
            rows = cls.objects.filter(connection=connection, thread_id=message.thread_id)
            credential = rows.first() or cls.receive_offer(connection, message)
            if credential.state == cls.State.OFFERED:
                credential.accept()
        connection.require_mine(credential)
        return credential

    @classmethod
    def receive_offer(cls, connection, message):
        """Holder: notes what the issuer offers; until it is answered, a later offer replaces it."""
        offer, values = attached(message, "offers~attach"), protocol.read_preview(message)
        place = {"connection": connection, "thread_id": message.thread_id, "role": cls.Role.HOLDER}
        known = cls.objects.filter(**place).first()
        if known:
            move(known, [cls.State.OFFERED], cls.State.OFFERED)
        credential = known or cls(
            tenant_id=connection.tenant_id, wallet_id=connection.wallet_id, **place
        )
        credential.schema_id = str(offer.get("schema_id"))[:300]
        credential.definition_id = str(offer.get("cred_def_id"))[:300]
        credential.attribute_names = compared(values)
        vault.seal(credential, "offer_body", offer)
        vault.seal(credential, "values", values)
        credential.save(force_insert=not known)
        return credential

    @transaction.atomic
    def accept(self):
        """Holder: asks for what was offered."""
        move(self, [self.State.OFFERED], self.State.REQUESTED, accepted_at=timezone.now())
        request, metadata = anoncreds.create_request(
            vault.unseal(self, "offer_body"),
            self.public_definition(),
            self.wallet.secret(),
            self.connection.my_key.did,
        )
        self._keep(request_body=request, request_metadata=metadata)
        self._send(protocol.request(request, self.thread_id, self._prefix))

    def receive_request(self, message):
        """Issuer: the holder accepted; issues at once if that was agreed."""
        request = attached(message, "requests~attach")
        move(
            self,
            [self.State.OFFERED],
            self.State.REQUESTED,
            accepted_at=timezone.now(),
            request_body=vault.sealed(self, "request_body", request),
        )
        if self.automatic_issuance:
            self.issue()

    @transaction.atomic
    def issue(self, values=None):
        """Issuer: signs and sends the credential; `values` replace those of the offer."""
        move(self, [self.State.REQUESTED], self.State.ISSUED, issued_at=timezone.now())
        definition = CredentialDefinition.objects.select_related("schema").get(
            tenant=self.tenant, definition_id=self.definition_id
        )
        values = self._values_to_issue(definition, values)
        credential = definition.sign(
            vault.unseal(self, "offer_body"),
            vault.unseal(self, "request_body"),
            values,
            self.public_definition(),
        )
        self._keep(values=values)
        self._send(protocol.issue(credential, self.thread_id, self._prefix))

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
        """Holder: checks, stores and acknowledges the credential."""
        credential = attached(message, "credentials~attach")
        if credential.get("cred_def_id") != self.definition_id:
            raise PeerError(protocol.ABANDONED, "the credential is of another definition")
        if self.state != self.State.REQUESTED:
            raise WrongState(self, [self.State.REQUESTED])
        stored = anoncreds.process_credential(
            credential,
            vault.unseal(self, "request_metadata"),
            self.wallet.secret(),
            self.public_definition(),
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
        )
        self._send(protocol.ack(self.thread_id, self._prefix))

    @transaction.atomic
    def decline(self):
        """Either side: ends an open exchange and says so."""
        move(self, self.OPEN, self.State.REJECTED, problem="declined")
        if self.connection:
            transport.tell(self.connection, protocol.abandon(self.thread_id, self._prefix))

    def receive_problem(self, code):
        """The other side ended the exchange; a report about a finished one changes nothing."""
        if self.state in self.OPEN:
            move(self, self.OPEN, self.State.REJECTED, problem=code)

    @transaction.atomic
    def remove(self):
        """Deletes the row; what is open is declined first."""
        if self.state in self.OPEN:
            self.decline()
        self.delete()
        if self.connection and self.connection.connectionless:
            self.connection.remove()

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

    def _send(self, message):
        if self.connection is None:
            raise Conflict("connection_gone", "The connection of this credential was deleted.")
        transport.send(self.connection, message)

    @property
    def _prefix(self):
        return self.connection.message_prefix if self.connection else ""


def compared(names):
    """Attribute names as proofs compare them, for finding what fits a request."""
    return [anoncreds.common_view(name)[:256] for name in names]
