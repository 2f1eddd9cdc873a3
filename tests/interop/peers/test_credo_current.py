"""The current Credo as a wallet: with an endpoint, without one, and with a mediator.

Nothing here reads a ledger: the organization is on the local network.
"""

from functools import partial

import pytest

from connections.didcomm.message import PREFIX
from tests.interop.peers.agency import neighbour_of, revoke_after_request
from tests.interop.peers.conftest import VALUES
from tests.interop.peers.credo import CURRENT
from tests.support.processes import eventually, free_port
from tests.support.rounds import ROUNDS

VERSIONS = ("1.0", "2.0")
KINDS = ("reachable", "mediated", "phone")


@pytest.fixture(scope="module")
def definition(office):
    return office.defines(*VALUES)["definitionId"]


@pytest.fixture(scope="module")
def revocable(office):
    return office.defines(*VALUES, supportRevocation=True)["definitionId"]


@pytest.fixture(scope="module")
def starts_current(starting, starts_credo):
    return partial(starts_credo, CURRENT, ledger=f"{starting.url}/ledger/local")


@pytest.fixture(scope="module")
def reachable(starts_current):
    return starts_current(agentPort=free_port())


@pytest.fixture(scope="module")
def phone(starts_current):
    """Without an endpoint: it gets messages in the responses to its own calls."""
    return starts_current()


@pytest.fixture(scope="module")
def mediated(starts_current):
    """Another Credo keeps its messages until it asks for them."""
    mediator = starts_current(agentPort=free_port(), isMediator=True)
    return starts_current(mediatorInvitation=mediator.does("invite")["url"])


