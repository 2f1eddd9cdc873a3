"""Invitations to organizations: the mail, and the pages of its link.

The link holds a token. Opening it stores the token's digest in the session and leads to
an address without it, so the token is in no link of a page and in no referrer.
"""

import logging
from smtplib import SMTPException

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from agency.holders.links.languages import FALLBACK
from agency.mails import texts
from agency.mails.names import mailed_name
from agency.mails.sending import send_mail
from core.errors import AgencyError
from tenants import members, vault
from tenants.models import Invitation

logger = logging.getLogger(__name__)
DIGEST = "invitation"  # in the session, in hexadecimal digits
# Where mails are printed, as by `make run`.
TERMINAL = "django.core.mail.backends.console.EmailBackend"


def deliver_invitation(
    request: HttpRequest, invitation: Invitation, token: str
) -> HttpResponse:
    """Mail the link. If no mail leaves this installation, show it once to who invites.

    They pass it on then.
    """
    link = settings.PUBLIC_URL + reverse("studio:open_invitation", args=[token])
    if not settings.EMAIL_URL:
        return show_link(request, invitation, link)
    try:
        mail_invitation(invitation, link)
    except (OSError, SMTPException) as error:
        logger.warning("an invitation could not be mailed: %s", type(error).__name__)
        messages.error(
            request,
            "The invitation is stored, but the mail could not be sent. Try “Send "
            "again” in a moment.",
        )
    else:
        if settings.EMAIL_BACKEND == TERMINAL:
            return show_link(request, invitation, link)
        messages.success(request, f"The invitation is sent to {invitation.email}.")
    return redirect("studio:members", tenant_id=invitation.tenant_id)


def show_link(request: HttpRequest, invitation: Invitation, link: str) -> HttpResponse:
    context = {
        "tenant": invitation.tenant,
        "invitation": invitation,
        "link": link,
        "is_in_terminal": bool(settings.EMAIL_URL),
    }
    return render(request, "studio/invitation_link.html", context)


def mail_invitation(invitation: Invitation, link: str) -> None:
    """Send it in the organization's language: that of the person is not known.

    Raises OSError or SMTPException.
    """
    send_mail(
        texts.INVITATION if invitation.inviter else texts.ANONYMOUS_INVITATION,
        invitation.email,
        language=invitation.tenant.default_language or FALLBACK,
        link=link,
        values={
            "inviter": invitation.inviter,
            "organization": mailed_name(invitation.tenant.name),
            "role": texts.ROLES[invitation.role],
        },
    )


@require_safe
@never_cache
def open_invitation(request: HttpRequest, token: str) -> HttpResponse:
    digest = vault.keyed_digest(token)
    if members.find_invitation(digest):
        request.session[DIGEST] = digest.hex()
    else:  # nothing is stored for links that somebody makes up
        request.session.pop(DIGEST, None)
    return redirect("studio:invitation")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_invitation(request: HttpRequest) -> HttpResponse:
    """The page of the invitation in the session, which accepts it."""
    invitation = invitation_of(request)
    if request.method == "POST" and request.user.is_authenticated:
        return accept_invitation(request)
    emails = emails_of(request.user) if request.user.is_authenticated else set()
    context = {
        "invitation": invitation,
        "is_for_user": invitation is not None and invitation.email in emails,
    }
    status = 200 if invitation else 404
    return render(request, "studio/invitation.html", context, status=status)


def accept_invitation(request: HttpRequest) -> HttpResponse:
    assert isinstance(request.user, User), "asked of who has signed in"
    digest = bytes.fromhex(request.session.get(DIGEST, ""))
    try:
        tenant = members.accept_invitation(
            digest, request.user, emails=emails_of(request.user), by=request
        )
    except AgencyError as error:
        messages.error(request, error.message)
        return redirect("studio:invitation")
    del request.session[DIGEST]
    messages.success(request, f"You are a member of {tenant} now.")
    return redirect("studio:organization", tenant_id=tenant.pk)


def emails_of(user: User) -> set[str]:
    """Return the person's own addresses, in lower case.

    If people must confirm their address (STUDIO_VERIFY_EMAIL), only confirmed ones.
    """
    rows = EmailAddress.objects.filter(user=user)
    if settings.STUDIO_VERIFY_EMAIL:
        rows = rows.filter(verified=True)
    found = {email.lower() for email in rows.values_list("email", flat=True)}
    return found if settings.STUDIO_VERIFY_EMAIL else found | {user.email.lower()}


def invitation_of(request: HttpRequest) -> Invitation | None:
    """Return the live invitation in the session. It also allows to sign up."""
    digest = request.session.get(DIGEST)
    return members.find_invitation(bytes.fromhex(digest)) if digest else None
