"""An organization moves from one cell to another behind one address. # slow

haproxy leads calls by deploy/cells. An agent of somebody else goes on writing to the
organization, which goes on issuing and verifying; nobody is told of the move.
"""

import base64
import contextlib
import json
import time
from threading import Event, Thread

import pytest
import requests

from agency.devtools.embedded import postgres, valkey
from agency.ops.healthcheck import probe_health
from connections.protocols import basic_message, connections_1_0
from tests.agency.ops.test_moving import new_key
from tests.chaos.ledger import Ledger
from tests.chaos.receivers import receiving
from tests.chaos.stories import Writers, careful
from tests.chaos.test_chaos import settle
from tests.chaos.world import make_world
from tests.support.cells import directory
from tests.support.outside_agent import Agent, listening
from tests.support.processes import PATIENCE, eventually, processes, same_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.needs("haproxy"),
]
SERVICES = ("worker", "deliver", "beat")
ASKED = {"policyName": "who", "attributeNames": ["name"]}
POLICY = {"name": "Policy", "version": "1.0", "attributes": [ASKED]}


class Partner(Agent):
    """An agent of somebody else. It sends again what is not taken."""

    def __init__(self, url):
        super().__init__()
        self.url, self.over = f"{url}/didcomm", Event()
        self.written = []

    def says(self, body, to=None, anonymous=False):
        data, kind = self.pack(body, to), {"Content-Type": "application/ssi-agent-wire"}
        while True:
            with contextlib.suppress(requests.RequestException):
                answer = requests.post(self.url, data=data, headers=kind, timeout=30)
                if answer.status_code == 202:
                    return body
                assert answer.status_code == 503, answer.text
            if self.over.wait(0.2):
                return None

    def meets(self, invited):
        """Accept an invitation of the API."""
        coded = invited["invitation"]
        invitation = json.loads(base64.urlsafe_b64decode(coded + "=="))
        [signer] = invitation["recipientKeys"]
        before = len(self.inbox)
        self.requests(invitation)
        eventually(lambda: self.responses(before), PATIENCE)
        [response] = self.responses(before)
        self.their_key = connections_1_0.read_response(response, signer).verkey
        self.says(self.build(connections_1_0.ACK, response.thread_id, status="OK"))

    def responses(self, since):
        kind = connections_1_0.RESPONSE
        return [one for one in self.inbox[since:] if one.type == kind]

    def write(self):
        """Until it is over."""
        while not self.over.wait(0.3):
            text = f"Letter {len(self.written)}"
            if self.says(self.build(basic_message.MESSAGE, content=text)):
                self.written.append(text)

    def read(self):
        """The texts that it got, each once, in order of their arrival."""
        kind = basic_message.MESSAGE
        found = [one.body["content"] for one in self.inbox if one.type == kind]
        return list(dict.fromkeys(found))


@pytest.fixture
def front(home):
    with directory(home / "directory") as found:
        yield found


@pytest.fixture
def cells(home, front):
    """Two installations with one address, which share neither rows nor keys."""
    broker = valkey.start(home / "valkey", durable=False)
    given = {
        "PUBLIC_URL": front.url,
        "STREAM_URL": front.url,
        "TRUST_PROXY": "1",
        "AGENCY_MOVE_KEY": new_key(),
        "REVOCATION_FIRST_REGISTRY_SIZE": "4",
        "LEDGER_TIMEOUT": "1",
        "LOG_LEVEL": "ERROR",
    }
    own = {}
    for number, name in enumerate("ab"):
        (home / name).mkdir()
        own[name] = given | {
            "DATABASE_URL": postgres.start(home / name / "postgres", postgres.FAST),
            "REDIS_URL": same_server(broker, str(number)),
            "AGENCY_MASTER_KEY": new_key(),
        }
    with processes(home / "a", **own["a"]) as a, processes(home / "b", **own["b"]) as b:
        for cell in (a, b):
            for name in SERVICES:
                cell.start(name)
            cell.start("web")
        b.start("stream")
        for cell in (a, b):
            eventually(lambda cell=cell: probe_health(cell.port, cell.url), PATIENCE)
        yield a, b
    for name in "ab":
        postgres.stop(home / name / "postgres", "immediate")


@pytest.fixture
def receivers():
    with receiving(1) as found:
        found.heal()
        yield found


