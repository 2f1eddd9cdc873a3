"""The page of a person's own sessions, which ends them."""

from typing import Any

from allauth.account import signals
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from agency.mails.devices import device_name
from agency.studio.pages import PersonRequest, person_page
from core.net.callers import client_address
from core.work import transactions
from tenants import audit, sessions

UNKNOWN_ADDRESS = "0.0.0.0"  # of a request over a socket that has none


def connect_signals() -> None:
    """Note each sign-in, and end the other sessions when the password changes.

    Called once, when the process starts. Django refuses the other sessions after a
    new password; ending them also takes them off the list.
    """
    user_logged_in.connect(note_sign_in, dispatch_uid="note_sign_in")
    for signal in (
        signals.password_set,
        signals.password_changed,
        signals.password_reset,
    ):
        signal.connect(end_former, dispatch_uid="end_former_sessions")


def note_sign_in(*, request: HttpRequest, user: User, **_: Any) -> None:
    if request.session.session_key is None:  # another person was signed in before
        request.session.save()
    key = request.session.session_key
    assert key, "a saved session has one"
    sessions.note_session(
        user,
        key,
        # Of IPv6, the network without its length.
        address=client_address(request.META).partition("/")[0] or UNKNOWN_ADDRESS,
        user_agent=request.META.get("HTTP_USER_AGENT", ""),
    )


def end_former(*, request: HttpRequest, user: User, **_: Any) -> None:
    if request.user == user:  # their session has a new key
        note_sign_in(request=request, user=user)
    sessions.end_sessions(user, but=request.session.session_key)


@person_page("GET")
def show_sessions(request: PersonRequest) -> HttpResponse:
    shown = [
        {
            "session": session,
            "device": device_name(session.user_agent),
            "address": "" if session.address == UNKNOWN_ADDRESS else session.address,
            "is_current": session.key == request.session.session_key,
        }
        for session in sessions.list_sessions(request.user)
    ]
    has_others = any(not one["is_current"] for one in shown)
    context = {"sessions": shown, "has_others": has_others}
    return render(request, "account/sessions.html", context)


@person_page("POST")
def end_one_session(request: PersonRequest, session_id: int) -> HttpResponse:
    """End one of the person's own sessions, in one transaction with its audit entry.

    404 if they have no such session, as when it has ended already.
    """
    with transactions.atomic():
        if not sessions.end_session(request.user, session_id):
            raise Http404
        audit.record("person.sessions_ended", request.user, by=request, number=1)
    messages.success(request, "That session is signed out.")
    return redirect("studio:sessions")


@person_page("POST")
def end_other_sessions(request: PersonRequest) -> HttpResponse:
    """End the person's other sessions, in one transaction with the audit entry."""
    with transactions.atomic():
        ended = sessions.end_sessions(request.user, but=request.session.session_key)
        if ended:
            audit.record(
                "person.sessions_ended", request.user, by=request, number=ended
            )
    messages.success(request, "You are signed out everywhere else.")
    return redirect("studio:sessions")
