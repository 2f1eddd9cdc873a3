"""The samples: one call makes all that a first proof needs, and repeats harmlessly."""

import pytest

from credentials.models import Credential, CredentialDefinition
from sandbox.models import SimulatedHolder
from tests.sandbox.people import asks, failed_checks, holders_answer, read_verification
from tests.support.database import restored
from tests.support.people import Organization
from verifications.models import VerificationPolicy

pytestmark = pytest.mark.django_db(transaction=True)


def set_up(faber):
    made = faber.post("/sandbox/samples")
    holders_answer()
    return made, {holder["behaviour"]: holder for holder in made["holders"]}


@restored
def samples():
    """Faber, what the call made, and the holders by their behaviour."""
    faber = Organization("Faber College", is_test=True)
    return faber, *set_up(faber)


def ask_sample(faber, made, holder):
    path = f"/verifications/policy/{made['policyId']}/connections/"
    asked = faber.put(path + holder["connectionId"])["verificationId"]
    holders_answer()
    return asked


def test_the_samples_show_what_each_behaviour_does(samples):
    faber, made, holders = samples
    assert set(holders) == {str(one) for one in SimulatedHolder.Behaviour}
    for behaviour, codes in (
        ("accept", set()),
        ("wrongValue", {("name", "encoding")}),
        ("predicateFails", {("adult", "unanswered")}),
    ):
        asked = ask_sample(faber, made, holders[behaviour])
        assert failed_checks(faber, asked) == (not codes, codes), behaviour
    for behaviour, state in (("decline", "Rejected"), ("silent", "Requested")):
        asked = ask_sample(faber, made, holders[behaviour])
        assert read_verification(faber, asked)["state"] == state
    other = asks(faber, holders["accept"], attributes=[{"policyName": "city"}])
    holders_answer()
    assert read_verification(faber, other)["proof"]["city"]["value"] == "Ghent"


def test_setting_up_again_renews_a_revoked_credential_and_changes_nothing_else(
    samples,
):
    faber, made, holders = samples
    models = (CredentialDefinition, SimulatedHolder, Credential, VerificationPolicy)
    before = [model.objects.count() for model in models]
    assert before[0] == before[3] == 1 and before[2] == 8, before
    assert set_up(faber)[0] == made
    assert [model.objects.count() for model in models] == before
    is_valid, failed = failed_checks(faber, ask_sample(faber, made, holders["revoked"]))
    assert not is_valid and failed, failed
    held = Credential.objects.filter(role="holder", state="Issued")
    before = held.count()
    set_up(faber)
    assert held.count() == before + 1


def test_it_offers_before_anybody_has_answered_once_only(faber):
    faber.post("/sandbox/samples")
    faber.post("/sandbox/samples")
    assert Credential.objects.filter(role="issuer").count() == 4


def test_a_deleted_definition_and_a_deleted_holder_are_made_again(samples):
    faber, made, holders = samples
    faber.delete(f"/definitions/credentials/{made['definitionId']}")
    faber.delete(f"/sandbox/holders/{holders['accept']['holderId']}")
    again, others = set_up(faber)
    assert again["definitionId"] != made["definitionId"]
    assert again["policyId"] != made["policyId"]
    assert others["decline"] == holders["decline"]
    asked = ask_sample(faber, again, others["accept"])
    assert failed_checks(faber, asked) == (True, set())
