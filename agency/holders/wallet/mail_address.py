"""The mail address of a web wallet's holder, who is told there that something waits.

The mails themselves: agency/mails/holders.py.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse

from agency.holders.wallet.links import link_gone
from agency.holders.wallet.models import PersonalLink
from core.database import clock
from core.errors import Invalid, NotFound
from core.text.mail_addresses import clean_address
from core.valkey import rate_limits
from core.work.notify import notify_worker
from credentials.models import MailDay
from credentials.models.mailing import require_on

SIGNER = TimestampSigner(salt="wallet mail")
UNCONFIRMED_FOR = timedelta(days=3)
ADDRESSES_A_DAY = 3  # of one wallet
SHARE_OF_DAY = 2  # new addresses of an organization: at most one in so many mails
TASK = "agency.mails.tasks.mail_holders"
NOTHING: dict[str, object] = {
    "mail_address": None,
    "mail_language": "",
    "mail_given_at": None,
    "mail_confirmed_at": None,
    "mail_due_at": None,
    "mail_sent_at": None,
    "mail_problem": "",
}


def give_address(link: PersonalLink, text: str, language: str) -> None:
    """Keep an address in place of another, and let the mail be sent that confirms it.

    language: of the mails. 409 `mail_is_off`, 400 `bad_mail_address`, 429
    `too_many_requests`, 404 `wallet_link_gone` if the link was replaced meanwhile.
    """
    require_on()
    try:
        address = clean_address(text)
    except ValueError as error:
        raise Invalid("bad_mail_address", str(error)) from None
    day, tenant = 24 * 60, link.wallet.tenant
    share = max(1, MailDay.limit_of(tenant) // SHARE_OF_DAY)
    rate_limits.take_token(
        "addresses_of_wallet", str(link.wallet_id), ADDRESSES_A_DAY, minutes=day
    )
    rate_limits.take_token("addresses_of_tenant", str(tenant.pk), share, minutes=day)
    now = clock.now()
    changes = NOTHING | {
        "mail_address": link.sealed_address(address),
        "mail_language": language,
        "mail_given_at": now,
        "mail_due_at": now,
    }
    with transaction.atomic():
        if not PersonalLink.objects.filter(pk=link.pk).update(**changes):
            raise link_gone()
        transaction.on_commit(lambda: notify_worker(TASK))


def forget_address(link: PersonalLink) -> None:
    PersonalLink.objects.filter(pk=link.pk).update(**NOTHING)


def forget_unconfirmed() -> int:
    """Forget the addresses that nobody has confirmed in time. Return how many."""
    now = clock.now()
    old = PersonalLink.objects.filter(
        mail_due_at__lte=now,  # which has the index
        mail_confirmed_at=None,
        mail_given_at__lte=now - UNCONFIRMED_FOR,
    )
    return old.update(**NOTHING)


def confirmation_url(link: PersonalLink) -> str:
    """The address in the mail. Whoever opens it has the mailbox."""
    assert link.mail_given_at, "of an address"
    token = SIGNER.sign(f"{link.pk}.{microseconds_of(link.mail_given_at)}")
    return settings.PUBLIC_URL + reverse("web_wallet:confirm_mail", args=[token])


def microseconds_of(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


def find_given(token: str) -> PersonalLink:
    """The wallet's link whose address this token confirms, also if it did before.

    Raises NotFound `mail_link_gone`: unknown, too old, or of an address that was
    removed or replaced.
    """
    try:
        text = SIGNER.unsign(token, max_age=UNCONFIRMED_FOR)
    except BadSignature:
        raise mail_link_gone() from None
    key, _, given = text.partition(".")
    rows = PersonalLink.objects.filter(
        pk=key, wallet__deleted_at=None, wallet__tenant__deleted_at=None
    )
    found = rows.select_related("wallet__tenant").first()
    is_same = (
        found
        and found.mail_given_at
        and microseconds_of(found.mail_given_at) == int(given)
    )
    if not found or not is_same:
        raise mail_link_gone()
    return found


def confirm_address(link: PersonalLink) -> None:
    """From now on its holder is told. Once more, it changes nothing."""
    rows: QuerySet[PersonalLink] = PersonalLink.objects.filter(
        pk=link.pk, mail_given_at=link.mail_given_at, mail_confirmed_at=None
    )
    now = clock.now()
    rows.update(mail_confirmed_at=now, mail_due_at=now, mail_problem="")


def mail_link_gone() -> NotFound:
    return NotFound(
        "mail_link_gone",
        "This link confirms no mail address any more. Give the address once more in "
        "the wallet, under Me.",
    )
