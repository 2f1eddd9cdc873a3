"""Keys of a did:webvh that are rotated while something else happens to it."""

from datetime import timedelta
from functools import partial
from threading import Event

import pytest
from django.utils import timezone

from core.work import transactions
from credentials.ledgers.webvh import encoding, own_did, own_log
from credentials.models import (
    Credential,
    CredentialDefinition,
    StatusList,
    WebvhDid,
)
from credentials.tasks import rotate_webvh_keys
from tenants import audit
from tenants.lifecycle.provisioning import remove_organization
from tests.credentials.ledgers.webvh.conftest import VALUES
from tests.support.own_webvh import read_all, read_log, row_of
from tests.support.races import (
    PATIENCE,
    at_once,
    during,
    error_codes,
    is_waited_for,
    threads,
    wait_until,
    while_locked,
)

AT_ONCE = 4


def rotate(faber, compromised=False):
    body = {"compromised": compromised}
    return faber.post("/tenants/webvhDid/rotation", body)


def end(faber):
    return faber.post("/tenants/webvhDid/end")


def be_due(faber):
    """The memory of phones ends: the next step of a rotation is due."""
    due = WebvhDid.objects.filter(tenant=faber.tenant, rotation_due_at__isnull=False)
    due.update(rotation_due_at=timezone.now() - timedelta(seconds=1))


def finish_rotation(faber):
    for _ in range(2):
        be_due(faber)
        rotate_webvh_keys()
    assert row_of(faber).state == "Active"


def assert_keys_are_whole(faber):
    """The keys that are kept are those that the log announces and its document lists."""
    row, log = row_of(faber), read_log(faber)
    assert log.versions == row.versions == len(row.log.splitlines())
    announced = own_log.multikey_of(row.unseal_seed("next_key"))
    assert log.next_key_hashes == [encoding.next_key_hash(announced)]
    listed = [key["publicKeyMultibase"] for key in log.document["verificationMethod"]]
    columns = ["assertion_key"] + ["coming_key"] * (row.coming_key is not None)
    kept = {own_log.multikey_of(row.unseal_seed(column)) for column in columns}
    assert kept <= set(listed)
    assert read_all(faber, log.document) == row.resources.count()


def overlapping(first, second):
    """Run a call, and another that waits for it: its transaction is still open.

    Return the results of both.
    """
    begun = Event()

    def hold():
        with transactions.atomic():
            result = first()
            begun.set()
            wait_until(is_waited_for)
            return result

    def follow():
        assert begun.wait(PATIENCE)
        return second()

    return threads([hold, follow])


@pytest.mark.parametrize("first, second", [(True, True), (True, False), (False, True)])
def test_a_compromised_key_goes_while_another_rotation_begins(
    faber, badge, first, second
):
    known = read_log(faber)
    done = overlapping(
        partial(own_did.rotate, faber.tenant, first), partial(rotate, faber, second)
    )
    assert not error_codes(done)
    after = read_log(faber, known)
    assert after.versions == 3
    [old] = known.document["assertionMethod"]
    assert old not in after.document["assertionMethod"]
    assert_keys_are_whole(faber)


def test_of_two_rotations_the_second_is_told_that_one_has_begun(faber, badge):
    done = overlapping(
        partial(own_did.rotate, faber.tenant), partial(rotate, faber, False)
    )
    assert error_codes(done) == ["rotation_under_way"]
    assert read_log(faber).versions == 2
    assert_keys_are_whole(faber)
    finish_rotation(faber)
    assert_keys_are_whole(faber)


def test_a_key_is_taken_away_while_the_worker_signs_anew(faber, badge):
    """The worker has put its new key into use: the call waits, and replaces that too."""
    rotate(faber)
    be_due(faber)
    row = row_of(faber)
    done = overlapping(
        partial(own_did.take_rotation_step, row), partial(rotate, faber, True)
    )
    assert not error_codes(done)
    assert row_of(faber).state == "Active"
    assert len(read_log(faber).document["assertionMethod"]) == 1
    assert_keys_are_whole(faber)
    rotate_webvh_keys()
    assert read_log(faber).versions == 3, "nothing is left for the worker"


