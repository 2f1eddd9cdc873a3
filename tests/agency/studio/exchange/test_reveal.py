"""No value of a credential is on a page before somebody says why he has to see it."""

import base64
import re

import pytest

from agency.studio.exchange.api_answer import mask_members
from connections.didcomm.message import encode_url
from connections.models import Connection
from credentials.models import Credential
from tenants.models import AuditEntry
from tests.agency.studio.exchange.conftest import text, url_of
from tests.agency.studio.exchange.test_actions import viewer
from verifications.models import Verification

__all__ = ["viewer"]
NAME, YEAR, REQUIRED = "Balthazar-4711", "-19990417", "Melchior-0815"
VALUES = {"Full Name": NAME, "year": YEAR}
REASON = "The holder called about a typing error."
POLICY = {
    "name": "Policy",
    "version": "1.0",
    "attributes": [
        {"policyName": "who", "attributeNames": ["Full Name"]},
        {
            "policyName": "required",
            "attributeNames": ["year"],
            "restrictions": [
                {"value": {"attributeName": "Full Name", "attributeValue": REQUIRED}}
            ],
        },
    ],
    "predicates": [
        {
            "policyName": "old",
            "attributeName": "year",
            "predicateType": "<",
            "predicateValue": 2023,
        }
    ],
}