class Faber:
    """Its calls go to the public address."""

    def __init__(self, url, organization):
        self.url, self.tenant = url, organization["tenant"]
        self.api = careful(url, organization["headers"])
        alice = self.api.hosts()
        self.link = self.api.post(f"/api/wallets/{alice.wallet_id}/link")["link"]
        self.invited = self.api.post("/connections")
        self.page = self.invited["invitationUrl"]
        policy = self.api.post("/verificationPolicies", POLICY)["policyId"]
        made = self.api.post("/kiosks", {"name": "Desk", "policyId": policy})
        self.kiosk = made["url"]
        self.card = self.define(supportRevocation=True)
        self.met = self.api.post("/connections")

    def define(self, **more):
        named = {"name": f"Card {time.time()}"} | more
        return self.api.defines("name", **named)["definitionId"]

    def meets_somebody(self, invited):
        with listening(Partner(self.url)) as newcomer:
            newcomer.meets(invited)
            path = f"/connections/{invited['connectionId']}"
            eventually(lambda: self.api.get(path)["state"] == "Connected", PATIENCE)

    def read(self, path):
        return requests.get(f"{self.url}{path}", timeout=30)

    def statuses(self):
        """Of what people and other agents read, without any key."""
        metadata = f"/.well-known/jwt-vc-issuer/openid/{self.tenant}"
        definition = f"/ledger/local/credential-definitions/{self.card}"
        pages = [self.link, self.kiosk, self.page]
        paths = [page.removeprefix(self.url) for page in pages]
        paths += [metadata, definition]
        return {path: self.read(path).status_code for path in paths}


def test_an_organization_moves_and_nothing_is_lost(
    home, front, cells, receivers, tmp_path
):
    a, b = cells
    stays = make_world(b, receivers.url)["Acme"]  # it is in the other cell
    world = make_world(a, receivers.url)
    front.start(a=a, b=b)
    faber = Faber(
        front.url, world["Faber"]
    )  # the directory does not know what it makes
    front.update()
    assert set(faber.statuses().values()) == {200}
    writers = Writers(world, front.url, [("Faber", "Faber")])
    with listening(Partner(front.url)) as partner:
        partner.meets(faber.met)
        writing = Thread(target=partner.write, daemon=True)
        writing.start()
        writers.start(0.2)
        eventually(lambda: writers.steps()["offer"] > 1, PATIENCE)
        sent = [send(faber, 0)]

        file = tmp_path / "faber.move"
        assert a.manage(f"export_organization {faber.tenant} {file} --move") == 0
        assert b.manage(f"import_organization {file}") == 0
        front.update()

        done, written = writers.steps()["offer"], len(partner.written)
        eventually(lambda: writers.steps()["offer"] > done + 1, PATIENCE)
        eventually(lambda: len(partner.written) > written + 3, PATIENCE)
        sent.append(send(faber, 1))
        check_that_the_other_cell_serves(faber, a, b)
        check_new_keys(faber, front)
        partner.over.set()
        writing.join()
        writers.stop()

        here = Ledger(b.supervisor.environment["DATABASE_URL"])
        settle(here)
        assert writers.acknowledged() | writers.visible() <= here.announced()
        path = f"/messages/connection/{faber.met['connectionId']}"
        texts = [one["text"] for one in faber.api.get(path)]
        assert sorted(set(texts) - set(sent)) == sorted(partner.written)
        assert len(texts) == len(set(texts))
        eventually(lambda: partner.read() == sent, PATIENCE)
    acme = careful(front.url, stays["headers"])
    assert acme.post("/connections")["connectionId"]
    assert not writers.counts()["unanswered"]


def send(faber, number):
    text = f"Answer {number}"
    body = {"connectionId": faber.met["connectionId"], "text": text}
    faber.api.post("/messages", body)
    return text


def check_that_the_other_cell_serves(faber, a, b):
    """What changed since the move is read, not what the former cell still has."""
    assert set(faber.statuses().values()) == {200}
    faber.meets_somebody(faber.invited)  # its page is over then
    path = faber.page.removeprefix(faber.url)
    there, here, former = (
        requests.get(url + path, allow_redirects=False, timeout=30).status_code
        for url in (faber.url, b.url, a.url)
    )
    assert (there, here, former) == (410, 410, 302)
    studio = requests.get(
        f"{faber.url}/studio/organizations/{faber.tenant}",
        allow_redirects=False,
        timeout=30,
    )
    assert (studio.status_code, studio.cookies["cell"]) == (302, "b")
    path = f"{faber.url}/events/stream"
    given = {"headers": faber.api.headers, "stream": True, "timeout": 30}
    with requests.get(path, **given) as stream:
        assert stream.status_code == 200


def check_new_keys(faber, front):
    """What was made a moment ago is found by asking both cells."""
    assert faber.read(f"/ledger/local/credential-definitions/{faber.define()}").ok
    page = faber.api.post("/connections")["invitationUrl"].removeprefix(faber.url)
    assert faber.read(page).status_code == 200
    faber.meets_somebody(faber.api.post("/connections"))
    data = Agent().pack({}, Agent().verkey)
    answer = requests.post(f"{front.url}/didcomm", data=data, timeout=30)
    assert (answer.status_code, answer.json()["code"]) == (400, "cannot_open")
