"""Add Indy networks as operators do."""

import io
from pathlib import Path

from django.core.management import call_command

from tests import fixtures

GENESIS = Path(fixtures.__file__).with_name("indy_genesis.txt").read_text()


def add_network(*arguments):
    out = io.StringIO()
    call_command("add_network", "--id", "candy", *arguments, stdout=out)
    return out.getvalue()
