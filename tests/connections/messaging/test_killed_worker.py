"""A worker that is killed in the middle of an exchange with another agent, and the next one."""

import os
import signal
import subprocess
import sys

import pytest
from django.conf import settings
from django.db import connection

from connections.didcomm import dids
from connections.models import Connection, InboundMessage, OutboundMessage
from connections.protocols import connections_1_0, did_exchange
from credentials.models import Credential
from tests.connections.protocols.test_outside_agent import (
    ISSUE,
    LINK_SECRET,
    VALUES,
    attach,
    attached,
    public,
)
from tests.support import queues
from verifications.models import Verification
from wallets import anoncreds
from wallets.models import Key

WORK = """
import django
django.setup()
from connections import tasks
tasks.sweep()
tasks.deliver()
"""
ROWS = (Connection, Credential, Verification, Key, OutboundMessage)
pytestmark = pytest.mark.slow
POINTS = ["inside_handling", "after_message_before_mark"]


def killed_worker(fault):
    """A worker in a process of its own, on the database of the test. Answers how it ended."""
    database = connection.settings_dict
    place = f"{database['HOST']}:{database['PORT']}/{database['NAME']}"
    environment = os.environ | {
        "DATABASE_URL": f"postgres://{database['USER']}:{database['PASSWORD']}@{place}",
        "DJANGO_SETTINGS_MODULE": "agency.settings",
        "OUTGOING_ALLOW_LOOPBACK": "1",
        "PUBLIC_URL": settings.PUBLIC_URL,
        "FAULT_POINT": fault,
        "FAULT_INJECTION": "1",
    }
    done = subprocess.run([sys.executable, "-c", WORK], env=environment, timeout=60)
    return done.returncode


def dies_and_is_followed(fault):
    """The worker is killed at this place; we are its successor when the lease has run out."""
    assert killed_worker(fault) == -signal.SIGKILL
    queues.worker_catches_up()


def everything():
    return {model: list(model.objects.order_by("pk").values()) for model in ROWS}


def ids_of(phone, kind):
    return {one.id for one in phone.inbox if one.type == kind}


@pytest.mark.parametrize("fault", POINTS)
def test_a_connection_is_made_though_a_worker_dies(faber, phone, fault):
    row = Connection.objects.get(connection_id=faber.invites()["connectionId"])
    request = connections_1_0.request("Phone", "", phone.party, phone.prefix)
    phone.post(phone.pack(request, row.invitation["recipientKeys"][0]))
    dies_and_is_followed(fault)
    row.refresh_from_db()
    assert (row.state, row.their_key) == ("Connected", phone.verkey)
    assert len(ids_of(phone, connections_1_0.RESPONSE)) == 1, (
        "sent again it is the same message"
    )


def test_did_exchange_too(faber, phone):
    faber.invites(protocol="out-of-band", handshakes=["didexchange/1.1"])
    row = Connection.objects.get()
    signer, parent = row.invitation_key.verkey, row.invitation["@id"]
    asked = ("1.1", "Phone", phone.party, phone.seed, phone.prefix, parent)
    phone.post(phone.pack(did_exchange.request(*asked), signer))
    dies_and_is_followed("after_message_before_mark")
    answered = phone.inbox[-1]
    phone.their_key = did_exchange.read_response(answered, signer).verkey
    complete = did_exchange.complete("1.1", answered.thread_id, phone.prefix, parent)
    phone.post(phone.pack(complete))
    dies_and_is_followed("inside_handling")
    row.refresh_from_db()
    assert row.state == "Connected"


@pytest.mark.parametrize("version, fault", [("1.0", POINTS[0]), ("2.0", POINTS[1])])
def test_a_credential_is_issued_though_a_worker_dies(
    faber, phone, client, fault, version
):
    row = phone.connects(faber)
    faber.put(
        f"/connections/{row.connection_id}/protocols", {"exchangeVersion": version}
    )
    definition = faber.defines("name", "level", supportRevocation=True)["definitionId"]
    body = {"definitionId": definition, "connectionId": row.connection_id}
    body |= {"credentialValues": VALUES, "automaticIssuance": True}
    made = faber.post("/credentials", body)
    queues.worker_catches_up()
    phone.post(phone.pack(request(phone, client, definition, version)))
    dies_and_is_followed(fault)
    credential = Credential.objects.get()
    assert faber.get(f"/credentials/{made['credentialId']}")["state"] == "Issued"
    assert len(ids_of(phone, f"issue-credential/{version}/issue-credential")) == 1
    assert credential.revocation_index == 1
    assert not queues.pending().exists()


def request(phone, client, definition_id, version):
    offered = phone.newest(ISSUE.replace("1.0", version) + "offer-credential")
    definition = public(client, "credential-definitions", definition_id)
    offer = attached(offered, "offers~attach")
    asked, _ = anoncreds.create_request(offer, definition, LINK_SECRET, phone.party.did)
    members = {"requests~attach": [attach("libindy-cred-request-0", asked)]}
    place = {"attach_id": "libindy-cred-request-0", "format": "hlindy/cred-req@v2.0"}
    members |= {"formats": [place]} if version == "2.0" else {}
    kind = f"issue-credential/{version}/request-credential"
    return phone.build(kind, offered.thread_id, **members)


@pytest.mark.parametrize("kind", ["did-rotate/1.0/hangup", "did-rotate/1.0/rotate"])
def test_what_a_killed_worker_had_begun_leaves_no_trace(faber, phone, kind):
    phone.connects(faber)
    body = phone.build(kind, to_did=dids.peer_4(type(phone)().verkey, phone.endpoint))
    phone.post(phone.pack(body))
    before = everything()
    assert killed_worker("inside_handling") == -signal.SIGKILL
    assert everything() == before
    assert InboundMessage.objects.get(message_id=body["@id"]).status == "pending"
    queues.worker_catches_up()
    assert InboundMessage.objects.get(message_id=body["@id"]).status == "done"
