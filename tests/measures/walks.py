"""Count the files, functions and statements of single API calls in one process.

A switch is a call of a function of ours in another file than the one called before it.
What stands between Django and the driver is left out, as its calls are those of the
statements.
"""

import itertools
import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from agency.devtools.embedded import temporary_servers
from agency.devtools.run import DEVELOPER_SETTINGS
from tests.measures.source import PACKAGES
from tests.support.paths import ROOT

# Compiled statements are ours, as the calls of models in their place would be.
DRIVER = tuple(
    str(path)
    for path in (ROOT / "core" / "database").glob("*.py")
    if path.stem != "compiled_sql"
)
FOLDERS = tuple(f"{ROOT / package}{os.sep}" for package in PACKAGES)
COLUMNS = ("files", "functions", "calls", "switches", "statements")
ROW = "{:32}" + "{:>12}" * len(COLUMNS)


class Walk:
    """While the block runs, notes each call of a function of ours in this thread."""

    def __init__(self) -> None:
        # File and qualified name of each call.
        self.visited: list[tuple[str, str]] = []

    def __enter__(self) -> "Walk":
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        self.captured = CaptureQueriesContext(connection)
        self.captured.__enter__()
        sys.setprofile(self._note)
        return self

    def __exit__(self, *exception: Any) -> None:
        sys.setprofile(None)
        self.captured.__exit__(*exception)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(FOLDERS) and not file.startswith(DRIVER):
            self.visited.append((file, frame.f_code.co_qualname))

    def figures(self) -> tuple[int, ...]:
        files = [file for file, _ in self.visited]
        switches = sum(one != other for one, other in itertools.pairwise(files))
        functions = len(set(self.visited))
        return len(set(files)), functions, len(files), switches, len(self.captured)


def report() -> str:
    with temporary_servers() as environment:
        os.environ |= environment | DEVELOPER_SETTINGS
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "agency.settings",
            "LOG_LEVEL": "ERROR",
            "ALLOWED_HOSTS": "testserver",
        }
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        rows = [ROW.format("walks", *COLUMNS)]
        rows += [ROW.format(name, *figures) for name, figures in walked_calls()]
    return "\n".join(rows)


def walked_calls() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Return each call with its figures. A warm-up cycle runs before."""
    from bench.queries import InProcess

    caller = InProcess().prepare()
    caller.cycle()
    calls = itertools.chain(caller.connection_steps(), caller.steps())
    while True:
        with Walk() as walk:
            name, _ = next(calls, ("", None))
        if not name:
            break
        yield name, walk.figures()
    yield from walked_in_workers(caller)


def walked_in_workers(caller: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    """A ping of another agent and its answer; an event on its way to a webhook.

    Workers use threads, which are not walked: here their functions are called one by
    one.
    """
    from connections.models import Connection
    from connections.protocols import trust_ping
    from connections.tasks import process_some
    from connections.transport import delivery, posting_queue
    from tests.support.outside_agent import Agent, listening
    from tests.support.webhook_receiver import receiving
    from webhooks.delivery import call, claim

    with listening(Agent()) as agent, receiving() as receiver:
        invited = caller.invites()
        agent.accepts(Connection.objects.get(connection_id=invited["connectionId"]))
        for _ in range(2):
            ping = agent.pack(agent.build(trust_ping.PING))
            with Walk() as stored:
                agent.post(ping)
            with Walk() as answered:
                process_some()
                for row in posting_queue.claim_due(1, []):
                    delivery.deliver(row)
        yield "message of another agent, stored", stored.figures()
        yield "the same, handled and answered", answered.figures()
        webhook = {"url": receiver.url, "type": "Notification"}
        webhook["messageTypes"] = ["connection_invited"]
        caller.post("/webhooks", webhook)
        for _ in range(2):
            caller.invites()
            with Walk() as called:
                for row in claim.claim_due(4, 4):
                    call.make_call(row)
        yield "event, called", called.figures()
