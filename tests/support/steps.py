"""What fixtures make for Faber, once in a process for all tests of the same ones."""

from collections.abc import Callable
from functools import partial, wraps
from inspect import signature
from typing import Any

import pytest
from django.test import override_settings

from tests.support.database import Template
from tests.support.outside_agent import Agent, listening
from tests.support.people import Organization


class Steps:
    """Restores Faber, after the steps that a test needs.

    steps: a function of Faber, and of what earlier steps return, by the name of a
    fixture. What it returns is an attribute of Faber by this name.
    """

    def __init__(self, **steps: Callable[..., Any]) -> None:
        self.steps = steps
        self.templates: dict[tuple[str, ...], Template] = {}

    def fixture(self, make: Callable[..., Any]) -> Any:
        """In place of `pytest.fixture`: the function becomes the next step."""
        name = make.__name__
        self.steps[name] = make

        @pytest.fixture(name=name)
        @wraps(make)
        def made(faber: Organization, **_: Any) -> Any:
            return getattr(faber, name)

        return made

    def __call__(self, request: pytest.FixtureRequest) -> Organization:
        names = tuple(name for name in self.steps if name in request.fixturenames)
        template = Template(partial(self.make, names))
        return self.templates.setdefault(names, template)()

    def make(self, names: tuple[str, ...]) -> Organization:
        faber = Organization("Faber College")
        for name in names:
            known = vars(faber) | {"faber": faber}
            given = (known[one] for one in signature(self.steps[name]).parameters)
            setattr(faber, name, self.steps[name](*given))
        return faber


@override_settings(OUTGOING_ALLOW_LOOPBACK=True)
def connect_phone(faber: Organization) -> Agent:
    """The step of the fixture `peer`."""
    with listening(Agent()) as phone:
        phone.connects(faber)
    return phone
