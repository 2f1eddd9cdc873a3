from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0014_batch")]

    operations = [
        migrations.AlterField(
            model_name="event",
            name="type",
            field=models.CharField(
                choices=[
                    ("new_connection", "New Connection"),
                    ("credential_request", "Credential Request"),
                    ("verification", "Verification"),
                    ("new_inbox_message", "New Inbox Message"),
                    ("credential_offer", "Credential Offer"),
                    ("verification_request", "Verification Request"),
                    ("connection_invited", "Connection Invited"),
                    ("connection_negotiating", "Connection Negotiating"),
                    ("connection_connected", "Connection Connected"),
                    ("connection_ended", "Connection Ended"),
                    ("credential_proposed", "Credential Proposed"),
                    ("credential_offered", "Credential Offered"),
                    ("credential_requested", "Credential Requested"),
                    ("credential_issued", "Credential Issued"),
                    ("credential_rejected", "Credential Rejected"),
                    ("credential_revoked", "Credential Revoked"),
                    ("verification_proposed", "Verification Proposed"),
                    ("verification_requested", "Verification Requested"),
                    ("verification_accepted", "Verification Accepted"),
                    ("verification_judged", "Verification Judged"),
                    ("verification_rejected", "Verification Rejected"),
                    ("message_sent", "Message Sent"),
                    ("webhook_disabled", "Webhook Disabled"),
                    ("bulk_finished", "Bulk Finished"),
                    ("mailing_finished", "Mailing Finished"),
                    ("database_restored", "Database Restored"),
                ],
                max_length=30,
            ),
        ),
    ]
