"""Accept in the wallet what a link offers or asks, as the wallet API does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from agency.holders.links.contents import contents_of
from agency.holders.links.links import Kind, Link, find_link
from agency.holders.wallet import consent
from agency.holders.wallet.models import PersonalLink
from agency.holders.wallet.pages import show_page, wallet_page
from agency.holders.wallet.texts import count_tries, describe_error
from agency.words.cards import Card, draw_card
from agency.words.links import LinkState, heading
from connections import invitation_links
from connections.api.given_messages import check_message
from connections.didcomm import message as didcomm
from connections.didcomm.message import Message
from connections.protocols import connectionless, handshakes
from core.api.views import heavy
from core.database import clock
from core.errors import AgencyError
from credentials.issue_credential import handlers
from credentials.messages import check_shared_offer, read_preview
from credentials.models import Credential
from credentials.models.grant import MAX_TRIES
from credentials.openid4vci import holding
from verifications.messages import check_shared_request
from verifications.models import Verification
from verifications.openid4vp import presenting
from verifications.present_proof import prover
from wallets.jose import certificates
from wallets.models import SigningKey, TrustAnchor, Wallet

MAX_TYPED = 32  # characters of a transaction code, with spaces
CODE_ERRORS = ("transaction_code_missing", "transaction_code_wrong")


@dataclass(frozen=True)
class Acceptance:
    """What a page shows of a link, and what happens when the holder agrees.

    show: returns the context of the page. accept, decline: return the redirection to
    the next page. Only a request is declined: an offer that nobody wants just stays.
    """

    show: Callable[[], dict[str, Any]]
    accept: Callable[[HttpRequest], HttpResponse]
    decline: Callable[[HttpRequest], HttpResponse] | None = None


@heavy
@wallet_page("GET", "HEAD", "POST")
def accept_link(request: HttpRequest, link: PersonalLink, token: str) -> HttpResponse:
    """The page of a link of this server inside the wallet.

    POST agrees, or declines; GET only shows it. 404 for an unknown link, and for one of
    DIDComm of another organization. A link that cannot be used any more leads to its
    own page, which says what became of it.
    """
    found = find_link(token)
    if found is None or not may_be_taken(found, link):
        raise Http404
    if not found.is_open:
        return redirect("invitation", token=token)
    acceptance = prepare_acceptance(found, link.wallet)
    if request.method == "POST":
        if acceptance.decline and request.POST.get("action") == "decline":
            return acceptance.decline(request)
        try:
            return acceptance.accept(request)
        except AgencyError as error:
            if error.code not in CODE_ERRORS:
                raise
            return ask_for_code_again(request, link, found, error)
    return show_acceptance(request, link, found, acceptance.show())


def may_be_taken(found: Link, link: PersonalLink) -> bool:
    """Whether the wallet may answer a link: of its organization, or of OpenID4VC."""
    if found.tenant.pk == link.tenant_id:
        return True
    return bool(found.connection and found.connection.wallet_link)


def describe_stranger(found: Link, link: PersonalLink) -> dict[str, Any]:
    """Who stands behind another organization of this server, whatever it calls itself.

    Anybody may have one here, of the name and colors of the holder's own.
    """
    if found.tenant.pk == link.tenant_id:
        return {}
    is_offer = found.kind == Kind.OFFER
    purpose = (
        SigningKey.Purpose.CREDENTIALS if is_offer else SigningKey.Purpose.REQUESTS
    )
    chain = certificates.read_chain(SigningKey.of(found.tenant, purpose).x5c)
    voucher = TrustAnchor.find_above(link.wallet.tenant, chain, clock.now())
    return {"is_stranger": True, "voucher": voucher}


def show_acceptance(
    request: HttpRequest,
    link: PersonalLink,
    found: Link,
    shown: dict[str, Any],
    status: int = 200,
) -> HttpResponse:
    context = {
        "found": found,
        "heading": heading(found.kind, LinkState.WAITING, found.name),
        "contents": contents_of(found),
        "can_decline": found.kind == Kind.REQUEST,
        **describe_stranger(found, link),
        **shown,
    }
    return show_page(request, link, "accept_link", context, status=status)


def ask_for_code_again(
    request: HttpRequest, link: PersonalLink, found: Link, error: AgencyError
) -> HttpResponse:
    """Say that the code was wrong. The fifth time it has ended the offer."""
    now = find_link(found.token)
    if now is None or not now.is_open:
        return redirect("invitation", token=found.token)
    assert isinstance(now.exchange, Credential)
    left = MAX_TRIES - now.exchange.grant.tries
    message = f"{describe_error(error)} {count_tries(left)}"
    shown = {"asks_code": True, "error": error, "message": message}
    return show_acceptance(request, link, now, shown, status=error.status)


def prepare_acceptance(found: Link, wallet: Wallet) -> Acceptance:
    """Return what the page shows of a link, and what to call when the holder agrees.

    The wallet connects if the link is an invitation, also if an offer or request is
    attached to it: that is in the inbox then. An offer or request by itself is answered
    without a connection. Nothing is changed here. Outside of transactions, as the
    ledger may be read: 503 if it does not respond. 400 `bad_credentialData` or
    `bad_verificationData` if what the link carries cannot be read.
    """
    assert found.connection
    if found.connection.wallet_link:
        return prepare_openid(found, found.connection.wallet_link, wallet)
    body = invitation_links.shared_message(found.connection)
    tenant = found.tenant
    if found.kind == Kind.INVITATION or found.connection.carries_exchange:
        accept = partial(accept_invitation, wallet, didcomm.read(body), found.kind)
        return Acceptance(dict, accept)
    if found.kind == Kind.OFFER:
        offer = check_message(body, "credentialData", check_shared_offer, tenant)
        return Acceptance(
            lambda: {"card": draw_offered(found, read_preview(offer))},
            partial(accept_offer, wallet, offer),
        )
    asked = check_message(body, "verificationData", check_shared_request, tenant)
    return Acceptance(
        lambda: consent.consent_context(prover.preview_shared_request(wallet, asked)),
        partial(answer_request, wallet, asked),
        partial(decline_request, wallet, asked),
    )


def prepare_openid(found: Link, link: str, wallet: Wallet) -> Acceptance:
    """The same for a link of OpenID4VC, with which nobody connects.

    Of an offer with a transaction code no value is shown before that is given.
    """
    if found.kind == Kind.OFFER:
        assert isinstance(found.exchange, Credential)
        if holding.read_offer(wallet, link).needs_code:
            shown: dict[str, Any] = {"asks_code": True}
        else:
            values = found.exchange.unsealed_values() or {}
            shown = {"card": draw_offered(found, values)}
        return Acceptance(lambda: shown, partial(take_card, wallet, link))
    unsaved = presenting.preview(wallet, presenting.read_request(link))

    def answer(request: HttpRequest) -> HttpResponse:
        selections = consent.read_selections(unsaved, request.POST)
        answered = presenting.answer_link(wallet, link, selections)
        return redirect("web_wallet:request", object_id=answered.pk)

    def decline(request: HttpRequest) -> HttpResponse:
        reason = consent.read_reason(request.POST)
        declined = presenting.decline_link(wallet, link, reason)
        return redirect("web_wallet:request", object_id=declined.pk)

    return Acceptance(lambda: consent.consent_context(unsaved), answer, decline)


def take_card(wallet: Wallet, link: str, request: HttpRequest) -> HttpResponse:
    """Take what a link of OpenID4VCI offers, with the code that the holder was told.

    Errors as in holding.accept_link().
    """
    taken = holding.accept_link(wallet, link, read_code(request.POST))
    return redirect("web_wallet:offer", object_id=taken.pk)


def read_code(form: QueryDict) -> str:
    """The transaction code, which people may type with spaces."""
    return "".join(form.get("transaction_code", "")[:MAX_TYPED].split())


def draw_offered(found: Link, values: Mapping[str, str]) -> Card:
    """The card that a link offers."""
    assert isinstance(found.exchange, Credential)
    return draw_card(found.exchange.definition, values)


def accept_invitation(
    wallet: Wallet, invitation: Message, kind: str, request: HttpRequest
) -> HttpResponse:
    """Connect, in one transaction, and lead to the inbox.

    A message that is attached to the invitation arrives there. An invitation for many
    connects a wallet once: a visitor could use up the organization's connections.
    """
    handshakes.accept_invitation(wallet, invitation, once=True)
    inbox = reverse("web_wallet:inbox")
    return redirect(f"{inbox}?connected" if kind == Kind.INVITATION else inbox)


def accept_offer(wallet: Wallet, offer: Message, request: HttpRequest) -> HttpResponse:
    """Request the offered credential, in one transaction.

    409 `offer_taken` if another wallet was faster, which may be known only after the
    commit.
    """
    accepted = handlers.accept_shared_offer(wallet, offer)
    assert accepted.connection
    connectionless.discard_if_beaten(accepted.connection, accepted)
    return redirect("web_wallet:offer", object_id=accepted.pk)


def answer_request(
    wallet: Wallet, asked: Message, request: HttpRequest
) -> HttpResponse:
    """Answer with the chosen cards. Errors as in accept_offer().

    Also 400 `choice_missing`.
    """
    # Only to read the items of the request: nothing is stored of it.
    preview = prover.preview_shared_request(wallet, asked)
    selections = consent.read_selections(preview, request.POST)
    prepared = prover.prepare_shared_answer(wallet, asked, selections)
    return show_answered(prover.answer_shared_request(wallet, asked, prepared))


def decline_request(
    wallet: Wallet, asked: Message, request: HttpRequest
) -> HttpResponse:
    """Decline, which uses the link up. Errors as in accept_offer()."""
    reason = consent.read_reason(request.POST)
    return show_answered(prover.decline_shared_request(wallet, asked, reason))


def show_answered(answered: Verification) -> HttpResponse:
    """Lead to the request, after its commit. 409 `offer_taken`."""
    assert answered.connection
    connectionless.discard_if_beaten(answered.connection, answered)
    return redirect("web_wallet:request", object_id=answered.pk)
