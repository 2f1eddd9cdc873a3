"""DIDs of did:webvh that are made here: their logs, keys and resources.

Everything is rows, written in the caller's transaction, so nothing is ever published by
halves. Each write locks the row of the DID: last of all locks, as the local network's.
"""

import logging
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from connections.didcomm.dids import DID_WEBVH
from core.errors import Conflict, Invalid
from core.net import http
from core.work import transactions
from core.work.leases import attempt
from core.work.waiting import seconds_left
from credentials.ledgers.webvh import own_log
from credentials.ledgers.webvh.own_log import Json, UpdateKeys, multikey_of
from credentials.ledgers.webvh.rows import FOLDER, WebvhDid, WebvhResource
from tenants import vault
from tenants.models import Network, Tenant
from wallets import keys

logger = logging.getLogger(__name__)
NETWORK = "webvh"
# As the strictest reader takes them: no address, no port, two labels or more, none that
# is a single letter or begins with a digit. Others read `localhost` without TLS.
HOST = re.compile(r"(?:[a-z](?:[a-z0-9-]*[a-z0-9])\.)+[a-z](?:[a-z0-9-]*[a-z0-9])")
MAX_HOST = 50  # the DID is the id of a connection, which has 128 characters
NONCE_BYTES = 24
CHECK_SECONDS, MAX_ANSWER_BYTES = 5.0, 1000
SEGMENT_BYTES = 4  # 8 characters
# What readers take of a log, less the entries that end a rotation and the DID.
MAX_ENTRIES, MAX_LOG_BYTES = 200 - 4, 256 * 1024 - 16 * 1024
# How long others may remember the document: so long a new key is listed unused.
MEMORY = timedelta(seconds=300)
SIGNED_AT_ONCE = 200
RETRY_DELAY = timedelta(minutes=1)
LOCK_HOST_SQL = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def public_host() -> str:
    """The host of PUBLIC_URL. 409 `no_public_host` if no DID can have it."""
    public = urlsplit(settings.PUBLIC_URL)
    host = public.hostname or ""
    is_root = public.scheme == "https" and not public.port and not public.path
    if not is_root or not is_host(host):
        raise Conflict(
            "no_public_host",
            "A did:webvh is read at https, port 443, the root of a domain name, and "
            f"PUBLIC_URL is {settings.PUBLIC_URL}.",
        )
    return host


def is_host(host: str) -> bool:
    is_right = len(host) <= MAX_HOST and HOST.fullmatch(host)
    return bool(is_right) and "localhost" not in host


def require_host(host: str, provider_id: UUID | None) -> str:
    """Return the host in lower case, once it is known to lead here.

    That of PUBLIC_URL, if `host` is empty. Another one is asked for an answer that only
    this installation can give: outside of transactions, and if no organization of
    another account has it. 400 `bad_host`; 409 `host_elsewhere`,
    `host_taken`, `no_public_host`.
    """
    host = host.lower()
    if host in ("", urlsplit(settings.PUBLIC_URL).hostname):
        return public_host()
    if not is_host(host):
        message = "Give a domain name such as credentials.example.org, without a port."
        raise Invalid("bad_host", message, {"host": [message]})
    require_own(host, provider_id)
    nonce = secrets.token_urlsafe(NONCE_BYTES)
    try:
        response = http.get(
            f"https://{host}/{FOLDER}/check/{nonce}",
            accept="text/plain",
            timeout=seconds_left(CHECK_SECONDS),
            max_bytes=MAX_ANSWER_BYTES,
            max_redirects=0,
        )
        is_here = response.body.decode() == answer_check(host, nonce)
    except (http.CallFailed, UnicodeDecodeError):
        is_here = False
    if not is_here:
        raise Conflict(
            "host_elsewhere",
            f"https://{host} does not lead here yet: {FOLDER}/check/ is not answered "
            "as only this installation does. Look at its DNS, its certificate, the "
            "proxy and ALLOWED_HOSTS.",
        )
    return host


