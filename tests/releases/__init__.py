"""Released versions: hashes of their migrations, databases with data, and sources.

Below tests/fixtures/releases/, one folder for each version. `python -m tests.releases`
writes the folder of the version that is checked out; a released one is never written
again.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from agency.ops.database_schema import APPS
from tests.support.paths import ROOT

# Apps that no released version has, and where they are.
UNRELEASED = {
    "holderpages": ROOT / "agency" / "holders" / "links",
    "ops": ROOT / "agency" / "ops",
    "webwallet": ROOT / "agency" / "holders" / "wallet",
    "mails": ROOT / "agency" / "mails",
    "support": ROOT / "agency" / "support",
    "sandbox": ROOT / "sandbox",
}
RELEASED_APPS = [app for app in APPS if app not in UNRELEASED]
RELEASES = ROOT / "tests" / "fixtures" / "releases"


def hashes(root: Path = ROOT, apps: Sequence[str] = RELEASED_APPS) -> dict[str, str]:
    """SHA-256 of each migration of a released app, by its path below `root`."""
    files = [
        path for app in apps for path in (root / app / "migrations").glob("[0-9]*.py")
    ]
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
    }
