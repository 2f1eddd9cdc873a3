"""A hosted wallet answers a verifier of another installation."""

import time

import pytest
from django.test import override_settings

from core.errors import AgencyError
from credentials.models import Credential
from credentials.openid4vci import holding
from tests.support.errors import assert_error, error_of
from tests.support.openid_hosts import VCT, issuing, verifying
from tests.support.races import at_once
from tests.support.steps import step
from verifications.models import Verification
from verifications.openid4vp import presenting
from wallets.jose import certificates, sd_jwt, signing
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/verifications/fromData"
CLAIM = {"id": "n", "path": ["name"]}


@pytest.fixture(autouse=True)
def loopback(settings):
    settings.OUTGOING_ALLOW_LOOPBACK = True


@step
def alice(faber):
    return faber.hosts()


@step
@override_settings(OUTGOING_ALLOW_LOOPBACK=True)
def held(faber, alice):
    """The card of the state, which Alice holds."""
    with issuing() as state:
        return alice.put("/credentials/fromData", {"credentialData": state.link})


@pytest.fixture
def shop():
    with verifying() as host:
        yield host


def answer(alice, link, **body):
    return alice.put(f"{PATH}/autoSelect", {"verificationData": link} | body)


def refused(alice, link, status, code):
    assert_error(error_of(answer, alice, link), status, code)


def row():
    return Verification.objects.get(role="prover")


def assert_shown(shop):
    [text] = shop.got["vp_token"]["card"]
    shown = sd_jwt.read(text)
    shown.verify_binding(shop.client_id, "a-nonce", time.time())
    assert {path[0] for path in shown.disclosed} == {"name", "over_18"}


@pytest.mark.parametrize("query", [{}, {"request_uri_method": "post"}])
def test_it_answers_with_what_fits(alice, held, shop, query):
    answer(alice, shop.link(**query))
    assert_shown(shop)
    method = "POST" if query else "GET"
    assert shop.calls == [f"{method} /request", "POST /response"]
    assert (row().state, row().format) == ("Accepted", "dc+sd-jwt")
    seen = alice.get("/verifications")[0]
    assert seen["proof"]["card"]["attributes"] == {"name": "Alice", "over_18": "true"}


def test_a_verifier_may_be_known_by_its_host(alice, held, shop):
    shop.kind = "x509_san_dns:127.0.0.1"
    answer(alice, shop.link())
    assert_shown(shop)


def test_the_request_may_be_in_the_link(alice, held, shop):
    answer(alice, shop.link(request=shop.request()).replace("request_uri=", "x="))
    assert_shown(shop)


def test_nothing_is_shown_that_was_to_be_hidden(alice, held, shop):
    """An SD-JWT VC cannot prove a claim without showing it."""
    chosen = {"policyName": "card", "credentialId": held["credentialId"]}
    body = {"verificationData": shop.link()}
    body["parameters"] = [chosen | {"hidden": True}]
    assert_error(error_of(alice.put, PATH, body), 400, "hidden_not_allowed")
    assert shop.got is None


def test_who_asks_is_named_by_the_certificate(alice, held, shop):
    """What a request says of its sender, anybody may say."""
    answer(alice, shop.link())
    assert row().unsealed_policy().name == "Faber (127.0.0.1)"


def test_a_long_name_does_not_hide_who_gets_the_answer(alice, held, shop, monkeypatch):
    name = "Your\u202e bank\n" + "x" * 250
    monkeypatch.setattr(certificates, "common_name_of", lambda leaf: name)
    answer(alice, shop.link())
    shown = row().unsealed_policy().name
    assert shown == f"Your bank{'x' * 55} (127.0.0.1)"


def test_a_host_that_cannot_be_shown_is_refused(alice, held, shop, subtests):
    for host in ("", "x" * 254, "b\u202eank"):
        with subtests.test(host):
            shop.changes = {"response_uri": f"https://{host}/response"}
            refused(alice, shop.link(), 400, "bad_verificationData")


@pytest.mark.parametrize("changes", [{}, {"claims": [CLAIM], "claim_sets": [[]]}])
def test_no_claim_need_be_asked_for(alice, held, shop, changes):
    """Then the card shows what it always shows: that there is one."""
    query = {"id": "card", "format": "dc+sd-jwt", "meta": {"vct_values": [VCT]}}
    shop.changes = {"dcql_query": {"credentials": [query | changes]}}
    body = {"verificationData": shop.link()}
    [item] = alice.post(f"{PATH}/availableCredentials", body)
    assert len(item["availableCredentials"]) == 1
    answer(alice, shop.link())
    [text] = shop.got["vp_token"]["card"]
    assert sd_jwt.read(text).disclosed == {}
    [seen] = alice.get("/verifications")
    assert seen["proof"]["card"]["revealed"] is False


def test_a_list_here_without_the_place_revokes_nothing(alice, held, shop, monkeypatch):
    """An issuer elsewhere may write any place into what it issues."""
    rows = Credential.objects.filter(role="holder")
    rows.update(revocation_registry_id="x/status/1", revocation_index=2**31 - 1)
    monkeypatch.setattr(holding, "read_bits", lambda uri: b"\0")
    answer(alice, shop.link())
    assert row().state == "Accepted"


