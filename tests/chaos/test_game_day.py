"""The faults of docs/operations/game-day.md, one after the other, under load. # slow

Each is seen where that page says, and is over after what it says to do; then nothing
that was acknowledged is missing. The page tells the times that this test prints.
"""

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from agency.devtools.embedded import postgres, valkey
from agency.devtools.embedded.home import find_server
from agency.devtools.supervisor import read_procfile
from tests import fixtures
from tests.chaos.ledger import Ledger
from tests.chaos.receivers import receiving
from tests.chaos.stories import Writers
from tests.chaos.test_chaos import PARTS, settle
from tests.chaos.world import make_world
from tests.support.paths import ROOT
from tests.support.processes import eventually, own_servers, processes
from tests.support.wrong_clocks import wrong_clock

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.needs("tcc")]
TO_SEE, TO_HEAL = 60, 90  # seconds; so long a fault may take at most
PAUSE = 1.0  # seconds between two steps of a pair: the queues are not what is tried
METRICS_TOKEN = "for-prometheus"
GENESIS = Path(fixtures.__file__).with_name("indy_genesis.txt")
OTHER_KEY = "A" * 43 + "="
SERVICES = ("stream", "worker", "deliver", "beat")
# What is seen, or nothing yet. A fault yields it, and then does what the page says.
See = Callable[[], str | None]
Fault = Callable[["Day"], Iterator[See]]


class Day(NamedTuple):
    home: Path
    product: processes
    world: dict
    receivers: receiving

    def get(self, path: str, **headers: str) -> requests.Response | None:
        with contextlib.suppress(requests.RequestException):
            return requests.get(self.product.url + path, headers=headers, timeout=5)
        return None

    def seen_in_status(self, member: str) -> See:
        """What `/health/status` says of this member, while it is not well."""

        def see() -> str | None:
            answer = self.get("/health/status")
            if answer is None or answer.status_code != 503:
                return None
            return next(iter(answer.json()["errors"].get(member, [])), None)

        return see

    def is_well(self) -> bool:
        """All members are ok, and a call that writes is answered."""
        headers = self.world["Acme"]["headers"]
        status = self.get("/health/status")
        if status is None or status.status_code != 200:
            return False
        with contextlib.suppress(requests.RequestException):
            url = f"{self.product.url}/connections"
            return requests.post(url, json={}, headers=headers, timeout=5).ok
        return False

    def finding_of_doctor(self, name: str, **given: str) -> str | None:
        """What `manage.py doctor` says under this name, or None."""
        _, output = self.product.capture("doctor --json", **given)
        lines = [line for line in output.splitlines() if line.startswith("{")]
        found = [json.loads(line) for line in lines]
        return next((one["text"] for one in found if one.get("name") == name), None)

    def restart_web(self, **given: str) -> None:
        self.product.kill("web")
        self.product.start("web", **given)


def database_is_gone(day: Day) -> Iterator[See]:
    postgres.stop(day.home / "postgres", "immediate")
    yield day.seen_in_status("database")
    postgres.start(day.home / "postgres")


def disk_is_full(day: Day) -> Iterator[See]:
    ballast = day.home / "postgres" / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(b"0" * 2**20):
            pass
    yield day.seen_in_status("writes")
    ballast.unlink()
    data = day.home / "postgres" / "data"
    if not find_server(data / "postmaster.pid", data):
        postgres.start(day.home / "postgres")


def broker_is_gone(day: Day) -> Iterator[See]:
    folder = day.home / "valkey"
    if server := find_server(folder / "pid", folder):
        server.kill()
        server.wait(10)
    yield day.seen_in_status("broker")
    valkey.start(folder, durable=False)


def worker_is_dead(day: Day) -> Iterator[See]:
    day.product.kill("worker")
    yield day.seen_in_status("processes")
    day.product.start("worker")


def master_key_is_lost(day: Day) -> Iterator[See]:
    """The web server is started with another one, and answers nothing."""
    day.restart_web(AGENCY_MASTER_KEY=OTHER_KEY)
    code, output = day.product.capture("migrate --check", AGENCY_MASTER_KEY=OTHER_KEY)
    assert code != 0

    def see() -> str | None:
        lines = [line for line in output.splitlines() if "AGENCY_MASTER_KEY" in line]
        return None if day.get("/health") else lines[0].removeprefix("?: ")

    yield see
    day.restart_web()  # with the copy of the key
    code, output = day.product.capture("verify_keys")
    assert (code, "values open" in output) == (0, True)


def clock_is_an_hour_ahead(day: Day) -> Iterator[See]:
    wrong = wrong_clock(3600, day.home)
    day.restart_web(**wrong, WEB_PROCESSES="1")
    yield lambda: day.finding_of_doctor("clock", **wrong)
    day.restart_web()


def ledger_is_away(day: Day) -> Iterator[See]:
    code, output = day.product.capture(f"add_network --id candy --genesis {GENESIS}")
    assert code == 0, output
    yield lambda: day.finding_of_doctor("ledger")
    # Nothing is to be done here: what is to be published is kept. It is its network.
    code, output = day.product.capture(
        'shell -c "from tenants.models import Network; '
        "Network.objects.filter(pk='candy').delete()\""
    )
    assert code == 0, output


