"""A hosted wallet answers a request of OpenID4VP with SD-JWT VCs that it holds.

A verifier that is hosted here is never called over the network: what it is asked and
told is one transaction with what the wallet stores. To another one the answer is sent
outside of transactions; what is to be sent is stored before, with what it shows.
"""

import json
import logging
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.db.models import Value as SqlValue

from connections.link_expiry import require_unexpired
from connections.protocols.connectionless import link_gone_error, link_taken_error
from core.database import clock
from core.database.uuids import parse_uuid
from core.errors import (
    AgencyError,
    Conflict,
    InProgress,
    Invalid,
    PeerError,
    Unavailable,
    WrongState,
)
from core.text.bounded_json import JSON
from core.work import network_reads, transactions
from credentials.models import Credential, CredentialFormat
from credentials.openid4vci.errors import ProtocolError
from credentials.openid4vci.foreign_calls import Calls, is_own, is_secure, json_of
from credentials.openid4vci.holding import HostedLists, thread_of
from credentials.openid4vci.issuers import find_hosted
from tenants import vault
from verifications.models import Unsent, Verification
from verifications.openid4vp import answers, dcql, requests
from verifications.openid4vp.dcql import Wanted
from verifications.openid4vp.queries import FORMAT
from verifications.proofs.policy import Policy, PolicyItem, Restriction
from verifications.proofs.presentation_reading import Answer, Value
from verifications.proofs.proof_items import Item
from verifications.proofs.proof_values import Proof, proof_entry
from verifications.proofs.request_reading import ProofRequest
from verifications.proofs.selection import Selection
from wallets.anoncreds import normalise_name
from wallets.jose import certificates, encryption, sd_jwt, signing
from wallets.models import TrustAnchor, Wallet

logger = logging.getLogger(__name__)
SCHEMES = ("openid4vp", "haip-vp")
State = Verification.State
MAX_NAME = 200
MAX_COMMON_NAME = 64  # characters
HOST = re.compile(r"[\x21-\x7e]{1,253}")
AT_ONCE = 20  # credentials that are decrypted before the next are read
SENDING_SECONDS = 60  # longer than the calls of a step take (foreign_calls.py)
# For so long a made answer is sent again: its binding is young enough for verifiers.
RESEND_SECONDS = 240
REQUEST_TYPE = "application/oauth-authz-req+jwt"


@dataclass(frozen=True)
class Request:
    """A request object whose signature is that of its certificate.

    items: what is asked for, by name; one of the queries of an item answers it. link: of
    a verifier elsewhere.
    """

    body: dict[str, Any]
    verifier_name: str
    items: dict[str, list[Wanted]]
    link: str = ""

    @property
    def thread_id(self) -> str:
        if self.link:
            return thread_of(self.link)
        return signing.sha256_of(f"{self.body['client_id']} {self.body['nonce']}")

    @cached_property
    def policy(self) -> Policy:
        """What is asked for, as a policy that asks the same.

        Each attribute that may be shown is there: which are depends on the card.
        """
        items = tuple(
            PolicyItem(
                policy_name=name,
                attribute_names=tuple(
                    dict.fromkeys(each for one in wanted for each in one.names)
                ),
                restrictions=tuple(
                    Restriction({"vct": vct}) for one in wanted for vct in one.vcts
                ),
            )
            for name, wanted in self.items.items()
        )
        return Policy(self.verifier_name, "1.0", items, ())


def bad_request(why: str) -> Invalid:
    hint = f"Give `verificationData` as the link of a request: {why.removesuffix('.')}."
    return Invalid("bad_verificationData", hint, {"verificationData": [hint]})


