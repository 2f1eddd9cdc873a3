"""kill -9 during exchanges with ACA-Py: they continue after a restart.

In each test a process is killed once, for all peers and versions.
"""

import signal
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from tests.interop.peers import test_acapy_holder as holding
from tests.interop.peers.acapy import Acapy
from tests.interop.peers.agency import reaches, the_offer
from tests.interop.peers.conftest import VALUES
from tests.interop.peers.exchanges import Issuance, Proof
from tests.support.processes import eventually

SPOKEN = [("acapy", "1.0"), ("acapy", "2.0"), ("current", "2.0")]


class Party(NamedTuple):
    """A peer in one version.

    `link`: (our id, their id) of its connection with Faber.
    """

    peer: Acapy
    version: str
    link: tuple[str, str]

    @property
    def issuance(self):
        return Issuance(self.peer, self.version)

    @property
    def proof(self):
        return Proof(self.peer, self.version)


@pytest.fixture
def parties(request, links):
    named = [(request.getfixturevalue(name), version) for name, version in SPOKEN]
    return [Party(*one, links(*one)) for one in named]


@pytest.fixture
def offered(faber, degree, parties):
    """A function that offers a credential to each; answers our ids."""
    return lambda: [holding.offer(faber, degree, one.link, True) for one in parties]


IN, OUT = "connections_inboundmessage", "connections_outboundmessage"
WORKERS = {IN: "worker", OUT: "deliver"}  # which process works on the rows of a table


@pytest.fixture
def dies(agency):
    """A context in which the worker of a table stops.

    It is killed when this many rows wait.
    """

    @contextmanager
    def die(table, number):
        agency.signal(WORKERS[table], signal.SIGSTOP)
        try:
            yield
            eventually(lambda: agency.rows(table, "status = 'pending'") >= number)
        finally:
            agency.kill(WORKERS[table])
            agency.lets_leases_run_out()
            agency.start(WORKERS[table])

    return die


def all_reach(person, path, identifiers, state):
    return [reaches(person, f"{path}/{one}", state) for one in identifiers]


def all_offered(parties):
    """The records of what each is offered."""
    return [
        one.issuance.next("offer-received", connection_id=one.link[1])
        for one in parties
    ]


def take(parties, records):
    for one, record in zip(parties, records, strict=True):
        one.issuance.act(record, "send-request")


def all_done(parties, records):
    for one, record in zip(parties, records, strict=True):
        one.issuance.until(record, "done", 60)


def test_offers_that_were_on_their_way_when_their_worker_was_killed_arrive(
    agency, faber, parties, offered
):
    for one in parties:
        one.peer.process.signal(signal.SIGSTOP)
    try:
        ours = offered()
        eventually(lambda: agency.rows(OUT, "lease_owner IS NOT NULL"))
        agency.kill(WORKERS[OUT])
    finally:
        for one in parties:
            one.peer.process.signal(signal.SIGCONT)
    agency.lets_leases_run_out()
    agency.start(WORKERS[OUT])
    records = all_offered(parties)
    take(parties, records)
    all_done(parties, records)
    all_reach(faber, "/credentials", ours, "Issued")


def test_requests_that_came_while_no_worker_lived_are_answered(
    faber, parties, offered, dies
):
    ours, records = offered(), all_offered(parties)
    with dies(IN, len(parties)):
        take(parties, records)
    all_done(parties, records)
    all_reach(faber, "/credentials", ours, "Issued")


def test_presentations_that_came_while_no_worker_lived_are_judged(
    faber, degree, parties, offered, dies
):
    offered()
    held = [one.issuance.stored(one.issuance.accept(one.link[1])) for one in parties]
    body = holding.policy(degree, ["level"])
    asked = [holding.ask(faber, one.link, body) for one in parties]
    records = [
        one.proof.next("request-received", connection_id=one.link[1]) for one in parties
    ]
    with dies(IN, len(parties)):
        for one, record, mine in zip(parties, records, held, strict=True):
            one.proof.present(record, mine)
    shown = all_reach(faber, "/verifications", asked, "Accepted")
    assert [one["isValid"] for one in shown] == [True] * len(parties)


def test_what_wallets_asked_for_while_no_worker_lived_arrives(
    parties, visits, defined, dies
):
    guests = [visits(one.peer, one.version) for one in parties]
    records = [
        one.issuance.offer(theirs, defined(one.peer), VALUES)
        for one, (_, (_, theirs)) in zip(parties, guests, strict=True)
    ]
    offers = [the_offer(alice) for alice, _ in guests]
    with dies(OUT, len(parties)):
        for (alice, _), offer in zip(guests, offers, strict=True):
            alice.post(f"/credentials/{offer}")
    all_done(parties, records)
    for (alice, _), offer in zip(guests, offers, strict=True):
        assert reaches(alice, f"/credentials/{offer}", "Issued")["values"] == VALUES


def test_acapy_reaches_a_web_server_that_was_killed(agency, faber, parties, offered):
    ours, records = offered(), all_offered(parties)
    agency.kill("web")
    take(parties, records)
    agency.start("web")
    agency.wait_until_ready()
    all_done(parties, records)
    all_reach(faber, "/credentials", ours, "Issued")
