"""A hosted wallet takes what an issuer of another installation offers."""

import socket
from datetime import timedelta
from threading import BoundedSemaphore, Event, Thread

import pytest
from django.utils import timezone

from core.net import addresses
from credentials import tasks
from credentials.models import Credential
from credentials.openid4vci import foreign_calls, holding
from tenants import vault
from tests.support.errors import assert_error, error_of
from tests.support.openid_hosts import VCT, issuing
from tests.support.races import at_once, wait_until
from tests.support.steps import step
from wallets.jose import sd_jwt, signing

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Alice", "year": "7", "over_18": "true"}


@pytest.fixture(autouse=True)
def loopback(settings):
    settings.OUTGOING_ALLOW_LOOPBACK = True


@pytest.fixture
def state():
    with issuing() as host:
        yield host


@step
def alice(faber):
    return faber.hosts()


@pytest.fixture
def trusted(faber, state):
    """The state, whose authority Faber trusts."""
    body = {"name": "State", "certificate": state.issuer.authority.pem}
    faber.post("/openid/trustAnchors", body)
    return state


def take(alice, link, **body):
    return alice.put("/credentials/fromData", {"credentialData": link} | body)


def refused(alice, link, status, code, **body):
    assert_error(error_of(take, alice, link, **body), status, code)


def held_row():
    return Credential.objects.get(role="holder")


def ask_now():
    Credential.objects.update(ask_due_at=timezone.now() - timedelta(seconds=1))
    tasks.ask_issuers()


@pytest.mark.parametrize("kind", ["link", "short_link"])
def test_a_hosted_wallet_takes_it(alice, trusted, kind):
    taken = take(alice, getattr(trusted, kind))
    assert (taken["state"], taken["format"]) == ("Issued", "dc+sd-jwt")
    assert taken["definitionId"] == VCT
    assert taken["values"] == VALUES
    held = vault.unseal(held_row(), "credential")
    secret = signing.decode_base64url(held["secret"])
    assert sd_jwt.read(held["sd_jwt"]).claims["cnf"] == {
        "jwk": signing.public_jwk_of(secret)
    }
    assert held_row().request_metadata is None and held_row().ask_due_at is None
    assert trusted.notified == ["credential_accepted"]


def test_the_same_link_again_calls_nobody(alice, trusted):
    taken = take(alice, trusted.short_link)
    trusted.calls.clear()
    assert take(alice, trusted.short_link) == taken
    assert not trusted.calls


def test_of_two_calls_at_once_one_takes_it(alice, trusted):
    first, second = at_once(*[lambda: take(alice, trusted.link)] * 2)
    assert first["credentialId"] == second["credentialId"]
    assert trusted.calls.count("/state/token") == 1


@pytest.mark.parametrize("x5c", [True, False])
def test_the_issuer_may_publish_its_key(alice, state, x5c):
    state.x5c = x5c
    assert take(alice, state.link)["state"] == "Issued"


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://else.example"},
        {"jwks": {"keys": [signing.public_jwk_of(signing.generate_secret())]}},
        {"jwks": {"keys": "none"}},
        {"jwks": None, "jwks_uri": "https://10.0.0.1/keys"},
        {"jwks": None, "jwks_uri": 5},
    ],
)
def test_who_is_not_trusted_is_refused(alice, state, changes):
    state.key_changes = changes
    refused(alice, state.link, 409, "issuer_not_trusted")
    assert (held_row().state, held_row().problem) == ("Rejected", "declined")
    assert state.notified == ["credential_failure"]


@pytest.mark.parametrize(
    "iss", ["https://10.0.0.1", "ftp://else.example", "https://[", "x"]
)
def test_a_signer_that_cannot_be_called_is_not_trusted(alice, state, iss):
    state.claims = {"iss": iss}
    state.later = 1
    take(alice, state.link)
    ask_now()
    assert (held_row().state, held_row().problem) == ("Rejected", "declined")
    state.code = "one-code"
    refused(alice, state.link, 409, "issuer_not_trusted")


def test_a_certificate_of_another_name_is_refused(alice, trusted):
    trusted.claims = {"iss": "https://else.example"}
    refused(alice, trusted.link, 409, "issuer_not_trusted")


