"""Results that one party computes before the locks, for what its peer does here.

Between two wallets hosted here, one transaction does what both parties do, and the
cryptography of the second one takes longer than all statements. Meanwhile the rows
would be locked, and the feed of events would wait for the transaction
(webhooks/events/feed.py). So the first party calls the same functions beforehand, and
the message to its peer carries what they returned (Message.prepared):

    prepared = PreparedResults()
    prepared.call(sign, definition, request)  # computed
    credential.lock()
    ...
    prepared.call(sign, definition, request)  # the same arguments: the result from above

Nothing is decided by it. A call with any other argument computes its own result.
"""

from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


class PreparedResults:
    """Of functions whose result depends on nothing but the arguments.

    Nobody modifies a result.
    """

    def __init__(self) -> None:
        self._known: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = []

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        for known, given, result in self._known:
            if known is function and given == arguments:
                return result
        result = function(*arguments)
        self._known.append((function, arguments, result))
        return result
