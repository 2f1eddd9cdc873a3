"""Quotas of organizations whose account was signed up. All others have no limits."""

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import F

from connections.messaging import outbox
from connections.models import Connection, InboundMessage
from connections.protocols import connections_1_0
from core.telemetry.metrics import registry
from credentials.models import Credential, Publication
from tenants import audit, quotas
from tenants.lifecycle.provisioning import create_organization, remove_organization
from tenants.models import Asset, Provider, Tenant
from tests.factories import UserFactory
from tests.support import queues
from tests.support.errors import assert_error, error_of
from tests.support.outside_agent import Agent
from tests.support.people import Organization
from tests.support.people import Provider as ProviderApi
from tests.support.pictures import picture, storage, uploads
from verifications.models import Verification

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["storage"]
VALUES = {"name": "Alice", "year": "2026"}
POLICY = {"attributes": [{"policyName": "Name", "attributeNames": ["name"]}]}


@pytest.fixture
def fay(transactional_db):
    return UserFactory(username="fay")


@pytest.fixture
def club(fay, stored_keys):
    """An organization that Fay made for herself in the studio."""
    return Organization("Club", owner=fay)


def refusal(call, *arguments, **options):
    """The sentence of a 409 `quota_exceeded`."""
    error = error_of(call, *arguments, **options)
    assert_error(error, 409, "quota_exceeded")
    return error.body["message"]


def refusals_counted_for(setting):
    labels = {"quota": setting}
    return registry.get_sample_value("agency_quota_refusals_total", labels) or 0


def test_the_quota_of_wallets(club, settings):
    settings.QUOTA_WALLETS, before = 2, refusals_counted_for("QUOTA_WALLETS")
    first = club.hosts()
    club.hosts()
    assert refusal(club.hosts) == (
        "This organization may have 2 wallets (QUOTA_WALLETS). "
        "Delete some, or ask whoever runs this service for more."
    )
    assert refusals_counted_for("QUOTA_WALLETS") == before + 1
    club.delete(f"/api/wallets/{first.wallet_id}")
    club.hosts()
    # So has what is made with the key of the account.
    account = ProviderApi(club)
    branch = account.opens(account.makes())
    for _ in range(2):
        branch.post("/api/wallets", {})
    assert "QUOTA_WALLETS" in refusal(branch.post, "/api/wallets", {})


def test_the_quota_of_invitations_and_connections(club, faber, settings):
    settings.QUOTA_CONNECTIONS = 2
    invited, alice = club.invites(), club.hosts()
    alice.accepts_invitation(faber.invites()["invitation"])
    sentence = "2 connections and invitations (QUOTA_CONNECTIONS)"
    assert sentence in refusal(club.invites)
    theirs = faber.invites()["invitation"]
    assert sentence in refusal(alice.accepts_invitation, theirs)
    club.delete(f"/connections/{invited['connectionId']}")
    club.invites()


@pytest.fixture
def for_many(club, settings):
    """An invitation for many, by which as many strangers have come as may."""
    settings.QUOTA_STRANGERS = 1
    club.invites()
    Connection.objects.update(stranger=F("pk"))
    invited = club.invites(multiParty=True)
    return Connection.objects.get(connection_id=invited["connectionId"])


def test_a_stranger_who_scans_an_invitation_for_many_is_told(
    club, phone, for_many, settings
):
    phone.requests(for_many.invitation)
    report = phone.newest(connections_1_0.PROBLEM)
    assert report.body["problem-code"] == "request_not_accepted"
    assert report.body["explain"] == "No further connections are accepted at present."
    assert Connection.objects.count() == 2
    settings.QUOTA_STRANGERS = 2
    phone.requests(for_many.invitation)
    assert phone.newest(connections_1_0.RESPONSE)
    settings.QUOTA_CONNECTIONS = 2
    phone.connects(club)  # an invitation for one keeps its place


def test_of_strangers_whose_endpoints_do_not_answer_only_some_are_told(
    phone, for_many, monkeypatch
):
    """What is refused leaves no more rows behind than what is accepted."""
    monkeypatch.setattr(outbox, "MAX_UNDELIVERED", 4)
    for _ in range(6):
        stranger = Agent()
        stranger.endpoint = "http://127.0.0.1:1/"
        stranger.requests(for_many.invitation)
    assert queues.pending().count() == 4
    assert InboundMessage.objects.filter(status="done").count() == 6


def test_a_hosted_wallet_of_others_that_scans_it_too(club, faber, for_many, settings):
    alice = faber.hosts()
    invitation = club.get(f"/connections/{for_many.connection_id}")["invitation"]
    error = error_of(alice.accepts_invitation, invitation)
    assert_error(error, 409, "invitation_refused")
    assert Connection.objects.count() == 2
    settings.QUOTA_STRANGERS = 2
    assert alice.accepts_invitation(invitation)["state"] == "Connected"


