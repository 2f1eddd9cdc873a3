"""An organization publishes below its did:webvh; others read it at its host."""

import os
from datetime import timedelta
from functools import partial
from threading import Barrier
from types import SimpleNamespace

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone

from agency.ops import doctor
from agency.ops.checks import check_or_exit
from agency.ops.stored_files import needed_files
from core.errors import Conflict
from core.net import http
from credentials import ledgers
from credentials.ledgers import ledger_of
from credentials.ledgers.reads import LedgerReads, name_of_schema
from credentials.ledgers.webvh import own_did, own_log, served_logs
from credentials.ledgers.webvh.refusals import Refused
from credentials.models import (
    CredentialDefinition,
    PublishedObject,
    RevocationRegistry,
    StatusList,
    WebvhDid,
    WebvhResource,
)
from credentials.tasks import rotate_webvh_keys
from tenants import audit, data_key_rotation, vault
from tenants.lifecycle.provisioning import remove_organization
from tenants.models import AuditEntry, DataKey, Tenant
from tests.support.commands import output_of
from tests.support.erasing import worker_erases
from tests.support.own_webvh import (
    HOST,
    fetch,
    read_all,
    read_log,
    read_resource,
    row_of,
)
from tests.support.people import ApiError, Organization, Provider
from tests.support.races import PATIENCE, at_once, error_codes

REGISTRY, STATUS_LIST = "anonCredsRevocRegDef", "anonCredsStatusList"
NO_KEYS = {"next_key": None, "assertion_key": None}
NOW = {
    "attributes": [{"policyName": "level"}],
    "revocationRequirement": {"validNow": True},
}


@pytest.fixture
def alice(holder):
    return holder


def is_valid(verifier, holder):
    asked = verifier.asks(holder, **NOW)
    holder.auto_selects()
    return verifier.get(f"/verifications/{asked['verificationId']}")["isValid"]


def rotate(organization, **body):
    return organization.post("/tenants/webvhDid/rotation", body)


def refusal(function, *given):
    with pytest.raises(ApiError) as raised:
        function(*given)
    return raised.value.code


def pass_time():
    """The memory of phones ends, and the worker takes what is due then."""
    later = timezone.now() - timedelta(seconds=1)
    WebvhDid.objects.exclude(rotation_due_at=None).update(rotation_due_at=later)
    rotate_webvh_keys()


def signers(organization):
    return set(row_of(organization).resources.values_list("signed_by", flat=True))


def test_an_organization_on_webvh_has_its_did_at_once(faber):
    [shown] = faber.get("/tenants")
    did = shown["extendedInformation"]["issuerDid"]
    assert did.startswith("did:webvh:Qm") and f":{HOST}:issuers:" in did
    own = faber.get("/tenants/webvhDid")
    assert (own["did"], own["host"], own["state"]) == (did, HOST, "Active")
    assert read_log(faber).document["id"] == did


def test_a_credential_is_issued_proven_and_revoked_on_webvh(faber, badge, alice):
    assert is_valid(faber, alice) is True
    [credential] = faber.get("/credentials")
    faber.delete(f"/credentials/{credential['credentialId']}")
    assert alice.get("/credentials")[0]["state"] == "Revoked"
    assert is_valid(faber, alice) is False
    document = read_log(faber).document
    registry_id = RevocationRegistry.objects.get().registry_id
    _, links = read_resource(registry_id, REGISTRY, document)
    assert len(links) == StatusList.objects.count() == 2
    newest = read_resource(links[-1].resource_id, STATUS_LIST, document).content
    assert newest["revocationList"][1] == 1
    assert newest["timestamp"] == links[-1].timestamp
    assert read_all(faber, document) == 5


def test_a_registry_has_few_places_and_its_tails_are_at_the_host(faber, settings):
    settings.REVOCATION_FIRST_REGISTRY_SIZE = 1000
    faber.defines("Full Name", "level", supportRevocation=True)
    value = PublishedObject.objects.get(kind="registry").body["value"]
    assert value["maxCredNum"] == 250
    assert value["tailsLocation"].startswith(f"https://{HOST}/tails/")
    assert b"".join(fetch(value["tailsLocation"]).streaming_content)


