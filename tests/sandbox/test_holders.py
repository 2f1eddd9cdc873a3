"""Simulated holders of a test organization: what they are, and what they answer."""

import time

import pytest

from core.errors import Conflict
from core.work.leases import work_on
from credentials.models import Credential
from sandbox import answering, holders
from sandbox.models import SimulatedAnswer, SimulatedHolder
from tenants.models import AuditEntry
from tests.sandbox.people import (
    VALUES,
    asks,
    failed_checks,
    holders_answer,
    offers,
    read_credential,
    read_verification,
    simulates,
)  # fmt: skip
from tests.support.errors import assert_error, error_of
from tests.support.people import Organization, Provider
from tests.support.races import at_once, error_codes
from verifications.models import Verification
from webhooks.models import Event

pytestmark = pytest.mark.django_db(transaction=True)
NAME = {"policyName": "Name", "attributeNames": ["name"]}


def credential_of(faber, holder, **body):
    """The state of a credential that was offered to the holder."""
    offered = offers(faber, holder, **body)
    holders_answer()
    return read_credential(faber, offered)["state"]


def test_it_is_a_hosted_wallet_with_a_connection(faber):
    made = simulates(faber, "accept", delaySeconds=3)
    assert made["behaviour"] == "accept" and made["delaySeconds"] == 3
    connection = faber.get(f"/connections/{made['connectionId']}")
    assert (connection["state"], connection["name"]) == ("Connected", "Rex")
    assert [one["walletId"] for one in faber.get("/api/wallets")] == [made["walletId"]]
    assert faber.get("/sandbox/holders") == [made]
    assert faber.get(f"/sandbox/holders/{made['holderId']}") == made


def test_it_accepts_an_offer_and_proves(faber):
    holder = simulates(faber)
    assert credential_of(faber, holder, automaticIssuance=False) == "Requested"
    assert credential_of(faber, holder) == "Issued"
    rows = Event.objects.filter(tenant=faber.tenant, object_type="credential")
    assert set(rows.values_list("type", flat=True)) == {
        "credential_offered", "credential_request", "credential_issued",
        "credential_offer", "credential_requested",
    }, "the ordinary events"  # fmt: skip
    found = read_verification(faber, proof_of(faber, holder))
    assert (found["state"], found["isValid"]) == ("Accepted", True)
    assert found["proof"]["Name"]["value"] == "Rex"
    assert not SimulatedAnswer.objects.exists()


def proof_of(faber, holder, **policy):
    """A verification of the holder, which asks for the name by default."""
    asked = asks(faber, holder, **{"attributes": [NAME]} | policy)
    holders_answer()
    return asked


def test_it_declines_offers_and_requests(faber):
    holder = simulates(faber, "decline")
    assert credential_of(faber, holder) == "Rejected"
    found = read_verification(faber, proof_of(faber, holder))
    assert found["state"] == "Rejected" and "isValid" not in found
    assert found["reason"] == "A simulated holder declines everything."


def test_it_never_answers(faber):
    holder = simulates(faber, "silent")
    assert credential_of(faber, holder) == "Offered"
    assert read_verification(faber, proof_of(faber, holder))["state"] == "Requested"
    assert not SimulatedAnswer.objects.exists()


def test_it_answers_after_its_delay_only(faber):
    holder = simulates(faber, delaySeconds=600)
    offered = offers(faber, holder)
    answering.loop.run()
    assert read_credential(faber, offered)["state"] == "Offered"
    [waiting] = SimulatedAnswer.objects.all()
    assert 590 < (waiting.due_at - waiting.created_at).total_seconds() < 610
    holders_answer()
    assert read_credential(faber, offered)["state"] == "Issued"


def test_a_worker_is_told_of_what_is_due_at_once_only(faber, monkeypatch):
    told = []
    monkeypatch.setattr(answering, "notify_worker", told.append)
    quick, slow = simulates(faber), simulates(faber, delaySeconds=1)
    definition = faber.defines(*VALUES)
    offers(faber, slow, definition)
    assert told == []
    offers(faber, quick, definition)
    assert told == ["sandbox.tasks.answer_exchanges"]


def test_it_answers_as_it_behaves_when_the_answer_is_due(faber):
    holder = simulates(faber, delaySeconds=60)
    offered = offers(faber, holder)
    path = f"/sandbox/holders/{holder['holderId']}"
    changed = {"name": "Rey", "behaviour": "decline", "delaySeconds": 5}
    answer = faber.put(path, changed)
    assert answer.pop("updatedAtUtc") > holder.pop("updatedAtUtc")
    assert answer == holder | changed
    holders_answer()
    assert read_credential(faber, offered)["state"] == "Rejected"
    entry = AuditEntry.objects.get(action="simulated_holder.changed")
    assert entry.details["behaviour"] == ["accept", "decline"]


def test_a_deleted_one_is_gone_with_its_wallet_and_its_answers(faber):
    holder = simulates(faber)
    offers(faber, holder)
    faber.delete(f"/sandbox/holders/{holder['holderId']}")
    assert faber.get("/sandbox/holders") == faber.get("/api/wallets") == []
    assert not SimulatedAnswer.objects.exists()
    missing = error_of(faber.get, f"/sandbox/holders/{holder['holderId']}")
    assert_error(missing, 404, "not_found")
    other = simulates(faber)
    faber.delete(f"/api/wallets/{other['walletId']}")
    assert faber.get("/sandbox/holders") == [], "nor is one without a wallet there"


