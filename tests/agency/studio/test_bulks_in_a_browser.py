"""Issuing many in Chromium: the file stays chosen, and the progress shows itself."""

from credentials.bulk import issuing
from tests.agency.pages.catalog import OWNER, open_world
from tests.agency.pages.test_in_a_browser import Visitor
from tests.support.chromium import MARKS

pytestmark = MARKS
ROWS = 60


def test_a_file_is_checked_corrected_and_issued(page, stored_keys, settings, tmp_path):
    world = open_world()
    visitor = Visitor(page, world, settings.SESSION_COOKIE_NAME)
    visitor.sign_in(OWNER)
    form = world.address("studio:bulks") + "?definition={definition_id}"
    visitor.open(form.format(**world.ids))
    file = tmp_path / "holders.csv"
    rows = [f"Holder {n},{n}" for n in range(ROWS)]
    file.write_text("\n".join(["name,Jahr", *rows, "one,cell,more"]))
    page.tab.set_input_files("input[type=file]", file)
    page.tab.click("text=Check the file")
    page.tab.wait_for_selector("text=Choose below in which column is")
    page.tab.select_option("#id_column_1", "Jahr")
    page.tab.click("text=Check the file")
    page.tab.wait_for_selector("text=The row has 3 cells, the header 2.")
    page.tab.click(f"text=Issue {ROWS}")
    page.tab.wait_for_selector("progress[value='1']")
    issuing.loop.run()
    page.tab.wait_for_selector(f"progress[value='{ROWS + 1}']")
    assert page.tab.text_content("#live .badge") == "Done"
    assert page.tab.text_content("#state-change") == "Done. No row waits any more."
