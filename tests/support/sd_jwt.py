"""An issuer of SD-JWT VCs with its authority, and a holder who may forge them.

`Issuer.present()` is honest; each of its arguments replaces a part by a wrong one.
"""

import json
import time
from datetime import UTC, datetime, timedelta

from cryptography import x509

from wallets.jose import certificates, sd_jwt, signing
from wallets.models import SigningKey, issuer_url

AUDIENCE = "x509_hash:Uvo3HtuIxuhC92rShpgqcT3YXwrqRxWEviRiA0OZszk"
NONCE = "n-0S6_WzA2Mj"
URI = "https://agency.example/openid/faber"
VCT = f"{URI}/types/degree"


def in_days(days):
    return datetime.now(UTC).replace(microsecond=0) + timedelta(days=days)


class Authority:
    def __init__(self, name="Authority of Faber", begins=-1, ends=3650):
        self.secret = signing.generate_secret()
        self.der = certificates.make_authority(
            name, self.secret, in_days(begins), in_days(ends)
        )
        [self.certificate] = certificates.read_chain(
            certificates.encode_chain([self.der])
        )

    @property
    def pem(self):
        return certificates.encode_pem([self.certificate])

    def certify(self, secret, uri=URI, begins=-1, ends=365):
        """The `x5c` of a key that an organization of this URI has."""
        leaf = certificates.make_leaf(
            "Faber", uri, secret, self.der, self.secret, in_days(begins), in_days(ends)
        )
        return certificates.encode_chain([leaf])

    def certify_key(self, tenant, purpose=SigningKey.Purpose.CREDENTIALS, **times):
        """Certificates for the key of an organization here, in PEM."""
        key = SigningKey.of(tenant, purpose)
        uri = issuer_url(tenant.pk)
        x5c = self.certify(key.unseal_secret(), uri, **times)
        return certificates.encode_pem(certificates.read_chain(x5c))


def disclosure(*parts):
    return signing.encode_base64url(json.dumps(["c2FsdHNhbHRzYWx0", *parts]).encode())


def with_wrong_version(der):
    """A certificate of version 6, which there is not."""
    version = b"\xa0\x03\x02\x01"
    assert der.count(version + b"\x02") == 1
    return der.replace(version + b"\x02", version + b"\x05")


def with_constraints_twice(der):
    """A certificate that says twice whether it is an authority (RFC 5280, 4.2)."""
    found = x509.load_der_x509_certificate(der)
    unknown = x509.UnrecognizedExtension(x509.ObjectIdentifier("2.5.29.99"), b"0\0")
    builder = x509.CertificateBuilder(
        issuer_name=found.issuer,
        subject_name=found.subject,
        public_key=found.public_key(),
        serial_number=found.serial_number,
        not_valid_before=found.not_valid_before_utc,
        not_valid_after=found.not_valid_after_utc,
        extensions=list(found.extensions),
    ).add_extension(unknown, critical=False)
    made = certificates.sign_certificate(builder, signing.generate_secret())
    assert made.count(b"\x55\x1d\x63") == 1
    return made.replace(b"\x55\x1d\x63", b"\x55\x1d\x13")


STRANGE = (with_wrong_version, with_constraints_twice)
DEGREE, NAME = disclosure("degree", "Maths"), disclosure("name", "Alice")


class Issuer:
    def __init__(self, uri=URI):
        self.uri = uri
        self.authority = Authority()
        self.secret, self.holder = signing.generate_secret(), signing.generate_secret()
        self.x5c = self.authority.certify(self.secret, uri)

    def claims(self):
        return {
            "iss": self.uri,
            "vct": VCT,
            "exp": int(time.time()) + 86400,
            "cnf": {"jwk": signing.public_jwk_of(self.holder)},
        }

    def present(
        self, claims=None, shown=(DEGREE, NAME), digests=None, binding=None,
        typ=sd_jwt.TYP, binding_typ=sd_jwt.BINDING_TYP, x5c=None, secret=None,
        holder=None, without=(), binding_without=(), has_binding=True,
    ):  # fmt: skip
        """claims, binding: members to change. without: members to leave out.

        shown: the disclosures. digests: in `_sd`; by default of all that is shown.
        """
        listed = [signing.sha256_of(one) for one in shown]
        payload = {
            **self.claims(),
            "_sd_alg": "sha-256",
            "_sd": listed if digests is None else digests,
        }
        payload = _changed(payload, claims, without)
        token = signing.sign_token(
            payload, secret or self.secret, typ, x5c=x5c or self.x5c
        )
        bound = "~".join([token, *shown, ""])
        said = {
            "iat": int(time.time()),
            "aud": AUDIENCE,
            "nonce": NONCE,
            "sd_hash": signing.sha256_of(bound),
        }
        if not has_binding:
            return bound
        said = _changed(said, binding, binding_without)
        return bound + signing.sign_token(said, holder or self.holder, binding_typ)


def _changed(members, changes, without):
    members = {**members, **(changes or {})}
    return {name: one for name, one in members.items() if name not in without}
