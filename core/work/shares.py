"""Shares: how much work may be done at the same time for one key.

A key is what somebody may have too much of, such as `("endpoint", its address)` or
`("tenant", its id)`. The limits of a piece of work are the keys that it counts for, and
how much work of each may be done at a time.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

Key = tuple[str, Hashable]  # its kind, and whose share it is
Limits = Mapping[Key, int]


class Shares:
    """The work that is being done, counted by key. Not safe for threads."""

    def __init__(self) -> None:
        self._taken: Counter[Key] = Counter()
        self._limits: dict[Key, int] = {}  # of what is taken

    def have_room(self, limits: Limits) -> bool:
        """Whether one more piece of work is within all of its limits."""
        return all(self._taken[key] < limit for key, limit in limits.items())

    def take(self, limits: Limits) -> None:
        """Count a piece of work that begins."""
        self._taken.update(limits.keys())
        self._limits.update(limits)

    def give_back(self, limits: Limits) -> None:
        """Forget one that has ended."""
        for key in limits:
            self._taken[key] -= 1
            if not self._taken[key]:
                del self._taken[key], self._limits[key]

    def full(self, kind: str) -> list[Any]:
        """Return whose shares of this kind are used up."""
        return [
            key[1]
            for key, limit in self._limits.items()
            if key[0] == kind and self._taken[key] >= limit
        ]
