"""What a browser loads besides a page stays small."""

import gzip
import hashlib
from pathlib import Path

from django.contrib.staticfiles import finders

from tests.support.paths import ROOT

MAX_BYTES = 60_000  # style sheets and scripts together, compressed
MAX_SCANNER = 500_000  # what reads codes, which a camera loads where a browser cannot
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


def test_what_reads_codes_is_whole_and_not_too_large():
    folder = OURS / "barcode"
    reader = folder / "zxing_reader.wasm"
    digest = hashlib.sha256(reader.read_bytes()).hexdigest()
    library = folder / "barcode-detector.js"
    assert digest in library.read_text(), "they belong together"
    assert compressed(reader) + compressed(library) <= MAX_SCANNER
    licence = (folder / "LICENSE.txt").read_text()
    assert "MIT License" in licence and "barcode-detector 3.2.2" in licence
