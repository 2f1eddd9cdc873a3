"""Indy networks: adding networks, accepting agreements, and the status of issuers."""

from typing import NamedTuple

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import timezone

from core.errors import Invalid, Unavailable
from core.net import http
from core.work.waiting import seconds_left
from credentials.ledgers import ledger_of
from credentials.ledgers.base import Agreement
from credentials.ledgers.indy.pool import MAX_GENESIS_BYTES, check_genesis
from credentials.models import Publication
from tenants import vault
from tenants.models import AgreementAcceptance, Network, Tenant
from wallets import keys
from wallets.models import Wallet

# How an agreement is accepted: the first of these that the ledger offers.
PREFERRED_MECHANISMS = ("service_agreement", "on_file")


class IssuerStatus(NamedTuple):
    """The status of an organization on its network.

    problem: why it is not registered, or that the ledger does not respond; or "".
    """

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
    """Create an Indy network, or change the given values of an existing one.

    No ledger is called. An empty value keeps what the network has. endorser_seed: 32
    bytes, of a DID that has the role of an endorser on the ledger; it is stored sealed.
    Raises Invalid `bad_genesis`, `bad_network`.
    """
    network = Network.objects.filter(pk=network_id).first()
    network = network or Network(pk=network_id, kind=Network.Kind.INDY, name=network_id)
    if network.kind != Network.Kind.INDY:
        raise Invalid("bad_network", f"{network_id} is not an Indy network.")
    network.name = name or network.name
    network.genesis = check_genesis(network.genesis if genesis is None else genesis)
    if endorser_seed:
        network.endorser_did = keys.did_of(keys.verkey_of(endorser_seed))
        vault.seal(network, "endorser_seed", keys.encode_key(endorser_seed))
    try:
        network.full_clean()
    except ValidationError as error:
        raise Invalid("bad_network", " ".join(error.messages)) from None
    network.save()
    return network


def fetch_genesis(url: str) -> str:
    """Return the text at this URL, without checking it.

    Waits like a read of a ledger (core/work/waiting.py). Raises Invalid
    `bad_genesis`, also if the whole text has not come by then, and the exceptions of
    http.get().
    """
    response = http.get(
        url,
        accept="text/plain, */*",
        timeout=seconds_left(settings.LEDGER_TIMEOUT),
        max_bytes=MAX_GENESIS_BYTES,
    )
    if response.status != 200 or not response.is_complete:
        message = (
            f"{url} responded {response.status}, or the response is too large or "
            "takes too long."
        )
        raise Invalid("bad_genesis", message)
    return response.body.decode(errors="replace")


def accept_agreement(
    network: Network, tenant: Tenant | None, agreement: Agreement | None
) -> None:
    """Record that the organization accepts the agreement.

    tenant: None for the agency. Does nothing if there is no agreement.
    """
    if agreement is None:
        return
    offered = agreement.mechanisms
    preferred = [name for name in PREFERRED_MECHANISMS if name in offered]
    mechanism = (preferred + sorted(offered))[0]
    now = timezone.now()
    AgreementAcceptance.objects.update_or_create(
        network=network,
        tenant=tenant,
        defaults={
            "version": agreement.version,
            "digest": agreement.digest,
            "mechanism": mechanism,
            "accepted_at": now,
            "updated_at": now,
        },
    )


def issuer_status(tenant: Tenant) -> IssuerStatus:
    """Return the status from the ledger; if it does not respond, from our records.

    Call it outside of transactions.
    """
    ledger = ledger_of(tenant.network)
    did = Wallet.of_organization(tenant).issuer_did
    pending = Publication.objects.filter(
        tenant=tenant, kind=Publication.Kind.DID, status=Publication.Status.PENDING
    )
    try:
        role = ledger.did_role(did)
        agreement = ledger.agreement()
    except Unavailable as error:
        return IssuerStatus(
            is_registered=not pending.exists(),
            may_write=False,
            agreement=None,
            acceptance=None,
            problem=error.message,
        )
    acceptance = None
    if agreement:
        acceptance = AgreementAcceptance.objects.filter(
            network=tenant.network, tenant=tenant, digest=agreement.digest
        ).first()
    problem = ""
    if not role.is_registered:
        # `last_error` is "code: message".
        last_error = pending.values_list("last_error", flat=True).first() or ""
        message = last_error.partition(": ")[2] or last_error
        problem = message or "It is not registered yet."
    return IssuerStatus(
        is_registered=role.is_registered,
        may_write=role.may_write,
        agreement=agreement,
        acceptance=acceptance,
        problem=problem,
    )
