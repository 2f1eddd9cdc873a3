"""The commands of `agency` that are Django's, those of the product's apps included.

Loading them loads the whole product.
"""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError
from psycopg.errors import LockNotAvailable

from agency.devtools.var import read_run_environment
from core.database.base import is_outage

# All other commands of Django end by themselves.
SERVICES = {"deliver", "runserver", "testserver"}


def run_command(name: str) -> None:
    """Run the command of sys.argv. Beside a `make run` it uses the servers of that."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.settings")
    if "DATABASE_URL" not in os.environ and "DATABASE_URL_FILE" not in os.environ:
        os.environ.update(read_run_environment())
    if name not in SERVICES:
        os.environ.setdefault("ONE_OFF_COMMAND", "1")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"CommandError: {error}")
    except OperationalError as error:
        if sentence := explained(error):
            sys.exit(f"CommandError: {sentence}")
        raise


def explained(error: OperationalError) -> str | None:
    """What happened and what to do, where the error of PostgreSQL does not say it."""
    if is_outage(error):
        return (
            "PostgreSQL is out of reach. Look at DATABASE_URL and at the server. "
            f"{error}"
        )
    if not isinstance(error.__cause__, LockNotAvailable):
        return None
    return (
        "Another process held a lock that this command needs, for longer than "
        "DATABASE_LOCK_TIMEOUT allows. What it had finished before is kept. Run it "
        "again; if this repeats, stop the services meanwhile or give more seconds."
    )
