"""docs/operations/upgrade.md, line by line: two hosts behind a balancer, in use.

From the release before, whose database has data of every kind, to this version, and
back by the link.
"""

import contextlib
import json
import re
import shutil
import time
from collections import Counter, defaultdict
from threading import Event, Thread

import pytest
import requests

from agency_cli.client import AgencyClient, Unreachable
from core.version import __version__, describe_version
from tests.chaos.ledger import Ledger
from tests.chaos.receivers import receiving
from tests.chaos.stories import NotYet, Pair, careful
from tests.production.__main__ import copy_product
from tests.releases.former import read_known, unpack_source
from tests.releases.hosts import Host, balancer, install, read_blocks
from tests.releases.test_upgrade_under_load import running
from tests.support.paths import DOCS, ROOT
from tests.support.people import ApiError
from tests.support.processes import PATIENCE, eventually

pytestmark = [pytest.mark.timeout(600), pytest.mark.needs("haproxy")]
PAGE = (DOCS / "operations" / "upgrade.md").read_text()
STEPS = ("meet", "offer", "write", "ask", "decline", "offer", "wish")
# As the pages of 0.1.0 had one for each line of its Procfile.
FORMER_UNIT = """
WorkingDirectory=/opt/agency/current
ExecStart=env PYTHONPATH=. sh -c "exec $(sed -n 's/^%i: //p' Procfile)"
"""
BALANCED_SECONDS = 3.0  # until the balancer calls a host again
HOOKED = ["new_connection", "credential_request", "verification"]
ALL = ["worker", "deliver", "beat", "web", "stream"]


@pytest.fixture
def hosts(home, servers, former_release):
    """The first has all processes, the second a web server only."""
    given = servers | {
        "STORAGE_ROOT": str(home / "storage"),
        "WEB_PROCESSES": "1",
        "STATIC_USE_FINDERS": "0",
        "LEDGER_TIMEOUT": "0.5",  # nobody is there
    }
    first = Host(home / "first", ALL, **given)
    second = Host(home / "second", ["web"], **given)
    first.releases.mkdir()
    second.releases.symlink_to(first.releases)
    former = unpack_source(former_release, first.releases / former_release.name)
    (former / "var").mkdir()  # where its beat keeps a file
    install(former)
    for host in (first, second):
        (host.folder / "opt" / "agency" / "current").symlink_to(former)
        host.unit.write_text(FORMER_UNIT)
    first.run(
        f"release=/opt/agency/releases/{former_release.name}\nmanage collectstatic --no-input"
    )
    yield first, second
    for host in (first, second):
        host.processes.supervisor.stop(grace=5)


class Load:
    """Two holders and an office that do one step after the other, and its program.

    That has a webhook, and reads the stream: `told` are the events that it got there.
    """

    def __init__(self, url, headers, receiver_url):
        callers = [careful(url, headers) for _ in range(4)]
        self.clients = [one.client for one in callers]
        office, *_ = callers
        _, _, number = receiver_url.rpartition(":")  # each load has another receiver
        definition = office.defines(
            "name", "degree", name="Degree", version=f"1.{number}"
        )
        self.pairs = [
            Pair(*callers[:2], definition, 1),
            Pair(*callers[2:], definition, 2),
        ]
        body = {"url": f"{receiver_url}/office/steady", "messageTypes": HOOKED}
        office.post("/webhooks", body | {"type": "Zapier"})
        self.program = AgencyClient(url, "")
        self.program.headers = headers
        _, self.cursor = self.program.read_page("now")
        self.told = set()
        office.client.counts.clear()  # a definition may have waited for its key

    def act(self, pair):
        """A function that does all steps once."""

        def do_steps():
            for name in STEPS:
                with contextlib.suppress(ApiError, NotYet):  # its message is on its way
                    getattr(pair, name)()
                time.sleep(0.5)  # else most of the machine were theirs

        return do_steps

    def read_stream(self, over):
        while not over.is_set():
            with contextlib.suppress(Unreachable):
                for event in self.program.stream(self.cursor):
                    self.cursor = event.cursor
                    if event.body:
                        self.told.add(canonical(event.body))
            over.wait(0.2)

    def acknowledged(self):
        return set().union(*(one.acknowledged for one in self.clients))

    @property
    def counts(self):
        return sum((one.counts for one in self.clients), Counter())


def canonical(body):
    return json.dumps(json.loads(body), sort_keys=True)


def ready(host):
    """What its balancer is told: status and version."""
    answer = requests.get(f"{host.url}/health/ready", timeout=30)
    return answer.status_code, answer.json().get("version", answer.text)


