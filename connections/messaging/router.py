"""The handlers of messages, and of the exchanges when a connection ends or merges.

The models import the router, so it writes `Any` for Connection.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from connections.didcomm.message import Message
from core.errors import PeerError
from core.hooks import Hook

Connection = Any
Handler = Callable[[Connection, Message], object]
Finder = Callable[[Connection, Message], list[Connection]]
AnyHandler = TypeVar("AnyHandler", bound=Handler)
AnyFinder = TypeVar("AnyFinder", bound=Finder)
_handlers: dict[str, Handler] = {}
_finders: dict[str, Finder] = {}
_protocols: set[str] = set()
# Ends the open exchanges of a connection that ends.
end_exchanges: Hook[[Connection], object] = Hook()
# Moves the exchanges of an invitation to the connection that is reused.
move_exchanges: Hook[[Connection, Connection], object] = Hook()
# Ends the open exchange of a link that nobody can use now, with this problem.
expire_exchanges: Hook[[Connection, str], object] = Hook()


def handles(kind: str, *also: str) -> Callable[[AnyHandler], AnyHandler]:
    """Register a handler `(connection, message)` of a message type.

    kind: a type like `connections/1.0/request`; the handler gets every minor version.
    also: further versions that we disclose as supported, as in "1.1". Return the
    handler. RuntimeError if the type has one already.
    """
    message = Message(kind, "", "", "", {})
    name, version = message.protocol
    major_type = message.major_type

    def register(handler: AnyHandler) -> AnyHandler:
        if major_type in _handlers:
            raise RuntimeError(f"{major_type} has two handlers")
        _handlers[major_type] = handler
        _protocols.update(f"{name}/{minor}" for minor in (version, *also))
        return handler

    return register


def locks_others(kind: str) -> Callable[[AnyFinder], AnyFinder]:
    """Register a function that finds the other connections that a handler changes.

    They are locked with the connection of the message, by one statement.
    """
    major_type = Message(kind, "", "", "", {}).major_type

    def register(finder: AnyFinder) -> AnyFinder:
        _finders[major_type] = finder
        return finder

    return register


def dispatch(connection: Connection, message: Message) -> None:
    """Call the handler of a message, and raise what it raises.

    In the transaction that has locked the connection. PeerError `unsupported_message`
    without a handler; a problem report then changes nothing.
    """
    handler = _handlers.get(message.major_type)
    if handler:
        handler(connection, message)
    elif not message.is_problem_report:
        raise PeerError("unsupported_message", f"{message.type} is not supported here")


def find_others(connection: Connection, message: Message) -> list[Connection]:
    """The other connections that the handler of this message will change."""
    finder = _finders.get(message.major_type)
    return finder(connection, message) if finder else []


def handled_types() -> set[str]:
    return set(_handlers)


def supported_protocols() -> set[str]:
    """Name and version of every supported protocol, as in `connections/1.0`."""
    return set(_protocols)