def test_what_was_answered_or_deleted_meanwhile_needs_no_answer(faber):
    holder, definition = simulates(faber), faber.defines(*VALUES)
    offered = offers(faber, holder, definition)
    withdrawn = offers(faber, holder, definition)
    wallet = f"/api/{holder['walletId']}/credentials"
    later, first = faber.get(wallet)
    faber.post(f"{wallet}/{first['credentialId']}/decline")
    Credential.objects.filter(pk=later["credentialId"]).delete()
    holders_answer()
    assert not SimulatedAnswer.objects.exists()
    assert read_credential(faber, offered)["state"] == "Rejected"
    assert read_credential(faber, withdrawn)["state"] == "Offered"


def test_an_answer_that_two_workers_give_is_given_once(faber):
    offered = offers(faber, simulates(faber))
    [answer] = SimulatedAnswer.claim(1)
    copies = [SimulatedAnswer.objects.get(pk=answer.pk) for _ in range(2)]
    at_once(*[lambda copy=copy: work_on(copy, answering.answer_now) for copy in copies])
    assert read_credential(faber, offered)["state"] == "Issued"
    assert Credential.objects.filter(role="holder").count() == 1
    assert not SimulatedAnswer.objects.filter(status="pending").exists()


def test_an_answer_that_cannot_be_given_is_tried_again_and_then_left(
    faber, monkeypatch
):
    def refuse(*_):
        raise Conflict("quota_exceeded", "No more.")

    offers(faber, simulates(faber))
    monkeypatch.setattr(answering, "answer_exchange", lambda *_: 1 / 0)
    holders_answer()
    waiting = SimulatedAnswer.objects.get()
    assert (waiting.status, waiting.last_error) == ("pending", "internal_error")
    monkeypatch.setattr(answering, "answer_exchange", refuse)
    holders_answer()
    left = SimulatedAnswer.objects.get()
    assert (left.status, left.last_error) == ("exhausted", "quota_exceeded")


def test_organizations_take_turns(faber, transactional_db):
    acme = Organization("Acme", is_test=True)
    for organization, number in ((faber, 3), (acme, 2)):
        holder, definition = simulates(organization), organization.defines(*VALUES)
        for _ in range(number):
            offers(organization, holder, definition)
    last, served = None, []
    while answer := SimulatedAnswer.claim_after(last):
        last = answer.tenant_id
        served.append(last)
        answer.delete()
    names = {faber.tenant.pk: "F", acme.tenant.pk: "A"}
    assert "".join(names[one] for one in served) == "FAFAF"


def test_other_wallets_of_a_test_organization_do_not_answer(faber):
    alice = faber.hosts()
    faber.offers(alice, faber.defines(*VALUES), VALUES)
    assert not SimulatedAnswer.objects.exists()


def test_only_a_test_organization_has_them_and_samples(acme):
    refusals = (error_of(simulates, acme), error_of(acme.post, "/sandbox/samples"))
    for refused in refusals:
        assert_error(refused, 409, "not_a_test_organization")
    assert acme.get("/sandbox/holders") == acme.get("/definitions/credentials") == []


def test_there_is_a_limit_that_a_race_does_not_exceed(faber, monkeypatch):
    monkeypatch.setattr(holders, "MAX_HOLDERS", 2)
    made = at_once(*[lambda: simulates(faber) for _ in range(3)])
    assert error_codes(made) == ["too_many_simulated_holders"]
    assert SimulatedHolder.objects.count() == 2


def test_the_mark_is_chosen_when_an_organization_is_created(faber):
    assert faber.get("/tenants")[0]["isTest"] is True
    provider = Provider(faber)
    made = provider.makes("Branch", isTest=True)
    other = provider.makes("Real")
    assert (made["isTest"], other["isTest"]) == (True, False)
    provider.put(f"/tenants/{other['tenantId']}", {"isTest": True})
    assert provider.get(f"/tenants/{other['tenantId']}")["isTest"] is False


def test_a_changed_value_is_found_by_its_signature(faber):
    holder = simulates(faber, "wrongValue")
    assert credential_of(faber, holder) == "Issued"
    both = {"policyName": "Both", "attributeNames": ["name", "age"]}
    asked = proof_of(faber, holder, attributes=[NAME, both])
    failed = {("Name", "encoding"), ("Both", "encoding")}
    assert failed_checks(faber, asked) == (False, failed)


def test_a_comparison_that_does_not_hold_is_left_out(faber):
    holder = simulates(faber, "predicateFails")
    credential_of(faber, holder)
    adult = {"policyName": "Adult", "attributeName": "age"}
    adult |= {"predicateType": ">=", "predicateValue": 18}
    for attributes in ([NAME], []):
        asked = proof_of(faber, holder, attributes=attributes, predicates=[adult])
        assert failed_checks(faber, asked) == (False, {("Adult", "unanswered")})


def test_a_revoked_credential_is_found_by_its_list_each_time(faber):
    holder = simulates(faber, "revoked")
    definition = faber.defines(*VALUES, supportRevocation=True)
    offered = offers(faber, holder, definition)
    holders_answer()
    assert read_credential(faber, offered)["state"] == "Issued"
    for times in (1, 2):
        asked = proof_of(faber, holder, revocationRequirement={"validNow": True})
        assert read_credential(faber, offered)["state"] == "Revoked"
        assert failed_checks(faber, asked)[0] is False
        assert Verification.objects.filter(role="prover").count() == times


def test_the_honest_one_is_believed_though_another_is_revoked_first(faber, monkeypatch):
    definition = faber.defines(*VALUES, supportRevocation=True)
    behaviours = ("revoked", "accept")
    both = [simulates(faber, one, name=one) for one in behaviours]
    for holder in both:
        offers(faber, holder, definition)
    holders_answer()
    now = {"revocationRequirement": {"validNow": True}, "attributes": [NAME]}
    asked = [asks(faber, holder, **now) for holder in both]
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + 2)
    holders_answer()
    seen = [read_verification(faber, one)["isValid"] for one in asked]
    assert seen == [False, True]
