"""The forms that change a password, which is given once: a button shows it."""

from typing import Any

from allauth.account import forms as allauth
from django import forms


class ChangePasswordForm(allauth.ChangePasswordForm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        name_field(self, "oldpassword", "Current password")
        ask_once(self)


class ResetPasswordKeyForm(allauth.ResetPasswordKeyForm):
    """The form behind the link of a mail."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        ask_once(self)


def ask_once(form: forms.Form) -> None:
    del form.fields["password2"]
    name_field(form, "password1", "New password")
    form.fields["password1"].help_text = "At least 12 characters."


def name_field(form: forms.Form, name: str, label: str) -> None:
    """allauth has the label in the placeholder too."""
    form.fields[name].label = label
    form.fields[name].widget.attrs.pop("placeholder", None)