def read_request(link: str) -> Request:
    """Read the request behind a link, and check who has signed it.

    Outside of transactions, if the verifier is elsewhere: then errors as of Calls too.
    400 `bad_verificationData`; 409 `request_not_signed`, `answer_not_encrypted`,
    `unknown_transaction_data`, `offer_gone`, `offer_taken`, `link_expired`.
    """
    try:
        query = _query_of(link)
        client_id = query["client_id"]
        if is_of_others(link):
            nonce, text = _fetch_request_object(query)
            return parse_request(text, client_id, link, nonce)
        return parse_request(_read_request_object(query["request_uri"]), client_id)
    except KeyError as error:
        raise bad_request(f"it has no {error.args[0]}") from None
    except ValueError as error:
        raise bad_request(str(error)) from None
    except PeerError as error:
        if error.code in ("bad_link", "bad_token"):
            raise bad_request(error.message) from None
        raise


def _query_of(link: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}


def is_of_others(link: str) -> bool:
    """Whether the request of a link is read elsewhere, or carried by it."""
    try:
        query = _query_of(link)
        return find_hosted(query.get("request_uri", "")) is None
    except (PeerError, ValueError):
        return False


def _fetch_request_object(query: dict[str, str]) -> tuple[str, str]:
    """The nonce that was sent, if any, and the request object (OpenID4VP section 5)."""
    if "request" in query:
        return "", query["request"]
    calls, nonce = Calls("verifier"), ""
    if query.get("request_uri_method") == "post":
        nonce = secrets.token_urlsafe(16)
        form = {"wallet_nonce": nonce}
        response = calls.post_form(query["request_uri"], form, Accept=REQUEST_TYPE)
    else:
        response = calls.get(query["request_uri"], REQUEST_TYPE)
    if response.status in (404, 410):
        raise link_gone_error()
    if response.status != 200:
        raise bad_request("the request cannot be read")
    return nonce, response.body.decode("latin-1").strip()


def _read_request_object(address: str) -> str:
    found = _find_hosted_request(address)
    if found.state == State.REJECTED:
        raise link_gone_error()
    if found.state != State.REQUESTED:
        raise link_taken_error()
    require_unexpired(found.require_connection())
    return requests.sign_request(found, None)


def _find_hosted_request(address: str) -> Verification:
    """The row of the verifier here whose request or answer has this address."""
    hosted = find_hosted(address)
    if hosted is None:
        raise PeerError("bad_link", "the verifier is of another installation")
    tenant, path = hosted
    kind, _, token = path.removeprefix("/").partition("/")
    found = requests.find_request(tenant, token)
    if kind not in ("requests", "responses"):
        raise PeerError("bad_link", "this address has no request")
    if found is None:
        raise link_gone_error()
    return found


def parse_request(
    text: str, client_id: str, link: str = "", wallet_nonce: str = ""
) -> Request:
    """Check a request object (OpenID4VP section 5) against the link's `client_id`.

    link: of a verifier elsewhere, which is called by its certificate. wallet_nonce: that
    it must repeat. PeerError `bad_token` if it is none.
    """
    token = signing.read_token(text, requests.TYP)
    body = token.payload
    try:
        chain = certificates.read_chain(token.header.get("x5c"))
        if link:
            now = datetime.fromtimestamp(network_reads.now(), UTC)
            certificates.check_links(chain, now)
        leaf = chain[0]
        token.verify(certificates.key_of(leaf))
    except PeerError as error:
        raise PeerError("request_not_signed", error.message) from None
    if not _is_named(client_id, leaf, body) or body.get("client_id") != client_id:
        raise PeerError(
            "request_not_signed", "The request is not signed by whom its link names."
        )
    if wallet_nonce and body.get("wallet_nonce") != wallet_nonce:
        raise PeerError(
            "request_not_signed", "The request was signed before it was asked for."
        )
    if body.get("response_mode") != "direct_post.jwt":
        raise PeerError(
            "answer_not_encrypted",
            "The verifier asks for an answer without encryption.",
        )
    if "transaction_data" in body:
        raise PeerError(
            "unknown_transaction_data",
            "The request is to confirm a transaction, which is not known here.",
        )
    for name in ("nonce", "response_uri"):
        if not isinstance(body.get(name), str) or not body[name]:
            raise signing.bad_token(f"it has no {name}")
    _encryption_of(body)
    name = body["client_metadata"].get("client_name")
    if link:
        _check_foreign(body, _query_of(link).get("request_uri"))
        name = _name_of_stranger(leaf, body["response_uri"])
        # By which find_voucher() knows who asks, whatever the request says itself.
        body = body | {"x5c": token.header["x5c"]}
    else:
        is_given = isinstance(name, str) and name
        name = (name if is_given else certificates.common_name_of(leaf))[:MAX_NAME]
    items = dcql.read_items(body.get("dcql_query"))
    return Request(body, name, items, link)