def require_own(host: str, provider_id: UUID | None) -> None:
    """409 `host_taken` if an organization of another account has this domain.

    Who verifies may judge by the domain, so two accounts do not share one.
    """
    others = WebvhDid.objects.filter(host=host, tenant__isnull=False)
    if others.exclude(tenant__provider=provider_id).exists():
        raise Conflict(
            "host_taken",
            f"{host} is the domain of an organization of another account.",
        )


def require_none(tenant: Tenant) -> None:
    """409 `did_exists` if the organization has a did:webvh, also if it has ended."""
    if WebvhDid.objects.filter(tenant=tenant).exists():
        raise Conflict(
            "did_exists", "The organization has a did:webvh, which is for life."
        )


def answer_check(host: str, nonce: str) -> str:
    """What shows that a request for this host has come to this installation."""
    return vault.keyed_digest(f"host of did:webvh {host} {nonce}").hex()


def find_outside_problem(row: WebvhDid) -> str:
    """Return why others cannot read the log of a DID, in a sentence, or "".

    It is read at its address, as they do: outside of transactions.
    """
    try:
        response = http.get(
            row.log_url,
            accept="*/*",
            timeout=seconds_left(CHECK_SECONDS),
            max_bytes=len(row.log.encode()) + 1,
            max_redirects=0,
        )
    except http.CallFailed as error:
        return f"{row.host} cannot be reached: {error.message}."
    if response.status != 200:
        return f"{row.log_url} answers {response.status}."
    if response.body != row.log.encode():
        return f"{row.log_url} answers something else than the log."
    return ""


def host_of(did: str) -> str:
    """The host in a did:webvh; "" for any other DID."""
    return did.split(":")[3] if did.startswith(DID_WEBVH) else ""


def find_network() -> Network:
    """The network `webvh`, which is created when it is first needed."""
    defaults = {"name": "did:webvh", "kind": Network.Kind.WEBVH}
    return Network.objects.get_or_create(pk=NETWORK, defaults=defaults)[0]


def create(tenant: Tenant, host: str) -> WebvhDid:
    """Make a DID with its first entry, in the caller's transaction.

    409 `did_exists` if the organization has one, also if it has ended; `host_taken` at
    a domain of its own where an organization of another account has one.
    """
    tenant.lock_row()
    require_none(tenant)
    if host != urlsplit(settings.PUBLIC_URL).hostname:
        with connection.cursor() as cursor:  # two accounts may want it at once
            cursor.execute(LOCK_HOST_SQL, [f"host of did:webvh {host}"])
        require_own(host, tenant.provider_id)
    update_keys = UpdateKeys(keys.generate_seed(), keys.generate_seed())
    assertion = keys.generate_seed()
    segment = secrets.token_hex(SEGMENT_BYTES)
    entry = own_log.first_entry(
        f"{host}:{FOLDER}:{segment}",
        datetime.now(UTC),
        update_keys,
        multikey_of(assertion),
    )
    row = WebvhDid(
        tenant=tenant,
        did=entry["state"]["id"],
        host=host,
        segment=segment,
        log=own_log.write_line(entry),
    )
    assert update_keys.following, "the first entry announces a key"
    row.seal_seed("next_key", update_keys.following)
    row.seal_seed("assertion_key", assertion)
    row.save(force_insert=True)
    return row


def lock_live(**filters: str | Tenant) -> WebvhDid:
    """Lock the row of a DID that may still publish, until the transaction ends.

    409 `no_webvh_did`, `did_ended`.
    """
    rows = WebvhDid.objects.select_for_update(no_key=True)
    return require_live(rows.filter(**filters).first())


def require_live(row: WebvhDid | None) -> WebvhDid:
    """409 `no_webvh_did`, `did_ended` unless the DID may still publish."""
    if row is None:
        raise Conflict("no_webvh_did", "The organization has no did:webvh.")
    if row.next_key is None:
        raise Conflict(
            "did_ended",
            f"{row.did} has ended ({row.state}): nothing can be published by it.",
        )
    return row


