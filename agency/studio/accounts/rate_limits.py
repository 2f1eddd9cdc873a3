"""The response to an exceeded rate limit of allauth, with the time to wait."""

import math
import time
from typing import cast

# Not a public module. allauth has no public function for the time to wait. The version
# is pinned, and tests/agency/studio/test_limits.py fails if it changes.
from allauth.core.internal import ratelimit
from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import ResolverMatch

from core.api.exceptions import plain_error_response
from core.api.negotiation import wants_html
from core.telemetry import metrics

RATE_LIMITED_ACTIONS = {  # by route: the rate limit that allauth checks first
    "account_login": "login",
    "account_signup": "signup",
    "account_reset_password": "reset_password",
    "account_reset_password_from_key": "reset_password_from_key",
    "account_email": "manage_email",
    "account_change_password": "change_password",
    "account_set_password": "change_password",
    "account_reauthenticate": "reauthenticate",
    "mfa_login_webauthn": "webauthn_login",
}


def handler429(request: HttpRequest) -> HttpResponse:
    """Respond to an exceeded rate limit of a route of allauth (see agency.urls)."""
    match = cast(ResolverMatch, request.resolver_match)
    action = RATE_LIMITED_ACTIONS[str(match.url_name)]
    mailbox = request.POST.get("email", "").strip().lower()
    return rate_limit_response(request, action, key=mailbox)


def rate_limit_response(request: HttpRequest, action: str, key: str) -> HttpResponse:
    """Return 429 with the time to wait, as a page or as JSON.

    action: one of ACCOUNT_RATE_LIMITS. key: the value for its rates by `key`.
    """
    metrics.count_refusal(action)
    seconds = seconds_to_wait(request, action, key)
    wait = duration_text(seconds)
    if wants_html(request):
        # A new password ends the wait (allauth,
        # `_delete_login_attempts_cached_email`).
        may_reset = action == "login_failed" and settings.EMAIL_URL
        code = "too_many_requests"
        shown = {"wait": wait, "may_reset": may_reset, "code": code}
        answer = render(request, "429.html", shown, status=429)
    else:
        message = f"There were too many attempts. Wait {wait}, then try again."
        answer = plain_error_response(429, "too_many_requests", message)
    answer["Retry-After"] = str(seconds)
    return answer


def seconds_to_wait(request: HttpRequest, action: str, key: str) -> int:
    """Return the seconds until all rates of the action allow one more attempt.

    allauth stores the times of the last attempts, newest first.
    """
    waits = [1.0]  # minimum: others at the same address may have used up the limit
    app = "allauth.mfa" if action == "webauthn_login" else "allauth.account"
    for rate in ratelimit.get_rates(app=app, action=action):
        name = ratelimit.get_cache_key(
            request, app=app, action=action, rate=rate, key=key
        )
        tries = cache.get(name, [])
        if len(tries) >= rate.amount:
            waits.append(tries[rate.amount - 1] + rate.duration - time.time())
    return math.ceil(max(waits))


def duration_text(seconds: int) -> str:
    """Return a text such as `1 second`, `90 seconds` or `2 minutes`, rounded up."""
    number, unit = (
        (seconds, "second") if seconds <= 90 else (math.ceil(seconds / 60), "minute")
    )
    return f"{number} {unit}{'' if number == 1 else 's'}"
