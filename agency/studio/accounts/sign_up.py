"""The forms that take a mail address, which is not confirmed yet.

At sign-up registered and new addresses take the same time.
"""

from typing import Any

from allauth.account.forms import AddEmailForm, SignupForm
from allauth.core import context as current
from django import forms
from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse

from agency.studio.forms import focus_field
from agency.studio.invitations import invitation_of
from tenants import members
from tenants.models import Tenant


class SignUpForm(SignupForm):
    """The password is given once: its button shows what was typed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["password1"].help_text = "At least 12 characters."
        focus_field(self, "email")

    def clean_email(self) -> str:
        """Where sign-up is closed, only the address that was invited is accepted."""
        email: str = super().clean_email()
        if settings.STUDIO_SIGN_UP:
            return email
        invitation = invitation_of(current.request)
        if invitation and email.lower() != invitation.email:
            raise forms.ValidationError(
                "Sign up is closed. Create the account with the address that was "
                f"invited: {invitation.email}."
            )
        return email

    def try_save(self, request: HttpRequest) -> tuple[User | None, HttpResponse | None]:
        """Hash the password even if the address is registered already.

        No account is created then, but the response takes as long.
        """
        if self.account_already_exists:
            make_password(self.cleaned_data["password1"])
        made: tuple[User | None, HttpResponse | None] = super().try_save(request)
        return made


class AddAddressForm(AddEmailForm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["email"].label = "Mail address"

    def clean_email(self) -> str:
        """Refuse an address that a member of the person's organizations uses."""
        email: str = super().clean_email()
        mine = Tenant.objects.filter(memberships__user=self.user)
        if members.is_used_in(mine, email, but=self.user):
            raise forms.ValidationError(
                "Another member of one of your organizations uses this address."
            )
        return email
