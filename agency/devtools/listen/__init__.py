"""`listen`: an organization's events, posted to a local address as webhooks would be.

Everything comes over HTTP with the organization's keys. No Django here.
"""

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from agency.devtools.listen.handler import Handler
from agency.devtools.listen.memory import Memory
from agency.devtools.listen.remote import Event, Refused, Remote, Unreachable
from webhooks.delivery.signing import new_secret

HELP = "post the organization's events to a local address, as webhooks would be"
LONG = """
Follows the organization's events and posts each to a local address: in order, with the body and
signature of a webhook's call, again until the handler answers 2xx. Where it stands is kept in a
file, so that nothing is missed while it is stopped. It reads ACCESS_TOKEN and SUBSCRIPTION_KEY,
and WEBHOOK_SECRET if the handler knows one already, from the environment.
"""
PAUSES = (1.0, 2.0, 5.0, 10.0)  # seconds between attempts to reach the agency


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
        help="where to begin the first time: with what comes, or with the oldest event kept",
    )
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="where to keep the place"
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    try:
        remote = Remote(
            given.url, variable("ACCESS_TOKEN"), variable("SUBSCRIPTION_KEY")
        )
        follow(remote, given)
    except Refused as error:
        print(f"The agency refuses: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next start goes on from here.")
    return 0


def variable(name: str) -> str:
    if value := os.environ.get(name, ""):
        return value
    raise Refused(f"{name} is not set in the environment")


def follow(remote: Remote, given: argparse.Namespace) -> None:
    tenant_id = patiently(remote.tenant_id)
    memory = Memory(given.state or state_file(given.url, tenant_id, given.forward_to))
    secret = os.environ.get("WEBHOOK_SECRET") or memory.get("secret")
    if not secret:
        secret = new_secret()
        print(
            f"Signing secret, shown once and kept in {memory.path}: {secret}",
            flush=True,
        )
    cursor = memory.get("cursor") or patiently(lambda: remote.edge(given.start))
    memory.put(secret=secret, cursor=cursor)
    handler = Handler(given.forward_to, secret)
    print(f"Events of {given.url} go to {given.forward_to}. Ctrl-C stops.", flush=True)
    for event in events(remote, cursor):
        if event.body:
            handler.deliver(event.body)
        memory.put(cursor=event.cursor)


def patiently(ask):
    """Asks until the agency is there."""
    for pause in pauses():
        try:
            return ask()
        except Unreachable as error:
            print(f"The agency is out of reach ({error}); waiting.", flush=True)
            time.sleep(pause)


def pauses() -> Iterator[float]:
    yield from PAUSES
    while True:
        yield PAUSES[-1]


def events(remote: Remote, cursor: str) -> Iterator[Event]:
    """For ever: what there is, by pages, then the stream while it lasts, then again. Where no
    stream can be had the pages alone do."""
    waits, said = pauses(), ""
    while True:
        try:
            for event in remote.pages(cursor):
                cursor = event.cursor
                yield event
            for event in remote.stream(cursor):
                cursor, waits = event.cursor, pauses()
                yield event
        except Unreachable as error:
            if str(error) != said:
                print(
                    f"No stream now ({error}); it goes on as soon as there is one.",
                    flush=True,
                )
            said = str(error)
        time.sleep(next(waits))


def state_file(*parts: str) -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return Path(home) / "agency" / f"listen-{name}.json"
