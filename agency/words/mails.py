"""Why a mail with a link was not sent, or waits, for staff."""

from credentials.models import MailingRow

# By Mailing.last_error.
WAITS = {
    "daily_limit": "The organization has sent as many mails today as it may. The others "
    "go out after midnight (UTC).",
    "mail_server_unavailable": "The mail server does not answer. It is tried again each "
    "minute.",
}
# By MailingRow.code.
REASONS = {
    "unsubscribed": "This address has unsubscribed from mails with links.",
    "offer_is_not_open": "The offer was taken, withdrawn or has expired.",
    "cannot_write": "A name in it is such that no mail can be written.",
    "connection_lost": "The mail server ended the connection.",
}
UNKNOWN = (
    "The mail server may have it, and may not: the connection or our process ended. It "
    "is not sent again."
)


def reason_of(row: MailingRow) -> str:
    """Why this mail was not sent, as far as it is known."""
    if row.status == MailingRow.Status.UNKNOWN:
        return UNKNOWN
    if row.code in REASONS:
        return REASONS[row.code]
    reply = row.code.rpartition("_")[2]
    if row.status == MailingRow.Status.WAITING:
        return f"The mail server refused it for now ({reply}). It is tried again."
    return f"The mail server refused it ({reply}). Look at the address."