def _name_of_stranger(leaf: certificates.Certificate, address: str) -> str:
    """What its certificate says, and the host that gets the answer, which counts.

    Of what anybody may write into a certificate only a part is shown, so that it cannot
    hide the host. PeerError `bad_token`.
    """
    host = urlsplit(address).hostname or ""
    if not HOST.fullmatch(host):
        raise signing.bad_token("its response_uri has no host that can be shown")
    said = certificates.common_name_of(leaf)
    said = "".join(one for one in said if one.isprintable())[:MAX_COMMON_NAME]
    return f"{said.strip()} ({host})".strip()


def _is_named(
    client_id: str, leaf: certificates.Certificate, body: dict[str, JSON]
) -> bool:
    """Whether a certificate is that of a client_id (OpenID4VP section 5.9.3)."""
    kind, _, name = client_id.partition(":")
    if kind == "x509_hash":
        return name == certificates.hash_of(leaf)
    if kind == "x509_san_dns":
        _, hosts = certificates.names_of(leaf)
        # Nobody has told us that this client may be answered elsewhere.
        return (
            name in hosts and urlsplit(str(body.get("response_uri"))).hostname == name
        )
    return False


def _check_foreign(body: dict[str, Any], read_at: str | None) -> None:
    """PeerError `bad_token` for a request that is old, or of another kind.

    read_at: the address of the request, which Credo names as `aud`.
    """
    now = network_reads.now()
    address, ends_at = body["response_uri"], body.get("exp", now + 1)
    if not is_secure(address) or is_own(address):
        raise signing.bad_token("its response_uri is no address of https elsewhere")
    if body.get("response_type", "vp_token") != "vp_token":
        raise signing.bad_token("it asks for something else than a vp_token")
    if body.get("aud", requests.AUDIENCE) not in (requests.AUDIENCE, read_at):
        raise signing.bad_token("it is for another wallet")
    if not signing.is_time(ends_at) or ends_at <= now:
        raise signing.bad_token("it has expired")


def _encryption_of(body: dict[str, Any]) -> tuple[signing.JWK, str]:
    """The key and the algorithm for the answer. PeerError `answer_not_encrypted`."""
    refused = PeerError(
        "answer_not_encrypted",
        "The verifier has no key by which to encrypt the answer.",
    )
    metadata = body.get("client_metadata")
    if not isinstance(metadata, dict):
        raise refused
    jwks = metadata.get("jwks")
    keys = jwks.get("keys") if isinstance(jwks, dict) else None
    encodings = metadata.get("encrypted_response_enc_values_supported", ["A128GCM"])
    if not isinstance(keys, list) or not isinstance(encodings, list):
        raise refused
    encoding = next((one for one in encryption.ENCODINGS if one in encodings), None)
    for jwk in keys:
        try:
            signing.read_public_key(jwk)
        except PeerError:
            continue
        if encoding and jwk.get("alg", "ECDH-ES") == "ECDH-ES":
            return jwk, encoding
    raise refused


def preview(wallet: Wallet, request: Request) -> Verification:
    """The row of a request, unsaved: for a page, and to choose what to show."""
    verification = Verification(
        tenant=wallet.tenant,
        wallet=wallet,
        connection=None,
        role=Verification.Role.PROVER,
        state=State.REQUESTED,
        format=CredentialFormat.SD_JWT,
        thread_id=request.thread_id,
    )
    vault.seal(verification, "policy", request.policy.to_json())
    vault.seal(verification, "request_body", request.body)
    return verification


