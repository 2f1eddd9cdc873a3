"""Rows in every state, reached by real steps, and checks that refusals change none."""

import pytest

from connections.didcomm import message
from connections.messaging import outbox
from connections.models import Connection, InboundMessage, OutboundMessage
from connections.protocols import connections_1_0
from connections.transport import delivery
from core.errors import WrongState
from core.work import transactions
from credentials import revocation
from credentials.models import Credential
from tests.support import queues
from verifications.models import Verification
from verifications.present_proof import prover
from wallets import keys
from wallets.models import Key

MODELS = (Connection, Credential, Verification, Key, OutboundMessage, InboundMessage)
VALUES = {"name": "Alice", "level": "7"}
ASKED = [{"policyName": "name"}]


def everything():
    """All rows of all models that a transition could touch."""
    return {model: list(model.objects.order_by("pk").values()) for model in MODELS}


def refuses(transition):
    """Assert that the transition raises WrongState and changes no row."""
    before = everything()
    with pytest.raises(WrongState), transactions.atomic():
        transition()
    assert everything() == before


def ignores(transition):
    """Assert that the transition changes no row and sends nothing."""
    before = everything()
    with pytest.MonkeyPatch.context() as patch:
        sent = queues.record_sent(patch)
        with transactions.atomic():
            transition()
    assert everything() == before and sent == []


class Walk:
    """Faber and Alice, one step at a time."""

    def __init__(self, faber, monkeypatch):
        self.faber, self.monkeypatch = faber, monkeypatch
        self.alice = faber.holder or faber.hosts("Alice")

    def speaks(self, version):
        """They are connected, and use this version of the protocols of exchanges."""
        self.alice.known_as(self.faber)
        Connection.objects.update(exchange_version=version)

    def defines(self, revocable=False):
        if self.faber.badge and not revocable:
            return self.faber.badge
        return self.faber.defines("name", "level", supportRevocation=revocable)

    def offers(self, revocable=False):
        definition = self.defines(revocable)
        offered = self.faber.offers(self.alice, definition, VALUES)
        issuer = Credential.objects.get(pk=offered["credentialId"])
        return {"issuer": issuer, "holder": Credential.objects.get(role="holder")}

    def proposes(self):
        definition = self.defines()["definitionId"]
        self.alice.known_as(self.faber)
        body = {"definitionId": definition, "credentialValues": VALUES}
        self.alice.put(f"/credentials/propose/{self.alice.known[self.faber][1]}", body)
        return {row.role: row for row in Credential.objects.all()}

    def asks(self):
        asked = self.faber.asks(self.alice, attributes=ASKED)
        verifier = Verification.objects.get(pk=asked["verificationId"])
        prover = Verification.objects.get(role="prover")
        return {"verifier": verifier, "prover": prover}

    def stops_after(self, messages, step):
        """Do a step as if the messages after this number of them were lost.

        That many are handled in the transaction; the rest are rows, never delivered.
        """
        with self.monkeypatch.context() as stopped:
            stopped.setattr(delivery, "MAX_HANDLED_BEFORE_COMMIT", messages)
            stopped.setattr(outbox, "deliver_committed", lambda row: None)
            step()
        OutboundMessage.objects.filter(status="pending").delete()


def credential(walk, role, state):
    if state == "Proposed":
        return arrived(walk.proposes()[role], state)
    row = walk.offers(revocable=state == "Revoked")[role]
    other = Credential.objects.exclude(pk=row.pk).get()
    holder = row if role == "holder" else other
    issuer = other if role == "holder" else row
    if state in ("Requested", "Issued", "Revoked"):
        holder.accept()
    if state in ("Issued", "Revoked"):
        issue(fresh(issuer))
    if state == "Rejected":
        holder.decline()
    if state == "Revoked":
        revocation.revoke(fresh(issuer))
    return arrived(row, state)


def issue(issuer):
    issuer.issue(slot=revocation.reserve_slot(issuer))


def verification(walk, role, state):
    row = walk.asks()[role]
    other = Verification.objects.get(role="prover")
    if state == "Accepted":
        prover.answer_request(other)
    if state == "Rejected":
        other.decline()
    if state == "Proposed":
        Verification.objects.filter(pk=row.pk).update(state=state)
    return arrived(row, state)


def connection(walk, role, state):
    invited = walk.faber.invites()

    def accept():
        walk.alice.accepts_invitation(invited["invitation"])

    if state == "Connected":
        accept()
    elif (role, state) != ("inviter", "Invited"):
        walk.stops_after(1, accept)
    row = Connection.objects.get(role=role)
    if (role, state) == ("invitee", "Invited"):
        Connection.objects.filter(pk=row.pk).update(state=state)
    return arrived(row, state)


def fresh(row):
    return type(row).objects.get(pk=row.pk)


def arrived(row, state):
    row = fresh(row)
    assert row.state == state
    return row


def states_of(model):
    return set(model.objects.values_list("state", flat=True))


def received(body, sender=None):
    return message.read(body).with_sender(sender)


def outsider():
    """Return a party of another agent, and its seed."""
    seed = keys.generate_seed()
    verkey = keys.verkey_of(seed)
    party = keys.did_of(verkey), verkey, "https://phone.example", []
    return connections_1_0.Party(*party), seed
