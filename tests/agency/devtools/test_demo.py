import json
import re
import stat
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command

from agency.devtools import example_objects
from agency.devtools.management.commands import demo
from credentials.bulk import issuing
from credentials.models import CredentialDefinition
from tenants.models import Membership, Tenant
from tests.support import keys
from wallets import key_queue
from wallets.models import SpareKey


@pytest.fixture
def demo_file(live_server, stored_keys, settings, monkeypatch, tmp_path) -> Path:
    """The demo plays against a live server and remembers itself in this file."""
    settings.PUBLIC_URL = live_server.url
    settings.DEMO_FILE = tmp_path / "var" / "demo.json"
    return settings.DEMO_FILE


def play() -> str:
    output = StringIO()
    call_command("demo", stdout=output)
    return output.getvalue()


def test_the_demo_goes_from_a_wallet_to_a_valid_proof_and_its_person_can_sign_in(
    demo_file: Path, live_server
) -> None:
    first = play()
    lines = first.splitlines()
    steps = [line.split(" s  ")[1].split(":")[0] for line in lines if " s  " in line]
    assert steps == [
        *(
            "Organization",
            "Schema",
            "Definition",
            "Wallet",
            "Invitation",
            "Connection",
        ),
        *(
            "Offer",
            "Request",
            "Credential",
            "Policy",
            "Verification",
            "Proof",
            "Result",
        ),
        "Examples",
    ]
    address = f"{live_server.url}/studio/"
    assert lines[0].startswith(
        f"Sign in at {address} as {demo.EMAIL} with the password "
    )
    assert lines[-1].startswith("The credential is verified in ")
    check_person(first, demo_file)
    check_file(demo_file)


def check_person(said: str, demo_file: Path) -> None:
    """A second run gives the owner of the organization another password."""
    passwords = [text.split("the password ")[1].split()[0] for text in (said, play())]
    assert not authenticate(username=demo.EMAIL, password=passwords[0])
    person = authenticate(username=demo.EMAIL, password=passwords[1])
    assert person and person.is_superuser
    memberships = Membership.objects.filter(user=person, role=Membership.Role.OWNER)
    [tenant] = memberships.values_list("tenant", flat=True)
    assert json.loads(demo_file.read_text())["tenant"] == str(tenant)


def check_file(demo_file: Path) -> None:
    """It keeps the organization's id and no secret."""
    kept = json.loads(demo_file.read_text())
    assert list(kept) == ["tenant", "examples"]
    assert not re.search("ag[tsp]_", demo_file.read_text())
    assert stat.S_IMODE(demo_file.stat().st_mode) == 0o600


def test_a_worker_that_is_faster_than_a_pause_does_not_stop_the_demo(
    demo_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker offers the rows of the first files as soon as they are there."""
    sent: list[str] = []
    post = demo.Api.post

    def offer_first(api: demo.Api, path: str, body: Any = None) -> Any:
        if path.endswith("/pause") and len(sent) < 3:
            sent.append(path)
            issuing.loop.run()
        return post(api, path, body)

    monkeypatch.setattr(demo.Api, "post", offer_first)
    assert "Examples" in play()
    assert len(sent) == 3


def test_a_demo_goes_on_where_earlier_ones_stopped(
    demo_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: Any = ((demo.Command, "connect_alice"), (example_objects, "make_wallets"))
    for place, step in places:
        with monkeypatch.context() as patch:
            patch.setattr(place, step, Mock(side_effect=CommandError))
            with pytest.raises(CommandError):
                play()
        assert not demo_file.exists()
    lines = play()
    assert "Definition:" not in lines and "is verified" in lines
    assert Tenant.objects.filter(name="Faber College").count() == 1
    assert CredentialDefinition.objects.filter(schema__name="Degree").count() == 1


def test_the_demo_says_that_it_waits_for_its_first_key(
    demo_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "PROGRESS_SECONDS", 0.05)
    refused = iter([1, 2])

    def lease_late(organization: Any, seconds: float) -> SpareKey:
        if next(refused, 0):
            raise key_queue.KeyNotReady(1)
        return keys.lease_at_once(organization)

    with patch("wallets.key_queue.lease_key", lease_late):
        lines = play().splitlines()
    waits = [line for line in lines if "The first key of a definition" in line]
    assert waits and waits[0].endswith(" s ...")
    assert lines[-1].startswith("The credential is verified in ")


def test_without_a_web_server_the_demo_says_so(demo_file: Path, settings) -> None:
    settings.PUBLIC_URL = "http://127.0.0.1:1"
    with pytest.raises(
        CommandError, match=r"^Schema: .* No answer from .*web server run\?$"
    ):
        play()
    assert not demo_file.exists()


def test_a_refused_call_is_one_sentence(demo_file: Path) -> None:
    with pytest.raises(CommandError, match=r"^GET /connections answered 401: .+\.$"):
        demo.Api("no", "key").get("/connections")


def test_a_state_that_is_not_reached_is_named(demo_file: Path, monkeypatch) -> None:
    monkeypatch.setattr(demo, "STATE_TIMEOUT_SECONDS", 0)
    monkeypatch.setattr(demo.Api, "get", lambda self, path: {"state": "Offered"})
    with pytest.raises(
        CommandError, match="/credentials/1 is Offered and does not become Issued"
    ):
        demo.Api("no", "key").wait_for_state("/credentials/1", "Issued")