def request_of(verification: Verification) -> Request:
    """The request of a wallet's row. Decrypts in each call."""
    body = vault.unseal(verification, "request_body")
    name = verification.unsealed_policy().name
    return Request(body, name, dcql.read_items(body.get("dcql_query")))


def find_available(verification: Verification) -> list[tuple[Item, list[Credential]]]:
    """Each item with the wallet's credentials that answer it, oldest first.

    Expired and revoked ones are left out. If any is there, the item names what they
    would show, and nothing that a stranger only pretends to ask for.
    """
    request = request_of(verification)
    found: dict[str, list[Credential]] = {name: [] for name in request.items}
    shown: dict[str, list[sd_jwt.Path]] = {name: [] for name in request.items}
    lists = HostedLists()
    for row, held in _read_held(verification.wallet, request):
        for name, wanted in request.items.items():
            answer = _answer_of(wanted, held)
            if answer and is_usable(row, held, lists):
                found[name].append(row)
                shown[name] += answer[1]
    return [
        (
            _showing(item, shown[item.policy_name])
            if found[item.policy_name]
            else item,
            found[item.policy_name],
        )
        for item in ProofRequest.of_policy(request.policy).items
    ]


def _showing(item: Item, paths: Sequence[sd_jwt.Path]) -> Item:
    """An item with the names of what is shown, instead of all that may be."""
    return replace(item, attribute_names=tuple(dcql.names_of(paths)))


def is_usable(row: Credential, held: sd_jwt.Credential, lists: HostedLists) -> bool:
    try:
        held.check_times(time.time())
    except PeerError:
        return False
    return row.state == Credential.State.ISSUED and not lists.is_revoked(row)


def _read_held(
    wallet: Wallet, request: Request
) -> Iterator[tuple[Credential, sd_jwt.Credential]]:
    """The wallet's SD-JWT VCs that have a claim of the request, oldest first."""
    wanted = [one for queries in request.items.values() for one in queries]
    names = sorted({normalise_name(name) for one in wanted for name in one.names})
    held = Credential.in_wallet(wallet, CredentialFormat.SD_JWT).order_by("pk")
    if all(all(one.options) for one in wanted):
        field = Credential._meta.get_field("attribute_names")
        given = SqlValue(names, output_field=field)
        held = held.filter(attribute_names__overlap=given)
    for row in held.iterator(chunk_size=AT_ONCE):
        stored = vault.unseal(row, "credential")
        yield row, sd_jwt.read(stored["sd_jwt"])


def _answer_of(
    wanted: Sequence[Wanted], held: sd_jwt.Credential
) -> tuple[Wanted, list[sd_jwt.Path]] | None:
    """The first query of an item that a credential answers, and what it shows then."""
    for one in wanted:
        if (paths := one.paths_shown_by(held)) is not None:
            return one, paths
    return None


def answer_link(
    wallet: Wallet, link: str, selections: Sequence[Selection] | None = None
) -> Verification:
    """Answer the request behind a link. A second call returns the same answer.

    selections: the credential of each item; without them the oldest that fits. Outside
    of transactions, if the verifier is elsewhere.

    Errors as of read_request(); 400 `unknown_policy`, `unknown_credential`,
    `selected_twice`, `restriction_not_met`; 409 `nothing_fits`, `quota_exceeded`; 503
    `organization_frozen`. Of a verifier elsewhere also 409 `verifier_refused`,
    `answer_in_progress`; 503 `verifier_unavailable`: then the call may be repeated.
    """
    if not is_of_others(link):
        return _answer_here(wallet, link, selections)
    known = _find_of_others(wallet, link)
    request = request_of(known) if known else read_request(link)
    with transactions.atomic():
        verification = _store_of_others(wallet, link, request)
        if verification.state != State.REQUESTED:
            return verification
        pending = _prepare_sending(verification, request, selections)
    return _send_elsewhere(verification, request, pending)


