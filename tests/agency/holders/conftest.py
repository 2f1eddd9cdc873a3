"""Whose cards the tests of links and of the web wallet are about."""

from tests.support.steps import step


@step
def alice(faber):
    return faber.hosts("Alice")