def holds_value(page):
    """Whether a value is in the page, or in base64 on it."""
    coded = re.findall(r"[A-Za-z0-9+/_-]{40,}", page)
    opened = b"".join(
        base64.b64decode(one[: len(one) // 4 * 4], b"-_") for one in coded
    )
    texts = page + opened.decode(errors="replace")
    return any(value in texts for value in (NAME, YEAR, REQUIRED))


@pytest.fixture
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
    proposal = {
        "definitionId": definition,
        "credentialValues": VALUES,
        "comment": NAME,
    }
    alice.put(f"/credentials/propose/{alice.known[faber][1]}", proposal)
    models = (Connection, Credential, Verification)
    return [
        row
        for model in models
        for row in model.objects.all()
        if not getattr(row, "connectionless", False)
    ]


def test_no_page_holds_a_value(browser, rows, faber):
    assert holds_value(encode_url(VALUES)) and holds_value(f"<b>{NAME}</b>")
    assert len(rows) >= 9
    for row in rows:
        for path in (url_of(row), f"{url_of(row)}/live"):
            assert not holds_value(text(browser.get(path))), (
                row.OBJECT_TYPE,
                row.role,
            )


@pytest.fixture
def credential(rows):
    return Credential.objects.get(role="issuer", state="Issued")


@pytest.fixture
def proof(rows):
    return Verification.objects.get(role="verifier", state="Accepted")


def test_the_values_of_a_credential_are_revealed_once_with_a_reason(
    browser, credential
):
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


def test_the_values_of_a_proof_are_revealed(browser, proof):
    page = text(browser.send(f"{url_of(proof)}/reveal", reason=REASON))
    assert f"<bdi>{NAME}</bdi>" in page
    assert AuditEntry.objects.get(action="values.revealed").reason == REASON


def test_the_values_in_a_hosted_wallet_are_the_holders(browser, rows):
    hosted = [row for row in rows if not row.wallet.is_organization]
    assert {row.OBJECT_TYPE for row in hosted} >= {"credential", "verification"}
    for row in hosted:
        assert "/reveal" not in text(browser.get(url_of(row)))
        answer = browser.send(f"{url_of(row)}/reveal", reason=REASON)
        assert answer.status_code == 404
    assert not AuditEntry.objects.filter(action="values.revealed").exists()


@pytest.mark.parametrize("reason", ["", "    ", "abc", "x" * 501])
def test_without_a_reason_nothing_is_revealed(browser, credential, reason):
    page = text(browser.send(f"{url_of(credential)}/reveal", reason=reason))
    assert 'id="id_reason_error"' in page and not holds_value(page)
    assert not AuditEntry.objects.filter(action="values.revealed").exists()


def test_if_the_log_cannot_be_written_nothing_is_revealed(
    browser, credential, monkeypatch
):
    def fail(*_, **__):
        raise RuntimeError("the log is full")

    monkeypatch.setattr(AuditEntry.objects, "create", fail)
    browser.raise_request_exception = False
    answer = browser.send(f"{url_of(credential)}/reveal", reason=REASON)
    assert answer.status_code == 500 and not holds_value(answer.content.decode())


def test_what_has_no_values_yet_says_so(browser, faber):
    faber.post("/verifications/policy", POLICY)
    row = Verification.objects.get()
    answer = browser.post(
        f"{url_of(row)}/reveal", {"form_token": "1", "reason": REASON}, follow=True
    )
    assert "There are no values yet" in text(answer)
    assert not AuditEntry.objects.filter(action="values.revealed").exists()


def test_after_an_error_one_can_look_again_without_scripts(browser, faber):
    faber.post("/verifications/policy", POLICY)
    row = Verification.objects.get()
    page = text(browser.send(f"{url_of(row)}/reveal", reason=""))
    assert f'<a class="button plain" href="{url_of(row)}">Look again</a>' in page


def test_a_viewer_and_a_stranger_reveal_nothing(viewer, stranger, credential):
    path = f"{url_of(credential)}/reveal"
    assert "Reveal" not in text(viewer.get(url_of(credential)))
    assert viewer.send(path, reason=REASON).status_code == 403
    assert stranger.send(path, reason=REASON).status_code == 404
    assert viewer.get(path).status_code == 405
    assert not AuditEntry.objects.filter(action="values.revealed").exists()


def test_comparisons_show_their_condition_and_no_value(browser, proof):
    page = text(browser.get(url_of(proof)))
    assert "less than 2023" in page and "compared, never shown" in page


def test_the_verdict_stands_on_top_with_what_was_shown_and_proven(browser, faber):
    row = ask_alice(faber, shown=["Full Name"])
    page = text(browser.get(url_of(row)))
    top = page.partition('id="state"')[0]
    assert 'class="mark done"' in top and '<h2 id="verdict">Valid</h2>' in top
    assert "less than 2023" in top and "proven, never shown" in top
    assert "Show the values" in top and "<bdi>Full Name</bdi>" in top
    assert "(item" not in top
    assert page.count('id="id_reason"') == 1 and not holds_value(page)


def test_the_values_are_shown_below_the_verdict_by_one_button(browser, faber):
    row = ask_alice(faber, shown=["Full Name"])
    form = text(browser.get(url_of(row)))
    assert (
        "The log then says that you saw them, and why: “To read the answer”." in form
    )
    [reason] = re.findall(r'name="reason" value="([^"]+)"', form)
    page = text(browser.send(f"{url_of(row)}/reveal", reason=reason))
    top = page.partition('id="state"')[0]
    assert f"<bdi>{NAME}</bdi>" in top and "less than 2023" in top
    assert "Show the values" not in page and "data-watched" not in page
    entry = AuditEntry.objects.get(action="values.revealed")
    assert (entry.reason, entry.object_id) == (reason, str(row.pk))


def test_what_was_only_proven_has_no_form_for_values(browser, faber):
    page = text(browser.get(url_of(ask_alice(faber, shown=[]))))
    assert "less than 2023" in page and 'id="id_reason"' not in page


def test_a_request_without_an_answer_has_neither_verdict_nor_form(browser, faber):
    faber.post("/verifications/policy", POLICY)
    page = text(browser.get(url_of(Verification.objects.get())))
    assert 'id="verdict"' not in page and 'id="id_reason"' not in page


def test_a_request_that_was_declined_has_a_cross_and_no_form(browser, faber):
    alice = faber.hosts("Alice")
    alice.meets(faber)
    faber.asks(alice, **POLICY)
    Verification.objects.get(role="prover").decline("I have none.")
    page = text(browser.get(url_of(Verification.objects.get(role="verifier"))))
    top = page.partition('id="state"')[0]
    assert 'class="mark failed"' in top and "ended before a proof came" in top
    assert "never shown" not in top and "masked" not in top
    assert 'id="id_reason"' not in page


def test_a_proof_that_is_not_valid_has_a_cross_and_the_reason_on_top(browser, proof):
    page = text(browser.get(url_of(proof)))
    top = page.partition('id="state"')[0]
    assert 'class="mark failed"' in top and "Not valid" in top
    assert 'id="checks"' in top and page.count('id="checks"') == 1


def ask_alice(faber, shown):
    """The verification of a proof of Alice, who shows attributes and proves one."""
    alice = faber.hosts("Alice")
    definition = faber.defines(*VALUES)["definitionId"]
    alice.receives(faber, {"definitionId": definition}, VALUES)
    attributes = [{"policyName": "who", "attributeNames": shown}] if shown else []
    faber.asks(alice, **POLICY | {"attributes": attributes})
    alice.auto_selects()
    return Verification.objects.get(role="verifier", state="Accepted")


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
