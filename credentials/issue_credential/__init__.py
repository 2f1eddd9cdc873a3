"""The protocol issue-credential, and the notification of revocations.

`messages` builds and reads the messages of both versions, `proposal_messages` those by
which a holder proposes. `handlers` is what happens when one is received, `proposals`
what happens to proposals on both sides.
"""
