"""The form of signing up, whose answer takes as long for an address that is registered."""

from typing import Any

from allauth.account.forms import SignupForm
from django.contrib.auth.hashers import make_password
from django.http import HttpRequest


class SignUpForm(SignupForm):
    def try_save(self, request: HttpRequest) -> Any:
        """For a registered address no account is made; the password is hashed nevertheless."""
        if self.account_already_exists:
            make_password(self.cleaned_data["password1"])
        return super().try_save(request)