def test_the_quota_of_open_exchanges(club, settings):
    settings.QUOTA_OPEN_EXCHANGES = 2
    alice, definition = club.hosts(), club.defines("name", "year")
    other = Organization("Other").hosts()
    other.meets(club)
    club.offers(other, definition, VALUES)
    asked = club.asks(other, **POLICY)
    sentence = "may have 2 credentials and verifications that are not finished"
    assert sentence in refusal(club.offers, other, definition, VALUES)
    assert sentence in refusal(club.asks, other, **POLICY)
    body = {"definitionId": definition["definitionId"], "credentialValues": VALUES}
    assert sentence in refusal(club.post, "/credentials", body)
    alice.meets(club)
    place = f"/credentials/propose/{alice.known[club][1]}"
    assert sentence in refusal(alice.put, place, body)
    club.delete(f"/verifications/{asked['verificationId']}")
    club.offers(other, definition, VALUES)


def test_a_finished_exchange_makes_room(club, settings):
    settings.QUOTA_OPEN_EXCHANGES = 1
    alice, definition = Organization("Other").hosts(), club.defines("name", "year")
    for _ in range(2):
        alice.receives(club, definition, VALUES)
    assert Credential.objects.filter(state="Issued").count() == 4


def test_an_offer_to_a_wallet_without_room_is_declined(club, faber, settings):
    settings.QUOTA_OPEN_EXCHANGES = 1
    alice, definition = club.hosts(), faber.defines("name", "year")
    alice.meets(faber)
    faber.offers(alice, definition, VALUES)
    offered = faber.offers(alice, definition, VALUES)
    row = Credential.objects.get(pk=offered["credentialId"])
    assert (row.state, row.problem) == ("Rejected", "quota_exceeded")
    assert len(alice.get("/credentials")) == 1


def test_proofs_that_a_wallet_offers_or_is_asked_for(club, faber, settings):
    settings.QUOTA_OPEN_EXCHANGES = 1
    alice, bob = club.hosts(), faber.hosts()
    alice.meets(faber)
    faber.asks(alice, **POLICY)
    asked = faber.asks(alice, **POLICY)
    row = Verification.objects.get(pk=asked["verificationId"])
    assert (row.state, row.problem) == ("Rejected", "quota_exceeded")
    offered = {"name": "Policy", "version": "1.0"} | POLICY
    place = f"/verifications/propose/{alice.known[faber][1]}"
    assert "QUOTA_OPEN_EXCHANGES" in refusal(alice.put, place, offered)
    bob.meets(club)
    bob.put(f"/verifications/propose/{bob.known[club][1]}", offered)
    assert bob.newest("verifications")["state"] == "Rejected"


def test_the_quota_of_definitions(club, settings):
    settings.QUOTA_DEFINITIONS = 1
    made = club.defines("name", "year")
    sentence = "1 credential definitions, deleted ones included (QUOTA_DEFINITIONS)"
    assert sentence in refusal(club.defines, "name", "year")
    club.delete(f"/definitions/credentials/{made['definitionId']}")
    assert sentence in refusal(club.defines, "name", "year")
    # One that is on its way to a ledger counts, too.
    settings.QUOTA_DEFINITIONS = 2
    waiting = {"kind": "definition", "subject": "x", "material": b""}
    Publication.objects.create(tenant=club.tenant, **waiting)
    assert "QUOTA_DEFINITIONS" in refusal(club.defines, "name", "year")


def test_the_quota_of_pictures(club, settings):
    settings.QUOTA_PICTURES = 1
    assert uploads(club, picture()).status_code == 200
    for api, path in ((club, "/common/upload"), (ProviderApi(club), "/assets")):
        answer = uploads(api, picture(), path)
        assert_error(answer, 409, "quota_exceeded")
        sentence = "This account may have 1 pictures (QUOTA_PICTURES)"
        assert sentence in answer.json()["message"]
    assert Asset.objects.count() == 1


def test_the_quota_of_bytes_of_pictures(club, settings):
    data = picture()
    uploads(club, data)
    size = Asset.objects.get().size
    settings.QUOTA_PICTURE_BYTES = 2 * size - 1
    answer = uploads(club, data)
    assert answer.json()["code"] == "quota_exceeded"
    sentence = f"{2 * size - 1} bytes of pictures (QUOTA_PICTURE_BYTES)"
    assert sentence in answer.json()["message"]
    settings.QUOTA_PICTURE_BYTES = 10 * size
    assert uploads(club, data).status_code == 200


def test_organizations_of_a_person_by_whatever_way(club, fay, settings):
    settings.QUOTA_ORGANIZATIONS = 2
    branch = ProviderApi(club).makes()
    sentence = "You may have 2 organizations (QUOTA_ORGANIZATIONS). Delete one, or ask"
    assert sentence in refusal(ProviderApi(club).makes)
    assert sentence in refusal(club.post, "/tenants", {"name": "Branch"})
    with pytest.raises(quotas.QuotaExceeded):
        create_organization("Second club", owner=fay)
    assert Provider.objects.filter(name="Second club").count() == 0
    create_organization("Choir", owner=UserFactory())  # another person
    ProviderApi(club).delete(f"/tenants/{branch['tenantId']}")
    create_organization("Second club", owner=fay)


