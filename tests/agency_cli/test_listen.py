"""`python -m agency listen` end to end: real servers and process, local handler."""

import os
import stat
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from agency_cli import client, handler
from tests.support.event_streams import serving
from tests.support.paths import ROOT
from tests.support.processes import free_port
from tests.support.webhook_receiver import receiving
from webhooks.delivery.signing import new_secret

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


class Servers:
    """Web and stream, at addresses that stay the same."""

    def __init__(self):
        self.web, self.stream = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.web}"
        self.running = ExitStack()

    def start(self):
        place = {
            "PORT": str(self.web),
            "STREAM_PORT": str(self.stream),
            "PUBLIC_URL": self.url,
        }
        self.running.enter_context(serving("web", self.web, **place))
        self.running.enter_context(serving("stream", self.stream, **place))

    def stop(self):
        self.running.close()


@pytest.fixture
def servers(transactional_db):
    servers = Servers()
    servers.start()
    yield servers
    servers.stop()


@pytest.fixture
def local():
    with receiving() as receiver:
        yield receiver


class Listener:
    def __init__(self, process, state, output):
        self.process, self.state, self.output = process, state, output

    def says(self, text):
        wait_for(lambda: text in self.output.read_text(), self.output.read_text)


@pytest.fixture
def listens(servers, local, tmp_path):
    """Start `listen` for an organization.

    A second call continues where the first stopped.
    """
    started = []

    @contextmanager
    def listen(organization, *options, **environment):
        keys = {
            "ACCESS_TOKEN": organization.made.access_token,
            "SUBSCRIPTION_KEY": organization.made.subscription_key,
            "PATH": os.environ["PATH"],
        }
        command = [sys.executable, "-m", "agency", "listen", "--url", servers.url]
        command += [
            "--forward-to",
            local.url,
            "--state",
            str(tmp_path / "state.json"),
            *options,
        ]
        output = tmp_path / f"output{len(started)}"
        with output.open("w") as file:
            process = subprocess.Popen(
                command,
                env=keys | environment,
                cwd=ROOT,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        started.append(process)
        try:
            yield Listener(process, tmp_path / "state.json", output)
        finally:
            process.terminate()
            process.wait(10)

    return listen


def wait_for(condition, shown=lambda: ""):
    deadline = time.monotonic() + 25
    while not condition():
        assert time.monotonic() < deadline, shown()
        time.sleep(0.05)


def objects(local):
    return [call.body["object_id"] for call in local.calls]


def all_told(organization):
    return [event["body"] for event in organization.get("/events")]


def story(servers, faber):
    """Accept an invitation and send a message: events of connections and messages."""
    office = faber.at(servers.url)
    connection = office.hosts().known_as(office)
    office.post("/messages", {"connectionId": connection, "text": "Hello"})


def test_a_story_is_posted_whole_and_in_order_with_valid_signatures(
    servers, faber, acme, local, listens
):
    with listens(faber) as listener:
        listener.says("Ctrl-C stops.")
        story(servers, faber)
        acme.invites()
        wait_for(
            lambda: len(local.calls) == len(all_told(faber)), listener.output.read_text
        )
        assert [call.body for call in local.calls] == all_told(faber)
        [secret] = [
            w for w in listener.output.read_text().split() if w.startswith("whsec_")
        ]
        for one in local.calls:
            Webhook(secret).verify(one.data, one.headers)
            assert one.headers["webhook-id"] == f"msg_{one.body['event_id']}"
        with pytest.raises(WebhookVerificationError):
            Webhook(new_secret()).verify(one.data, one.headers)
        assert len(local.calls) >= 6


def test_a_break_of_the_servers_misses_nothing(servers, faber, local, listens):
    with listens(faber) as listener:
        listener.says("Ctrl-C stops.")
        faber.invites(connectionId="before")
        wait_for(lambda: objects(local) == ["before"], listener.output.read_text)
        servers.stop()
        for number in range(3):
            faber.invites(connectionId=f"meanwhile{number}")
        listener.says("No stream now")
        servers.start()
        wait_for(lambda: len(local.calls) == 4, listener.output.read_text)
        faber.invites(connectionId="after")
        wait_for(lambda: len(local.calls) == 5, listener.output.read_text)
    expected = ["before", "meanwhile0", "meanwhile1", "meanwhile2", "after"]
    assert objects(local) == expected


def test_stopped_and_started_again_it_goes_on_with_the_same_secret(
    servers, faber, local, listens
):
    with listens(faber) as listener:
        listener.says("Ctrl-C stops.")
        kept = []  # while the call waits for its answer
        local.meet = lambda call: kept.append(listener.state.read_text())
        faber.invites(connectionId="before")
        wait_for(lambda: objects(local) == ["before"], listener.output.read_text)
        wait_for(lambda: kept and listener.state.read_text() != kept[0])
    assert stat.S_IMODE(listener.state.stat().st_mode) == 0o600
    faber.invites(connectionId="meanwhile")
    with listens(faber) as again:
        wait_for(
            lambda: objects(local) == ["before", "meanwhile"], again.output.read_text
        )
    assert "whsec_" not in again.output.read_text()


def test_without_a_stream_it_polls_and_with_a_given_secret_it_shows_none(
    servers, faber, local, listens
):
    faber.invites(connectionId="before")
    secret = new_secret()
    port = free_port()
    servers.stop()
    only_web = serving("web", servers.web, STREAM_URL=f"http://127.0.0.1:{port}")
    with (
        only_web,
        listens(faber, "--from", "start", WEBHOOK_SECRET=secret) as listener,
    ):
        wait_for(lambda: objects(local) == ["before"], listener.output.read_text)
        listener.says("No stream now")
        faber.invites(connectionId="later")
        wait_for(lambda: len(local.calls) == 2, listener.output.read_text)
    Webhook(secret).verify(local.calls[1].data, local.calls[1].headers)
    assert secret not in listener.output.read_text()


def test_no_key_stands_where_other_processes_read(servers, faber, listens):
    with listens(faber) as listener:
        listener.says("Ctrl-C stops.")
        shown = Path(f"/proc/{listener.process.pid}/cmdline").read_text()
        assert faber.made.access_token not in shown + listener.output.read_text()
        faber.tenant.keys.get(kind="access_token").revoke()
        assert listener.process.wait(10) == 1
        assert "The agency refuses" in listener.output.read_text()


BODY = '{"message_type": "verification", "object_id": "x", "event_id": "1"}'


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(handler, "RETRY_DELAYS", (0.01,))


def test_a_handler_that_is_down_is_waited_for(quick, local, capsys):
    port = free_port()
    down = handler.Handler(f"http://127.0.0.1:{port}/hooks", new_secret())
    assert down.post_event(BODY)[0] == 0
    calls = iter([(0, "refused")] * 20 + [(200, "")])
    down.post_event = lambda body: next(calls)
    down.deliver(BODY)
    assert next(calls, None) is None
    assert capsys.readouterr().out.count("refused") == 20


def test_a_handler_that_refuses_is_asked_five_times(quick, local):
    local.answers(500)
    handler.Handler(local.url, new_secret()).deliver(BODY)
    assert len(local.calls) == 5
    assert len({one.headers["webhook-id"] for one in local.calls}) == 1


def test_a_redirect_is_not_followed(quick, local):
    local.answers(302, Location=local.url)
    assert handler.Handler(local.url, new_secret()).post_event(BODY) == (302, "")
    with pytest.raises(client.RequestRefused, match=f"leads to {local.url}"):
        client.AgencyClient(local.url, "t", "s").open_url(local.url)
    assert len(local.calls) == 2, "one for each"
