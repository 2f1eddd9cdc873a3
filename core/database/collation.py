"""The collation by which names are compared in the database."""

from django.db.models.functions import Collate, Lower


def case_insensitive(column: str) -> Collate:
    """Return the expression by which lists sort and search a column, ignoring case.

    With the collation "C", one index serves both the order and the search by prefix.
    """
    return Collate(Lower(column), "C")
