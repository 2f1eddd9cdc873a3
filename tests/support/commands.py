"""Management commands in tests."""

import io

from django.core.management import call_command


def output_of(command: str, *arguments: str) -> str:
    """Run a command. Return what it writes to stdout."""
    said = io.StringIO()
    call_command(command, *arguments, stdout=said, stderr=io.StringIO())
    return said.getvalue()
