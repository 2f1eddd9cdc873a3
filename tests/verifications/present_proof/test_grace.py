"""Revocations of others while a holder answers, and of the holder's own card."""

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from threading import Event

import pytest

from credentials import revocation
from credentials.ledgers import ledger_of
from credentials.ledgers.local import LocalLedger
from credentials.ledgers.published import FAR_FUTURE
from credentials.models import RevocationRegistry, StatusList
from tenants import vault
from tests.support import queues
from tests.support.people import Organization
from tests.support.presentations import policy_of
from tests.support.races import in_thread
from tests.support.rounds import ROUNDS
from tests.support.steps import step
from verifications import kiosks
from verifications.models import Kiosk
from wallets import anoncreds

VALUES = {"name": "Alice", "level": "7"}
LEVEL = {"policyName": "level", "attributeNames": ["level"]}


PROOFS = 200


class Clock:
    """Runs `ahead` seconds ahead of this machine's."""

    def __init__(self):
        self.real, self.ahead = time.time, 0.0

    def __call__(self):
        return self.real() + self.ahead


@pytest.fixture
def clock(monkeypatch):
    moved = Clock()
    monkeypatch.setattr(time, "time", moved)
    return moved


class Register:
    """Cards of one registry: Alice's, and some of neighbours."""

    def __init__(self, faber, clock, neighbours=ROUNDS):
        self.faber, self.clock = faber, clock
        clock.ahead = -7200.0  # the first list is older than all that follows
        definition = faber.defines(*VALUES, supportRevocation=True)
        queues.sweep()
        clock.ahead = -10.0
        self.alice = faber.hosts()
        self.card = self.alice.receives(faber, definition, VALUES)
        self.neighbour = faber.hosts("Bob")
        for _ in range(neighbours):
            self.neighbour.receives(faber, definition, VALUES)
        rows = faber.get("/credentials")
        self.neighbours = [row["credentialId"] for row in rows[:neighbours]]
        self.of_alice = rows[-1]["credentialId"]
        clock.ahead = 0.0

    def revoke_neighbour(self):
        self.faber.delete(f"/credentials/{self.neighbours.pop()}")

    def revoke_alice(self):
        self.faber.delete(f"/credentials/{self.of_alice}")

    def answers(self, verification_id):
        """Alice answers with her card, whatever is known of it. The codes of failures."""
        mine = self.alice.newest("verifications")["verificationId"]
        chosen = [{"policyName": "level", "credentialId": self.card}]
        self.alice.put(f"/verifications/{mine}", chosen)
        return self.failures(verification_id)

    def failures(self, verification_id, verifier=None):
        seen = (verifier or self.faber).get(f"/verifications/{verification_id}")
        codes = {one["code"] for one in seen["checks"] if "code" in one}
        assert seen["isValid"] is not bool(codes)
        return codes


@step
def cards(faber):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", moved := Clock())
        return Register(faber, moved)


@pytest.fixture
def register(cards, clock):
    cards.clock = clock
    return cards


def asking(**requirement):
    requirement = {"validNow": True} | requirement
    return policy_of(LEVEL, revocationRequirement=requirement)


def by_connection(register, verifier, meanwhile):
    asked = verifier.asks(register.alice, **asking())
    meanwhile()
    register.alice.auto_selects()
    return asked["verificationId"]


def by_link(register, verifier, meanwhile):
    asked = verifier.post("/verifications/policy", asking())
    meanwhile()
    take(register.alice, asked["verificationRequestData"])
    return asked["verificationId"]


def take(holder, data):
    holder.put_form("/verifications/fromData/autoSelect", verificationData=data)


def by_kiosk(register, verifier, meanwhile):
    stored = verifier.post("/verificationPolicies", asking())["policyId"]
    verifier.post("/kiosks", {"name": "Desk", "policyId": stored, "shownItems": []})
    screen = kiosks.next_screen(Kiosk.objects.latest("pk"))
    meanwhile()
    take(register.alice, screen.verification.connection.invitation_url)
    return str(screen.verification.pk)


def by_proposal(register, verifier, meanwhile):
    """The holder proposes; the verifier answers with a policy of its own."""
    register.alice.known_as(verifier)
    _, mine = register.alice.known[verifier]
    register.alice.put(f"/verifications/propose/{mine}", policy_of(LEVEL))
    stored = verifier.post("/verificationPolicies", asking())["policyId"]
    theirs, _ = register.alice.known[verifier]
    path = f"/verifications/proposal/{stored}/connections/{theirs}"
    asked = verifier.put(path)["verificationId"]
    meanwhile()
    register.alice.auto_selects()
    return asked