def test_a_name_and_version_is_one_schema_in_whatever_order(faber):
    body = {"name": "Dog", "version": "1.0", "attributeNames": ["name", "year"]}
    first = faber.post("/definitions/schemas", body)
    assert (
        faber.post("/definitions/schemas", body | {"attributeNames": ["year", "name"]})
        == first
    )
    other = body | {"attributeNames": ["name", "age"]}
    assert refusal(faber.post, "/definitions/schemas", other) == "schema_exists"


def test_a_tag_is_given_once(faber):
    body = {"name": "Dog", "version": "1.0", "attributes": ["name"], "tag": "2026"}
    faber.post("/definitions/credentials", body)
    assert refusal(faber.post, "/definitions/credentials", body) == "tag_taken"
    del body["tag"]
    tags = {faber.post("/definitions/credentials", body)["definitionId"] for _ in "12"}
    assert len(tags) == 2
    made = CredentialDefinition.objects.values_list("tag", flat=True)
    assert set(made) == {"2026", "default", "default-2"}


def test_its_definition_is_found_by_an_id_with_slashes(faber, badge):
    path = f"/definitions/credentials/{badge['definitionId']}"
    assert faber.get(path) == badge
    assert faber.get(path.replace("/resources/", "%2Fresources%2F")) == badge
    noted = faber.call("patch", path, {"reference": "order 1"})
    assert noted["reference"] == "order 1"
    public = faber.get(f"/ledger/webvh/credential-definitions/{badge['definitionId']}")
    assert public["issuerId"] == row_of(faber).did
    faber.delete(path)
    assert refusal(faber.get, path) == "not_found"


@pytest.mark.parametrize(
    "address",
    [
        "/issuers/00000000/did.jsonl",
        "/issuers/nothing/did.jsonl",
        "/issuers/{segment}/resources/nothing",
        "/issuers/{segment}/resources/zQmQ2GjsFqbqQ2JrWWsRcmuoT5AMhQuyxzqefwWBeA5fiba",
        "/issuers/check/short",
    ],
)
def test_what_nobody_has_published_is_404_for_everybody(faber, address):
    answer = fetch(address.format(segment=row_of(faber).segment))
    assert answer.status_code == 404 and answer["Access-Control-Allow-Origin"] == "*"


def test_a_did_is_at_its_own_host_only(faber, badge):
    row = row_of(faber)
    digest = row.resources.first().digest
    for address in (row.log_url, f"/issuers/{row.segment}/resources/{digest}"):
        assert fetch(address).status_code == 200
        assert fetch(address, host=f"other.{HOST}").status_code == 404


def test_a_log_or_resource_is_read_by_one_statement(
    faber, badge, django_assert_num_queries
):
    row = row_of(faber)
    address = f"/issuers/{row.segment}/resources/{row.resources.first().digest}"
    fetch(row.log_url)
    for one in (row.log_url, address):
        with django_assert_num_queries(1) as found:
            fetch(one)
        assert found.captured_queries[0]["sql"].startswith("SELECT")


def test_who_has_made_a_did_is_asked_once_in_a_while(
    badge, acme, django_assert_num_queries, monkeypatch
):
    definition_id = CredentialDefinition.objects.get().definition_id
    assert LedgerReads(acme.tenant).definition(definition_id)
    with django_assert_num_queries(0):
        assert LedgerReads(acme.tenant).definition(definition_id)
    monkeypatch.setattr(ledgers, "FOUND_FOR_SECONDS", 1e-6)
    with django_assert_num_queries(1):
        assert LedgerReads(acme.tenant).definition(definition_id)


