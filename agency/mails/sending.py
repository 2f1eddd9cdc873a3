"""Write a mail as text and as HTML in one language, and send it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.core.mail.backends.base import BaseEmailBackend
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.functional import Promise
from django.utils.html import format_html

from agency.mails.devices import device_name
from agency.mails.texts import Mail

PRODUCT = "Agency"
# Of a field in a text, which has it as a text.
Value = str | int | Promise | None


@dataclass(frozen=True)
class Change:
    """When, from where and with what browser somebody changed an account."""

    moment: datetime
    address: str
    user_agent: str


def send_mail(
    mail: Mail,
    to: str,
    *,
    language: str,
    link: str,
    values: Mapping[str, Value],
    change: Change | None = None,
    connection: BaseEmailBackend | None = None,
) -> None:
    """Send a mail, at once. Raises OSError or SMTPException if the server refuses it.

    language: of the texts. link: the address of its button. values: of the fields in
    the texts; those that are lazy are translated. change: of an account, which the
    mail is a notice of. connection: to the mail server, for several mails; by default
    a new one.
    """
    with translation.override(language):
        # A header has one line. A name cannot add lines to the text either.
        shown = {name: " ".join(str(value).split()) for name, value in values.items()}
        # Each in its own direction, whatever that of the sentence is.
        isolated = {
            name: format_html("<bdi>{}</bdi>", value) for name, value in shown.items()
        }
        subject = str(mail.subject).format(**shown)
        context = {
            "subject": subject,
            "text": str(mail.text).format(**shown),
            "html": format_html(str(mail.text), **isolated),
            "change": change,
            "device": device_name(change.user_agent) if change else "",
            "button": mail.button,
            "note": mail.note,
            "link": link,
            "product": PRODUCT,
            "home": settings.PUBLIC_URL,
        }
        message = EmailMultiAlternatives(
            subject=f"{PRODUCT}: {subject}",
            body=render_to_string("mails/mail.txt", context),
            to=[to],
            headers={"Content-Language": language},
            connection=connection,
        )
        html = render_to_string("mails/mail.html", context)
    message.attach_alternative(html, "text/html")
    message.send()
