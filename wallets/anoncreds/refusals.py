"""The exceptions of the library, in whose place an error of the agency is raised."""

import anoncreds

# Loads the library while one thread imports this: threads that load it at the same time
# panic, all but one.
anoncreds.library_version()

# ValueError and TypeError come from the library's Python wrapper. What is raised instead
# is raised `from None`: without the cause, because its text may quote attribute values.
REFUSALS = (anoncreds.AnoncredsError, ValueError, TypeError)
