"""Why a log or a resource of did:webvh is not taken."""

from core.errors import Conflict


class Refused(Conflict):
    """What was read is not what the DID's owner can have published.

    code: `did_log_refused`, `did_log_forked`, `did_deactivated` or `resource_refused`.
    reason: which rule it breaks, a stable text in snake_case.
    """

    def __init__(self, code: str, what: str, reason: str) -> None:
        super().__init__(code, f"{what[:300]} was refused: {reason}.")
        self.reason = reason


class Broken(ValueError):
    """A rule that is broken: the reason of a Refused, before it is known of what."""


def require(holds: object, reason: str) -> None:
    if not holds:
        raise Broken(reason)
