"""PostgreSQL goes away and comes back below the product's own processes. # slow"""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import psutil
import pytest
import requests
from django.conf import settings

from agency.devtools.embedded import postgres, temporary_home, valkey
from tests.chaos.receivers import Receivers, receiving
from tests.chaos.world import make_world
from tests.support.outside_agent import Agent
from tests.support.people import HttpClient, Organization
from tests.support.processes import Processes, eventually, own_servers, processes

WITHIN = 3  # seconds for an answer during an outage
BACK = 2  # seconds until the first success after it
# What each route answers while all is well: the envelope is for nobody here.
WELL = {
    "API": 200,
    "write": 200,
    "DIDComm": 400,
    "studio": 200,
    "admin": 200,
    "stream": 200,
}
METRICS_TOKEN = "for-prometheus"
SERVICES = ("stream", "worker", "deliver", "beat")
MAIL, PASSWORD = "admin@agency.example", "correct horse 1"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


class Answer(NamedTuple):
    status: int
    headers: Any
    body: bytes
    sent: float
    seconds: float


class Product(NamedTuple):
    home: Path
    running: Processes
    acme: Organization
    receivers: Receivers
    admin: Any  # the cookies of a browser
    envelope: bytes

    @property
    def stream(self) -> str:
        return f"http://127.0.0.1:{self.running.supervisor.environment['STREAM_PORT']}"

    def routes(self) -> dict[str, Callable[[], requests.Response]]:
        """A request of each kind, which succeeds while all is well."""
        headers, page = self.acme.headers, {"Accept": "text/html"}

        def get(path: str, **given: Any) -> Callable[[], requests.Response]:
            url = self.running.url + path
            return lambda: requests.get(
                url,
                timeout=30,
                allow_redirects=False,
                **given,
            )

        return {
            "API": get("/connections", headers=headers),
            "write": lambda: requests.post(
                f"{self.running.url}/connections",
                json={},
                headers=headers | {"Idempotency-Key": os.urandom(8).hex()},
                timeout=30,
            ),
            "DIDComm": lambda: requests.post(
                f"{self.running.url}/didcomm", data=self.envelope, timeout=30
            ),
            "studio": get(
                "/studio/organizations/new", headers=page, cookies=self.admin
            ),
            "admin": get("/admin/", headers=page, cookies=self.admin),
            "stream": lambda: requests.get(
                f"{self.stream}/events/stream",
                headers=headers,
                stream=True,
                timeout=30,
            ),
        }


@pytest.fixture(scope="module")
def started():
    """Web, stream, worker, deliver and beat, beside servers of their own."""
    with temporary_home() as home, receiving(1) as receivers:
        receivers.heal()
        given = own_servers(home) | {"METRICS_TOKEN": METRICS_TOKEN}
        given["STAFF_SECOND_FACTOR"] = "0"  # the admin has a password only
        with processes(home, **given) as running:
            running.start_all(*SERVICES)
            headers = make_world(running, receivers.url)["Acme"]["headers"]
            acme = Organization.with_keys(headers, HttpClient(running.url))
            stranger = Agent()
            envelope = stranger.pack({}, stranger.verkey)
            yield Product(home, running, acme, receivers, admin_of(running), envelope)


def admin_of(running: Processes) -> Any:
    """The cookies of an administrator's browser, signed in by the page."""
    command = f"createsuperuser --noinput --username admin --email {MAIL}"
    assert running.manage(command, DJANGO_SUPERUSER_PASSWORD=PASSWORD) == 0
    browser, page = requests.Session(), f"{running.url}/accounts/login/"
    browser.get(page, timeout=30)
    form = {"login": MAIL, "password": PASSWORD}
    form["csrfmiddlewaretoken"] = browser.cookies[settings.CSRF_COOKIE_NAME]
    assert browser.post(page, form, timeout=30).ok
    return browser.cookies


@pytest.fixture
def product(started):
    """All is well with it: again, after the outage of the test before."""
    eventually(lambda: is_up(f"{started.stream}/health"), 60)
    eventually(lambda: is_up(f"{started.running.url}/health/ready"), 60)
    for name, ask in started.routes().items():
        assert timed_answer(ask).status == WELL[name], name
    started.receivers.calls.clear()
    return started


def is_up(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).status_code == 200
    except requests.RequestException:
        return False


def timed_answer(ask: Callable[[], requests.Response]) -> Answer:
    sent = time.monotonic()
    with ask() as response:
        took = time.monotonic() - sent
        body = (
            b""
            if "event-stream" in response.headers["Content-Type"]
            else response.content
        )
        return Answer(response.status_code, response.headers, body, sent, took)


