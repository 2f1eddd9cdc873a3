"""Hand one mail to the mail server, and know how far that came.

    with MailServer() as server:
        server.deliver(build, sender, address, begin)

From the command DATA on, the server may have the mail. `begin` is called just before
it, so that what is stored then is true whenever the process ends.
"""

import smtplib
from collections.abc import Callable
from contextlib import suppress
from email.message import EmailMessage
from types import TracebackType
from typing import Any, Self

from django.core.mail import EmailMessage as DjangoMessage
from django.core.mail import get_connection
from django.core.mail.backends.smtp import EmailBackend

TAKEN = 250
FORWARDED = 251
TEMPORARY = range(400, 500)


class ServerUnavailable(OSError):
    """The mail server takes no mail now, whoever it is for."""


class Refused(Exception):
    """The server has refused this one mail.

    code: as `550`. was_data: in its answer to DATA, so that the mail is not sent again.
    """

    def __init__(self, code: int, was_data: bool = False) -> None:
        super().__init__(str(code))
        self.code = code
        self.was_data = was_data

    @property
    def is_temporary(self) -> bool:
        return self.code in TEMPORARY and not self.was_data


class OutcomeUnknown(Exception):
    """The connection ended after DATA, before the server's answer."""


class CannotWrite(Exception):
    """A name or an address is such that no mail can be made. It says no more."""


class BuiltMessage(DjangoMessage):
    """A message that is written already, for Django's other backends."""

    def __init__(self, built: EmailMessage, to: str, sender: str, backend: Any) -> None:
        super().__init__(to=[to], from_email=sender, connection=backend)
        self.built = built

    def message(self, **options: Any) -> Any:
        return self.built


class MailServer:
    """A connection to the server of EMAIL_URL, for several mails."""

    def __init__(self) -> None:
        self.backend = get_connection()

    def __enter__(self) -> Self:
        self.backend.open()
        if smtp := self._smtp():
            smtp.ehlo_or_helo_if_needed()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.backend.close()

    def deliver(
        self,
        build: Callable[[], EmailMessage],
        sender: str,
        to: str,
        begin: Callable[[], bool],
    ) -> bool:
        """Send what is built. Return False if `begin` says that it shall not be sent.

        Raises Refused, OutcomeUnknown, and OSError if nothing was sent because the
        server is away. After OutcomeUnknown and OSError the connection is of no use.
        CannotWrite, before anything is sent, if its headers cannot be written.
        """
        try:
            message = build()
            text = message.as_bytes()
        except Exception as error:  # of all kinds, and their texts may have the address
            raise CannotWrite(type(error).__name__) from None
        smtp = self._smtp()
        if smtp is None:
            if not begin():
                return False
            self.backend.send_messages(
                [BuiltMessage(message, to, sender, self.backend)]
            )
            return True
        code, _ = smtp.mail(sender)
        if code != TAKEN:
            raise ServerUnavailable(f"the sender is refused ({code})")
        code, _ = smtp.rcpt(to)
        if code not in (TAKEN, FORWARDED):
            self._reset(smtp)
            raise Refused(code)
        if not begin():
            self._reset(smtp)
            return False
        try:
            code, _ = smtp.data(text)
        except smtplib.SMTPDataError as error:  # it did not want the text
            self._reset(smtp)
            raise Refused(error.smtp_code, was_data=True) from None
        except OSError:
            raise OutcomeUnknown from None
        if code != TAKEN:
            raise Refused(code, was_data=True)
        return True

    @staticmethod
    def _reset(smtp: smtplib.SMTP) -> None:
        """Forget this mail. If that fails, the next one finds no connection."""
        with suppress(OSError):
            smtp.rset()

    def _smtp(self) -> smtplib.SMTP | None:
        if not isinstance(self.backend, EmailBackend):
            return None
        if self.backend.connection is None:
            raise ServerUnavailable("there is no connection")
        return self.backend.connection
