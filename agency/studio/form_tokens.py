"""Forms that are processed once, even after a reload or a double click.

Each page with such a form has a new token in it. The session stores the tokens of the
forms that were processed.
"""

from uuid import uuid4

from django import forms
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest

CLAIMED_TOKENS = "forms_sent"  # in the session
MAX_CLAIMED_TOKENS = 100
SENT_BEFORE = (
    "That form was sent before and counts once. Keys are shown only in the first "
    "answer: if you lost one, create another and revoke the lost one."
)


class FreshTokenInput(forms.HiddenInput):
    """A hidden input with a new token, even if a form is shown again with errors."""

    def format_value(self, value: str | None) -> str:
        return str(uuid4())


class OnceForm(forms.Form):
    form_token = forms.CharField(max_length=36, required=False, widget=FreshTokenInput)


def claim_form_token(request: HttpRequest) -> bool:
    """Store the token of this form in the session. Return False if it is there already.

    A form without a token is refused too. Locks the row of the user, so that only one
    of two concurrent requests gets the token.
    """
    person = request.user.pk
    assert person, "forms are for people who have signed in"
    with transaction.atomic():
        User.objects.select_for_update().get(pk=person)
        claimed = request.session.load().get(CLAIMED_TOKENS, [])
        token = request.POST.get("form_token")
        is_new = bool(token) and token not in claimed
        if is_new:
            claimed = [*claimed, token][-MAX_CLAIMED_TOKENS:]
        request.session[CLAIMED_TOKENS] = claimed
        request.session.save()
    return is_new
