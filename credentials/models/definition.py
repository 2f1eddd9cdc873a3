"""Credential definitions: what an organization issues."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self, TypedDict
from uuid import UUID

from django.db import models
from django.db.models import F, Max, Prefetch, Q, QuerySet, Sum
from django.utils import timezone

from connections.didcomm.message import PreparedResults
from core.database.compiled_sql import CompiledQuery
from core.errors import Conflict, Invalid
from core.text.days import parse_day
from credentials.ledgers import ledger_with
from credentials.models.card_display import Display, check_display
from credentials.models.formats import CredentialFormat
from credentials.models.last_document import LastDocument
from credentials.models.name_search import NameKey
from credentials.models.schema import Schema
from tenants import vault
from tenants.models import NotedRow, Notes, Record, Tenant
from wallets import anoncreds
from wallets.anoncreds.objects import (
    CredentialBody,
    DefinitionBody,
    OfferBody,
    Opaque,
    SchemaBody,
)

# The used share of the newest registry at which the next one is built.
BUILD_NEXT_AT = 0.7
# For prefetch_related() of lists that show the formats.
WITH_FORMATS = Prefetch("other_formats", to_attr="loaded_formats")
NO_KEY = ""  # what a definition without AnonCreds has sealed in place of a key
INTEGER, DATE, BOOLEAN = "integer", "date", "boolean"  # types of claims


class Claim(TypedDict):
    type: str


Claims = dict[str, Claim]  # by attribute


class ClaimType(NamedTuple):
    """How values of a type are read, and the error for those that are not."""

    parse: Callable[[str], Any]
    code: str
    noun: str
    sentence: str


CLAIM_TYPES = {
    INTEGER: ClaimType(
        anoncreds.parse_integer,
        "not_an_integer",
        "number",
        "Give a whole number from -2147483648 to 2147483647, such as 42.",
    ),
    DATE: ClaimType(
        parse_day,
        "not_a_date",
        "date",
        "Give a day as eight digits: year, month and day, as in 20260131.",
    ),
    BOOLEAN: ClaimType(
        {"true": True, "false": False}.get,
        "not_a_boolean",
        "boolean",
        "Give true or false.",
    ),
}


class CredentialDefinition(Record, NotedRow):
    """A schema with the keys that sign its credentials.

    claims: the types of attributes, as in `{"age": {"type": "integer"}}`; a date is an
    integer too, as in 20260131. Names are as the schema spells them. Set once, when
    the definition is made: verifiers rely on it for all credentials of the definition.
    display: how its cards look, as the API writes it; it may change. None for one that
    a former version of the code stored with its format (`design`).
    recipient_attribute: whose value names the person, for lists; "" for none.
    """

    api_id = "definition_id"
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    schema = models.ForeignKey(Schema, on_delete=models.RESTRICT)
    definition_id = models.CharField(max_length=300)
    tag = models.CharField(max_length=64)
    supports_revocation = models.BooleanField(default=False)
    claims = models.JSONField(default=dict, db_default={})
    display = models.JSONField(null=True)
    recipient_attribute = models.CharField(
        max_length=256, blank=True, default="", db_default=""
    )
    # Whether it is published, for AnonCreds. Else it is only issued in other formats
    # (DefinitionFormat), is on no ledger, and has NO_KEY in place of both keys.
    is_anoncreds = models.BooleanField(default=True, db_default=True)
    # Of a twin, which is published below the organization's did:webvh: the id of the
    # definition on its network that it is the same as (credentials/twins.py).
    twin_of = models.CharField(max_length=300, blank=True, default="", db_default="")
    private_key = models.BinaryField()
    key_proof = models.BinaryField()
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "definition_id"], name="one_definition_per_id"
            ),
            models.UniqueConstraint(
                fields=["tenant", "twin_of"],
                condition=Q(deleted_at=None) & ~Q(twin_of=""),
                name="one_twin_per_definition",
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "reference", "id"], name="definition_by_reference"
            )
        ]

    def __str__(self) -> str:
        return self.definition_id

    @classmethod
    def active_of(cls, tenant: Tenant | UUID) -> QuerySet[Self]:
        """Return the definitions of a tenant that are not deleted, in no order.

        tenant: its row or its id. Joined with their schemas.
        """
        rows = cls.objects.filter(tenant=tenant, deleted_at=None)
        return rows.select_related("schema")

    @classmethod
    def nearly_full(cls) -> QuerySet[Self]:
        """Definitions that may need a registry soon; has_room() decides."""
        rows = cls.objects.filter(
            deleted_at=None,
            supports_revocation=True,
            is_anoncreds=True,
            tenant__frozen_at=None,
        )
        free = Sum(F("registries__size") - F("registries__next_index"))
        counted: QuerySet[Any] = rows.alias(free=free, newest=Max("registries__size"))
        return counted.filter(
            Q(free=None) | Q(free__lte=F("newest") * (1 - BUILD_NEXT_AT))
        )

    @classmethod
    def integer_attributes(
        cls, tenant_id: UUID, definition_ids: Iterable[str]
    ) -> dict[str, set[str]]:
        """The normalised names of attributes with only integers, by definition id.

        A date is an integer too.

        Covers the definitions that any tenant made in this agency on this tenant's
        network.
        """
        on_network = cls.objects.filter(tenant__network__tenant=tenant_id)
        rows = on_network.filter(definition_id__in=definition_ids).exclude(claims={})
        return {
            definition_id: {
                anoncreds.normalise_name(name)
                for name, claim in claims.items()
                if claim["type"] != BOOLEAN
            }
            for definition_id, claims in rows.values_list("definition_id", "claims")
        }

    @classmethod
    def twins_of(
        cls, tenant_id: UUID, definition_ids: Iterable[str]
    ) -> dict[str, list[str]]:
        """The ids of twins by definition id, of those that have any; both ways.

        Covers the definitions that any tenant made in this agency on this tenant's
        network, also deleted ones, and those of deleted organizations: what was issued
        of them can be proven. Newer ones stand first.
        """
        wanted = set(definition_ids)
        rows = cls.objects.filter(tenant__network__tenant=tenant_id)
        is_meant = Q(definition_id__in=wanted) | Q(twin_of__in=wanted)
        pairs = rows.filter(is_meant).exclude(twin_of="").order_by("-pk")
        networks = Tenant.objects.filter(pk=tenant_id)
        network_id = networks.values_list("network_id", flat=True).first()
        left = LastDocument.find_twins(network_id, wanted)
        found: dict[str, list[str]] = {}
        for own, other in [*pairs.values_list("definition_id", "twin_of"), *left]:
            for name, twin in ((own, other), (other, own)):
                if name in wanted:
                    found.setdefault(name, []).append(twin)
        return found

    @classmethod
    def keep_twins_of(cls, tenant: Tenant) -> None:
        """Note the twins of an organization, which is deleted in this transaction."""
        rows = cls.objects.filter(tenant=tenant).exclude(twin_of="")
        for pair in rows.values_list("definition_id", "twin_of"):
            LastDocument.keep_twin(tenant.network_id, *pair)

    @classmethod
    def record_published(
        cls,
        tenant: Tenant,
        schema_body: SchemaBody,
        made: anoncreds.Definition,
        definition_id: str,
        claims: Claims | None = None,
        notes: Notes | None = None,
        twin_of: str = "",
        recipient_attribute: str = "",
    ) -> Self:
        """Create the row of a published definition, and of its schema if missing."""
        schema_id = made.public["schemaId"]
        definition = cls(
            tenant=tenant,
            schema=Schema.record_published(tenant, schema_id, schema_body),
            definition_id=definition_id,
            tag=made.public["tag"],
            supports_revocation="revocation" in made.public["value"],
            claims=claims or {},
            twin_of=twin_of,
            recipient_attribute=recipient_attribute,
        )
        vault.seal(definition, "private_key", made.private)
        vault.seal(definition, "key_proof", made.key_proof)
        definition.set_notes(notes)
        definition.save(force_insert=True)
        return definition

    @classmethod
    def record_local(
        cls,
        tenant: Tenant,
        schema_id: str,
        schema_body: SchemaBody,
        supports_revocation: bool,
        claims: Claims | None = None,
        notes: Notes | None = None,
        recipient_attribute: str = "",
    ) -> Self:
        """Create the row of a definition without AnonCreds, and of its schema.

        Nothing is published. It is known by the id of its row.
        """
        definition = cls(
            tenant=tenant,
            schema=Schema.record_published(tenant, schema_id, schema_body),
            supports_revocation=supports_revocation,
            claims=claims or {},
            recipient_attribute=recipient_attribute,
            is_anoncreds=False,
        )
        definition.definition_id = str(definition.pk)
        for column in ("private_key", "key_proof"):  # of AnonCreds
            vault.seal(definition, column, NO_KEY)
        definition.set_notes(notes)
        definition.save(force_insert=True)
        return definition

    @cached_property
    def sd_jwt(self) -> Any:
        """Its DefinitionFormat as SD-JWT VC, or None. One query, unless WITH_FORMATS."""
        loaded = vars(self).get("loaded_formats")
        found = next(iter(_formats.all(self.pk) if loaded is None else loaded), None)
        if found:
            found.definition = self
        return found

    @property
    def design(self) -> Display:
        """How its cards look, as the API writes it. May take the query of `sd_jwt`."""
        if self.display is not None:
            return self.display.copy()
        return self.sd_jwt.display.copy() if self.sd_jwt else {}

    def change_display(self, display: Display) -> None:
        """Change how its cards look. Nothing that is published changes.

        400 `invalid_request` as check_display().
        """
        check_display(display, self.schema.attribute_names, self.tenant_id)
        self.display = dict(display)
        self.updated_at = timezone.now()
        self.save(update_fields=["display", "updated_at"])

    def change_recipient_attribute(self, name: str) -> None:
        """Let another attribute name the person, "" for none: of what is offered or
        gets its values from now on. 400 `invalid_request` for one that is not there.

        Checks are named by it at once, so they are to be found anew.
        """
        check_recipient_attribute(name, self.schema.attribute_names)
        self.recipient_attribute = name
        self.updated_at = timezone.now()
        self.save(update_fields=["recipient_attribute", "updated_at"])
        keys = NameKey.objects.filter(tenant_id=self.tenant_id)
        keys.update(checks_filled_to=None, checks_filled_at=None)

    @property
    def formats(self) -> list[str]:
        """The formats in which it is issued. The query of `sd_jwt`."""
        own = [str(CredentialFormat.ANONCREDS)] if self.is_anoncreds else []
        return [*own, str(self.sd_jwt.format)] if self.sd_jwt else own

    @cached_property
    def public_part(self) -> DefinitionBody:
        """The definition as it is published. The caller must not modify it.

        From the cache of this process, the database or, at worst, a remote ledger,
        with the errors of Ledger. AssertionError for one without AnonCreds.
        """
        ledger = ledger_with(self.tenant.network, self.definition_id)
        public = ledger.definition(self.definition_id)
        assert public is not None, "one with keys of AnonCreds is published"
        return public

    def check_values(self, values: Mapping[str, str]) -> None:
        """Raise 400 for missing or unknown names, and for values of another type.

        Codes: `wrong_attributes`, `not_an_integer`, `not_a_date`, `not_a_boolean`.
        `errors` has all names.
        """
        names = self.schema.attribute_names
        missing = [name for name in names if name not in values]
        unknown = [name for name in values if name not in names]
        problems = []
        if missing:
            problems.append(f"missing: {', '.join(missing)}")
        if unknown:
            problems.append(f"not in the schema: {', '.join(unknown)}")
        if problems:
            problems.append(f"the schema has {', '.join(names)}")
            message = (
                "credentialValues must name each attribute once: "
                f"{'; '.join(problems)}."
            )
            raise Invalid("wrong_attributes", message, {"credentialValues": problems})
        for kind, checked in CLAIM_TYPES.items():
            wrong = [
                name
                for name in self.claims
                if self.type_of(name) == kind and checked.parse(values[name]) is None
            ]
            if wrong:
                raise Invalid(
                    checked.code,
                    f"The definition declares a {checked.noun}: {', '.join(wrong)}. "
                    f"{checked.sentence}",
                    {f"credentialValues.{name}": [checked.sentence] for name in wrong},
                )

    def type_of(self, name: str) -> str:
        """Return the declared type of an attribute: one of CLAIM_TYPES, or ""."""
        return self.claims.get(name, {}).get("type", "")

    def check_offer(
        self, values: Mapping[str, str] | None, automatic_issuance: bool
    ) -> None:
        """400 unless these values can be offered. Values may follow with issue()."""
        if values is not None:
            self.check_values(values)
        elif automatic_issuance:
            message = "automaticIssuance needs credentialValues."
            raise Invalid("values_missing", message, {"credentialValues": [message]})

    def create_offer(self) -> OfferBody:
        """The AnonCreds offer of a credential of this definition.

        409 `format_missing` for a definition without AnonCreds.
        """
        if not self.is_anoncreds:
            raise format_missing(CredentialFormat.ANONCREDS)
        return anoncreds.create_offer(
            self.schema.schema_id, self.definition_id, vault.unseal(self, "key_proof")
        )

    def sign_credential(
        self,
        offer: OfferBody,
        request: Opaque,
        values: Mapping[str, str],
        revocation: anoncreds.RevocationSlot | None,
        prepared: PreparedResults,
    ) -> CredentialBody:
        """The AnonCreds credential. revocation: of a definition that supports it."""
        return prepared.call(
            anoncreds.create_credential,
            self.public_part,
            vault.unseal(self, "private_key"),
            offer,
            request,
            values,
            revocation,
        )

    @classmethod
    def noted_rows(cls) -> models.QuerySet[Self]:
        return cls.objects.filter(deleted_at=None)

    def remove(self) -> None:
        """Hide the definition, without its notes, and refuse new offers.

        Published objects and open exchanges stay.
        """
        now = timezone.now()
        rows = CredentialDefinition.objects.filter(pk=self.pk)
        rows.update(deleted_at=now, updated_at=now, reference="", metadata=None)


# Typed by what it returns: DefinitionFormat, whose module imports this one.
_formats: CompiledQuery[Any] = CompiledQuery(
    lambda pk: CredentialDefinition(pk=pk).other_formats.all(), UUID
)


def format_missing(needed: CredentialFormat) -> Conflict:
    return Conflict(
        "format_missing", f"The definition is not issued in the format {needed}."
    )


def normalised_names(names: Iterable[str]) -> list[str]:
    """Return attribute names in their order, normalised as proofs compare them.

    Each is cut to 256 characters.
    """
    return [anoncreds.normalise_name(name)[:256] for name in names]


def check_recipient_attribute(name: str, attribute_names: list[str]) -> None:
    """400 unless it names an attribute, as the schema spells it, or none."""
    if name and name not in attribute_names:
        message = (
            f"The schema has no such attribute; it has {', '.join(attribute_names)}."
        )
        errors = {"recipientAttribute": [message]}
        raise Invalid("invalid_request", f"recipientAttribute: {message}", errors)
