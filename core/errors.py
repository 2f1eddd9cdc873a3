"""The errors of the API and the protocols.

Each `code` is stable and listed in docs/errors.md.
"""

from collections.abc import Sequence
from typing import Any

MAX_IDENTIFIER = 300  # characters of an id that a message quotes


class AgencyError(Exception):
    """The base class. Messages are specific for callers of the API, vague for peers.

    errors: a list of sentences for each field. retry_after: the seconds after which
    the same request may succeed, for the `Retry-After` of the response; None if that
    is not known.
    """

    status = 500
    retry_after: int | None = None

    def __init__(
        self, code: str, message: str, errors: dict[str, list[str]] | None = None
    ):
        super().__init__(message)
        self.code = code
        self.message = message
        self.errors = errors


class Invalid(AgencyError):
    """400: invalid input that a serializer cannot find."""

    status = 400


class Unauthorized(AgencyError):
    """401: no key that is accepted."""

    status = 401


class Forbidden(AgencyError):
    """403: the caller may not do this."""

    status = 403


class NotFound(AgencyError):
    """404: no such object in the caller's organization."""

    status = 404


class NoSuchObject(NotFound):
    """404: the organization has no object of this kind with this id.

    model: the kind, which is called by its `verbose_name`.
    """

    def __init__(self, model: Any, identifier: Any) -> None:
        name = model._meta.verbose_name
        self.model = model
        self.identifier = str(identifier)[:MAX_IDENTIFIER]
        self.known = f"There is no {name} with the id {self.identifier} in"
        super().__init__(
            "not_found",
            f"{self.known} your organization. Either the id is wrong, the {name} was "
            "deleted, or the keys are another organization's.",
        )


class Conflict(AgencyError):
    """409: the request conflicts with what exists."""

    status = 409


class WrongState(Conflict):
    """409: the object is in another state.

    The model's `steps` map (actual state, required state) to what must happen first.
    is_stale: the state is right, but the object has changed since it was read.
    """

    def __init__(
        self,
        obj: Any,
        sources: Sequence[str],
        state: str | None = None,
        is_stale: bool = False,
    ) -> None:
        name = type(obj).__name__.lower()
        if is_stale:
            message = f"The {name} changed since you read it. Read it again."
            super().__init__("wrong_state", message)
            return
        state = state or obj.state
        expected = " or ".join(str(source) for source in sources)
        steps = getattr(obj, "steps", {})
        known = [steps[state, source] for source in sources if (state, source) in steps]
        step = known[0] if known else "Read it again."
        super().__init__(
            "wrong_state", f"The {name} is {state}; this needs {expected}. {step}"
        )


class EndedByPeer(WrongState):
    """409: the other side has ended the object, by a message that still waits."""

    def __init__(self, obj: Any) -> None:
        name = type(obj).__name__.lower()
        message = f"The other side has ended this {name}. Read it again in a moment."
        Conflict.__init__(self, "wrong_state", message)


class InProgress(Conflict):
    """409: the same request is still running."""

    retry_after = 1


class Unprocessable(AgencyError):
    """422: the request differs from the earlier one that it claims to repeat."""

    status = 422


class TooMany(AgencyError):
    """429: too many requests of this caller at a time."""

    status = 429


class TooOften(TooMany):
    """429: too many requests in a short time."""

    def __init__(self, code: str, message: str, retry_after: int):
        super().__init__(code, message)
        self.retry_after = retry_after


class PeerError(AgencyError):
    """The other agent violated the protocol.

    It gets a problem report, and a caller of the API gets 409, never a 5xx.
    """

    status = 409


class Unavailable(AgencyError):
    """503: a ledger, the broker or an endpoint is out of reach. Retry later."""

    status = 503


class NotReady(Unavailable):
    """503: a service that every request needs is out of reach."""

    retry_after = 2

    def __init__(self, message: str, errors: dict[str, list[str]] | None = None):
        super().__init__("not_ready", message, errors)


class OrganizationFrozen(Unavailable):
    """503: nobody acts for the organization for a while (freezing.py).

    It is moving to another installation: after `retry_after` it is there, behind the
    same address, or here again. Or its own key has deleted it (deletion.py), which can
    still be undone: then the code is `organization_deleted_soon`.
    """

    retry_after = 30

    def __init__(self, is_deleted_soon: bool = False) -> None:
        if is_deleted_soon:
            super().__init__(
                "organization_deleted_soon",
                "The organization is about to be deleted, as one of its keys asked. "
                "Its owners or its provider account can undo it.",
            )
            return
        super().__init__(
            "organization_frozen",
            "The organization is being moved. Send the request again in a while.",
        )


class DatabaseAway(NotReady):
    def __init__(self) -> None:
        super().__init__("The database is not available. Try again in a moment.")
