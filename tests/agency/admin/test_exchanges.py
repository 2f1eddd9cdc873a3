"""The exchange page at the top of a row in the admin: no values, no actions."""

import base64
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from connections.models import Connection, InboundMessage, OutboundMessage
from credentials.models import Credential
from tests.agency.studio.exchange.test_page import STATES
from tests.support import queues, walks
from verifications.models import Verification
from verifications.proofs import failures

MAX_QUERIES = 12
NAME, YEAR = "Balthazar-4711", "-19990417"


@pytest.fixture
def walk(faber, monkeypatch):
    return walks.Walk(faber, monkeypatch)


def admin_url(row):
    meta = row._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk])


def text(response):
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize("reach, role, state", STATES)
def test_each_state_is_shown_to_support(browser, walk, reach, role, state):
    row = reach(walk, role, state)
    page = text(browser.get(admin_url(row)))
    shown = "Not valid" if state == "Accepted" else state
    assert re.search(rf'aria-current="step">{shown}</li>', page)
    assert not re.search(r"Send again|Cancel the|Reveal|csrf.*resend", page)


def test_support_sees_why_a_verification_failed_and_what_to_do(browser, walk):
    row = walks.verification(walk, "verifier", "Accepted")
    page = text(browser.get(admin_url(row)))
    assert failures.UNANSWERED.message in page
    assert failures.UNANSWERED.advice in page


def test_support_sees_transport_errors_and_sends_nothing(browser, phone, faber):
    row = phone.connects(faber)
    faber.post("/messages", {"connectionId": row.connection_id, "text": "Hello"})
    OutboundMessage.objects.filter(type="basicmessage/1.0/message").update(
        status="exhausted", attempts=10, last_error="endpoint_unreachable"
    )
    page = text(browser.get(admin_url(row)))
    assert "Text message" in page and "The address could not be reached." in page
    assert "Send again now" not in page


def test_no_page_of_the_admin_holds_a_value_or_a_link(browser, faber):
    alice = faber.hosts("Alice")
    values = {"Full Name": NAME, "year": YEAR}
    definition = faber.defines(*values)
    offer = {"definitionId": definition["definitionId"], "credentialValues": values}
    faber.post("/credentials", offer)
    alice.receives(faber, definition, values)
    faber.asks(
        alice, attributes=[{"policyName": "who", "attributeNames": ["Full Name"]}]
    )
    alice.auto_selects()
    tokens = list(Connection.objects.exclude(token="").values_list("token", flat=True))
    for model in (Connection, Credential, Verification):
        for row in model.objects.all():
            page = text(browser.get(admin_url(row)))
            coded = re.findall(r"[A-Za-z0-9+_-]{40,}", page)
            opened = b"".join(
                base64.b64decode(one[: len(one) // 4 * 4], b"-_") for one in coded
            ).decode(errors="replace")
            for secret in (NAME, YEAR, *tokens):
                assert secret not in page and secret not in opened


def queries(browser, path):
    browser.get(path)
    with CaptureQueriesContext(connection) as captured:
        assert browser.get(path).status_code == 200
    return len(captured)


def test_few_queries_with_any_number_of_messages(browser, phone, faber, walk):
    row = phone.connects(faber)
    phone.says(phone.build("trust_ping/1.0/ping"))
    queues.sweep()
    few = queries(browser, admin_url(row))
    template = InboundMessage.objects.filter(type="trust_ping/1.0/ping").get()
    for number in range(50):
        template.pk, template.message_id = InboundMessage().pk, f"ping {number}"
        template._state.adding = True
        template.save(force_insert=True)
    assert queries(browser, admin_url(row)) == few <= MAX_QUERIES
    for one in walk.asks().values():
        assert queries(browser, admin_url(one)) <= MAX_QUERIES


def test_who_has_no_permission_sees_nothing(browser, sue, walk):
    row = walks.connection(walk, "inviter", "Connected")
    sue.user_permissions.clear()
    assert browser.get(admin_url(row)).status_code == 403


def test_a_row_that_is_gone_is_said_so(browser, walk):
    row = walks.connection(walk, "inviter", "Connected")
    url = admin_url(row)
    row.remove()
    assert browser.get(url).status_code == 302
