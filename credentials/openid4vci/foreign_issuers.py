"""Issuers of OpenID4VCI of other installations, called over the network.

Everything that they say is believed only as far as it is checked here: metadata must
name the issuer of the offer, and a credential be signed by who it says.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from core.errors import AgencyError, Invalid, PeerError
from core.net import http
from core.text import bounded_json
from core.text.bounded_json import Members
from core.work import network_reads
from credentials.openid4vci.errors import ProtocolError
from credentials.openid4vci.foreign_calls import (
    JSON,
    Calls,
    is_secure,
    json_of,
    well_known,
)
from credentials.openid4vci.issuing import Answer
from credentials.openid4vci.metadata import SIGNED_TYP
from credentials.openid4vci.tokens import TokenAnswer
from tenants.models import Tenant
from wallets.jose import certificates, sd_jwt, signing
from wallets.jose.signing import PublicKey
from wallets.models import TrustAnchor

ACCESS_TOKEN = re.compile(r"[\x21-\x7e]{1,16384}")  # as a header can have it
MAX_KEYS = 20
MAX_CODE = 100
MAX_DESCRIPTION = 300


def unlike_metadata(why: str) -> PeerError:
    return PeerError("issuer_unlike_metadata", f"The issuer's metadata {why}.")


class ForeignIssuer:
    """An issuer elsewhere, as a wallet of this organization speaks with it.

    The calls of one object share a time limit. Errors as of Calls, and 409
    `issuer_unlike_metadata`.
    """

    def __init__(
        self, identifier: str, tenant: Tenant, server: str = "", in_worker: bool = False
    ) -> None:
        """server: the authorization server that the offer names, if it names one."""
        self.identifier = identifier
        self.tenant = tenant
        self.server = server
        self.calls = Calls("issuer", in_worker)
        self._metadata: Members | None = None

    def metadata(self) -> Members:
        """What the issuer says of itself, read once.

        Not a cached_property: in Python 3.11 that locks all issuers while one is read.
        """
        if self._metadata is None:
            name = "openid-credential-issuer"
            found = self._read_metadata(name, self.identifier, "credential_issuer")
            self._metadata = found
        return self._metadata

    def _read_metadata(self, name: str, identifier: str, member: str) -> Members:
        if not is_secure(identifier):
            raise unlike_metadata(f"({name}) is at no address of https")
        response = self.calls.get(well_known(name, identifier))
        found = json_of(response)
        if response.status != 200 or not found:
            raise unlike_metadata(f"({name}) cannot be read")
        if found.get(member) != identifier:
            raise unlike_metadata(f"({name}) is that of another one")
        return found

    def redeem(self, form: Mapping[str, str]) -> TokenAnswer:
        response = self.calls.post_form(self._token_endpoint(), dict(form))
        body = json_of(response)
        token = body.get("access_token")
        if response.status != 200:
            raise _refusal(response, body)
        if not isinstance(token, str) or not ACCESS_TOKEN.fullmatch(token):
            raise unlike_metadata("leads to a token endpoint that gives no token")
        if str(body.get("token_type")).lower() != "bearer":
            raise unlike_metadata("leads to a token endpoint of another kind of token")
        details = body.get("authorization_details")
        return {"access_token": token, "authorization_details": details}

    def _token_endpoint(self) -> bounded_json.JSON:
        servers = self.metadata().get("authorization_servers") or [self.identifier]
        if not isinstance(servers, list) or not isinstance(servers[0], str):
            raise unlike_metadata("names its authorization servers wrongly")
        if self.server and self.server not in servers:
            raise unlike_metadata("does not name the authorization server of the offer")
        server = self.server or servers[0]
        name = "oauth-authorization-server"
        return self._read_metadata(name, server, "issuer").get("token_endpoint")

    def make_nonce(self) -> str:
        """A nonce; "" of an issuer that wants none."""
        if (address := self.metadata().get("nonce_endpoint")) is None:
            return ""
        response = self.calls.post(address, b"", JSON)
        nonce = json_of(response).get("c_nonce")
        if response.status != 200 or not isinstance(nonce, str):
            raise unlike_metadata("leads to a nonce endpoint that gives no nonce")
        return nonce

    def ask(self, access_token: str, body: Members) -> Answer:
        return self._ask("credential_endpoint", access_token, body)

    def ask_later(self, access_token: str, body: Members) -> Answer:
        return self._ask("deferred_credential_endpoint", access_token, body)

    def _ask(self, endpoint: str, access_token: str, body: Members) -> Answer:
        response = self.calls.post(
            self.metadata().get(endpoint),
            json.dumps(body).encode(),
            JSON,
            Authorization=f"Bearer {access_token}",
        )
        found = json_of(response)
        if response.status not in (200, 202):
            raise _refusal(response, found)
        return response.status, found

    def notify(self, access_token: str, notification_id: str, event: str) -> None:
        """Tell the issuer what became of its credential, if it wants to know."""
        if address := self.metadata().get("notification_endpoint"):
            said = {"notification_id": notification_id, "event": event}
            bearer = f"Bearer {access_token}"
            body = json.dumps(said).encode()
            self.calls.post(address, body, JSON, Authorization=bearer)

    def verify(self, held: sd_jwt.Credential) -> None:
        """Check who has signed a credential.

        That is by a certificate below a trust anchor of the organization, or by a key
        that the `iss` of the credential publishes. 409 `issuer_not_trusted`.
        """
        issuer = held.claims.get("iss")
        x5c = held.token.header.get("x5c")
        chain = certificates.read_chain(x5c) if x5c is not None else []
        if chain and self._find_anchor(chain):
            if not certificates.is_named(chain[0], issuer):
                raise _not_trusted("its certificate does not name its iss")
            held.verify(certificates.key_of(chain[0]))
            return
        for key in self._published_keys(issuer, held.token.header.get("kid")):
            try:
                held.verify(key)
            except PeerError:
                continue
            return
        raise _not_trusted("it is not signed by a key that its iss publishes")

    def _find_anchor(self, chain: list[certificates.Certificate]) -> TrustAnchor | None:
        now = datetime.fromtimestamp(network_reads.now(), UTC)
        return TrustAnchor.find_above(self.tenant, chain, now)

    def find_voucher(self) -> TrustAnchor | None:
        """The trust anchor below which the issuer's metadata is signed, or None.

        It is what can be known of an issuer before it has issued anything.
        """
        if not TrustAnchor.objects.filter(tenant=self.tenant).exists():
            return None
        try:
            address = well_known("openid-credential-issuer", self.identifier)
            response = self.calls.get(address, "application/jwt")
            token = signing.read_token(response.body.decode("latin-1"), SIGNED_TYP)
            chain = certificates.read_chain(token.header.get("x5c"))
            token.verify(certificates.key_of(chain[0]))
        except (AgencyError, ValueError):  # many issuers do not sign it
            return None
        is_its_own = token.payload.get("sub") == self.identifier
        if not is_its_own or not certificates.is_named(chain[0], self.identifier):
            return None
        return self._find_anchor(chain)

    def _published_keys(
        self, issuer: bounded_json.JSON, key_id: bounded_json.JSON
    ) -> Iterator[PublicKey]:
        """The keys of an `iss` (SD-JWT VC, jwt-vc-issuer); those with the `kid`."""
        if not isinstance(issuer, str):
            raise _not_trusted("no trust anchor of the organization is above it")
        try:
            found = self._read_metadata("jwt-vc-issuer", issuer, "issuer")
            jwks = found.get("jwks")
            if jwks is None and "jwks_uri" in found:
                jwks = json_of(self.calls.get(found["jwks_uri"]))
        except (PeerError, Invalid):  # it will be no better the next time
            why = "no trust anchor is above it, and its iss publishes no key"
            raise _not_trusted(why) from None
        keys = jwks.get("keys") if isinstance(jwks, dict) else None
        for jwk in keys[:MAX_KEYS] if isinstance(keys, list) else ():
            is_named = isinstance(jwk, dict) and jwk.get("kid") == key_id
            if key_id is None or is_named:
                try:
                    yield signing.read_public_key(jwk)
                except PeerError:
                    continue


def _not_trusted(why: str) -> PeerError:
    return PeerError(
        "issuer_not_trusted",
        f"The credential is not accepted: {why}. Name its authority as a trust anchor.",
    )


def _refusal(response: http.Response, body: Members) -> ProtocolError:
    """What an issuer says with a status of 4xx."""
    code = body.get("error")
    code = code[:MAX_CODE] if isinstance(code, str) else f"status_{response.status}"
    said = body.get("error_description")
    description = said[:MAX_DESCRIPTION] if isinstance(said, str) else ""
    return ProtocolError(code, description, response.status)
