"""What each mail says. Fields in braces are filled in by sending.py."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

Text = str | Promise
IGNORE = gettext_lazy("If it was not you, ignore this mail: nothing happens then.")


@dataclass(frozen=True)
class Mail:
    """A subject, what happened, and the label of its link with a last word on it."""

    subject: Text
    text: Text
    button: Text
    note: Text = IGNORE


INVITATION = Mail(
    gettext_lazy("Invitation to {organization}"),
    gettext_lazy(
        "{inviter} invites you to the organization “{organization}”, with the role "
        "{role}. Open this link within 72 hours. Then sign in, or create an account, "
        "with this mail address."
    ),
    gettext_lazy("Open the invitation"),
    gettext_lazy("If you did not expect this, ignore it: nothing happens then."),
)
# Of an inviter whose account is gone.
ANONYMOUS_INVITATION = Mail(
    INVITATION.subject,
    gettext_lazy(
        "You are invited to the organization “{organization}”, with the role {role}. "
        "Open this link within 72 hours. Then sign in, or create an account, with "
        "this mail address."
    ),
    INVITATION.button,
    INVITATION.note,
)
CONFIRMATION = Mail(
    gettext_lazy("Confirm your mail address"),
    gettext_lazy(
        "Somebody, probably you, gave this mail address for an account. Confirm that "
        "it is yours."
    ),
    gettext_lazy("Confirm the address"),
)
# By the name that allauth gives the mail.
REQUESTED: dict[str, Mail] = {
    "email_confirmation": CONFIRMATION,
    "email_confirmation_signup": CONFIRMATION,
    "password_reset_key": Mail(
        gettext_lazy("Choose a new password"),
        gettext_lazy(
            "Somebody, probably you, asked for a new password of your account."
        ),
        gettext_lazy("Choose a new password"),
        gettext_lazy(
            "If it was not you, ignore this mail: your password stays as it is."
        ),
    ),
    "unknown_account": Mail(
        gettext_lazy("No account has this mail address"),
        gettext_lazy(
            "Somebody, probably you, asked for a new password with this mail address. "
            "No account has it. You can create one."
        ),
        gettext_lazy("Create an account"),
    ),
    "account_already_exists": Mail(
        gettext_lazy("You have an account already"),
        gettext_lazy(
            "Somebody, probably you, wanted to create an account with this mail "
            "address. You have one already. If you have forgotten its password, "
            "choose a new one."
        ),
        gettext_lazy("Choose a new password"),
    ),
}
# Instead of the one above where nobody can sign up.
UNKNOWN_AND_CLOSED = Mail(
    REQUESTED["unknown_account"].subject,
    gettext_lazy(
        "Somebody, probably you, asked for a new password with this mail address. No "
        "account has it. If you have an account, it has another address."
    ),
    gettext_lazy("Sign in with another address"),
)
LOOK = gettext_lazy("Look at my account")
NOT_ME = gettext_lazy(
    "If it was not you, choose a new password at once, sign out everywhere else, and "
    "check your second factors."
)
PASSWORD_CHANGED = Mail(
    gettext_lazy("Your password was changed"),
    gettext_lazy("The password of your account was changed."),
    LOOK,
    NOT_ME,
)
# What changed in an account. Its mail also says when, from where and with what.
NOTICES: dict[str, Mail] = {
    "password_changed": PASSWORD_CHANGED,
    "password_set": PASSWORD_CHANGED,
    "password_reset": PASSWORD_CHANGED,
    "email_changed": Mail(
        gettext_lazy("Your mail address was changed"),
        gettext_lazy(
            "The mail address of your account was changed from {from_email} to "
            "{to_email}."
        ),
        LOOK,
        NOT_ME,
    ),
    "email_confirm": Mail(
        gettext_lazy("Your mail address is confirmed"),
        gettext_lazy("The mail address of your account is confirmed."),
        LOOK,
        NOT_ME,
    ),
    "email_deleted": Mail(
        gettext_lazy("A mail address was removed"),
        gettext_lazy("The mail address {deleted_email} was removed from your account."),
        LOOK,
        NOT_ME,
    ),
    "totp_activated": Mail(
        gettext_lazy("An authenticator app was added"),
        gettext_lazy("An authenticator app was added to your account."),
        LOOK,
        NOT_ME,
    ),
    "totp_deactivated": Mail(
        gettext_lazy("The authenticator app was removed"),
        gettext_lazy("The authenticator app was removed from your account."),
        LOOK,
        NOT_ME,
    ),
    "webauthn_added": Mail(
        gettext_lazy("A passkey was added"),
        gettext_lazy("A passkey or security key was added to your account."),
        LOOK,
        NOT_ME,
    ),
    "webauthn_removed": Mail(
        gettext_lazy("A passkey was removed"),
        gettext_lazy("A passkey or security key was removed from your account."),
        LOOK,
        NOT_ME,
    ),
    "recovery_codes_generated": Mail(
        gettext_lazy("There are new recovery codes"),
        gettext_lazy(
            "New recovery codes were made for your account. The former ones do not "
            "work any more."
        ),
        LOOK,
        NOT_ME,
    ),
}
WEBHOOK_DISABLED = Mail(
    gettext_lazy("A webhook of {organization} is disabled"),
    gettext_lazy(
        "The webhook of the organization “{organization}” at {host} is disabled. "
        "{reason} It gets no events any more. They are kept for a limited time (days: "
        "{days}). When the address works again, enable the webhook and recover what "
        "it has missed since {since} UTC."
    ),
    gettext_lazy("Look at the webhook"),
    gettext_lazy("You get this mail because you are a member of the organization."),
)
# By Webhook.disabled_reason.
WEBHOOK_REASONS: dict[str, Text] = {
    "gone": gettext_lazy("The address answered that it is gone (410)."),
    "failing": gettext_lazy("Every call has failed for days."),
}
DELETED_SOON = Mail(
    gettext_lazy("{organization} will be deleted"),
    gettext_lazy(
        "A key of the organization “{organization}” has asked to delete it. It does "
        "not work any more, and all that is in it will be deleted on {due} UTC. Until "
        "then you can undo that, or end it at once."
    ),
    gettext_lazy("Undo or end the deletion"),
    gettext_lazy("You get this mail because you own the organization."),
)
ROLES: dict[str, Text] = {
    "owner": gettext_lazy("Owner"),
    "operator": gettext_lazy("Operator"),
    "developer": gettext_lazy("Developer"),
    "viewer": gettext_lazy("Viewer"),
}
