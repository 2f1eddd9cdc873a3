"""A wallet of OpenID4VC on somebody's phone: it knows only links and the public routes."""

import json
import secrets
import time
from urllib.parse import parse_qs, urlencode, urlsplit

from django.conf import settings

from tests.support.people import Caller
from wallets.jose import certificates, encryption, sd_jwt, signing

CODE_GRANT = "urn:ietf:params:oauth:grant-type:pre-authorized_code"
FORM = "application/x-www-form-urlencoded"


class OpenIdWallet:
    """It holds keys. Each step is a method, so that a test can do it wrongly."""

    def __init__(self):
        self.client = Caller(raise_request_exception=False)
        self.secret = signing.generate_secret()
        self.issuer = self.token = ""
        self.dpop_secret = None

    @property
    def jwk(self):
        return signing.public_jwk_of(self.secret)

    def read(self, url, **headers):
        return self.client.get(url.removeprefix(settings.PUBLIC_URL), headers=headers)

    def post(self, name, body=None, **headers):
        path = f"{self.issuer}/{name}".removeprefix(settings.PUBLIC_URL)
        return self.client.post(
            path, body or {}, content_type="application/json", headers=headers
        )

    def open(self, link):
        """Read the offer behind a link, and know its issuer from then on."""
        [address] = parse_qs(urlsplit(link).query)["credential_offer_uri"]
        self.offer = self.read(address).json()
        self.issuer = self.offer["credential_issuer"]
        return self.offer

    def metadata(self, kind="openid-credential-issuer"):
        host = settings.PUBLIC_URL
        path = self.issuer.removeprefix(host)
        return self.read(f"{host}/.well-known/{kind}{path}").json()

    @property
    def code(self):
        return self.offer["grants"][CODE_GRANT]["pre-authorized_code"]

    def ask_token(self, transaction_code=None, **changes):
        form = {"grant_type": CODE_GRANT, "pre-authorized_code": self.code}
        if transaction_code is not None:
            form["tx_code"] = transaction_code
        path = f"{self.issuer}/token".removeprefix(settings.PUBLIC_URL)
        return self.client.post(
            path,
            urlencode(form | changes),
            content_type=FORM,
            headers=self.proof_of_token("token"),
        )

    def take_token(self, transaction_code=None):
        response = self.ask_token(transaction_code)
        assert response.status_code == 200, response.content
        self.token = response.json()["access_token"]
        return response.json()

    def proof_of_token(self, name, **changes):
        if self.dpop_secret is None:
            return {}
        claims = {
            "jti": secrets.token_hex(8), "htm": "POST", "iat": int(time.time()),
            "htu": f"{self.issuer}/{name}",
        }  # fmt: skip
        if self.token:
            claims["ath"] = signing.sha256_of(self.token)
        jwk = signing.public_jwk_of(self.dpop_secret)
        return {
            "DPoP": signing.sign_token(
                claims | changes, self.dpop_secret, "dpop+jwt", jwk=jwk
            )
        }

    def authorization(self, name):
        scheme = "Bearer" if self.dpop_secret is None else "DPoP"
        return {"Authorization": f"{scheme} {self.token}"} | self.proof_of_token(name)

    def nonce(self):
        return self.post("nonce").json()["c_nonce"]

    def prove(self, **claims):
        said = {"aud": self.issuer, "iat": int(time.time()), "nonce": self.nonce()}
        said = {name: one for name, one in (said | claims).items() if one is not None}
        return signing.sign_token(
            said, self.secret, "openid4vci-proof+jwt", jwk=self.jwk
        )

    def request(self, *proofs, **members):
        [configuration] = self.offer["credential_configuration_ids"]
        return {
            "credential_configuration_id": configuration,
            "proofs": {"jwt": list(proofs) or [self.prove()]},
        } | members

    def ask(self, body=None):
        return self.post(
            "credential", body or self.request(), **self.authorization("credential")
        )

    def ask_later(self, transaction_id):
        return self.post(
            "deferred_credential",
            {"transaction_id": transaction_id},
            **self.authorization("deferred_credential"),
        )

    def take(self, link, transaction_code=None):
        """All steps; return the credential as it was read."""
        self.open(link)
        self.take_token(transaction_code)
        return self.keep(self.ask())

    def keep(self, response):
        assert response.status_code == 200, response.content
        [made] = response.json()["credentials"]
        self.credential = made["credential"]
        return sd_jwt.read(self.credential)

    def read_request(self, link, **form):
        """Read the request behind a link, by POST as the link says; verify its signer."""
        self.query = {
            name: values[0] for name, values in parse_qs(urlsplit(link).query).items()
        }
        path = self.query["request_uri"].removeprefix(settings.PUBLIC_URL)
        response = self.client.post(path, urlencode(form), content_type=FORM)
        assert response.status_code == 200, response.content
        token = signing.read_token(response.content.decode(), "oauth-authz-req+jwt")
        [leaf, *_] = certificates.read_chain(token.header["x5c"])
        token.verify(certificates.key_of(leaf))
        assert self.query["client_id"] == f"x509_hash:{certificates.hash_of(leaf)}"
        self.request_object = token.payload
        return token.payload

    def present(self, names, **changes):
        """The card with these claims, for the request that was read."""
        given = {
            "audience": self.request_object["client_id"],
            "nonce": self.request_object["nonce"],
            "secret": self.secret,
            "now": int(time.time()),
        } | changes
        held = sd_jwt.read(self.credential)
        return sd_jwt.present(held, [(name,) for name in names], **given)

    def vp_token(self, **changes):
        """All queries answered with the card."""
        return {
            query["id"]: [
                self.present([claim["path"][0] for claim in query["claims"]], **changes)
            ]
            for query in self.request_object["dcql_query"]["credentials"]
        }

    def encrypt(self, answer):
        [jwk] = self.request_object["client_metadata"]["jwks"]["keys"]
        return encryption.encrypt(
            json.dumps(answer).encode(), jwk, "A128GCM", jwk["kid"]
        )

    def send(self, **form):
        path = self.request_object["response_uri"].removeprefix(settings.PUBLIC_URL)
        return self.client.post(path, urlencode(form), content_type=FORM)

    def send_answer(self, **answer):
        said = {"vp_token": self.vp_token(), "state": self.request_object["state"]}
        return self.send(response=self.encrypt(said | answer))

    def answer(self, link):
        """All steps of an honest wallet."""
        self.read_request(link)
        return self.send_answer()
