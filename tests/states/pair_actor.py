"""One of several actors that do random things on both sides of a pair at once.

An actor is a thread of a test, or a process that tests.states.pair_processes starts.
"""

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from django.db.models import Q

from connections import removal
from connections.didcomm import message as didcomm
from connections.models import Connection
from connections.protocols import basic_message, did_rotate, handshakes
from connections.protocols.out_of_band import OutOfBandOptions
from connections.transport import inbox
from core.errors import AgencyError
from credentials.issue_credential.proposals import counter_offer, offer_proposed
from credentials.models import Credential, CredentialDefinition
from credentials.removal import remove_credential
from verifications.models import Verification
from verifications.present_proof import prover, verifier
from verifications.proofs import proof_policy
from wallets.models import Wallet

VALUES = {"name": "Alice", "level": "7"}
POLICY = {"name": "P", "version": "1", "attributes": [{"policyName": "name"}]}
CONNECTIONS = 2  # between the two parties
# Open exchanges of a kind on a connection. With more, the messages of its end would
# not all be handled before the commit (MAX_HANDLED_BEFORE_COMMIT).
MAX_OPEN = 6
# What a row was picked for may be gone when the act comes to it.
DELETED = (Connection.DoesNotExist, Credential.DoesNotExist, Verification.DoesNotExist)
Log = Callable[..., object]


class NothingToDo(Exception):
    """No row is in a state for this act."""


def act_alone(seed: int, acts: int, path: str, failing: float) -> None:
    """Be the actor of this process. Each line of the log is written at once.

    failing: the share of the messages whose handler fails.
    """
    with open(path, "a", buffering=1) as file:

        def log(*words: object) -> None:
            file.write(" ".join(map(str, words)) + "\n")

        # Some connections are large, and a worker goes on with their removal.
        removal.MAX_IN_CALL = 10
        inbox.handle = failing_handler(seed, failing, log)
        Actor(seed, acts, log=log).run()


def failing_handler(seed: int, share: float, log: Log = print) -> Callable[..., None]:
    """The function inbox.handle(), which now and then fails after it has done all."""
    handle, chance = inbox.handle, random.Random(seed)

    def failing(*arguments: Any) -> None:
        try:
            handle(*arguments)
        except AgencyError:
            raise
        except Exception as error:
            log("unexpected", repr(error))
            raise
        if chance.random() < share:
            raise RuntimeError("now and then")

    return failing


class Actor:
    """Does random things on either side of the connections of a pair.

    log: called with each act that is done, and before each one that deletes:
    `done <act> <id> <sequence>`, `done write <text> <thread>`, `deletes <id>`. The
    row with that id has at least this sequence from then on.
    """

    def __init__(
        self,
        seed: int,
        acts: int,
        is_heavy: bool = True,
        log: Log = lambda *words: None,
    ) -> None:
        self.seed, self.acts, self.is_heavy = seed, acts, is_heavy
        self.random, self.log = random.Random(seed), log
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def run(self) -> "Actor":
        light = [self.write, self.offer, self.end_one, self.counter, self.delete]
        heavy = [self.accept, self.accept, self.issue, self.ask, self.answer]
        meeting = [self.invite, self.meet]
        often = 5 * (light + meeting + heavy * self.is_heavy)
        rarely = [self.rotate, self.end, self.remove]
        while sum(self.done.values()) < self.acts:
            act = self.random.choice([*often, *rarely])
            try:
                told = act()
                self.done[act.__name__] += 1
                self.log("done", act.__name__, *told)
            except NothingToDo:
                pass
            except AgencyError as error:
                self.refused[error.code] += 1
            except DELETED:
                self.refused["deleted"] += 1  # by another actor
        return self

    def pick(self, model, *related, **conditions):
        """A random one of the newest rows that match, or NothingToDo."""
        rows = model.objects.filter(**conditions).select_related(*related)
        newest = list(rows.order_by("-pk")[:4])
        if not newest:
            raise NothingToDo
        return self.random.choice(newest)

    def connection(self, role=None):
        role = role or self.random.choice(["inviter", "invitee"])
        return self.pick(Connection, role=role, state="Connected", left_at=None)

    def connection_for(self, model):
        connection = self.connection("inviter")
        rows = model.objects.filter(connection=connection, state__in=model.OPEN)
        if rows.count() >= MAX_OPEN:
            raise NothingToDo
        return connection

    def exchange(self, model, **conditions):
        related = ("connection__my_key", "wallet", "tenant__network")
        return self.pick(model, *related, **conditions)

    def change(self, act, model, **conditions):
        """Do this to one of the exchanges that match. Return what is certain then."""
        row = self.exchange(model, **conditions)
        told = row.pk, row.sequence + 1
        act(row)
        return told

    def invite(self):
        invitees = Connection.objects.filter(role="invitee", left_at=None)
        met = Q(state="Connected", thread_id__in=invitees.values("thread_id"))
        rows = Connection.objects.filter(role="inviter", left_at=None)
        if rows.filter(Q(state="Invited") | met).count() >= CONNECTIONS:
            raise NothingToDo
        options = self.random.choice([None, OutOfBandOptions()])
        wallet = Wallet.objects.get(is_organization=True)
        return handshakes.invite(wallet, options=options).pk, 1

    def meet(self):
        invited = self.pick(Connection, role="inviter", state="Invited")
        wallet = Wallet.objects.get(is_organization=False)
        invitation = didcomm.read(invited.invitation)
        return handshakes.accept_invitation(wallet, invitation).pk, 1

    def write(self):
        connection = self.connection()
        text = f"{self.seed}-{sum(self.done.values())}"
        basic_message.send_text(connection, text)
        return text, connection.thread_id

    def offer(self):
        definition = CredentialDefinition.objects.select_related(
            "schema", "tenant__network"
        ).get()
        automatic = self.is_heavy and self.random.random() < 0.5
        connection = self.connection_for(Credential)
        return Credential.offer(connection, definition, VALUES, automatic).pk, 1

    def accept(self):
        accept = Credential.accept
        return self.change(accept, Credential, role="holder", state="Offered")

    def issue(self):
        issue = Credential.issue
        return self.change(issue, Credential, role="issuer", state="Requested")

    def counter(self):
        with suppress(NothingToDo):
            return self.change(
                offer_proposed, Credential, role="issuer", state="Proposed"
            )
        comment = {"comment": str(self.random.random())}
        counter = partial(counter_offer, changes=comment)
        return self.change(counter, Credential, role="holder", state="Offered")

    def end_one(self):
        model = self.random.choice([Credential, Verification])
        return self.change(model.decline, model, state__in=model.OPEN)

    def delete(self):
        states = ["Offered", "Rejected", "Issued"]
        row = self.exchange(Credential, state__in=states)
        self.log("deletes", row.pk)
        remove_credential(row)
        return row.pk, 0

    def ask(self):
        policy = proof_policy.normalise(POLICY)
        connection = self.connection_for(Verification)
        return verifier.send_request(connection, policy).pk, 1

    def answer(self):
        select = prover.answer_request
        return self.change(select, Verification, role="prover", state="Requested")

    def rotate(self):
        connection = self.connection()
        did_rotate.rotate(connection)
        return connection.pk, 1

    def end(self):
        connection = self.connection()
        connection.end()
        return connection.pk, 1

    def remove(self):
        connection = self.pick(Connection)
        self.log("deletes", connection.pk)
        removal.remove_connection(connection)
        return connection.pk, 0
