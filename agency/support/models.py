"""The permissions of support's actions. There is no table."""

from django.db import models


class SupportAction(models.Model):
    """Holds the permissions that belong to no single model of the admin."""

    class Meta:
        managed = False
        default_permissions = ()
        permissions = [
            ("resend_message", "Can send a message to another agent again"),
            ("resend_delivery", "Can send a call of a webhook again"),
            ("retry_publication", "Can try a publication again now"),
            ("enable_webhook", "Can enable a webhook"),
            ("change_member", "Can add a member or change the role of one"),
            ("end_deletion", "Can undo or end the deletion of an organization"),
            ("disable_person", "Can disable the account of a person"),
            ("end_sessions", "Can end the sessions of a person"),
        ]

    def __str__(self) -> str:
        return "action of support"
