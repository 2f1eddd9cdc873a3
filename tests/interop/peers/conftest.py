"""The Agency and the peers of the run: processes that all tests share."""

import base64

import pytest

from connections.didcomm.message import decode_json
from tests.interop.conftest import without
from tests.interop.peers.acapy import CURRENT, FIRST, Acapy, program
from tests.interop.peers.agency import Agency, reaches
from tests.interop.peers.exchanges import Issuance, Proof
from tests.interop.peers.tails import Tails

PROCESSES = ("starting", "acapy", "current")
VALUES = {"Full Name": "Alice Åkerlund", "level": "7"}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """What the processes said last stands below the failure."""
    report = yield
    if report.failed:
        running = [name for name in PROCESSES if name in item.funcargs]
        report.sections += [(name, item.funcargs[name].output()) for name in running]
    return report


@pytest.fixture(scope="session")
def starting(tmp_path_factory):
    """The Agency before it is ready: it becomes so beside the ledger and the peers."""
    running = Agency(tmp_path_factory.mktemp("agency"))
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def agency(starting, indy_pool, endorser_seed):
    """With the network `indy`, on which organizations are endorsed."""
    starting.wait_until_ready()
    seed = base64.b64encode(endorser_seed).decode()
    genesis = ("--genesis", str(indy_pool.genesis), "--endorser")
    starting.manage("add_network", "--id", "indy", "--name", "Indy", *genesis, ENDORSER_SEED=seed)
    return starting


@pytest.fixture(scope="session")
def tails():
    server = Tails()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def starts(tmp_path_factory, indy_pool, tails):
    """A function that starts a peer: an endorser on the ledger of the run."""
    started = []

    def start(release, label, *options):
        try:
            program(release)
        except LookupError as error:
            without(str(error))
        seed = base64.b64encode(indy_pool.register("ENDORSER")).decode()
        ledger = ("--genesis-file", str(indy_pool.genesis), "--seed", seed)
        revocation = ("--tails-server-base-url", tails.url, "--tails-server-upload-url", tails.url)
        folder = tmp_path_factory.mktemp(label)
        started.append(Acapy(release, folder, label, *ledger, *revocation, *options))
        return started[-1]

    yield start
    for agent in started:
        agent.stop()


@pytest.fixture(scope="session")
def acapy(starting, starts):
    """ACA-Py 0.12.8."""
    return starts(FIRST, "Rex").wait_until_ready()


@pytest.fixture(scope="session")
def current(starting, starts):
    """The current ACA-Py."""
    return starts(CURRENT, "Newman").wait_until_ready()


@pytest.fixture(scope="session")
def faber(agency):
    """An organization that publishes on the ledger."""
    return agency.organization("Faber College", "indy")


@pytest.fixture(scope="session")
def alice(faber):
    """A wallet that the organization hosts."""
    return faber.hosts("Alice")


@pytest.fixture(scope="session")
def as_inviter(faber, acapy):
    """(our id, their id) of a connection that Faber invited to, by connections/1.0."""
    invited = faber.invites(name="Rex")
    invitation = decode_json(invited["invitation"])
    theirs = acapy.post("/connections/receive-invitation", invitation)["connection_id"]
    reaches(faber, f"/connections/{invited['connectionId']}", "Connected")
    acapy.until(f"/connections/{theirs}", state="active")
    return invited["connectionId"], theirs


@pytest.fixture(scope="session")
def by_exchange(faber, acapy):
    """(our id, their id) of a connection that Faber invited to out of band, by DID exchange."""
    invited = faber.invites(protocol="out-of-band", handshakes=["didexchange/1.1"])
    invitation = decode_json(invited["invitation"])
    theirs = acapy.post("/out-of-band/receive-invitation", invitation)["connection_id"]
    reaches(faber, f"/connections/{invited['connectionId']}", "Connected")
    acapy.until(f"/connections/{theirs}", state="active")
    return invited["connectionId"], theirs


@pytest.fixture(scope="session")
def as_invitee(alice, acapy):
    """(our id, their id) of a connection that ACA-Py invited Alice to, by connections/1.0."""
    invited = acapy.post("/connections/create-invitation")
    ours = alice.accepts_invitation(invited["invitation_url"])["connectionId"]
    reaches(alice, f"/connections/{ours}", "Connected")
    acapy.until(f"/connections/{invited['connection_id']}", state="active")
    return ours, invited["connection_id"]


@pytest.fixture(scope="session")
def degree(faber):
    """A definition of Faber's that supports revocation."""
    return faber.defines(*VALUES, supportRevocation=True)["definitionId"]


@pytest.fixture(scope="session")
def their_definition(acapy):
    """A definition of ACA-Py's that supports revocation."""
    schema = {"schema_name": "badge", "schema_version": "1.0", "attributes": list(VALUES)}
    schema_id = acapy.post("/schemas", schema)["schema_id"]
    body = {"schema_id": schema_id, "support_revocation": True, "revocation_registry_size": 16}
    return acapy.post("/credential-definitions", body | {"tag": "first"})[
        "credential_definition_id"
    ]


@pytest.fixture(params=["1.0", "2.0"])
def version(request):
    """Of issue-credential and present-proof."""
    return request.param


@pytest.fixture
def issuance(acapy, version):
    return Issuance(acapy, version)


@pytest.fixture
def proof(acapy, version):
    return Proof(acapy, version)
