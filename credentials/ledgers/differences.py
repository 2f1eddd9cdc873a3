"""What differs between two status lists of a registry. No database here.

`changed` has a bit for each place, as PostgreSQL's get_bit() counts them: the first
place is the lowest bit of the first byte.
"""

import json
from typing import NamedTuple

from wallets.anoncreds.objects import StatusListBody


class Difference(NamedTuple):
    """What makes another list of a full one."""

    timestamp: int
    accumulator: str
    changed: bytes

    def apply_to(self, full: StatusListBody) -> StatusListBody:
        places = [*full["revocationList"]]
        for number, byte in enumerate(self.changed):
            for bit in range(8) if byte else ():
                if byte >> bit & 1:
                    places[8 * number + bit] ^= 1
        body = full.copy()  # in the order of its members
        body["timestamp"] = self.timestamp
        body["revocationList"] = places
        body["currentAccumulator"] = self.accumulator
        return body


def find_difference(
    full: StatusListBody, body: StatusListBody, timestamp: int
) -> Difference | None:
    """Return what makes `body` of the full list, byte for byte as it is served.

    timestamp: of the row of `body`. None if there is no such difference. Of what is no
    list it raises AttributeError, KeyError, RecursionError, TypeError or ValueError.
    """
    pairs = [*zip(full["revocationList"], body["revocationList"], strict=True)]
    changed = bytearray((len(pairs) + 7) // 8)
    for index, (before, after) in enumerate(pairs):
        if before != after:
            changed[index // 8] |= 1 << index % 8
    accumulator = body["currentAccumulator"]
    found = Difference(timestamp, accumulator, bytes(changed))
    is_same = json.dumps(found.apply_to(full)) == json.dumps(body)
    return found if is_same and isinstance(accumulator, str) else None
