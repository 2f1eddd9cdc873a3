"""Lists of verifications say why one failed."""

import html

import pytest

from tests.support.people import Organization
from verifications.models import Verification

pytestmark = pytest.mark.django_db(transaction=True)
LIST = "/admin/verifications/verification/"


def fail_one(organization):
    alice = organization.hosts("Alice")
    organization.asks(alice, attributes=[{"policyName": "Full name"}])
    alice.auto_selects()


def text_of(response):
    return html.unescape(response.text)


def test_the_list_says_why(browser, faber):
    fail_one(faber)
    page = text_of(browser.get(LIST, {"role__exact": "verifier"}))
    assert "Full name: No card that proves this." in page
    page = text_of(browser.get(LIST, {"role__exact": "prover"}))
    assert "No card that proves this." in page, "the verifier has told it"
    Verification.objects.update(problem="")
    page = text_of(browser.get(LIST, {"role__exact": "prover"}))
    assert "Its own record has why" in page


def test_many_take_few_queries(browser, faber, django_assert_max_num_queries):
    for number in range(6):
        fail_one(Organization(f"Branch {number}"))
    from tenants import vault

    vault.forget_keys()
    with django_assert_max_num_queries(12):
        page = text_of(browser.get(LIST))
    assert page.count("Full name: No card that proves this.") == 6


def test_a_thread_is_searched_whole(browser, faber):
    fail_one(faber)
    row = Verification.objects.get(role="verifier")
    assert str(row.pk) in text_of(browser.get(LIST, {"q": row.thread_id}))
    assert str(row.pk) not in text_of(browser.get(LIST, {"q": row.thread_id[:-1]}))
