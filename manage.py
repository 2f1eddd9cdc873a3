#!/usr/bin/env python
"""Django's commands. Beside a `make run` they use its servers, without a variable to set."""

import os
import sys

from django.core.management import execute_from_command_line

from agency.var import remembered_environment


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.settings")
    if "DATABASE_URL" not in os.environ and "DATABASE_URL_FILE" not in os.environ:
        os.environ.update(remembered_environment())
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
