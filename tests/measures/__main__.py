"""Prints the figures of the source; with `walks`, those of single calls too.

`mutations` judges the tests, `errors` the OpenAPI document: see there.
"""

import os
import sys

from tests.measures import source

if sys.argv[1:2] == ["mutations"]:
    from tests.measures import mutations

    sys.exit(mutations.main(sys.argv[2:]))
if sys.argv[1:2] == ["errors"]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.settings")
    import django

    django.setup()
    from tests.measures import errors

    sys.exit(errors.main(sys.argv[2:]))
print(source.report())
if sys.argv[1:] == ["walks"]:
    from tests.measures import walks

    print(walks.report())
elif sys.argv[1:]:
    sys.exit("Usage: python -m tests.measures [walks | mutations ... | errors ...]")
