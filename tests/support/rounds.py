"""How often tests of chance repeat what they show: once, unless ROUNDS says more."""

import os

ROUNDS = int(os.environ.get("ROUNDS", "1"))
