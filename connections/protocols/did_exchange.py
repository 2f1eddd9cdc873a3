"""Messages of didexchange/1.0 and 1.1 (RFC 0023).

A DID that contains its document (did:peer:4) is sent alone; in a response the key of
the invitation signs it (`did_rotate~attach`). Other DIDs are sent with their document,
signed (`did_doc~attach`).
"""

import json

from connections import resolver
from connections.didcomm import dids, signatures
from connections.didcomm.dids import Party
from connections.didcomm.message import Body, Message, build, text
from core.errors import PeerError
from core.text import bounded_json
from core.text.bounded_json import JSON
from tenants.models import Tenant
from wallets import keys

COMPLETE = "didexchange/1.1/complete"
PROBLEM = "didexchange/1.1/problem_report"


def build_request(
    version: str,
    label: str,
    party: Party,
    seed: bytes,
    prefix: str,
    parent: str | None,
) -> Body:
    """Build a request: with a did:peer:4 in 1.1, with a legacy DID in 1.0.

    Agents that know only 1.0 read legacy DIDs. party: ours; its did is not used. seed:
    of its key. parent: the id of the invitation.
    """
    document = None
    if version == "1.0":
        did, document = _legacy(party)
    else:
        did = dids.peer_4(party.verkey, party.endpoint)
    body = build(f"didexchange/{version}/request", prefix, label=label, did=did)
    if document:
        body["did_doc~attach"] = _signed_document(document, seed)
    return body | {"~thread": {"thid": body["@id"], "pthid": parent}}


def read_request(message: Message, tenant: Tenant | None = None) -> Party:
    """The requester. If its document is signed, its key must have signed it.

    PeerError `bad_signature`, or what is wrong with the DID.
    tenant: the organization on whose behalf a public DID is resolved.
    """
    party = _read(message, tenant)
    signed_by = signatures.signers(message.body.get("did_doc~attach"))
    if signed_by and party.verkey not in signed_by:
        raise PeerError("bad_signature", "the document is not signed by its own key")
    return party


def build_response(party: Party, invitation_seed: bytes, answered: Message) -> Body:
    """Build the response, with the same kind of DID that the requester used.

    For a kind that we do not write, such as did:web, with a did:peer:4. The key of
    the invitation signs the DID or its document, so that the requester knows us by it.
    answered: the request.
    """
    asked, version = text(answered.body, "did"), answered.protocol[1]
    document = None
    if asked.startswith("did:peer:1"):
        did, document = dids.peer_1(party.verkey, party.endpoint)
    elif asked.startswith("did:") and not asked.startswith("did:sov:"):
        did = dids.peer_4(party.verkey, party.endpoint)
    else:
        did, document = _legacy(party)
    body = build(
        f"didexchange/{version}/response",
        answered.prefix,
        answered.thread_id,
        answered.parent_id,
        did=did,
    )
    if document:
        return body | {"did_doc~attach": _signed_document(document, invitation_seed)}
    rotation = signatures.sign(did.encode(), "text/string", invitation_seed)
    return body | {"did_rotate~attach": rotation}


def read_response(
    message: Message, inviter_key: str, tenant: Tenant | None = None
) -> Party:
    """The responder. PeerError `bad_signature` unless the invitation's key signed.

    That key must have signed the document or the DID, or have packed the message.
    """
    did = text(message.body, "did")
    attachment = message.body.get("did_doc~attach")
    if dids.carries_document(did):
        attachment = message.body.get("did_rotate~attach")
        if attachment is not None and signatures.content_of(attachment) != did.encode():
            raise PeerError("bad_signature", "did_rotate~attach names another DID")
    if inviter_key not in {*signatures.signers(attachment), message.sender}:
        raise PeerError(
            "bad_signature", "the invitation's key has not signed the response"
        )
    return _read(message, tenant)


def build_complete(
    version: str, thread_id: str, prefix: str, parent: str | None
) -> Body:
    return build(f"didexchange/{version}/complete", prefix, thread_id, parent)


def _read(message: Message, tenant: Tenant | None) -> Party:
    """The party of the DID in a request or response. Signatures are not checked here.

    A public DID that came without a document is resolved for the tenant, as that of a
    stranger; without a tenant, it is PeerError `unknown_did`.
    """
    did = text(message.body, "did")
    attachment, document = message.body.get("did_doc~attach"), None
    if attachment is not None:
        try:
            document = bounded_json.loads(signatures.content_of(attachment))
        except bounded_json.BadJSON as error:
            raise PeerError("message_parse_failure", str(error)) from None
        if not isinstance(document, dict):
            raise PeerError(
                "message_parse_failure",
                "did_doc~attach holds no document",
            )
    if tenant and document is None:
        return resolver.resolve(did, tenant, is_stranger=True)
    return dids.read(did, document)


def _legacy(party: Party) -> tuple[str, dict[str, JSON]]:
    """A legacy DID and its document.

    There it is written with did:sov, because ACA-Py compares the two so.
    """
    did = keys.did_of(party.verkey)
    return did, dids.legacy_document(party._replace(did=f"did:sov:{did}"))


def _signed_document(document: dict[str, JSON], seed: bytes) -> dict[str, JSON]:
    return signatures.sign(json.dumps(document).encode(), "application/json", seed)