def test_a_rotation_is_read_by_phones_that_remember_either_document(
    faber, badge, alice
):
    known = read_log(faber)
    assert rotate(faber)["state"] == "Rotating"
    assert read_all(faber, known.document), "nothing is signed by the new key yet"
    rotate_webvh_keys()
    assert signers(faber) == {row_of(faber).resources.first().signed_by}
    both = read_log(faber, known)
    pass_time()  # all is signed anew
    assert read_all(faber, both.document)
    with pytest.raises(Refused):
        read_all(faber, known.document)
    assert row_of(faber).state == "Rotating"
    pass_time()  # the old key goes
    assert faber.get("/tenants/webvhDid")["state"] == "Active"
    after = read_log(faber, both)
    assert len(after.document["assertionMethod"]) == 1
    assert read_all(faber, after.document) and is_valid(faber, alice)


def test_what_is_published_during_a_rotation_is_read_after_it(faber, badge):
    rotate(faber)
    faber.defines("name")
    pass_time()
    faber.defines("name")
    both = read_log(faber).document
    assert read_all(faber, both)
    pass_time()
    assert read_all(faber) == 8


def test_many_resources_are_signed_anew_some_at_a_time(faber, badge, monkeypatch):
    monkeypatch.setattr(own_did, "SIGNED_AT_ONCE", 1)
    rotate(faber)
    pass_time()
    assert len(signers(faber)) == 2
    for _ in range(row_of(faber).resources.count()):
        rotate_webvh_keys()
    assert len(signers(faber)) == 1
    pass_time()
    assert row_of(faber).state == "Active" and read_all(faber)


def test_a_compromised_key_signs_nothing_at_once(faber, badge):
    known = read_log(faber)
    rotate(faber)
    assert rotate(faber, compromised=True)["state"] == "Active"
    after = read_log(faber, known)
    [key_id] = after.document["assertionMethod"]
    assert key_id not in known.document["assertionMethod"]
    assert read_all(faber, after.document)


