"""Mails to holders of web wallets: to confirm an address, and that something waits.

The switch, the daily number and the list of who wants none are those of mailings. What
is stored before DATA (`begin`) is that the mail was sent: whatever happens then, it is
not sent again.
"""

import logging
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from uuid import uuid4

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from agency.holders.wallet.mail_address import (
    UNCONFIRMED_FOR,
    confirmation_url,
    forget_unconfirmed,
)
from agency.holders.wallet.models import PersonalLink
from agency.mails import mailings, offers, texts, unsubscribing
from agency.mails.models import AskedAddress
from agency.mails.offers import OfferMail
from agency.mails.smtp import (
    TEMPORARY,
    CannotWrite,
    MailServer,
    OutcomeUnknown,
    Refused,
    ServerUnavailable,
)
from core import faults
from core.database import clock
from core.database.columns import ColumnValue
from core.work import transactions
from credentials.models import Credential, MailDay
from credentials.models.mailing import DayIsFull, is_on
from verifications.models import Verification

logger = logging.getLogger(__name__)
A_DAY = timedelta(days=1)
RETRY_DELAY = timedelta(hours=1)
QUIET = timedelta(minutes=10)  # who looks meanwhile need not be told
MAX_MAILS = 500  # of one run
_runs = Lock()


def send_due() -> None:
    """Send what is due, at most MAX_MAILS, in one thread of this process at a time."""
    if not _runs.acquire(blocking=False):
        return
    try:
        send_some()
    finally:
        _runs.release()


def send_some() -> None:
    forget_unconfirmed()
    forget_asked()
    if not is_on():
        return
    due = list(due_mails()[:MAX_MAILS])
    if not due:
        return
    try:
        with MailServer() as server:
            for link in due:
                if mailings.loop.is_stopped:  # the process ends
                    return
                send_one(link, server)
    except (OSError, OutcomeUnknown) as error:  # smtplib's errors are OSErrors
        logger.warning("mails to holders wait: %s", type(error).__name__)


def due_mails() -> QuerySet[PersonalLink]:
    """The links whose holder is to confirm an address, or has something new waiting."""
    now = clock.now()
    links = PersonalLink.objects.filter(
        mail_due_at__lte=now,
        mail_address__isnull=False,
        wallet__deleted_at=None,
        tenant__deleted_at=None,
        tenant__frozen_at=None,
    )
    of_wallet = Q(
        wallet=OuterRef("wallet"),
        updated_at__gt=OuterRef("mail_sent_at"),
        updated_at__lt=now - QUIET,
    )
    offers_waiting = Credential.objects.filter(
        of_wallet, role=Credential.Role.HOLDER, state=Credential.State.OFFERED
    )
    questions = Verification.objects.filter(
        of_wallet, role=Verification.Role.PROVER, state=Verification.State.REQUESTED
    )
    unasked = Q(mail_confirmed_at=None, mail_sent_at=None, mail_problem="")
    told = Q(mail_confirmed_at__isnull=False)
    wanted = unasked | told & (Exists(offers_waiting) | Exists(questions))
    return links.filter(wanted).select_related("tenant").order_by("mail_due_at")


def send_one(link: PersonalLink, server: MailServer) -> None:
    """Send one mail, unless there is a reason against it.

    OSError or OutcomeUnknown: the connection is of no use any more.
    """
    if not MailDay.left_today(link.tenant):
        change(link, mail_due_at=MailDay.next_day())
        return
    address = link.unsealed_address()
    if unsubscribing.is_unsubscribed(address):
        change(link, mail_due_at=rest_of(link), mail_problem="unsubscribed")
        return
    build = partial(
        offers.build_message,
        write_mail(link),
        organization=link.tenant.name,
        to=address,
        reply_to="",
        language=link.mail_language,
        message_id=str(uuid4()),
        moment=clock.now(),
        unsubscribe=unsubscribing.link_for(address),
    )
    begin = partial(begin_sending, link, address)
    try:
        if server.deliver(build, offers.sender_address(), address, begin):
            faults.fault_point("after_mail_data")
        else:
            change(link, mail_due_at=clock.now() + RETRY_DELAY)
    except Refused as error:
        note_refusal(link, error)
    except CannotWrite as error:
        logger.error("a mail cannot be written: %s", error)
        change(link, mail_due_at=rest_of(link), mail_problem="cannot_write")
    except ServerUnavailable:
        raise
    except OSError:
        # Before DATA. If it is this address that the server cannot bear, others come
        # first next time.
        change(link, mail_due_at=clock.now() + RETRY_DELAY)
        raise


