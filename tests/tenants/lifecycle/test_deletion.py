"""An organization that its own key deletes: frozen for hours, then gone, or undone."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models import F
from django.utils import timezone

from connections.models import OutboundMessage
from tenants import audit
from tenants.lifecycle import deletion, freezing
from tenants.lifecycle.tasks import erase
from tenants.models import ApiKey, AuditEntry, Tenant
from tests.support import queues, races
from tests.support.erasing import worker_erases
from tests.support.errors import assert_error, error_of
from tests.support.people import Provider
from webhooks.events.types import Type
from webhooks.models import Delivery, Webhook
from webhooks.tasks import maintain

pytestmark = pytest.mark.django_db(transaction=True)
SOON = "organization_deleted_soon"
HOOK = {
    "url": "https://hooks.example",
    "type": "Zapier",
    "messageTypes": [str(one) for one in Type],
}


def path_of(organization):
    return f"/tenants/{organization.tenant.public_id}"


@pytest.fixture
def branch(provider):
    """An organization of a provider, as its own program and as a row."""
    made = provider.makes("Branch")
    opened = provider.opens(made)
    opened.tenant = Tenant.objects.get(public_id=made["tenantId"])
    opened.path = f"/tenants/{made['tenantId']}"
    return opened


def writes(faber, row):
    """Enqueue a message to the phone."""
    faber.post("/messages", {"connectionId": row.connection_id, "text": "Hello"})
    assert queues.pending().exists()


def hours_pass(hours=24):
    Tenant.objects.filter(deletion_due_at__isnull=False).update(
        deletion_due_at=F("deletion_due_at") - timedelta(hours=hours, seconds=1)
    )


def actions(organization):
    found = AuditEntry.objects.filter(tenant=organization.tenant).order_by("pk")
    return [one for one in found.values_list("action", flat=True) if "organi" in one]


def test_the_call_answers_as_ever_and_nothing_is_destroyed(faber):
    alice = faber.hosts()
    assert faber.delete(path_of(faber)) is None
    for api in (faber, alice):
        answer = api.send("get", "/connections")
        assert_error(answer, 503, SOON)
        assert int(answer["Retry-After"]) > 0
    assert faber.tenant.memberships.count() == 0
    deletion.undo_deletion(faber.tenant, audit.SYSTEM)
    assert alice.get("/connections") == []


def test_a_repeated_call_prolongs_nothing_and_undoes_nothing(faber):
    faber.delete(path_of(faber))
    due = Tenant.objects.get(pk=faber.tenant.pk).deletion_due_at
    for path in (path_of(faber), f"/tenants/{faber.tenant.pk}"):
        assert_error(error_of(faber.delete, path), 503, SOON)
    # One that was authenticated before.
    deletion.request_deletion(faber.tenant, audit.SYSTEM)
    assert Tenant.objects.get(pk=faber.tenant.pk).deletion_due_at == due
    assert actions(faber) == ["organization.deletion_requested"]


def test_after_the_hours_it_is_deleted_by_itself(faber):
    faber.delete(path_of(faber))
    hours_pass(23)
    erase()
    assert_error(error_of(faber.get, "/connections"), 503, SOON)
    hours_pass(1)
    erase()
    assert error_of(faber.get, "/connections").status == 401
    worker_erases()
    assert not Tenant._base_manager.filter(pk=faber.tenant.pk).exists()
    assert actions(faber)[-1] == "organization.deleted"


def test_peers_are_told_at_the_end_and_not_before(faber, acme):
    bob = acme.hosts("Bob")
    bob.meets(faber)
    [before] = bob.get("/connections")
    faber.delete(path_of(faber))
    body = {"connectionId": before["connectionId"], "text": "Hello"}
    assert_error(error_of(bob.post, "/messages", body), 503, SOON)
    assert bob.get("/connections") == [before]
    hours_pass()
    erase()
    assert error_of(bob.post, "/messages", body).code == "connection_gone"


def test_another_agent_keeps_its_messages_until_it_is_undone(faber, phone):
    row = phone.connects(faber)
    faber.delete(path_of(faber))
    ping = phone.build("trust_ping/1.0/ping")
    sent = phone.pack(ping, to=row.my_key.verkey)
    assert_error(phone.post(sent), 503, SOON)
    deletion.undo_deletion(faber.tenant, audit.SYSTEM)
    assert phone.post(sent).status_code == 202


def test_queues_are_held_until_it_is_undone(faber, phone):
    faber.post("/webhooks", HOOK)
    row = phone.connects(faber)
    writes(faber, row)
    waiting = queues.pending().count()
    assert waiting and Delivery.due().exists()
    faber.delete(path_of(faber))
    assert not Delivery.due().exists() and not OutboundMessage.due().exists()
    deletion.undo_deletion(faber.tenant, audit.SYSTEM)
    assert Delivery.due().exists() and OutboundMessage.due().count() == waiting


def test_what_is_enqueued_later_is_held_too(faber):
    """By what began before: here, a delivery whose worker tries again."""
    faber.post("/webhooks", HOOK)
    faber.invites()
    [late] = Delivery.claim(1)
    faber.delete(path_of(faber))
    assert late.retry("timeout")
    Delivery.objects.filter(pk=late.pk).update(due_at=timezone.now())
    assert Delivery.due().exists()
    erase()
    assert not Delivery.due().exists()


def test_a_recovery_waits_until_it_is_undone(faber):
    hook = faber.post("/webhooks", HOOK)["id"]
    webhook = Webhook.objects.get(pk=hook)
    faber.invites()
    Delivery.objects.update(status="exhausted", finished_at=timezone.now())
    faber.post(f"/webhooks/{hook}/recover", {"since": "2026-01-01T00:00:00Z"})
    faber.delete(path_of(faber))
    maintain()
    assert not Delivery.due().filter(webhook=webhook).exists()
    deletion.undo_deletion(faber.tenant, audit.SYSTEM)
    maintain()
    assert Delivery.due().filter(webhook=webhook).exists()


def test_a_packed_message_still_goes_out_after_the_end(faber, phone):
    row = phone.connects(faber)
    writes(faber, row)
    OutboundMessage.objects.filter(status="pending").update(envelope=b"packed")
    faber.delete(path_of(faber))
    hours_pass()
    erase()
    worker_erases()
    left = OutboundMessage.objects.filter(tenant=None, envelope=b"packed")
    assert left.filter(due_at__lte=timezone.now()).exists()


def test_a_provider_undoes_it_by_its_key(provider, branch):
    branch.delete(branch.path)
    [listed] = provider.get("/tenants")
    assert listed["deletionDueAtUtc"]
    assert_error(error_of(provider.get, branch.path), 503, SOON)
    assert_error(error_of(provider.get, f"{branch.path}/keys"), 503, SOON)
    assert provider.post(f"{branch.path}/deletion/undo") is None
    assert branch.get("/connections") == []
    assert "deletionDueAtUtc" not in provider.get(branch.path)
    again = error_of(provider.post, f"{branch.path}/deletion/undo")
    assert_error(again, 409, "wrong_state")
    assert actions(branch)[-1] == "organization.deletion_undone"


@pytest.mark.parametrize("path", ["/deletion/end", "", "all"])
def test_a_provider_ends_it_at_once(provider, branch, path):
    branch.delete(branch.path)
    if path == "/deletion/end":
        provider.post(branch.path + path)
    else:
        provider.delete("/tenants" if path else branch.path)
    assert error_of(branch.get, "/connections").status == 401
    assert provider.get("/tenants") == []
    for what in ("undo", "end"):
        late = error_of(provider.post, f"{branch.path}/deletion/{what}")
        assert_error(late, 404, "not_found")


def test_a_providers_delete_is_at_once(provider, branch):
    provider.delete(branch.path)
    assert not Tenant.objects.filter(pk=branch.tenant.pk).exists()


def test_the_end_is_refused_of_one_that_is_not_deleted_soon(provider, branch):
    error = error_of(provider.post, f"{branch.path}/deletion/end")
    assert_error(error, 409, "wrong_state")
    assert branch.get("/connections") == []


def test_a_key_of_the_organization_does_neither(acme, branch):
    """Nor does another provider."""
    other = Provider(acme)
    branch.delete(branch.path)
    for what in ("undo", "end"):
        path = f"{branch.path}/deletion/{what}"
        for prefix in ("/provider/v1", "/management/v1"):
            answer = branch.client.post(prefix + path, headers=branch.headers)
            assert answer.status_code == 401
        assert error_of(branch.post, path).status in (404, 503)
        assert_error(error_of(other.post, path), 404, "not_found")
    assert Tenant.objects.get(pk=branch.tenant.pk).deletion_due_at


def test_who_undoes_it_may_revoke_the_key_that_asked(provider, branch):
    branch.delete(branch.path)
    provider.post(f"{branch.path}/deletion/undo", {"revokeKey": True})
    assert error_of(branch.get, "/connections").status == 401
    revoked = ApiKey.objects.get(tenant=branch.tenant, revoked_at__isnull=False)
    assert revoked.kind == ApiKey.Kind.ACCESS_TOKEN
    provider.call("patch", f"{branch.path}/keys")
    assert provider.opens({"tenantId": branch.tenant.public_id}).get("/tenants")


@pytest.mark.parametrize("end", [deletion.end_deletion, None])
def test_of_undo_and_end_one_wins(faber, end):
    for _ in range(3):
        deletion.request_deletion(faber.tenant, audit.SYSTEM)
        if not end:
            hours_pass()
        ends = (lambda: end(faber.tenant, audit.SYSTEM)) if end else erase
        undo = lambda: deletion.undo_deletion(faber.tenant, audit.SYSTEM)  # noqa: E731
        answers = races.at_once(undo, ends, undo)
        is_there = Tenant.objects.filter(pk=faber.tenant.pk).exists()
        refused = races.error_codes(answers)
        assert set(refused) <= {"wrong_state"}
        assert len(refused) == (1 if not end and is_there else 2)
        if not is_there:
            return
        assert faber.get("/connections") == []


def test_a_killed_end_is_done_by_the_next_run(faber, monkeypatch):
    faber.delete(path_of(faber))
    hours_pass()

    def dies(*arguments, **named):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("tenants.lifecycle.provisioning.Erasure.start", dies)
        with pytest.raises(KeyboardInterrupt):
            erase()
    assert_error(error_of(faber.get, "/connections"), 503, SOON)
    erase()
    assert error_of(faber.get, "/connections").status == 401


def test_a_killed_call_holds_the_queues_later(faber, monkeypatch):
    faber.post("/webhooks", HOOK)
    faber.invites()

    def dies(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(deletion, "hold_queues", dies)
        with pytest.raises(KeyboardInterrupt):
            deletion.request_deletion(faber.tenant, audit.SYSTEM)
    assert Delivery.due().exists()
    erase()
    assert not Delivery.due().exists()


def test_one_that_fails_does_not_keep_the_others(faber, acme, monkeypatch, caplog):
    for one in (faber, acme):
        one.delete(path_of(one))
    hours_pass()
    remove = deletion.remove_organization

    def fails_for_one(tenant, by):
        if tenant.pk == faber.tenant.pk:
            raise RuntimeError("a bug")
        remove(tenant, by)

    monkeypatch.setattr(deletion, "remove_organization", fails_for_one)
    erase()
    assert "a bug" in caplog.text
    assert list(Tenant.objects.filter(pk__in=[faber.tenant.pk, acme.tenant.pk])) == [
        faber.tenant
    ]


def test_an_undo_that_waits_for_a_new_deletion_ends_nothing_early(faber):
    """A worker saw it due; it was undone and asked for again before its turn."""
    faber.delete(path_of(faber))
    hours_pass()
    seen = Tenant.objects.get(pk=faber.tenant.pk)
    deletion.undo_deletion(seen, audit.SYSTEM)
    faber.delete(path_of(faber))
    deletion.end_if_due(seen)
    assert_error(error_of(faber.get, "/connections"), 503, SOON)


def test_a_move_is_refused_and_resumes_nothing(faber, tmp_path):
    faber.delete(path_of(faber))
    for flags in ([tmp_path / "f"], [tmp_path / "f", "--move"], ["--resume"]):
        with pytest.raises(CommandError, match=f"^{SOON}: ") as refused:
            call_command("export_organization", faber.tenant.public_id, *flags)
        assert refused.value.returncode == 14
    # As does one that has found it before.
    for change in (freezing.freeze, freezing.thaw):
        with pytest.raises(Exception) as caught:
            change(faber.tenant, audit.SYSTEM)
        assert caught.value.code == SOON
    assert_error(error_of(faber.get, "/connections"), 503, SOON)


def test_one_that_moves_is_not_deleted(faber, monkeypatch):
    Tenant.objects.filter(pk=faber.tenant.pk).update(frozen_at=timezone.now())
    assert_error(error_of(faber.delete, path_of(faber)), 503, "organization_frozen")
    with pytest.raises(Exception) as caught:
        deletion.request_deletion(faber.tenant, audit.SYSTEM)
    assert caught.value.code == "organization_frozen"
    for change in (deletion.undo_deletion, deletion.end_deletion):
        with pytest.raises(Exception) as caught:
            change(faber.tenant, audit.SYSTEM)
        assert caught.value.code == "wrong_state"


def test_the_command_shows_undoes_and_ends_it(faber, capsys):
    faber.delete(path_of(faber))
    given = str(faber.tenant.public_id)
    call_command("deletion", given)
    assert "deleted at" in capsys.readouterr().out
    call_command("deletion", given, "--undo")
    assert faber.get("/connections") == []
    with pytest.raises(CommandError, match="wrong_state"):
        call_command("deletion", given, "--end")
    faber.delete(path_of(faber))
    call_command("deletion", given, "--undo", "--revoke-key")
    assert error_of(faber.get, "/connections").status == 401
    deletion.request_deletion(faber.tenant, audit.SYSTEM)
    call_command("deletion", given, "--end")
    assert error_of(faber.get, "/connections").status == 401
    with pytest.raises(CommandError, match="no organization"):
        call_command("deletion", given, "--undo")


def test_without_hours_it_is_deleted_at_once(faber, settings):
    settings.DELETION_UNDO_HOURS = 0
    faber.delete(path_of(faber))
    assert error_of(faber.get, "/connections").status == 401
