"""A club that mails its cards, in tests."""

import pytest
from django.conf import settings as current

from agency.mails import mailings
from credentials.models import Bulk, BulkRow, Mailing, MailingRow
from tenants import vault
from tests.credentials.bulk.people import sent, worker_issues
from tests.support import mail_server

OVER = "2026-01-01T00:00Z"


@pytest.fixture
def server(settings):
    """A mail server, at which organizations may send."""
    with mail_server.running() as started:
        use_server(settings, started)
        yield started


def use_server(settings, started):
    host, port = started.server_address
    settings.EMAIL_URL = started.url
    settings.ORGANIZATION_MAIL = True
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = host, port
    settings.DEFAULT_FROM_EMAIL = "Agency <agency@agency.example>"
    settings.PUBLIC_URL = "https://agency.example"


def club_of(faber, *people):
    """A bulk with an offer by link for each, whose addresses are known."""
    definition = faber.defines("name")
    lines = [f"{name},{name}" for name in people]
    made = sent(faber, definition, "\n".join(["name,recipientName", *lines]))
    worker_issues()
    bulk = Bulk.started(faber.tenant).select_related("tenant").get(pk=made["bulkId"])
    for row in bulk.rows.all():
        name = people[row.number - 2]
        vault.seal(row, "mail_address", f"{name.lower()}@club.example")
        BulkRow.objects.filter(pk=row.pk).update(mail_address=row.mail_address)
    return bulk


def begin(bulk, **options):
    chosen = mailings.clean_options(bulk.tenant, **options)
    return mailings.begin(mailings.prepare_mailing(bulk, mailings.COLUMN, chosen))


def worker_mails():
    """Let the worker send whatever waits, as if leases and delays were over."""
    let_time_pass()
    mailings.send_due()


def let_time_pass():
    MailingRow.objects.filter(status="Sending").update(lease_until=OVER)
    MailingRow.objects.filter(status="Waiting").update(due_at=OVER)
    Mailing.objects.filter(status="pending").update(lease_until=OVER, due_at=OVER)


def states(mailing):
    mailing.refresh_from_db()
    rows = mailing.rows.order_by("number").values_list("status", "code")
    return mailing.state, list(rows)


def mail_settings(started):
    """Variables of a process that sends at this server."""
    return {
        "EMAIL_URL": started.url,
        "ORGANIZATION_MAIL": "1",
        "DEFAULT_FROM_EMAIL": current.DEFAULT_FROM_EMAIL,
    }