def test_the_holder_gives_the_transaction_code(alice, trusted):
    trusted.tx_code = "4711"
    refused(alice, trusted.link, 400, "transaction_code_missing")
    refused(alice, trusted.link, 409, "transaction_code_wrong", transactionCode="1234")
    assert held_row().state == "Rejected"
    taken = take(alice, trusted.link, transactionCode="4711")
    assert taken["state"] == "Issued"


def test_what_is_issued_later_is_asked_for_again(alice, trusted):
    trusted.later = 2
    taken = take(alice, trusted.link)
    assert taken["state"] == "Requested"
    assert held_row().ask_due_at > timezone.now() + timedelta(seconds=3)
    ask_now()
    assert held_row().state == "Requested"
    ask_now()
    path = f"/credentials/{taken['credentialId']}"
    assert alice.get(path)["values"] == VALUES


@pytest.mark.parametrize(
    "path", ["/state/token", "/state/credential", "/.well-known/jwt-vc-issuer/state"]
)
def test_an_issuer_that_is_away_is_asked_again(alice, state, path):
    state.answers[path] = (503, b"")
    taken = take(alice, state.link)
    assert taken["state"] == "Requested"
    del state.answers[path]
    ask_now()
    assert alice.get(f"/credentials/{taken['credentialId']}")["state"] == "Issued"
    assert state.calls.count("/state/credential") <= 2
    if path.startswith("/."):  # what has come is kept
        assert state.calls.count("/state/credential") == 1


def test_a_process_that_is_killed_before_its_request(alice, trusted, monkeypatch):
    def die(*given):
        raise SystemExit

    with monkeypatch.context() as killed, pytest.raises(SystemExit):
        killed.setattr(holding, "_request", die)
        take(alice, trusted.link)
    assert held_row().ask_due_at > timezone.now() + timedelta(seconds=60)
    ask_now()
    assert held_row().state == "Issued"
    assert trusted.calls.count("/state/token") == 1


def test_a_process_that_is_killed_with_the_card_keeps_it(alice, state, monkeypatch):
    """The state issues it once, and its keys are read from its own address."""

    def die(*given):
        raise SystemExit

    with monkeypatch.context() as killed, pytest.raises(SystemExit):
        killed.setattr(holding, "_check", die)
        take(alice, state.link)
    state.answers["/state/credential"] = (400, {"error": "invalid_token"})
    ask_now()
    assert held_row().state == "Issued"
    assert state.calls.count("/state/credential") == 1


def test_a_process_that_is_killed_with_the_token_loses_it(alice, trusted, monkeypatch):
    """The code works once, and nobody has the token."""

    def die(*given, **named):
        raise SystemExit

    with monkeypatch.context() as killed, pytest.raises(SystemExit):
        killed.setattr(holding, "_store_taken", die)
        take(alice, trusted.link)
    ask_now()
    assert (held_row().state, held_row().problem) == ("Rejected", "abandoned")


def test_an_offer_that_is_taken_is_refused(alice, trusted):
    trusted.code, link = "another", trusted.link
    refused(alice, link, 409, "offer_taken")
    assert held_row().state == "Rejected"


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"vct": "urn:eu:other"}, "credential_of_other_type"),
        ({"exp": 1}, "credential_refused"),
        ({"cnf": None}, "credential_not_bound"),
        ({"cnf": {}}, "credential_not_bound"),
        ({"status": {"status_list": {"uri": 5, "idx": 1}}}, "credential_refused"),
    ],
)
def test_another_credential_is_refused(alice, trusted, claims, code):
    trusted.claims = claims
    refused(alice, trusted.link, 409, code)
    assert held_row().state == "Rejected" and held_row().credential is None
    assert trusted.notified == ["credential_failure"]


def test_a_credential_that_is_bound_to_others_is_refused(alice, trusted):
    trusted.holder = signing.public_jwk_of(signing.generate_secret())
    refused(alice, trusted.link, 409, "credential_not_bound")


def test_another_signature_is_refused(alice, trusted):
    trusted.issuer.secret = signing.generate_secret()
    refused(alice, trusted.link, 409, "credential_refused")


