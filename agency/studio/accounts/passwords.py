"""The forms that change a password, which is given once: a button shows it."""

from typing import Any

from allauth.account import forms as allauth


class ChangePasswordForm(allauth.ChangePasswordForm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["oldpassword"].label = "Current password"
        ask_once(self)


class ResetPasswordKeyForm(allauth.ResetPasswordKeyForm):
    """The form behind the link of a mail."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        ask_once(self)


def ask_once(form: Any) -> None:
    del form.fields["password2"]
    form.fields["password1"].label = "New password"
    form.fields["password1"].help_text = "At least 12 characters."
