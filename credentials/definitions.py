"""What credentials are made from: schemas and definitions, and the public objects behind them."""

from django.apps import apps
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.db.models import F, Max, Q, Sum
from django.utils import timezone

from agency.core.errors import Invalid
from credentials import ledgers, publishing
from credentials.ledgers.base import tag_taken
from credentials.revocation import NEXT_IS_BUILT_AT, RevocationRegistry
from tenants import quotas, vault
from tenants.models import Network, Record, Tenant
from wallets import anoncreds, key_pool
from wallets.models import Wallet


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
            models.UniqueConstraint(
                fields=["network", "object_id"], name="one_object_per_id"
            ),
            models.UniqueConstraint(
                fields=["network", "sequence"], name="one_object_per_write"
            ),
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
            models.UniqueConstraint(
                fields=["tenant", "schema_id"], name="one_schema_per_id"
            )
        ]

    def __str__(self):
        return self.schema_id

    @classmethod
    def prepare(cls, tenant, name, version, attribute_names):
        """For create(), outside of any transaction: on a remote ledger, the published schema."""
        if not ledgers.registry_of(tenant.network).is_remote:
            return None
        return publishing.schema(
            tenant, schema_body(tenant, name, version, attribute_names)
        )

    @classmethod
    @transaction.atomic
    def create(cls, tenant, name, version, attribute_names, prepared=None):
        """Publishes the schema under the tenant's DID; the same one again is returned."""
        if prepared:
            return prepared
        body = schema_body(tenant, name, version, attribute_names)
        schema_id = ledgers.registry_of(tenant.network).publish_schema(body)
        return cls.noted(tenant, schema_id, body)

    @classmethod
    def noted(cls, tenant, schema_id, body):
        defaults = {"name": body["name"], "version": body["version"]}
        defaults["attribute_names"] = body["attrNames"]
        return cls.objects.get_or_create(
            tenant=tenant, schema_id=schema_id, defaults=defaults
        )[0]


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
    """What a tenant issues: a schema with the keys that sign it.

    claims: `{"age": {"type": "integer"}}`, what its values must be, in the schema's spelling. Set
    once, when it is made: verifiers rely on it for every credential of the definition.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    schema = models.ForeignKey(Schema, on_delete=models.RESTRICT)
    definition_id = models.CharField(max_length=300)
    tag = models.CharField(max_length=64)
    supports_revocation = models.BooleanField(default=False)
    claims = models.JSONField(default=dict)
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
        return cls.objects.filter(tenant=tenant, deleted_at=None).select_related(
            "schema"
        )

    @classmethod
    def nearly_full(cls):
        """Those that soon need another registry; RevocationRegistry.has_room judges one of them."""
        rows = cls.objects.filter(deleted_at=None, supports_revocation=True)
        free = Sum(F("registries__size") - F("registries__next_index"))
        rows = rows.alias(free=free, newest=Max("registries__size"))
        return rows.filter(
            Q(free=None) | Q(free__lte=F("newest") * (1 - NEXT_IS_BUILT_AT))
        )

    @classmethod
    def integers(cls, tenant_id, definition_ids):
        """`{definition id: attributes}` that hold integers only, as proofs compare their names: of
        those that are made here, by whomever, on the network of this tenant."""
        on_network = cls.objects.filter(tenant__network__tenant=tenant_id)
        rows = on_network.filter(definition_id__in=definition_ids).exclude(claims={})
        return {
            name: {anoncreds.common_view(claim) for claim in claims}
            for name, claims in rows.values_list("definition_id", "claims")
        }

    @classmethod
    @transaction.atomic
    def create(
        cls, tenant, schema, schema_id, tag, supports_revocation, claims, prepared
    ):
        """Publishes a definition under the key that prepare() took, in one transaction.

        schema: `{"issuerId", "name", "version", "attrNames"}`, published if it is not there yet.
        """
        if isinstance(prepared, cls):
            return prepared
        return cls.publish(tenant, schema, prepared.definition, tag, claims)

    @classmethod
    def prepare(
        cls, tenant, schema, schema_id, tag=None, supports_revocation=False, claims=None
    ):
        """For create(), outside of any transaction: a key of the pool or, on a remote ledger, the
        published definition. 400 `invalid_request` for claims about what the schema does not have,
        409 `tag_taken` and `quota_exceeded`, 503 `key_not_ready`."""
        check_claims(claims or {}, schema["attrNames"])
        quotas.require_room(quotas.DEFINITIONS, tenant.pk)
        did, registry = organization(tenant).did, ledgers.registry_of(tenant.network)
        if registry.is_remote:
            key_pool.await_key(len(schema["attrNames"]), tenant.pk)
            wanted = (schema_id, tag, supports_revocation, claims)
            return publishing.definition(tenant, schema, *wanted)
        if tag and registry.has_tag(did, schema_id, tag):
            raise tag_taken(tag)
        return key_pool.reserve(
            schema_id,
            schema,
            did,
            tag or "default",
            supports_revocation,
            caller=tenant.pk,
        )

    @classmethod
    @transaction.atomic
    def publish(cls, tenant, schema, made, tag, claims=None):
        registry = ledgers.registry_of(tenant.network)
        if schema["issuerId"] == made.public["issuerId"]:
            registry.publish_schema(schema)
        definition_id = registry.publish_definition(made.public, tag)
        row = cls.noted(tenant, schema, made, definition_id, claims)
        if row.supports_revocation:
            RevocationRegistry.build(
                row, made.public, settings.REVOCATION_FIRST_REGISTRY_SIZE
            )
        return row

    @classmethod
    def noted(cls, tenant, schema, made, definition_id, claims=None):
        """The row of a definition that is published."""
        row = cls(tenant=tenant, definition_id=definition_id, tag=made.public["tag"])
        row.schema = Schema.noted(tenant, made.public["schemaId"], schema)
        row.supports_revocation = "revocation" in made.public["value"]
        row.claims = claims or {}
        vault.seal(row, "private_key", made.private)
        vault.seal(row, "key_proof", made.key_proof)
        row.save(force_insert=True)
        return row

    def check_values(self, values):
        """400 unless the names are exactly the schema's, and the values what the claims say."""
        names = self.schema.attribute_names
        missing = [name for name in names if name not in values]
        unknown = [name for name in values if name not in names]
        problems = [f"missing: {', '.join(missing)}"] if missing else []
        problems += [f"not in the schema: {', '.join(unknown)}"] if unknown else []
        if problems:
            problems.append(f"the schema has {', '.join(names)}")
            message = f"credentialValues must name each attribute once: {'; '.join(problems)}."
            raise Invalid("wrong_attributes", message, {"credentialValues": problems})
        texts = [
            name for name in self.claims if anoncreds.integer(values[name]) is None
        ]
        if texts:
            sentence = (
                "Give a whole number from -2147483648 to 2147483647, at most 80 digits."
            )
            message = (
                f"The definition declares a number: {', '.join(texts)}. {sentence}"
            )
            errors = {f"credentialValues.{name}": [sentence] for name in texts}
            raise Invalid("not_an_integer", message, errors)

    def check_offered(self, values, automatic_issuance):
        """400 unless so much can be offered; without values they follow when it is issued."""
        if values is not None:
            self.check_values(values)
        elif automatic_issuance:
            message = "automaticIssuance needs credentialValues."
            raise Invalid("values_missing", message, {"credentialValues": [message]})

    def offer(self):
        return anoncreds.create_offer(
            self.schema.schema_id, self.definition_id, vault.unseal(self, "key_proof")
        )

    def sign(self, offer, request, values, place=None):
        """place: where a revocable credential stands in its registry."""
        public = ledgers.registry_of(self.tenant.network).definition(self.definition_id)
        private = vault.unseal(self, "private_key")
        return anoncreds.create_credential(
            public, private, offer, request, values, place
        )

    def credentials_of_registry(self, registry_id):
        """The revoked ones."""
        credentials = apps.get_model("credentials", "Credential")
        revoked = {"role": credentials.Role.ISSUER, "state": credentials.State.REVOKED}
        return credentials.objects.filter(revocation_registry_id=registry_id, **revoked)

    def remove(self):
        """Hides it and refuses new offers; what is published and open stays."""
        now = timezone.now()
        CredentialDefinition.objects.filter(pk=self.pk).update(
            deleted_at=now, updated_at=now
        )


def check_claims(claims, names):
    """400 unless all of them are about attributes of the schema, in its spelling."""
    unknown = [name for name in claims if name not in names]
    if unknown:
        sentence = f"The schema has no such attribute; it has {', '.join(names)}."
        errors = {f"claims.{name}": [sentence] for name in unknown}
        message = f"claims: {', '.join(unknown)}: {sentence}"
        raise Invalid("invalid_request", message, errors)


def compared(names):
    """Attribute names as proofs compare them, for finding what fits a request."""
    return [anoncreds.common_view(name)[:256] for name in names]
