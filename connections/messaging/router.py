"""Which function handles which message, and what happens to the exchanges of a connection."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agency.core.errors import PeerError
from connections.didcomm.message import Message

if TYPE_CHECKING:
    from connections.models import Connection

Handler = Callable[["Connection", Message], None]
Closer = Callable[["Connection"], None]
Mover = Callable[["Connection", "Connection"], None]
_handlers: dict[str, Handler] = {}
_protocols: set[str] = set()
_closers: list[Closer] = []
_movers: list[Mover] = []


def handles(kind: str, *minors: str) -> Callable[[Handler], Handler]:
    """Registers a function `(connection, message)` for a type like `connections/1.0/request`.

    Every minor version finds it; those that we say we speak are that of `kind` and `minors`.
    """
    message = Message(kind, "", "", "", {})
    (name, version), family = message.protocol, message.family

    def register(handler: Handler) -> Handler:
        if family in _handlers:
            raise RuntimeError(f"{family} has two handlers")
        _handlers[family] = handler
        _protocols.update(f"{name}/{one}" for one in (version, *minors))
        return handler

    return register


def closes(closer: Closer) -> Closer:
    """Registers a function that ends the open exchanges of a connection about to be deleted."""
    _closers.append(closer)
    return closer


def moves(mover: Mover) -> Mover:
    """Registers a function that takes the exchanges of one connection over to another."""
    _movers.append(mover)
    return mover


def dispatch(connection: "Connection", message: Message) -> None:
    handler = _handlers.get(message.family)
    if handler:
        handler(connection, message)
    elif not message.is_problem_report:
        raise PeerError("unsupported_message", f"{message.type} is not supported here")


def close_exchanges(connection: "Connection") -> None:
    for closer in _closers:
        closer(connection)


def move_exchanges(connection: "Connection", to: "Connection") -> None:
    for mover in _movers:
        mover(connection, to)


def handled_types() -> set[str]:
    return set(_handlers)


def protocols() -> set[str]:
    """Name and version of every protocol spoken here: `connections/1.0`."""
    return set(_protocols)
