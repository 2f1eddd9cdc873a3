"""The PIN of a personal link: how often one may guess it.

A browser that gave the right PIN of a link before is known to it
(known_browsers.py). The tries of others never count for it.
"""

import math
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.hashers import check_password, make_password
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agency.holders.wallet.links import lock_link
from agency.holders.wallet.models import PersonalLink, PinTry
from agency.holders.wallet.weak_pins import require_usable
from core.errors import Conflict, Forbidden, TooOften
from core.valkey import rate_limits
from core.work.retention import BatchBudget, delete_in_batches
from tenants import audit, vault

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# Wrong tries of a link from one address, and from anywhere, of unknown browsers.
OF_ADDRESS, OF_LINK = 5, 20  # in an hour, in a day
# Those of a known browser in an hour.
OF_BROWSER = 10
# All tries in a minute, right ones too: each hashes a PIN. Of one link, in all known
# browsers, and in others at each address; of an address, which many people may share,
# where nobody takes turns.
ALL_OF_LINK, ALL_OF_ADDRESS = 30, 600
# From an address with so many wrong tries in an hour, unknown browsers take turns.
OF_CROWD, TURN_SECONDS = 300, 2


class TooManyPins(TooOften):
    """429 `too_many_pins`: the next try may be in `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("too_many_pins", "The PIN was wrong too often.", retry_after)


class WrongPin(Forbidden):
    """403 `wrong_pin`. next: the refusal of the next try if there is none left."""

    def __init__(self, tries_left: int, wait: int) -> None:
        super().__init__("wrong_pin", "This is not the PIN of the wallet.")
        self.tries_left = tries_left
        self.next = TooManyPins(wait)


def choose_pin(link: PersonalLink, pin: str, address: str) -> None:
    """Store the first PIN, with its audit entry, in one transaction.

    Of two browsers at once, one chooses. Raises Invalid `pin_not_usable`, TooOften
    `too_many_requests`, Conflict `pin_chosen` if there is a PIN already, NotFound
    `wallet_link_gone`.
    """
    require_usable(pin)
    rate_limits.take_token("pins_of_link", f"{link.pk} {address}", ALL_OF_LINK)
    rate_limits.take_token("pins_of_address", address, ALL_OF_ADDRESS)
    hashed, now = make_password(pin), timezone.now()
    with transaction.atomic():
        lock_link(link)
        rows = PersonalLink.objects.filter(pk=link.pk, pin="")
        if not rows.update(pin=hashed, pin_chosen_at=now, updated_at=now):
            raise Conflict("pin_chosen", "A PIN was chosen before. Enter it.")
        actor = audit.SYSTEM._replace(origin=address)
        audit.record("wallet.link_opened", link.wallet, by=actor)
    link.pin = hashed


def check_pin(
    link: PersonalLink, pin: str, address: str, browser: UUID | None = None
) -> None:
    """Compare a PIN with that of the link.

    Raises WrongPin, TooManyPins, TooOften `too_many_requests` (too fast, or before the
    turn of the link), NotFound `wallet_link_gone`.

    A try is stored and committed before the PIN is compared, below the lock of the
    link, so that tries at the same time are no more than one after the other. If the
    PIN was right, the try is deleted, and the wrong ones of this link and address are
    forgiven. address: of the client; only its digest is stored. browser: its id if the
    link knows it.
    """
    digest = vault.keyed_digest(address)
    # Who may not try takes nothing away from others of the link or the address.
    require_tries_left(link, digest, browser)
    whose = f"{link.pk} {'known' if browser else address}"
    rate_limits.take_token("pins_of_link", whose, ALL_OF_LINK)
    if not browser and is_crowd(digest):
        rate_limits.take_turn("pin_turns", address, str(link.pk), TURN_SECONDS)
    elif not browser:
        rate_limits.take_token("pins_of_address", address, ALL_OF_ADDRESS)
    with transaction.atomic():
        lock_link(link)
        require_tries_left(link, digest, browser)
        tried = PinTry(
            tenant_id=link.tenant_id, link=link, address=digest, browser=browser
        )
        tried.save(force_insert=True)
    if not check_password(pin, link.pin):
        raise WrongPin(*count_tries_left(link, digest, browser))
    tried.delete()
    unknown = PinTry.objects.filter(link=link, address=digest, browser=None)
    unknown.update(is_forgiven=True)


def is_crowd(digest: bytes) -> bool:
    tries = PinTry.objects.filter(address=digest, browser=None)
    return len(newest_times(tries, OF_CROWD, HOUR)) == OF_CROWD


def require_tries_left(link: PersonalLink, digest: bytes, browser: UUID | None) -> None:
    left, wait = count_tries_left(link, digest, browser)
    if not left:
        raise TooManyPins(wait)


def count_tries_left(
    link: PersonalLink, digest: bytes, browser: UUID | None
) -> tuple[int, int]:
    """Return how many tries are left, and if none is the seconds until one is."""
    tries = PinTry.objects.filter(link=link, browser=browser)
    limits = [(tries, OF_BROWSER, HOUR)]
    if not browser:
        of_address = tries.filter(address=digest, is_forgiven=False)
        limits = [(of_address, OF_ADDRESS, HOUR), (tries, OF_LINK, DAY)]
    left, wait = [], [0]
    for rows, limit, period in limits:
        times = newest_times(rows, limit, period)
        left.append(limit - len(times))
        if not left[-1]:
            seconds = (times[-1] + period - timezone.now()).total_seconds()
            wait.append(max(1, math.ceil(seconds)))
    return min(left), max(wait)


def newest_times(
    rows: QuerySet[PinTry], limit: int, period: timedelta
) -> list[datetime]:
    """When the newest of the rows were made, at most `limit`, within the period."""
    recent = rows.filter(created_at__gt=timezone.now() - period)
    return list(
        recent.order_by("-created_at").values_list("created_at", flat=True)[:limit]
    )


def forget_old_tries() -> int:
    old = PinTry.objects.filter(created_at__lt=timezone.now() - DAY)
    return delete_in_batches(old, BatchBudget(), by="created_at")
