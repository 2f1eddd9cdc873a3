"""Logs and resources of did:webvh that other implementations wrote."""

import json
from functools import cache
from typing import Any

from tests.support.paths import ROOT

FIXTURES = ROOT / "tests" / "fixtures"


@cache
def vectors() -> dict[str, Any]:
    """Logs and resources, good and bad, each with the verdict of a strict reader."""
    return json.loads((FIXTURES / "webvh_vectors.json").read_text())


@cache
def made_by_credo() -> dict[str, Any]:
    """A DID of Credo 0.6.3, its log and a schema."""
    return json.loads((FIXTURES / "webvh_made_by_credo.json").read_text())
