"""Passkeys that open a web wallet in place of the PIN (WebAuthn level 2).

A passkey is bound to a personal link and to this host, and the device asks its owner
each time. It is added after the PIN was given once more, and ends with the link.
"""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from fido2.server import Fido2Server
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialUserEntity,
    RegistrationResponse,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from agency.holders.wallet.links import lock_link
from agency.holders.wallet.models import PersonalLink, WalletPasskey
from core.errors import Conflict, Forbidden
from core.valkey import rate_limits
from tenants import audit

MAX_PASSKEYS = 5  # of a link
ANSWERED_WITHIN = timedelta(minutes=5)
A_MINUTE = 30  # tries of a link at an address
MAX_CREDENTIAL = 20_000  # characters of what a browser sends
MAX_STORED = 2_600  # bytes of an id and its key: rows of an index are bounded
VERIFIED = UserVerificationRequirement.REQUIRED
State = dict[str, Any]
ADD, OPEN = "add", "open"


def server() -> Fido2Server:
    host = urlsplit(settings.PUBLIC_URL).hostname or ""
    party = PublicKeyCredentialRpEntity(id=host, name=host)
    own = origin_of(settings.PUBLIC_URL)
    return Fido2Server(party, verify_origin=lambda given: origin_of(given) == own)


def origin_of(address: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port, however they are spelled. ValueError for a bad port."""
    parts = urlsplit(address)
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, parts.hostname, parts.port or usual


def begin_adding(link: PersonalLink) -> dict[str, str]:
    """What a page needs to make a passkey: `options` as JSON, and the signed `state`.

    For who has just given the PIN: complete_adding() takes the state as proof of that.
    """
    tenant, wallet = link.wallet.tenant, link.wallet
    owner = PublicKeyCredentialUserEntity(
        id=link.pk.bytes,
        name=tenant.name,
        display_name=wallet.owner_name or tenant.name,
    )
    options, state = server().register_begin(
        owner,
        credentials_of(link),
        resident_key_requirement=ResidentKeyRequirement.PREFERRED,
        user_verification=VERIFIED,
    )
    return sign(link, ADD, options, state)


def begin_opening(link: PersonalLink) -> dict[str, str]:
    """What a page needs to ask for a passkey of the link; {} if it has none."""
    known = credentials_of(link)
    if not known:
        return {}
    options, state = server().authenticate_begin(known, user_verification=VERIFIED)
    return sign(link, OPEN, options, state)


def credentials_of(link: PersonalLink) -> list[AttestedCredentialData]:
    rows = link.passkeys.order_by("pk").values_list("credential", flat=True)
    return [AttestedCredentialData(bytes(credential)) for credential in rows]


def complete_adding(
    link: PersonalLink, form: Mapping[str, str], by: HttpRequest
) -> None:
    """Store the passkey, with its audit entry, in one transaction.

    403 `passkey_refused`; 409 `passkey_limit`; 404 `wallet_link_gone`. The same one
    again changes nothing.
    """
    state, answer = read_answer(link, ADD, form)
    try:
        made = server().register_complete(state, RegistrationResponse.from_dict(answer))
    except Exception as error:  # fido2 raises what its parsers and verifiers do
        raise refused() from error
    if made.credential_data is None or len(made.credential_data) > MAX_STORED:
        raise refused()
    with transaction.atomic():
        lock_link(link)
        if made.credential_data in credentials_of(link):
            return
        if link.passkeys.count() >= MAX_PASSKEYS:
            raise Conflict(
                "passkey_limit", f"A wallet has at most {MAX_PASSKEYS} passkeys."
            )
        WalletPasskey.objects.create(
            tenant_id=link.tenant_id,
            link=link,
            credential=bytes(made.credential_data),
            sign_count=made.counter,
        )
        audit.record("wallet.passkey_added", link.wallet, by=by)


def check_passkey(link: PersonalLink, form: Mapping[str, str], address: str) -> None:
    """Raise unless a passkey of the link has signed the challenge of its page.

    Each challenge is answered once: an answer ends it, and those of before. 403
    `passkey_refused`; 429 `too_many_requests`.
    """
    rate_limits.take_token("passkeys_of_link", f"{link.pk} {address}", A_MINUTE)
    state, answer = read_answer(link, OPEN, form)
    known = credentials_of(link)  # a database that is away refuses nobody
    try:
        parsed = AuthenticationResponse.from_dict(answer)
        used = server().authenticate_complete(state, known, parsed)
        count = parsed.response.authenticator_data.counter
    except Exception as error:  # fido2 raises what its parsers and verifiers do
        raise refused() from error
    asked_at = datetime.fromtimestamp(state["at"] / 10**6, UTC)
    rows = WalletPasskey.objects.filter(
        Q(asked_at=None) | Q(asked_at__lt=asked_at),
        # A device that counts has counted on; the others always say 0.
        Q(sign_count=0) if not count else Q(sign_count__lt=count),
        link=link,
        credential=bytes(used),
    )
    now = timezone.now()
    if not rows.update(
        asked_at=asked_at, sign_count=count, used_at=now, updated_at=now
    ):
        raise refused()


@transaction.atomic
def remove_passkey(link: PersonalLink, key: UUID, by: HttpRequest) -> None:
    """Does nothing if it is gone."""
    if link.passkeys.filter(pk=key).delete()[0]:
        audit.record("wallet.passkey_removed", link.wallet, by=by)


def sign(link: PersonalLink, use: str, options: Any, state: State) -> dict[str, str]:
    made = state | {"at": time.time_ns() // 1000}
    shown = json.dumps(dict(options)["publicKey"])
    return {"options": shown, "state": signer_of(link, use).sign_object(made)}


def read_answer(
    link: PersonalLink, use: str, form: Mapping[str, str]
) -> tuple[State, dict[str, Any]]:
    """The state that a page was given, and what the browser answers to its options."""
    text = form.get("credential", "")
    try:
        signer = signer_of(link, use)
        state = signer.unsign_object(form.get("state", ""), max_age=ANSWERED_WITHIN)
        answer = json.loads(text) if len(text) <= MAX_CREDENTIAL else None
    except (BadSignature, ValueError, RecursionError) as error:
        raise refused() from error
    if not isinstance(answer, dict):
        raise refused()
    return state, answer


def signer_of(link: PersonalLink, use: str) -> TimestampSigner:
    return TimestampSigner(salt=f"agency.web_wallet.passkey {use} {link.pk}")


def refused() -> Forbidden:
    return Forbidden("passkey_refused", "This passkey does not open the wallet.")
