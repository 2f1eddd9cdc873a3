"""What one button sets up: a definition, a policy, and a holder of each behaviour."""

from functools import partial

from connections.hosted_peers import connections_with_hosted
from core.work import network_reads, transactions
from credentials import publishing
from credentials.ledgers import ledger_of
from credentials.models import Credential, CredentialDefinition
from credentials.models.definition import Claims
from credentials.models.schema import build_schema_body
from sandbox.holders import create_holder, require_test
from sandbox.models import SimulatedHolder
from tenants import audit
from tenants.models import Tenant
from verifications.models import VerificationPolicy
from verifications.proofs.policy import (
    NO_REQUIREMENT,
    Policy,
    PolicyItem,
    Restriction,
    RevocationRequirement,
)
from wallets.models import Wallet

Behaviour = SimulatedHolder.Behaviour
NAME, VERSION = "Sample licence", "1.0"
MAX_POLICIES = 20  # of the name of the sample, that are compared with it
ATTRIBUTES = ["name", "city", "age"]
POLICY = "Sample: a licence, of an adult"
HOLDERS = {
    Behaviour.ACCEPT: "Ada, who proves",
    Behaviour.DECLINE: "Ben, who declines",
    Behaviour.SILENT: "Cleo, who never answers",
    Behaviour.WRONG_VALUE: "Dan, who changes values",
    Behaviour.REVOKED: "Eve, whose credential is revoked",
    Behaviour.PREDICATE_FAILS: "Finn, who is too young",
}
WITHOUT_CREDENTIAL = (Behaviour.DECLINE, Behaviour.SILENT)


def find_definition(tenant: Tenant) -> CredentialDefinition | None:
    rows = CredentialDefinition.active_of(tenant)
    rows = rows.filter(schema__name=NAME, schema__version=VERSION)
    return rows.order_by("pk").first()


def find_policy(definition: CredentialDefinition) -> VerificationPolicy | None:
    """The sample policy as it is made for this definition, if it is there."""
    wanted = build_policy(definition)
    rows = VerificationPolicy.objects.filter(
        tenant=definition.tenant_id, name=POLICY, version=VERSION
    )
    newest = rows.order_by("-pk")[:MAX_POLICIES]
    return next((one for one in newest if one.unsealed_policy() == wanted), None)


def find_holders(tenant: Tenant) -> dict[str, SimulatedHolder]:
    """The newest holder of each behaviour."""
    rows = SimulatedHolder.live_rows(tenant).order_by("pk")
    return {row.behaviour: row for row in rows}


def prepare_samples(tenant: Tenant, by: audit.Who) -> CredentialDefinition:
    """Make the sample definition and the holders that are missing.

    Call it outside of any transaction: a holder is connected once it is committed, and
    a definition is prepared before its transaction. What is there already stays. by:
    the request or the actor, for the audit log.
    """
    require_test(tenant)
    create_missing_holders(tenant, by)
    if found := find_definition(tenant):
        return found
    ledger = ledger_of(tenant.network)
    schema = build_schema_body(tenant, NAME, VERSION, ATTRIBUTES)
    claims: Claims = {"age": {"type": "integer"}}
    wanted = publishing.DefinitionParameters(
        tenant=tenant,
        schema_body=schema,
        schema_id=ledger.schema_id_of(schema),
        # Where that takes no second write to somebody else's ledger.
        supports_revocation=not ledger.is_remote,
        claims=claims,
    )
    with publishing.preparing_definition(wanted) as prepare:
        return publishing.create_definition(wanted, prepare())


@transactions.atomic()
def create_missing_holders(tenant: Tenant, by: audit.Who) -> None:
    """Create a holder for each behaviour without one, in one transaction.

    The lock on the organization keeps two calls from creating them twice.
    """
    tenant.lock_row()
    holders = find_holders(tenant)
    for behaviour, name in HOLDERS.items():
        if behaviour not in holders:
            create = partial(create_holder, tenant, name, behaviour)
            audit.recorded(create, "simulated_holder.created", by=by)()


@network_reads.atomic_with_reads
def offer_samples(
    tenant: Tenant, definition: CredentialDefinition
) -> VerificationPolicy:
    """Offer a credential to each holder that has none. Return the sample policy.

    In one transaction, which is run again after each network read; the lock on the
    organization keeps two calls from offering twice. A credential that is rejected or
    revoked does not count. definition: what prepare_samples() returned.
    """
    tenant.lock_row()
    for holder in find_holders(tenant).values():
        if holder.behaviour in WITHOUT_CREDENTIAL:
            continue
        wallet_id = holder.wallet.wallet_id
        found = connections_with_hosted(
            Wallet.of_organization(definition.tenant), [wallet_id]
        )
        given = Credential.objects.filter(
            wallet=holder.wallet_id,
            definition_id=definition.definition_id,
            state__in=[*Credential.OPEN, Credential.State.ISSUED],
        )
        if wallet_id in found and not given.exists():
            values = {"name": holder.wallet.owner_name, "city": "Ghent", "age": "30"}
            Credential.offer(
                found[wallet_id], definition, values, automatic_issuance=True
            )
    return find_policy(definition) or VerificationPolicy.create(
        tenant, build_policy(definition)
    )


def build_policy(definition: CredentialDefinition) -> Policy:
    """A name that is shown, and an age that is compared, of a valid credential."""
    only = Restriction({"credentialDefinitionId": definition.definition_id})
    return Policy(
        POLICY,
        VERSION,
        attributes=(PolicyItem("name", ("name",), restrictions=(only,)),),
        predicates=(PolicyItem("adult", ("age",), ">=", 18, (only,)),),
        requirement=RevocationRequirement(valid_now=True)
        if definition.supports_revocation
        else NO_REQUIREMENT,
    )
