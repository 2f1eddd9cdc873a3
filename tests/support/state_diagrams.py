"""The transitions as the docstring of a model with states draws them."""

import re
from collections import defaultdict

from connections.models import Connection
from credentials.models import Credential
from verifications.models import Verification

MODELS = (Connection, Credential, Verification)


def drawn(model):
    """The (source, target) pairs of each arrow, by the role and the method beside it.

    A line is `role  State | State ─method, method→ State ─method→ State`.
    """
    found = defaultdict(set)
    for who, path in re.findall(r"^ +(\w+) +(\w.*─.*→.*)$", model.__doc__, re.M):
        roles = model.Role.values if who == "both" else [who]
        parts = re.split(r" ─(.*?)→ ", path)
        for states, methods, target in zip(
            parts[::2], parts[1::2], parts[2::2], strict=False
        ):
            pairs = {(source, target) for source in states.split(" | ")}
            for role in roles:
                for method in methods.split(", "):
                    found[role, method] |= pairs
    return dict(found)


def sources(model):
    """The states from which each method of each role moves."""
    return {
        step: {source for source, _ in pairs} for step, pairs in drawn(model).items()
    }


def elsewhere(model):
    """Each step, as (role, method), with each state from which it must not go."""
    return [
        (*step, state)
        for step, found in sources(model).items()
        for state in model.State.values
        if state not in found
    ]
