"""Both parties of a connection act at once: at the end both sides agree.

PAIR_ACTS is the number of acts of the slow tests.
"""

import os
import random
from collections import Counter

import pytest

from agency.core.errors import AgencyError
from connections.messaging import inbox
from connections.models import BasicMessage, Connection, OutboundMessage
from connections.protocols import basic_message, did_rotate
from credentials.issue_credential.proposals import counter_offer, offer_proposed
from credentials.models import Credential, CredentialDefinition
from credentials.removal import remove_credential
from tests.support import queues
from tests.support.races import threads
from verifications.models import Verification
from verifications.present_proof import prover, verifier
from verifications.proofs import proof_policy

VALUES = {"name": "Alice", "level": "7"}
THREADS = 4
POLICY = {"name": "P", "version": "1", "attributes": [{"policyName": "name"}]}
# What both sides may end with, if neither has deleted its row.
AGREED = {
    ("Proposed", "Proposed"),
    ("Offered", "Offered"),
    ("Requested", "Requested"),
    ("Issued", "Issued"),
    ("Rejected", "Rejected"),
    ("Accepted", "Accepted"),
}


class NothingToDo(Exception):
    """No row is in a state for this act."""


class Actor:
    """One thread that does random things on either side of one connection."""

    def __init__(self, seed, acts, is_heavy):
        self.random, self.acts = random.Random(seed), acts
        self.is_heavy = is_heavy
        self.done = Counter()
        self.refused = Counter()

    def run(self):
        light = [self.write, self.offer, self.end_one, self.counter, self.delete]
        heavy = [self.accept, self.accept, self.issue, self.ask, self.answer]
        often = 5 * (light + heavy * self.is_heavy)
        while sum(self.done.values()) < self.acts:
            act = self.random.choice([*often, self.rotate])
            try:
                act()
                self.done[act.__name__] += 1
            except NothingToDo:
                pass
            except AgencyError as error:
                self.refused[error.code] += 1
            except (Credential.DoesNotExist, Verification.DoesNotExist):
                self.refused["deleted"] += 1  # by another thread
        return self

    def connection(self, role=None):
        role = role or self.random.choice(["inviter", "invitee"])
        return Connection.objects.get(role=role)

    def pick(self, model, **conditions):
        """A random one of the newest rows that match, or NothingToDo."""
        rows = model.objects.select_related(
            "connection__my_key", "wallet", "tenant__network"
        )
        newest = list(rows.filter(**conditions).order_by("-pk")[:4])
        if not newest:
            raise NothingToDo
        return self.random.choice(newest)

    def write(self):
        text = f"{self.random.random()}"
        basic_message.send_text(self.connection(), text)

    def offer(self):
        definition = CredentialDefinition.objects.select_related(
            "schema", "tenant__network"
        ).get()
        automatic = self.is_heavy and self.random.random() < 0.5
        Credential.offer(self.connection("inviter"), definition, VALUES, automatic)

    def accept(self):
        self.pick(Credential, role="holder", state="Offered").accept()

    def issue(self):
        self.pick(Credential, role="issuer", state="Requested").issue()

    def counter(self):
        try:
            offer_proposed(self.pick(Credential, role="issuer", state="Proposed"))
        except NothingToDo:
            row = self.pick(Credential, role="holder", state="Offered")
            counter_offer(row, {"comment": str(self.random.random())})

    def end_one(self):
        model = self.random.choice([Credential, Verification])
        self.pick(model, state__in=model.OPEN).decline()

    def delete(self):
        states = ["Offered", "Rejected", "Issued"]
        remove_credential(self.pick(Credential, state__in=states))

    def ask(self):
        policy = proof_policy.normalise(POLICY)
        verifier.send_request(self.connection("inviter"), policy)

    def answer(self):
        prover.auto_select(self.pick(Verification, role="prover", state="Requested"))

    def rotate(self):
        did_rotate.rotate(self.connection())


@pytest.fixture
def pair(faber):
    alice = faber.hosts("Alice")
    faber.defines("name", "level")
    alice.meets(faber)
    return alice


