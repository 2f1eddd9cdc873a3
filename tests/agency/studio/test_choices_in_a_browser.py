"""Choices in Chromium: the matches follow what is written, and the keys lead there."""

import pytest

from connections.models import Connection
from credentials.models import CredentialDefinition
from tests.agency.pages.catalog import OWNER, SHORT, open_world
from tests.agency.pages.test_in_a_browser import Visitor
from tests.agency.studio.test_choices import crowd, crowd_of_definitions
from tests.support.chromium import MARKS

pytestmark = MARKS
FOCUSED = "document.activeElement.id"
COUNT = "document.querySelector('#id_connection_id').options.length"


@pytest.fixture
def world(transactional_db, stored_keys):
    made = open_world(SHORT)
    crowd(Connection.objects.get(pk=made.ids["connection_id"]), 60)
    return made


@pytest.fixture
def visitor(page, world, settings):
    made = Visitor(page, world, settings.SESSION_COOKIE_NAME)
    made.sign_in(OWNER)
    return made


def test_a_recipient_is_found_and_chosen_by_keys_alone(visitor, world, page, axe):
    form = world.address("studio:new_credential") + "?definition={definition_id}"
    visitor.open(form.format(**world.ids))
    assert not page.tab.is_visible("#id_find")
    page.tab.focus("#id_to_0")
    page.tab.keyboard.press("ArrowDown")
    page.tab.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) == "id_find"
    page.tab.keyboard.type("alic")
    page.wait_for(f"{COUNT} === 2")  # nobody, or Alice
    assert page.findings() == []
    page.tab.keyboard.press("Enter")
    page.tab.keyboard.press("ArrowDown")
    assert page.evaluate(FOCUSED) == "id_connection_id"
    page.tab.fill("#id_value_0", "Alice Smith")
    page.tab.fill("#id_value_1", "2020")
    page.tab.press("#id_value_1", "Enter")
    page.tab.wait_for_selector("text=To: Alice")


def test_definitions_follow_what_is_written(visitor, world, page, axe):
    crowd_of_definitions(CredentialDefinition.objects.get(), 60)
    visitor.open(world.address("studio:new_credential"))
    page.tab.wait_for_selector("text=These are the newest 50.")
    page.tab.focus("#id_q")
    page.tab.keyboard.type("deg")
    page.wait_for("document.querySelectorAll('#choices li').length === 1")
    assert page.findings() == []
    page.tab.click("#choices a:has-text('Degree')")
    page.tab.wait_for_selector("h1:has-text('Issue Degree')")
