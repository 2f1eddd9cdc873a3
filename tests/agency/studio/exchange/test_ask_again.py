"""One button asks the same holder again, by the same policy."""

from connections.models import Connection
from tenants.models import AuditEntry
from tests.agency.studio.exchange.conftest import text, url_of
from tests.support.policies import attribute, policy, predicate
from tests.support.steps import step
from verifications.models import Kiosk, Verification, VerificationPolicy

SINCE = predicate("year", ">=", 1999, policyName="Since")
POLICY = policy(attribute("name", policyName="Who"), predicates=[SINCE])


def asked():
    return Verification.objects.filter(role="verifier").order_by("pk")


@step
def stored(faber):
    return faber.post("/verificationPolicies", POLICY)["policyId"]


@step
def refused(faber, met, stored):
    """Alice had nothing to show."""
    faber.put(f"/verifications/policy/{stored}/connections/{met.connection_id}")
    met.auto_selects()
    return asked().get()


def test_it_asks_over_the_same_connection(browser, refused, alice):
    page = text(browser.get(url_of(refused)))
    assert ">Ask again</button>" in page
    answer = browser.send(f"{url_of(refused)}/ask")
    first, again = asked()
    assert answer.url == url_of(again)
    assert (again.connection, again.state) == (refused.connection, "Requested")
    assert again.policy_id == first.policy_id
    assert alice.newest("verifications")["state"] == "Requested"
    entry = AuditEntry.objects.get(action="verification.requested")
    assert entry.object_id == str(again.pk)


def test_what_was_declined_is_asked_again_without_the_stored_policy(browser, refused):
    VerificationPolicy.objects.all().delete()
    for _ in range(2):
        browser.send(f"{url_of(refused)}/ask")
        last = asked().last()
        assert last.unsealed_policy() == refused.unsealed_policy()
        Verification.objects.get(role="prover", state="Requested").decline("not_now")
        refused = asked().last()
        assert "does not want to do it now" in text(browser.get(url_of(refused)))


def test_what_the_holder_proposed_is_not_asked_again(browser, faber, alice):
    alice.put(f"/verifications/propose/{alice.known[faber][1]}", POLICY)
    asked().get().decline()
    declined = asked().get()
    assert ">Ask again</button>" not in text(browser.get(url_of(declined)))
    browser.send(f"{url_of(declined)}/ask")
    assert asked().get() == declined


def test_by_a_link_it_makes_a_new_link(browser, faber, stored, alice):
    url = faber.put(f"/verifications/policy/{stored}")["verificationRequestUrl"]
    first = asked().get()
    browser.send(f"{url_of(first)}/ask")
    assert asked().count() == 1, "nobody has answered the link yet"
    alice.put("/verifications/fromData", {"verificationData": url})
    browser.send(f"{url_of(first)}/ask")
    assert asked().last().connection.invitation_url not in (None, url)
    assert asked().count() == 2


def test_on_a_kiosk_the_new_request_is_on_its_screen(browser, refused, faber, stored):
    desk = {"name": "Desk", "policyId": stored, "shownItems": []}
    faber.post("/kiosks", desk)
    Kiosk.objects.update(verification_id=refused.pk)
    browser.send(f"{url_of(refused)}/ask")
    assert Kiosk.objects.get().verification_id == asked().last().pk != refused.pk


def test_a_connection_that_has_gone_is_not_replaced_by_a_link(browser, refused):
    Connection.objects.get(pk=refused.connection_id).remove()
    browser.send(f"{url_of(refused)}/ask")
    page = text(browser.get(url_of(refused)))
    assert "was deleted" in page and asked().count() == 1


def test_what_was_refused_has_no_green_step_and_says_what_is_unanswered(
    browser, refused
):
    page = text(browser.get(url_of(refused)))
    assert '<ol class="steps ended">' in page
    assert "Not answered" in page and ">None<" not in page
    assert "at least 1999" in page and "never shown" not in page
    Verification.objects.filter(pk=refused.pk).update(
        state="Rejected", is_valid=None, verified_at=None, problem="abandoned"
    )
    assert '<ol class="steps ended">' in text(browser.get(url_of(refused)))


def test_viewers_and_holders_cannot_ask(browser, viewer, refused):
    assert ">Ask again</button>" not in text(viewer.get(url_of(refused)))
    assert viewer.send(f"{url_of(refused)}/ask").status_code == 403
    prover = Verification.objects.get(role="prover")
    assert browser.send(f"{url_of(prover)}/ask").status_code == 404
    assert asked().count() == 1
