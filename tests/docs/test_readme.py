"""The README does what it says."""

import os
import re
import subprocess
import sys

import pytest

from organizations.provisioning import create_organization
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_first_credential_prints_what_it_says(live_server, stored_keys):
    made = create_organization("Registry office")
    [story] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    environment = os.environ | {
        "AGENCY_URL": live_server.url,
        "ACCESS_TOKEN": made.access_token,
        "SUBSCRIPTION_KEY": made.subscription_key,
    }
    ran = subprocess.run(
        [sys.executable, "-c", story],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.stderr == ""
    assert f"It prints `{ran.stdout.strip()}`." in README


def test_every_link_into_the_tree_leads_somewhere():
    for path in re.findall(r"\]\(([\w./-]+)\)", README):
        assert (ROOT / path).exists(), path


def test_every_folder_it_names_exists_and_every_target_too():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z]+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for folder in re.findall(r"^\| `(\w+)/`", README, re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder
