"""The token endpoint: a code of a link, once, for an access token."""

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import NotRequired, TypedDict

from django.utils import timezone

from core.text.bounded_json import JSON
from core.work import transactions
from credentials.models import Credential, Grant
from credentials.models.grant import MAX_TRIES, TOKEN_SECONDS, digest_of
from credentials.openid4vci import proofs
from credentials.openid4vci.errors import ProtocolError, invalid_token
from credentials.openid4vci.offers import CODE_GRANT
from tenants.models import Tenant
from wallets.models import issuer_url

GUESSED = "transaction_code_guessed"
MAX_CODE = 256  # characters


class TokenAnswer(TypedDict):
    """What a token request is answered. authorization_details: of other issuers."""

    access_token: str
    token_type: NotRequired[str]
    expires_in: NotRequired[int]
    authorization_details: NotRequired[JSON]


def find_code(tenant: Tenant, form: Mapping[str, str]) -> Grant | None:
    """The grant of a token request (OpenID4VCI 1.0 section 6), or None.

    form: its parameters. ProtocolError for another kind of request.
    """
    if form.get("grant_type") != CODE_GRANT:
        raise ProtocolError(
            "unsupported_grant_type", f"Only {CODE_GRANT} is supported."
        )
    code = form.get("pre-authorized_code", "")
    if not 1 <= len(code) <= MAX_CODE:
        raise ProtocolError("invalid_request", "Give the pre-authorized_code.")
    return Grant.find_by_code(tenant, code)


def redeem_code(
    tenant: Tenant, grant: Grant | None, form: Mapping[str, str], dpop: str | None
) -> TokenAnswer:
    """Answer a token request. grant: as of find_code(). ProtocolError."""
    if grant is None:  # before the proof: a stranger's would be stored as used
        raise invalid_grant()
    thumbprint = proofs.read_dpop(dpop, f"{issuer_url(tenant.pk)}/token")
    answer = _redeem(grant, form.get("tx_code"), thumbprint)
    # What is wrong is counted, so it is raised after the commit.
    if isinstance(answer, ProtocolError):
        raise answer
    return answer


@transactions.atomic()
def _redeem(
    found: Grant, transaction_code: str | None, thumbprint: str
) -> TokenAnswer | ProtocolError:
    grant = found.lock()
    if grant is None:
        return invalid_grant()
    credential, connection = grant.credential, grant.credential.connection
    assert connection, "it is locked"
    is_offered = credential.state == Credential.State.OFFERED
    if not connection.is_open or connection.is_expired or not is_offered:
        return invalid_grant()
    if error := _check_transaction_code(grant, transaction_code):
        return error
    now = timezone.now()
    end = now + timedelta(seconds=TOKEN_SECONDS)
    token = secrets.token_urlsafe(32)
    connection.bind_wallet(end)
    grant.update(
        redeemed_at=now,
        token_digest=digest_of(token),
        token_expires_at=end,
        token_thumbprint=thumbprint,
    )
    return {
        "access_token": token,
        "token_type": "DPoP" if thumbprint else "Bearer",
        "expires_in": TOKEN_SECONDS,
    }


def _check_transaction_code(grant: Grant, given: str | None) -> ProtocolError | None:
    """Count a wrong one; the fifth ends the offer."""
    if grant.transaction_code is None:
        if given is None:
            return None
        return ProtocolError("invalid_request", "The offer takes no tx_code.")
    if given is None:
        return ProtocolError("invalid_request", "The offer needs its tx_code.")
    if grant.has_transaction_code(given):
        return None
    grant.update(tries=grant.tries + 1)
    if grant.tries >= MAX_TRIES:
        grant.credential.receive_wallet_failure(GUESSED)
    return ProtocolError("invalid_grant", "The tx_code is wrong.")


def invalid_grant() -> ProtocolError:
    return ProtocolError(
        "invalid_grant", "The code is unknown, was used, or has expired."
    )


def find_grant(
    tenant: Tenant, authorization: str | None, dpop: str | None, endpoint: str
) -> Grant:
    """The grant of an access token. endpoint: the last part of the address.

    ProtocolError `invalid_token`, `invalid_dpop_proof`.
    """
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() not in ("bearer", "dpop") or not 1 <= len(token) <= MAX_CODE:
        raise invalid_token()
    grant = Grant.find_by_token(tenant, token)
    if grant is None or not grant.token_expires_at:
        raise invalid_token()
    is_bound = bool(grant.token_thumbprint)
    if is_bound != (scheme.lower() == "dpop"):
        raise invalid_token("DPoP" if is_bound else "Bearer")
    if grant.token_expires_at <= timezone.now():
        raise invalid_token("DPoP" if is_bound else "Bearer")
    if is_bound:
        url = f"{issuer_url(tenant.pk)}/{endpoint}"
        if proofs.read_dpop(dpop, url, token) != grant.token_thumbprint:
            raise invalid_token("DPoP")
    return grant
