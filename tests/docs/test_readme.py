"""The README and its quick start do what they say."""

import re

import pytest

from core.version import __version__
from tests.docs.stories import assert_example_prints_what_it_says
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text()
QUICKSTART = (ROOT / "docs" / "quickstart.md").read_text()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_first_credential_prints_what_it_says(live_server, stored_keys):
    assert_example_prints_what_it_says(QUICKSTART, live_server.url)


def test_every_folder_it_names_exists_and_every_target_too():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z]+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for folder in re.findall(r"^\| `(\w+)/`", README, re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder


def test_its_status_line_is_true():
    [version] = re.findall(r"^Version (\S+) · Python", README, re.MULTILINE)
    assert version == __version__
