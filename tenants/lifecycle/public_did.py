"""The public DID of an organization: its endpoint, and who may connect by it."""

from typing import NamedTuple

from connections.models import didcomm_endpoint
from connections.protocols import public_dids
from credentials import publishing
from credentials.models import Publication
from tenants.models import Tenant
from wallets.models import Wallet

# The states of the endpoint in the API, by the step of the job that publishes it.
UNPUBLISHED = "Unpublished"
STATES = {
    "prepared": "Publishing",
    "submitted": "Publishing",
    "published": "Published",
    "refused": "Refused",
}


class PublicDid(NamedTuple):
    """The public DID of an organization.

    endpoint: what is published, or is being published; else "". problem: why it is not
    published yet, in a sentence. accepts_requests: whether anybody who knows the DID
    may connect.
    """

    did: str
    verkey: str
    endpoint: str
    state: str
    problem: str
    accepts_requests: bool


def read_public_did(tenant: Tenant) -> PublicDid:
    """What is known here, by the newest job that publishes. No ledger is read."""
    wallet = Wallet.of_organization(tenant)
    rows = Publication.objects.filter(
        tenant=tenant, kind=Publication.Kind.ENDPOINT, subject=wallet.issuer_did
    )
    job = rows.order_by("-pk").first()
    # `last_error` is a code, or "code: message".
    error = job.last_error if job and job.step != "published" else ""
    return PublicDid(
        did=wallet.issuer_did,
        verkey=wallet.public_key.verkey,
        endpoint=job.object_id if job else "",
        state=STATES[job.step] if job else UNPUBLISHED,
        problem=error.partition(": ")[2] or error,
        accepts_requests=public_dids.find_open_invitation(wallet) is not None,
    )


def publish_endpoint(tenant: Tenant) -> None:
    """Publish the endpoint of this agency for the organization's DID.

    On the local network in a transaction, on a remote ledger after its commit.
    """
    publishing.publish_endpoint(tenant, didcomm_endpoint())


def set_accepts_requests(tenant: Tenant, is_accepting: bool) -> None:
    """Let anybody connect by the public DID (RFC 0023, implicit invitation), or not."""
    wallet = Wallet.of_organization(tenant)
    if is_accepting:
        public_dids.start_accepting_requests(wallet)
    else:
        public_dids.stop_accepting_requests(wallet)
