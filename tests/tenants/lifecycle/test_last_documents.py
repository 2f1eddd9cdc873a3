"""What a deleted organization has issued to wallets of OpenID4VC is judged as before."""

# ruff: noqa: F811

import time
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest
from django.utils import timezone

from core.errors import NotFound
from core.work import transactions
from credentials import revocation
from credentials.models import Credential, LastDocument, TokenStatusList
from tenants import audit
from tenants.lifecycle import freezing
from tenants.models import DataKey, Erasure, Tenant
from tests.credentials.openid4vci.conftest import card, offers, phone  # noqa: F401
from tests.support import races
from tests.support.erasing import worker_erases
from tests.support.killed_worker import KilledClient
from tests.support.openid_wallet import OpenIdWallet
from tests.support.sd_jwt import Authority as OtherAuthority
from tests.tenants.lifecycle.test_erasure import finish, no_pause  # noqa: F401
from tests.verifications.openid4vp.conftest import ask, card_policy  # noqa: F401
from tests.verifications.openid4vp.test_answers import codes, verification
from wallets.jose import certificates, sd_jwt, status_token
from wallets.models import Authority, SigningKey, Wallet, issuer_url

pytestmark = pytest.mark.django_db(transaction=True)
YEAR = timedelta(days=365)


@pytest.fixture
def held(offers, phone):
    phone.take(offers()["link"])
    return phone


@pytest.fixture
def revoked(faber, offers):
    """Bob's phone, with a card that Faber has revoked."""
    bob, made = OpenIdWallet(), offers()
    bob.take(made["link"])
    faber.delete(f"/credentials/{made['credentialId']}")
    return bob


def delete(organization):
    organization.delete(f"/tenants/{organization.tenant.public_id}")


def listed_of(phone):
    return sd_jwt.read(phone.credential).claims["status"]["status_list"]


def read_list(phone, listed):
    """The list as a verifier elsewhere reads and checks it, and what the place says."""
    response = phone.read(listed["uri"])
    assert response.status_code == 200
    assert response["Content-Type"] == "application/statuslist+jwt"
    assert response["Access-Control-Allow-Origin"] == "*"
    text = response.content.decode()
    found = status_token.parse_token(text, listed["uri"], time.time())
    chain = certificates.read_chain(found.token.header["x5c"])
    anchors = [Authority.live().read_certificate()]
    certificates.verify_chain(chain, anchors, timezone.now())
    found.token.verify(certificates.key_of(chain[0]))
    return found


def answer(acme, ask, phone):
    asked = ask()
    response = phone.answer(asked["walletLinks"]["openid4vp"])
    assert response.status_code == 200, response.content
    return verification(acme, asked)


def test_lists_and_types_stay_when_their_organization_is_erased(faber, held, revoked):
    read = [listed_of(held), listed_of(revoked)]
    type_url = sd_jwt.read(held.credential).vct
    before = held.read(type_url).json(), held.metadata("jwt-vc-issuer")
    delete(faber)
    for _ in ("hidden", "erased"):
        found = read_list(held, read[0])
        assert [found.status_of(one["idx"]) for one in read] == [0, 1]
        end = datetime.fromtimestamp(found.token.payload["exp"], UTC)
        assert abs(end - timezone.now() - YEAR) < timedelta(minutes=5)
        assert held.read(type_url).json() == before[0]
        assert held.metadata("jwt-vc-issuer") == before[1]
        assert held.read(f"{issuer_url(faber.tenant.pk)}/status/9").status_code == 404
        assert held.post("nonce").status_code == 404
        finish(step=10)
    assert not Tenant._base_manager.filter(pk=faber.tenant.pk).exists()
    assert not SigningKey.objects.filter(purpose="credentials").exists()
    assert not TokenStatusList.objects.exists()
    assert not DataKey.objects.filter(tenant=faber.tenant.pk).exists()


def test_old_credentials_are_judged_by_what_is_left(acme, faber, ask, held, revoked):
    before = ask()
    delete(faber)
    for _ in ("hidden", "erased"):
        assert answer(acme, ask, held)["isValid"], "a new request"
        assert codes(answer(acme, ask, revoked)) == {"revoked"}
        worker_erases()
    held.answer(before["walletLinks"]["openid4vp"])
    assert verification(acme, before)["isValid"], "a request of before"
    LastDocument.objects.filter(path__contains="/status/").delete()
    assert codes(answer(acme, ask, held)) == {"status_unavailable"}


