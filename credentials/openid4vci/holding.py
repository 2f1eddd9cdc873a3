"""A hosted wallet takes what a link of OpenID4VCI offers, as SD-JWT VC.

The holder's key is made for this credential and sealed with it. What the next request
to the issuer needs is stored before it is sent, so a process that dies loses nothing: a
worker repeats the request for the same key, and the issuer answers the same. One that
dies between the issuer's token and its storing loses the offer, as a code works once.
"""

import json
import logging
import time
from contextlib import nullcontext
from datetime import timedelta
from typing import Any, NamedTuple, TypeGuard

from django.conf import settings
from django.db.models import F, Q, QuerySet

from core.database import clock
from core.database.columns import ColumnValue
from core.errors import (
    AgencyError,
    Conflict,
    Invalid,
    PeerError,
    Unavailable,
    WrongState,
)
from core.text import bounded_json
from core.text.bounded_json import JSON, Members
from core.work import network_reads, transactions
from core.work.leases import attempt
from core.work.loop import ThreadedLoop
from core.work.retention import TimeBudget
from core.work.shares import Limits, Shares
from core.work.waiting import limit_waiting
from credentials.models import (
    Credential,
    CredentialDefinition,
    CredentialFormat,
    Grant,
    TokenStatusList,
)
from credentials.models.credential import ASK_AFTER, Taken
from credentials.models.definition_format import RESERVED_CLAIMS, text_of
from credentials.models.token_status_list import Place
from credentials.openid4vci import issuers
from credentials.openid4vci.errors import ProtocolError
from credentials.openid4vci.issuers import HostedIssuer, Issuer
from credentials.openid4vci.issuing import INTERVAL, Answer
from credentials.openid4vci.offers import CODE_GRANT
from credentials.openid4vci.proofs import PROOF_TYP
from tenants import vault
from wallets.jose import sd_jwt, signing, status_token
from wallets.models import Wallet

logger = logging.getLogger(__name__)
State = Credential.State
MAX_ID = 300  # characters of a type and of an issuer
MAX_NAME = 200
GIVE_UP_AFTER = timedelta(days=30)
LONGEST_PAUSE = 600  # seconds
RUN_SECONDS = 20.0
AT_ONCE = 100  # rows
# After a killed process. Longer than all calls of a step take (foreign_calls.py).
RETRY_DELAY = timedelta(minutes=2)
THREADS = 8  # that call issuers elsewhere
PER_TENANT = 2  # of these: somebody's slow issuer leaves room for the issuers of others
# Of these the issuer says that it will never issue the credential.
FINAL_ERRORS = (
    "credential_request_denied",
    "invalid_transaction_id",
    "invalid_token",
    "unknown_credential_configuration",
    "invalid_credential_request",
)
# What has come is not what was offered: it will not be better the next time.
REFUSED = (
    "credential_refused",
    "credential_of_other_type",
    "credential_not_bound",
    "issuer_not_trusted",
)


class CodeRefused(ProtocolError):
    """The issuer gives no token for the code of an offer."""


class Offer(NamedTuple):
    """What a link offers, by the offer and the metadata of the issuer.

    offered: the row of an issuer hosted here, None of another one. thread_id: the same
    for each reading. claims: the names of the claims, as far as the issuer tells them.
    """

    issuer: Issuer

    issuer_id: str
    configuration_id: str
    server: str
    code: str
    needs_code: bool
    vct: str
    name: str
    issuer_name: str
    offered: Credential | None
    thread_id: str
    claims: list[str]

    @property
    def facts(self) -> dict[str, str]:
        """What is stored of it, and shown."""
        return {
            "issuer": self.issuer_id,
            "issuerName": self.issuer_name,
            "name": self.name,
            "vct": self.vct,
            "configuration": self.configuration_id,
            "server": self.server,
        }


def read_offer(wallet: Wallet, link: str) -> Offer:
    """Read what a link offers. Nothing is used up. Outside of transactions.

    400 `bad_credentialData`, `own_message`; 409 `offer_gone`. Errors as of ForeignIssuer,
    if the issuer is elsewhere.
    """
    try:
        offer = issuers.read_offer(link)
        return _read_offer(wallet, offer, link)
    except (bounded_json.BadJSON, ValueError) as error:
        raise _bad_offer(str(error)) from None
    except PeerError as error:
        if error.code == "bad_link":
            raise _bad_offer(error.message) from None
        raise