@pytest.mark.parametrize(
    "changes",
    [
        {"credential_issuer": "https://else.example"},
        {"credential_issuer": None},
        {"authorization_servers": 5},
        {"authorization_servers": [5]},
        {"authorization_servers": ["https://["]},
    ],
)
def test_metadata_of_another_issuer_is_refused(alice, trusted, changes):
    trusted.metadata_changes = changes
    refused(alice, trusted.link, 409, "issuer_unlike_metadata")


@pytest.mark.parametrize("claims", [1, {}, [1, {"path": 1}, {"path": [1]}]])
def test_what_metadata_says_of_claims_is_not_needed(alice, trusted, claims):
    known = trusted.configuration()
    known["credential_metadata"]["claims"] = claims
    trusted.metadata_changes = {"credential_configurations_supported": {"pid": known}}
    assert take(alice, trusted.link)["state"] == "Issued"


@pytest.mark.parametrize("details", [1, {}, "x", [1, {"credential_identifiers": 1}]])
def test_other_details_of_a_token_are_left_out(alice, trusted, details):
    trusted.answers["/state/token"] = 200, {
        "access_token": "a-token", "token_type": "Bearer",
        "authorization_details": details,
    }  # fmt: skip
    assert take(alice, trusted.link)["state"] == "Issued"


@pytest.mark.parametrize("token", ["a\nb", "a b", "", "ä", 5, "x" * 16385])
def test_a_token_that_no_header_can_have_is_refused(alice, trusted, token):
    said = {"access_token": token, "token_type": "Bearer"}
    trusted.answers["/state/token"] = (200, said)
    refused(alice, trusted.link, 409, "issuer_unlike_metadata")


def test_a_status_of_null_is_none(alice, trusted):
    issue = sd_jwt.issue
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sd_jwt, "issue", lambda said, *rest: issue(
            said | {"status": None}, *rest
        ))  # fmt: skip
        assert take(alice, trusted.link)["state"] == "Issued"


def test_metadata_of_another_authorization_server_is_refused(alice, trusted):
    trusted.server_changes = {"issuer": "https://else.example"}
    refused(alice, trusted.link, 409, "issuer_unlike_metadata")


@pytest.mark.parametrize(
    "changes",
    [
        {"vct": 5},
        {"vct": "http://testserver/openid/x/types/y"},
        {"format": "mso_mdoc"},
        {"cryptographic_binding_methods_supported": ["did:key"]},
        {"proof_types_supported": {"attestation": {}}},
    ],
)
def test_what_cannot_be_held_is_refused(alice, trusted, settings, changes):
    settings.PUBLIC_URL = "http://testserver"
    known = trusted.configuration() | changes
    trusted.metadata_changes = {"credential_configurations_supported": {"pid": known}}
    refused(alice, trusted.link, 400, "bad_credentialData")
    assert not Credential.objects.exists()


@pytest.mark.parametrize(
    "path",
    ["/state/offer", "/.well-known/openid-credential-issuer/state", "/state/token"],
)
def test_a_redirect_is_not_followed(alice, trusted, path):
    trusted.answers[path] = (302, b"")
    trusted.headers = {"Location": f"{trusted.url}/else"}
    refused(alice, trusted.short_link, 409, "redirect_refused")
    assert trusted.calls[-1] == path


def test_an_answer_has_a_largest_size(alice, trusted):
    trusted.answers["/state/credential"] = (200, b"x" * foreign_calls.MAX_ANSWER)
    refused(alice, trusted.link, 409, "answer_too_long")


def test_a_slow_issuer_ends_in_its_time(alice, trusted, monkeypatch):
    monkeypatch.setattr(foreign_calls, "STEP_SECONDS", 0.1)
    is_over = Event()
    trusted.meet = lambda path: is_over.wait(2)  # then it would be taken
    refused(alice, trusted.short_link, 503, "issuer_unavailable")
    is_over.set()


