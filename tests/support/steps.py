"""What fixtures make for Faber, once in a process for all tests of the same ones."""

from collections import defaultdict
from collections.abc import Callable
from functools import partial, wraps
from inspect import signature
from typing import Any

import pytest

from tests.support.database import Template
from tests.support.people import Organization

# By the name of the module, and by that of the fixture.
STEPS: dict[str, dict[str, Callable[..., Any]]] = defaultdict(dict)
# By the id of the fixture, which other files may import.
FIXTURES: dict[int, Callable[..., Any]] = {}
TEMPLATES: dict[tuple[Callable[..., Any], ...], Template] = {}


def step(make: Callable[..., Any]) -> Any:
    """A fixture, from Faber and earlier steps alone: an attribute of Faber too."""
    name = make.__name__
    STEPS[make.__module__][name] = make

    @pytest.fixture(name=name)
    @wraps(make)
    def made(faber: Organization, **_: Any) -> Any:
        return getattr(faber, name)

    FIXTURES[id(made)] = make
    return made


def found_faber() -> Organization:
    return Organization("Faber College")


def restore_faber(
    request: pytest.FixtureRequest, found: Callable[[], Organization] = found_faber
) -> Organization:
    """Faber, after the steps that the test asks for.

    These are steps of its folders, those that its file imports, and those of its file.
    found: makes the organization before all steps.
    """
    parts = request.module.__name__.split(".")
    known: dict[str, Callable[..., Any]] = {}
    for depth in range(1, len(parts)):
        known |= STEPS[".".join([*parts[:depth], "conftest"])]
    imported = (FIXTURES.get(id(one)) for one in vars(request.module).values())
    known |= {make.__name__: make for make in imported if make}
    known |= STEPS[request.module.__name__]
    steps = tuple(made for name, made in known.items() if name in request.fixturenames)
    made = Template(partial(make_faber, found, *steps))
    return TEMPLATES.setdefault((found, *steps), made)()


def make_faber(
    found: Callable[[], Organization], *steps: Callable[..., Any]
) -> Organization:
    faber = found()
    for make in steps:
        known = vars(faber) | {"faber": faber}
        given = (known[one] for one in signature(make).parameters)
        setattr(faber, make.__name__, make(*given))
    return faber
