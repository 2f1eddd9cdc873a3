"""X.509 certificates of P-256 keys: making them, and chains of others (RFC 5280, 7515).

An organization is named in its certificates by the URI that is its issuer identifier.
A chain (`x5c`) begins with the leaf and ends before the trust anchor.
"""

import base64
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TypeAlias
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import verification
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import Criticality, ExtensionPolicy, Policy

from core.errors import Invalid, PeerError
from core.text.bounded_json import JSON
from wallets.jose.signing import PublicKey, encode_base64url, private_key_of, sha256_of

Certificate: TypeAlias = x509.Certificate

MAX_CHAIN = 5  # certificates
MAX_CERTIFICATE = 16 * 1024  # bytes of DER
MAX_PEM = MAX_CHAIN * MAX_CERTIFICATE * 2  # characters
MAX_COMMON_NAME = 64  # bytes, of the X.520 attribute
# What is raised for strange certificates of others; several of these are no ValueError.
UNREADABLE = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)


def untrusted(why: str) -> PeerError:
    return PeerError("untrusted_certificate", f"The certificate is not trusted: {why}.")


def make_authority(
    name: str, secret: bytes, not_before: datetime, not_after: datetime
) -> bytes:
    """Make the self-signed certificate of an authority, in DER.

    It signs leaves, and no other authority.
    """
    builder = _builder(name, secret, not_before, not_after)
    builder = builder.issuer_name(_name(name))
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    builder = builder.add_extension(constraints, critical=True)
    usage = _key_usage(signs_certificates=True)
    builder = builder.add_extension(usage, critical=True)
    return sign_certificate(builder, secret)


def make_leaf(
    name: str,
    uri: str,
    secret: bytes,
    authority: bytes,
    authority_secret: bytes,
    not_before: datetime,
    not_after: datetime,
) -> bytes:
    """Make the certificate of an organization's key, signed by an authority, in DER.

    uri: the issuer identifier of the organization, the only name of the certificate. Its
    host is not named, as that is the host of all organizations.
    """
    issuer = x509.load_der_x509_certificate(authority)
    builder = _builder(name, secret, not_before, not_after)
    builder = builder.issuer_name(issuer.subject)
    constraints = x509.BasicConstraints(ca=False, path_length=None)
    builder = builder.add_extension(constraints, critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)])
    builder = builder.add_extension(names, critical=False)
    key_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(_key_of(issuer))
    builder = builder.add_extension(key_id, critical=False)
    return sign_certificate(builder, authority_secret)


def make_request(name: str, uri: str, secret: bytes) -> str:
    """Make a certificate signing request for a key, in PEM."""
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(name))
    builder = builder.add_extension(names, critical=False)
    # The same request each time that it is read.
    request = builder.sign(
        private_key_of(secret), hashes.SHA256(), ecdsa_deterministic=True
    )
    return request.public_bytes(serialization.Encoding.PEM).decode()


def sign_certificate(builder: x509.CertificateBuilder, secret: bytes) -> bytes:
    """Sign what is built, in DER."""
    return der_of(builder.sign(private_key_of(secret), hashes.SHA256()))


def encode_pem(certificates: Iterable[Certificate]) -> str:
    pem = serialization.Encoding.PEM
    return "".join(one.public_bytes(pem).decode() for one in certificates)


def read_pem(text: str) -> list[Certificate]:
    """Read certificates in PEM. 400 `invalid_certificate`."""
    try:
        if len(text) > MAX_PEM:
            raise ValueError
        certificates = x509.load_pem_x509_certificates(text.encode())
    except UNREADABLE:
        message = "Give certificates in PEM, each between BEGIN and END CERTIFICATE."
        raise Invalid("invalid_certificate", message) from None
    if not 1 <= len(certificates) <= MAX_CHAIN:
        message = f"Give between one and {MAX_CHAIN} certificates."
        raise Invalid("invalid_certificate", message)
    return certificates


def der_of(certificate: Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)


def encode_chain(chain: Iterable[bytes]) -> list[str]:
    """Return a chain in DER as the member `x5c` of a header."""
    return [base64.b64encode(der).decode() for der in chain]


def read_chain(x5c: "JSON | list[str]") -> list[Certificate]:
    """Read the member `x5c`. PeerError `untrusted_certificate`."""
    if not isinstance(x5c, list) or not 1 <= len(x5c) <= MAX_CHAIN:
        raise untrusted("there is no chain of certificates")
    return [_read_certificate(text) for text in x5c]


