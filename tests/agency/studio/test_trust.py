"""The page of trust: own certificates, and authorities of issuers elsewhere."""

import pytest
from cryptography import x509

from tenants.models import AuditEntry
from tests.agency.studio.conftest import read
from tests.support.sd_jwt import Authority
from wallets.jose import certificates
from wallets.models import SigningKey, TrustAnchor

pytestmark = pytest.mark.django_db(transaction=True)
STATE = Authority("State")
CREDENTIALS = SigningKey.Purpose.CREDENTIALS
REFUSED = "Wallets that check a list of trusted authorities refuse"


@pytest.fixture
def page(url):
    return f"{url}/trust"


def test_it_says_who_refuses_the_authority_of_the_installation(browser, page, college):
    text = read(browser, page)
    assert REFUSED in text and "They are made when" in text
    key = SigningKey.of(college.tenant, CREDENTIALS)
    shown = read(browser, page)
    [leaf] = certificates.read_chain(key.x5c)
    assert certificates.fingerprint_of(leaf) in shown
    assert "Of this installation" in shown


def test_a_request_is_downloaded_signed_and_the_chain_uploaded(browser, page, college):
    answer = browser.get(f"{page}/request?purpose=credentials")
    assert x509.load_pem_x509_csr(answer.content).is_signature_valid
    assert 'filename="credentials.csr"' in answer["Content-Disposition"]
    assert browser.get(f"{page}/request?purpose=other").status_code == 404
    pem = STATE.certify_key(college.tenant)
    browser.send(f"{page}/certificates", certificates=pem)
    shown = read(browser, page)
    assert "Uploaded" in shown and REFUSED not in shown and "CN=State" in shown
    assert SigningKey.of(college.tenant, CREDENTIALS).is_uploaded


@pytest.mark.parametrize(
    ("pem", "why"), [("x", "in PEM"), (STATE.pem, "of no key of the organization")]
)
def test_what_does_not_fit_is_said_and_changes_nothing(
    browser, page, college, pem, why
):
    key = SigningKey.of(college.tenant, CREDENTIALS)
    browser.send(f"{page}/certificates", certificates=pem)
    assert why in read(browser, page)
    key.refresh_from_db()
    assert not key.is_uploaded


def test_there_is_a_way_back_after_a_question(browser, page, college):
    SigningKey.upload(college.tenant, STATE.certify_key(college.tenant))
    question = f"{page}/own?purpose=credentials"
    assert "What was signed before stays valid" in read(browser, question)
    assert SigningKey.of(college.tenant, CREDENTIALS).is_uploaded
    browser.send(question)
    key = SigningKey.of(college.tenant, CREDENTIALS)
    assert not key.is_uploaded and REFUSED in read(browser, page)
    browser.send(question)  # nothing is left to remove
    assert AuditEntry.objects.filter(action="certificates.removed").count() == 1


def test_an_authority_is_looked_at_before_it_is_trusted(browser, page, college):
    form = {"name": "State", "certificate": STATE.pem}
    looked = browser.send(f"{page}/anchors/new", action="look", **form)
    text = looked.content.decode()
    assert certificates.fingerprint_of(STATE.certificate) in text
    assert "CN=State" in text and not TrustAnchor.objects.exists()
    browser.send(f"{page}/anchors/new", action="trust", **form)
    anchor = TrustAnchor.objects.get()
    assert str(anchor.pk) in read(browser, page)
    question = f"{page}/anchors/{anchor.pk}/delete"
    assert "no longer?" in read(browser, question)
    browser.send(question)
    assert not TrustAnchor.objects.exists()


def test_what_is_no_authority_is_refused_above_the_form(browser, page, college):
    leaf = STATE.certify_key(college.tenant)
    for pem, why in ((leaf, "not one of an authority"), ("x", "in PEM")):
        answer = browser.send(
            f"{page}/anchors/new", name="State", certificate=pem, action="look"
        )
        assert why in answer.content.decode()