def act_at_once(acts, is_heavy=True):
    actors = [Actor(seed, acts // THREADS, is_heavy) for seed in range(THREADS)]
    threads([actor.run for actor in actors])
    done = sum((actor.done for actor in actors), Counter())
    assert done, "nothing was done"
    return done


def settle():
    for _ in range(20):
        queues.worker_catches_up()
        if not OutboundMessage.objects.filter(status="pending").exists():
            return
    raise AssertionError("messages were not delivered")


def sides_agree():
    for model in (Credential, Verification):
        first, second = sorted({role for role, _ in model.EVENTS})
        states = {role: dict() for role in (first, second)}
        for row in model.objects.all():
            assert row.thread_id not in states[row.role], "doubled"
            states[row.role][row.thread_id] = row.state
        for thread_id in states[first].keys() & states[second].keys():
            found = states[first][thread_id], states[second][thread_id]
            assert found in AGREED, (model, thread_id, found)
        for thread_id in states[first].keys() ^ states[second].keys():
            left = states[first].get(thread_id) or states[second].get(thread_id)
            assert left in ("Rejected", "Issued", "Accepted"), (model, left)


def texts_arrived_once_and_in_order():
    for sender, receiver in (("inviter", "invitee"), ("invitee", "inviter")):
        sent = BasicMessage.objects.filter(
            connection__role=sender, direction="Outgoing"
        )
        received = BasicMessage.objects.filter(
            connection__role=receiver, direction="Incoming"
        )
        texts = [row.unseal_text() for row in sent.order_by("pk")]
        assert [row.unseal_text() for row in received.order_by("pk")] == texts


def test_both_sides_agree_after_they_acted_at_once(pair):
    act_at_once(48)
    assert not OutboundMessage.objects.exists(), "no handler failed"
    sides_agree()
    texts_arrived_once_and_in_order()


def test_they_agree_too_if_handlers_fail_now_and_then(pair, monkeypatch):
    handle, chance = inbox.handle, random.Random(1)

    def failing(*arguments):
        handle(*arguments)
        if chance.random() < 0.2:
            raise RuntimeError("now and then")

    with monkeypatch.context() as patched:
        patched.setattr(inbox, "handle", failing)
        act_at_once(60, is_heavy=False)
    assert OutboundMessage.objects.exists(), "some messages became rows"
    settle()
    sides_agree()
    texts_arrived_once_and_in_order()


def test_without_the_lock_of_the_pair_they_do_not_agree(pair, monkeypatch):
    """Each side locks its own row only: the tests above can fail."""
    monkeypatch.setattr(
        "connections.messaging.pair_lock.LOCK_SQL",
        "SELECT unnest(%(ids)s::uuid[]) AS id ",
    )
    monkeypatch.setattr("connections.messaging.pair_lock.FOR_CHANGES", "")
    assert any(disagree_after_acts() for _ in range(60))


def disagree_after_acts():
    """Whether both sides disagree, or could not even finish."""
    try:
        act_at_once(48, is_heavy=False)
        settle()
        sides_agree()
        texts_arrived_once_and_in_order()
    except Exception:
        return True
    return False


@pytest.mark.slow
def test_both_sides_agree_after_many_acts(pair):
    print(act_at_once(int(os.environ.get("PAIR_ACTS", "500"))))
    assert not OutboundMessage.objects.exists(), "no handler failed, nobody waited"
    sides_agree()
    texts_arrived_once_and_in_order()


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_in_many_acts_with_failing_handlers(
    pair, monkeypatch
):
    handle, chance = inbox.handle, random.Random(2)

    def failing(*arguments):
        handle(*arguments)
        if chance.random() < 0.02:
            raise RuntimeError("now and then")

    with monkeypatch.context() as patched:
        patched.setattr(inbox, "handle", failing)
        print(act_at_once(int(os.environ.get("PAIR_ACTS", "500"))))
    settle()
    sides_agree()
    texts_arrived_once_and_in_order()
