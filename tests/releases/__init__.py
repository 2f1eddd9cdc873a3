"""Released versions: hashes of their migrations, databases with data, and sources.

Below tests/fixtures/releases/, one folder for each version. `python -m tests.releases`
writes the folder of the version that is checked out; a released one is never written
again.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from core.version import PACKAGES
from tests.support.paths import ROOT

RELEASES = ROOT / "tests" / "fixtures" / "releases"


def hashes(root: Path = ROOT, packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """SHA-256 of each migration of the packages, by its path below `root`."""
    files = [
        path
        for package in packages
        for path in (root / package).rglob("migrations/[0-9]*.py")
    ]
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
    }
