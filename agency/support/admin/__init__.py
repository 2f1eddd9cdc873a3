"""The records of all apps in the admin, for support staff. Django imports this package.

Read-only, with explicit lists of columns: no list has columns with sealed values,
digests, tokens or messages. Staff create organizations and keys (organizations.py), and
what they may do for a customer is in agency/support/actions.py.

base.py has the base classes, and the other modules the records of the app of their
name. `wallets` has simulated holders too, and `people` accounts and the admin's log.
"""

from agency.support.admin import (  # noqa: F401
    connections,
    credentials,
    organizations,
    people,
    verifications,
    wallets,
    webhooks,
)
