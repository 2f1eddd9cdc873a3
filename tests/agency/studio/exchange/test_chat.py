"""The messages of a connection are a chat: both ways, newest at the end, with a form."""

import re

import pytest

from agency.studio import newest_first
from connections.models import BasicMessage, Connection, OutboundMessage
from connections.protocols import basic_message
from tenants.models import AuditEntry
from tests.agency.studio.exchange.conftest import text, url_of
from tests.support.steps import step

pytestmark = pytest.mark.django_db(transaction=True)
SHOWN = re.compile(
    r'<li( class="ours")?>.*?<p class="text" dir="auto">(.*?)</p>'
    r'(?:\s*<p><span class="badge \w+">(\w+)</span>)?',
    re.S,
)


@step
def alice(faber):
    holder = faber.hosts("Alice")
    holder.known_as(faber)
    return Connection.objects.get(role="invitee")


@step
def row(faber, alice):
    """The organization's side of the connection with Alice."""
    return Connection.objects.get(role="inviter")


def chat_of(row):
    return f"{url_of(row)}/messages"


def shown(response):
    """`(whether it is ours, text, state)` of each message."""
    chat = text(response).partition('<ol class="chat">')[2].partition("</ol>")[0]
    found = SHOWN.findall(chat)
    return [(bool(ours), words, state) for ours, words, state in found]


def test_both_sides_write_and_the_newest_is_at_the_end(browser, alice, row):
    assert "Nobody has written yet" in text(browser.get(chat_of(row)))
    assert "This field is required" in text(browser.send(chat_of(row), text=" "))
    assert not BasicMessage.objects.exists()
    sent = browser.send(chat_of(row), text="Dear <Alice>,\r\nhello")
    assert sent.status_code == 302
    basic_message.send_text(alice, "Dear Faber")
    assert shown(browser.get(sent["Location"])) == [
        (True, "Dear &lt;Alice&gt;,<br>hello", "Delivered"),
        (False, "Dear Faber", ""),
    ]
    [hers] = BasicMessage.objects.filter(connection=alice, direction="Incoming")
    assert hers.unseal_text() == "Dear <Alice>,\nhello"
    [entry] = AuditEntry.objects.filter(action="connection.written")
    assert "hello" not in str(vars(entry)), "the log has no texts"


def test_what_becomes_of_a_message_to_another_agent_is_shown(browser, phone, faber):
    row = phone.connects(faber)
    browser.send(chat_of(row), text="Hello")
    queued = OutboundMessage.objects.filter(type__endswith="basicmessage/1.0/message")
    states = {"pending": "Waiting", "done": "Delivered", "exhausted": "Failed"}
    for status, state in states.items():
        assert queued.update(status=status) == 1
        assert shown(browser.get(chat_of(row))) == [(True, "Hello", state)]
        [listed] = faber.get(f"/messages/connection/{row.connection_id}")
        assert listed["deliveryState"] == state
    queued.delete()  # nobody knows any more
    assert shown(browser.get(chat_of(row))) == [(True, "Hello", "")]
    [listed] = faber.get(f"/messages/connection/{row.connection_id}")
    assert "deliveryState" not in listed


def test_older_messages_are_read_by_page(browser, row, monkeypatch):
    monkeypatch.setattr(newest_first, "PAGE_SIZE", 2)
    for number in range(5):
        basic_message.send_text(row, f"{number}")
    pages, address = [], chat_of(row)
    while address:
        answer = browser.get(address)
        page = text(answer)
        pages.append([words for _, words, _ in shown(answer)])
        # An older page is not live, and has no form.
        for part in ("data-watched", "<textarea"):
            assert (part in page) == (len(pages) == 1)
        assert (f'rel="next" href="{chat_of(row)}?after=' in page) == (len(pages) > 1)
        older = re.search(r'rel="prev" href="([^"]+)"', page)
        address = older and older[1]
    assert pages == [["3", "4"], ["1", "2"], ["0"]]


def test_the_live_part_is_sent_again_once_somebody_writes(browser, alice, row):
    [live] = re.findall(r'hx-get="([^"]+)"', text(browser.get(chat_of(row))))
    assert browser.get(live).status_code == 204
    basic_message.send_text(alice, "Hello")
    part = browser.get(live)
    assert shown(part) == [(False, "Hello", "")] and "<html" not in text(part)


def test_nothing_is_written_to_somebody_who_has_gone(browser, row):
    page = browser.get(chat_of(row))
    token = re.search('name="form_token" value="([^"]+)"', text(page))[1]
    row.end()
    sent = browser.post(chat_of(row), {"text": "Hello", "form_token": token})
    assert "was ended or deleted" in text(browser.get(sent["Location"]))
    assert "<textarea" not in text(browser.get(chat_of(row)))
    assert not BasicMessage.objects.exists()


def test_what_a_holder_writes_is_the_holders(browser, alice, row):
    assert chat_of(row) in text(browser.get(url_of(row)))
    assert chat_of(alice) not in text(browser.get(url_of(alice)))
    for address in (chat_of(alice), f"{chat_of(alice)}/live"):
        assert browser.get(address).status_code == 404
