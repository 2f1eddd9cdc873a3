"""`listen`: forward the events of an organization to a local address, like a webhook.

It uses the API with the organization's keys, and does not import Django.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from agency.devtools.listen.client import (
    AgencyClient,
    Event,
    RequestRefused,
    Unreachable,
)
from agency.devtools.listen.handler import Handler
from agency.devtools.var import write_private
from webhooks.delivery.signing import new_secret

HELP = "post the organization's events to a local address, as webhooks would be"
DESCRIPTION = """
Follows the organization's events and posts each to a local address: in order, with
the body and signature of a webhook call. A handler that is down is waited for; an
event that it answers five times with something else than 2xx is skipped. The position
is kept in a file, so that no event is missed while this is stopped. It reads
ACCESS_TOKEN and SUBSCRIPTION_KEY, and WEBHOOK_SECRET if the handler knows one
already, from the environment.
"""
RETRY_DELAYS = (1.0, 2.0, 5.0, 10.0)  # seconds between attempts to reach the agency


class StateFile:
    """The state of `listen` between runs: a small file that only its owner can read."""

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.values = json.loads(path.read_text()) if path.exists() else {}

    def get(self, name: str) -> str:
        return self.values.get(name, "")

    def put(self, **values: str) -> None:
        self.values |= values
        write_private(self.path, json.dumps(self.values))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    url = os.environ.get("AGENCY_URL", "http://127.0.0.1:8000")
    parser.add_argument(
        "--forward-to", required=True, metavar="URL", help="where to post them"
    )
    parser.add_argument("--url", default=url, help=f"of the agency ({url})")
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
    parser.set_defaults(run=run_command)


def run_command(given: argparse.Namespace) -> int:
    try:
        remote = AgencyClient(
            given.url, read_variable("ACCESS_TOKEN"), read_variable("SUBSCRIPTION_KEY")
        )
        forward_events(remote, given)
    except RequestRefused as error:
        print(f"The agency refuses: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next start goes on from here.")
    return 0


def read_variable(name: str) -> str:
    if value := os.environ.get(name, ""):
        return value
    raise RequestRefused(f"{name} is not set in the environment")


def forward_events(remote: AgencyClient, given: argparse.Namespace) -> None:
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
        secret = new_secret()
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