def test_deleting_the_first_organization_leaves_no_way_round(club, fay, settings):
    settings.QUOTA_ORGANIZATIONS = 2
    ProviderApi(club).makes()
    remove_organization(club.tenant, by=audit.SYSTEM)
    create_organization("Second club", owner=fay)
    assert "QUOTA_ORGANIZATIONS" in refusal(ProviderApi(club).makes)


def test_an_account_whose_person_was_deleted_keeps_its_quotas(club, fay, settings):
    settings.QUOTA_ORGANIZATIONS, settings.QUOTA_WALLETS = 1, 1
    fay.delete()
    assert "QUOTA_ORGANIZATIONS" in refusal(ProviderApi(club).makes)
    club.hosts()
    assert "QUOTA_WALLETS" in refusal(club.hosts)


EVERY = {k: one for k, one in vars(quotas).items() if isinstance(one, quotas.Quota)}


def set_all(settings, limit):
    for quota in EVERY.values():
        setattr(settings, quota.setting, limit)


@pytest.fixture
def tight(settings):
    """Nobody with quotas may have anything at all."""
    set_all(settings, 1)


def uses_everything(organization):
    """Two of each."""
    alice, definition = organization.hosts(), organization.defines("name", "year")
    organization.hosts("Bob")
    organization.defines("name", "year", "city")
    alice.meets(organization)
    organization.invites()
    for _ in range(2):
        organization.offers(alice, definition, VALUES)
        organization.asks(alice, **POLICY)
        assert uploads(organization, picture()).status_code == 200
        ProviderApi(organization).makes()


def test_every_quota_is_listed():
    assert sorted(EVERY) == [
        "CONNECTIONS", "DEFINITIONS", "OPEN_EXCHANGES", "ORGANIZATIONS", "PICTURES",
        "PICTURE_BYTES", "STRANGERS", "WALLETS",
    ]  # fmt: skip


def made_by_the_command(fay):
    return Organization("Faber College")


def made_by_staff_in_the_studio(fay):
    User.objects.update(is_staff=True)
    return Organization("Club", owner=User.objects.get())


def whose_quotas_were_lifted(fay):
    club = Organization("Club", owner=fay)
    Provider.objects.update(has_quotas=False)
    return club


WITHOUT_LIMITS = (
    made_by_the_command, made_by_staff_in_the_studio, whose_quotas_were_lifted
)  # fmt: skip


@pytest.mark.parametrize("make", WITHOUT_LIMITS)
def test_an_organization_has_no_limits(stored_keys, fay, tight, make):
    uses_everything(make(fay))


def test_nor_has_one_that_a_provider_without_limits_made(faber, tight):
    account = ProviderApi(faber)
    branch = account.opens(account.makes())
    for _ in range(2):
        branch.post("/api/wallets", {})
        branch.post("/connections", {})


def test_a_quota_of_zero_is_no_limit(club, settings):
    set_all(settings, 0)
    uses_everything(club)


def test_the_quotas_of_others_do_not_count(club, faber, settings):
    settings.QUOTA_WALLETS = 1
    for _ in range(2):
        faber.hosts()
    assert quotas.WALLETS.count_used(faber.tenant, 1) == 1, "no more rows are read"
    club.hosts()
    refusal(club.hosts)


@pytest.mark.parametrize(
    ("quota", "label", "index"),
    [
        (quotas.CONNECTIONS, "connections.Connection", "connection_counted_own"),
        (quotas.OPEN_EXCHANGES, "credentials.Credential", "credential_open"),
        (quotas.OPEN_EXCHANGES, "verifications.Verification", "verification_open"),
    ],
)
def test_what_does_not_count_is_not_read(faber, quota, label, index):
    """An index holds only what counts, however much else the organization has."""
    table = apps.get_model(label)._meta.db_table
    with transaction.atomic(), connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, table)
        for name, one in found.items():
            # With few rows any other is as good as the one that is wanted.
            if one["index"] and not one["unique"] and name != index:
                cursor.execute(f'DROP INDEX "{name}"')
        cursor.execute("SET LOCAL enable_seqscan = off")
        plan = quota.rows_of(label, faber.tenant.pk).order_by()[:2].explain()
        transaction.set_rollback(True)
    assert index in plan, plan


@pytest.mark.parametrize("label", quotas.OPEN_EXCHANGES.rows)
def test_the_index_of_open_exchanges_holds_the_open_states_of_the_model(label):
    model = apps.get_model(label)
    [index] = [one for one in model._meta.indexes if one.name.endswith("_open")]
    [(_, states)] = index.condition.children
    assert states == list(model.OPEN)


def test_who_made_an_account_is_noted(club, faber, fay):
    made = Tenant.objects.select_related("provider")
    assert made.get(pk=club.tenant.pk).provider.person == fay
    assert made.get(pk=faber.tenant.pk).provider.person is None