@transactions.atomic()
def rotate(tenant: Tenant, is_compromised: bool = False) -> WebvhDid:
    """Begin to replace the keys of a DID; take_rotation_step() goes on.

    The new assertion key is listed beside the old one, and signs once nobody remembers
    a document without it. is_compromised: the old one is taken away at once, and all is
    signed anew: for MEMORY, whoever remembers the document refuses what it signs. 409
    `no_webvh_did`, `did_ended`, `log_full`; `rotation_under_way` unless is_compromised.
    """
    row = lock_live(tenant=tenant)
    require_room(row)
    coming = keys.generate_seed()
    if is_compromised:
        row.coming_key = row.rotation_due_at = None
        row.seal_seed("assertion_key", coming)
        append_entry(row, [multikey_of(coming)])
        sign_anew(row)
        return row
    if row.rotation_due_at:
        raise Conflict(
            "rotation_under_way",
            "A rotation of the keys has begun, and ends within minutes.",
        )
    row.seal_seed("coming_key", coming)
    row.rotation_due_at = timezone.now() + MEMORY
    old = row.unseal_seed("assertion_key")
    append_entry(row, [multikey_of(coming), multikey_of(old)])
    return row


@transactions.atomic()
def take_rotation_step(row: WebvhDid) -> None:
    """Go on with a rotation that is due, in a transaction of its own.

    First the new key signs from now on. Then it signs what the old one has signed,
    SIGNED_AT_ONCE at a time. When no reader can have read the last of that any more,
    the old key is taken away.
    """
    due = WebvhDid.objects.filter(
        pk=row.pk, rotation_due_at__lte=timezone.now(), next_key__isnull=False
    )
    found = due.select_for_update(no_key=True, skip_locked=True).first()
    if found is None:  # ended, or done by another worker
        return
    if found.coming_key:
        found.seal_seed("assertion_key", found.unseal_seed("coming_key"))
        found.coming_key = None
    if sign_anew(found, SIGNED_AT_ONCE):
        found.rotation_due_at = timezone.now() + MEMORY
        if unsigned_resources(found).exists():
            found.rotation_due_at = timezone.now()
        save(found)
        return
    found.rotation_due_at = None
    append_entry(found, [multikey_of(found.unseal_seed("assertion_key"))])


def take_due_steps() -> None:
    """Take a step of each rotation that is due, until none is."""
    due = WebvhDid.objects.filter(rotation_due_at__lte=timezone.now())
    live = due.filter(tenant__frozen_at=None, tenant__deleted_at=None)
    for row in live.order_by("rotation_due_at").only("pk")[:SIGNED_AT_ONCE]:
        attempt(row, take_rotation_step, try_later)


def try_later(row: WebvhDid, error: Exception) -> None:
    """After a failure it is tried again after the others."""
    logger.exception("the keys of the did:webvh %s are not rotated", row.pk)
    later = timezone.now() + RETRY_DELAY
    due = WebvhDid.objects.filter(pk=row.pk, rotation_due_at__isnull=False)
    due.update(rotation_due_at=later)


@transactions.atomic()
def end(tenant: Tenant, deactivate: bool = False) -> WebvhDid:
    """End a DID for ever, and destroy its keys. 409 `no_webvh_did`, `did_ended`.

    It is frozen: its log can get no entry any more, and what was issued is proven as
    before. deactivate: the DID is no more, and nothing of it can be proven or verified.
    """
    row = lock_live(tenant=tenant)
    signer = row.unseal_seed("next_key")
    state = own_log.read_last(row.log)["state"]
    # Pre-rotation must end before an entry can do without an update key.
    add_entry(row, UpdateKeys(signer, None).parameters, state, signer)
    parameters: Json = {"updateKeys": []}
    if deactivate:
        parameters["deactivated"] = True
    add_entry(row, parameters, state, signer)
    row.next_key = row.assertion_key = row.coming_key = row.rotation_due_at = None
    row.is_deactivated = deactivate
    save(row)
    return row


