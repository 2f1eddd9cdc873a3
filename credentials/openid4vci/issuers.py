"""Issuers of OpenID4VCI, as a hosted wallet speaks with them.

One that is hosted here is never called over the network: its endpoints are functions.
Those of others are in foreign_issuers.py.
"""

import re
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from django.conf import settings

from connections.link_expiry import require_unexpired
from connections.models import Connection
from connections.protocols.connectionless import link_gone_error, link_taken_error
from core.database.uuids import parse_uuid
from core.errors import PeerError
from core.text import bounded_json
from core.text.bounded_json import JSON, Members
from credentials.models import Credential
from credentials.openid4vci import issuing, metadata, proofs, tokens
from credentials.openid4vci.foreign_calls import Calls, is_secure, json_of
from credentials.openid4vci.foreign_issuers import ForeignIssuer
from credentials.openid4vci.issuing import Answer
from credentials.openid4vci.offers import find_offer
from tenants import vault
from tenants.models import Tenant
from tenants.models.organizations import organization_by_id
from wallets.jose import certificates, sd_jwt

SCHEMES = ("openid-credential-offer", "haip-vci")


def bad_link(why: str) -> PeerError:
    return PeerError("bad_link", why)


class Issuer(Protocol):
    """The endpoints of an issuer. What it refuses is a ProtocolError."""

    def metadata(self) -> Members: ...

    def redeem(self, form: Mapping[str, str]) -> tokens.TokenAnswer: ...

    def make_nonce(self) -> str: ...

    def ask(self, access_token: str, body: Members) -> Answer: ...

    def ask_later(self, access_token: str, body: Members) -> Answer: ...

    def verify(self, held: sd_jwt.Credential) -> None: ...

    def notify(self, access_token: str, notification_id: str, event: str) -> None: ...


class HostedIssuer:
    """An organization here."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant

    def metadata(self) -> Members:
        return metadata.issuer_metadata(self.tenant)

    def redeem(self, form: Mapping[str, str]) -> tokens.TokenAnswer:
        grant = tokens.find_code(self.tenant, form)
        return tokens.redeem_code(self.tenant, grant, form, None)

    def make_nonce(self) -> str:
        return proofs.make_nonce(self.tenant)

    def ask(self, access_token: str, body: Members) -> Answer:
        bearer = f"Bearer {access_token}"
        grant = tokens.find_grant(self.tenant, bearer, None, "credential")
        return issuing.answer_request(self.tenant, grant, body)

    def ask_later(self, access_token: str, body: Members) -> Answer:
        bearer = f"Bearer {access_token}"
        grant = tokens.find_grant(self.tenant, bearer, None, "deferred_credential")
        return issuing.answer_deferred(grant, body)

    def verify(self, held: sd_jwt.Credential) -> None:
        """Check the signature. It was issued in this call, so the signer is known."""
        [leaf, *_] = certificates.read_chain(held.token.header.get("x5c"))
        held.verify(certificates.key_of(leaf))

    def notify(self, access_token: str, notification_id: str, event: str) -> None:
        """Its own row says what became of it."""


def find_hosted(url: str) -> tuple[Tenant, str] | None:
    """The organization below whose address a URL lies, and the rest of its path.

    None if the URL is of another installation. PeerError if it is of this one, and
    leads to no organization.
    """
    own = f"{settings.PUBLIC_URL}/"
    if not url.startswith(own):
        return None
    path = url.removeprefix(own)
    if found := re.fullmatch(r"openid/([0-9a-fA-F-]{36})(/[^?#]*)?", path):
        tenant_id = parse_uuid(found[1])
        if tenant_id and (tenant := organization_by_id.first(tenant_id)):
            return tenant, found[2] or ""
    raise bad_link("this address leads to no issuer and no verifier")


def find_wallet_link(given: str, schemes: tuple[str, ...]) -> str | None:
    """The link of OpenID4VC with one of these schemes in what a caller gave, or None.

    It is given as such, or as the link of this installation whose page shows it.
    """
    given = given.strip()
    if given.partition(":")[0].lower() in schemes:
        return given
    if not given.startswith(f"{settings.PUBLIC_URL}/i/"):
        return None
    token = urlsplit(given).path.rstrip("/").rpartition("/")[2]
    found = Connection.find_by_token(token)
    if found and found.wallet_link.partition(":")[0] in schemes:
        return found.wallet_link
    return None


def read_offer(link: str) -> Members:
    """The Credential Offer in a link, or to which it leads (OpenID4VCI section 4.1).

    PeerError `bad_link`, or ValueError for what is no URL. 409 `offer_gone`. Errors as of
    Calls, for an offer that is read elsewhere.
    """
    query = parse_qs(urlsplit(link).query)
    if carried := query.get("credential_offer"):
        offer = bounded_json.loads(carried[0])
    elif address := query.get("credential_offer_uri"):
        offer = _read_offer_at(address[0])
    else:
        raise bad_link("it carries no credential offer")
    if not isinstance(offer, dict):
        raise bad_link("the offer is no JSON object")
    return offer


def _read_offer_at(address: str) -> JSON:
    hosted = find_hosted(address)
    if hosted is None:
        return _fetch_offer(address)
    tenant, path = hosted
    found = find_offer(tenant, path.removeprefix("/offers/"))
    if found is None:
        raise link_gone_error()
    return vault.unseal(found, "offer_body")


def _fetch_offer(address: str) -> JSON:
    response = Calls("issuer").get(address)
    if response.status in (404, 410):
        raise link_gone_error()
    if response.status != 200:
        raise bad_link("the offer cannot be read")
    return json_of(response)


def require_open(offered: Credential) -> None:
    """Check that an offer of an issuer here can still be taken.

    409 `offer_taken`, `offer_gone`, `link_expired`.
    """
    connection = offered.live_connection
    if connection is None or offered.state == Credential.State.REJECTED:
        raise link_gone_error()
    if not connection.is_open or offered.state != Credential.State.OFFERED:
        raise link_taken_error()
    require_unexpired(connection)


def issuer_of(
    identifier: str, tenant: Tenant, server: str = "", in_worker: bool = False
) -> Issuer:
    """The issuer of an identifier, for a wallet of this organization.

    server: the authorization server that the offer names. in_worker: see Calls.
    PeerError `bad_link`.
    """
    hosted = find_hosted(identifier)
    if hosted is None:
        if not is_secure(identifier):
            raise bad_link("the issuer has no address of https")
        return ForeignIssuer(identifier, tenant, server, in_worker)
    if hosted[1]:
        raise bad_link("this address leads to no issuer")
    return HostedIssuer(hosted[0])
