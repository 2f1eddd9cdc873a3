"""The Agency and the peers of the run: processes that all tests share."""

import base64
import functools
import os

import pytest
from django.conf import settings

from connections.didcomm.message import decode_json
from tests.interop.peers import definitions
from tests.interop.peers.acapy import CURRENT, CURRENT_INDY, FIRST, Acapy, program
from tests.interop.peers.agency import Agency, reaches, the_offer
from tests.interop.peers.credo import CURRENT as CURRENT_CREDO
from tests.interop.peers.credo import Credo
from tests.interop.peers.exchanges import Issuance, Proof
from tests.interop.peers.tails import Tails
from tests.interop.peers.web_hosts import AGENCY_HOST, Hosts
from tests.support.processes import free_port
from tests.support.tools import without

RUNNING = {}  # peers by their names; what the Agency says is captured
FIRST_VERSION = [("acapy", "1.0")]
SECOND_VERSION = [("acapy", "2.0"), ("current", "2.0"), ("current_indy", "2.0")]
EITHER = FIRST_VERSION + SECOND_VERSION
HANDSHAKES = [
    ("acapy", "didexchange/1.0"),
    ("acapy", "didexchange/1.1"),
    ("acapy", "connections/1.0"),
    ("current", "didexchange/1.0"),
    ("current", "didexchange/1.1"),
]
VALUES = {"Full Name": "Alice Åkerlund", "level": "7"}


def invites(peer, *handshakes, **body):
    offered = [f"https://didcomm.org/{one}" for one in handshakes]
    body = {"handshake_protocols": offered} | body
    return peer.post("/out-of-band/create-invitation", body)


def record_of(peer, invited):
    """ACA-Py's connection by the invitation that it made."""
    return peer.the_one("/connections", invitation_msg_id=invited["invi_msg_id"])


def accepts(wallet, peer, handshake, **body):
    """A wallet accepts an invitation of a peer. Return (our id, their id)."""
    invited = invites(peer, handshake, **body)
    ours = wallet.accepts_invitation(invited["invitation_url"])["connectionId"]
    reaches(wallet, f"/connections/{ours}", "Connected")
    theirs = record_of(peer, invited)["connection_id"]
    peer.until(f"/connections/{theirs}", state="active")
    return ours, theirs


def receives(peer, organization, handshake="", **terms):
    """A peer accepts an invitation of an organization. Return (our id, their id).

    handshake: that of an out-of-band invitation, else it is one of connections 1.0.
    """
    path, query = "/connections/receive-invitation", {}
    if handshake:
        path = "/out-of-band/receive-invitation"
        terms |= {"protocol": "out-of-band", "handshakes": [handshake]}
        query = {"use_existing_connection": "false"}
    invited = organization.invites(**terms)
    record = peer.post(path, decode_json(invited["invitation"]), **query)
    theirs = record["connection_id"]
    reaches(organization, f"/connections/{invited['connectionId']}", "Connected")
    peer.until(f"/connections/{theirs}", state="active")
    return invited["connectionId"], theirs


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """What the processes said last stands below the failure."""
    report = yield
    if report.failed:
        report.sections += [
            (name, running.output()) for name, running in RUNNING.items()
        ]
    return report


@pytest.fixture(scope="session")
def starting(tmp_path_factory):
    """The Agency before it is ready: it becomes so beside the ledger and the peers."""
    running = Agency(tmp_path_factory.mktemp("agency"))
    try:
        running.start_services()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def agency(starting, indy_pool, endorser_seed):
    """With the network `indy`, on which organizations are endorsed."""
    starting.wait_until_ready()
    seed = base64.b64encode(endorser_seed).decode()
    genesis = ("--genesis", str(indy_pool.genesis), "--endorser")
    starting.run_command(
        "add_network", "--id", "indy", "--name", "Indy", *genesis, ENDORSER_SEED=seed
    )
    return starting


@pytest.fixture(scope="session")
def tails():
    server = Tails()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def starts(tmp_path_factory, indy_pool, tails):
    """A function that starts a peer: an endorser on the ledger, or a liar if asked."""
    started = []

    def start(release, label):
        try:
            program(release)
        except LookupError as error:
            without(str(error))
        seed = base64.b64encode(indy_pool.register("ENDORSER")).decode()
        ledger = ("--genesis-file", str(indy_pool.genesis), "--seed", seed)
        revocation = (
            "--tails-server-base-url",
            tails.url,
            "--tails-server-upload-url",
            tails.url,
        )
        folder = tmp_path_factory.mktemp(label)
        public = ("--public-invites", "--requests-through-public-did")
        options = (*ledger, *revocation, *public, "--plugin", "forger")
        RUNNING[label] = agent = Acapy(release, folder, label, *options)
        started.append(agent)
        return agent

    yield start
    for agent in started:
        agent.stop()


@pytest.fixture(scope="session")
def acapy(starting, starts):
    """ACA-Py 0.12.8."""
    return starts(FIRST, "Rex").wait_until_ready()


@pytest.fixture(scope="session")
def current(starting, starts):
    """The current ACA-Py, with the formats `anoncreds/*`."""
    return starts(CURRENT, "Newman").wait_until_ready()


@pytest.fixture(scope="session")
def current_indy(starting, starts):
    """The current ACA-Py with a wallet of the older kind and formats `hlindy/*`."""
    return starts(CURRENT_INDY, "Indira").wait_until_ready()


