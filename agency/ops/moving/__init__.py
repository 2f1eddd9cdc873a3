"""Move an organization to another installation, in one sealed file.

    a line of JSON      the header: in the clear, but bound to all that follows
    sealed chunks       a compressed stream of parts: keys, files, tables, people

The target opens it with the same AGENCY_MOVE_KEY. Values stay sealed by the data keys
of the organization, as they are; only these keys are wrapped again, by the master key
of the target.
"""

from django.core.management.base import CommandError

# Why an export or import is refused.
EXIT_CODES = {
    "no_move_key": 10,
    "file_exists": 11,
    "organization_unknown": 12,
    "organization_busy": 13,
    "organization_deleted_soon": 14,
    "file_unreadable": 20,
    "wrong_move_key": 21,
    "file_damaged": 22,
    "other_release": 23,
    "other_address": 24,
    "network_missing": 25,
    "not_moved": 26,
    "organization_exists": 27,
    "row_exists": 28,
    "object_differs": 29,
    "tails_missing": 30,
    "foreign_row": 31,
    "foreign_objects": 32,
}


class MoveRefused(CommandError):
    """No file was written, or nothing imported. code: a key of EXIT_CODES.

    An organization that the export has frozen stays frozen.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}", returncode=EXIT_CODES[code])
        self.code = code
