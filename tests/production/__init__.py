"""The product as an operator installs it: `make test-production`."""


class Failed(Exception):
    """What is wrong, in a sentence."""
