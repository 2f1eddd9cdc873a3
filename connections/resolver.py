"""Resolve a DID that a peer gave: to whom messages go, and where.

did:key and did:peer contain their document. Unqualified DIDs and did:sov are read from
the network of the organization, and from the local one. The document of a did:web is
read at its https address (https://w3c-ccg.github.io/did-method-web/), the log of a
did:webvh too (credentials/ledgers/webvh/reading.py).

A stranger may name any DID. So what a DID resolves to is remembered for a minute, and
an organization has a limit of reads each minute, those for strangers apart from its
own (DIDS_PER_MINUTE).
"""

import re
import time
from collections import OrderedDict
from functools import partial
from threading import Lock
from urllib.parse import unquote

from django.conf import settings

from connections.didcomm import dids
from connections.didcomm.dids import Party
from core.errors import Invalid, PeerError
from core.hooks import Hook
from core.net import http
from core.text import bounded_json
from core.valkey import rate_limits
from core.work import network_reads
from core.work.waiting import seconds_left
from tenants.models import Network, Tenant

INDY_DID = re.compile(r"[1-9A-HJ-NP-Za-km-z]{21,22}")
WEB_DID = re.compile(r"did:web:([A-Za-z0-9.-]+(?:%3[Aa][0-9]{1,5})?)((?::[\w.%-]+)*)")
# Seconds for which an answer is remembered. It is short, because the owner of the DID
# may publish another endpoint at any moment.
MEMORY_SECONDS = 60.0
MAX_REMEMBERED = 1000
FETCH_TIMEOUT_SECONDS = 5.0
MAX_DOCUMENT_BYTES = 64 * 1024


class DidNotResolved(PeerError):
    """A DID that leads nowhere: unknown, without a key, or not supported here."""

    def __init__(self, did: str, reason: str) -> None:
        super().__init__("did_not_resolved", f"{did[:100]}: {reason}")

    def as_invalid(self, field: str) -> Invalid:
        """The error for a caller of the API who gave the DID."""
        message = f"The DID cannot be resolved. {self.message}."
        return Invalid(self.code, message, {field: [message]})


# Returns the party of an unqualified DID on a network, or of a did:webvh, or None.
read_from_ledger: Hook[[Network, str], Party | None] = Hook("credentials.ledgers")


class ResolvedDids:
    """What DIDs have resolved to, in this process, for MEMORY_SECONDS."""

    def __init__(self) -> None:
        self._parties: OrderedDict[tuple[str, str], tuple[float, Party]] = OrderedDict()
        self._lock = Lock()

    def find(self, network: Network, did: str) -> Party | None:
        """Return the party that a DID on a network has resolved to, or None.

        None after MEMORY_SECONDS, too.
        """
        until, party = self._parties.get((network.pk, did), (0.0, None))
        return party if time.monotonic() < until else None

    def add(self, network: Network, did: str, party: Party) -> None:
        with self._lock:
            self._parties.pop((network.pk, did), None)
            self._parties[network.pk, did] = time.monotonic() + MEMORY_SECONDS, party
            while len(self._parties) > MAX_REMEMBERED:
                self._parties.popitem(last=False)

    def clear(self) -> None:
        """Forget all, for tests."""
        self._parties.clear()


resolved_dids = ResolvedDids()


def resolve(did: str, tenant: Tenant, is_stranger: bool = False) -> Party:
    """Return the party of a DID. Its endpoint is "" if the DID has none.

    tenant: on whose behalf. is_stranger: whether the DID is that of a sender who is
    not known yet.

    PeerError `did_not_resolved` (DidNotResolved); `unknown_did` or another one of
    dids.read() if the DID contains its document; `bad_key` if what the ledger has is
    no Ed25519 key. 429 `too_many_requests` (TooOften), 503 `ledger_unavailable`
    (Unavailable), 409 `ledger_refused`. In a transaction it raises ReadNeeded
    (core/work/network_reads.py) unless the answer is remembered.
    """
    did = normalise_did(did)
    if dids.carries_document(did):
        return dids.read(did)
    if known := resolved_dids.find(tenant.network, did):
        return known
    read = partial(_read_and_remember, did, tenant, is_stranger)
    return network_reads.read_outside_transaction(("did", tenant.network.pk, did), read)


def resolve_reachable(did: str, tenant: Tenant) -> Party:
    """Return the party of a DID that has an HTTP endpoint, as an inviter needs.

    DidNotResolved if it has none, and all errors of resolve().
    """
    party = resolve(did, tenant)
    if not party.endpoint:
        raise DidNotResolved(did, "it has no http address to answer to")
    return party


def normalise_did(did: str) -> str:
    """The DID of a DID URL. did:sov is written without its method."""
    did = re.split(r"[#?/;]", did, maxsplit=1)[0] if len(did) <= dids.MAX_TEXT else did
    return did.removeprefix("did:sov:")


def spellings_of(did: str) -> list[str]:
    """The forms in which peers write a DID."""
    did = normalise_did(did)
    return [did, f"did:sov:{did}"] if INDY_DID.fullmatch(did) else [did]


def _read_and_remember(did: str, tenant: Tenant, is_stranger: bool) -> Party:
    """Read a DID over the network, outside of transactions: see resolve().

    Each read takes a token of the organization, those for strangers another one.
    """
    who = f"{'strangers' if is_stranger else 'own'}:{tenant.pk}"
    rate_limits.take_token("did", who, settings.DIDS_PER_MINUTE)
    if INDY_DID.fullmatch(did) or did.startswith(dids.DID_WEBVH):
        [party] = read_from_ledger(tenant.network, did)
        if party is None:
            where = tenant.network if INDY_DID.fullmatch(did) else "the web"
            raise DidNotResolved(did, f"it is not on {where}")
    elif did.startswith("did:web:"):
        party = _read_web(did)
    else:
        raise DidNotResolved(did, "this kind of DID is not supported")
    if party.endpoint:  # one that has none yet may be published at any moment
        resolved_dids.add(tenant.network, did, party)
    return party


def _read_web(did: str) -> Party:
    """Fetch the document of a did:web. DidNotResolved whatever is wrong with it."""
    match = WEB_DID.fullmatch(did)
    if not match or len(did) > dids.MAX_DID:
        raise DidNotResolved(did, "it is not a did:web")
    host = unquote(match[1])
    path = match[2].replace(":", "/") or "/.well-known"
    url = f"https://{host}{path}/did.json"
    try:
        response = http.get(
            url,
            accept="application/did+json, application/json",
            timeout=seconds_left(FETCH_TIMEOUT_SECONDS),
            max_bytes=MAX_DOCUMENT_BYTES,
            max_redirects=0,
        )
    except http.CallFailed as error:
        raise DidNotResolved(did, f"{url} cannot be read: {error}") from None
    if response.status != 200 or not response.is_complete:
        raise DidNotResolved(did, f"{url} responded {response.status}, or too much")
    try:
        document = bounded_json.loads(response.body)
    except bounded_json.BadJSON as error:
        raise DidNotResolved(did, f"{url}: {error}") from None
    if not isinstance(document, dict) or document.get("id") != did:
        raise DidNotResolved(did, f"{url} is the document of another DID")
    try:
        return dids.of_document(did, document)
    except PeerError as error:
        raise DidNotResolved(did, error.message) from None