def read_steps(backup):
    """The commands of each step of the page, by its number. backup: a new folder."""
    steps = re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |^With Docker)", PAGE, re.M | re.S)
    text = {int(number): "".join(read_blocks(step)) for number, step in steps}
    return {number: step.replace("DIR", str(backup)) for number, step in text.items()}


def upgrade(hosts, steps, former):
    """Steps 3 to 10. The hosts share the folders of releases, so one prepares them."""
    first, second = hosts
    first.run(steps[3])
    assert first.variables["release"].endswith(f"/{__version__}")
    second.variables = first.variables
    first.run(steps[4])
    said = first.run(steps[5], expected=1)
    assert f"Agency {describe_version()}." in said
    assert "not applied: run manage.py migrate" in said
    assert "This check failed" not in said
    first.run(steps[6])
    for host in hosts:
        assert ready(host) == (200, former)
        host.run(steps[7])
    for host in hosts:
        host.run(steps[8])
    for host in hosts:
        told = json.loads(host.run(steps[9]))
        assert f"{told['version']}+{told['build']}" == describe_version()
        time.sleep(BALANCED_SECONDS)
    schema, doctor = steps[10].splitlines()
    first.run(schema)
    eventually(lambda: "warning versions" not in first.run(doctor), PATIENCE)
    status = requests.get(f"{first.url}/health/status", timeout=30).json()
    assert former not in json.dumps(status)


def go_back(hosts):
    """Link, unit and web servers of one host after the other, then the rest."""
    commands = read_blocks(PAGE.partition("## How to go back")[2])[0].splitlines()
    for host in hosts:
        host.run("\n".join(commands[:4]))
        assert ready(host)[1] != __version__
        time.sleep(BALANCED_SECONDS)
    for host in hosts:
        host.run("\n".join(commands[4:]))


@pytest.fixture
def busy(home, servers, hosts, former_release):
    """A function: within it the hosts, which run, are called. Then nothing is lost."""

    @contextlib.contextmanager
    def call_hosts(check="/health/ready"):
        ledger, over = Ledger(servers["DATABASE_URL"]), Event()
        known = read_known(former_release)
        with receiving(1) as receivers, balancer(home, hosts, check) as url:
            for host in hosts:
                host.processes.supervisor.environment["PUBLIC_URL"] = url
                host.restart(ALL)
            headers = known["headers"]["organization"]
            load = Load(url, headers, receivers.url)
            before = {event.id for event in ledger.events()}
            reader = Thread(target=load.read_stream, args=[over], daemon=True)
            reader.start()
            with running(*map(load.act, load.pairs)):
                yield
            assert set(load.counts) == {"2xx"}, load.counts
            assert load.counts.total() > 50
            events = [
                event
                for event in ledger.events()
                if event.id not in before and event.tenant == known["tenant"]
            ]
            assert load.acknowledged() <= announced(events)
            bodies = {canonical(one.body) for one in events}
            eventually(lambda: load.told >= bodies, PATIENCE)
            hooked = {f"msg_{one.id}" for one in events if is_hooked(one)}
            eventually(lambda: answered(receivers) >= hooked, PATIENCE)
            assert answered(receivers) == hooked
            print(
                f"{dict(load.counts)}, {len(events)} events, {len(hooked)} by webhook"
            )
            over.set()

    return call_hosts


def announced(events):
    """(object id, state) of each, of whose object none is missing or there twice."""
    numbers = defaultdict(list)
    for event in events:
        numbers[event.object_key].append(event.sequence)
    for found in numbers.values():
        assert sorted(found) == list(range(min(found), max(found) + 1))
    bodies = [json.loads(event.body) for event in events]
    return {(body["object_id"], body.get("state")) for body in bodies}


def is_hooked(event):
    return json.loads(event.body)["message_type"] in HOOKED


def answered(receivers):
    return {call.id for call in receivers.calls if call.status == 200}


@pytest.fixture
def release(hosts):
    """The folder of this version, as a clone."""
    folder = hosts[0].releases / __version__
    copy_product(folder)
    shutil.copytree(ROOT / "deploy", folder / "deploy")
    install(folder)


def test_upgrade_and_way_back_fail_no_call_and_lose_no_event(
    home, former_release, hosts, release, busy
):
    with busy():
        upgrade(hosts, read_steps(home / "backup"), former_release.name)
    with busy(check="/health"):  # as the page says of 0.1.0
        go_back(hosts)