def test_it_says_what_is_available_and_the_holder_chooses(alice, held, shop):
    body = {"verificationData": shop.link()}
    [item] = alice.post(f"{PATH}/availableCredentials", body)
    [card] = item["availableCredentials"]
    assert not Verification.objects.exists() and shop.got is None
    chosen = {"policyName": "card", "credentialId": card["credentialId"]}
    alice.put(PATH, body | {"parameters": [chosen]})
    assert_shown(shop)


def test_the_same_link_again_calls_nobody(alice, held, shop):
    for _ in range(2):
        answer(alice, shop.link())
    assert len(shop.calls) == 2 and row().state == "Accepted"


def test_of_two_calls_at_once_one_answers(alice, held, shop):
    at_once(*[lambda: answer(alice, shop.link())] * 2)
    assert shop.calls.count("POST /response") == 1 and row().state == "Accepted"


def test_without_a_card_nothing_is_sent(alice, shop):
    refused(alice, shop.link(), 409, "nothing_fits")
    assert shop.got is None and not Verification.objects.exists()


def test_a_verifier_that_is_away_is_answered_later(alice, held, shop):
    shop.answers["/response"] = (503, b"")
    refused(alice, shop.link(), 503, "verifier_unavailable")
    assert row().state == "Requested"
    shop.answers = {"/request": (410, b"")}  # it is read once
    answer(alice, shop.link())
    assert_shown(shop)
    assert row().state == "Accepted"


@pytest.fixture
def got(shop, monkeypatch):
    """What the shop was shown; it takes one answer, and its confirmation is lost."""
    shown, known = [], shop.answer

    def lose(path, form):
        answered = known(path, form)
        if path == "/request":
            return answered
        shown.append(shop.got["vp_token"])
        return (503, b"") if len(shown) == 1 else (400, {})

    monkeypatch.setattr(shop, "answer", lose)
    return shown


def test_an_answer_that_was_not_confirmed_is_sent_as_it_was(alice, held, shop, got):
    refused(alice, shop.link(), 503, "verifier_unavailable")
    refused(alice, shop.link(), 409, "verifier_refused")
    assert got[0] == got[1]
    assert row().state == "Rejected"
    [seen] = alice.get("/verifications")
    assert seen["proof"]["card"]["attributes"]["name"] == "Alice", "it may have seen it"


def test_who_declines_after_that_sees_what_may_have_been_shown(alice, held, shop):
    shop.answers["/response"] = (503, b"")
    refused(alice, shop.link(), 503, "verifier_unavailable")
    alice.put(f"/verifications/{row().pk}/decline", {})
    [seen] = alice.get("/verifications")
    assert seen["state"] == "Rejected"
    assert seen["proof"]["card"]["attributes"]["name"] == "Alice", "it may have seen it"


def test_it_is_made_anew_once_it_is_too_old(alice, held, shop, got, monkeypatch):
    assert presenting.RESEND_SECONDS < sd_jwt.BINDING_SECONDS
    refused(alice, shop.link(), 503, "verifier_unavailable")
    monkeypatch.setattr(presenting, "RESEND_SECONDS", 0)
    refused(alice, shop.link(), 409, "verifier_refused")
    assert got[0] != got[1]


def test_another_choice_is_made_anew(alice, held, shop, got):
    refused(alice, shop.link(), 503, "verifier_unavailable")
    with issuing() as state:
        other = alice.put("/credentials/fromData", {"credentialData": state.link})
    chosen = {"policyName": "card", "credentialId": other["credentialId"]}
    body = {"verificationData": shop.link(), "parameters": [chosen]}
    assert_error(error_of(alice.put, PATH, body), 409, "verifier_refused")
    assert got[0] != got[1]


def test_a_stored_request_is_answered_by_its_id(alice, held, shop):
    shop.answers["/response"] = (503, b"")
    refused(alice, shop.link(), 503, "verifier_unavailable")
    shop.answers = {}
    alice.put(f"/verifications/{row().pk}/autoSelect")
    assert row().state == "Accepted"


def test_a_process_that_is_killed_leaves_the_request(alice, held, shop, monkeypatch):
    def die(*given):
        raise SystemExit

    with monkeypatch.context() as killed, pytest.raises(SystemExit):
        killed.setattr(presenting, "_post_answer", die)
        answer(alice, shop.link())
    assert row().state == "Requested"
    refused(alice, shop.link(), 409, "answer_in_progress")
    monkeypatch.setattr(presenting, "time", Later)
    answer(alice, shop.link())
    assert row().state == "Accepted"


class Later:
    @staticmethod
    def time():
        return time.time() + presenting.SENDING_SECONDS


def test_what_the_verifier_refuses_ends(alice, held, shop):
    shop.answers["/response"] = (400, {"error_description": "No."})
    refused(alice, shop.link(), 409, "verifier_refused")
    assert (row().state, row().problem) == ("Rejected", "abandoned")


