"""A holder shows a code, and whoever may scan it asks the wallet by a policy.

The code says nothing of the wallet. Who takes it learns that it was taken, and no more
until the holder answers: the request waits in the wallet, as that of a link does.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from agency.holders.wallet.links import lock_link
from agency.holders.wallet.models import PersonalLink, ShownCard
from agency.words.states import words_of
from connections.api.serializers import link_protocol
from core.errors import Conflict
from core.valkey import rate_limits
from core.work import network_reads, transactions
from core.work.retention import BatchBudget, delete_in_batches
from tenants import tokens
from tenants.models import Tenant
from verifications.api.verifier import request_function
from verifications.models import Kiosk, Verification, VerificationPolicy
from verifications.openid4vp.requests import OPENID4VP
from verifications.proofs.policy import Policy

PREFIX = "agc"
LIFETIME = timedelta(seconds=60)
# For so long a request waits in the wallet.
WAITS = timedelta(days=1)
A_MINUTE = 10  # codes of a wallet
SCANS_A_MINUTE = 60  # of a kiosk, or of an organization's studio; right ones too
MAX_WAITING = 20  # requests that are listed
MAX_GIVEN = 200  # characters of what a scanner has read


def show_card(link: PersonalLink) -> tuple[ShownCard, str]:
    """Make a code for the wallet. Return it with its address, which is not stored.

    The codes before it that nobody has taken end. 429 `too_many_requests`; 404
    `wallet_link_gone` if the link was replaced or revoked meanwhile.
    """
    rate_limits.take_token("shown_cards", str(link.wallet_id), A_MINUTE)
    token = tokens.generate_token(PREFIX)
    with transactions.atomic():
        lock_link(link)
        ShownCard.objects.filter(link=link, taken_at=None).delete()
        made = ShownCard.objects.create(
            tenant_id=link.tenant_id, link=link, digest=tokens.digest_of(token)
        )
    return made, settings.PUBLIC_URL + reverse("web_wallet:shown_card", args=[token])


def ends_at(card: ShownCard) -> datetime:
    return card.created_at + LIFETIME


def find_shown(given: str, taker: Tenant | Kiosk) -> ShownCard:
    """The code that a scanner has read: its address, or its token.

    409 `card_not_takeable` for whatever it is instead, so that nobody learns more; 429
    `too_many_requests`.
    """
    rate_limits.take_token("card_scans", str(taker.pk), SCANS_A_MINUTE)
    token = given.strip().rpartition("/")[2]
    if len(given) <= MAX_GIVEN and tokens.is_well_formed(token, PREFIX):
        rows = ShownCard.objects.filter(
            digest=tokens.digest_of(token),
            taken_at=None,
            created_at__gt=timezone.now() - LIFETIME,
            link__wallet__deleted_at=None,
            tenant__deleted_at=None,
            tenant__frozen_at=None,
        )
        if found := rows.first():
            return found
    raise not_takeable()


def not_takeable() -> Conflict:
    return Conflict(
        "card_not_takeable",
        "This is no code of a card, or it was scanned before or is older than a "
        "minute. Ask the holder to show a new one.",
    )


def hand_over(card: ShownCard, request: Verification) -> None:
    """Let a request by link wait in the wallet that shows the code.

    In the caller's transaction: of several scanners at once one wins, and the others
    get 409 `card_not_takeable`. 409 `not_provable` for a request of DIDComm to a
    wallet of another organization, which answers none.
    """
    link = request.require_connection()
    if card.tenant_id != request.tenant_id and not link.wallet_link:
        raise Conflict(
            "not_provable",
            "This wallet answers only what is asked for by OpenID4VP here.",
        )
    now = timezone.now()
    # Without a join: the conditions are tested again when another scanner was faster.
    rows = ShownCard.objects.filter(
        pk=card.pk, taken_at=None, created_at__gt=now - LIFETIME
    )
    if not rows.update(request_token=link.token, taken_at=now, updated_at=now):
        raise not_takeable()


def ask_function(
    card: ShownCard, policy: VerificationPolicy
) -> Callable[[], Verification]:
    """Return a function that asks the wallet that shows the code by a policy.

    It makes the request by link and hands it over, in one transaction that runs again
    after each ledger read. Errors as of hand_over() and of requests by link. A wallet of
    another organization is asked by OpenID4VP, and so is what only that can ask.
    """
    tenant, asked = policy.tenant, policy.unsealed_policy()
    is_by_openid = card.tenant_id != tenant.pk or not is_for_didcomm(asked)
    ask = request_function(
        tenant,
        policy=asked,
        policy_id=policy.pk,
        link_options={
            "protocol": OPENID4VP if is_by_openid else link_protocol(tenant),
            "expiresAt": timezone.now() + WAITS,
        },
    )
    return partial(ask_and_hand_over, ask, card)


def is_for_didcomm(policy: Policy) -> bool:
    try:
        policy.for_anoncreds()
    except Conflict:
        return False
    return True


@network_reads.atomic_with_reads
def ask_and_hand_over(ask: Callable[[], Verification], card: ShownCard) -> Verification:
    request = ask()
    hand_over(card, request)
    return request


def waiting_requests(link: PersonalLink) -> list[Any]:
    """The requests that wait since a code of the wallet was taken, newest first.

    Each with what name_rows() adds, and `link_token`: of the link that leads to it.
    """
    cards = ShownCard.objects.filter(link=link, taken_at__gt=timezone.now() - WAITS)
    newest = cards.order_by("-taken_at").values_list("request_token", flat=True)
    taken = list(newest[:MAX_WAITING])
    if not taken:
        return []
    rows: Any = Verification.objects.filter(
        connection__token__in=taken,
        role=Verification.Role.VERIFIER,
        state=Verification.State.REQUESTED,
        tenant__deleted_at=None,
    )
    found = [
        row
        for row in rows.select_related("connection", "tenant")
        if row.connection.is_open and not row.connection.is_expired
    ]
    words = words_of(Verification(role="prover", state=Verification.State.REQUESTED))
    for row in found:
        row.is_offer, row.words = False, words
        row.title, row.peer = row.unsealed_policy().name, row.tenant.name
        row.link_token = row.connection.token
    return found


def forget_old_cards() -> int:
    old = ShownCard.objects.filter(created_at__lt=timezone.now() - WAITS)
    return delete_in_batches(old, BatchBudget(), by="created_at")
