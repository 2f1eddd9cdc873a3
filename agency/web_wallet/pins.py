"""The PIN of a personal link: what may be chosen, and how often one may guess."""

import math
from datetime import timedelta
from typing import Any

from django.contrib.auth.hashers import check_password, make_password
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agency.core import rate_limits
from agency.core.errors import Conflict, Forbidden, Invalid, TooOften
from agency.core.retention import BatchBudget, delete_in_batches
from agency.web_wallet.links import lock_link
from agency.web_wallet.models import PersonalLink, PinTry
from tenants import audit, vault

MIN_DIGITS, MAX_DIGITS = 6, 12
# Wrong tries from one address, over all links.
OF_ADDRESS, ADDRESS_PERIOD = 5, timedelta(hours=1)
# Wrong tries of one link, from anywhere.
OF_LINK, LINK_PERIOD = 20, timedelta(days=1)
# All tries in a minute, right ones too: each hashes a PIN. Many people may share an
# address.
ALL_OF_LINK, ALL_OF_ADDRESS = 30, 60


def require_usable(pin: str) -> None:
    """Raise Invalid `pin_not_usable` for one that is too short or guessed at once."""
    is_number = pin.isascii() and pin.isdecimal()
    steps = {ord(two) - ord(one) for one, two in zip(pin, pin[1:], strict=False)}
    # All digits are the same, or one after the other.
    is_simple = steps in ({0}, {1}, {-1})
    if not (is_number and MIN_DIGITS <= len(pin) <= MAX_DIGITS) or is_simple:
        raise Invalid(
            "pin_not_usable",
            f"A PIN has {MIN_DIGITS} to {MAX_DIGITS} digits, which are neither all "
            "the same nor in a row.",
        )


def limit_tries(link: PersonalLink, address: str) -> None:
    """Raise TooOften `too_many_requests` where PINs are given too fast."""
    rate_limits.take_token("pins_of_link", str(link.pk), ALL_OF_LINK)
    rate_limits.take_token("pins_of_address", address, ALL_OF_ADDRESS)


@transaction.atomic
def choose_pin(link: PersonalLink, pin: str, address: str) -> None:
    """Store the first PIN, with its audit entry, in one transaction.

    Of two browsers at once, one chooses. Raises Invalid `pin_not_usable`, Conflict
    `pin_chosen` if there is a PIN already, NotFound `wallet_link_gone`.
    """
    require_usable(pin)
    lock_link(link)
    hashed, now = make_password(pin), timezone.now()
    rows = PersonalLink.objects.filter(pk=link.pk, pin="")
    if not rows.update(pin=hashed, pin_chosen_at=now, updated_at=now):
        raise Conflict("pin_chosen", "A PIN was chosen before. Enter it.")
    link.pin = hashed
    actor = audit.SYSTEM._replace(origin=address)
    audit.record("wallet.link_opened", link.wallet, by=actor)


def check_pin(link: PersonalLink, pin: str, address: str) -> None:
    """Compare a PIN with that of the link.

    Raises TooOften `too_many_pins`, Forbidden `wrong_pin`, NotFound `wallet_link_gone`.

    A try is stored and committed before the PIN is compared, below the lock of the
    link, so that tries at the same time are no more than one after the other. If the
    PIN was right, the try is deleted: wrong ones stay, and are counted. address: of the
    browser; only its digest is stored.
    """
    digest = vault.keyed_digest(address)
    with transaction.atomic():
        lock_link(link)
        wait = max(
            wait_for(
                PinTry.objects.filter(address=digest), OF_ADDRESS, ADDRESS_PERIOD
            ),
            wait_for(PinTry.objects.filter(link=link), OF_LINK, LINK_PERIOD),
        )
        if wait:
            raise TooOften("too_many_pins", "The PIN was wrong too often.", wait)
        tried = PinTry(tenant_id=link.tenant_id, link=link, address=digest)
        tried.save(force_insert=True)
    if not check_password(pin, link.pin):
        raise Forbidden("wrong_pin", "This is not the PIN of the wallet.")
    tried.delete()


def wait_for(rows: "QuerySet[Any]", limit: int, period: timedelta) -> int:
    """The seconds until fewer than `limit` of the rows are younger than the period."""
    times = rows.order_by("-created_at").values_list("created_at", flat=True)
    newest = list(times[:limit])
    if len(newest) < limit:
        return 0
    left = newest[-1] + period - timezone.now()
    return max(0, math.ceil(left.total_seconds()))


def forget_old_tries() -> int:
    old = PinTry.objects.filter(created_at__lt=timezone.now() - LINK_PERIOD)
    return delete_in_batches(old, BatchBudget(), by="created_at")