def verify_chain(
    chain: Sequence[Certificate], anchors: Iterable[Certificate], now: datetime
) -> Certificate:
    """Check that a chain leads from its leaf to one of the anchors; return the anchor.

    PeerError `untrusted_certificate`: one has expired or is not valid yet, was not
    signed by the next, or by one that may not sign; the leaf is self-signed or an
    authority.
    """
    leaf, *others = chain
    _require_leaf(leaf)
    store = list(anchors)
    if not store:
        raise untrusted("no authority is trusted for this")
    verifier = (
        verification.PolicyBuilder()
        .store(verification.Store(store))
        .time(now.astimezone(UTC).replace(tzinfo=None))
        .max_chain_depth(MAX_CHAIN)
        .extension_policies(ca_policy=OF_AUTHORITIES, ee_policy=OF_LEAVES)
        .build_client_verifier()
    )
    try:
        return verifier.verify(leaf, others).chain[-1]
    except (verification.VerificationError, *UNREADABLE):
        message = "it has expired, or no chain leads to a trusted authority"
        raise untrusted(message) from None


def check_own_chain(
    chain: Sequence[Certificate], uri: str, now: datetime
) -> list[Certificate]:
    """Check a chain that an organization gives for a key of its own.

    Return it as `x5c` has it: without a root at its end. uri: the issuer identifier of
    the organization, which the leaf must name. 400 `invalid_certificate`.
    """
    try:
        for one in chain:
            _require_readable(one)
        check_links(chain, now)
        if chain[1:]:
            verify_chain(chain[:-1], chain[-1:], now)
        if not is_named(chain[0], uri):
            raise untrusted(f"it does not name {uri}")
    except PeerError as error:
        raise Invalid("invalid_certificate", error.message) from None
    has_root = len(chain) > 1 and _is_signed_by(chain[-1], chain[-1])
    return list(chain[:-1] if has_root else chain)


def check_links(chain: Sequence[Certificate], now: datetime) -> None:
    """Check that each of a chain was signed by the next, and all are valid now.

    Nothing is said of who trusts the last one. PeerError `untrusted_certificate`.
    """
    _require_leaf(chain[0])
    for one in chain:
        require_in_time(one, now)
    for lower, upper in pairwise(chain):
        if not _is_signed_by(lower, upper):
            raise untrusted("one of them was not signed by the next")


def check_anchor(certificate: Certificate, now: datetime) -> None:
    """Check that a certificate may be trusted as an authority.

    400 `invalid_certificate`.
    """
    try:
        _require_readable(certificate)
        require_in_time(certificate, now)
        if not is_authority(certificate):
            raise untrusted("it is not one of an authority")
    except PeerError as error:
        raise Invalid("invalid_certificate", error.message) from None


def key_of(certificate: Certificate) -> PublicKey:
    """Return its key of P-256. PeerError `untrusted_certificate` for another one."""
    try:
        return _key_of(certificate)
    except UNREADABLE:
        raise untrusted("its key is not one of P-256") from None