@pytest.fixture(scope="session")
def faber(agency):
    """An organization that publishes on the ledger."""
    return agency.organization("Faber College", "indy")


@pytest.fixture(scope="session")
def degree(faber, indy_pool):
    """A definition of Faber's that supports revocation."""
    made = faber.defines(*VALUES, supportRevocation=True)
    indy_pool.settle()
    return made["definitionId"]


@pytest.fixture(scope="session")
def links(faber):
    """A function that returns (our id, their id) of a peer that Faber invited.

    There is one for each version: connections 1.0 for the first, DID exchange for the
    second.
    """

    @functools.cache
    def link(peer, version):
        if version == "1.0":
            return receives(peer, faber, name=peer.label, exchangeVersion="1.0")
        return receives(peer, faber, "didexchange/1.1")

    return link


@pytest.fixture(scope="session")
def visits(faber):
    """A function that returns a new wallet and (our id, their id) of its connection.

    A peer invited the wallet. There is one for each version.
    """

    @functools.cache
    def visit(peer, version):
        wallet = faber.hosts("Alice")
        handshake = "connections/1.0" if version == "1.0" else "didexchange/1.1"
        link = accepts(wallet, peer, handshake)
        wallet.put(f"/connections/{link[0]}/protocols", {"exchangeVersion": version})
        return wallet, link

    return visit


@pytest.fixture(scope="session")
def newly_met(faber):
    """A function: a new wallet, and (our id, their id) of its connection."""

    def meet(peer):
        wallet = faber.hosts("Dora")
        return wallet, accepts(wallet, peer, "didexchange/1.1")

    return meet


@pytest.fixture(scope="session")
def defined(indy_pool):
    """A function that answers a peer's definition, which supports revocation."""

    @functools.cache
    def define(peer):
        return definitions.define(peer, list(VALUES), indy_pool.settle)

    return define


@pytest.fixture(scope="session")
def starts_credo(tmp_path_factory):
    """A function that starts a release of Credo."""
    started = []

    def start(release, **options):
        try:
            folder = tmp_path_factory.mktemp("credo")
            started.append(Credo(folder, release, **options))
        except LookupError as error:
            pytest.skip(str(error))  # in CI too: not every machine has a C++ compiler
        RUNNING[folder.name] = started[-1]
        return started[-1].wait_until_ready()

    yield start
    for one in started:
        one.stop()


@pytest.fixture(scope="package")
def hosts(tmp_path_factory):
    hosts = Hosts(tmp_path_factory.mktemp("hosts"))
    yield hosts
    hosts.server.stop()


@pytest.fixture(scope="package")
def agency_on_web(hosts, tmp_path_factory):
    """Another Agency, behind TLS under a public name. It knows no ledger."""
    path = [os.path.dirname(hosts.authorities), str(settings.BASE_DIR)]
    hosts.agency = running = Agency(
        tmp_path_factory.mktemp("agency"),
        PUBLIC_URL=f"https://{AGENCY_HOST}",
        ALLOWED_HOSTS=f"127.0.0.1,.{AGENCY_HOST}",
        OUTGOING_CA_FILE=hosts.authorities,
        PYTHONPATH=os.pathsep.join(path),
    )
    try:
        running.start_services()
        running.wait_until_ready()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="package")
def credo_on_web(hosts, starts_credo):
    """The current Credo, which reaches the Agency behind TLS by its name."""
    return starts_credo(
        CURRENT_CREDO,
        authorities=hosts.authorities,
        agentPort=free_port(),
        leads=hosts.leads,
    )


@pytest.fixture(scope="session")
def office(starting):
    """An organization on the local network: whoever uses it reads no ledger."""
    starting.wait_until_ready()
    return starting.organization("Office")


@pytest.fixture(params=HANDSHAKES, ids="-".join)
def spoken_to(request):
    """(peer, protocol of the handshake)."""
    return request.getfixturevalue(request.param[0]), request.param[1]


@pytest.fixture(params=["acapy", "current"])
def either(request):
    """Both releases of ACA-Py, one after the other."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=EITHER, ids="-".join)
def spoken(request):
    """(peer, version of issue-credential and present-proof)."""
    return request.param


@pytest.fixture
def peer(request, spoken):
    return request.getfixturevalue(spoken[0])


@pytest.fixture
def version(spoken):
    return spoken[1]


@pytest.fixture
def link(links, peer, version):
    """(our id, their id) of a connection of Faber with this protocol version."""
    return links(peer, version)


@pytest.fixture
def visit(visits, peer, version):
    """(our id, their id) of a connection of Alice with this protocol version."""
    return visits(peer, version)[1]


@pytest.fixture
def alice(visits, peer, version):
    """A wallet that the organization hosts, one for each peer and version."""
    return visits(peer, version)[0]


@pytest.fixture
def their_definition(defined, peer):
    return defined(peer)


@pytest.fixture
def issuance(peer, version):
    return Issuance(peer, version)


@pytest.fixture
def proof(peer, version):
    return Proof(peer, version)


@pytest.fixture
def badge(alice, visit, issuance, their_definition):
    """A function by which a peer issues to Alice; answers (our id, its record)."""

    def issue(**values):
        record = issuance.offer(visit[1], their_definition, VALUES | values)
        offered = the_offer(alice)
        alice.post(f"/credentials/{offered}")
        reaches(alice, f"/credentials/{offered}", "Issued")
        return offered, issuance.until(record, "done")

    return issue