def receive_link(wallet: Wallet, link: str) -> Verification:
    """Store the request of a verifier elsewhere, so that what is answered was shown.

    It is Requested; a second call returns the same. Outside of transactions. Errors as
    of read_request(); 409 `quota_exceeded`; 503 `organization_frozen`.
    """
    if known := _find_of_others(wallet, link):
        return known
    if not is_of_others(link):
        raise bad_request("its verifier is of this server")
    request = read_request(link)
    with transactions.atomic():
        return _store_of_others(wallet, link, request)


def find_voucher(verification: Verification) -> TrustAnchor | None:
    """The trust anchor of the organization above who asks elsewhere, or None."""
    body = vault.unseal(verification, "request_body")
    try:
        chain = certificates.read_chain(body.get("x5c"))
    except PeerError:
        return None
    return TrustAnchor.find_above(verification.tenant, chain, clock.now())


def answer_again(
    verification: Verification, selections: Sequence[Selection] | None = None
) -> Verification:
    """Answer a request that is stored, as its verifier did not take the first answer.

    Outside of transactions. Errors as of answer_link(); 409 `wrong_state`.
    """
    request = request_of(verification)
    with transactions.atomic():
        verification.wallet.lock_or_404()
        verification.refresh_from_db()
        if verification.state != State.REQUESTED:
            raise WrongState(verification, [State.REQUESTED])
        pending = _prepare_sending(verification, request, selections)
    return _send_elsewhere(verification, request, pending)


def _find_of_others(wallet: Wallet, link: str) -> Verification | None:
    """What this wallet has answered to a link of a verifier elsewhere."""
    rows = Verification.objects.filter(thread_id=thread_of(link), wallet=wallet)
    return rows.filter(role=Verification.Role.PROVER).first()


def _store_of_others(wallet: Wallet, link: str, request: Request) -> Verification:
    """Lock the wallet, and return the row of a request elsewhere: stored once."""
    wallet.lock_or_404()
    if known := _find_of_others(wallet, link):
        return known
    verification = preview(wallet, request)
    verification.insert_within_quota()
    return verification


def _prepare_sending(
    verification: Verification,
    request: Request,
    selections: Sequence[Selection] | None,
) -> Unsent:
    """Store what is going to be sent. 409 `answer_in_progress` while another call sends.

    What was made a moment ago for the same credentials stays: a verifier that has it
    already takes no other answer. In the caller's transaction, with the lock of the
    wallet.
    """
    now = time.time()
    former: Unsent | None = vault.unseal(verification, "presentation")
    if former and former["until"] > now:
        raise InProgress(
            "answer_in_progress",
            "The answer is being sent. Read the verification again in a moment.",
        )
    until = now + SENDING_SECONDS
    pending: Unsent = {"until": until, "is_repeat": former is not None}
    if former and _is_same_choice(former, request, selections, now):
        pending = former | pending
    else:
        chosen = _choose(verification, request, selections)
        vp_token, proof = _present(request, chosen)
        ids = {name: str(row.pk) for name, (row, _) in chosen.items()}
        pending |= {"vp_token": vp_token, "proof": proof, "made_at": now, "chosen": ids}
    verification.keep_unsent(pending)
    return pending


def _is_same_choice(
    former: Unsent,
    request: Request,
    selections: Sequence[Selection] | None,
    now: float,
) -> bool:
    """Whether an answer that was made before is the one to be sent now."""
    if now - former.get("made_at", 0) >= RESEND_SECONDS:
        return False
    if selections is None:
        return True
    return bool(_check_selections(request, selections) == former["chosen"])


def _send_elsewhere(
    verification: Verification, request: Request, pending: Unsent
) -> Verification:
    answer = {"vp_token": pending["vp_token"], "state": request.body.get("state")}
    is_repeat = pending["is_repeat"]
    try:
        _post_answer(request, answer)
    except Unavailable:
        with transactions.atomic():  # the next call need not wait
            verification.keep_unsent(pending | {"until": 0})
        raise
    except (PeerError, Invalid):
        with transactions.atomic():
            # The first answer may have been taken: the holder sees what it has shown.
            verification.receive_refusal(pending["proof"] if is_repeat else None)
        raise
    try:
        with transactions.atomic():
            verification.present({"vp_token": pending["vp_token"]}, pending["proof"])
    except WrongState:  # it was declined meanwhile
        verification.refresh_from_db()
    return verification


