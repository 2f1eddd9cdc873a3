"""`agency-cli`, also `python -m agency_cli` and `python -m agency`.

It reads the keys of the organization, ACCESS_TOKEN and SUBSCRIPTION_KEY, from the
environment. The exit code is 0, 1 if the agency or a file is not as it should be, and 2
for arguments that it does not understand.
"""

import argparse
import os
import sys
from importlib import import_module

from agency_cli import COMMANDS, __version__
from agency_cli.client import AgencyClient, RequestRefused, Unreachable

KEYS = ("ACCESS_TOKEN", "SUBSCRIPTION_KEY")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="agency-cli", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    url = os.environ.get("AGENCY_URL", "http://127.0.0.1:8000")
    for name in COMMANDS:
        module = import_module(f"agency_cli.{name}")
        command = commands.add_parser(
            name, help=module.HELP, description=module.DESCRIPTION
        )
        command.add_argument("--url", default=url, help=f"of the agency ({url})")
        module.add_arguments(command)
        command.set_defaults(run=module.run_command)
    given = parser.parse_args(arguments)
    keys = [os.environ.get(name, "") for name in KEYS]
    if wrong := [name for name, key in zip(KEYS, keys, strict=True) if not is_key(key)]:
        names = " and ".join(wrong)
        print(f"Set {names} in the environment, to a key as shown.", file=sys.stderr)
        return 1
    try:
        return given.run(AgencyClient(given.url, *keys), given)
    except RequestRefused as error:
        print(f"The agency refuses: {error}", file=sys.stderr)
    except Unreachable as error:
        print(f"The agency is out of reach: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    return 1


def is_key(text: str) -> bool:
    """Whether it may be a key: not the dots of an example, nor two lines."""
    return text.isascii() and text.isprintable() and text != ""


if __name__ == "__main__":
    sys.exit(main())
