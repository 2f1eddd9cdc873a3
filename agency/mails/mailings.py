"""Mail the links of a bulk's offers: who gets a mail, and the worker that sends it."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from agency.holders.links.languages import FALLBACK
from agency.mails import offers, unsubscribing
from agency.mails.smtp import (
    CannotWrite,
    MailServer,
    OutcomeUnknown,
    Refused,
    ServerUnavailable,
)
from connections.models import Connection
from core import faults
from core.database import clock
from core.database.columns import ColumnValue
from core.errors import Conflict, Invalid
from core.text.mail_addresses import clean_address, find_address
from core.work import transactions
from core.work.leases import LostLease, work_on
from core.work.loop import Loop
from credentials.models import (
    Bulk,
    BulkRow,
    Credential,
    CredentialDefinition,
    MailDay,
    Mailing,
    MailingRow,
)
from credentials.models.mailing import DayIsFull, is_on, require_on
from tenants import audit, vault
from tenants.branding import LANGUAGES
from tenants.models import Tenant

logger = logging.getLogger(__name__)
MAILS_PER_TURN = 20
CHUNK_ROWS = 500
COLUMN = "mailAddress"  # of the file; else the name of an attribute
LINK = "https://…"  # in a preview
Status = MailingRow.Status


@dataclass(frozen=True)
class MailOptions:
    """What an organization chooses for its mails; see clean_options()."""

    text: str = ""
    language: str = FALLBACK
    reply_to: str = ""


def clean_options(
    tenant: Tenant, text: str = "", language: str = "", reply_to: str = ""
) -> MailOptions:
    """Check them. 400 `invalid_mail_text`, `invalid_request`.

    language: else the organization's, else English.
    """
    if reply_to:
        reply_to = require_address(reply_to, "replyTo")
    chosen = language or tenant.default_language
    return MailOptions(
        text=offers.clean_text(text),
        language=chosen if chosen in LANGUAGES else FALLBACK,
        reply_to=reply_to,
    )


def require_address(text: str, member: str) -> str:
    """400 `invalid_request` for what is no mail address, of this member."""
    try:
        return clean_address(text)
    except ValueError as error:
        message = str(error)
        raise Invalid("invalid_request", message, {member: [message]}) from None


@dataclass(frozen=True)
class Recipient:
    """An offer by link that waits, and where its link may be mailed to."""

    number: int
    credential: Credential
    address: str


def open_offers(tenant: Tenant) -> QuerySet[Credential]:
    """The offers by link of an organization that nobody has taken."""
    rows = Credential.objects.filter(
        tenant=tenant,
        role=Credential.Role.ISSUER,
        state=Credential.State.OFFERED,
        connection__connectionless=True,
        connection__state=Connection.State.INVITED,
        connection__deleted_at=None,
    )
    return rows.select_related("connection")


def recipients_of(
    bulk: Bulk, source: str, at_once: int = CHUNK_ROWS
) -> Iterator[list[Recipient]]:
    """Yield them in chunks, in the order of the file.

    source: COLUMN, or the attribute that has the addresses. What is none is left out.
    at_once: the rows of a chunk.
    """
    last = 0
    rows = bulk.rows.filter(
        status=BulkRow.Status.OFFERED, connection_id="", wallet_id=""
    ).order_by("number")
    is_open = open_offers(bulk.tenant)
    while chunk := list(rows.filter(number__gt=last)[:at_once]):
        last = chunk[-1].number
        found = is_open.in_bulk([row.credential_id for row in chunk])
        yield [
            Recipient(row.number, found[row.credential_id], address)
            for row in chunk
            if row.credential_id in found
            and (address := address_of(row, found[row.credential_id], source))
        ]


def address_of(row: BulkRow, credential: Credential, source: str) -> str:
    """The address of a row, or ""."""
    if source == COLUMN and row.mail_address is not None:
        text = vault.unseal(row, "mail_address") or ""
    else:  # also for an attribute with the name of the column
        text = (credential.unsealed_values() or {}).get(source, "")
    return find_address(text)


def find_sources(bulk: Bulk) -> list[str]:
    """Where addresses of a bulk may be: its column, and attributes that look so.

    By the first rows that were offered.
    """
    rows = bulk.rows.filter(status=BulkRow.Status.OFFERED).select_related("credential")
    first = list(rows.order_by("number")[:MAILS_PER_TURN])
    has_column = any(row.mail_address is not None for row in first)
    values = [row.credential.unsealed_values() or {} for row in first if row.credential]
    names = bulk.definition.schema.attribute_names
    found = [
        name for name in names if any(find_address(one.get(name, "")) for one in values)
    ]
    return list(dict.fromkeys([COLUMN] * has_column + found))


@dataclass(frozen=True)
class PreparedMailing:
    """A mailing and its mails, of which nothing is stored yet.

    mails: of each the id, the number, the id of the credential and the sealed address.
    Of 100,000 rows a process would keep some times as much.
    """

    mailing: Mailing
    mails: list[tuple[UUID, int, UUID, bytes]]


def prepare_mailing(bulk: Bulk, source: str, options: MailOptions) -> PreparedMailing:
    """A mail for each open offer of a bulk, for begin().

    409 `mail_is_off`, `too_many_mailings`.
    """
    require_on()
    mailing = new_mailing(bulk.tenant, options, bulk=bulk)
    return prepare(mailing, recipients_of(bulk, source))


def prepare(mailing: Mailing, chunks: Iterable[list[Recipient]]) -> PreparedMailing:
    """Seal the addresses, which takes long for many: so it is done before begin()."""
    with transactions.atomic():
        Mailing.require_room(mailing.tenant)
    found = chain.from_iterable(chunks)
    return PreparedMailing(mailing, [seal_mail(mailing, one) for one in found])


@transactions.atomic()
def begin(prepared: PreparedMailing) -> Mailing:
    """Store a mailing with the mails of those that have none yet: all of it or nothing.

    409 `too_many_mailings`, `nobody_to_mail`. The organization is locked last: storing
    the mails may take seconds, and nobody else can see or lock them before the commit.
    """
    mailing, mails = prepared.mailing, prepared.mails
    parts = (mails[at : at + CHUNK_ROWS] for at in range(0, len(mails), CHUNK_ROWS))
    if not sum(store_mails(mailing, part) for part in parts):
        raise nobody_to_mail()
    Mailing.require_room(mailing.tenant)
    if bulk := mailing.bulk:
        kept = Bulk.started(mailing.tenant).filter(pk=bulk.pk)
        if not kept.select_for_update(of=["self"], no_key=True).exists():
            raise nobody_to_mail()  # it is being deleted, and its mailings with it
    mailing.due_at = clock.now()
    mailing.save(force_insert=True)
    mailing.notify_worker()
    return mailing


def begin_single(credential: Credential, address: str, options: MailOptions) -> Mailing:
    """Mail the link of one offer, unless it had a mail already.

    400 `invalid_request` for what is no address; 409 as of prepare_mailing() and begin().
    """
    require_on()
    address = require_address(address, COLUMN)
    mailing = new_mailing(credential.tenant, options)
    return begin(prepare(mailing, [[Recipient(1, credential, address)]]))


def last_mail_of(credential: Credential) -> MailingRow | None:
    """The newest mail with the link of this offer, or None."""
    return MailingRow.objects.filter(credential=credential).order_by("-pk").first()


def prepare_reminder(bulk: Bulk) -> PreparedMailing:
    """A mail for each who got one of a bulk and has not accepted, once, for begin().

    In the language of the newest mailing, in our words. 409 as of prepare_mailing(),
    `nobody_to_mail`.
    """
    require_on()
    sent = bulk.mailings.filter(is_reminder=False).order_by("-pk").first()
    if not sent:
        raise nobody_to_mail()
    options = MailOptions(
        language=sent.language, reply_to=vault.unseal(sent, "reply_to") or ""
    )
    mailing = new_mailing(bulk.tenant, options, bulk=bulk, is_reminder=True)
    return prepare(mailing, unanswered(bulk))


def unanswered(bulk: Bulk) -> Iterator[list[Recipient]]:
    """Yield in chunks who got a mail, whose offer is still open."""
    rows = MailingRow.objects.filter(
        mailing__bulk=bulk, is_reminder=False, status=Status.SENT
    ).order_by("number", "pk")
    is_open = open_offers(bulk.tenant)
    last = 0
    while chunk := list(rows.filter(number__gt=last)[:CHUNK_ROWS]):
        last = chunk[-1].number
        found = is_open.in_bulk([row.credential_id for row in chunk])
        yield [
            Recipient(row.number, found[row.credential_id], row.unsealed_address())
            for row in chunk
            if row.credential_id in found
        ]


def is_only_column(bulk: Bulk, source: str) -> bool:
    """Whether it is the column of the file, and no attribute has its name."""
    return source == COLUMN and source not in bulk.definition.schema.attribute_names


def count_open(bulk: Bulk, source: str) -> int:
    """How many mails would be stored by begin(); at most, with an attribute."""
    rows = bulk.rows.filter(
        credential__in=open_offers(bulk.tenant).order_by().values("pk")
    )
    if is_only_column(bulk, source):
        rows = rows.exclude(mail_address=None)
    mailed = MailingRow.objects.filter(
        credential=OuterRef("credential"),
        is_reminder=False,
        status__in=MailingRow.COUNTED,
    )
    return rows.filter(~Exists(mailed)).count()


@dataclass(frozen=True)
class MailingPreview:
    """What begin() would store, and the mail of the first who would get one.

    number: exact, or the most there may be. address, mail: of nobody if it is 0.
    """

    number: int
    is_exact: bool
    address: str = ""
    mail: offers.OfferMail | None = None


def preview_mailing(bulk: Bulk, source: str, options: MailOptions) -> MailingPreview:
    number, is_exact = count_open(bulk, source), is_only_column(bulk, source)
    chunks = recipients_of(bulk, source, at_once=MAILS_PER_TURN) if number else ()
    first = next(chain.from_iterable(chunks), None)
    if not first:
        return MailingPreview(number, is_exact)
    mail = preview_mail(bulk.definition, first.credential, options)
    return MailingPreview(number, is_exact, first.address, mail)


def preview_mail(
    definition: CredentialDefinition, credential: Credential, options: MailOptions
) -> offers.OfferMail:
    """What the holder of this offer would get."""
    return offers.write_mail(
        definition,
        text=options.text,
        name=credential.unsealed_recipient_name(),
        link=LINK,
        language=options.language,
        can_answer=bool(options.reply_to),
    )


def nobody_to_mail() -> Conflict:
    return Conflict(
        "nobody_to_mail",
        "No offer by link waits that has a mail address and had no mail yet.",
    )


def new_mailing(
    tenant: Tenant, options: MailOptions, **columns: ColumnValue
) -> Mailing:
    mailing = Mailing(tenant=tenant, language=options.language, **columns)
    vault.seal(mailing, "text", options.text or None)
    vault.seal(mailing, "reply_to", options.reply_to or None)
    return mailing


@transactions.atomic()
def begin_recorded(prepared: PreparedMailing, *, by: audit.Who) -> Mailing:
    """begin() one of a bulk, and record who did. by: as of audit.record()."""
    mailing = begin(prepared)
    assert mailing.bulk, "that of one offer is recorded with the offer"
    action = "bulk.reminded" if mailing.is_reminder else "bulk.mailed"
    audit.record(action, mailing.bulk, by=by, rows=mailing.rows.count())
    return mailing


def store_mails(
    mailing: Mailing, mails: Sequence[tuple[UUID, int, UUID, bytes]]
) -> int:
    """Store those of offers that are open and have none yet. Return how many.

    The unique constraint decides: two mailings at once store no offer twice.
    """
    offered = [credential for _, _, credential, _ in mails]
    found = open_offers(mailing.tenant).filter(pk__in=offered)
    is_open = {*found.values_list("pk", flat=True)}
    rows = [
        MailingRow(
            pk=pk,
            tenant=mailing.tenant,
            mailing=mailing,
            number=number,
            credential_id=credential,
            is_reminder=mailing.is_reminder,
            address=address,
            due_at=clock.now(),
        )
        for pk, number, credential, address in mails
        if credential in is_open
    ]
    MailingRow.objects.bulk_create(rows, ignore_conflicts=True)
    return MailingRow.objects.filter(pk__in=[row.pk for row in rows]).count()


def seal_mail(mailing: Mailing, recipient: Recipient) -> tuple[UUID, int, UUID, bytes]:
    row = MailingRow(tenant=mailing.tenant)
    vault.seal(row, "address", recipient.address)
    return row.pk, recipient.number, recipient.credential.pk, bytes(row.address)


def send_due() -> None:
    """Send what waits, in turn for each organization, until nothing is due."""
    MailingRow.end_lost()
    if is_on():
        loop.run()


def take_turn(mailing: Mailing) -> None:
    """Send the next mails of a mailing that is leased to the caller."""
    rows = mailing.rows.filter(status=Status.WAITING, due_at__lte=clock.now())
    due = list(rows.order_by("number").select_related("credential")[:MAILS_PER_TURN])
    definition_of = cache(partial(find_definition, mailing.tenant))
    try:
        if due:
            send_rows(mailing, due, definition_of)
    except DayIsFull:
        mailing.try_later(MailDay.next_day() - clock.now(), "daily_limit")
        return
    mailing.end_turn()


def send_rows(
    mailing: Mailing,
    rows: list[MailingRow],
    definition_of: Callable[[str], CredentialDefinition | None],
) -> None:
    """Send them one after the other. What one mail meets stops no other.

    OSError if the server is away; DayIsFull.
    """
    if not MailDay.left_today(mailing.tenant):
        raise DayIsFull
    with MailServer() as server:
        for row in rows:
            if loop.is_stopped:
                return  # the process ends: a mail that it would leave is Unknown
            if not mailing.renew_lease():
                raise LostLease
            try:
                send_row(mailing, row, definition_of, server)
            except OutcomeUnknown:
                row.end_sending(Status.UNKNOWN)
                return  # of this turn: the connection is gone
            except Refused as error:
                note_refusal(row, error)
            except CannotWrite as error:
                logger.error("a mail cannot be written: %s", error)
                row.change([Status.WAITING], Status.REFUSED, code="cannot_write")
            except ServerUnavailable:
                raise
            except OSError:
                # Before DATA. If it is this address that the server cannot bear, the
                # others come first next time.
                row.refuse_for_now("connection_lost")
                raise


def send_row(
    mailing: Mailing,
    row: MailingRow,
    definition_of: Callable[[str], CredentialDefinition | None],
    server: MailServer,
) -> None:
    """Send one mail, unless there is a reason against it."""
    address = row.unsealed_address()
    offer = open_offers(mailing.tenant).filter(pk=row.credential_id).first()
    definition = definition_of(row.credential.definition_id)
    link = offer.connection.invitation_url if offer and offer.connection else None
    if not offer or not link or not definition:
        row.change([Status.WAITING], Status.SKIPPED, code="offer_is_not_open")
        return
    if unsubscribing.is_unsubscribed(address):
        row.change([Status.WAITING], Status.SKIPPED, code="unsubscribed")
        return
    reply_to = vault.unseal(mailing, "reply_to") or ""
    mail = offers.write_mail(
        definition,
        text=vault.unseal(mailing, "text") or "",
        name=offer.unsealed_recipient_name(),
        link=link,
        language=mailing.language,
        is_reminder=mailing.is_reminder,
        can_answer=bool(reply_to),
    )
    build = partial(
        offers.build_message,
        mail,
        organization=mailing.tenant.name,
        to=address,
        reply_to=reply_to,
        language=mailing.language,
        message_id=str(row.pk),
        moment=clock.now(),
        unsubscribe=unsubscribing.link_for(address),
    )

    def begin() -> bool:
        has_begun = row.begin_sending(mailing)
        if has_begun:
            faults.fault_point("before_mail_data")
        return has_begun

    if server.deliver(build, offers.sender_address(), address, begin):
        faults.fault_point("after_mail_data")
        row.end_sending(Status.SENT)


def note_refusal(row: MailingRow, error: Refused) -> None:
    code = f"refused_{error.code}"
    if error.was_data:
        row.end_sending(Status.REFUSED, code)
    elif error.is_temporary:
        row.refuse_for_now(code)
    elif row.change([Status.WAITING], Status.REFUSED, code=code):
        # It counts too: nobody tries addresses here without end.
        with transactions.atomic():
            MailDay.take_one(row.tenant)


def find_definition(tenant: Tenant, definition_id: str) -> CredentialDefinition | None:
    rows = CredentialDefinition.objects.filter(
        tenant=tenant, definition_id=definition_id
    )
    rows = rows.select_related("schema", "tenant")
    return rows.defer("private_key", "key_proof").first()


# Mailings occupy one thread of a process at most.
loop: Loop[Mailing] = Loop(
    claim=lambda _: Mailing.claim_next(), work=lambda one: work_on(one, take_turn)
)