def _post_answer(request: Request, answer: dict[str, JSON]) -> None:
    """Send an answer to a verifier elsewhere. 409 `verifier_refused`. See Calls."""
    form = {"response": _encrypt(request, answer)}
    response = Calls("verifier").post_form(request.body["response_uri"], form)
    if response.status != 200:
        why = json_of(response).get("error_description")
        why = why[:MAX_NAME] if isinstance(why, str) else f"status {response.status}"
        message = f"The verifier has refused the answer: {why}"
        raise PeerError("verifier_refused", message)


@transactions.atomic()
def _answer_here(
    wallet: Wallet, link: str, selections: Sequence[Selection] | None
) -> Verification:
    wallet.lock_or_404()
    request, verification = _receive(wallet, link)
    if verification.state == State.REQUESTED:
        chosen = _choose(verification, request, selections)
        vp_token, proof = _present(request, chosen)
        verification.present({"vp_token": vp_token}, proof)
        _send(request, {"vp_token": vp_token, "state": request.body.get("state")})
    return verification


def decline_link(wallet: Wallet, link: str, reason: str = "") -> Verification:
    """Decline the request behind a link, and tell its verifier."""
    if not is_of_others(link):
        return _decline_here(wallet, link, reason)
    request = read_request(link)
    answer = {"error": answers.DECLINED, "state": request.body.get("state")}
    _post_answer(request, answer)
    with transactions.atomic():
        verification = _store_of_others(wallet, link, request)
        verification.decline(reason)
        return verification


def tell_declined(verification: Verification) -> None:
    """Tell the verifier of a stored request that it was declined, if that is there.

    Of DIDComm the message of decline() does. Outside of transactions.
    """
    if verification.format != CredentialFormat.SD_JWT:
        return
    request = request_of(verification)
    answer = {"error": answers.DECLINED, "state": request.body.get("state")}
    try:
        _post_answer(request, answer)
    except AgencyError as error:  # nothing depends on it
        logger.info("a verifier is not told of a refusal: %s", error.code)


@transactions.atomic()
def _decline_here(wallet: Wallet, link: str, reason: str) -> Verification:
    wallet.lock_or_404()
    request, verification = _receive(wallet, link)
    answer = {"error": answers.DECLINED, "state": request.body.get("state")}
    _send(request, answer)
    verification.decline(reason)
    return verification


def _receive(wallet: Wallet, link: str) -> tuple[Request, Verification]:
    """Store the request of a link, unless this wallet has it."""
    if known := _find_answered(wallet, link):
        return request_of(known), known
    request = read_request(link)
    hosted = _find_hosted_request(request.body["response_uri"])
    if hosted.wallet_id == wallet.pk:
        message = "A wallet cannot answer its own offer or request."
        raise Invalid("own_message", message)
    verification = preview(wallet, request)
    verification.insert_within_quota()
    return request, verification


def _find_answered(wallet: Wallet, link: str) -> Verification | None:
    """What this wallet has answered to a link of this installation."""
    address = parse_qs(urlsplit(link).query).get("request_uri", [""])[0]
    try:
        hosted = _find_hosted_request(address)
    except (PeerError, Conflict):
        return None
    key = vault.unseal(hosted, "answer_key")
    thread_id = signing.sha256_of(f"{key['client_id']} {key['nonce']}")
    rows = Verification.objects.filter(thread_id=thread_id, wallet=wallet)
    return rows.filter(role=Verification.Role.PROVER).first()


