"""Keys by which an organization is known to wallets of OpenID4VC."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tenants.models import Tenant
from tests.support.races import at_once
from wallets.jose import certificates, signing
from wallets.models import Authority, SigningKey, issuer_url

CREDENTIALS, REQUESTS = SigningKey.Purpose.CREDENTIALS, SigningKey.Purpose.REQUESTS


def anchors():
    return [Authority.live().read_certificate()]


def test_a_key_is_made_once_for_each_purpose(faber):
    key = SigningKey.of(faber.tenant, CREDENTIALS)
    assert SigningKey.of(faber.tenant, CREDENTIALS).pk == key.pk
    assert SigningKey.of(faber.tenant, REQUESTS).thumbprint != key.thumbprint


def test_its_certificate_names_the_organization_alone(faber, acme):
    key = SigningKey.of(faber.tenant, CREDENTIALS)
    chain = certificates.read_chain(key.x5c)
    certificates.verify_chain(chain, anchors(), timezone.now())
    assert certificates.names_of(chain[0]) == ({issuer_url(faber.tenant.pk)}, set())
    assert certificates.names_of(chain[0]) != certificates.names_of(
        certificates.read_chain(SigningKey.of(acme.tenant, CREDENTIALS).x5c)[0]
    )


def test_what_it_signs_has_its_certificates(faber):
    key = SigningKey.of(faber.tenant, CREDENTIALS)
    token = signing.read_token(key.sign({"a": 1}, "x+jwt"), "x+jwt")
    leaf = certificates.read_chain(token.header["x5c"])[0]
    token.verify(certificates.key_of(leaf))


def test_a_new_certificate_is_of_the_same_key(faber):
    key = SigningKey.of(faber.tenant, CREDENTIALS)
    former = certificates.read_chain(key.x5c)[0]
    key.certify()
    [leaf] = certificates.read_chain(SigningKey.of(faber.tenant, CREDENTIALS).x5c)
    assert leaf != former
    assert leaf.public_key() == former.public_key()


def test_certificates_that_end_are_found(faber):
    key = SigningKey.of(faber.tenant, CREDENTIALS)
    now = timezone.now()
    assert not SigningKey.ending_before(now + timedelta(days=12 * 365 - 1))
    assert SigningKey.ending_before(now + timedelta(days=12 * 365 + 1)).get() == key


def test_certificates_are_renewed_before_they_end(faber):
    key = SigningKey.of(faber.tenant, CREDENTIALS)
    assert SigningKey.renew() == 0
    soon = timezone.now() + timedelta(days=10 * 365)
    SigningKey.objects.update(ends_at=soon)
    assert SigningKey.renew() == 1
    renewed = SigningKey.of(faber.tenant, CREDENTIALS)
    assert renewed.ends_at > soon and renewed.x5c != key.x5c
    SigningKey.objects.update(ends_at=soon, is_uploaded=True)
    assert SigningKey.renew() == 0


@pytest.mark.django_db(transaction=True)
def test_two_calls_at_once_make_one_key(faber):
    made = at_once(*[lambda: SigningKey.of(faber.tenant, CREDENTIALS).thumbprint] * 2)
    assert len(set(made)) == 1


@pytest.mark.parametrize("name", ["Universität " * 8, "Школа " * 20, "学" * 64, "\n"])
def test_an_organization_of_any_name_has_certificates(faber, name):
    Tenant.objects.update(name=name)
    faber.tenant.refresh_from_db()
    key = SigningKey.of(faber.tenant, CREDENTIALS)
    [leaf] = certificates.read_chain(key.x5c)
    found = certificates.common_name_of(leaf)
    assert found == "-" or name.startswith(found)
    assert "CERTIFICATE REQUEST" in key.make_request()
