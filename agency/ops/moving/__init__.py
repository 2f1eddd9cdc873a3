"""Move an organization to another installation, in one sealed file.

    a line of JSON      the header: in the clear, but bound to all that follows
    sealed chunks       a compressed stream of parts: keys, files, tables, people

The target opens it with the same AGENCY_MOVE_KEY. Values stay sealed by the data keys
of the organization, as they are; only these keys are wrapped again, by the master key
of the target.
"""