def _present(
    request: Request, chosen: dict[str, tuple[Credential, sd_jwt.Credential]]
) -> tuple[dict[str, JSON], Proof]:
    """The `vp_token` of an answer, and what it shows of each item."""
    vp_token: dict[str, JSON] = {}
    proof: Proof = {}
    items = {
        one.policy_name: one for one in ProofRequest.of_policy(request.policy).items
    }
    for name, (row, held) in chosen.items():
        answer = _answer_of(request.items[name], held)
        assert answer, "it was chosen because it answers"
        wanted, paths = answer
        stored = vault.unseal(row, "credential")
        presented = sd_jwt.present(
            held,
            paths,
            request.body["client_id"],
            request.body["nonce"],
            signing.decode_base64url(stored["secret"]),
            int(time.time()),
        )
        vp_token[wanted.id] = [presented]
        texts = row.unsealed_values() or {}
        item = _showing(items[name], paths)
        shown = {
            one: Value(texts[one], "") for one in item.attribute_names if one in texts
        }
        answered = [Answer("revealed_attr_groups", 0, shown)]
        proof[name] = proof_entry(item, answered, True, FORMAT)
    return vp_token, proof


def _choose(
    verification: Verification,
    request: Request,
    selections: Sequence[Selection] | None,
) -> dict[str, tuple[Credential, sd_jwt.Credential]]:
    """The credential of each item. See answer_link()."""
    chosen: dict[str, tuple[Credential, sd_jwt.Credential]] = {}
    if selections is None:
        lists = HostedLists()
        for row, held in _read_held(verification.wallet, request):
            for name in request.items.keys() - chosen.keys():
                if _answer_of(request.items[name], held) and is_usable(
                    row, held, lists
                ):
                    chosen[name] = row, held
            if len(chosen) == len(request.items):
                return chosen
        missing = ", ".join(sorted(request.items.keys() - chosen.keys()))
        raise Conflict(
            "nothing_fits", f"The wallet has no credential that answers {missing}."
        )
    for name, credential_id in _check_selections(request, selections).items():
        selected = _find_held(verification.wallet, credential_id)
        if selected is None:
            raise _bad_selection("unknown_credential", name, "is not in the wallet")
        held = sd_jwt.read(vault.unseal(selected, "credential")["sd_jwt"])
        if not _answer_of(request.items[name], held):
            raise _bad_selection("restriction_not_met", name, "does not answer it")
        chosen[name] = selected, held
    return chosen


def _find_held(wallet: Wallet, credential_id: str) -> Credential | None:
    pk = parse_uuid(credential_id)
    rows = Credential.in_wallet(wallet, CredentialFormat.SD_JWT)
    return rows.filter(pk=pk).first() if pk else None


def _check_selections(
    request: Request, selections: Sequence[Selection]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in selections:
        name = one.policy_name
        if name not in request.items:
            raise _bad_selection("unknown_policy", name, "is not asked for")
        if name in found:
            raise _bad_selection("selected_twice", name, "has two credentials")
        if one.hidden:
            # An SD-JWT VC shows a claim or proves nothing of it.
            raise _bad_selection("hidden_not_allowed", name, "cannot be hidden")
        found[name] = one.credential_id
    if missing := request.items.keys() - found.keys():
        # A part of what is asked for is no answer.
        raise Conflict(
            "nothing_fits", f"Choose a credential for {', '.join(sorted(missing))}."
        )
    return found


def _bad_selection(code: str, name: str, why: str) -> Invalid:
    message = f"{name}: the selection {why}."
    return Invalid(code, message, {"parameters": [message]})


def _encrypt(request: Request, answer: dict[str, JSON]) -> str:
    jwk, encoding = _encryption_of(request.body)
    plaintext = json.dumps(
        {name: one for name, one in answer.items() if one is not None}
    )
    key_id = str(jwk.get("kid", ""))
    return encryption.encrypt(plaintext.encode(), jwk, encoding, key_id)


def _send(request: Request, answer: dict[str, JSON]) -> None:
    """Give an answer to the verifier here."""
    text = _encrypt(request, answer)
    hosted = _find_hosted_request(request.body["response_uri"])
    try:
        answers.receive_answer(hosted, {"response": text})
    except ProtocolError:
        raise link_taken_error() from None
