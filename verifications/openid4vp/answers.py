"""Answers of wallets to requests of OpenID4VP.

Only an answer that is encrypted to the request's key and has its state decides: that
wallet has spoken. Anything else leaves the request open, as anybody may have the link.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings

from connections.link_expiry import require_unexpired
from core.database.uuids import parse_uuid
from core.errors import Conflict, PeerError, WrongState
from core.text import bounded_json
from core.text.bounded_json import JSON
from core.work import network_reads, transactions
from credentials.models import TokenStatusList
from credentials.openid4vci import last_documents
from credentials.openid4vci.errors import ProtocolError
from tenants import vault
from verifications.models import Verification
from verifications.openid4vp import sd_jwt_rules
from verifications.openid4vp.foreign_lists import ListNeeded, find_kept_status
from verifications.openid4vp.queries import Query
from verifications.openid4vp.requests import KEY_ID, queries_of
from verifications.openid4vp.sd_jwt_rules import Trust
from verifications.proofs.checks import Outcome
from wallets.jose import encryption, signing, status_token
from wallets.models import Authority, SigningKey, issuer_url

State = Verification.State
FindStatus = Callable[[Mapping[str, Any], Query], int]
DECLINED = "access_denied"


def refuse(description: str) -> ProtocolError:
    return ProtocolError("invalid_request", description)


def receive_answer(verification: Verification, form: Mapping[str, str]) -> None:
    """Judge an answer and store the verdict, or end what the wallet has declined.

    The same answer once more changes nothing. ProtocolError for one that does not
    decide, and for another one after that.
    """
    answer = _open_answer(verification, form)
    if verification.state != State.REQUESTED or verification.presentation is not None:
        _require_same(verification, answer)
        return
    try:
        _store_answer(verification, answer)
    except WrongState:  # another answer has come meanwhile
        verification.refresh_from_db()
        _require_same(verification, answer)
    except Conflict as error:  # the link has ended
        raise refuse(error.message) from None


def _open_answer(
    verification: Verification, form: Mapping[str, str]
) -> dict[str, JSON]:
    """Return what is encrypted. ProtocolError unless it is of this request."""
    if "response" not in form:
        raise refuse("Send the answer encrypted, as response.")
    answer_key = vault.unseal(verification, "answer_key")
    secret = signing.decode_base64url(answer_key["secret"])
    try:
        plaintext = encryption.decrypt(form["response"], secret, KEY_ID)
        answer = bounded_json.loads(plaintext, unique_keys=True)
    except (PeerError, bounded_json.BadJSON) as error:
        raise refuse(f"The answer cannot be read: {error}") from None
    if not isinstance(answer, dict) or answer.get("state") != answer_key["state"]:
        raise refuse("The answer is to another request: its state is wrong.")
    return answer


def _require_same(verification: Verification, answer: dict[str, JSON]) -> None:
    stored = vault.unseal(verification, "presentation")
    if "error" in answer or stored is None or stored != _to_store(answer):
        raise refuse("The request was answered already, or has ended.")


def _to_store(answer: dict[str, JSON]) -> dict[str, JSON]:
    return {"vp_token": answer.get("vp_token")}


def _store_answer(verification: Verification, answer: dict[str, JSON]) -> None:
    if "error" in answer:
        _decline(verification)
        return
    # The crypto comes before the lock.
    try:
        outcome = judge(
            verification, answer.get("vp_token"), network_reads.now(), find_kept_status
        )
    except ListNeeded:
        outcome = None
    with transactions.atomic():
        _bind(verification)
        if outcome:
            verification.receive_answer(_to_store(answer), outcome)
        else:
            verification.keep_answer(_to_store(answer))


@transactions.atomic()
def _decline(verification: Verification) -> None:
    _bind(verification)
    verification.receive_refusal()


def _bind(verification: Verification) -> None:
    """Give the link to this wallet, in the caller's transaction.

    409 `link_expired`, `connection_gone`, `wrong_state` if another one has it.
    """
    verification.lock_to_act()
    connection = verification.require_connection()
    if verification.state != State.REQUESTED or not connection.is_open:
        raise WrongState(verification, [State.REQUESTED])
    require_unexpired(connection)
    connection.bind_wallet(None)


def judge(
    verification: Verification, vp_token: JSON, now: float, find_foreign: FindStatus
) -> Outcome:
    """Judge an answer of this time. find_foreign: the status by a list of others."""
    answer_key = vault.unseal(verification, "answer_key")
    found = queries_of(verification)
    return sd_jwt_rules.judge_answer(
        verification.unsealed_policy(),
        found,
        vp_token,
        answer_key["client_id"],
        answer_key["nonce"],
        now,
        trust_for(found, find_foreign),
    )


def trust_for(found: list[Query], find_foreign: FindStatus) -> Trust:
    """What counts for the answers to these queries."""
    tenant_ids = {one.issuer.rpartition("/")[2] for one in found if one.issuer}
    keys = SigningKey.objects.filter(
        purpose=SigningKey.Purpose.CREDENTIALS,
        tenant_id__in=tenant_ids,
        tenant__deleted_at=None,
    )
    thumbprints = {issuer_url(one.tenant_id): one.thumbprint for one in keys}
    deleted = tenant_ids - {str(one.tenant_id) for one in keys}
    thumbprints |= last_documents.find_thumbprints(deleted)

    def find_status(listed: Mapping[str, JSON], query: Query) -> int:
        is_here = str(listed.get("uri")).startswith(f"{settings.PUBLIC_URL}/openid/")
        return (find_own if query.issuer or is_here else find_foreign)(listed, query)

    return Trust(Authority.every_certificate(), thumbprints, find_status)


def find_own(listed: Mapping[str, JSON], query: Query) -> int:
    """The status of a credential of an organization here, as its list says now."""
    base, _, number = str(listed.get("uri")).rpartition("/status/")
    if query.issuer and base != query.issuer or not number.isdecimal():
        raise status_token.bad_list("it is not one of the issuer")
    rows = TokenStatusList.objects.filter(number=int(number[:9]))
    tenant_id = parse_uuid(base.rpartition("/")[2])
    row = rows.filter(tenant=tenant_id, tenant__deleted_at=None).first()
    if row is None:
        return last_documents.find_last_status(
            f"{base}/status/{number}", listed.get("idx"), network_reads.now()
        )
    return status_token.status_at(bytes(row.bits), 1, listed.get("idx"))
