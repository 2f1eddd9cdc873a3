"""Revocation: registry slots for new credentials, and lists of revoked ones."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import F, QuerySet
from django.utils import timezone

from connections.exchange import PARTIES
from connections.messaging import outbox
from connections.models import Connection
from core.errors import AgencyError, Conflict, Unavailable, WrongState
from core.work import transactions
from credentials import messages
from credentials.ledgers import ledger_with
from credentials.ledgers.base import Ledger, list_superseded
from credentials.models.credential import (
    Credential,
    RegistrySlot,
    automatic_definitions,
)
from credentials.models.definition import CredentialDefinition
from credentials.models.formats import CredentialFormat
from credentials.models.registry import RevocationRegistry
from credentials.models.token_status_list import Place, TokenStatusList
from credentials.registries import build_next_registry
from tenants import vault
from wallets import anoncreds
from wallets.anoncreds.objects import StatusListBody

# In one transaction: the feeds of all organizations wait for it
# (webhooks/events/feed.py).
REVOKED_AT_ONCE = 200
CLOCK_SKEW_SECONDS = 60  # by which a ledger's clock may be ahead of ours


class Revocable(NamedTuple):
    """The numbers of some credentials that are issued, and that are revoked."""

    issued: int
    revoked: int


def reserve_slot(credential: Credential) -> RegistrySlot | None:
    """Issuer: reserve a slot if the credential is revocable and can be issued now.

    None otherwise, and for one of another format than AnonCreds. Runs in a transaction
    of its own, before the one that issues: it waits for the lock of the registry. If
    none has room it makes one, and on a remote ledger publishes it: 503
    `ledger_unavailable`, or a refusal with its own code.
    """
    if credential.state != Credential.State.REQUESTED:
        return None
    if credential.format != CredentialFormat.ANONCREDS:
        return None
    if not credential.definition.supports_revocation:
        return None
    return allocate_slot(credential.definition)


def reserve_for_issuer(credential: Credential) -> RegistrySlot | None:
    """Holder: reserve the slot into which an issuer hosted here issues automatically.

    Runs in a transaction of its own, before accept(), which takes the slot. None if
    nothing revocable is issued automatically here, or if there is no slot, or if a
    remote ledger must be read first: then it is issued after accept(), if at all.
    Raises nothing: accept() finds out what is wrong.
    """
    connection = credential.live_connection
    is_offered = credential.state == Credential.State.OFFERED
    if not (is_offered and connection and connection.seems_hosted):
        return None
    ledger = credential.ledgers.ledger_with(credential.definition_id)
    if ledger is None or ledger.is_remote:
        return None
    with suppress(AgencyError):
        # Known without a statement, unlike the definition with its keys.
        if "revocation" in credential.public_definition["value"]:
            definition = automatic_definitions.first(
                credential.thread_id, credential.definition_id
            )
            return allocate_slot(definition) if definition else None
    return None


def allocate_slot(definition: CredentialDefinition) -> RegistrySlot:
    """Allocate a slot for a new credential. It is not reused, even if issuing fails.

    Call this before the transaction that issues, so that the registry is locked only
    briefly.
    """
    while True:
        with transactions.atomic():
            with_room = RevocationRegistry.objects.filter(
                definition=definition, next_index__lt=F("size")
            )
            registry = with_room.select_for_update().order_by("pk").first()
            if registry:
                index = registry.next_index
                rows = RevocationRegistry.objects.filter(pk=registry.pk)
                rows.update(next_index=index + 1)
                registry.definition, registry.tenant = definition, definition.tenant
                return RegistrySlot(registry, index)
        # No registry has room: build a small one now. Usually a worker has built the
        # next one before.
        build_next_registry(definition, settings.REVOCATION_FIRST_REGISTRY_SIZE)


def revoke(credential: Credential, log: Callable[[], None] | None = None) -> None:
    """Issuer: revoke a credential, publish the new list and notify the holder.

    Outside of transactions. The revocation is committed before the list is published,
    which may wait for the next second, or for a ledger. 409 `wrong_state` or
    `not_revocable`. 503 `organization_frozen`; `ledger_unavailable` if the ledger does
    not respond, or `list_superseded`: then the list is published in the background, or
    by the next call.

    log: called in the transaction that revokes.
    """
    State = Credential.State
    if credential.revocation_index is None:
        if credential.state != State.ISSUED:
            raise WrongState(credential, [State.ISSUED])
        raise Conflict(
            "not_revocable",
            "The credential cannot be revoked: its definition does not support it.",
        )
    is_unpublished = (
        credential.state == State.REVOKED and not credential.revocation_published_at
    )
    # If the revocation is not published yet, a repeated call only publishes it. Any
    # other state fails in Credential.revoke().
    if not is_unpublished:
        with transactions.atomic():
            credential.lock()
            credential.revoke()
            mark_in_status_lists([credential])
            if log:
                log()
    publish_and_notify(credential)


def mark_revoked(credentials: QuerySet[Credential]) -> list[Credential]:
    """Issuer: revoke the first REVOKED_AT_ONCE that are issued, in one transaction.

    Return them. credentials: those with a slot in a registry, which is not checked
    here. Call publish_and_notify_all() next. One that has changed meanwhile is left
    out. All connections are locked by one statement, so that nobody waits in a circle.
    503 `organization_frozen`.
    """
    issued = credentials.filter(state=Credential.State.ISSUED).select_related(*PARTIES)
    chosen = list(issued.order_by("pk")[:REVOKED_AT_ONCE])
    with transactions.atomic():
        found = [one.live_connection for one in chosen]
        Connection.lock_all([connection for connection in found if connection])
        revoked = []
        for credential in chosen:
            credential.lock()  # takes the row of the connection that is locked above
            with suppress(WrongState):
                credential.revoke()
                revoked.append(credential)
        mark_in_status_lists(revoked)
        return revoked


def mark_in_status_lists(revoked: list[Credential]) -> None:
    """Issuer: publish that the SD-JWT VCs among these are revoked. Wake their holders.

    revoked: of one organization. In the transaction that revokes them.
    """
    listed = [one for one in revoked if one.format == CredentialFormat.SD_JWT]
    places = [
        Place(one.revocation_registry_id, one.revocation_index)
        for one in listed
        if one.revocation_index is not None
    ]
    if places:
        TokenStatusList.revoke_places(revoked[0].tenant_id, places)
        Credential.wake_holders(listed)


def publish_and_notify_all(credentials: QuerySet[Credential]) -> None:
    """Issuer: publish one list for each registry, then notify the holders.

    For the first REVOKED_AT_ONCE credentials that are revoked and not published yet.
    Each step is a transaction of its own. If one fails, the next call, or a worker,
    goes on. Raises the errors of publish_list().
    """
    waiting = credentials.filter(
        state=Credential.State.REVOKED, revocation_published_at=None
    )
    chosen = list(waiting.select_related(*PARTIES).order_by("pk")[:REVOKED_AT_ONCE])
    registry_ids = {credential.revocation_registry_id for credential in chosen}
    for registry in find_registries(registry_ids):
        publish_list(registry)
    for credential in chosen:
        notify_holder(credential)


def count_revocable(credentials: QuerySet[Credential]) -> Revocable:
    """How many of these are issued, and how many are revoked."""
    State = Credential.State
    return Revocable(
        credentials.filter(state=State.ISSUED).count(),
        credentials.filter(state=State.REVOKED).count(),
    )


def find_registries(registry_ids: Iterable[str]) -> QuerySet[RevocationRegistry]:
    rows = RevocationRegistry.objects.filter(registry_id__in=registry_ids)
    return rows.select_related("tenant__network", "definition")


def publish_and_notify(credential: Credential) -> None:
    """Issuer: publish the list, then notify the holder. This can be repeated.

    Of another format than AnonCreds the list is what the transaction that revoked it
    has changed. Raises the errors of publish_list().
    """
    if credential.format == CredentialFormat.ANONCREDS:
        publish_list(find_registries([credential.revocation_registry_id]).get())
        notify_holder(credential)


def notify_holder(credential: Credential) -> None:
    """Issuer: record that the list is published, and tell the holder.

    In one transaction. The holder gets no message if there is no connection any more.
    """
    index = credential.revocation_index
    assert index is not None, "a revoked credential has a slot"
    with transactions.atomic():
        credential.lock()
        rows = Credential.objects.filter(pk=credential.pk)
        rows.update(revocation_published_at=timezone.now())
        if credential.connection:
            notification = messages.build_revocation(
                credential.revocation_registry_id,
                index,
                credential.message_format,
            )
            outbox.enqueue_if_possible(credential.connection, notification)


def publish_before_deletion(credentials: QuerySet[Credential]) -> list[UUID]:
    """Publish the lists of the revoked credentials among these. Return their ids.

    A list is made from the rows, so a revoked row can be deleted only after its list
    is published.
    """
    revoked = credentials.filter(
        role=Credential.Role.ISSUER, state=Credential.State.REVOKED
    )
    listed = list(revoked.values_list("pk", flat=True))
    chosen = Credential.objects.filter(pk__in=listed)
    registry_ids = set(chosen.values_list("revocation_registry_id", flat=True))
    for registry in find_registries(registry_ids):
        publish_list(registry)
    return listed


def publish_list(registry: RevocationRegistry) -> None:
    """Publish one new list with all revoked credentials that are not listed yet.

    Does nothing if there are none. A registry has one list per second. A call in the
    second of the newest list replaces that list, or waits for the next second if a
    prover or a reader got it already (docs/decisions/lists-are-final-once-given.md).
    After the wait it includes what was revoked meanwhile.

    Nothing is locked while the list is made or waits. A list is accepted only if it
    follows the newest one: if another process was faster, this starts again. On a
    remote ledger it must be called outside of transactions. 503 `ledger_unavailable`
    if the newest list cannot be read, `list_superseded` if other processes are faster
    until LEDGER_TIMEOUT.
    """
    ledger = ledger_with(registry.tenant.network, registry.registry_id)
    deadline = time.monotonic() + settings.LEDGER_TIMEOUT
    while True:
        try:
            _publish_next_list(registry, ledger)
            return
        except Unavailable as error:
            if error.code != "list_superseded" or time.monotonic() > deadline:
                raise


def _publish_next_list(registry: RevocationRegistry, ledger: Ledger) -> None:
    newest = _newest_list(registry, ledger)
    if newest is None:
        raise Unavailable(
            "ledger_unavailable",
            "The revocation list cannot be read from the ledger. Try again later.",
        )
    if not unlisted_indices(registry, newest):
        return
    timestamp = newest["timestamp"]
    if int(time.time()) == timestamp:
        replacement = _next_list(registry, newest, timestamp)
        with _while_newest(newest, registry, ledger):
            if ledger.replace_status_list(replacement):
                return
    timestamp = second_after(timestamp)  # waits; so what is revoked is read again
    following = _next_list(registry, newest, timestamp)
    with _while_newest(newest, registry, ledger):
        ledger.publish_status_list(following)


def _newest_list(registry: RevocationRegistry, ledger: Ledger) -> StatusListBody | None:
    # Not the final list: what we only add to need not be marked as given.
    until = int(time.time()) + CLOCK_SKEW_SECONDS
    return ledger.status_list(registry.registry_id, until)


@contextmanager
def _while_newest(
    status_list: StatusListBody, registry: RevocationRegistry, ledger: Ledger
) -> Iterator[None]:
    """Write a list that follows `status_list` in this block. 503 `list_superseded`.

    On the local network it locks the registry. A remote ledger compares by itself.
    """
    if ledger.is_remote:
        yield
        return
    with transactions.atomic():
        RevocationRegistry.objects.select_for_update().get(pk=registry.pk)
        if _newest_list(registry, ledger) != status_list:
            raise list_superseded()
        yield


def _next_list(
    registry: RevocationRegistry, newest: StatusListBody, timestamp: int
) -> StatusListBody:
    """The newest list with all that is revoked now, as the list of `timestamp`.

    Stores nothing.
    """
    return anoncreds.update_status_list(
        registry.definition.public_part,
        registry.public_part,
        vault.unseal(registry, "private_key"),
        newest,
        unlisted_indices(registry, newest),
        timestamp,
    )


def unlisted_indices(
    registry: RevocationRegistry, status_list: StatusListBody
) -> list[int]:
    """The indices of revoked credentials that are not revoked in the list."""
    credentials = Credential.objects.filter(
        revocation_registry_id=registry.registry_id,
        role=Credential.Role.ISSUER,
        state=Credential.State.REVOKED,
        # True of each revoked one; by it PostgreSQL finds the index of their places.
        revocation_index__isnull=False,
    )
    listed = status_list["revocationList"]
    indices = credentials.values_list("revocation_index", flat=True)
    return sorted(index for index in indices if index is not None and not listed[index])


def second_after(timestamp: int) -> int:
    """Wait up to 2 s for a second later than `timestamp` (unix seconds). Return it."""
    deadline = time.monotonic() + 2
    while int(time.time()) <= timestamp and time.monotonic() < deadline:
        time.sleep(0.02)
    return max(int(time.time()), timestamp + 1)