def _bad_offer(why: str) -> Invalid:
    hint = f"Give `credentialData` as the link of an offer: {why.removesuffix('.')}."
    return Invalid("bad_credentialData", hint, {"credentialData": [hint]})


def _read_offer(wallet: Wallet, offer: Members, link: str) -> Offer:
    issuer_id = offer.get("credential_issuer")
    names = offer.get("credential_configuration_ids")
    grants = offer.get("grants")
    grant = grants.get(CODE_GRANT) if isinstance(grants, dict) else None
    code = grant.get("pre-authorized_code") if isinstance(grant, dict) else None
    if not isinstance(issuer_id, str) or not 1 <= len(issuer_id) <= MAX_ID:
        raise issuers.bad_link("it names no credential_issuer")
    if not isinstance(names, list) or not names:
        raise issuers.bad_link("it names no credential_configuration_ids")
    if not isinstance(code, str) or not code:
        raise issuers.bad_link("it has no pre-authorized code, which is needed here")
    assert isinstance(grant, dict)
    server = grant.get("authorization_server", "")
    if not isinstance(server, str):
        raise issuers.bad_link("its authorization_server is no address")
    issuer = issuers.issuer_of(issuer_id, wallet.tenant, server)
    metadata = issuer.metadata()
    configuration_id, vct, configuration = _choose_configuration(names, metadata)
    offered, thread_id = None, thread_of(link)
    if isinstance(issuer, HostedIssuer):
        found = Grant.find_by_code(issuer.tenant, code)
        if found is None:
            raise issuers.bad_link("its code is not known")
        if found.credential.wallet_id == wallet.pk:
            message = "A wallet cannot answer its own offer or request."
            raise Invalid("own_message", message)
        offered, thread_id = found.credential, found.credential.thread_id
    elif _is_type_of_ours(vct):
        raise issuers.bad_link("it offers a type of an organization here")
    shown = configuration.get("credential_metadata")
    shown = shown if isinstance(shown, dict) else configuration
    return Offer(
        issuer=issuer,
        issuer_id=issuer_id,
        configuration_id=configuration_id,
        server=server,
        code=code,
        needs_code=isinstance(grant.get("tx_code"), dict),
        vct=vct,
        name=_display_name(shown) or vct,
        issuer_name=_display_name(metadata) or issuer_id,
        offered=offered,
        thread_id=thread_id,
        claims=_claim_names(shown),
    )


def thread_of(link: str) -> str:
    """By what a wallet knows again what it has taken from an issuer elsewhere.

    The link, as what it leads to may be gone once it was taken.
    """
    return signing.sha256_of(link.strip())


def _is_type_of_ours(vct: str) -> bool:
    """Whether a type is that of a definition here, which another issuer must not name."""
    if vct.startswith(f"{settings.PUBLIC_URL}/openid/"):
        return True
    return CredentialDefinition.objects.filter(definition_id=vct).exists()


def _choose_configuration(
    names: list[JSON], metadata: Members
) -> tuple[str, str, Members]:
    """The first configuration of an offer that can be held here, bound to a key.

    Return its name, its type and what it says.
    """
    known = metadata.get("credential_configurations_supported")
    for name in names:
        if not isinstance(known, dict) or not _is_id(name):
            continue
        found = known.get(name)
        match found:
            case {
                "format": sd_jwt.TYP,
                "vct": str(vct),
                "cryptographic_binding_methods_supported": [*methods],
                "proof_types_supported": {"jwt": _},
            } if isinstance(found, dict) and len(vct) <= MAX_ID and "jwk" in methods:
                return name, vct, found
    raise issuers.bad_link(f"the issuer offers nothing as {sd_jwt.TYP} bound to a key")


def _is_id(name: JSON) -> TypeGuard[str]:
    return isinstance(name, str) and 1 <= len(name) <= MAX_ID


def _display_name(part: Members) -> str:
    display = part.get("display")
    first = display[0] if isinstance(display, list) and display else None
    name = first.get("name") if isinstance(first, dict) else None
    return name[:MAX_NAME] if isinstance(name, str) else ""


