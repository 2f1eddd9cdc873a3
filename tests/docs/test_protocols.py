"""The table of protocols says what is spoken."""

import re

from connections.messaging import router
from connections.protocols.discover_features import ROLES
from tests.support.paths import DOCS

PAGE = (DOCS / "protocols.md").read_text()


def test_every_protocol_stands_in_the_table_with_its_versions_and_roles():
    rows = re.findall(
        r"^\| `([\w-]+)` \| ([\d., ]+) \| ([\w, ]+) \|", PAGE, re.MULTILINE
    )
    documented = {
        f"{name}/{one}" for name, versions, _ in rows for one in versions.split(", ")
    }
    assert documented == router.supported_protocols()
    assert {name: roles.split(", ") for name, _, roles in rows} == ROLES
