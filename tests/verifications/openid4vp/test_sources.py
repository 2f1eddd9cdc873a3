"""Which definitions a restriction means."""

from uuid import uuid4

import pytest

from core.errors import Conflict
from credentials.models import (
    CredentialDefinition,
    CredentialFormat,
    DefinitionFormat,
    LastDocument,
)
from tests.support.errors import refusal
from tests.support.policies import attribute, policy
from verifications.openid4vp import sources
from verifications.openid4vp.requests import compile_policy
from verifications.proofs import proof_policy
from verifications.proofs.policy import Restriction

pytestmark = pytest.mark.django_db


def defines(person, vct="", name="Card"):
    """A definition with one attribute, issued as SD-JWT VC only."""
    more = {"vct": vct} if vct else {}
    version = f"1.{CredentialDefinition.objects.count()}"
    return person.defines(
        "role", formats=["dc+sd-jwt"], name=name, version=version, **more
    )


def issuers_of(person, restriction):
    asked = proof_policy.normalise(
        policy(attribute("role", restrictions=[restriction]))
    )
    return [
        one.issuer.rpartition("/")[2] for one in compile_policy(person.tenant, asked)
    ]


def test_a_type_means_the_definition_of_ones_own(acme, faber):
    defines(faber, "urn:faber:card")
    assert refusal(Conflict, issuers_of, acme, {"vct": "urn:faber:card"})
    defines(acme, "urn:faber:card")
    assert issuers_of(acme, {"vct": "urn:faber:card"}) == [str(acme.tenant.pk)]


def test_a_type_at_the_address_of_an_organization_means_its_definition(acme, faber):
    definition_id = defines(faber)["definitionId"]
    row = DefinitionFormat.objects.get(definition__definition_id=definition_id)
    defines(acme, "urn:acme:card")
    DefinitionFormat.objects.filter(type_id="urn:acme:card").update(type_id=row.type_id)
    # Acme's own of that type, and Faber's, at whose address it lies.
    found = issuers_of(acme, {"vct": row.type_id})
    assert found == [str(faber.tenant.pk), str(acme.tenant.pk)]
    assert issuers_of(faber, {"vct": row.type_id}) == [str(faber.tenant.pk)]


def test_none_of_many_definitions_is_left_out(acme, faber):
    for _ in range(21):
        defines(faber)
    assert len(issuers_of(acme, {"schemaName": "Card"})) == 21
    for _ in range(30):
        defines(faber)
    refused = refusal(Conflict, issuers_of, acme, {"schemaName": "Card"})
    assert refused.code == "not_provable" and "more than 50" in refused.message


def test_types_of_other_deleted_organizations_hide_none(acme):
    """Those below other DIDs are left out before some of many are."""
    issued = {"name": "Card", "attributes": ["role"], "kinds": {}, "derived": []}

    def leave(number, did):
        facts = {
            "network": str(acme.tenant.network_id), "format": CredentialFormat.SD_JWT,
            "issuer": str(uuid4()), "vct": f"urn:{did}", "schemaName": "Card",
            "schemaId": f"did:web:{did}/1", "credentialDefinitionId": f"{number}",
            "issued": issued,
        }  # fmt: skip
        path = f"{number:03}"
        LastDocument.objects.create(path=path, media_type="x", body="", facts=facts)

    for number in range(52):
        leave(number, "other.example")
    leave(99, "faber.example")
    wanted = {"schemaName": "Card", "schemaIssuerDid": "did:web:faber.example"}
    [found] = sources.find_sources(acme.tenant, Restriction(wanted))
    assert found.vct == "urn:faber.example"
