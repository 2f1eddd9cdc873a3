"""What a browser loads besides a page stays small."""

import gzip
from pathlib import Path

from django.contrib.staticfiles import finders

from tests.support.paths import ROOT

MAX_BYTES = 60_000  # style sheets and scripts together, compressed
OURS = ROOT / "agency/static/agency"
HTMX = "django_htmx/htmx-2.min.js"


def compressed(path):
    return len(gzip.compress(path.read_bytes(), 9))


def test_style_sheets_and_scripts_together_are_small():
    files = [*OURS.glob("*.css"), *OURS.glob("*.js")]
    assert len(files) > 10
    htmx = Path(finders.find(HTMX))
    total = sum(map(compressed, [*files, htmx]))
    assert total <= MAX_BYTES, total
