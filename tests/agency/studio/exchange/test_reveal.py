"""No value of a credential is on a page before somebody says why he has to see it."""

import base64
import re
from html import unescape
from unittest import mock

import pytest

from agency.studio.exchange.api_answer import mask_members
from connections.didcomm.message import encode_url
from connections.didcomm.reasons import UNKNOWN
from connections.models import Connection
from credentials.models import Credential
from tenants.models import AuditEntry
from tests.agency.studio.exchange.conftest import text, url_of
from tests.support import walks
from tests.support.policies import attribute, policy, predicate
from tests.support.steps import step
from verifications.models import Verification

NAME, YEAR, REQUIRED = "Balthazar-4711", "-19990417", "Melchior-0815"
VALUES = {"Full Name": NAME, "year": YEAR}
REASON = "The holder called about a typing error."
HIDDEN = {"value": {"attributeName": "Full Name", "attributeValue": REQUIRED}}
POLICY = policy(
    attribute("Full Name", policyName="who"),
    attribute("year", policyName="required", restrictions=[HIDDEN]),
    predicates=[predicate("year", "<", 2023, policyName="old")],
)


def holds_value(page):
    """Whether a value is in the page, or in base64 on it."""
    coded = re.findall(r"[A-Za-z0-9+/_-]{40,}", page)
    opened = b"".join(
        base64.b64decode(one[: len(one) // 4 * 4], b"-_") for one in coded
    )
    texts = page + opened.decode(errors="replace")
    return any(value in texts for value in (NAME, YEAR, REQUIRED))


@step
def rows(faber):
    """Both sides of an issuance and of a proof, by link and by connection."""
    alice = faber.hosts("Alice")
    definition = faber.defines(*VALUES)["definitionId"]
    body = {"definitionId": definition, "credentialValues": VALUES}
    faber.post("/credentials", body)
    connecting = {"protocol": "out-of-band", "handshakes": ["didexchange/1.1"]}
    faber.post("/credentials", body | connecting)
    alice.receives(faber, {"definitionId": definition}, VALUES)
    faber.post("/verifications/policy", POLICY)
    faber.asks(alice, **POLICY)
    alice.auto_selects()
    path = f"/credentials/propose/{alice.known[faber][1]}"
    alice.put(path, body | {"comment": NAME})
    connections = Connection.objects.filter(connectionless=False)
    return [*connections, *Credential.objects.all(), *Verification.objects.all()]


def test_no_page_holds_a_value(browser, rows):
    assert holds_value(encode_url(VALUES)) and holds_value(f"<b>{NAME}</b>")
    assert len(rows) >= 9
    for row in rows:
        for path in (url_of(row), f"{url_of(row)}/live"):
            where = (row.OBJECT_TYPE, row.role)
            assert not holds_value(text(browser.get(path))), where


@step
def alice(faber):
    """Alice, with a credential."""
    alice = faber.hosts("Alice")
    alice.receives(faber, faber.defines(*VALUES), VALUES)
    return alice


@pytest.fixture
def credential(alice):
    return Credential.objects.get(role="issuer")


def ask_alice(faber, alice, *attributes):
    """The verification of a proof of Alice, who shows attributes and proves one."""
    faber.asks(alice, **POLICY | {"attributes": list(attributes)})
    alice.auto_selects()
    return Verification.objects.filter(role="verifier", state="Accepted").latest("pk")


def test_values_of_a_credential_are_revealed_once_with_a_reason(browser, credential):
    path = f"{url_of(credential)}/reveal"
    page = browser.post(path, {"form_token": "1", "reason": REASON})
    assert f"<bdi>{NAME}</bdi>" in text(page) and f"<bdi>{YEAR}</bdi>" in text(page)
    assert "no-store" in page["Cache-Control"]
    entry = AuditEntry.objects.get(action="values.revealed")
    assert (entry.object_id, entry.reason) == (str(credential.pk), REASON)
    assert entry.actor_name == "fay@faber.example"
    assert NAME not in str(entry.details)
    again = browser.post(path, {"form_token": "1", "reason": REASON}, follow=True)
    assert not holds_value(text(again))


def test_the_values_in_a_hosted_wallet_are_the_holders(browser, rows):
    hosted = [row for row in rows if not row.wallet.is_organization]
    assert {row.OBJECT_TYPE for row in hosted} >= {"credential", "verification"}
    for row in hosted:
        assert "/reveal" not in text(browser.get(url_of(row)))
        answer = browser.send(f"{url_of(row)}/reveal", reason=REASON)
        assert answer.status_code == 404
    assert not AuditEntry.objects.filter(action="values.revealed").exists()


def test_without_reason_or_log_nothing_is_revealed(browser, credential, monkeypatch):
    for reason in ("", "    ", "abc", "x" * 501):
        page = text(browser.send(f"{url_of(credential)}/reveal", reason=reason))
        assert 'id="id_reason_error"' in page and not holds_value(page)
    assert not AuditEntry.objects.filter(action="values.revealed").exists()
    full = mock.Mock(side_effect=RuntimeError("the log is full"))
    monkeypatch.setattr(AuditEntry.objects, "create", full)
    browser.raise_request_exception = False
    answer = browser.send(f"{url_of(credential)}/reveal", reason=REASON)
    assert answer.status_code == 500 and not holds_value(answer.text)


def test_a_request_without_an_answer_has_neither_verdict_nor_values(browser, faber):
    faber.post("/verifications/policy", POLICY)
    row = Verification.objects.get()
    page = text(browser.get(url_of(row)))
    assert 'id="verdict"' not in page and 'id="id_reason"' not in page
    form = {"form_token": "1", "reason": REASON}
    answer = browser.post(f"{url_of(row)}/reveal", form, follow=True)
    assert "There are no values yet" in text(answer)
    assert not AuditEntry.objects.filter(action="values.revealed").exists()
    # After an error one can look again without scripts.
    page = text(browser.send(f"{url_of(row)}/reveal", reason=""))
    assert f'<a class="button plain" href="{url_of(row)}">Look again</a>' in page


def test_the_verdict_stands_on_top_with_a_button_for_the_values(browser, faber, alice):
    row = ask_alice(faber, alice, POLICY["attributes"][0])
    page = text(browser.get(url_of(row)))
    top = page.partition('id="state"')[0]
    assert 'class="mark done"' in top and '<h2 id="verdict">Valid</h2>' in top
    assert "less than 2023" in top and "proven, never shown" in top
    assert "Show the values" in top and "<bdi>Full Name</bdi>" in top
    assert "(item" not in top and "why: “To read the answer”." in top
    assert page.count('id="id_reason"') == 1 and not holds_value(page)
    [reason] = re.findall(r'name="reason" value="([^"]+)"', page)
    page = text(browser.send(f"{url_of(row)}/reveal", reason=reason))
    top = page.partition('id="state"')[0]
    assert f"<bdi>{NAME}</bdi>" in top and "less than 2023" in top
    assert "Show the values" not in page and "data-watched" not in page
    entry = AuditEntry.objects.get(action="values.revealed")
    assert (entry.reason, entry.object_id) == (reason, str(row.pk))
    page = text(browser.get(url_of(ask_alice(faber, alice))))
    assert "less than 2023" in page and 'id="id_reason"' not in page, "only proven"


@step
def asked(faber, met):
    """Alice is asked for what she has not."""
    faber.asks(met, **POLICY)


def test_a_request_that_was_declined_has_a_cross_and_no_form(browser, asked):
    Verification.objects.get(role="prover").decline("I have none.")
    row = Verification.objects.get(role="verifier")
    page = text(browser.get(url_of(row)))
    top = page.partition('id="state"')[0]
    assert 'class="mark failed"' in top and "ended before a proof came" in top
    assert "never shown" not in top and "None" not in page
    assert "The other side ended the exchange." in page and "I have none." not in page
    assert '"reason": "••••••"' in unescape(page)
    page = text(browser.send(f"{url_of(row)}/reveal", reason=REASON))
    assert "<bdi>I have none.</bdi>" in page.partition('id="state"')[0]
    assert AuditEntry.objects.get(action="values.revealed").reason == REASON


def test_a_known_reason_is_in_our_words_with_nothing_to_reveal(browser, asked):
    Verification.objects.get(role="prover").decline("no_card_fits")
    page = text(browser.get(url_of(Verification.objects.get(role="verifier"))))
    assert "The wallet has no card that fits." in page
    assert 'id="id_reason"' not in page


def test_a_code_of_no_list_is_free_text(browser, asked):
    row = Verification.objects.get(role="verifier")
    for code in ("I have none.", "e.p.none"):
        Verification.objects.update(state="Rejected", problem=code)
        page = text(browser.get(url_of(row)))
        assert UNKNOWN in page and code not in page
        assert code in text(browser.send(f"{url_of(row)}/reveal", reason=REASON))


def test_so_is_one_that_refuses_a_handshake(browser, walk):
    row = walks.connection(walk, "inviter", "Negotiating")
    Connection.objects.update(problem="e.p.none")
    assert "e.p.none" not in text(browser.get(url_of(row)))
    assert "e.p.none" in text(browser.send(f"{url_of(row)}/reveal", reason=REASON))


def test_an_invalid_proof_has_a_cross_and_the_reason_on_top(browser, faber, alice):
    row = ask_alice(faber, alice, *POLICY["attributes"])
    page = text(browser.get(url_of(row)))
    top = page.partition('id="state"')[0]
    assert 'class="mark failed"' in top and "Not valid" in top
    assert "<strong>No card that proves this.</strong>" in top
    assert 'id="failed-checks"' not in top and page.count('id="checks"') == 1
    assert "less than 2023" in page and "compared, never shown" in page
    page = text(browser.send(f"{url_of(row)}/reveal", reason=REASON))
    assert f"<bdi>{NAME}</bdi>" in page
    assert AuditEntry.objects.get(action="values.revealed").reason == REASON


def test_a_member_that_is_not_known_is_masked():
    attributes = {"state": NAME, "name": NAME}
    answer = {
        "state": "Issued",
        "novelty": NAME,
        "values": attributes,
        "proof": {"name": {"name": "Full Name", "attributes": attributes}},
        "policy": {"attributes": [{"policyName": "who", "values": attributes}]},
        "texts": [NAME],
    }
    masked = mask_members(answer)
    assert NAME not in str(masked)
    assert masked["state"] == "Issued"
    assert masked["proof"]["name"]["name"] == "Full Name"