def _claim_names(part: Members) -> list[str]:
    claims = part.get("claims")
    claims = claims if isinstance(claims, list) else []
    paths = [one.get("path") for one in claims if isinstance(one, dict)]
    return [
        one[0]
        for one in paths
        if isinstance(one, list) and one and isinstance(one[0], str)
    ]


def accept_link(
    wallet: Wallet, link: str, transaction_code: str = "", issuer_id: str = ""
) -> Credential:
    """Holder: take what a link offers. A second call returns the same credential.

    issuer_id: who the holder was told offers it, if a page has said so: what is behind
    a link elsewhere may change.

    It is Issued, or Requested while the issuer has not issued it, or does not answer:
    then a worker asks again. Outside of transactions, in which it would be lost that a
    code was tried.
    Errors as of read_offer(), and 400 `transaction_code_missing`; 409 `offer_taken`,
    `link_expired`, `transaction_code_wrong`, `issuer_refused`, `credential_refused`,
    `credential_of_other_type`, `credential_not_bound`, `issuer_not_trusted`,
    `quota_exceeded`; 503 `organization_frozen`.
    """
    network_reads.forbid_in_transaction()
    if known := find_taken(wallet, thread_of(link)):
        return known
    offer = read_offer(wallet, link)
    if issuer_id not in ("", offer.issuer_id):
        raise _bad_offer("it offers by now what another issuer issues")
    if offer.offered is None:
        return _take_elsewhere(wallet, offer, transaction_code)
    taken = _take(wallet, offer, transaction_code)
    # What is wrong was counted by the issuer, so it is raised after the commit.
    if isinstance(taken, AgencyError):
        raise taken
    return taken


@transactions.atomic()
def _take(
    wallet: Wallet, offer: Offer, transaction_code: str
) -> Credential | AgencyError:
    """All of it in one transaction, as the issuer is here."""
    wallet.lock_or_404()
    if known := find_taken(wallet, offer.thread_id):
        return known
    assert offer.offered, "the issuer is here"
    issuers.require_open(offer.offered)
    require_code(offer, transaction_code)
    try:
        token = offer.issuer.redeem(_form_of(offer, transaction_code))
    except ProtocolError as error:
        return _redeem_error(error, offer.needs_code)
    credential = _store(wallet, offer, {"access_token": token["access_token"]})
    try:
        ask(credential, offer.issuer)
    except ProtocolError as error:
        raise _issuer_refused(error) from None
    return credential


def _form_of(offer: Offer, transaction_code: str) -> dict[str, str]:
    """The token request of an offer."""
    form = {"grant_type": CODE_GRANT, "pre-authorized_code": offer.code}
    if offer.needs_code:
        form["tx_code"] = transaction_code
    return form


def _take_elsewhere(wallet: Wallet, offer: Offer, transaction_code: str) -> Credential:
    """Take what an issuer elsewhere offers. The code is stored before it is used."""
    require_code(offer, transaction_code)
    with transactions.atomic():
        wallet.lock_or_404()
        if known := find_taken(wallet, offer.thread_id):
            return known
        form = _form_of(offer, transaction_code)
        credential = _store(wallet, offer, {"form": form}, RETRY_DELAY)
    try:
        ask(credential, offer.issuer)
    except CodeRefused as error:
        _end(credential, "abandoned")
        raise _redeem_error(error, offer.needs_code) from None
    except ProtocolError as error:
        _end(credential, "abandoned")
        raise _issuer_refused(error) from None
    except Unavailable as error:
        _try_later(credential, error)
    except (PeerError, Invalid):
        _end(credential, "declined")
        raise
    return credential


def require_code(offer: Offer, transaction_code: str) -> None:
    if offer.needs_code and not transaction_code:
        raise Invalid(
            "transaction_code_missing",
            "Give `transactionCode`, which the issuer has told the holder.",
        )


def _issuer_refused(error: ProtocolError) -> PeerError:
    why = error.description or error.code
    return PeerError("issuer_refused", f"The issuer has refused: {why}")


def find_taken(wallet: Wallet, thread_id: str) -> Credential | None:
    """The credential that this wallet has for an offer already."""
    rows = Credential.objects.filter(
        thread_id=thread_id,
        wallet=wallet,
        role=Credential.Role.HOLDER,
        format=CredentialFormat.SD_JWT,
    )
    return rows.exclude(state=State.REJECTED).first()


