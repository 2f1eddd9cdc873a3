"""What a definition is in another format than AnonCreds."""

from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple, TypedDict

from django.db import IntegrityError, models
from django.utils import timezone

from core.errors import Conflict, Invalid
from core.text.bounded_json import JSON
from core.text.days import parse_day
from core.text.relative_dates import is_relative_date, resolve_value
from core.work import transactions
from credentials.models.definition import (
    BOOLEAN,
    DATE,
    INTEGER,
    CredentialDefinition,
)
from credentials.models.formats import CredentialFormat
from credentials.models.token_status_list import Place
from tenants.models import Record, Tenant
from wallets.jose import sd_jwt
from wallets.jose.sd_jwt import NEVER_DISCLOSED, RESERVED
from wallets.jose.signing import JWK
from wallets.models import SigningKey, issuer_url

DEFAULT_VALIDITY = 365  # days
RESERVED_CLAIMS = RESERVED | NEVER_DISCLOSED | {"iat"}


class DerivedClaim(TypedDict):
    """A boolean claim that says whether the value of an attribute meets a condition."""

    name: str
    attributeName: str
    predicateType: str
    predicateValue: str


class FormatOptions(NamedTuple):
    """What its issuer chooses. type_id: "" for one below the issuer identifier."""

    type_id: str = ""
    validity_days: int = DEFAULT_VALIDITY
    derived_claims: tuple[DerivedClaim, ...] = ()


