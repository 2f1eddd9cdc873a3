"""Indy networks: how they are added, their agreements, and how an organization stands there."""

from typing import NamedTuple

from django.core.exceptions import ValidationError
from django.utils import timezone

from agency.core import http
from agency.core.errors import Invalid, Unavailable
from credentials.ledgers import ledger_of
from credentials.ledgers.base import Agreement
from credentials.ledgers.indy.pool import MAX_GENESIS_BYTES, check_genesis
from credentials.models import Publication
from tenants import vault
from tenants.models import AgreementAcceptance, Network, Tenant
from wallets import keys
from wallets.models import Wallet

MECHANISMS = (
    "service_agreement",
    "on_file",
)  # how organizations accept, if the ledger knows it


class IssuerStatus(NamedTuple):
    """How an organization stands on its network. problem: why it cannot write yet, or ""."""

    is_registered: bool
    may_write: bool
    agreement: Agreement | None
    acceptance: AgreementAcceptance | None
    problem: str


def add_network(
    network_id: str,
    name: str = "",
    genesis: str | None = None,
    endorser_seed: bytes | None = None,
) -> Network:
    """Makes an Indy network, or changes what is given of one.

    Raises Invalid `bad_genesis`, `bad_network`. endorser_seed: 32 bytes, of a DID that has the role
    of an endorser on the ledger.
    """
    network = Network.objects.filter(pk=network_id).first()
    network = network or Network(pk=network_id, kind=Network.Kind.INDY, name=network_id)
    if network.kind != Network.Kind.INDY:
        raise Invalid("bad_network", f"{network_id} is not an Indy network.")
    network.name = name or network.name
    network.genesis = check_genesis(network.genesis if genesis is None else genesis)
    if endorser_seed:
        network.endorser_did = keys.did_of(keys.verkey_of(endorser_seed))
        vault.seal(network, "endorser_seed", keys.encode(endorser_seed))
    try:
        network.full_clean()
    except ValidationError as error:
        raise Invalid("bad_network", " ".join(error.messages)) from None
    network.save()
    return network


def genesis_at(address: str) -> str:
    """The text there, whatever it is. Raises Invalid `bad_genesis`, and what http.get() raises."""
    answer = http.get(address, accept="text/plain, */*", max_bytes=MAX_GENESIS_BYTES)
    if answer.status != 200 or not answer.is_complete:
        raise Invalid(
            "bad_genesis", f"{address} answered {answer.status}, or too much."
        )
    return answer.body.decode(errors="replace")


def accept(
    network: Network, tenant: Tenant | None, agreement: Agreement | None
) -> None:
    """Notes that the organization, or the agency itself, accepts the agreement in force."""
    if agreement is None:
        return
    known = [name for name in MECHANISMS if name in agreement.mechanisms]
    mechanism = (known + sorted(agreement.mechanisms))[0]
    noted = {
        "version": agreement.version,
        "digest": agreement.digest,
        "mechanism": mechanism,
    }
    noted |= {"accepted_at": timezone.now(), "updated_at": timezone.now()}
    AgreementAcceptance.objects.update_or_create(
        network=network, tenant=tenant, defaults=noted
    )


def issuer_status(tenant: Tenant) -> IssuerStatus:
    """As the ledger says or, while it gives no answer, as far as we know."""
    registry = ledger_of(tenant.network)
    did = Wallet.objects.get(tenant=tenant, is_organization=True).did
    waiting = Publication.objects.filter(
        tenant=tenant, kind=Publication.Kind.DID, status=Publication.Status.PENDING
    )
    noted = waiting.values_list("last_error", flat=True).first() or ""
    problem = noted.partition(": ")[2] or noted
    try:
        standing, agreement = registry.did_role(did), registry.agreement()
    except Unavailable as error:
        return IssuerStatus(not waiting.exists(), False, None, None, error.message)
    acceptance = None
    if agreement:
        rows = AgreementAcceptance.objects.filter(network=tenant.network, tenant=tenant)
        acceptance = rows.filter(digest=agreement.digest).first()
    problem = "" if standing.is_registered else problem or "It is not registered yet."
    return IssuerStatus(
        standing.is_registered, standing.may_write, agreement, acceptance, problem
    )
