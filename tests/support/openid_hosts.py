"""Issuers and verifiers of OpenID4VC elsewhere, on loopback, honest and not."""

import json
import time
from contextlib import contextmanager
from urllib.parse import parse_qs, quote

from tests.support.http_servers import http_server
from tests.support.sd_jwt import Issuer
from wallets.jose import sd_jwt, signing

CODE_GRANT = "urn:ietf:params:oauth:grant-type:pre-authorized_code"
VCT = "urn:eu:pid"
CLAIMS = {"name": "Alice", "year": 7, "over_18": True}


class IssuerHost:
    """A state that issues cards. Change its members to make it dishonest.

    later: how often it answers 202 before it issues. answers: what it answers at a path
    instead, as (status, body). waits: paths that it answers when it is told.
    """

    def __init__(self):
        self.calls, self.said, self.notified = [], {}, []
        self.later, self.answers, self.headers = 0, {}, {}
        self.tx_code, self.code, self.claims = None, "one-code", {}
        self.metadata_changes, self.server_changes = {}, {}
        self.key_changes = {}
        self.holder = (
            None  # to whose key the card is bound, if not to that of the proof
        )
        self.x5c = True
        self.meet = lambda path: None

    def start(self, url):
        self.url = f"{url}/state"
        self.issuer = Issuer(self.url)

    @property
    def offer(self):
        grant = {"pre-authorized_code": self.code}
        if self.tx_code:
            grant["tx_code"] = {"length": len(self.tx_code)}
        return {
            "credential_issuer": self.url,
            "credential_configuration_ids": ["pid"],
            "grants": {CODE_GRANT: grant},
        }

    @property
    def link(self):
        """By value."""
        text = quote(json.dumps(self.offer))
        return f"openid-credential-offer://?credential_offer={text}"

    @property
    def short_link(self):
        address = quote(f"{self.url}/offer", safe="")
        return f"openid-credential-offer://?credential_offer_uri={address}"

    def configuration(self):
        return {
            "format": "dc+sd-jwt",
            "vct": VCT,
            "cryptographic_binding_methods_supported": ["jwk"],
            "proof_types_supported": {
                "jwt": {"proof_signing_alg_values_supported": ["ES256"]}
            },
            "credential_metadata": {"display": [{"name": "Identity card"}]},
        }

    def respond(self, call):
        path = call.path
        self.calls.append(path)
        body = call.read()
        self.meet(path)
        status, said = self.answers.get(path) or self.answer(call, path, body)
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        call.answer(status, data, Content_Type="application/json", **self.headers)

    def answer(self, call, path, body):
        base = self.url
        match path:
            case "/.well-known/openid-credential-issuer/state":
                return 200, {
                    "credential_issuer": base,
                    "credential_endpoint": f"{base}/credential",
                    "deferred_credential_endpoint": f"{base}/deferred",
                    "nonce_endpoint": f"{base}/nonce",
                    "notification_endpoint": f"{base}/notification",
                    "display": [{"name": "State"}],
                    "credential_configurations_supported": {
                        "pid": self.configuration()
                    },
                } | self.metadata_changes
            case "/.well-known/oauth-authorization-server/state":
                return 200, {
                    "issuer": base, "token_endpoint": f"{base}/token",
                } | self.server_changes  # fmt: skip
            case "/.well-known/jwt-vc-issuer/state":
                jwk = signing.public_jwk_of(self.issuer.secret)
                return 200, {
                    "issuer": base, "jwks": {"keys": [jwk]},
                } | self.key_changes  # fmt: skip
            case "/state/offer":
                return 200, self.offer
            case "/state/token":
                return self.redeem(parse_qs(body.decode()))
            case "/state/nonce":
                return 200, {"c_nonce": "a-nonce"}
            case "/state/credential" | "/state/deferred":
                assert call.headers["Authorization"] == "Bearer a-token"
                return self.issue(json.loads(body))
            case "/state/notification":
                self.notified.append(json.loads(body)["event"])
                return 204, b""
        return 404, {}

    def redeem(self, form):
        [code] = form["pre-authorized_code"]
        if code != self.code or form.get("tx_code", [None]) != [self.tx_code]:
            return 400, {"error": "invalid_grant"}
        self.code = "spent"
        return 200, {"access_token": "a-token", "token_type": "Bearer"}

    def issue(self, body):
        if "proofs" in body:
            [proof] = body["proofs"]["jwt"]
            token = signing.read_token(proof, "openid4vci-proof+jwt")
            self.jwk = token.header["jwk"]
            token.verify(signing.read_public_key(self.jwk))
            assert token.payload["aud"] == self.url
            assert token.payload["nonce"] == "a-nonce"
        else:
            assert body == {"transaction_id": "later"}
        if self.later:
            self.later -= 1
            return 202, {"transaction_id": "later", "interval": 1}
        card = {"credentials": [{"credential": self.card()}], "notification_id": "n"}
        return 200, card

    def card(self):
        claims = {
            "iss": self.url, "vct": VCT, "exp": int(time.time()) + 9999,
            "cnf": {"jwk": self.holder or self.jwk},
        } | self.claims  # fmt: skip
        if not self.x5c:
            payload = claims | CLAIMS
            return signing.sign_token(payload, self.issuer.secret, sd_jwt.TYP) + "~"
        return sd_jwt.issue(claims, CLAIMS, self.issuer.secret, self.issuer.x5c)


@contextmanager
def issuing():
    """Run an IssuerHost."""
    host = IssuerHost()
    with http_server(host.respond) as server:
        host.start(server.url)
        yield host
