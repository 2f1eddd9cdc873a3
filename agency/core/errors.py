"""The errors a caller or a peer can meet. `code` is stable and listed in docs/errors.md."""


class AgencyError(Exception):
    """Base of all. To the caller be specific, to the peer vague.

    errors: optional map of field name to a list of sentences.
    """

    status = 500

    def __init__(
        self, code: str, message: str, errors: dict[str, list[str]] | None = None
    ):
        super().__init__(message)
        self.code = code
        self.message = message
        self.errors = errors


class Invalid(AgencyError):
    """400: the caller's input, beyond what the serializer sees."""

    status = 400


class NotFound(AgencyError):
    """404: no such object in the caller's organization."""

    status = 404


class Conflict(AgencyError):
    """409: the request contradicts what is already there."""

    status = 409


class WrongState(Conflict):
    """409: the object is elsewhere in its life.

    The model's `steps` say what must happen first: {(state it has, state it needs): sentence}.
    """

    def __init__(self, obj, sources, state=None):
        name, state = type(obj).__name__.lower(), state or obj.state
        expected = " or ".join(str(source) for source in sources)
        steps = getattr(obj, "steps", {})
        step = next(
            (steps[state, one] for one in sources if (state, one) in steps), None
        )
        message = (
            f"The {name} is {state}; this needs {expected}. {step or 'Read it again.'}"
        )
        super().__init__("wrong_state", message)


class InProgress(Conflict):
    """409: the same request is being worked on; `retry_after` says in how many seconds to ask."""

    retry_after = 1


class Unprocessable(AgencyError):
    """422: the request contradicts an earlier one that it claims to repeat."""

    status = 422


class TooMany(AgencyError):
    """429: as many as there may be of the caller's; later there is room again."""

    status = 429


class TooOften(TooMany):
    """429: faster than is allowed; `retry_after` says in how many seconds there is room again."""

    def __init__(self, code: str, message: str, retry_after: int):
        super().__init__(code, message)
        self.retry_after = retry_after


class PeerError(AgencyError):
    """The other agent broke the protocol: it gets a problem report, nobody gets a 5xx."""

    status = 409


class Unavailable(AgencyError):
    """503: ledger, broker or endpoint is out of reach; try again later."""

    status = 503


class NotReady(Unavailable):
    """503: a part that every request needs is away; `retry_after` says in how many seconds to
    ask again."""

    retry_after = 2

    def __init__(self, message: str, errors: dict[str, list[str]] | None = None):
        super().__init__("not_ready", message, errors)


class DatabaseAway(NotReady):
    def __init__(self) -> None:
        super().__init__("The database is out of reach. Try again in a moment.")