def test_its_keys_are_sealed_anew_with_those_of_the_organization(
    faber, badge, monkeypatch
):
    monkeypatch.setattr(vault, "NEWEST_SECONDS", 0.0)
    monkeypatch.setattr(data_key_rotation, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(data_key_rotation, "LOCKED_SECONDS", 0.01)
    before = row_of(faber)
    output_of("rotate_data_keys", str(faber.tenant.public_id))
    after = row_of(faber)
    assert bytes(after.next_key) != bytes(before.next_key)
    assert after.unseal_seed("next_key") == before.unseal_seed("next_key")
    rotate(faber, compromised=True)
    assert read_all(faber)


def test_a_log_does_not_grow_longer_than_readers_take_it(faber, monkeypatch):
    monkeypatch.setattr(own_did, "MAX_ENTRIES", 1)
    assert refusal(lambda: rotate(faber)) == "log_full"


def test_what_stops_half_way_leaves_nothing(faber, badge, monkeypatch):
    """Keys, entry, list and registry are one transaction: a kill is a rollback."""
    before, log = WebvhResource.objects.count(), row_of(faber).log
    monkeypatch.setattr(own_did, "replace_document", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        newest = StatusList.objects.get().body
        later = newest | {"timestamp": newest["timestamp"] + 1}
        ledger_of(faber.tenant.network).publish_status_list(later)
    monkeypatch.setattr(own_did, "sign_anew", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        own_did.rotate(faber.tenant, is_compromised=True)
    assert WebvhResource.objects.count() == before == 4
    assert row_of(faber).log == log and read_all(faber)


def test_a_frozen_did_publishes_nothing_and_what_was_issued_is_proven(
    faber, badge, alice
):
    known = read_log(faber)
    assert faber.post("/tenants/webvhDid/end")["state"] == "Frozen"
    after = read_log(faber, known)
    assert not after.update_keys and not after.is_deactivated
    assert read_all(faber, after.document) and is_valid(faber, alice)
    row = row_of(faber)
    assert row.next_key is row.assertion_key is None
    body = {"name": "Dog", "version": "1.0", "attributeNames": ["name"]}
    assert refusal(faber.post, "/definitions/schemas", body) == "did_ended"
    assert refusal(lambda: rotate(faber)) == "did_ended"
    assert refusal(faber.post, "/tenants/webvhDid/end") == "did_ended"


def test_a_deactivated_did_is_no_more(faber, badge):
    shown = faber.post("/tenants/webvhDid/end", {"deactivate": True})
    assert shown["state"] == "Deactivated" and read_log(faber).is_deactivated


def test_a_deleted_organization_leaves_a_frozen_log_and_no_keys(faber, badge):
    own, known = row_of(faber), read_log(faber)
    remove_organization(faber.tenant, by=audit.SYSTEM)
    worker_erases()
    row = WebvhDid.objects.get()
    assert (row.tenant_id, row.next_key, row.assertion_key) == (None, None, None)
    assert row.state == "Frozen" and row.log.startswith(own.log)
    answer = fetch(row.log_url)
    assert answer.status_code == 200
    assert row.resources.count() == 4 and known.versions == 1


def test_the_endpoint_is_in_the_document(faber):
    shown = faber.post("/tenants/publicDid")
    assert (shown["state"], shown["endpoint"]) == (
        "Published",
        f"https://{HOST}/didcomm",
    )
    [service] = read_log(faber).document["service"]
    assert service["serviceEndpoint"] == f"https://{HOST}/didcomm"
    faber.post("/tenants/publicDid")
    rotate(faber, compromised=True)
    log = read_log(faber)
    assert log.versions == 3 and log.document["service"] == [service]


def test_anybody_may_connect_by_the_did(faber, acme):
    faber.post("/tenants/publicDid")
    faber.put("/tenants/publicDid", {"acceptsRequests": True})
    alice, did = acme.hosts(), row_of(faber).did
    made = alice.post("/connections/requests", {"did": did})
    assert made["state"] == "Connected"
    states = [one["state"] for one in faber.get("/connections")]
    assert sorted(states) == ["Connected", "Invited"], "one, and the open invitation"


def test_a_card_is_called_by_the_name_of_its_schema(faber, badge, alice):
    schema_id = alice.get("/credentials")[0]["schemaId"]
    assert name_of_schema(schema_id) == badge["name"]
    assert name_of_schema(f"{schema_id}x") == f"{schema_id}x"


def test_a_rotation_that_fails_stops_no_other(faber, acme, monkeypatch):
    acme.put("/tenants/webvhDid")
    rotate(faber), rotate(acme)
    append, broken = own_did.sign_anew, row_of(faber).pk

    def fail(row, limit=None):
        return 1 / 0 if row.pk == broken else append(row, limit)

    monkeypatch.setattr(own_did, "sign_anew", fail)
    pass_time()
    assert row_of(faber).coming_key and not row_of(acme).coming_key
    monkeypatch.undo()
    pass_time()
    pass_time()
    assert row_of(faber).state == row_of(acme).state == "Active"


def test_an_older_log_than_was_served_does_not_start(faber, badge):
    older = row_of(faber).log
    rotate(faber)
    check_or_exit()
    read_log(faber)
    WebvhDid.objects.update(log=older, versions=1)  # as a restore of last night does
    with pytest.raises(SystemExit):
        check_or_exit()
    [found] = [one for one in doctor.run(is_starting=True) if one.name == "served_logs"]
    assert "lacks a version that was served" in found.text


def test_a_version_that_is_first_read_by_two_at_once_is_no_fork(faber, monkeypatch):
    """This storage does not replace files, so the second one gets another name."""
    both = Barrier(2)

    def empty(data):
        both.wait(PATIENCE)
        return ContentFile(data)

    monkeypatch.setattr(served_logs, "ContentFile", empty)
    at_once(*[lambda: read_log(faber)] * 2)
    scid = row_of(faber).did.split(":")[2]
    assert len(default_storage.listdir(f"served_logs/{scid}")[1]) == 2
    check_or_exit()


def test_a_log_that_was_served_and_is_gone_does_not_start(faber, acme):
    gone = acme.put("/tenants/webvhDid")["did"]
    read_log(acme)
    check_or_exit()
    WebvhDid.objects.filter(did=gone).delete()  # as a restore of last night does
    with pytest.raises(SystemExit):
        check_or_exit()
    [found] = [one for one in doctor.run(is_starting=True) if one.name == "served_logs"]
    assert f"did:webvh:{served_logs.scid_in(gone)} was served already" in found.text


def test_it_does_not_start_also_with_another_master_key(faber, acme, settings):
    gone = acme.put("/tenants/webvhDid")["did"]
    read_log(acme)
    former = settings.MASTER_KEY
    settings.MASTER_KEY, settings.OLD_MASTER_KEY = os.urandom(32), former
    vault.forget_keys()
    output_of("rotate_master_key")
    settings.OLD_MASTER_KEY = None
    vault.forget_keys()
    check_or_exit()
    WebvhDid.objects.filter(did=gone).delete()
    with pytest.raises(SystemExit):
        check_or_exit()


def test_what_another_installation_has_served_stops_none(faber):
    """They may share a storage, or its files were copied for a move."""
    read_log(faber)
    for number, content in enumerate(
        (b"0" * 64, served_logs.mark_of("QmNone").encode(), b"")
    ):
        name = f"served_logs/QmOther/{number}-Qm"
        default_storage.save(name, ContentFile(content))
    check_or_exit()
    [found] = doctor.check_served_logs()
    assert "did:webvh:QmOther was served" in found.text


def serve(scid, name, content):
    default_storage.save(f"served_logs/{scid}/{name}", ContentFile(content))


def test_a_version_that_only_another_installation_has_served_stops_none(faber):
    """The target of a move, which shares the storage with the source, has rotated."""
    read_log(faber)
    scid = served_logs.scid_in(row_of(faber).did)
    serve(scid, "2-QmNext", b"0" * 64)
    serve(scid, "3-QmNext_0123456789abcdef", b"0" * 64)
    serve(scid, "3-QmNext", b"")
    check_or_exit()
    assert len(served_logs.list_served(scid)) == 3


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_missing_version_that_a_former_version_has_served_counts(faber, is_empty):
    scid = served_logs.scid_in(row_of(faber).did)
    mark = served_logs.mark_of(scid)
    serve(scid, "2-QmNext", b"" if is_empty else mark.encode())
    with pytest.raises(SystemExit):
        check_or_exit()


def test_a_version_of_before_there_were_marks_gets_one_when_it_is_served(faber):
    log = own_log.read_last(row_of(faber).log)
    scid = served_logs.scid_in(row_of(faber).did)
    serve(scid, log["versionId"], b"")
    assert not served_logs.is_marked(scid)
    read_log(faber)
    assert served_logs.is_marked(scid)


class Away(Exception):
    """What a storage of objects raises that cannot be reached."""


@pytest.mark.parametrize("error", [PermissionError("no"), Away("no answer")])
def test_a_storage_that_cannot_be_read_is_said_in_a_sentence(
    faber, monkeypatch, caplog, error
):
    def fail(path):
        raise error

    away = SimpleNamespace(listdir=fail)
    monkeypatch.setattr(served_logs, "default_storage", away)
    with pytest.raises(SystemExit):
        check_or_exit()
    assert "Agency does not start. The storage cannot be read" in caplog.text


def test_who_was_deleted_and_erased_stops_no_start(faber, acme):
    acme.put("/tenants/webvhDid")
    read_log(acme)
    remove_organization(acme.tenant, by=audit.SYSTEM)
    worker_erases()
    assert not Tenant._base_manager.filter(pk=acme.tenant.pk).exists()
    check_or_exit()
    assert not served_logs.find_lost()


def test_all_logs_are_checked_by_one_statement(
    faber, acme, django_assert_max_num_queries
):
    acme.put("/tenants/webvhDid")
    read_log(faber), read_log(acme)
    # And one each for the names of tables, whether there is a DID, and those gone.
    with django_assert_max_num_queries(4):
        served_logs.require_whole()


@pytest.mark.django_db
def test_who_has_no_did_webvh_starts_without_the_storage(monkeypatch):
    monkeypatch.setattr(served_logs, "default_storage", None)
    check_or_exit()


def test_a_database_without_any_did_webvh_does_not_start_beside_what_was_served(
    faber, settings, caplog
):
    """As after the restore of a backup from before it, or in a new installation."""
    read_log(faber)
    WebvhDid.objects.all().delete()
    with pytest.raises(SystemExit):
        check_or_exit()
    assert "For a new installation, give it a storage of its own" in caplog.text
    settings.MASTER_KEY = os.urandom(32)  # then another installation has served it
    DataKey.objects.all().delete()
    vault.forget_keys()
    check_or_exit()


def test_what_was_served_is_in_no_backup(faber):
    read_log(faber)
    scid = row_of(faber).did.split(":")[2]
    assert len(default_storage.listdir(f"served_logs/{scid}")[1]) == 1
    assert not any("served_logs" in name for name in needed_files())


@pytest.mark.parametrize(
    "address",
    [
        "http://agency.example.org", "https://agency.example.org:8443",
        "https://agency.example.org/below", f"https://{'a' * 50}.example.org",
        "https://localhost", "https://10.0.0.1", "https://a.example.org",
        "https://1a.example.org", "https://agency", "https://my-localhost.example.org",
    ],
)  # fmt: skip
@pytest.mark.django_db
def test_no_did_has_an_address_that_some_wallets_refuse(settings, address):
    settings.PUBLIC_URL = address
    with pytest.raises(Conflict) as refused:
        Organization("Faber", network_id="webvh")
    assert refused.value.code == "no_public_host"
    acme = Organization("Acme")
    assert refusal(acme.put, "/tenants/webvhDid") == "no_public_host"
    assert refusal(acme.post, "/tenants/webvhDid/end") == "no_webvh_did"


def leads_here(monkeypatch, domain, answer=None):
    """Let an https call of the domain come to this installation, or get the answer.

    It is made outside of transactions.
    """
    asked = []

    def get(url, **options):
        asked.append(url)
        assert not transaction.get_connection().in_atomic_block
        assert url.startswith(f"https://{domain}/") and not options["max_redirects"]
        found = fetch(url.removeprefix(f"https://{domain}"), domain)
        return http.Response(found.status_code, {}, answer or found.content, True, 0.0)

    monkeypatch.setattr(own_did.http, "get", get)
    return asked


def test_a_domain_that_leads_here_gets_a_did(acme, monkeypatch):
    domain = f"acme.{HOST}"
    leads_here(monkeypatch, domain)
    made = acme.put("/tenants/webvhDid", {"host": domain.upper()})
    assert made["host"] == domain and f":{domain}:issuers:" in made["did"]
    address = row_of(acme).log_url.removeprefix(f"https://{domain}")
    assert fetch(address, domain).status_code == 200
    assert refusal(acme.put, "/tenants/webvhDid", {"host": domain}) == "did_exists"
    assert AuditEntry.objects.filter(action="did.created").exists()


def creations(organization):
    """Both calls that create an organization, of an account with one already."""
    return [
        partial(one.post, "/tenants") for one in (organization, Provider(organization))
    ]


def test_an_organization_is_created_at_a_domain_that_leads_here(acme, monkeypatch):
    for name, create in zip("bd", creations(acme), strict=True):
        domain = f"{name}ank.{HOST}"
        asked = leads_here(monkeypatch, domain)
        wanted = {"name": name, "networkId": "webvh", "host": domain.upper()}
        made = create(wanted)
        assert len(asked) == 1 and made["network"]["networkId"] == "webvh"
        row = WebvhDid.objects.get(did=made["extendedInformation"]["issuerDid"])
        assert row.host == domain and f":{domain}:issuers:" in row.did
        address = row.log_url.removeprefix(f"https://{domain}")
        assert fetch(address, domain).status_code == 200


def test_a_domain_does_with_a_public_url_that_no_did_can_have(
    settings, transactional_db, stored_keys, monkeypatch
):
    """Nor is there the network before."""
    acme = Organization("Acme")
    settings.ALLOWED_HOSTS = ["testserver", f".{HOST}"]
    leads_here(monkeypatch, f"bank.{HOST}")
    wanted = {"name": "Bank", "networkId": "webvh"}
    for create in creations(acme):
        assert refusal(create, wanted) == "no_public_host"
    made = acme.post("/tenants", wanted | {"host": f"bank.{HOST}"})
    assert f":bank.{HOST}:issuers:" in made["extendedInformation"]["issuerDid"]


@pytest.mark.parametrize(
    "network, host, code",
    [
        ("webvh", "10.0.0.1", "bad_host"),
        ("webvh", f"bank.{HOST}", "host_elsewhere"),
        ("local", f"bank.{HOST}", "invalid_request"),
        (None, f"bank.{HOST}", "invalid_request"),
        ("nowhere", f"bank.{HOST}", "unknown_network"),
    ],
)
def test_an_organization_with_a_wrong_host_is_not_made(
    acme, monkeypatch, network, host, code
):
    leads_here(monkeypatch, f"bank.{HOST}", b"something else")
    wanted = {"name": "Bank", "host": host} | (
        {"networkId": network} if network else {}
    )
    before = Tenant.objects.count(), WebvhDid.objects.count()
    for create in creations(acme):
        assert refusal(create, wanted) == code
    chosen = ["--network", network] if network else []
    with pytest.raises(CommandError):
        call_command("create_organization", "Bank", *chosen, "--host", host)
    assert (Tenant.objects.count(), WebvhDid.objects.count()) == before


def test_a_domain_of_another_account_is_taken(faber, acme, monkeypatch):
    domain = f"bank.{HOST}"
    leads_here(monkeypatch, domain)
    wanted = {"name": "Bank", "networkId": "webvh", "host": domain}
    acme.post("/tenants", wanted)
    assert acme.put("/tenants/webvhDid", {"host": domain})["host"] == domain
    mallory = Organization("Mallory")
    before = Tenant.objects.count(), WebvhDid.objects.count()
    asked = leads_here(monkeypatch, domain)
    for create in creations(mallory):
        assert refusal(create, wanted) == "host_taken"
    assert refusal(mallory.put, "/tenants/webvhDid", {"host": domain}) == "host_taken"
    assert (Tenant.objects.count(), WebvhDid.objects.count()) == before and not asked


def test_of_two_accounts_that_want_a_domain_at_once_one_gets_it(acme, monkeypatch):
    domain, mallory = f"bank.{HOST}", Organization("Mallory")
    both, require_own = Barrier(2), own_did.require_own

    def look(host, provider_id):
        require_own(host, provider_id)
        if not transaction.get_connection().in_atomic_block:
            both.wait(PATIENCE)

    leads_here(monkeypatch, domain)
    monkeypatch.setattr(own_did, "require_own", look)
    take = [
        partial(one.put, "/tenants/webvhDid", {"host": domain})
        for one in (acme, mallory)
    ]
    assert error_codes(at_once(*take)) == ["host_taken"]
    assert WebvhDid.objects.filter(host=domain).count() == 1


def test_a_quota_is_asked_before_the_domain(acme, monkeypatch, settings):
    settings.QUOTA_ORGANIZATIONS = 1
    acme.tenant.provider.has_quotas = True
    acme.tenant.provider.save()
    asked = leads_here(monkeypatch, f"bank.{HOST}")
    wanted = {"name": "Bank", "networkId": "webvh", "host": f"bank.{HOST}"}
    for create in creations(acme):
        assert refusal(create, wanted) == "quota_exceeded"
    assert not asked


def test_who_has_a_did_webvh_asks_no_other_domain(faber, monkeypatch):
    asked = leads_here(monkeypatch, f"bank.{HOST}")
    body = {"host": f"bank.{HOST}"}
    assert refusal(faber.put, "/tenants/webvhDid", body) == "did_exists" and not asked


def test_a_call_that_is_sent_again_makes_one_organization(acme, monkeypatch):
    domain = f"bank.{HOST}"
    asked = leads_here(monkeypatch, domain)
    wanted = {"name": "Bank", "networkId": "webvh", "host": domain}
    key = {"Idempotency-Key": "bank"}
    made = acme.call("post", "/tenants", wanted, **key)
    assert acme.call("post", "/tenants", wanted, **key) == made and len(asked) == 1


def test_the_command_creates_an_organization_at_a_domain(acme, monkeypatch):
    domain = f"bank.{HOST}"
    leads_here(monkeypatch, domain)
    call_command("create_organization", "Bank", network="webvh", host=domain)
    assert WebvhDid.objects.get(tenant__name="Bank").host == domain


@pytest.mark.parametrize(
    "answer, said",
    [
        (http.Response(200, {}, b"For sale", True, 0.0), "something else than the log"),
        (http.Response(301, {}, b"", True, 0.0), "answers 301"),
        (http.CallFailed("endpoint_unreachable", "no such host", 0.0), "be reached"),
    ],
)
def test_doctor_tells_of_a_domain_that_is_lost(acme, monkeypatch, answer, said):
    domain = f"acme.{HOST}"
    leads_here(monkeypatch, domain)
    acme.put("/tenants/webvhDid", {"host": domain})
    WebvhDid.objects.exclude(host=domain).update(is_deactivated=True, **NO_KEYS)
    assert not list(doctor.check_webvh_hosts())

    def get(url, **options):
        assert url == row_of(acme).log_url
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(own_did.http, "get", get)
    [found] = doctor.check_webvh_hosts()
    assert (found.name, found.level) == ("webvh_host", "warning")
    assert domain in found.text and said in found.text


def test_doctor_asks_each_domain_once_and_not_many_of_them(
    faber, acme, monkeypatch, django_assert_num_queries
):
    acme.put("/tenants/webvhDid")
    asked = []
    monkeypatch.setattr(
        own_did, "find_outside_problem", lambda row: asked.append(row.host) or "It is."
    )
    with django_assert_num_queries(1):
        assert len(list(doctor.check_webvh_hosts())) == 1
    monkeypatch.setattr(doctor, "MAX_HOSTS", 0)
    assert not list(doctor.check_webvh_hosts()) and asked == [HOST]


def test_a_domain_that_leads_elsewhere_gets_none(acme, monkeypatch):
    leads_here(monkeypatch, f"acme.{HOST}", b"something else")
    wanted = {"host": f"acme.{HOST}"}
    assert refusal(acme.put, "/tenants/webvhDid", wanted) == "host_elsewhere"
    assert refusal(lambda: rotate(acme)) == "no_webvh_did"
    assert acme.get("/tenants/webvhDid") == {}


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "a b", "localhost", "x.example.org", "[::1]"]
)
def test_a_host_that_no_wallet_reads_is_refused(acme, host):
    assert refusal(acme.put, "/tenants/webvhDid", {"host": host}) == "bad_host"


def test_who_has_another_did_goes_on_publishing_by_it(acme):
    """docs/ledgers.md says so."""
    acme.put("/tenants/webvhDid")
    acme.defines("name")
    acme.post("/tenants/publicDid")
    assert not row_of(acme).resources.exists() and read_log(acme).versions == 1


def test_by_default_a_did_is_at_the_host_of_the_installation(acme):
    assert acme.put("/tenants/webvhDid")["host"] == HOST
