"""How names are compared in the database."""

from django.db.models.functions import Collate, Lower


def case_insensitive(column: str) -> Collate:
    """A column as lists sort and search it: in lower case, by code point.

    The collation "C" lets one index serve both the order and the search for a prefix.
    """
    return Collate(Lower(column), "C")