def test_a_request_can_be_declined(alice, held, shop):
    wallet = Wallet.objects.get(pk=alice.wallet_id)
    presenting.decline_link(wallet, shop.link())
    assert shop.got["error"] == "access_denied"
    assert row().state == "Rejected"


UNSAFE = [
    ({"client_id": "x509_hash:other"}, "request_not_signed"),
    ({"response_mode": "direct_post"}, "answer_not_encrypted"),
    ({"client_metadata": {}}, "answer_not_encrypted"),
    ({"transaction_data": ["e30"]}, "unknown_transaction_data"),
]


def test_a_request_that_is_not_safe_is_refused(alice, held, shop, subtests):
    for changes, code in UNSAFE:
        with subtests.test(str(changes)):
            shop.changes = changes
            refused(alice, shop.link(), 409, code)
            assert not Verification.objects.exists()
    shop.changes = {}
    answer(alice, shop.link())


def test_the_audience_may_be_where_the_request_is_read(alice, held, shop):
    shop.changes = {"aud": f"{shop.url}/request"}
    answer(alice, shop.link())
    assert_shown(shop)


NO_REQUESTS = [
    {"aud": "https://else.example"}, {"exp": 1}, {"exp": "never"},
    {"response_type": "code"}, {"response_uri": "ftp://else.example"}, {"nonce": None},
    {"dcql_query": {}},
]  # fmt: skip


def test_what_is_no_request_is_refused(alice, held, shop, subtests):
    for changes in NO_REQUESTS:
        with subtests.test(str(changes)):
            shop.changes = changes
            refused(alice, shop.link(), 400, "bad_verificationData")
    shop.changes = {}
    answer(alice, shop.link())


def test_a_request_unlike_its_certificate_is_refused(alice, held, shop):
    for kind in ("x509_san_dns:else.example", "redirect_uri:x", "x509_hash:"):
        shop.kind = kind
        refused(alice, shop.link(), 409, "request_not_signed")
    shop.kind = "x509_san_dns:127.0.0.1"  # but it is answered elsewhere
    shop.changes = {"response_uri": "https://else.example/response"}
    refused(alice, shop.link(), 409, "request_not_signed")
    shop.changes, shop.kind = {}, "x509_hash"
    shop.signer.secret = signing.generate_secret()
    refused(alice, shop.link(), 409, "request_not_signed")


def test_a_certificate_that_has_ended_is_refused(alice, held, shop):
    signer = shop.signer
    shop.x5c = signer.authority.certify(signer.secret, begins=-9, ends=-1)
    refused(alice, shop.link(), 409, "request_not_signed")


def test_a_request_that_was_signed_before_is_refused(alice, held, shop):
    shop.changes = {"wallet_nonce": "another"}
    link = shop.link(request_uri_method="post")
    refused(alice, link, 409, "request_not_signed")


@pytest.mark.parametrize("path", ["/request", "/response"])
def test_a_redirect_is_not_followed(alice, held, shop, path):
    shop.answers[path] = (307, b"")
    shop.headers = {"Location": f"{shop.url}/else"}
    refused(alice, shop.link(), 409, "redirect_refused")
    assert shop.calls[-1].endswith(path)


def test_private_addresses_are_not_called(alice, held, shop, settings):
    shop.changes = {"response_uri": "https://10.0.0.1/response"}
    refused(alice, shop.link(), 400, "address_refused")
    assert row().state == "Rejected"
    for address in ("https://10.0.0.1/request", "http://169.254.169.254/"):
        refused(alice, shop.link(request_uri=address), 400, "address_refused")


def test_it_is_no_way_to_call_this_server(alice, held, shop, settings):
    shop.changes = {"response_uri": f"{settings.PUBLIC_URL}/settings"}
    refused(alice, shop.link(), 400, "bad_verificationData")


@pytest.mark.parametrize("host", ["Localhost", "LOCALHOST.", "localhost"])
def test_another_spelling_of_this_server_is_none(alice, held, shop, settings, host):
    settings.PUBLIC_URL = shop.url.replace("127.0.0.1", "localhost")
    link = shop.link().replace("127.0.0.1", host)
    answered = error_of(answer, alice, link)
    assert answered.body["code"] in ("bad_verificationData", "address_refused")
    shop.changes = {"response_uri": f"{shop.url}/response".replace("127.0.0.1", host)}
    answered = error_of(answer, alice, shop.link())
    assert answered.body["code"] in ("bad_verificationData", "address_refused")
    assert shop.calls == ["GET /request"]


def test_the_card_of_who_publishes_a_key_has_no_authority(alice, held, shop):
    query = {
        "id": "card", "format": "dc+sd-jwt", "meta": {"vct_values": [VCT]},
        "trusted_authorities": [{"type": "aki", "values": ["other"]}],
    }  # fmt: skip
    shop.changes = {"dcql_query": {"credentials": [query]}}
    refused(alice, shop.link(), 409, "nothing_fits")


def test_a_request_by_a_stranger_is_checked_by_its_own_certificate(shop):
    with pytest.raises(AgencyError) as found:
        presenting.parse_request(shop.request(), "x509_hash:other", "openid4vp://?")
    assert found.value.code == "request_not_signed"