def endpoint_hangs(day: Day) -> Iterator[See]:
    day.receivers.hangs = True
    acme = day.world["Acme"]
    path = f"/webhooks/{acme['webhooks']['steady']}/deliveries"

    def see() -> str | None:
        answer = day.get(path, **acme["headers"])
        rows = answer.json() if answer is not None and answer.ok else []
        return next((row["error"] for row in rows if row.get("error")), None)

    yield see
    day.receivers.hangs = False


def key_is_stolen(day: Day) -> Iterator[See]:
    """Its use is seen in its row; revoked, it is refused at once."""
    tenant = day.world["Acme"]["tenant"]
    code, secret = day.product.capture(
        'shell -v 0 -c "from tenants.models import ApiKey, Tenant; print(ApiKey.issue('
        f"ApiKey.Kind.ACCESS_TOKEN, Tenant.objects.get(pk='{tenant}'), 'CI')[1])\""
    )
    assert code == 0, secret
    subscription = day.world["Acme"]["headers"]
    stolen = subscription | {"Authorization": f"Bearer {secret.split()[-1]}"}
    assert day.get("/connections", **stolen).status_code == 200
    yield lambda: "used" if day.get("/connections", **stolen).ok else None
    code, output = day.product.capture(
        'shell -v 0 -c "from tenants.models import ApiKey; '
        "ApiKey.objects.get(name='CI').revoke()\""
    )
    assert code == 0, output
    assert {day.get("/connections", **stolen).status_code for _ in range(10)} == {401}


def release_is_bad(day: Day) -> Iterator[See]:
    """A web server of a release that breaks on each list of connections."""
    release = day.home / "release"
    wanted = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    for name in wanted:
        if not name.startswith("tests/"):
            (release / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, release / name)
    broken = release / "connections" / "api" / "connections.py"
    listing = "    def list(self, request: Request) -> Response:\n"
    assert listing in broken.read_text()
    broken.write_text(broken.read_text().replace(listing, f"{listing}        1 / 0\n"))
    day.product.kill("web")
    command = f"env --chdir {release} {read_procfile()['web']}"
    day.product.supervisor.start("web", command)
    counted = 'route="connections",status="500"'

    def see() -> str | None:
        day.get("/connections", **day.world["Acme"]["headers"])
        token = {"Authorization": f"Bearer {METRICS_TOKEN}"}
        answer = day.get("/metrics", **token)
        lines = answer.text.splitlines() if answer is not None and answer.ok else []
        return next((line for line in lines if counted in line), None)

    yield see
    day.restart_web()


FAULTS: tuple[Fault, ...] = (
    database_is_gone, disk_is_full, broker_is_gone, worker_is_dead,
    master_key_is_lost, clock_is_an_hour_ahead, ledger_is_away, endpoint_hangs,
    key_is_stolen, release_is_bad,
)  # fmt: skip


@pytest.fixture
def small_disk(home):
    """Whether PostgreSQL has a small disk of its own: root may mount one."""
    folder = home / "postgres"
    folder.mkdir()
    size = ["mount", "-t", "tmpfs", "-o", "size=500m", "tmpfs", str(folder)]
    is_mounted = os.geteuid() == 0 and subprocess.run(size, check=False).returncode == 0
    yield is_mounted
    if is_mounted:
        postgres.stop(folder, "immediate")
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def day(home, small_disk):
    servers = own_servers(home, options=()) | {
        "METRICS_TOKEN": METRICS_TOKEN,
        "LOG_LEVEL": "CRITICAL",
        "WEB_PROCESSES": "2",
    }
    with receiving(seed=1) as receivers, processes(home, **servers) as product:
        receivers.healthy = True
        product.start_all(*SERVICES)
        world = make_world(product, receivers.url)
        yield Day(home, product, world, receivers)


def test_each_fault_is_seen_and_mended_and_nothing_is_lost(day, small_disk, capsys):
    ledger = Ledger(day.product.supervisor.environment["DATABASE_URL"])
    writers = Writers(day.world, day.product.url, PARTS)
    eventually(day.is_well, TO_HEAL)
    writers.start(PAUSE)
    for fault in FAULTS:
        is_missing = fault is disk_is_full and not small_disk
        line = "skipped" if is_missing else play(day, fault)
        with capsys.disabled():
            print(f"\n{fault.__name__:24}{line}", end="", flush=True)
    writers.stop()
    day.receivers.heal()
    settle(ledger)
    # Each acknowledged and each readable state has its event, in order.
    assert writers.acknowledged() | writers.visible() <= ledger.announced()
    for pair in writers.pairs:
        assert pair.steps["meet"] and pair.steps.total() > len(FAULTS)


def play(day: Day, fault: Fault) -> str:
    """Seconds until the fault was seen, and until all was well after the mending."""
    acts, began = fault(day), time.monotonic()
    see, seen = next(acts), []

    def is_seen() -> bool:
        seen.append(see())
        return bool(seen[-1])

    try:
        eventually(is_seen, TO_SEE)
    except AssertionError:
        pytest.fail(f"{fault.__name__} is not seen")
    found = time.monotonic()
    next(acts, None)
    try:
        eventually(day.is_well, TO_HEAL)
    except AssertionError:
        pytest.fail(f"{fault.__name__} is not over: {day.get('/health/status').text}")
    well = time.monotonic()
    return f"{found - began:5.1f} s {well - found:5.1f} s  {seen[-1]}"