class DefinitionFormat(Record):
    """A format in which credentials of a definition are issued by OpenID4VCI.

    type_id: the `vct`. Set once, as the definition. display: only of rows that a former
    version of the code made (CredentialDefinition.design).
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    definition = models.ForeignKey(
        CredentialDefinition, on_delete=models.CASCADE, related_name="other_formats"
    )
    format = models.CharField(max_length=9, choices=CredentialFormat.choices)
    type_id = models.CharField(max_length=500)
    validity_days = models.PositiveSmallIntegerField(default=DEFAULT_VALIDITY)
    display = models.JSONField(default=dict)
    derived_claims = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "type_id", "format"], name="one_definition_per_type"
            ),
            models.UniqueConstraint(
                fields=["definition", "format"], name="one_format_per_definition"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type_id} ({self.format})"

    @classmethod
    def add(
        cls, definition: CredentialDefinition, options: FormatOptions
    ) -> "DefinitionFormat":
        """Issue credentials of this definition as SD-JWT VC too.

        400 as check_options(). 409 `format_exists`; `type_taken` if another definition
        of the organization has the type.
        """
        check_options(options, definition.schema.attribute_names, definition.claims)
        own_type = f"{issuer_url(definition.tenant_id)}/types/{definition.pk}"
        made = cls(
            tenant_id=definition.tenant_id,
            definition=definition,
            format=CredentialFormat.SD_JWT,
            type_id=options.type_id or own_type,
            validity_days=options.validity_days,
            derived_claims=list(options.derived_claims),
        )
        try:
            with transactions.atomic():
                made.save(force_insert=True)
        except IntegrityError:
            if cls.objects.filter(definition=definition, format=made.format).exists():
                raise Conflict(
                    "format_exists", "The definition has this format already."
                ) from None
            raise Conflict(
                "type_taken", f"Another definition has the type {made.type_id}."
            ) from None
        definition.sd_jwt = made
        return made

    def describe(self) -> dict[str, Any]:
        """What its credentials say, for a verifier who asks for them."""
        names = self.definition.schema.attribute_names
        return {
            "name": self.definition.schema.name,
            "attributes": list(names),
            "kinds": {
                name: kind for name in names if (kind := self.definition.type_of(name))
            },
            "derived": list(self.derived_claims),
        }

    def sign_credential(
        self, values: Mapping[str, str], holder_key: JWK, place: Place | None
    ) -> str:
        """Sign a credential that is bound to this key, and valid from now on.

        Its times are whole hours, so that they tell of no single issuance. It ends with
        the certificates of the key at the latest. place: of a revocable one.
        """
        now = timezone.now()
        key = SigningKey.of(self.definition.tenant, SigningKey.Purpose.CREDENTIALS)
        assert key.ends_at, "it has certificates"
        issued_at = int(now.timestamp()) // 3600 * 3600
        end = issued_at + self.validity_days * 86_400
        claims: dict[str, Any] = {
            "iss": issuer_url(self.tenant_id),
            "vct": self.type_id,
            "iat": issued_at,
            "exp": min(end, int(key.ends_at.timestamp())),
            "cnf": {"jwk": holder_key},
        }
        if place:
            listed = {"idx": place.index, "uri": place.uri}
            claims["status"] = {"status_list": listed}
        definition = self.definition
        disclosable = {
            name: claim_value(definition.type_of(name), values[name])
            for name in definition.schema.attribute_names
        }
        disclosable |= self.derive_claims(values, now.date())
        return sd_jwt.issue(claims, disclosable, key.unseal_secret(), key.x5c)

    def derive_claims(self, values: Mapping[str, str], today: date) -> dict[str, bool]:
        """The derived claims of a credential that is issued today."""
        return {
            claim["name"]: is_met(claim, values[claim["attributeName"]], today)
            for claim in self.derived_claims
        }


def check_options(
    options: FormatOptions, attribute_names: list[str], claims: Mapping[str, Any]
) -> None:
    """400 `invalid_request` unless these attributes can be issued with these options.

    claims: the types of attributes, as of a definition.
    """
    taken = [name for name in attribute_names if name in RESERVED_CLAIMS]
    if taken:
        raise _invalid("attributes", f"An SD-JWT VC reserves {', '.join(taken)}.")
    names = set(attribute_names) | RESERVED_CLAIMS
    for number, claim in enumerate(options.derived_claims):
        place = f"derivedClaims[{number}]"
        if claim["name"] in names:
            raise _invalid(
                f"{place}.name", f"The name {claim['name']} is taken or reserved."
            )
        names.add(claim["name"])
        kind = claims.get(claim["attributeName"], {}).get("type", "")
        if kind not in (INTEGER, DATE):
            raise _invalid(
                f"{place}.attributeName",
                f"{claim['attributeName']} is not declared as an integer or a date.",
            )
        if problem := find_problem(claim, kind):
            raise _invalid(f"{place}.predicateValue", problem)


def find_problem(claim: DerivedClaim, kind: str) -> str:
    """Why a condition cannot be proven by a claim that is signed once, or ""."""
    value = claim["predicateValue"]
    if not is_relative_date(value):
        parse = parse_day if kind == DATE else _parse_whole
        return "" if parse(value) is not None else f"{value} is no {kind}."
    if kind != DATE:
        return "Only a date is compared with a relative date."
    if claim["predicateType"] not in ("<", "<="):
        return (
            "It may become false later: compare with a relative date by < or <= only."
        )
    return ""


def _parse_whole(text: str) -> int | None:
    return int(text) if text.removeprefix("-").isdecimal() and len(text) < 12 else None


def is_met(claim: DerivedClaim, value: str, today: date) -> bool:
    wanted = claim["predicateValue"]
    limit = resolve_value(wanted if is_relative_date(wanted) else int(wanted), today)
    number = int(value)
    return {
        "<": number < limit,
        "<=": number <= limit,
        ">": number > limit,
        ">=": number >= limit,
    }[claim["predicateType"]]


def claim_value(kind: str, value: str) -> str | int | bool:
    """The value of a claim in JSON. kind: the declared type of its attribute, or ""."""
    if kind == INTEGER:
        return int(value)
    if kind == BOOLEAN:
        return value == "true"
    if kind == DATE and (day := parse_day(value)):
        return day.isoformat()
    return value


def text_of(value: JSON, kind: str | None) -> str | None:
    """The text of a claim, as AnonCreds would have it; None if it has none.

    A date of a definition here is eight digits. Objects, arrays and null have no text.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        return None
    return value.replace("-", "") if kind == "date" else value


def _invalid(place: str, sentence: str) -> Invalid:
    return Invalid("invalid_request", f"{place}: {sentence}", {place: [sentence]})
