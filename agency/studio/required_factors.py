"""Who has a second factor, and pages that require one."""

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.models import Authenticator
from django.contrib import messages
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db.models import OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


def has_second_factor(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether signing in takes an app or a passkey, besides the password.

    The person of a request was read with the answer (sign_in.py).
    """
    known = getattr(user, "has_second_factor", None)
    return factors_of(user.pk).exists() if known is None else known


def factors_of(user_id: int | OuterRef | None) -> QuerySet[Authenticator]:
    return Authenticator.objects.filter(user_id=user_id, type__in=FACTORS)


def require_second_factor(request: HttpRequest, reason: str) -> None:
    """Lead to the page of second factors unless the person has one.

    reason: the sentence that the page shows. Raises ImmediateHttpResponse, which
    allauth's middleware answers with.
    """
    if not has_second_factor(request.user):
        raise ImmediateHttpResponse(lead_to_setup(request, reason))


def lead_to_setup(request: HttpRequest, reason: str) -> HttpResponse:
    messages.warning(request, reason)
    return redirect("mfa_index")