@pytest.fixture(params=KINDS)
def credo(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


def connects(office, credo, **terms):
    """(our id, its id) of a new connection."""
    invited = office.invites(name="Credo", **terms)
    name = "oob" if "protocol" in terms else "c_i"
    url = f"{invited['invitationUrl']}?{name}={invited['invitation']}"
    theirs = credo.does("accept", url=url)["id"]
    credo.until(theirs, "completed")
    office.reaches(f"/connections/{invited['connectionId']}", "Connected")
    return invited["connectionId"], theirs


@pytest.fixture
def link(office, credo, version):
    return connects(office, credo, exchangeVersion=version)


def offers(office, definition, connection):
    body = {
        "definitionId": definition,
        "connectionId": connection,
        "credentialValues": VALUES,
        "automaticIssuance": True,
    }
    return f"/credentials/{office.post('/credentials', body)['credentialId']}"


def asks(office, connection):
    body = {"name": "P", "version": "1.0", "attributes": [{"policyName": "Full Name"}]}
    body["predicates"] = [
        {"attributeName": "level", "predicateType": ">=", "predicateValue": 7}
    ]
    made = office.post(f"/verifications/policy/connections/{connection}", body)
    return f"/verifications/{made['verificationId']}"


def received(credo, what, connection, state):
    """The newest offer or request on a connection, once it has come.

    Whoever has no endpoint must ask for it.
    """

    def look():
        credo.does("ping", connection)
        found = [one for one in credo.does(what, connection) if one["state"] == state]
        return found[-1] if found else None

    return eventually(look)


def takes(credo, connection):
    offered = received(credo, "offers", connection, "offer-received")["id"]
    credo.does("take", offered)
    received(credo, "offers", connection, "credential-received")
    assert credo.does("store", offered)["state"] == "done"


def test_credo_connects(office, credo):
    for terms in (
        {},
        {"protocol": "out-of-band", "handshakes": ["connections/1.0"]},
        {"protocol": "out-of-band", "handshakes": ["didexchange/1.1"]},
    ):
        connects(office, credo, **terms)
    invited = office.invites(name="Credo", protocol="both")
    url = f"{invited['invitationUrl']}?c_i={invited['invitation']}"
    url += f"&oob={invited['outOfBandInvitation']}"
    credo.until(credo.does("accept", url=url)["id"], "completed")
    path = f"/connections/{invited['connectionId']}"
    office.reaches(path, "Connected")
    assert office.get(f"{path}/protocols")["handshake"] == "didexchange/1.1"


def test_credo_is_issued_a_credential_and_proves_it(
    office, definition, credo, link, version
):
    path = offers(office, definition, link[0])
    takes(credo, link[1])
    assert office.reaches(path, "Issued")["threadId"]
    path = asks(office, link[0])
    asked = received(credo, "requests", link[1], "request-received")
    assert asked["protocolVersion"] == f"v{version[0]}"
    credo.does("prove", asked["id"])
    shown = office.reaches(path, "Accepted")
    assert shown["isValid"], shown["checks"]


def asks_whether_it_is_revoked(office, definition, credo, link):
    """(our path, the id at Credo) of a request for a credential that is not revoked."""
    restrictions = [{"credentialDefinitionId": definition}]
    body = {"name": "P", "version": "1.0", "revocationRequirement": {"validNow": True}}
    body |= {"attributes": [{"policyName": "level", "restrictions": restrictions}]}
    made = office.post(f"/verifications/policy/connections/{link[0]}", body)
    asked = received(credo, "requests", link[1], "request-received")["id"]
    return f"/verifications/{made['verificationId']}", asked


def test_credo_proves_a_credential_until_it_is_revoked(
    office, revocable, credo, link, version
):
    path = offers(office, revocable, link[0])
    takes(credo, link[1])
    office.reaches(path, "Issued")
    proof, asked = asks_whether_it_is_revoked(office, revocable, credo, link)
    credo.does("prove", asked)
    shown = office.reaches(proof, "Accepted")
    assert shown["isValid"] is True, shown["checks"]
    office.delete(path)
    assert office.get(path)["state"] == "Revoked"
    eventually(lambda: is_told_of_revocation(credo, link[1]))
    proof, asked = asks_whether_it_is_revoked(office, revocable, credo, link)
    with pytest.raises(AssertionError, match="Unable to automatically select"):
        credo.does("prove", asked)
    credo.does("prove", asked, evenRevoked=True)
    shown = office.reaches(proof, "Accepted")
    assert shown["isValid"] is False


@pytest.mark.parametrize("credo", ["reachable"], indirect=True)
def test_credo_is_believed_while_somebody_else_is_revoked(
    office, revocable, credo, link
):
    path = offers(office, revocable, link[0])
    takes(credo, link[1])
    held = office.reaches(path, "Issued")
    for _ in range(ROUNDS):
        neighbour = neighbour_of(office, revocable, VALUES)
        registry = office.get(neighbour)["revocationRegistryId"]
        assert registry == held["revocationRegistryId"]
        proof, asked = asks_whether_it_is_revoked(office, revocable, credo, link)
        revoke_after_request(office, neighbour)
        credo.does("prove", asked)
        shown = office.reaches(proof, "Accepted")
        assert shown["isValid"] is True, shown["checks"]


def is_told_of_revocation(credo, connection):
    credo.does("ping", connection)
    return any(one["isRevoked"] for one in credo.does("offers", connection))


def test_what_credo_declines_is_rejected(office, definition, credo, link):
    path = offers(office, definition, link[0])
    offered = received(credo, "offers", link[1], "offer-received")["id"]
    assert credo.does("decline", offered)["state"] == "declined"
    office.reaches(path, "Rejected")
    path = asks(office, link[0])
    asked = received(credo, "requests", link[1], "request-received")["id"]
    assert credo.does("refuse", asked)["state"] == "declined"
    office.reaches(path, "Rejected")


def test_credo_is_asked_what_it_speaks(office, definition, reachable, mediated):
    """On a slow machine its answer may come after the first offer was made."""
    for credo in (reachable, mediated):
        ours, theirs = connects(office, credo)
        protocols = f"/connections/{ours}/protocols"
        assert office.get(protocols)["issueCredential"] == "1.0"
        offers(office, definition, ours)
        disclosed = eventually(lambda path=protocols: office.get(path)["disclosed"])
        assert "issue-credential/2.0" in disclosed
        offers(office, definition, ours)
        eventually(lambda who=credo, where=theirs: has_second_version(who, where))


def has_second_version(credo, connection):
    found = credo.does("offers", connection)
    return "v2" in [one["protocolVersion"] for one in found]


def test_credo_takes_an_offer_by_link(office, definition, credo, version):
    made = offers_by_link(office, definition, version)
    takes_by_link(credo, made, "credential-received")
    office.reaches(f"/credentials/{made['credentialId']}", "Issued")


def test_credo_is_told_in_its_own_version_that_an_offer_was_taken(
    office, definition, credo, other, version
):
    """Its handler gets the report, but looks among the invitations that it has sent.

    So only its log shows it.
    """
    made = offers_by_link(office, definition, version)
    takes_by_link(other, made, "credential-received")
    takes_by_link(credo, made, "request-sent")
    kind = f"issue-credential/{version}/problem-report"
    eventually(lambda: f"Error handling message with type {PREFIX}{kind}" in log(credo))
    assert f"CredentialV{version[0]}ProblemReportHandler.handle" in log(credo)
    assert "offer_taken" in log(credo)


def log(credo):
    return credo.log.read_text()


@pytest.fixture(scope="module")
def other(starts_current):
    return starts_current()


def offers_by_link(office, definition, version):
    body = {"definitionId": definition, "credentialValues": VALUES}
    body |= {"protocol": "out-of-band", "exchangeVersion": version}
    return office.post("/credentials", body | {"automaticIssuance": True})


def takes_by_link(credo, made, state):
    before = {one["id"] for one in credo.does("offers", "all")}
    credo.does("accept", url=f"{made['offerUrl']}?oob={made['offerData']}")

    def new():
        return [one for one in credo.does("offers", "all") if one["id"] not in before]

    [offered] = eventually(new)
    credo.does("take", offered["id"])
    eventually(lambda: state_of(credo, offered["id"]) == state)


def state_of(credo, offered):
    return credo.does("credential", offered)["state"]
