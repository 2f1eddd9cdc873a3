"""`listen`: forward the events of an organization to a local address, like a webhook."""

import argparse
import base64
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from agency_cli.client import AgencyClient, Event, Unreachable
from agency_cli.handler import Handler

HELP = "post the organization's events to a local address, as webhooks would be"
DESCRIPTION = """
Follows the organization's events and posts each to a local address: in order, with
the body and signature of a webhook call. A handler that is down is waited for; an
event that it answers five times with something else than 2xx is skipped. The position
is kept in a file, so that no event is missed while this is stopped. It reads
WEBHOOK_SECRET, if the handler knows one already, from the environment.
"""
RETRY_DELAYS = (1.0, 2.0, 5.0, 10.0)  # seconds between attempts to reach the agency


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--forward-to", required=True, metavar="URL", help="where to post them"
    )
    parser.add_argument(
        "--from",
        dest="start",
        choices=["now", "start"],
        default="now",
        help="where to begin the first time: with new events, or with the oldest one "
        "stored",
    )
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="where to keep the position"
    )


def run_command(client: AgencyClient, given: argparse.Namespace) -> int:
    try:
        forward_events(client, given)
    except KeyboardInterrupt:
        print("\nStopped. The next start goes on from here.")
    return 0


def forward_events(remote: AgencyClient, given: argparse.Namespace) -> NoReturn:
    """Post each event to the handler, then store the position. Never returns.

    An event that the handler refuses MAX_REFUSALS times is skipped. One that it was
    answering when this process died is posted again. `--from` counts only without a
    stored position. RequestRefused if the agency refuses the keys.
    """
    tenant_id = retry_until_reachable(remote.tenant_id)
    path = given.state
    if not path:
        home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        names = "\n".join((given.url, tenant_id, given.forward_to))
        digest = hashlib.sha256(names.encode()).hexdigest()[:16]
        path = Path(home) / "agency" / f"listen-{digest}.json"
    state = StateFile(path)
    secret = os.environ.get("WEBHOOK_SECRET") or state.get("secret")
    if not secret:
        # In the form of Standard Webhooks, as the agency makes them.
        secret = f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
        print(
            f"Signing secret, shown once and kept in {state.path}: {secret}",
            flush=True,
        )
    cursor = state.get("cursor")
    if not cursor and given.start == "now":
        cursor = retry_until_reachable(lambda: remote.read_page("now")[1])
    cursor = cursor or given.start
    state.put(secret=secret, cursor=cursor)
    handler = Handler(given.forward_to, secret)
    print(f"Events of {given.url} go to {given.forward_to}. Ctrl-C stops.", flush=True)
    for event in follow_events(remote, cursor):
        if event.body:
            handler.deliver(event.body)
        state.put(cursor=event.cursor)
    raise AssertionError("follow_events() never ends")


def retry_until_reachable(ask: Callable[[], str]) -> str:
    """Repeat a request until the agency responds. Return its result."""
    for pause in retry_delays():
        try:
            return ask()
        except Unreachable as error:
            print(f"The agency is out of reach ({error}); waiting.", flush=True)
            time.sleep(pause)
    raise AssertionError("retry_delays() never ends")


def retry_delays() -> Iterator[float]:
    yield from RETRY_DELAYS
    while True:
        yield RETRY_DELAYS[-1]


def follow_events(remote: AgencyClient, cursor: str) -> Iterator[Event]:
    """Yield all events, without end.

    Reads the pages of the list, then the stream until it ends, and repeats this. If
    there is no stream, only the pages are read repeatedly.
    """
    delays = retry_delays()
    last_error = ""
    while True:
        try:
            for event in remote.read_pages(cursor):
                cursor = event.cursor
                yield event
            for event in remote.stream(cursor):
                cursor = event.cursor
                delays = retry_delays()
                yield event
        except Unreachable as error:
            if str(error) != last_error:
                print(
                    f"No stream now ({error}); it goes on as soon as there is one.",
                    flush=True,
                )
            last_error = str(error)
        time.sleep(next(delays))


class StateFile:
    """The state between runs: a small file that only its owner can read."""

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.values = json.loads(path.read_text()) if path.exists() else {}

    def get(self, name: str) -> str:
        return self.values.get(name, "")

    def put(self, **values: str) -> None:
        """Write the values. A killed process leaves either the old or the new file."""
        self.values |= values
        unfinished = self.path.with_name(f"{self.path.name}.new")
        unfinished.unlink(missing_ok=True)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w") as file:
            json.dump(self.values, file)
        unfinished.replace(self.path)