class Callers:
    """One for each route, which asks again and again."""

    def __init__(self, product: Product) -> None:
        self.over = Event()
        self.answers: dict[str, list[Answer]] = {name: [] for name in product.routes()}
        self.threads = [
            Thread(target=self.ask, args=pair, daemon=True)
            for pair in product.routes().items()
        ]
        for thread in self.threads:
            thread.start()

    def ask(self, name: str, request: Callable[[], requests.Response]) -> None:
        while not self.over.wait(0.1):
            self.answers[name].append(timed_answer(request))

    def end(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive()


def check_answers(callers: Callers, away: float, back: float) -> None:
    for name, answers in callers.answers.items():
        assert {one.status for one in answers} == {503, WELL[name]}, name
        during = [one for one in answers if away + 1 < one.sent < back - WITHIN]
        assert during and {one.status for one in during} == {503}, name
        assert max(one.seconds for one in answers if one.sent < back) < WITHIN, name
        for one in answers:
            if one.status == 503:
                check_refusal(name, one)
        good = [
            one.sent + one.seconds
            for one in answers
            if one.status != 503 and one.sent > back
        ]
        assert min(good) - back < BACK, name
        late = [one for one in answers if one.sent > back + BACK]
        assert late and 503 not in {one.status for one in late}, name


def check_refusal(name: str, answer: Answer) -> None:
    assert int(answer.headers["Retry-After"]) > 0, name
    if name in ("studio", "admin"):
        assert b"Out of service" in answer.body
    else:
        assert json.loads(answer.body)["code"] == "not_ready"


def test_after_an_outage_all_go_on_at_once_and_nothing_was_a_500(product):
    """It lasts so long that who waits twice as long after each try comes too late."""
    callers = Callers(product)
    eventually(lambda: all(callers.answers.values()))
    postgres.stop(product.home / "postgres", "immediate")
    away = time.monotonic()
    time.sleep(40)
    postgres.start(product.home / "postgres", postgres.FAST)
    back = time.monotonic()
    time.sleep(5)
    callers.end()
    check_answers(callers, away, back)
    check_that_processes_go_on(product)


def check_that_processes_go_on(product: Product) -> None:
    """A change reaches a stream and, by a worker, a webhook.

    No process was restarted.
    """
    stream = product.routes()["stream"]()
    connection = product.acme.hosts().known_as(product.acme).encode()

    def is_told(text: bytes) -> bool:
        return b"new_connection" in text and connection in text

    assert any(map(is_told, stream.iter_lines()))
    eventually(lambda: any(is_told(one.data) for one in product.receivers.calls), 20)
    for name in (*SERVICES, "web"):
        assert product.running.is_alive(name), f"{name} has ended"


@pytest.fixture
def hanging(product):
    """PostgreSQL takes connections, and no longer answers."""
    pid = int(
        (product.home / "postgres" / "data" / "postmaster.pid").read_text().split()[0]
    )
    server = psutil.Process(pid)
    family = [server, *server.children(recursive=True)]
    for one in family:
        one.send_signal(signal.SIGSTOP)
    yield
    for one in family:
        one.send_signal(signal.SIGCONT)


def test_a_database_that_hangs_is_answered_for_in_time(product, hanging):
    for name, ask in product.routes().items():
        answer = timed_answer(ask)
        assert answer.status == 503 and answer.seconds < WITHIN, name
        check_refusal(name, answer)
    assert_judged_in_time(product, "database")
    assert_scraped_without_database(product)


def assert_scraped_without_database(product: Product) -> None:
    metrics = timed_answer(lambda: scrape(product))
    assert metrics.status == 200 and metrics.seconds < 2
    assert b"\nagency_database_up 0.0" in metrics.body


def scrape(product: Product) -> requests.Response:
    headers = {"Authorization": f"Bearer {METRICS_TOKEN}"}
    return requests.get(f"{product.running.url}/metrics", headers=headers, timeout=30)


def assert_judged_in_time(product: Product, broken: str, page: str = "ready") -> None:
    url = product.running.url
    for _ in range(3):
        judged = timed_answer(lambda: requests.get(f"{url}/health/{page}", timeout=30))
        assert (judged.status, judged.seconds < 2) == (503, True)
        assert broken in json.loads(judged.body)["errors"]
        assert page == "status" or int(judged.headers["Retry-After"]) > 0
    lives = timed_answer(lambda: requests.get(f"{url}/health", timeout=30))
    assert (lives.status, lives.body, lives.seconds < 1) == (200, b"Healthy", True)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_broker_that_is_away_or_hangs_is_told_in_time(product, number):
    broker = psutil.Process(int((product.home / "valkey" / "pid").read_text()))
    broker.send_signal(number)
    try:
        assert_judged_in_time(product, "broker", page="status")
        ready = requests.get(f"{product.running.url}/health/ready", timeout=30)
        assert ready.status_code == 200 and ready.json()["broker"] != "ok"
        metrics = timed_answer(lambda: scrape(product))
        assert metrics.status == 200 and metrics.seconds < 2
        assert b"\nagency_broker_up 0.0" in metrics.body
    finally:
        if number == signal.SIGSTOP:
            broker.send_signal(signal.SIGCONT)
        else:
            broker.wait(10)
            valkey.start(product.home / "valkey", durable=False)


def test_a_database_that_refuses_is_told_in_time(product):
    postgres.stop(product.home / "postgres", "immediate")
    try:
        assert_judged_in_time(product, "database")
        assert_scraped_without_database(product)
    finally:
        postgres.start(product.home / "postgres", postgres.FAST)
