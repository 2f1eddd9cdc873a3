"""Issuers and verifiers of OpenID4VC elsewhere, on loopback, honest and not."""

import json
import time
from contextlib import contextmanager
from urllib.parse import parse_qs, quote, urlencode

from cryptography import x509
from joserfc import jwe
from joserfc.jwk import ECKey

from tests.support.http_servers import http_server
from tests.support.sd_jwt import Issuer
from wallets.jose import certificates, encryption, sd_jwt, signing

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
        self.signs_metadata = None  # else changes of what it signs
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
                if (
                    call.headers["Accept"] == "application/jwt"
                    and self.signs_metadata is not None
                ):
                    said = {"sub": base} | self.signs_metadata
                    signer = self.issuer
                    typ = "openidvci-issuer-metadata+jwt"
                    token = signing.sign_token(said, signer.secret, typ, x5c=signer.x5c)
                    return 200, token.encode()
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
        claims = {name: one for name, one in claims.items() if one is not None}
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


class VerifierHost:
    """A verifier that asks for the card of the state, and judges what it gets.

    changes: of the request. kind: of its client_id.
    """

    def __init__(self):
        self.changes, self.kind = {}, "x509_hash"
        self.answers, self.headers, self.calls = {}, {}, []
        self.got = None  # what the wallet has said, decrypted
        self.nonce = "a-nonce"

    def start(self, url):
        self.url = url
        self.signer = Issuer(url)
        name = x509.SubjectAlternativeName([x509.DNSName("127.0.0.1")])
        self.secret = signing.generate_secret()
        self.x5c = self.signer.x5c
        [leaf] = certificates.read_chain(self.x5c)
        key = self.signer.authority
        builder = x509.CertificateBuilder().subject_name(leaf.subject)
        builder = builder.issuer_name(leaf.issuer).public_key(leaf.public_key())
        builder = builder.serial_number(1).not_valid_before(leaf.not_valid_before_utc)
        builder = builder.not_valid_after(leaf.not_valid_after_utc)
        builder = builder.add_extension(name, critical=False)
        der = certificates.sign_certificate(builder, key.secret)
        self.x5c = certificates.encode_chain([der])

    @property
    def client_id(self):
        [leaf] = certificates.read_chain(self.x5c)
        value = certificates.hash_of(leaf)
        return f"x509_hash:{value}" if self.kind == "x509_hash" else self.kind

    def link(self, **query):
        given = {"client_id": self.client_id, "request_uri": f"{self.url}/request"}
        return f"openid4vp://?{urlencode(given | query)}"

    def request(self, wallet_nonce=None):
        jwk = signing.public_jwk_of(self.secret) | {"use": "enc", "alg": "ECDH-ES"}
        query = {
            "id": "card", "format": "dc+sd-jwt", "meta": {"vct_values": [VCT]},
            "claims": [{"path": ["name"]}, {"path": ["over_18"], "values": [True]}],
        }  # fmt: skip
        body = {
            "client_id": self.client_id,
            "response_type": "vp_token",
            "response_mode": "direct_post.jwt",
            "response_uri": f"{self.url}/response",
            "nonce": self.nonce,
            "state": "a-state",
            "aud": "https://self-issued.me/v2",
            "dcql_query": {"credentials": [query]},
            "client_metadata": {
                "client_name": "Somebody famous",
                "jwks": {"keys": [jwk]},
                "encrypted_response_enc_values_supported": ["A256GCM"],
            },
        }
        if wallet_nonce:
            body["wallet_nonce"] = wallet_nonce
        body |= self.changes
        body = {name: one for name, one in body.items() if one is not None}
        secret = self.signer.secret
        return signing.sign_token(body, secret, "oauth-authz-req+jwt", x5c=self.x5c)

    def respond(self, call):
        self.calls.append(f"{call.command} {call.path}")
        form = parse_qs(call.read().decode())
        status, said = self.answers.get(call.path) or self.answer(call.path, form)
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        call.answer(status, data, **self.headers)

    def answer(self, path, form):
        if path == "/request":
            [nonce] = form.get("wallet_nonce", [None])
            return 200, self.request(nonce).encode()
        [response] = form["response"]
        key = ECKey.import_key(
            signing.public_jwk_of(self.secret)
            | {"d": signing.encode_base64url(self.secret)}
        )
        opened = jwe.decrypt_compact(response, key, registry=encryption.REGISTRY)
        self.got = json.loads(opened.plaintext)
        assert self.got["state"] == "a-state"
        return 200, {}


@contextmanager
def verifying():
    """Run a VerifierHost."""
    host = VerifierHost()
    with http_server(host.respond) as server:
        host.start(server.url)
        yield host
