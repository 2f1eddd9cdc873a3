"""Add Indy networks as operators do."""

from functools import partial
from pathlib import Path

from tests import fixtures
from tests.support.commands import output_of

GENESIS = Path(fixtures.__file__).with_name("indy_genesis.txt").read_text()


add_network = partial(output_of, "add_network", "--id", "candy")
