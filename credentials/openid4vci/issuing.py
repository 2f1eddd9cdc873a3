"""The credential endpoints: a credential for the key that a wallet proves to have."""

from datetime import timedelta

from django.utils import timezone

from core.text.bounded_json import JSON, Members
from core.work import transactions
from credentials.models import Credential, Grant
from credentials.openid4vci import proofs
from credentials.openid4vci.errors import ProtocolError, invalid_token
from credentials.openid4vci.offers import configuration_id
from credentials.openid4vci.proofs import Proof
from tenants import vault
from tenants.models import Tenant

INTERVAL = 5  # seconds until a wallet should ask again
LOST_SECONDS = 60  # in which an answer that was lost is asked for again
EVENTS = ("credential_accepted", "credential_failure", "credential_deleted")
MAX_PROOFS = 1
State = Credential.State
Answer = tuple[int, Members]  # a status and a body


def answer_request(tenant: Tenant, grant: Grant, body: JSON) -> Answer:
    """Answer a credential request (OpenID4VCI 1.0 section 8): a status and a body.

    The first valid one has the credential. If it is repeated for the same key, the
    answer is the same, as the first may have been lost. ProtocolError.
    """
    if not grant.is_token_fresh:
        raise invalid_token("DPoP" if grant.token_thumbprint else "Bearer")
    proof = proofs.read_proof(_read_proof_text(grant, body), tenant)
    return _take_request(grant, proof)


def _read_proof_text(grant: Grant, body: JSON) -> JSON:
    """Check the members of a request. Return its proof."""
    if not isinstance(body, dict):
        raise _bad_request("The body must be a JSON object.")
    has_identifier = "credential_identifier" in body
    if has_identifier == ("credential_configuration_id" in body):
        raise _bad_request("Give the credential_configuration_id.")
    if has_identifier:
        raise ProtocolError(
            "unknown_credential_identifier", "No identifier was given to you."
        )
    offered = configuration_id(grant.credential.definition)
    if body["credential_configuration_id"] != offered:
        raise ProtocolError(
            "unknown_credential_configuration", "The offer is for another one."
        )
    if "credential_response_encryption" in body:
        raise ProtocolError(
            "invalid_encryption_parameters", "Answers are not encrypted here."
        )
    proofs_given = body.get("proofs")
    if not isinstance(proofs_given, dict) or list(proofs_given) != ["jwt"]:
        raise ProtocolError("invalid_proof", "Give proofs of the type jwt.")
    texts = proofs_given["jwt"]
    if not isinstance(texts, list) or len(texts) != MAX_PROOFS:
        raise ProtocolError("invalid_proof", f"Give {MAX_PROOFS} proof.")
    return texts[0]


@transactions.atomic()
def _take_request(found: Grant, proof: Proof) -> Answer:
    grant = found.lock()
    if grant is None:
        raise _denied()
    credential = grant.credential
    credential.definition = found.credential.definition  # which never changes
    if grant.key_thumbprint:
        if grant.key_thumbprint != proof.thumbprint:
            raise _denied()
        return _answer(grant)
    if credential.state != State.OFFERED:
        raise _denied()
    proofs.spend_nonce(proof)
    credential.receive_wallet_request(proof.jwk)
    connection = credential.connection
    assert connection, "it is locked"
    grant.update(
        key_thumbprint=proof.thumbprint, token_expires_at=connection.expires_at
    )
    connection.update_columns(expiry_due_at=connection.expires_at)
    if credential.automatic_issuance:
        credential.issue()
    return _answer(grant)


def _answer(grant: Grant) -> Answer:
    """The answer to who has proven the holder's key."""
    state = grant.credential.state
    if state == State.REQUESTED:
        return 202, {"transaction_id": str(grant.pk), "interval": INTERVAL}
    if state != State.ISSUED:
        raise _denied()
    held = vault.unseal(grant.credential, "credential")
    return 200, {
        "credentials": [{"credential": held["sd_jwt"]}],
        "notification_id": str(grant.pk),
    }


@transactions.atomic()
def answer_deferred(found: Grant, body: JSON) -> Answer:
    """Answer a deferred credential request (section 9). ProtocolError.

    Once it has the credential, the transaction ends LOST_SECONDS later: until then the
    answer is given again, as it may have been lost.
    """
    given = body.get("transaction_id") if isinstance(body, dict) else None
    unknown = ProtocolError("invalid_transaction_id", "There is no such transaction.")
    if given != str(found.pk):
        raise unknown
    grant = found.lock()
    if grant is None or not grant.key_thumbprint:
        raise unknown
    now = timezone.now()
    if grant.served_at and grant.served_at + timedelta(seconds=LOST_SECONDS) <= now:
        raise unknown
    status, answer = _answer(grant)
    if status == 200:
        # Credo 0.6.3 reads no deferred answer that has one.
        del answer["notification_id"]
        if not grant.served_at:
            grant.update(served_at=now)
    return status, answer


def take_notification(grant: Grant, body: JSON) -> None:
    """Note in the grant what became of the credential (section 11). ProtocolError."""
    if not isinstance(body, dict) or body.get("event") not in EVENTS:
        raise ProtocolError(
            "invalid_notification_request", f"Give an event: {', '.join(EVENTS)}."
        )
    if body.get("notification_id") != str(grant.pk) or not grant.key_thumbprint:
        raise ProtocolError("invalid_notification_id", "There is no such notification.")
    grant.update(notified=body["event"])


def _bad_request(sentence: str) -> ProtocolError:
    return ProtocolError("invalid_credential_request", sentence)


def _denied() -> ProtocolError:
    return ProtocolError(
        "credential_request_denied", "The credential is not issued for this request."
    )
