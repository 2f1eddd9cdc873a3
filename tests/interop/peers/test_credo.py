"""What Credo's ways with problem reports make of an offer and of an invitation."""

import pytest

from tests.interop.peers.conftest import VALUES
from tests.interop.peers.credo import FIRST
from tests.support.processes import eventually, free_port

REFUSED = "issue-credential/1.0/problem-report refused"


@pytest.fixture(scope="module")
def definition(office):
    return office.defines(*VALUES)["definitionId"]


@pytest.fixture(scope="module")
def credo(starts_credo):
    return starts_credo(FIRST, agentPort=free_port())


@pytest.fixture(scope="module")
def other_credo(starts_credo):
    return starts_credo(FIRST, agentPort=free_port())


@pytest.fixture
def link(office, credo):
    """(our id, its id) of a new connection, by the long link."""
    invited = office.invites(name="Credo")
    theirs = credo.does("accept", url=long_link(invited))["id"]
    office.reaches(f"/connections/{invited['connectionId']}", "Connected")
    credo.until(theirs, "completed")
    return invited["connectionId"], theirs


def long_link(invited):
    return f"{invited['invitationUrl']}?c_i={invited['invitation']}"


def offer(office, definition, connection):
    body = {
        "definitionId": definition,
        "connectionId": connection,
        "credentialValues": VALUES,
    }
    return f"/credentials/{office.post('/credentials', body)['credentialId']}"


def offers_at(credo, connection, count=1):
    def look():
        found = credo.does("offers", connection)
        open_ones = [one for one in found if one["state"] == "offer-received"]
        return open_ones if len(open_ones) == count else None

    return eventually(look)


def test_an_offer_that_credo_declines_is_rejected(office, definition, credo, link):
    """Its problem report of version 1.0 names no thread."""
    path = offer(office, definition, link[0])
    [offered] = offers_at(credo, link[1])
    assert offered["protocolVersion"] == "v1"
    assert credo.does("decline", offered["id"])["state"] == "declined"
    office.reaches(path, "Rejected")


def test_of_two_open_offers_none_is_taken_for_the_declined_one(
    office, definition, credo, link, capsys
):
    paths = [offer(office, definition, link[0]) for _ in range(2)]
    declined, _ = offers_at(credo, link[1], count=2)
    capsys.readouterr()
    credo.does("decline", declined["id"])
    eventually(lambda: REFUSED in capsys.readouterr().out)
    assert {office.get(path)["state"] for path in paths} == {"Offered"}


def test_credo_is_told_in_its_own_words_that_an_invitation_is_used_up(
    office, credo, other_credo
):
    """Credo's handler gets the report, but finds no DID of ours to record it for.

    So only its log shows it.
    """
    invited = office.invites(name="Credo")
    credo.until(credo.does("accept", url=long_link(invited))["id"], "completed")
    second = other_credo.does("accept", url=long_link(invited))["id"]
    handled = "ConnectionProblemReportHandler.handle"
    eventually(lambda: handled in other_credo.log.read_text())
    assert "The invitation was used already." in other_credo.log.read_text()
    assert other_credo.does("connection", second)["state"] == "request-sent"
