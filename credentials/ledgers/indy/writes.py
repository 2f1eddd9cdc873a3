"""Writes to an Indy ledger: who signs, and under which agreement.

The organization, with its DID, is the author of a transaction. If the DID has no role
on the ledger, the agency's endorser signs too. If the network has a transaction author
agreement, the author must have accepted the one in force.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from indy_vdr import Request, VdrError, ledger

from core import faults
from core.errors import Conflict
from credentials.ledgers.base import Agreement
from credentials.ledgers.indy import pool, reads
from tenants import vault
from tenants.models import AgreementAcceptance, Network
from wallets import keys
from wallets.models import Wallet


class Author(NamedTuple):
    """A DID that signs. tenant_id: None for the agency itself."""

    did: str
    seed: bytes
    tenant_id: UUID | None


class Receipt(NamedTuple):
    """The sequence number and the time (unix seconds) of a transaction."""

    sequence: int
    time: int


def agency_endorser(network: Network) -> Author | None:
    if not network.endorser_did:
        return None
    seed = keys.decode_key(vault.unseal(network, "endorser_seed"))
    return Author(network.endorser_did, seed, None)


def register_did(network: Network, did: str, verkey: str) -> Receipt:
    """Register a DID as the agency's endorser. 409 `did_not_registered`."""
    author = agency_endorser(network)
    if author is None:
        raise Conflict(
            "did_not_registered",
            f"The DID {did} (verkey {verkey}) is not on {network}, and the agency has "
            "no endorser there. Ask the network's operator to register the DID.",
        )
    return submit_transaction(
        network, author, [author], ledger.build_nym_request, did, verkey
    )


def write_as_organization(
    network: Network, did: str, build: Callable[..., Request], *arguments: Any
) -> Receipt:
    """Write as an organization. Its DID is registered first if necessary.

    409 `not_endorsed` if it may not write and the agency has no endorser; the errors
    of register_did() and submit_transaction(). build: see submit_transaction().
    """
    wallet = Wallet.objects.get(tenant__network=network, is_organization=True, did=did)
    key = wallet.keys.order_by("pk")[0]  # the oldest key is the DID's
    author = Author(did, key.unseal_seed(), wallet.tenant_id)
    nym = reads.fetch_nym(network, did)
    if nym is None:
        # It gets no role, so the endorser signs this transaction too.
        register_did(network, did, keys.verkey_of(author.seed))
    if nym and nym.may_write:
        return submit_transaction(network, author, [author], build, *arguments)
    endorser = agency_endorser(network)
    if endorser is None:
        raise Conflict(
            "not_endorsed",
            f"The DID {did} has no role on {network}, and the agency has no endorser "
            "there. Ask the network's operator to make the DID an endorser.",
        )
    return submit_transaction(network, author, [author, endorser], build, *arguments)


def submit_transaction(
    network: Network,
    author: Author,
    signers: list[Author],
    build: Callable[..., Request],
    *arguments: Any,
) -> Receipt:
    """Sign and submit a transaction. signers: the author, then the endorser if any.

    build: of indy_vdr.ledger; it gets the author's DID and the other arguments. 409
    `agreement_not_accepted`; the errors of pool.send().

    Never call this inside a database transaction: a rollback cannot undo a write to
    the ledger.
    """
    if connection.in_atomic_block:
        raise RuntimeError("no write to a ledger inside a transaction")
    try:
        request = build(author.did, *arguments)
    except VdrError as error:
        raise pool.refused_error(network, error) from None
    if agreement := reads.fetch_agreement(network):
        request.set_txn_author_agreement_acceptance(
            agreement_acceptance(network, author, agreement)
        )
    if len(signers) > 1:
        request.set_endorser(signers[1].did)
    for signer in signers:
        signature = keys.sign_bytes(signer.seed, request.signature_input)
        if len(signers) == 1:
            request.set_signature(signature)
        else:
            request.set_multi_signature(signer.did, signature)
    answer = pool.send(network, request, is_write=True)["txnMetadata"]
    faults.fault_point("ledger-written")
    return Receipt(answer["seqNo"], answer["txnTime"])


def agreement_acceptance(network: Network, author: Author, agreement: Agreement) -> str:
    """The acceptance that a transaction must carry. 409 `agreement_not_accepted`."""
    rows = AgreementAcceptance.objects.filter(network=network, tenant=author.tenant_id)
    row = rows.filter(digest=agreement.digest).first()
    if row is None:
        if author.tenant_id is None:
            who = "the agency has"
            how = f"`manage.py accept_agreement {network.pk}`"
        else:
            who = "you have"
            how = f"PUT /common/networks/{network.pk}/txnAuthorAgreement"
        raise Conflict(
            "agreement_not_accepted",
            f"{network} takes nothing before {who} accepted its transaction author "
            f"agreement, version {agreement.version}: {how}.",
        )
    return ledger.prepare_txn_author_agreement_acceptance(
        None, None, row.digest, row.mechanism, int(row.accepted_at.timestamp())
    )
