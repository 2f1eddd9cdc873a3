"""The verifier's checks in words: failed ones first, each with what to do."""

import re
from html import unescape

import pytest

from agency.words.reasons import NO_SUCH_CARD, YOUNGER
from tenants import vault
from tests.agency.studio.exchange.conftest import text, url_of
from tests.support import walks
from tests.support.policies import attribute, predicate
from verifications.models import Verification
from verifications.proofs import failures


@pytest.fixture
def judged(walk):
    """A verification whose proof was found not valid."""
    return walks.verification(walk, "verifier", "Accepted")


def test_a_proof_without_a_credential_says_what_to_do_to_the_verifier(browser, judged):
    page = unescape(text(browser.get(url_of(judged))))
    assert "The holder did not answer this item." in page
    assert failures.UNANSWERED.advice in page
    assert "in the form asked for: <bdi>name</bdi>" in page
    prover = Verification.objects.get(role="prover")
    of_prover = text(browser.get(url_of(prover)))
    assert "No card that proves this." in of_prover
    assert 'id="checks"' not in of_prover
    Verification.objects.filter(pk=prover.pk).update(problem="")
    assert "Only the verifier knows why" in text(browser.get(url_of(prover)))


def test_an_age_that_no_card_proves_is_said_in_words(browser, faber):
    """With what may have happened, and no advice to ask for less."""
    adult = predicate("born", "<=", "today-18y", policyName="Adult")
    alice = faber.hosts("Alice")
    faber.asks(alice, attributes=[attribute("name")], predicates=[adult])
    alice.auto_selects()
    row = Verification.objects.get(role="verifier")
    page = unescape(text(browser.get(url_of(row))))
    top = page.partition('id="state"')[0]
    day = row.created_at.date()
    asked = f"born\u2069: on {day.day} {day:%b} {day.year - 18} or earlier"
    assert f"{asked}, that is 18 or older" in top
    assert YOUNGER in top and NO_SUCH_CARD in top
    assert "Look the person up" in top and "widen" not in page


def test_so_is_what_the_holder_has_no_card_for(browser, faber):
    adult = predicate("born", "<=", "today-18y", policyName="Adult")
    alice = faber.hosts("Alice")
    faber.asks(alice, attributes=[], predicates=[adult])
    asked = alice.newest("verifications")["verificationId"]
    alice.put(f"/verifications/{asked}/decline", {"reason": "no_card_fits"})
    row = Verification.objects.get(role="verifier")
    top = unescape(text(browser.get(url_of(row)))).partition('id="state"')[0]
    assert "The wallet has no card that fits." in top
    assert "that is 18 or older" in top and YOUNGER in top


def test_a_failure_of_every_code_is_shown(browser, judged):
    keys = ("policy_name", "rule", "status", "code", "message")
    listed = [
        (None, "identifiers", "pass", None, ""),
        ("name", "definition", "skipped", None, "Not checked."),
    ]
    for code, failure in failures.FAILURES.items():
        listed.append(("name", "answered", "fail", code, failure.message))
    listed = [dict(zip(keys, check, strict=True)) for check in listed]
    sealed = vault.sealed_value(judged, "checks", listed)
    Verification.objects.filter(pk=judged.pk).update(checks=sealed)
    page = unescape(text(browser.get(url_of(judged))))
    top, _, rest = page.partition('id="state"')
    checks = rest.partition('id="failed-checks"')[2]
    for code, failure in failures.FAILURES.items():
        cause = failures.CAUSE_OF[code].message
        strong = f"<strong>{cause}</strong>"
        assert top.count(strong) == top.count(cause) == page.count(strong) == 1, code
        item = checks.partition(f"<code>{code}</code>")[0].rpartition("<li>")[2]
        assert item.index(failure.message) < item.index(failure.advice), code
    last = failure.advice, "1 check not needed any more", "1 check passed"
    positions = [checks.index(one) for one in last]
    assert positions == sorted(positions)


def test_a_valid_proof_shows_that_all_checks_passed(browser, walk):
    walks.credential(walk, "holder", "Issued")
    row = walks.verification(walk, "verifier", "Accepted")
    page = text(browser.get(url_of(row)))
    assert "The proof is valid" in page
    assert "failed" not in page and re.search(r"\d+ checks passed", page)
