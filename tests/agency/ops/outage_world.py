"""Create an organization and an administrator for running processes.

Prints their request data as JSON.

python -m tests.agency.ops.outage_world URL        URL of a receiver of webhooks
"""

import json
import os
import sys

import django
from django.conf import settings


def main(url):
    django.setup()
    from django.contrib.auth.models import User
    from django.contrib.sessions.backends.db import SessionStore

    from connections.didcomm import envelope
    from tests.support.people import Organization
    from wallets import keys

    faber = Organization("Faber College")
    faber.post("/webhooks", {"url": url, "type": "Zapier"})
    wallet = faber.post("/api/wallets", {"ownerName": "Alice"})["walletId"]
    admin = User.objects.create_superuser(
        "admin", "admin@agency.example", "correct horse 1"
    )
    session = SessionStore()
    session["_auth_user_id"] = str(admin.pk)
    session["_auth_user_hash"] = admin.get_session_auth_hash()
    session["_auth_user_backend"] = settings.AUTHENTICATION_BACKENDS[0]
    session.save()
    stranger = keys.verkey_of(os.urandom(32))
    print(
        json.dumps(
            {
                "headers": faber.headers,
                "wallet": wallet,
                "session": session.session_key,
                "envelope": envelope.pack(b"{}", [stranger], None).decode(),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
