"""Which function handles which message, and what happens to open exchanges of a lost connection."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agency.errors import PeerError
from connections.didcomm.message import Message

if TYPE_CHECKING:
    from connections.models import Connection

Handler = Callable[["Connection", Message], None]
Closer = Callable[["Connection"], None]
_handlers: dict[str, Handler] = {}
_closers: list[Closer] = []


def handles(kind: str) -> Callable[[Handler], Handler]:
    """Registers a function `(connection, message)` for a type like `connections/1.0/request`."""
    family = Message(kind, "", "", "", {}).family

    def register(handler: Handler) -> Handler:
        if family in _handlers:
            raise RuntimeError(f"{family} has two handlers")
        _handlers[family] = handler
        return handler

    return register


def closes(closer: Closer) -> Closer:
    """Registers a function that ends the open exchanges of a connection about to be deleted."""
    _closers.append(closer)
    return closer


def dispatch(connection: "Connection", message: Message) -> None:
    handler = _handlers.get(message.family)
    if handler:
        handler(connection, message)
    elif not message.is_problem_report:
        raise PeerError("unsupported_message", f"{message.type} is not supported here")


def close_exchanges(connection: "Connection") -> None:
    for closer in _closers:
        closer(connection)


def handled_types() -> set[str]:
    return set(_handlers)
