"""Kiosks: what is on a screen that asks one person after the other.

A screen shows a request as a link, then its answer for some seconds, then the next
request. An open request is shown again until it is answered or old; one that nobody
answered is removed, so that they do not pile up.
"""

import math
from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from django.conf import settings

from connections.exchange import PARTIES
from connections.link_expiry import LINK_EXPIRED
from connections.protocols import connectionless
from core.database import clock
from core.errors import Conflict, Invalid
from core.work import network_reads, transactions
from tenants import tokens
from tenants.models import Notes, Tenant
from verifications.models import Kiosk, Verification, VerificationPolicy
from verifications.openid4vp import requests as openid4vp
from verifications.openid4vp.requests import OPENID4VP, compile_policy
from verifications.present_proof import verifier
from wallets.models import Wallet

TOKEN_PREFIX = "agk"
MAX_KIOSKS = 100  # of an organization
MIN_SECONDS, MAX_SECONDS = 3, 60
# Of a request. Who photographs the code cannot answer it from elsewhere much later.
REQUEST_LIFETIME = timedelta(minutes=10)
# An answer that no screen asked for in this time is not shown to whoever is there then.
MAX_DELAY = timedelta(minutes=1)
SEEN_INTERVAL = timedelta(minutes=1)


class State(StrEnum):
    """asking → valid | invalid | declined → over; asking → over"""

    ASKING = "asking"
    VALID = "valid"
    INVALID = "invalid"
    DECLINED = "declined"
    OVER = "over"  # the next request is due


class Screen(NamedTuple):
    """What a kiosk shows. seconds: for how long, of an answer."""

    state: State
    verification: Verification | None = None
    seconds: int = 0


class NoCard(NamedTuple):
    """What a kiosk says to whoever has no card, and the address where they go on."""

    text: str = ""
    url: str = ""


def create_kiosk(
    tenant: Tenant,
    policy: VerificationPolicy,
    name: str,
    seconds: int,
    shown_items: list[str],
    protocol: str = "",
    no_card: NoCard = NoCard(),  # noqa: B008 – it cannot change
) -> Kiosk:
    """Create a kiosk with its link as `url`, which cannot be read again.

    protocol: OPENID4VP, or "" for DIDComm. 400 `unknown_item` if an item is not one that
    shows values; 409 `too_many_kiosks`, `not_provable`.
    """
    asked = policy.unsealed_policy()
    if protocol == OPENID4VP:
        compile_policy(tenant, asked)
    else:
        asked.for_anoncreds()
    showable = [item.policy_name for item in asked.attributes]
    if unknown := [item for item in shown_items if item not in showable]:
        message = f"The policy has no item that shows values and is named {unknown[0]}."
        raise Invalid("unknown_item", message, {"shownItems": [message]})
    token = tokens.generate_token(TOKEN_PREFIX)
    kiosk = Kiosk(
        tenant=tenant,
        policy=policy,
        name=name,
        seconds=seconds,
        shown_items=shown_items,
        protocol=protocol,
        no_card_text=no_card.text,
        no_card_url=no_card.url,
        sha256=tokens.digest_of(token),
    )
    with transactions.atomic():
        # One call at a time counts and inserts.
        tenant.lock_row()
        if Kiosk.objects.filter(tenant=tenant).count() >= MAX_KIOSKS:
            message = (
                f"An organization has at most {MAX_KIOSKS} kiosks. Revoke one first."
            )
            raise Conflict("too_many_kiosks", message)
        kiosk.save(force_insert=True)
    kiosk.url = f"{settings.PUBLIC_URL}/kiosk/{token}"
    return kiosk


def find_kiosk(token: str) -> Kiosk | None:
    """The kiosk with this token, or None. 503 if its organization is being moved."""
    if not tokens.is_well_formed(token, TOKEN_PREFIX):
        return None
    rows = Kiosk.objects.select_related("tenant").filter(tenant__deleted_at=None)
    kiosk = rows.filter(sha256=tokens.digest_of(token)).first()
    if kiosk:
        kiosk.tenant.require_thawed()
    return kiosk


def revoke_kiosk(kiosk: Kiosk) -> None:
    """Delete a kiosk: its link is unknown from now on."""
    kiosk.delete()
    remove_unanswered(kiosk.verification_id)


def next_screen(kiosk: Kiosk) -> Screen:
    """What a kiosk shows now, which may be the answer that has come, or a new request.

    Each answer is shown for as long as the kiosk says, counted from when the first
    screen asks for it.
    """
    now = clock.now()
    # Stored at most once a minute.
    if not kiosk.last_seen_at or now - kiosk.last_seen_at > SEEN_INTERVAL:
        Kiosk.objects.filter(pk=kiosk.pk).update(last_seen_at=now, updated_at=now)
    screen = read_screen(kiosk)
    if screen.state == State.OVER:
        renew_request(kiosk)
        kiosk.refresh_from_db(fields=["verification_id", "shown_at"])
        return read_screen(kiosk)
    if screen.state != State.ASKING and not kiosk.shown_at:
        rows = Kiosk.objects.filter(
            pk=kiosk.pk, verification_id=kiosk.verification_id, shown_at=None
        )
        rows.update(shown_at=clock.now())
    return screen