def test_the_worker_leaves_a_key_that_is_taken_away_now(faber, badge):
    rotate(faber)
    be_due(faber)
    during(partial(own_did.rotate, faber.tenant, True), rotate_webvh_keys)
    assert row_of(faber).state == "Active" and read_log(faber).versions == 3
    assert_keys_are_whole(faber)


def test_two_workers_take_a_step_once(faber, badge):
    rotate(faber)
    for versions in (2, 3):
        be_due(faber)
        at_once(*[rotate_webvh_keys] * AT_ONCE)
        assert read_log(faber).versions == versions
        assert_keys_are_whole(faber)
    assert row_of(faber).state == "Active"


@pytest.mark.parametrize("compromised", [False, True])
def test_who_issues_and_revokes_meanwhile_notices_nothing(
    faber, badge, holder, compromised
):
    others = [faber.hosts(name) for name in ("Bob", "Carol")]
    for other in others:
        other.receives(faber, badge, VALUES)
    ids = [one["credentialId"] for one in faber.get("/credentials")]
    done = at_once(
        partial(rotate, faber, compromised),
        *[partial(faber.delete, f"/credentials/{one}") for one in ids],
        *[partial(one.receives, faber, badge, VALUES) for one in (holder, *others)],
        rotate_webvh_keys,
    )
    assert not error_codes(done), done
    assert_keys_are_whole(faber)
    if not compromised:
        finish_rotation(faber)
    assert_keys_are_whole(faber)
    assert len(set(row_of(faber).resources.values_list("signed_by", flat=True))) == 1
    revoked = Credential.objects.filter(role="issuer", state="Revoked")
    assert revoked.count() == len(ids) == 3
    assert sum(StatusList.objects.latest("timestamp").body["revocationList"]) == 3


@pytest.mark.parametrize(
    "action", ["publish_status_list", "publish_definition", "publish_registry"]
)
def test_what_is_published_waits_for_a_rotation_and_has_the_new_key(
    faber, badge, action
):
    publish = {
        "publish_status_list": partial(revoke_one, faber, badge),
        "publish_definition": partial(faber.defines, "name"),
        "publish_registry": partial(
            faber.defines, "name", "year", supportRevocation=True
        ),
    }[action]
    if action == "publish_status_list":
        faber.hosts().receives(faber, badge, VALUES)
    done = overlapping(partial(own_did.rotate, faber.tenant, True), publish)
    assert not error_codes(done), done
    assert_keys_are_whole(faber)


def revoke_one(faber, badge):
    [credential] = faber.get("/credentials")
    return faber.delete(f"/credentials/{credential['credentialId']}")


def test_of_an_end_and_a_rotation_the_end_is_the_last_entry(faber, badge):
    done = overlapping(partial(own_did.end, faber.tenant), partial(rotate, faber, True))
    assert error_codes(done) == ["did_ended"]
    after = read_log(faber)
    assert after.versions == 3 and not after.update_keys
    assert row_of(faber).next_key is None and read_all(faber, after.document)


def test_of_two_ends_the_second_is_told(faber, badge):
    done = overlapping(partial(own_did.end, faber.tenant, True), partial(end, faber))
    assert error_codes(done) == ["did_ended"]
    assert read_log(faber).is_deactivated


def test_a_registry_is_published_while_the_organization_is_deleted(faber, badge):
    """Who makes one has locked the definition, and locks the DID next."""
    rows = CredentialDefinition.objects.select_for_update(no_key=True)
    while_locked(
        rows.get,
        partial(remove_organization, faber.tenant, audit.SYSTEM),
        partial(own_did.lock_live, tenant=faber.tenant),
    )
    assert row_of(faber).state != "Active"