def fingerprint_of(certificate: Certificate) -> str:
    """Return the SHA-256 of the DER in hexadecimal digits, as tools show it."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def hash_of(certificate: Certificate) -> str:
    """Return the SHA-256 of the DER in base64url, as in `x509_hash`."""
    return sha256_of(der_of(certificate))


def key_identifier_of(certificate: Certificate) -> str:
    """Return the key identifier of an authority in base64url, as in `aki` of DCQL."""
    try:
        kind = x509.SubjectKeyIdentifier
        digest = certificate.extensions.get_extension_for_class(kind).value.digest
    except (x509.ExtensionNotFound, *UNREADABLE):
        digest = x509.SubjectKeyIdentifier.from_public_key(
            certificate.public_key()
        ).digest
    return encode_base64url(digest)


def authority_identifier_of(certificate: Certificate) -> str:
    """Return the key identifier of who has signed it in base64url, or ""."""
    try:
        kind = x509.AuthorityKeyIdentifier
        found = certificate.extensions.get_extension_for_class(kind)
    except (x509.ExtensionNotFound, *UNREADABLE):
        return ""
    return encode_base64url(found.value.key_identifier or b"")


def is_named(certificate: Certificate, issuer: str | None) -> bool:
    """Whether a certificate is of this issuer: its URI, or the host of that.

    Also without an issuer, as the certificate says then who it is.
    """
    if issuer is None:
        return True
    uris, hosts = names_of(certificate)
    try:
        host = urlsplit(issuer).hostname
    except ValueError:  # brackets of what is no IPv6 address
        return False
    return issuer in uris or host in hosts


def require_in_time(certificate: Certificate, now: datetime) -> None:
    """PeerError `untrusted_certificate` before and after a certificate counts."""
    try:
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    except UNREADABLE:
        raise untrusted("its times cannot be read") from None
    if not begins <= now <= ends:
        raise untrusted("it has expired, or is not valid yet")


def names_of(certificate: Certificate) -> tuple[set[str], set[str]]:
    """Return the URIs and the DNS names that a certificate is for."""
    try:
        kind = x509.SubjectAlternativeName
        names = certificate.extensions.get_extension_for_class(kind).value
    except (x509.ExtensionNotFound, *UNREADABLE):
        return set(), set()
    return (
        set(names.get_values_for_type(x509.UniformResourceIdentifier)),
        set(names.get_values_for_type(x509.DNSName)),
    )


def common_name_of(certificate: Certificate) -> str:
    """Return the name of the subject for people, or ""."""
    try:
        found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except UNREADABLE:
        return ""
    return str(found[0].value) if found else ""


def ends_at(chain: Iterable[Certificate]) -> datetime:
    """Return when the first certificate of a chain ends."""
    return min(one.not_valid_after_utc for one in chain)


def is_authority(certificate: Certificate) -> bool:
    try:
        kind = x509.BasicConstraints
        return certificate.extensions.get_extension_for_class(kind).value.ca
    except (x509.ExtensionNotFound, *UNREADABLE):
        return False


def _require_readable(certificate: Certificate) -> None:
    """PeerError `untrusted_certificate` for one of which pages could not show all."""
    try:
        certificate.public_key()
        certificate.subject.rfc4514_string()
        certificate.issuer.rfc4514_string()
        _ = certificate.extensions
    except UNREADABLE:
        raise untrusted("its members cannot be read") from None


def _require_leaf(leaf: Certificate) -> None:
    try:
        _ = leaf.extensions
    except UNREADABLE:  # who knows whether it is an authority
        raise untrusted("its extensions cannot be read") from None
    if is_authority(leaf):
        raise untrusted("an authority signs certificates only")
    if _is_signed_by(leaf, leaf):
        raise untrusted("it is self-signed")


def _is_signed_by(lower: Certificate, upper: Certificate) -> bool:
    try:
        lower.verify_directly_issued_by(upper)
    except (InvalidSignature, *UNREADABLE):
        return False
    return True


def _require_authority(
    policy: Policy, certificate: Certificate, extension: x509.BasicConstraints
) -> None:
    if not extension.ca:
        raise ValueError("not an authority")


def _require_signing(
    policy: Policy, certificate: Certificate, extension: x509.KeyUsage | None
) -> None:
    if extension is not None and not extension.key_cert_sign:
        raise ValueError("its key signs no certificates")


# Looser than those of the web: authorities of credentials have other purposes, and some
# have constraints that are not critical (Credo's).
OF_AUTHORITIES = (
    ExtensionPolicy.permit_all()
    .require_present(x509.BasicConstraints, Criticality.AGNOSTIC, _require_authority)
    .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _require_signing)
)
OF_LEAVES = ExtensionPolicy.permit_all()


def _read_certificate(text: JSON) -> Certificate:
    try:
        if not isinstance(text, str) or len(text) > MAX_CERTIFICATE * 4 // 3:
            raise ValueError
        return x509.load_der_x509_certificate(base64.b64decode(text, validate=True))
    except UNREADABLE:
        raise untrusted("one in the chain cannot be read") from None


def _key_of(certificate: Certificate) -> PublicKey:
    key = certificate.public_key()
    if isinstance(key, PublicKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    raise ValueError("not a key of P-256")


def _name(name: str) -> x509.Name:
    text = "".join(char for char in name if char.isprintable())
    text = text.encode()[:MAX_COMMON_NAME].decode(errors="ignore")
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text or "-")])


def _builder(
    name: str, secret: bytes, not_before: datetime, not_after: datetime
) -> x509.CertificateBuilder:
    key = private_key_of(secret).public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before)
        .not_valid_after(not_after)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
