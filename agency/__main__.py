"""The command line of developers: `python -m agency listen`. No database, no settings.

Commands of operators are Django's: `python manage.py help`.
"""

import argparse
import sys

from agency.devtools import listen


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m agency")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    listen.add_arguments(
        commands.add_parser("listen", help=listen.HELP, description=listen.DESCRIPTION)
    )
    given = parser.parse_args(arguments)
    return given.run(given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