def read_screen(kiosk: Kiosk) -> Screen:
    """What a kiosk shows now. Nothing is stored."""
    rows = Verification.objects.select_related("connection__wallet__tenant")
    found = rows.filter(pk=kiosk.verification_id, tenant=kiosk.tenant_id).first()
    state = state_of(found) if found else State.OVER
    if found is None or state == State.OVER:
        return Screen(State.OVER)
    if state == State.ASKING:
        return Screen(state, found)
    now = clock.now()
    duration = timedelta(seconds=kiosk.seconds)
    if kiosk.shown_at:
        end = kiosk.shown_at + duration
    else:
        # What came too long ago is not shown any more.
        came = found.verified_at or found.in_state_since
        end = now + duration if now - came <= MAX_DELAY else now
    if end <= now:
        return Screen(State.OVER)
    return Screen(state, found, math.ceil((end - now).total_seconds()))


def state_of(verification: Verification) -> State:
    """The state of a kiosk's request, however long its answer was shown."""
    if verification.state == Verification.State.ACCEPTED:
        return State.VALID if verification.is_valid else State.INVALID
    if verification.state == Verification.State.REJECTED:
        # `declined` is our own code: somebody here has withdrawn it.
        is_ours = verification.problem in ("declined", LINK_EXPIRED)
        return State.OVER if is_ours else State.DECLINED
    link = verification.live_connection
    is_old = verification.created_at + REQUEST_LIFETIME <= clock.now()
    return State.OVER if is_old or link is None else State.ASKING


def ask_again(kiosk: Kiosk, verification_id: UUID) -> None:
    """Put a new request on the screen before the time of the answer on it is over.

    Does nothing if this is not the request on the screen, or is not answered.
    """
    if kiosk.verification_id == verification_id and read_screen(kiosk).seconds:
        replace_request(kiosk)
        kiosk.refresh_from_db(fields=["verification_id", "shown_at"])


def renew_request(kiosk: Kiosk) -> None:
    """Put a new request on the screen, and remove the last if nobody answered it."""
    if replace_request(kiosk):
        remove_unanswered(kiosk.verification_id)


@network_reads.atomic_with_reads
def replace_request(kiosk: Kiosk) -> bool:
    """Create a request by link, and put it on the kiosk, whose row is locked first.

    Return False, and do nothing, if another call was faster, or the kiosk was revoked.
    Raises the errors of send_request_by_link().
    """
    rows = Kiosk.objects.select_for_update().only("pk")
    # As the caller has read it: another call would have changed the verification.
    unchanged = rows.filter(pk=kiosk.pk, verification_id=kiosk.verification_id)
    if unchanged.first() is None:
        return False
    wallet = Wallet.of_organization(kiosk.tenant)
    policy = kiosk.policy.unsealed_policy()
    notes: Notes = {"reference": kiosk.name}  # so that lists say where it was
    if kiosk.protocol == OPENID4VP:
        made = openid4vp.send_request_by_link(
            wallet, policy, kiosk.policy_id, notes=notes
        )
    else:
        made = verifier.send_request_by_link(
            wallet,
            policy,
            kiosk.policy_id,
            options=connectionless.default_options(kiosk.tenant),
            notes=notes,
        )
    end = clock.now() + REQUEST_LIFETIME
    assert made.connection
    made.connection.update_columns(expires_at=end, expiry_due_at=end)
    Kiosk.objects.filter(pk=kiosk.pk).update(verification_id=made.pk, shown_at=None)
    return True


@transactions.atomic()
def remove_unanswered(verification_id: UUID | None) -> None:
    """Remove a request that nobody answered. An answer stays, as any verification."""
    rows = Verification.objects.select_related(*PARTIES).filter(pk=verification_id)
    if found := rows.first():
        found.lock()  # an answer that comes now waits, or has come
    found = rows.first()  # read again, under the lock
    if found and (
        found.state == Verification.State.REQUESTED or found.problem == LINK_EXPIRED
    ):
        found.remove()


def shown_values(kiosk: Kiosk, verification: Verification) -> Iterator[tuple[str, str]]:
    """Yield the attributes of a valid proof that the kiosk shows, with their values."""
    proof = verification.unsealed_proof() or {}
    for item in kiosk.shown_items:
        entry = proof.get(item)
        if entry and entry.get("revealed"):
            yield from entry.get("attributes", {}).items()
