"""The mail with the link of an offer: what an organization may write, and the rest.

It is plain text with one link, that of the offer. The sender is the installation; the
organization's name stands before its address, and answers go to the organization.
"""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, EmailPolicy
from email.utils import format_datetime, parseaddr

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from agency.mails.names import LINK_MARK, TURNS, ZERO_WIDTH_SPACE, mailed_name
from agency.mails.sending import PRODUCT
from agency.words.cards import card_name
from core.errors import Invalid
from credentials.models import CredentialDefinition

MAX_TEXT = 1000  # characters
MAX_LINES = 20
MAX_NAME = 80  # characters of a name in a mail
FIELDS = {"name": "{name}", "card": "{card}", "organization": "{organization}"}
# What a mail program makes a link of: a scheme, `www.`, a mail address, the name of a
# host, an address of the internet.
LINK = re.compile(
    r"\w+://|\b(?:mailto|tel|sms|javascript|data):|\bwww\.|\S@\S|"
    r"[^\W_][\w-]*\.[^\W\d_]{2,}|\b\d{1,3}(?:\.\d{1,3}){3}\b|\[[0-9a-f]*:[0-9a-f:.]+\]",
    re.IGNORECASE,
)
DOTS = re.compile("[\u3002\uff0e\uff61\u2024]")  # that browsers read as one
JOINERS = re.compile("[\u200c-\u200f]")  # not seen, and allowed: is_hidden()
PLACE = re.compile(r"\{(\w*)\}")


def clean_text(text: str) -> str:
    """Return what an organization wrote for its mails. 400 `invalid_mail_text`.

    So that nobody sends what he likes from here: it is short, has no link of its own,
    no HTML and no sign that is not seen.
    """
    text = text.replace("\r\n", "\n").strip()
    seen = as_seen(text)
    if len(text) > MAX_TEXT or text.count("\n") >= MAX_LINES:
        refuse(f"It may have {MAX_TEXT} characters in {MAX_LINES} lines.")
    if any(is_hidden(letter) for letter in text.replace("\n", "")):
        refuse("It has a control character or another sign that is not seen.")
    if found := LINK.search(seen):
        refuse(
            f"A link or an address stands in it, “{found[0][:40]}”. The link of the "
            "offer is added by itself, and there is no other one. After a full stop "
            "write a space."
        )
    if "<" in seen or ">" in seen:
        refuse("It is plain text, so “<” and “>” may not stand in it.")
    unknown = [name for name in PLACE.findall(text) if name not in FIELDS]
    if unknown or "{" in PLACE.sub("", text) or "}" in PLACE.sub("", text):
        refuse(f"Fields in braces are {', '.join(FIELDS.values())}, and no others.")
    return text


def as_seen(text: str) -> str:
    """The text as a browser or a person reads it, in which a link is looked for."""
    return DOTS.sub(".", JOINERS.sub("", unicodedata.normalize("NFKC", text)))


def is_hidden(letter: str) -> bool:
    """Whether it is not seen, or turns what follows. Emoji join by U+200D."""
    category = unicodedata.category(letter)
    return (
        category in ("Cc", "Cs", "Co", "Zl", "Zp")
        or (category == "Cf" and letter not in "\u200c\u200d\u200e\u200f")
        or unicodedata.bidirectional(letter) in TURNS
    )


def refuse(message: str) -> None:
    raise Invalid("invalid_mail_text", message, {"text": [message]})


@dataclass(frozen=True)
class OfferMail:
    """What one mail says."""

    subject: str
    body: str


def write_mail(
    definition: CredentialDefinition,
    *,
    text: str,
    name: str,
    link: str,
    language: str,
    is_reminder: bool = False,
    can_answer: bool = False,
) -> OfferMail:
    """Write the mail of one offer in a language.

    text: of the organization, or "" for ours. name: of the holder, or "". can_answer:
    whether answers go to the organization.
    """
    with translation.override(language):
        values = {
            "name": short_name(name),
            "card": short_name(card_name(definition)),
            "organization": short_name(definition.tenant.name),
        }
        if is_reminder:
            subject = _("Reminder: {organization} offers you “{card}”")
        else:
            subject = _("{organization} offers you “{card}”")
        greeting = _("Hello {name},") if values["name"] else _("Hello,")
        lines = [
            greeting,
            text
            or _(
                "{organization} offers you “{card}”. You see what is in it before you "
                "accept."
            ),
            _("Open the offer:") + f"\n{link}",
            _(
                "You get this mail because {organization} has your address. To get no "
                "more mails with such links, from anybody who uses this service, choose "
                "“Unsubscribe” in your mail program."
            ),
        ]
        if can_answer:
            lines.append(
                _("You can answer this mail: the answer goes to {organization}.")
            )
        return OfferMail(
            fill(subject, values),
            "\n\n".join(one if link in one else fill(one, values) for one in lines)
            + "\n",
        )


def short_name(name: str) -> str:
    """A name for a mail, in one line, without links and not long."""
    shown = mailed_name(name)
    return shown if len(shown) <= MAX_NAME else f"{shown[: MAX_NAME - 1]}…"


def fill(text: str, values: dict[str, str]) -> str:
    """Fill in the fields. What a value has in braces stays as it is.

    A text such as `evil.{card}` becomes no link: each is checked by itself, not both.
    """
    filled = PLACE.sub(lambda found: values.get(found[1], found[0]), text)
    if LINK.search(as_seen(filled)):
        return LINK_MARK.sub(ZERO_WIDTH_SPACE, filled)
    return filled


class HeaderPolicy(EmailPolicy):
    """Writes the long words of some headers as they are: they hold addresses of ours.

    EmailPolicy would encode them, and mail programs would not find the address.
    """

    UNFOLDED = ("list-unsubscribe", "message-id")

    def fold(self, name: str, value: str) -> str:
        if name.lower() in self.UNFOLDED:
            return f"{name}: {value}{self.linesep}"
        return super().fold(name, value)

    def fold_binary(self, name: str, value: str) -> bytes:
        if name.lower() in self.UNFOLDED:
            return self.fold(name, value).encode("ascii")
        return super().fold_binary(name, value)


HEADERS = HeaderPolicy(linesep=SMTP.linesep, cte_type="7bit")


def sender_address() -> str:
    return parseaddr(settings.DEFAULT_FROM_EMAIL)[1]


def build_message(
    mail: OfferMail,
    *,
    organization: str,
    to: str,
    reply_to: str,
    language: str,
    message_id: str,
    moment: datetime,
    unsubscribe: str,
) -> EmailMessage:
    """Return the message with its headers. ValueError if one had a line end."""
    sender = sender_address()
    message = EmailMessage(policy=HEADERS)
    name = f"{short_name(organization)} ({PRODUCT})"
    message["From"] = Address(name, addr_spec=sender)
    message["To"] = Address(addr_spec=to)
    if reply_to:
        message["Reply-To"] = Address(short_name(organization), addr_spec=reply_to)
    message["Subject"] = mail.subject
    message["Date"] = format_datetime(moment)
    message["Message-ID"] = f"<{message_id}@{sender.rpartition('@')[2]}>"
    message["List-Unsubscribe"] = f"<{unsubscribe}>"
    message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.body)  # first: it removes headers of contents
    message["Content-Language"] = language
    return message
