"""Authorities that an organization trusts, and its certificates of other authorities."""

import base64

import pytest
from cryptography import x509
from django.utils import timezone

from tenants.models import AuditEntry
from tests.support.errors import assert_error, error_of
from tests.support.races import at_once
from tests.support.sd_jwt import STRANGE, URI, Authority, in_days
from wallets.jose import certificates, signing
from wallets.models import Authority as OwnAuthority
from wallets.models import SigningKey, TrustAnchor, issuer_url

ANCHORS, UPLOAD = "/openid/trustAnchors", "/openid/certificates"
STATE = Authority("State")
CREDENTIALS = SigningKey.Purpose.CREDENTIALS


def refuse(api, text, path=ANCHORS):
    """The sentence by which a certificate is refused."""
    body = {"name": "State", "certificate": text, "certificates": text}
    found = error_of(api.post if path == ANCHORS else api.put, path, body)
    assert_error(found, 400, "invalid_certificate")
    return found.body["message"]


def pem(*ders):
    return certificates.encode_pem(
        certificates.read_chain(certificates.encode_chain(ders))
    )


def test_an_anchor_is_made_listed_and_deleted(faber, acme):
    made = faber.post(ANCHORS, {"name": "State", "certificate": STATE.pem})
    assert (made["name"], made["certificate"]) == ("State", STATE.pem)
    assert made["fingerprint"] == certificates.fingerprint_of(STATE.certificate)
    assert faber.get(ANCHORS) == [made] and acme.get(ANCHORS) == []
    path = f"{ANCHORS}/{made['trustAnchorId']}"
    assert_error(error_of(acme.delete, path), 404, "not_found")
    faber.delete(path)
    assert faber.get(ANCHORS) == []
    actions = AuditEntry.objects.filter(action__startswith="trust_anchor.")
    assert {one.action for one in actions} == {
        "trust_anchor.created", "trust_anchor.deleted",
    }  # fmt: skip


def test_an_anchor_is_one_authority_in_its_time(faber):
    leaf = certificates.read_chain(STATE.certify(signing.generate_secret()))
    for text, why in (
        ("x", "in PEM"),
        (STATE.pem * 2, "one certificate"),
        (certificates.encode_pem(leaf), "not one of an authority"),
        (Authority(begins=-9, ends=-1).pem, "expired"),
        (Authority(begins=1).pem, "not valid yet"),
    ):
        assert why in refuse(faber, text)
    own = OwnAuthority.live().read_certificate()
    assert "of this server" in refuse(faber, certificates.encode_pem([own]))
    assert not TrustAnchor.objects.exists()


@pytest.mark.parametrize("path", [ANCHORS, UPLOAD])
@pytest.mark.parametrize("strange", STRANGE)
def test_strange_certificates_are_refused(faber, path, strange):
    text = base64.encodebytes(strange(STRANGE_OF[path])).decode()
    refuse(faber, f"{BEGIN}\n{text}{END}\n", path)


BEGIN, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
STRANGE_OF = {
    ANCHORS: STATE.der,
    UPLOAD: base64.b64decode(STATE.certify(signing.generate_secret())[0]),
}


@pytest.mark.django_db(transaction=True)
def test_an_anchor_is_there_once_and_there_are_not_too_many(faber, acme, monkeypatch):
    body = {"name": "State", "certificate": STATE.pem}
    made = at_once(*[lambda: faber.send("post", ANCHORS, body)] * 2)
    assert sorted(one.status_code for one in made) == [200, 409]
    assert_error(error_of(faber.post, ANCHORS, body), 409, "trust_anchor_exists")
    assert acme.post(ANCHORS, body)["certificate"] == STATE.pem
    monkeypatch.setattr(TrustAnchor, "MAX_OF_TENANT", 1)
    other = body | {"certificate": Authority().pem}
    assert_error(error_of(faber.post, ANCHORS, other), 409, "too_many_trust_anchors")


