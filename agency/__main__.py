"""`python -m agency`: the command line of developers, as `agency-cli` is.

Commands of operators are Django's: `python manage.py help`.
"""

import sys

from agency_cli.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