@pytest.mark.parametrize("member", ["issuerDid", "schemaId", "vct", "schemaName"])
def test_restrictions_find_a_type_of_an_erased_organization(
    acme,
    faber,
    ask,
    card,
    card_policy,
    held,
    member,
):
    only = {
        "issuerDid": card["schemaId"].partition(":2:")[0],
        "schemaId": card["schemaId"],
        "vct": sd_jwt.read(held.credential).vct,
        "schemaName": card["schemaId"].split(":")[2],
    }
    body = {"attributes": [{"policyName": "who", "attributeNames": ["Full name"]}]}
    body["attributes"][0]["restrictions"] = [{member: only[member]}]
    body |= {"predicates": [], "revocationRequirement": None}
    delete(faber)
    worker_erases()
    asked = ask(**body)
    held.answer(asked["walletLinks"]["openid4vp"])
    assert verification(acme, asked)["isValid"]


def test_a_key_with_uploaded_certificates_counts_too(acme, faber, ask, offers, phone):
    SigningKey.upload(faber.tenant, OtherAuthority().certify_key(faber.tenant))
    phone.take(offers()["link"])
    delete(faber)
    worker_erases()
    assert answer(acme, ask, phone)["isValid"]


@pytest.mark.slow
def test_a_killed_deletion_leaves_all_as_it_was(faber, held):
    listed, client = listed_of(held), faber.client
    faber.client = KilledClient(
        "credentials.openid4vci.last_documents.keep_all", DELETION_UNDO_HOURS="0"
    )
    faber.client.generic(
        "DELETE",
        f"/tenants/{faber.tenant.public_id}",
        "",
        "application/json",
        faber.headers,
    )
    assert not LastDocument.objects.exists() and not Erasure.objects.exists()
    assert read_list(held, listed).token.payload["exp"] < time.time() + 2 * 86_400
    faber.client = client
    delete(faber)
    worker_erases()
    assert read_list(held, listed).status_of(listed["idx"]) == 0


def test_an_organization_that_has_issued_none_leaves_nothing(acme):
    delete(acme)
    assert not LastDocument.objects.exists()


def test_lists_of_a_frozen_organization_are_served(faber, held, monkeypatch):
    monkeypatch.setattr(freezing, "WAIT_SECONDS", 0)
    with pytest.raises(freezing.StillBusy):
        freezing.freeze(faber.tenant, audit.SYSTEM)
    listed = listed_of(held)
    assert read_list(held, listed).status_of(listed["idx"]) == 0
    assert held.read(sd_jwt.read(held.credential).vct).status_code == 200


def test_a_revocation_beside_a_deletion_is_in_the_last_list(
    faber, offers, phone, monkeypatch
):
    """Also where there are too many connections for the deletion to lock them."""
    monkeypatch.setattr(Wallet, "MAX_ENDED_AT_ONCE", 0)
    made = offers()
    phone.take(made["link"])
    started = Event()

    def revoke():
        with transactions.atomic():
            credential = Credential.objects.get(pk=made["credentialId"])
            credential.lock()
            credential.revoke()
            revocation.mark_in_status_lists([credential])
            started.set()
            races.wait_until(races.is_waited_for)

    def delete_meanwhile():
        assert started.wait(races.PATIENCE)
        delete(faber)

    assert races.threads([revoke, delete_meanwhile]) == [None, None]
    listed = listed_of(phone)
    assert read_list(phone, listed).status_of(listed["idx"]) == 1


def test_no_list_of_a_deleted_organization_changes(faber, offers, phone):
    made = offers()
    phone.take(made["link"])
    credential = Credential.objects.get(pk=made["credentialId"])
    delete(faber)
    lists = list(TokenStatusList.objects.values())
    with pytest.raises(NotFound):
        TokenStatusList.take_place(faber.tenant)
    with pytest.raises(NotFound):
        revocation.mark_in_status_lists([credential])
    assert list(TokenStatusList.objects.values()) == lists
    TokenStatusList.objects.all().delete()
    with pytest.raises(NotFound), transactions.atomic():
        TokenStatusList.take_place(faber.tenant)
    assert not TokenStatusList.objects.exists()