def test_slow_issuers_hold_half_of_the_threads(alice, trusted, settings, monkeypatch):
    turns = foreign_calls.turns
    assert turns._initial_value == max(1, settings.WEB_THREADS // 2)
    monkeypatch.setattr(foreign_calls, "turns", BoundedSemaphore(1))
    monkeypatch.setattr(foreign_calls, "TURN_SECONDS", 0.01)
    trusted.later = 1
    take(alice, trusted.link)  # which gives its turn back
    assert foreign_calls.turns.acquire(blocking=False)
    trusted.calls.clear()
    refused(alice, trusted.short_link, 503, "issuer_unavailable")
    assert not trusted.calls
    ask_now()  # a worker needs no turn
    assert held_row().state == "Issued"


def test_the_worker_ends_in_the_time_that_a_freeze_waits_for(alice, trusted, settings):
    trusted.later = 1
    take(alice, trusted.link)
    trusted.calls.clear()
    settings.LEDGER_TIMEOUT = 0
    ask_now()
    assert not trusted.calls and held_row().state == "Requested"


def test_an_issuer_that_lets_us_wait_for_ever_is_given_up(alice, trusted):
    trusted.later = 9
    take(alice, trusted.link)
    accepted_at = timezone.now() - holding.GIVE_UP_AFTER
    Credential.objects.update(accepted_at=accepted_at + timedelta(minutes=1))
    ask_now()
    assert held_row().state == "Requested"
    Credential.objects.update(accepted_at=accepted_at)
    ask_now()
    assert (held_row().state, held_row().problem) == ("Rejected", "abandoned")


def test_a_private_address_is_not_called(alice, trusted, settings):
    settings.OUTGOING_ALLOW_LOOPBACK = False
    refused(alice, trusted.link, 400, "bad_credentialData")  # not of https
    for kind in ("link", "short_link"):
        trusted.url = trusted.url.replace("http:", "https:")
        refused(alice, getattr(trusted, kind), 400, "address_refused")
    assert not trusted.calls


def test_a_name_that_leads_elsewhere_later_is_not_called(alice, trusted, monkeypatch):
    """The second lookup answers with an address of our own network."""
    found = [["127.0.0.1"], ["10.0.0.1"]]

    def look_up(host, port, flags=0):
        if flags:
            raise socket.gaierror
        [address] = found.pop(0)
        return [(socket.AF_INET, (address, port))]

    monkeypatch.setattr(addresses, "look_up", look_up)
    trusted.url = trusted.url.replace("127.0.0.1", "state.example")
    refused(alice, trusted.link, 400, "address_refused")
    assert trusted.calls == ["/.well-known/openid-credential-issuer/state"]


def test_an_endpoint_at_a_private_address_is_not_called(alice, trusted):
    trusted.metadata_changes = {"credential_endpoint": "https://10.0.0.1/credential"}
    refused(alice, trusted.link, 400, "address_refused")
    assert held_row().state == "Rejected"


def test_somebody_s_slow_issuer_slows_no_neighbour(faber, acme, alice, trusted):
    """The worker waits for few issuers of an organization at a time."""
    with issuing() as slow:
        slow.later = 99
        for number in range(holding.THREADS + 1):
            slow.code = f"code-{number}"
            take(alice, slow.link)
        bob = acme.hosts("Bob")
        trusted.later = 1
        taken = take(bob, trusted.link)
        body = {"name": "State", "certificate": trusted.issuer.authority.pem}
        acme.post("/openid/trustAnchors", body)
        is_over = Event()
        slow.meet = lambda path: is_over.wait(20)
        slow.calls.clear()
        now, his = timezone.now(), Credential.objects.filter(pk=taken["credentialId"])
        Credential.objects.update(ask_due_at=now)
        his.update(ask_due_at=now + timedelta(hours=1))
        loop = holding.AskingLoop("asking", holding.THREADS)
        worker = Thread(target=loop.run)
        worker.start()
        wait_until(lambda: len(slow.calls) == holding.PER_TENANT)
        his.update(ask_due_at=now)
        loop.run()  # which only tells the worker
        wait_until(lambda: his.get().state != "Requested")
        assert len(slow.calls) == holding.PER_TENANT, "it waits for the slow issuer"
        loop.stop()
        is_over.set()
        worker.join(20)
