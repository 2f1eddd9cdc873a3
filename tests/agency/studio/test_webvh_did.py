"""The did:webvh of an organization in the studio."""

import pytest
from django.db import transaction

from core.net import http
from credentials.ledgers.webvh import own_did
from credentials.models import WebvhDid
from tenants.models import Tenant
from tests.agency.studio.conftest import read

pytestmark = pytest.mark.django_db(transaction=True)
HOST = "agency.example.org"


@pytest.fixture
def page(url, settings):
    settings.PUBLIC_URL = f"https://{HOST}"
    return f"{url}/did"


@pytest.fixture
def made(browser, page):
    browser.send(f"{page}/make")
    return WebvhDid.objects.get()


def answers(monkeypatch, status=200, body=b"", failure=None):
    def get(url, **options):
        if failure:
            raise failure
        return http.Response(status, {}, body, True, 0.0)

    monkeypatch.setattr(own_did.http, "get", get)


def test_the_page_says_that_the_domain_is_for_life_before_the_button(browser, page):
    text = read(browser, page)
    assert text.index("The domain is for life") < text.index("Make the DID")
    assert "goes on publishing on Local network" in text
    browser.send(f"{page}/make")
    assert WebvhDid.objects.get().host == HOST
    assert WebvhDid.objects.get().did in read(browser, page)


def test_a_domain_that_no_wallet_reads_is_refused_on_the_page(browser, page):
    browser.send(f"{page}/make", host="10.0.0.1")
    assert "Give a domain name" in read(browser, page)
    assert not WebvhDid.objects.exists()


def test_a_new_organization_takes_a_domain_that_leads_here(browser, page, monkeypatch):
    domain, new = f"bank.{HOST}", "/studio/organizations/new"
    given = {"name": "Bank", "network_id": "webvh", "host": domain.upper()}
    answers(monkeypatch, body=b"something else")
    text = browser.send(new, **given).text
    assert 'id="id_host_error"' in text and "does not lead here yet" in text
    text = browser.send(new, **given | {"network_id": "local"}).text
    assert "Only an organization on the network webvh" in text
    assert not WebvhDid.objects.exists()
    assert not Tenant.objects.filter(name="Bank").exists()

    def get(url, **options):
        assert not transaction.get_connection().in_atomic_block
        nonce = url.removeprefix(f"https://{domain}/issuers/check/")
        answer = own_did.answer_check(domain, nonce).encode()
        return http.Response(200, {}, answer, True, 0.0)

    monkeypatch.setattr(own_did.http, "get", get)
    assert browser.send(new, **given).status_code == 302
    assert WebvhDid.objects.get(tenant__name="Bank").host == domain


def test_it_says_whether_the_log_can_be_read_from_outside(
    browser, page, made, monkeypatch
):
    answers(monkeypatch, body=made.log.encode())
    assert "Not readable" not in read(browser, f"{page}?check=1")
    answers(monkeypatch, body=b"another")  # the domain is lost
    text = read(browser, f"{page}?check=1")
    assert "Not readable" in text and "whether the domain" in text
    answers(monkeypatch, status=301)
    assert "answers 301" in read(browser, f"{page}?check=1")
    answers(monkeypatch, failure=http.CallFailed("endpoint_unreachable", "no", 0.0))
    assert "cannot be reached" in read(browser, f"{page}?check=1")


def test_the_keys_are_rotated_after_a_question(browser, page, made):
    assert "Somebody else may have the key" in read(browser, f"{page}/rotate")
    browser.send(f"{page}/rotate")
    assert "Rotating" in read(browser, page)
    browser.send(f"{page}/rotate")
    assert "A rotation of the keys has begun" in read(browser, page)
    browser.send(f"{page}/rotate", compromised="on")
    made.refresh_from_db()
    assert (made.state, made.versions) == ("Active", 3)


def test_who_deletes_an_organization_reads_what_becomes_of_its_did(
    browser, url, page, made
):
    said = "Its did:webvh is frozen"
    assert said in read(browser, f"{url}/delete")
    browser.send(f"{page}/end")
    assert said not in read(browser, f"{url}/delete")


@pytest.mark.parametrize(
    "given, state", [({}, "Frozen"), ({"deactivate": "on"}, "Deactivated")]
)
def test_it_ends_after_a_question_that_says_what_stays(
    browser, page, made, given, state
):
    assert "can still be proven" in read(browser, f"{page}/end")
    browser.send(f"{page}/end", **given)
    made.refresh_from_db()
    assert made.state == state
    text = read(browser, page)
    assert state in text and "Rotate keys" not in text
    assert ("It is over" in text) == (state == "Deactivated")
    assert ("Keep the domain" in text) == (state == "Frozen")
    assert browser.get(f"{page}/end").status_code == 404