def _redeem_error(error: ProtocolError, needs_code: bool) -> AgencyError:
    if error.code != "invalid_grant":
        return _issuer_refused(error)
    if needs_code:
        return Conflict(
            "transaction_code_wrong",
            "The issuer does not accept this transaction code. After five wrong ones "
            "the offer has ended.",
        )
    return issuers.link_taken_error()


def _store(
    wallet: Wallet,
    offer: Offer,
    taken: Taken,
    ask_after: timedelta = ASK_AFTER,
) -> Credential:
    """Store what the next requests need, in the caller's transaction."""
    definition = offer.offered.definition if offer.offered else None
    credential = Credential(
        tenant=wallet.tenant,
        wallet=wallet,
        connection=None,
        role=Credential.Role.HOLDER,
        format=CredentialFormat.SD_JWT,
        thread_id=offer.thread_id,
        schema_id=definition.schema.schema_id if definition else "",
        definition_id=definition.definition_id if definition else offer.vct,
        attribute_names=[],
    )
    vault.seal(credential, "offer_body", offer.facts)
    credential.insert_within_quota()
    secret = signing.encode_base64url(signing.generate_secret())
    credential.accept_link({"secret": secret, **taken}, ask_after)
    return credential


def ask(credential: Credential, issuer: Issuer | None = None) -> None:
    """Ask the issuer for the credential, or whether it is there by now.

    It is stored if it is. issuer: None in workers. Outside of transactions, unless the
    issuer is hosted here: then all of it is one.
    """
    facts = vault.unseal(credential, "offer_body")
    if issuer is None:
        server = facts.get("server", "")
        issuer = issuers.issuer_of(
            facts["issuer"], credential.tenant, server, in_worker=True
        )
    is_here = isinstance(issuer, HostedIssuer)
    with transactions.atomic() if is_here else nullcontext():
        _ask(credential, facts, issuer)


def _ask(credential: Credential, facts: dict[str, str], issuer: Issuer) -> None:
    taken: Taken = vault.unseal(credential, "request_metadata")
    if "form" in taken:
        taken = _redeem(credential, facts, taken, issuer)
    if "received" in taken:
        answer = 200, taken["received"]
    elif transaction := taken.get("transaction_id"):
        answer = issuer.ask_later(
            taken["access_token"], {"transaction_id": transaction}
        )
    else:
        answer = _request(facts, taken, issuer)
    status, body = answer
    if status == 202:
        _receive(credential, taken, answer, None)
        return
    if "received" not in taken and not isinstance(issuer, HostedIssuer):
        # Some issue it once. Who has signed it may be published elsewhere.
        taken = {**taken, "received": body}
        _store_taken(credential, taken)
    try:
        held = _check(body, facts, taken["secret"], issuer)
    except PeerError:
        _notify(issuer, taken, body, "credential_failure")
        raise
    _receive(credential, taken, answer, held)
    _notify(issuer, taken, body, "credential_accepted")


def _redeem(
    credential: Credential, facts: dict[str, str], taken: Taken, issuer: Issuer
) -> Taken:
    """Get the token for the code, and store it in its place. CodeRefused."""
    try:
        token = issuer.redeem(taken["form"])
    except ProtocolError as error:
        raise CodeRefused(error.code, error.description) from None
    taken = {**taken, "access_token": token["access_token"]}
    del taken["form"]
    details_of_all = token.get("authorization_details")
    for details in details_of_all if isinstance(details_of_all, list) else ():
        match details:
            case {"credential_identifiers": [str(identifier), *_]} if (
                isinstance(details, dict)
                and details.get("credential_configuration_id") == facts["configuration"]
            ):
                taken["identifier"] = identifier
    _store_taken(credential, taken)
    return taken


def _request(facts: dict[str, str], taken: Taken, issuer: Issuer) -> Answer:
    """Ask for the credential; once more, if the nonce was too old by then."""
    named: Members = (
        {"credential_identifier": taken["identifier"]}
        if "identifier" in taken
        else {"credential_configuration_id": facts["configuration"]}
    )
    secret = signing.decode_base64url(taken["secret"])

    def prove_and_ask() -> Answer:
        proof = _prove(secret, facts["issuer"], issuer.make_nonce())
        return issuer.ask(taken["access_token"], named | {"proofs": {"jwt": [proof]}})

    try:
        return prove_and_ask()
    except ProtocolError as error:
        if error.code != "invalid_nonce":
            raise
        return prove_and_ask()


