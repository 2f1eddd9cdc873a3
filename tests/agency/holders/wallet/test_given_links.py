"""Links that a holder pastes into the web wallet: of issuers and verifiers elsewhere."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from agency.holders.wallet import given_links
from credentials import tasks
from credentials.models import Credential
from tenants.branding import LANGUAGES
from tests.agency.holders.wallet.conftest import VALUES, newest_of
from tests.support.openid_hosts import issuing, verifying
from tests.support.policies import attribute, policy
from verifications.models import Verification
from wallets.jose import certificates, sd_jwt
from wallets.models import Authority, TrustAnchor

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/w/add"
CODE_IN_A_PAGE = re.compile(r"<code>[a-z]+_")


@pytest.fixture(autouse=True)
def loopback(settings):
    settings.OUTGOING_ALLOW_LOOPBACK = True


@pytest.fixture
def state():
    with issuing() as host:
        yield host


@pytest.fixture
def shop():
    with verifying() as host:
        yield host


def trusts(faber, host):
    body = {"name": "Union", "certificate": host.authority.pem}
    faber.post("/openid/trustAnchors", body)


def give(wallet, link, **form):
    return wallet.post(PAGE, {"link": link} | form)


def take(wallet, state, **form):
    return give(wallet, state.link, issuer=state.url, **form)


def test_who_offers_is_shown_and_nothing_is_used_up(wallet, faber, state):
    shown = give(wallet, state.short_link)
    assert shown.status_code == 200
    assert "State" in shown.text and "<bdi>127.0.0.1</bdi>" in shown.text
    assert "Identity card" in shown.text
    assert "Nobody whom" in shown.text
    assert "/state/token" not in state.calls
    assert not Credential.objects.exists()


def test_an_authority_that_is_trusted_vouches_for_the_issuer(wallet, faber, state):
    trusts(faber, state.issuer)
    assert "Nobody whom" in give(wallet, state.link).text
    state.signs_metadata = {}
    shown = give(wallet, state.link).text
    assert "<bdi>Union</bdi> vouches for them" in shown
    # Signed metadata of another issuer:
    state.signs_metadata = {"sub": "https://else.example"}
    assert "Nobody whom" in give(wallet, state.link).text


def test_a_card_is_taken(wallet, alice, state):
    link = state.link
    led = give(wallet, link, issuer=state.url)
    assert newest_of(alice, Credential).state == "Issued"
    assert "Alice" in wallet.get(led.url).text
    assert give(wallet, link).url == led.url


def test_a_card_that_comes_later_is_waited_for(wallet, alice, state):
    state.later = 1
    led = take(wallet, state)
    assert "data-watched" in wallet.get(led.url).text
    Credential.objects.update(ask_due_at=timezone.now() - timedelta(seconds=1))
    tasks.ask_issuers()
    assert newest_of(alice, Credential).state == "Issued"
    assert "in your wallet" in wallet.get(f"{led.url}/part?seen=Requested").text
    assert "Alice" in wallet.get("/w/").text


def test_a_code_is_asked_for_and_asked_for_again(wallet, alice, state):
    state.tx_code = "ab12"
    assert 'name="transaction_code"' in give(wallet, state.link).text
    wrong = take(wallet, state, transaction_code="ab13")
    assert wrong.status_code == 409
    assert "This is not the code of this offer." in wrong.text
    assert 'name="transaction_code"' in wrong.text
    assert take(wallet, state, transaction_code="ab12").status_code == 302
    assert newest_of(alice, Credential).state == "Issued"


def test_what_another_issuer_offers_by_now_is_not_taken(wallet, state):
    """The holder has agreed to what the page said."""
    refused = give(wallet, state.short_link, issuer="https://else.example")
    assert refused.status_code == 400
    assert "/state/token" not in state.calls


def test_a_request_is_stored_shown_and_answered(wallet, faber, alice, state, shop):
    take(wallet, state)
    led = give(wallet, shop.link())
    shown = wallet.get(led.url).text
    assert "Faber (127.0.0.1)" in shown and "Nobody whom" in shown
    card = newest_of(alice, Credential)
    assert str(card.pk) in shown and shop.got is None
    answered = {"action": "accept", "card-0": str(card.pk)}
    assert wallet.post(led.url, answered).status_code == 302
    assert "card" in shop.got["vp_token"]
    assert newest_of(alice, Verification).state == "Accepted"
    assert "<bdi>name</bdi>" in wallet.get("/w/history").text


def test_an_authority_that_is_trusted_vouches_for_the_verifier(wallet, faber, shop):
    trusts(faber, shop.signer)
    # What it says of itself counts for nothing.
    shop.changes = {"x5c": ["forged"]}
    led = give(wallet, shop.link())
    assert "<bdi>Union</bdi> vouches for them" in wallet.get(led.url).text


PID = {
    "format": "dc+sd-jwt",
    "meta": {"vct_values": ["urn:eu:pid"]},
    "id": "harmless",
    "claims": [
        {"id": "n", "path": ["name"], "values": ["Nobody"]},
        {"id": "y", "path": ["year"]},
    ],
}
YEAR = PID | {"id": "other", "claims": [{"path": ["year"]}]}
IMPOSSIBLE = PID | {"claims": PID["claims"][:1]}
PRETENCES = [
    {"credentials": [PID | {"claim_sets": [["n"], ["y"]]}]},
    {
        "credentials": [IMPOSSIBLE, YEAR],
        "credential_sets": [{"options": [["harmless"], ["other"]]}],
    },
]


@pytest.mark.parametrize("query", PRETENCES)
def test_who_pretends_to_ask_for_less_shows_the_holder_what_it_gets(
    wallet, alice, state, shop, query
):
    """What no card can answer may stand before what is wanted."""
    take(wallet, state)
    shop.changes = {"dcql_query": query}
    led = give(wallet, shop.link())
    asked = wallet.get(led.url).text.partition("This is shown")[2]
    assert "year" in asked and "Alice" not in asked
    card = str(newest_of(alice, Credential).pk)
    wallet.post(led.url, {"action": "accept", "card-0": card})
    [[presented]] = shop.got["vp_token"].values()
    claims = sd_jwt.read(presented).claims
    assert claims["year"] == 7 and "name" not in claims
    told = wallet.get("/w/history").text
    assert "<bdi>year</bdi>" in told and "<bdi>name</bdi>" not in told
    assert newest_of(alice, Verification).unsealed_proof()["harmless"]["name"] == "year"


def test_what_is_asked_for_later_is_not_answered(wallet, alice, state, shop):
    """A verifier may change what is behind its link after the holder has seen it."""
    take(wallet, state)
    led = give(wallet, shop.link())
    shop.changes = {"nonce": "later", "state": "a-state"}
    card = str(newest_of(alice, Credential).pk)
    wallet.post(led.url, {"action": "accept", "card-0": card})
    assert shop.calls.count("GET /request") == 1
    assert newest_of(alice, Verification).state == "Accepted"


def test_a_verifier_is_told_that_nobody_answers(wallet, alice, shop):
    led = give(wallet, shop.link())
    assert wallet.post(led.url, {"action": "decline"}).status_code == 302
    assert shop.got == {"error": "access_denied", "state": "a-state"}
    assert newest_of(alice, Verification).state == "Rejected"


def test_a_verifier_that_is_away_does_not_keep_the_holder(wallet, alice, shop):
    led = give(wallet, shop.link())
    shop.answers["/response"] = 503, {}
    assert wallet.post(led.url, {"action": "decline"}).status_code == 302
    assert newest_of(alice, Verification).state == "Rejected"


@pytest.fixture
def acme_degree(acme):
    return acme.defines(*VALUES, name="Degree", formats=["dc+sd-jwt"])


def test_links_of_others_here_lead_to_their_pages(
    wallet, alice, faber, acme, acme_degree
):
    body = {"definitionId": acme_degree["definitionId"], "credentialValues": VALUES}
    body |= {"automaticIssuance": True, "protocol": "openid4vci"}
    made = acme.post("/credentials", body)
    for link in (made["offerUrl"], made["walletLinks"]["openid4vci"]):
        led = give(wallet, link)
        assert led.url == f"/w/take/{made['offerUrl'].rpartition('/')[2]}"
    assert "Nobody whom" in wallet.get(led.url).text
    wallet.post(led.url)
    assert newest_of(alice, Credential).state == "Issued"
    only = {"credentialDefinitionId": acme_degree["definitionId"]}
    asked = policy(attribute("name", restrictions=[only])) | {"protocol": "openid4vp"}
    made = acme.post("/verifications/policy", asked)
    led = give(wallet, made["walletLinks"]["openid4vp"])
    assert "Nobody whom" in wallet.get(led.url).text
    above = Authority.live().read_certificate()
    TrustAnchor.objects.create(
        tenant=faber.tenant,
        name="Union",
        certificate=Authority.live().certificate,
        fingerprint=certificates.fingerprint_of(above),
        ends_at=timezone.now(),
    )
    assert "vouches for them" in wallet.get(led.url).text
    card = str(newest_of(alice, Credential).pk)
    wallet.post(led.url, {"action": "accept", "card-0": card})
    assert newest_of(alice, Verification).state == "Accepted"


NO_LINKS = [
    "", "hello", "https://[", "openid4vp://", "openid-credential-offer://?x=y",
    "openid4vp://?client_id=x509_hash:a&request_uri=https://10.0.0.1/r",
    "openid-credential-offer://?credential_offer_uri=https://10.0.0.1/o",
    "openid-credential-offer://?credential_offer=[[[[", "x" * 60_000,
    "javascript:alert(1)", "openid4vp://?request_uri=http://testserver/openid/x",
]  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_no_link_is_refused_in_words(wallet, language, monkeypatch):
    monkeypatch.setattr(given_links, "A_MINUTE", 0)
    for link in NO_LINKS:
        headers = {"Accept-Language": language}
        refused = wallet.post(PAGE, {"link": link}, headers=headers)
        assert refused.status_code in (400, 404), link[:80]
        assert not CODE_IN_A_PAGE.search(refused.text), link[:80]
        assert 'role="alert"' in refused.text, link[:80]


def test_only_so_many_links_to_elsewhere_are_read(wallet, state, settings):
    for _ in range(given_links.A_MINUTE):
        give(wallet, "hello")
    refused = give(wallet, state.link)
    assert refused.status_code == 429 and refused["Retry-After"]
    assert not state.calls
    own = give(wallet, f"{settings.PUBLIC_URL}/i/abc")
    assert own.url == "/w/take/abc", "what leads nowhere else is not counted"