@pytest.mark.parametrize("purpose", SigningKey.Purpose.values)
def test_each_key_has_a_request_that_names_the_organization(faber, purpose):
    asked = faber.get("/openid/certificateRequest", purpose=purpose)
    request = x509.load_pem_x509_csr(asked["certificateRequest"].encode())
    assert request.is_signature_valid
    key = SigningKey.objects.get(tenant=faber.tenant, purpose=purpose)
    jwk = signing.jwk_of(request.public_key())
    assert signing.thumbprint_of(jwk) == key.thumbprint == asked["thumbprint"]
    names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    kind = x509.UniformResourceIdentifier
    assert names.value.get_values_for_type(kind) == [issuer_url(faber.tenant.pk)]


def test_certificates_of_another_authority_are_used(faber):
    former = SigningKey.of(faber.tenant, CREDENTIALS)
    text = STATE.certify_key(faber.tenant)
    shown = faber.put(UPLOAD, {"certificates": text + STATE.pem})
    assert shown["certificates"] == text  # without the root
    assert (shown["purpose"], shown["thumbprint"]) == (
        "credentials",
        former.thumbprint,
    )
    key = SigningKey.of(faber.tenant, CREDENTIALS)
    assert key.is_uploaded and key.x5c != former.x5c
    assert SigningKey.renew() == 0
    entry = AuditEntry.objects.get(action="certificates.uploaded")
    assert entry.details["thumbprint"] == key.thumbprint


def test_there_is_a_way_back_to_the_authority_of_the_installation(faber, acme):
    faber.put(UPLOAD, {"certificates": STATE.certify_key(faber.tenant)})
    assert_error(
        error_of(faber.delete, f"{UPLOAD}?purpose=other"), 400, "invalid_request"
    )
    acme.delete(UPLOAD)
    assert SigningKey.of(faber.tenant, CREDENTIALS).is_uploaded
    shown = faber.delete(UPLOAD)
    key = SigningKey.of(faber.tenant, CREDENTIALS)
    assert not key.is_uploaded
    assert (shown["certificates"], shown["thumbprint"]) == (key.pem, key.thumbprint)
    own = [OwnAuthority.live().read_certificate()]
    certificates.verify_chain(certificates.read_chain(key.x5c), own, timezone.now())
    assert faber.delete(UPLOAD)["certificates"] == key.pem, "nothing more changes"
    assert AuditEntry.objects.filter(action="certificates.removed").count() == 1


def test_certificates_that_do_not_fit_change_nothing(faber, acme):
    key = SigningKey.of(faber.tenant, CREDENTIALS)
    secret, uri = key.unseal_secret(), issuer_url(faber.tenant.pk)
    own = STATE.certify_key(faber.tenant)
    der = certificates.der_of(certificates.read_pem(own)[0])
    below_leaf = certificates.make_leaf(
        "Faber", uri, secret, der, secret, in_days(-1), in_days(1)
    )
    root = certificates.make_authority("Faber", secret, in_days(-1), in_days(1))
    for text, why in (
        ("x", "in PEM"),
        (STATE.pem, "of no key of the organization"),
        (STATE.certify_key(acme.tenant), "of no key of the organization"),
        (pem(root), "an authority signs certificates only"),
        (pem(below_leaf, der), "it is self-signed"),
        (own + Authority("State").pem, "not signed by the next"),  # of the same name
        (own + STATE.pem * 2 + own, "not signed by the next"),
        (STATE.certify_key(faber.tenant, begins=-9, ends=-1), "expired"),
        (STATE.certify_key(faber.tenant, begins=1), "not valid yet"),
        (pem(*certificates_of(STATE.certify(secret, URI))), "does not name"),
        (pem(*certificates_of(STATE.certify(secret, f"{uri}2"))), "does not name"),
    ):
        assert why in refuse(faber, text, UPLOAD), why
    key.refresh_from_db()
    assert not key.is_uploaded


def certificates_of(x5c):
    return [certificates.der_of(one) for one in certificates.read_chain(x5c)]


def test_a_leaf_signs_no_certificates_of_an_organization(faber):
    secret = signing.generate_secret()
    [leaf] = certificates_of(STATE.certify(secret))
    key = SigningKey.of(faber.tenant, CREDENTIALS)
    made = certificates.make_leaf(
        "Faber", issuer_url(faber.tenant.pk), key.unseal_secret(), leaf, secret,
        in_days(-1), in_days(1),
    )  # fmt: skip
    assert "no chain leads" in refuse(faber, pem(made, leaf), UPLOAD)
