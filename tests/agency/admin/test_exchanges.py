"""The exchange page at the top of a row in the admin: no values, no actions."""

from django.urls import reverse

from connections.models import OutboundMessage
from tests.support import walks


def admin_url(row):
    meta = row._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk])


def text(response):
    assert response.status_code == 200
    return response.text


def test_support_sees_transport_errors_and_sends_nothing(browser, phone, faber):
    row = phone.connects(faber)
    faber.post("/messages", {"connectionId": row.connection_id, "text": "Hello"})
    OutboundMessage.objects.filter(type="basicmessage/1.0/message").update(
        status="exhausted", attempts=10, last_error="endpoint_unreachable"
    )
    page = text(browser.get(admin_url(row)))
    assert "Text message" in page and "The address could not be reached." in page
    assert "Send again now" not in page


def test_a_row_that_is_gone_is_said_so(browser, faber, monkeypatch):
    row = walks.connection(walks.Walk(faber, monkeypatch), "inviter", "Connected")
    url = admin_url(row)
    row.remove()
    assert browser.get(url).status_code == 302