def _prove(secret: bytes, issuer_id: str, nonce: str) -> str:
    """Prove to have a key (OpenID4VCI 1.0 appendix F.1). nonce: "" for none."""
    said = {"aud": issuer_id, "iat": int(time.time())}
    if nonce:
        said["nonce"] = nonce
    jwk = signing.public_jwk_of(secret)
    return signing.sign_token(said, secret, PROOF_TYP, jwk=jwk)


def _notify(issuer: Issuer, taken: Taken, body: Members, event: str) -> None:
    """Tell the issuer, which does not depend on it."""
    notification_id = body.get("notification_id")
    if isinstance(notification_id, str):
        try:
            issuer.notify(taken["access_token"], notification_id, event)
        except AgencyError as error:
            logger.info("an issuer is not told of %s: %s", event, error.code)


@transactions.atomic()
def _receive(
    credential: Credential,
    taken: Taken,
    answer: Answer,
    held: sd_jwt.Credential | None,
) -> None:
    """Store what the issuer has answered. PeerError `credential_refused`.

    held: the credential, which is checked; None if the issuer lets us wait.
    """
    _, body = answer
    if held is None:
        transaction = body.get("transaction_id") or taken.get("transaction_id")
        if not isinstance(transaction, str):
            raise _refused("the issuer names no transaction")
        again: Taken = {**taken, "transaction_id": transaction}
        _ask_again(credential, again, body.get("interval"))
        return
    definition = _definition_of(credential)
    status_list = (held.claims.get("status") or {}).get("status_list")
    credential.receive_sd_jwt(
        {"sd_jwt": _text_in(body), "secret": taken["secret"]},
        _values_of(held, definition),
        Place(status_list["uri"], status_list["idx"]) if status_list else None,
    )


def _text_in(body: Members) -> str:
    """The credential in an answer. PeerError `credential_refused`."""
    match body.get("credentials"):
        case [{"credential": str(text)}, *_]:
            return text
    raise _refused("the issuer has answered without it")


def _ask_again(credential: Credential, taken: Taken, interval: JSON = None) -> None:
    """Let a worker ask again: soon at first, later less often.

    interval: the seconds that the issuer asks for.
    """
    accepted_at = credential.accepted_at
    assert accepted_at, "it was accepted"
    age = (clock.now() - accepted_at).total_seconds()
    wish = interval if signing.is_time(interval) else INTERVAL
    pause = max(INTERVAL, min(max(age / 10, wish), LONGEST_PAUSE))
    due_at = clock.now() + timedelta(seconds=pause)
    _store_taken(credential, taken, ask_due_at=due_at)


def _store_taken(credential: Credential, taken: Taken, **changes: ColumnValue) -> None:
    """Store what the next request needs, unless another call has received it."""
    sealed = vault.sealed_value(credential, "request_metadata", taken)
    rows = Credential.objects.filter(pk=credential.pk, state=State.REQUESTED)
    rows.update(request_metadata=sealed, **changes)
    credential.request_metadata = sealed


def _refused(why: str, code: str = "credential_refused") -> PeerError:
    return PeerError(code, f"The credential is not accepted: {why.removesuffix('.')}.")


def _check(
    body: Members, facts: dict[str, str], secret: str, issuer: Issuer
) -> sd_jwt.Credential:
    """Check that the credential is what was offered, and bound to our key.

    PeerError: one of REFUSED. Unavailable, if its signer is published elsewhere.
    """
    text = _text_in(body)
    try:
        held = sd_jwt.read(text)
        issuer.verify(held)
        held.check_times(time.time())
        _read_place(held)
    except (PeerError, ValueError) as error:
        code = error.code if isinstance(error, PeerError) else ""
        if code == "issuer_not_trusted":
            raise
        if code == "not_bound":
            raise _refused("it is bound to no key", "credential_not_bound") from None
        raise _refused(str(error)) from None
    if held.vct != facts["vct"]:
        raise _refused("it is of another type", "credential_of_other_type")
    if not _is_bound_to(held, signing.decode_base64url(secret)):
        raise _refused("it is bound to another key", "credential_not_bound")
    return held


