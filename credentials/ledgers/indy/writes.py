"""How something gets onto an Indy ledger: who signs, and under which agreement.

The author of a transaction is the organization, by its DID. Where that has no role on the ledger,
the agency's endorser signs too. Where the network has an agreement of transaction authors, the
author must have accepted the one in force.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from django.db import connection
from indy_vdr import Request, VdrError, ledger

from agency.core import faults
from agency.core.errors import Conflict
from credentials.ledgers.base import Agreement
from credentials.ledgers.indy import pool, reads
from tenants import vault
from tenants.models import AgreementAcceptance, Network
from wallets import keys
from wallets.models import Wallet


class Author(NamedTuple):
    """Who writes; tenant_id None is the agency itself."""

    did: str
    seed: bytes
    tenant_id: Any


class Receipt(NamedTuple):
    """The number and the time (unix seconds) of the transaction."""

    sequence: int
    time: int


def organization(network: Network, did: str) -> Author:
    """The organization of this network that has the DID; the oldest key is the DID's."""
    wallet = Wallet.objects.get(tenant__network=network, is_organization=True, did=did)
    key = wallet.keys.order_by("pk")[0]
    return Author(did, key.secret(), wallet.tenant_id)


def endorser(network: Network) -> Author | None:
    if not network.endorser_did:
        return None
    seed = keys.decode(vault.unseal(network, "endorser_seed"))
    return Author(network.endorser_did, seed, None)


def register(network: Network, did: str, verkey: str) -> Receipt:
    """Writes the DID, without a role, as the agency's endorser. 409 `did_not_registered`."""
    author = endorser(network)
    if author is None:
        raise Conflict(
            "did_not_registered",
            f"The DID {did} (verkey {verkey}) is not on {network}: have it registered. The agency "
            "has no endorser there.",
        )
    return submit(network, author, [author], ledger.build_nym_request, did, verkey)


def write(
    network: Network, did: str, build: Callable[..., Request], *arguments: Any
) -> Receipt:
    """Writes as an organization, which stands on the ledger from then on if it did not yet."""
    author = organization(network, did)
    standing = reads.nym(network, did)
    if standing is None:
        register(network, did, keys.verkey_of(author.seed))
    if standing and standing.may_write:
        return submit(network, author, [author], build, *arguments)
    second = endorser(network)
    if second is None:
        raise Conflict(
            "not_endorsed",
            f"The DID {did} has no role on {network}, and the agency has no endorser there.",
        )
    return submit(network, author, [author, second], build, *arguments)


def submit(
    network: Network,
    author: Author,
    signers: list[Author],
    build: Callable[..., Request],
    *arguments: Any,
) -> Receipt:
    """Never in a transaction of the database, which cannot take back what a ledger took."""
    if connection.in_atomic_block:
        raise RuntimeError("a ledger is written to outside of transactions")
    try:
        request = build(author.did, *arguments)
    except VdrError as error:
        raise pool.refused(network, error) from None
    if agreement := reads.agreement(network):
        request.set_txn_author_agreement_acceptance(
            acceptance(network, author, agreement)
        )
    if len(signers) > 1:
        request.set_endorser(signers[1].did)
    sign(request, signers)
    answer = pool.send(network, request, is_write=True)["txnMetadata"]
    faults.fault_point("ledger-written")
    return Receipt(answer["seqNo"], answer["txnTime"])


def sign(request: Request, signers: list[Author]) -> None:
    for signer in signers:
        signature = keys.sign(signer.seed, request.signature_input)
        if len(signers) == 1:
            request.set_signature(signature)
        else:
            request.set_multi_signature(signer.did, signature)


def acceptance(network: Network, author: Author, agreement: Agreement) -> str:
    """What a transaction must carry. 409 `agreement_not_accepted`."""
    rows = AgreementAcceptance.objects.filter(
        network=network, tenant_id=author.tenant_id
    )
    row = rows.filter(digest=agreement.digest).first()
    if row is None:
        who, how = "you have", f"PUT /common/networks/{network.pk}/txnAuthorAgreement"
        if author.tenant_id is None:
            who, how = "the agency has", f"`manage.py accept_agreement {network.pk}`"
        raise Conflict(
            "agreement_not_accepted",
            f"{network} takes nothing before {who} accepted its transaction author agreement, "
            f"version {agreement.version}: {how}.",
        )
    return ledger.prepare_txn_author_agreement_acceptance(
        None, None, row.digest, row.mechanism, int(row.accepted_at.timestamp())
    )
