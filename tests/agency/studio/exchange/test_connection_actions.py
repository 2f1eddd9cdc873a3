"""What people do with a connection: ping, a new key, hang up."""

import pytest

from connections.models import Connection
from tests.agency.studio.conftest import actions
from tests.agency.studio.exchange.conftest import text, url_of
from tests.support.steps import step

pytestmark = pytest.mark.django_db(transaction=True)


@step
def row(faber):
    """The organization's side of a connection with a wallet here."""
    faber.hosts("Alice").known_as(faber)
    return Connection.objects.get(role="inviter")


def test_a_ping_is_sent_and_its_answer_is_shown(browser, row, phone, faber):
    assert "Last ping" not in text(browser.get(url_of(row)))
    response = browser.send(f"{url_of(row)}/ping")
    page = text(browser.get(response.url))
    assert "The other side has answered the ping." in page
    assert "Last ping" in page and "Answered" in page
    silent = phone.connects(faber)
    page = text(browser.get(browser.send(f"{url_of(silent)}/ping").url))
    assert "The ping is sent." in page and "No answer yet" in page
    assert actions(action="connection.pinged") == 2 * ["connection.pinged"]


def test_a_new_key_is_used_once_the_other_side_agrees(browser, row):
    former = row.my_key_id
    page = text(browser.get(browser.send(f"{url_of(row)}/rotate").url))
    assert "A new key is sent." in page
    row.refresh_from_db()
    assert row.my_key_id != former
    assert actions(action__startswith="connection.") == ["connection.key_rotated"]


def test_hanging_up_is_asked_about_and_ends_both_sides(browser, row):
    question = text(browser.get(f"{url_of(row)}/end"))
    assert "Hang up" in question
    page = text(browser.get(browser.send(f"{url_of(row)}/end").url))
    assert "It is ended, and the other side is told." in page
    assert "Hang up" not in page and "Ping" not in page
    assert not Connection.objects.filter(left_at=None).exists()
    again = text(browser.get(browser.send(f"{url_of(row)}/ping").url))
    assert "Last ping" not in again
    assert actions(action__startswith="connection.") == ["connection.ended"]