def _is_bound_to(held: sd_jwt.Credential, secret: bytes) -> bool:
    try:
        holder_key = signing.jwk_of(held.holder_key())
    except PeerError:  # it is bound to a key of another kind
        return False
    return holder_key == signing.public_jwk_of(secret)


def _read_place(held: sd_jwt.Credential) -> None:
    """ValueError unless its status, if it has one, is a place in a list."""
    match held.claims.get("status"):
        case None:
            pass
        case {"status_list": {"uri": str(uri), "idx": int(index)}}:
            if len(uri) > 500 or not 0 <= index < 2**31:
                raise ValueError("its status is no place in a list")
        case _:
            raise ValueError("its status is no place in a list")


def _definition_of(credential: Credential) -> CredentialDefinition | None:
    """The definition, if the issuer is hosted here."""
    if not credential.schema_id:
        return None
    rows = CredentialDefinition.objects.filter(definition_id=credential.definition_id)
    return rows.select_related("schema").first()


def _values_of(
    held: sd_jwt.Credential, definition: CredentialDefinition | None
) -> dict[str, str]:
    """The claims as text, as AnonCreds has them; those of a schema in its order."""
    claims = {
        name: value for name, value in held.claims.items() if name not in NOT_VALUES
    }
    if definition is None:
        return {name: _text_of(value) for name, value in claims.items()}
    names = [one for one in definition.schema.attribute_names if one in claims]
    others = [one for one in claims if one not in names]
    return {
        name: text_of(claims[name], definition.type_of(name)) or ""
        for name in (*names, *others)
    }


# Of a token, not of its holder.
NOT_VALUES = RESERVED_CLAIMS | {"jti", "sub", "aud"}


def _text_of(value: JSON) -> str:
    text = text_of(value, None)
    return json.dumps(value, ensure_ascii=False) if text is None else text


def ask_due_issuers() -> int:
    """Ask the issuers of what hosted wallets wait for, or what may be revoked.

    Return how many were asked here. Each row is claimed by a guarded UPDATE, as other
    workers may run this too. It ends after RUN_SECONDS: the next run goes on. Issuers
    elsewhere are asked by `loop`.
    """
    budget, asked = TimeBudget(RUN_SECONDS), 0
    for row in due_rows().exclude(OF_OTHERS).order_by("ask_due_at")[:AT_ONCE]:
        if not budget.take_batch():
            break
        if claim_due(row):
            asked += attempt(row, _attend, _try_later)
    if due_rows().filter(OF_OTHERS).exists():
        loop.run()
    return asked


# What an issuer elsewhere has issued is of no schema here.
OF_OTHERS = Q(schema_id="")


def is_of_others(credential: Credential) -> bool:
    """Whether a credential in a hosted wallet is of an issuer elsewhere."""
    is_holder = credential.role == Credential.Role.HOLDER
    is_sd_jwt = credential.format == CredentialFormat.SD_JWT
    return is_holder and is_sd_jwt and not credential.schema_id


def names_of_others(credential: Credential) -> tuple[str, str]:
    """How such a credential and its issuer are called. Decrypts in each call."""
    facts = vault.unseal(credential, "offer_body")
    return facts["name"], facts["issuerName"]


def due_rows() -> QuerySet[Credential]:
    """The credentials of hosted wallets whose issuers are to be asked now."""
    return Credential.objects.filter(
        ask_due_at__lte=clock.now(),
        wallet__deleted_at=None,
        tenant__deleted_at=None,
        tenant__frozen_at=None,
    ).select_related("wallet", "tenant__network")


def claim_due(row: Credential) -> bool:
    """Claim a row of due_rows(), for RETRY_DELAY."""
    rows = Credential.objects.filter(pk=row.pk, ask_due_at=row.ask_due_at)
    return bool(rows.update(ask_due_at=clock.now() + RETRY_DELAY))