def begin_sending(link: PersonalLink, address: str) -> bool:
    """Store that it is sent, and count it. Commits before it returns.

    False if its day has no room, or somebody else has changed or sent it.
    """
    now = clock.now()
    is_confirmed = link.mail_confirmed_at is not None
    due_at = now + A_DAY if is_confirmed else rest_of(link)
    try:
        with transactions.atomic():
            if not change(link, mail_sent_at=now, mail_due_at=due_at):
                return False
            if not is_confirmed and not ask_today(address):
                raise DayIsFull
            MailDay.take_one(link.tenant)
    except DayIsFull:
        return False
    faults.fault_point("before_mail_data")
    return True


def rest_of(link: PersonalLink) -> datetime | None:
    """Until when nothing is due: an unconfirmed address is forgotten then."""
    if link.mail_confirmed_at or not link.mail_given_at:
        return None
    return link.mail_given_at + UNCONFIRMED_FOR


def ask_today(address: str) -> bool:
    """Whether nobody was asked at this address for a day. It counts from now on."""
    now, digest = clock.now(), unsubscribing.digest_of(address)
    rows = AskedAddress.objects.filter(pk=digest, asked_at__lte=now - A_DAY)
    if rows.update(asked_at=now):
        return True
    asked = {"asked_at": now}
    return AskedAddress.objects.get_or_create(pk=digest, defaults=asked)[1]


def forget_asked() -> None:
    AskedAddress.objects.filter(asked_at__lt=clock.now() - A_DAY).delete()


def change(link: PersonalLink, **changes: ColumnValue) -> int:
    """Change it unless somebody has, since it was read."""
    rows = PersonalLink.objects.filter(
        pk=link.pk, mail_given_at=link.mail_given_at, mail_due_at=link.mail_due_at
    )
    return rows.update(**changes)


def note_refusal(link: PersonalLink, error: Refused) -> None:
    """An address that the server does not know counts too, as of a mailing."""
    if error.is_temporary:
        change(link, mail_due_at=clock.now() + RETRY_DELAY)
        return
    problem = f"refused_{error.code}"
    if error.was_data:  # it has begun, so its columns have changed
        rows = PersonalLink.objects.filter(pk=link.pk, mail_given_at=link.mail_given_at)
        if error.code in TEMPORARY and link.mail_confirmed_at:
            # The server has not taken it: tomorrow the same is told.
            rows.update(mail_sent_at=link.mail_sent_at)
            return
        rows.update(mail_due_at=rest_of(link), mail_problem=problem)
    elif change(link, mail_due_at=rest_of(link), mail_problem=problem):
        try:
            with transactions.atomic():
                MailDay.take_one(link.tenant)
        except DayIsFull:
            return


def write_mail(link: PersonalLink) -> OfferMail:
    """Of values, names of cards and verifiers it says nothing."""
    with translation.override(link.mail_language):
        if link.mail_confirmed_at:
            subject = _("Something waits in your wallet at {organization}")
            url = settings.PUBLIC_URL + reverse("web_wallet:inbox")
            before = [
                _(
                    "Something new waits for your answer in your wallet at "
                    "{organization}. Open your wallet:"
                )
            ]
            after = [
                _("If you are asked for your personal link, open that first."),
                _(
                    "You get this mail, at most once a day, because you gave your "
                    "address in the wallet. Under “Me” there you remove it."
                ),
            ]
        else:
            subject = _("Confirm your mail address for your wallet at {organization}")
            url = confirmation_url(link)
            before = [
                _(
                    "Somebody, probably you, gave this mail address in a wallet at "
                    "{organization}, to be told when something waits there. Confirm "
                    "that it is yours:"
                )
            ]
            after = [str(texts.IGNORE)]
        after.append(
            _(
                "To get no more mails with links, from anybody who uses this service, "
                "choose “Unsubscribe” in your mail program."
            )
        )
        values = {"organization": offers.short_name(link.tenant.name)}
        before = [offers.fill(one, values) for one in [_("Hello,"), *before]]
        body = "\n\n".join([*before, url, *after])
        return OfferMail(offers.fill(subject, values), f"{body}\n")
