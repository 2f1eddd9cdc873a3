"""The line by which a command says how far it is."""

import time

from django.core.management.base import OutputWrapper

SECONDS_IN_TERMINAL = 0.5
SECONDS_IN_LOG = 10.0


class Progress:
    """Counts what is done.

    In a terminal one line is written again and again, elsewhere a line now and then.
    stream: `self.stdout` or `self.stderr` of a command. text: as "{:,} data keys are
    wrapped".
    """

    def __init__(self, stream: OutputWrapper, text: str) -> None:
        self.stream, self.text = stream, text
        self.done = 0
        self.is_terminal = stream.isatty()
        self.shown_at = time.monotonic()

    def advance(self, number: int) -> None:
        """Count `number` more as done, and show it if that was long ago."""
        self.done += number
        pause = SECONDS_IN_TERMINAL if self.is_terminal else SECONDS_IN_LOG
        if time.monotonic() - self.shown_at >= pause:
            self.show()

    def show(self) -> None:
        line = self.text.format(self.done)
        if self.is_terminal:
            self.stream.write(f"\r{line}", ending="")
        else:
            self.stream.write(line)
        self.shown_at = time.monotonic()

    def finish(self) -> None:
        """Show the last number, and end the line."""
        self.show()
        if self.is_terminal:
            self.stream.write("")
