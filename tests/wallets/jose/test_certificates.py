"""Chains of certificates: which authority stands behind a key."""

import pytest
from cryptography import x509

from core.errors import Invalid, PeerError
from tests.fixtures.openid4vc_vectors import VECTORS
from tests.support.errors import refusal
from tests.support.sd_jwt import (
    STRANGE,
    URI,
    Authority,
    in_days,
    with_constraints_twice,
)
from wallets.jose import certificates, signing

SECRET = signing.generate_secret()
AUTHORITY = Authority()
CHAIN = certificates.read_chain(AUTHORITY.certify(SECRET))


def why(chain, *anchors, now=None):
    anchors = [one.certificate for one in anchors or (AUTHORITY,)]
    given = chain, anchors, now or in_days(0)
    return refusal(PeerError, certificates.verify_chain, *given).code


def read(*ders):
    return certificates.read_chain(certificates.encode_chain(ders))


def test_a_leaf_leads_to_its_authority_and_names_the_organization():
    anchors = [Authority().certificate, AUTHORITY.certificate]
    found = certificates.verify_chain(CHAIN, anchors, in_days(0))
    assert found == AUTHORITY.certificate
    assert certificates.names_of(CHAIN[0]) == ({URI}, set())
    assert certificates.common_name_of(CHAIN[0]) == "Faber"
    assert signing.jwk_of(certificates.key_of(CHAIN[0])) == signing.public_jwk_of(
        SECRET
    )


def test_an_authority_is_known_by_its_key_and_not_by_its_name():
    same_name = Authority()
    assert why(CHAIN, same_name) == "untrusted_certificate"
    assert refusal(
        PeerError, certificates.verify_chain, CHAIN, [], in_days(0)
    ).code == "untrusted_certificate"  # fmt: skip


@pytest.mark.parametrize("days", [-2, 366])
def test_a_leaf_counts_in_its_time_only(days):
    assert why(CHAIN, now=in_days(days)) == "untrusted_certificate"


def test_an_authority_counts_in_its_time_only():
    ended = Authority(begins=-20, ends=-10)
    chain = certificates.read_chain(ended.certify(SECRET))
    assert why(chain, ended) == "untrusted_certificate"


def test_a_leaf_signs_no_other_leaf():
    leaf = certificates.der_of(CHAIN[0])
    of_leaf = certificates.make_leaf(
        "Mallory", URI, SECRET, leaf, SECRET, in_days(-1), in_days(1)
    )
    assert why(read(of_leaf, leaf)) == "untrusted_certificate"


def test_an_authority_below_another_is_not_believed():
    """The constraint of the authority of an installation: it signs leaves only."""
    below = x509.load_der_x509_certificate(
        certificates.make_authority("Below", SECRET, in_days(-1), in_days(1))
    )
    builder = x509.CertificateBuilder(
        issuer_name=AUTHORITY.certificate.subject,
        subject_name=below.subject,
        public_key=below.public_key(),
        serial_number=below.serial_number,
        not_valid_before=in_days(-1),
        not_valid_after=in_days(1),
        extensions=list(below.extensions),
    )
    signed = certificates.sign_certificate(builder, AUTHORITY.secret)
    leaf = certificates.make_leaf(
        "Mallory", URI, SECRET, signed, SECRET, in_days(-1), in_days(1)
    )
    assert why(read(leaf, signed)) == "untrusted_certificate"


def test_an_authority_signs_nothing_else_than_certificates():
    assert why(read(AUTHORITY.der)) == "untrusted_certificate"


def test_a_self_signed_leaf_is_refused_even_if_it_is_an_anchor():
    der = certificates.make_leaf(
        "Faber", URI, SECRET, AUTHORITY.der, SECRET, in_days(-1), in_days(1)
    )
    forged = x509.load_der_x509_certificate(der)
    assert why([forged]) == "untrusted_certificate"
    builder = x509.CertificateBuilder(
        issuer_name=forged.subject,
        subject_name=forged.subject,
        public_key=forged.public_key(),
        serial_number=forged.serial_number,
        not_valid_before=in_days(-1),
        not_valid_after=in_days(1),
        extensions=list(forged.extensions),
    )
    [own] = read(certificates.sign_certificate(builder, SECRET))
    refused = refusal(PeerError, certificates.verify_chain, [own], [own], in_days(0))
    assert "self-signed" in refused.message


@pytest.mark.parametrize(
    "x5c", [None, [], "x", [5], ["x"], ["AAAA"], [""], ["A" * 30_000], ["AAAA"] * 6]
)
def test_what_is_no_chain_is_refused(x5c):
    refused = refusal(PeerError, certificates.read_chain, x5c)
    assert refused.code == "untrusted_certificate"


@pytest.mark.parametrize("strange", STRANGE)
def test_strange_chains_are_not_trusted(strange):
    """The library has errors of its own for these, which are no ValueError."""

    def check():
        chain = read(strange(certificates.der_of(CHAIN[0])))
        certificates.check_links(chain, in_days(0))

    assert refusal(PeerError, check).code == "untrusted_certificate"


def test_what_cannot_be_read_of_a_certificate_is_left_out():
    [strange] = read(with_constraints_twice(AUTHORITY.der))
    assert not certificates.is_authority(strange)
    assert certificates.names_of(strange) == (set(), set())
    assert certificates.authority_identifier_of(strange) == ""
    assert certificates.key_identifier_of(strange)
    assert not certificates.is_named(strange, URI)


def test_a_name_that_cannot_be_read_is_none():
    """Bits instead of text raise a TypeError in the library."""
    der = certificates.der_of(CHAIN[0])
    common_name, as_bits = b"\x55\x04\x03\x0c\x05Faber", b"\x55\x04\x03\x03\x05Faber"
    assert der.count(common_name) == 1
    [strange] = read(der.replace(common_name, as_bits))
    with pytest.raises(TypeError):
        _ = strange.subject
    assert certificates.common_name_of(strange) == ""


def test_chains_of_others_are_read():
    token = VECTORS["openid4vci"]["wallet_attestation"]
    header = signing.read_token(token, "oauth-client-attestation+jwt").header
    [leaf] = certificates.read_chain(header["x5c"])
    signing.read_token(token, "oauth-client-attestation+jwt").verify(
        certificates.key_of(leaf)
    )


def test_certificates_are_read_from_pem():
    assert certificates.read_pem(certificates.encode_pem(CHAIN)) == CHAIN
    for text in ("", "x", "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----"):
        refused = refusal(Invalid, certificates.read_pem, text)
        assert refused.code == "invalid_certificate"
    too_many = certificates.encode_pem(CHAIN * 6)
    assert refusal(Invalid, certificates.read_pem, too_many)


def test_a_request_for_a_certificate_names_the_organization_and_its_key():
    text = certificates.make_request("Faber", URI, SECRET)
    request = x509.load_pem_x509_csr(text.encode())
    assert request.is_signature_valid
    assert signing.jwk_of(request.public_key()) == signing.public_jwk_of(SECRET)