def publish_endpoint(did: str, verkey: str, endpoint: str) -> None:
    """Write where messages to a DID go into its document, unless that is there."""
    row = lock_live(did=did)
    key_id = keys.did_key_of(verkey)
    service = {
        "id": f"{did}#did-communication",
        "type": "did-communication",
        "priority": 0,
        "recipientKeys": [f"{key_id}#{key_id.removeprefix('did:key:')}"],
        "routingKeys": [],
        "serviceEndpoint": endpoint,
    }
    state = own_log.read_last(row.log)["state"]
    if state.get("service") != [service]:
        require_room(row)
        append_document(row, state | {"service": [service]})


def require_room(row: WebvhDid) -> None:
    """409 `log_full` if readers would refuse a longer log."""
    if row.versions >= MAX_ENTRIES or len(row.log) > MAX_LOG_BYTES:
        raise Conflict(
            "log_full",
            "The log of the DID is as long as readers take it: its keys stay as "
            "they are.",
        )


def append_entry(row: WebvhDid, multikeys: Sequence[str]) -> None:
    """Append an entry with other assertion keys, and save the row."""
    service = own_log.read_last(row.log)["state"].get("service", ())
    append_document(row, own_log.build_document(row.did, multikeys, service))


def append_document(row: WebvhDid, state: Json) -> None:
    """Append an entry by the announced key, which announces the next one, and save."""
    following = keys.generate_seed()
    update_keys = UpdateKeys(row.unseal_seed("next_key"), following)
    add_entry(row, update_keys.parameters, state, update_keys.signer)
    row.seal_seed("next_key", following)
    save(row)


def add_entry(row: WebvhDid, parameters: Json, state: Json, signer: bytes) -> None:
    last = own_log.read_last(row.log)
    entry = own_log.next_entry(last, parameters, state, signer)
    row.log += own_log.write_line(entry)
    row.versions += 1


def save(row: WebvhDid) -> None:
    row.updated_at = timezone.now()
    row.save()


def publish_resource(
    row: WebvhDid,
    content: Json,
    kind: str,
    name: str,
    unique_name: str,
    links: list[Json] | None = None,
) -> str:
    """Sign and store a resource of a locked DID. Return its id.

    IntegrityError if there is one of this content or unique name.
    """
    seed = row.unseal_seed("assertion_key")
    resource = own_log.build_resource(row.did, content, kind, name, links)
    WebvhResource.objects.create(
        did=row,
        digest=resource["metadata"]["resourceId"],
        unique_name=unique_name,
        document=own_log.to_text(own_log.sign_resource(resource, row.did, seed)),
        signed_by=multikey_of(seed),
    )
    return resource["id"]


def replace_document(row: WebvhDid, resource: WebvhResource, document: Json) -> None:
    """Sign and store a resource of a locked DID with other links."""
    sign(resource, document, row, row.unseal_seed("assertion_key"))
    resource.save()


def sign(resource: WebvhResource, document: Json, row: WebvhDid, seed: bytes) -> None:
    """Set the columns of a resource to the document, signed by this key."""
    signed = own_log.sign_resource(document, row.did, seed)
    resource.document = own_log.to_text(signed)
    resource.signed_by = multikey_of(seed)
    resource.updated_at = timezone.now()


def unsigned_resources(row: WebvhDid) -> QuerySet[WebvhResource]:
    """The resources that the assertion key of a DID has not signed."""
    multikey = multikey_of(row.unseal_seed("assertion_key"))
    return row.resources.exclude(signed_by=multikey)


def sign_anew(row: WebvhDid, limit: int | None = None) -> int:
    """Sign resources of a locked DID that another key has signed. Return how many."""
    seed = row.unseal_seed("assertion_key")
    resources = list(unsigned_resources(row)[:limit])
    for resource in resources:
        sign(resource, resource.parse(), row, seed)
    columns = ["document", "signed_by", "updated_at"]
    WebvhResource.objects.bulk_update(resources, columns, batch_size=SIGNED_AT_ONCE)
    return len(resources)
