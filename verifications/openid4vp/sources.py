"""Which credentials a restriction allows, among those that are known here."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from core.database.uuids import parse_uuid
from core.text.relative_dates import is_relative_date, resolve_value
from core.work import network_reads
from credentials.models import CredentialFormat, DefinitionFormat, LastDocument
from tenants.models import Tenant
from verifications.openid4vp.queries import MAX_QUERIES, DerivedClaim, Source
from verifications.proofs.policy import TRUST_ANCHOR, Restriction
from wallets.anoncreds import normalise_name
from wallets.models import TrustAnchor, issuer_url

MAX_DELETED = 2000  # types of deleted organizations that are looked at
COLUMNS = {
    "credentialDefinitionId": "definition__definition_id",
    "schemaId": "definition__schema__schema_id",
    "schemaName": "definition__schema__name",
    "schemaVersion": "definition__schema__version",
    "vct": "type_id",
}


def find_sources(tenant: Tenant, restriction: Restriction) -> list[Source]:
    """Return the kinds of credentials that an organization means by a restriction.

    That are definitions of its network which are issued as SD-JWT VC, or what another
    issuer has signed, below a trust anchor of the organization. Of more than
    compile_queries() takes, some are left out.
    """
    if anchor_id := restriction.facts.get(TRUST_ANCHOR):
        vct = restriction.facts["vct"]
        anchor_ids = filter(None, [parse_uuid(anchor_id)])
        rows = TrustAnchor.objects.filter(tenant=tenant, pk__in=anchor_ids)
        return [Source(vct, vct, anchors=(row.certificate,)) for row in rows]
    found = [
        _source_of(row.type_id, row.tenant_id, row.describe())
        for row in _definitions_of(tenant, restriction)
    ]
    return [*found, *_sources_of_deleted(tenant, restriction)]


def _sources_of_deleted(tenant: Tenant, restriction: Restriction) -> list[Source]:
    """Those of organizations that are deleted: their credentials are shown still."""
    facts = restriction.facts
    wanted = {name: text for name, text in facts.items() if name in COLUMNS}
    if not facts:
        return []
    if _is_type_alone(facts):
        wanted["issuer"] = str(_owner_of(facts["vct"]))
    wanted |= {"network": str(tenant.network_id), "format": CredentialFormat.SD_JWT}
    rows = LastDocument.objects.filter(facts__contains=wanted).order_by("path")
    kept = rows.values_list("facts", flat=True)[:MAX_DELETED]
    meant = (one for one in kept if one and _is_of(one, facts))
    return [
        _source_of(one["vct"], UUID(one["issuer"]), one["issued"])
        for one in islice(meant, MAX_QUERIES + 1)
    ]


def _is_of(one: Mapping[str, Any], facts: Mapping[str, str]) -> bool:
    """Whether a type of a deleted organization is below the DIDs of a restriction."""
    own, schema = one["credentialDefinitionId"], one["schemaId"]
    # One that was not published has the schema of its issuer.
    places = {"schemaIssuerDid": schema, "issuerDid": own if ":" in own else schema}
    return all(
        place.startswith((f"{facts[name]}:", f"{facts[name]}/"))
        for name, place in places.items()
        if name in facts
    )


def _is_type_alone(facts: Mapping[str, str]) -> bool:
    return "vct" in facts and not facts.keys() & {"credentialDefinitionId", "issuerDid"}


def _definitions_of(
    tenant: Tenant, restriction: Restriction
) -> Sequence[DefinitionFormat]:
    facts = restriction.facts
    if not facts:
        return []
    rows: QuerySet[DefinitionFormat] = DefinitionFormat.objects.filter(
        format=CredentialFormat.SD_JWT,
        tenant__network=tenant.network,
        tenant__deleted_at=None,
        **{COLUMNS[name]: text for name, text in facts.items() if name in COLUMNS},
    )
    schema_id, definition_id = (
        "definition__schema__schema_id",
        COLUMNS["credentialDefinitionId"],
    )
    if did := facts.get("schemaIssuerDid"):
        rows = rows.filter(_begins_with(schema_id, did))
    if did := facts.get("issuerDid"):
        published = _begins_with(definition_id, did)
        # One that is not published has the schema of its issuer.
        local = _begins_with(schema_id, did) & Q(definition__is_anoncreds=False)
        rows = rows.filter(published | local)
    if _is_type_alone(facts):
        # Any organization may give its definitions any type. So a type alone means the
        # verifier's own definition, or that of the organization at whose address it is.
        rows = rows.filter(tenant__in=[tenant.pk, _owner_of(facts["vct"])])
    related = rows.select_related("definition__schema").order_by("pk")
    return list(related[: MAX_QUERIES + 1])


def _begins_with(column: str, did: str) -> Q:
    """Whether an id is below a DID: ids continue with `:` on Indy, else with `/`."""
    return Q(**{f"{column}__startswith": f"{did}:"}) | Q(
        **{f"{column}__startswith": f"{did}/"}
    )


def _owner_of(type_id: str) -> UUID | None:
    """The organization below whose address a type lies."""
    issuer, _, _ = type_id.partition("/types/")
    tenant_id = parse_uuid(issuer.rpartition("/")[2])
    return tenant_id if tenant_id and issuer_url(tenant_id) == issuer else None


def _source_of(vct: str, tenant_id: UUID, issued: Mapping[str, Any]) -> Source:
    """issued: as of DefinitionFormat.describe()."""
    today = datetime.fromtimestamp(network_reads.now(), UTC).date()
    return Source(
        name=issued["name"],
        vct=vct,
        issuer=issuer_url(tenant_id),
        claims={normalise_name(name): name for name in issued["attributes"]},
        kinds=issued["kinds"],
        derived=tuple(
            DerivedClaim(
                one["name"],
                normalise_name(one["attributeName"]),
                one["predicateType"],
                resolve_value(
                    value
                    if is_relative_date(value := one["predicateValue"])
                    else int(value),
                    today,
                ),
            )
            for one in issued["derived"]
        ),
    )