class AskingLoop(ThreadedLoop[Any, None]):
    """Asks several issuers elsewhere at a time. Its rows are of Credential."""

    def claim(self, at_work: list[Any]) -> list[Any]:
        shares = Shares()
        for row in at_work:
            shares.take(self.limits_of(row))
        claimed: list[Any] = []
        while len(at_work) + len(claimed) < self.threads:
            due = due_rows().filter(OF_OTHERS).order_by("ask_due_at")
            row = due.exclude(tenant__in=shares.full("tenant")).first()
            if row is None:
                break
            if claim_due(row):
                shares.take(self.limits_of(row))
                rows = Credential.objects.select_related("wallet", "tenant__network")
                # Until then it is leased, which the loop looks at.
                claimed.append(
                    rows.annotate(lease_until=F("ask_due_at")).get(pk=row.pk)
                )
        return claimed

    def work(self, row: Any) -> None:
        # Who freezes the organization relies on it.
        with limit_waiting(settings.LEDGER_TIMEOUT):
            attempt(row, _attend, _try_later)

    def limits_of(self, row: Any) -> Limits:
        return {("tenant", row.tenant_id): PER_TENANT}


loop = AskingLoop("asking", THREADS)


def _attend(credential: Credential) -> None:
    """Do what is due of a credential of a hosted wallet."""
    if credential.state == State.REQUESTED:
        try:
            ask(credential)
        except CodeRefused:
            _end(credential, "abandoned")
        except ProtocolError as error:
            if error.code not in FINAL_ERRORS:
                raise _issuer_refused(error) from None
            _end_or_repeat(credential)
        except WrongState:  # another call has received it
            return
        except PeerError as error:
            if error.code not in REFUSED:
                raise
            _end(credential, "declined")
        else:
            _end_if_old(credential)
        return
    if credential.state == State.ISSUED and HostedLists().is_revoked(credential):
        with transactions.atomic():
            credential.receive_revocation()
    Credential.objects.filter(pk=credential.pk).update(ask_due_at=None)


def _end_or_repeat(credential: Credential) -> None:
    """The issuer says no. If it had a transaction, its answer may have been lost.

    Then the first request is repeated, for the same key.
    """
    taken = vault.unseal(credential, "request_metadata")
    if taken.pop("transaction_id", None):
        _ask_again(credential, taken)
    else:
        _end(credential, "abandoned")


def _end_if_old(credential: Credential) -> None:
    """End the wait for an issuer elsewhere that lets us wait for ever."""
    is_waiting = credential.state == State.REQUESTED and is_of_others(credential)
    if is_waiting and _age_of(credential) > GIVE_UP_AFTER:
        _end(credential, "abandoned")


def _age_of(credential: Credential) -> timedelta:
    """For how long it was accepted."""
    now = clock.now()
    return now - (credential.accepted_at or now)


def _end(credential: Credential, problem: str) -> None:
    with transactions.atomic():
        credential.receive_refusal(problem)


def _try_later(credential: Credential, error: Exception) -> None:
    if isinstance(error, AgencyError):
        logger.warning("credential %s is not received: %s", credential.pk, error.code)
    else:
        logger.exception("credential %s is not received", credential.pk)
    if credential.state != State.REQUESTED:
        return  # after RETRY_DELAY
    if _age_of(credential) > GIVE_UP_AFTER:
        _end(credential, "abandoned")
    else:
        _ask_again(credential, vault.unseal(credential, "request_metadata"))


class HostedLists:
    """The status lists of issuers here as they are now, each read once."""

    def __init__(self) -> None:
        self.read: dict[str, bytes | None] = {}

    def is_revoked(self, credential: Credential) -> bool:
        uri, index = credential.revocation_registry_id, credential.revocation_index
        if not uri or index is None:
            return False
        if uri not in self.read:
            self.read[uri] = read_bits(uri)
        bits = self.read[uri]
        try:
            return bits is not None and status_token.status_at(bits, 1, index) != 0
        except PeerError:  # an issuer elsewhere names a place that a list has not
            return False


def read_bits(uri: str) -> bytes | None:
    """The bits of a list of an issuer here, or None."""
    base, _, number = uri.rpartition("/status/")
    try:
        hosted = issuers.find_hosted(base) if base else None
    except PeerError:  # of an issuer elsewhere, who may write what it likes
        return None
    if hosted is None or not number.isdecimal():
        return None
    rows = TokenStatusList.objects.filter(tenant=hosted[0], number=int(number[:9]))
    found = rows.values_list("bits", flat=True).first()
    return None if found is None else bytes(found)