WAYS = [by_connection, by_link, by_kiosk, by_proposal]


@pytest.mark.parametrize(
    "way, is_elsewhere", [*product(WAYS, [True]), (WAYS[0], False)]
)
def test_who_is_honest_is_believed_while_others_are_revoked(
    register, clock, way, is_elsewhere
):
    verifier = Organization("Acme") if is_elsewhere else register.faber

    def meanwhile():
        clock.ahead = 2.0
        register.revoke_neighbour()
        clock.ahead = 90.0  # longer than any grace: the wallet takes the newest list

    for _ in range(ROUNDS):
        clock.ahead = 0.0
        asked = way(register, verifier, meanwhile)
        assert register.failures(asked, verifier) == set()


@pytest.fixture
def old_lists(monkeypatch, clock):
    """Wallets use the lists of `since`, by the clock that runs 0 s ahead."""
    final = LocalLedger.final_status_list
    since = int(clock.real()) - 5
    monkeypatch.setattr(
        LocalLedger,
        "final_status_list",
        lambda self, registry_id, timestamp: final(self, registry_id, since),
    )


ANSWERED_WITH_THE_LIST_OF_BEFORE = [
    # graceSeconds, when another list came, when the answer; in seconds after the request
    (None, 2, 12, "neighbour", set()),
    (None, 2, 12, "alice", set()),
    (None, 2, 77, "neighbour", {"stale"}),
    (60, 2, 77, "alice", {"stale"}),
    (120, 2, 77, "neighbour", set()),
    (0, 2, 12, "neighbour", {"stale"}),
    (3600, -2, 1, "alice", {"stale"}),
]


@pytest.mark.parametrize(
    ("grace", "revoked", "answered", "whose", "failures"),
    ANSWERED_WITH_THE_LIST_OF_BEFORE,
)
def test_a_list_counts_for_a_while_after_the_next_if_that_came_after_the_request(
    register, clock, old_lists, whose, grace, revoked, answered, failures
):
    """So a card that was revoked meanwhile can pass, which is what the docs say."""
    revoke = getattr(register, f"revoke_{whose}")
    if revoked < 0:
        clock.ahead = revoked
        revoke()
        clock.ahead = 0.0
    given = {} if grace is None else {"graceSeconds": grace}
    asked = register.faber.asks(register.alice, **asking(**given))
    if revoked > 0:
        clock.ahead = revoked
        revoke()
    clock.ahead = answered
    assert register.answers(asked["verificationId"]) == failures


def test_the_newest_list_shows_who_is_revoked_whatever_the_grace(register, clock):
    asked = register.faber.asks(register.alice, **asking(graceSeconds=3600))
    clock.ahead = 2.0
    register.revoke_alice()
    assert register.answers(asked["verificationId"]) == {"revoked_or_invalid"}


def test_a_list_of_an_issuer_whose_clock_is_ahead_is_the_newest(register, clock):
    asked = register.faber.asks(register.alice, **asking(graceSeconds=0))
    clock.ahead = 30.0
    register.revoke_neighbour()
    clock.ahead = 0.0
    assert register.answers(asked["verificationId"]) == set()


def test_the_holder_reads_that_the_card_must_be_valid_now(register):
    register.faber.asks(register.alice, **asking(graceSeconds=5))
    seen = register.alice.newest("verifications")["policy"]
    assert seen["revocationRequirement"] == {"validNow": True}


def revoke_one_a_second(stopped):
    """Publish a list each second, on which one more place is revoked."""
    registry = RevocationRegistry.objects.select_related("definition").get()
    ledger = ledger_of(registry.definition.tenant.network)
    for index in range(registry.size - 1, registry.next_index, -1):
        if stopped.wait(1.0):
            return
        newest = ledger.status_list(registry.registry_id, FAR_FUTURE)
        following = anoncreds.update_status_list(
            registry.definition.public_part,
            registry.public_part,
            vault.unseal(registry, "private_key"),
            newest,
            [index],
            revocation.second_after(newest["timestamp"]),
        )
        ledger.publish_status_list(following)


@pytest.mark.slow
def test_no_proof_fails_while_somebody_is_revoked_each_second(faber, settings, clock):
    settings.REVOCATION_FIRST_REGISTRY_SIZE = 512
    register, stopped = Register(faber, clock), Event()
    with ThreadPoolExecutor(1) as pool:
        revoking = pool.submit(in_thread, lambda: revoke_one_a_second(stopped))
        try:
            for _ in range(PROOFS):
                asked = by_connection(register, faber, lambda: None)
                assert register.failures(asked) == set()
        finally:
            stopped.set()
        revoking.result()
    assert StatusList.objects.count() > 10
