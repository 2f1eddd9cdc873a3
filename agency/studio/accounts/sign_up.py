"""The sign-up form. Registered and new addresses take the same time."""

from typing import Any

from allauth.account.forms import SignupForm
from django.contrib.auth.hashers import make_password
from django.http import HttpRequest


class SignUpForm(SignupForm):
    def try_save(self, request: HttpRequest) -> Any:
        """Hash the password even if the address is registered already.

        No account is created then, but the response takes as long.
        """
        if self.account_already_exists:
            make_password(self.cleaned_data["password1"])
        return super().try_save(request)
