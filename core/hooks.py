"""What a room above adds to a function below, which cannot import it.

    end_exchanges: Hook[[Connection], None] = Hook()     # the room below, which calls it

    @end_exchanges.register                              # the room above
    def decline_open(connection): ...

The module of the room above is imported by its AppConfig.ready().
"""

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Hook(Generic[Given, Result]):
    """Calling it calls each registered function, in the order of registration.

    Return what they return, as a list. registered_by: the module without which nothing
    works: RuntimeError if nobody is registered. "" if there may be nobody.
    """

    def __init__(self, registered_by: str = "") -> None:
        self.registered_by = registered_by
        self.functions: list[Callable[Given, Result]] = []

    def register(self, function: Callable[Given, Result]) -> Callable[Given, Result]:
        self.functions.append(function)
        return function

    def __call__(self, *given: Given.args, **named: Given.kwargs) -> list[Result]:
        if self.registered_by and not self.functions:
            raise RuntimeError(f"import {self.registered_by} first: it is called here")
        return [function(*given, **named) for function in self.functions]
