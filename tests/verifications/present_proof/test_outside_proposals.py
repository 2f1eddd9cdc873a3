"""Proposals of proofs to agents of others, which do not tell their format."""

from datetime import timedelta

import pytest
from django.test import override_settings
from django.utils import timezone

from connections.didcomm.formats import (
    ANONCREDS,
    HLINDY,
    PROOF_PROPOSAL,
    MessageFormat,
    attachment_of,
)
from tests.support import queues
from tests.support.outside_agent import Agent, listening
from tests.support.outside_exchanges import accepts_invitation_of
from tests.support.steps import step
from verifications import messages
from verifications.models import Verification

WANTED = {"name": "My name", "version": "1.0", "attributes": [{"policyName": "name"}]}
PROPOSE = "present-proof/2.0/propose-presentation"


class Prover:
    """Alice, who is connected with a phone that verifies."""

    def __init__(self, alice, phone):
        self.alice, self.phone = alice, phone
        self.connection = accepts_invitation_of(phone, alice)

    def proposes(self):
        """Return the proposal as the phone got it, and the name of its format."""
        body = WANTED | {"exchangeVersion": "2.0"}
        self.alice.put(f"/verifications/propose/{self.connection}", body)
        queues.worker_catches_up()
        proposal = self.phone.newest(PROPOSE)
        [entry] = proposal.body["formats"]
        forms = {name: form for form, name in PROOF_PROPOSAL.formats.items()}
        return proposal, forms[entry["format"]]

    def is_asked_and_shows(self, proposal, form):
        """The phone asks for what was proposed, in the same format."""
        wanted = attachment_of(proposal, PROOF_PROPOSAL)
        written = MessageFormat(self.phone.prefix, "2.0", form)
        self.phone.says(messages.build_request(wanted, written, proposal.id))
        self.alice.auto_selects()
        queues.worker_catches_up()
        self.phone.newest("present-proof/2.0/presentation")
        return written


def time_passes():
    """More than a verifier takes to verify."""
    long_ago = timezone.now() - timedelta(minutes=1)
    Verification.objects.update(updated_at=long_ago)


@step
@override_settings(OUTGOING_ALLOW_LOOPBACK=True)
def known_prover(faber):
    with listening(Agent()) as phone:
        return Prover(faber.hosts(), phone)


@pytest.fixture
def prover(known_prover, phone):
    phone.becomes(known_prover.phone)
    known_prover.phone = phone
    return known_prover


@pytest.mark.parametrize("is_answered", [True, False])
def test_an_unjudged_proof_is_proposed_once_in_the_other_format(prover, is_answered):
    """But in the same one while it may still be verified."""
    prover.is_asked_and_shows(*prover.proposes())
    assert prover.proposes()[1] == HLINDY
    time_passes()
    second, other = prover.proposes()
    assert other == ANONCREDS
    if is_answered:
        prover.is_asked_and_shows(second, other)
        time_passes()
    assert prover.proposes()[1] == (ANONCREDS if is_answered else HLINDY)


@pytest.mark.parametrize("verdict", [True, False])
def test_a_verdict_confirms_the_format(prover, verdict):
    proposal, form = prover.proposes()
    written = prover.is_asked_and_shows(proposal, form)
    prover.phone.says(messages.build_ack(proposal.id, written, verdict))
    prover.is_asked_and_shows(*prover.proposes())
    time_passes()
    assert prover.proposes()[1] == HLINDY


def test_a_request_that_the_verifier_began_confirms_the_format(prover):
    proposal, form = prover.proposes()
    written = prover.is_asked_and_shows(proposal, form)
    wanted = attachment_of(proposal, PROOF_PROPOSAL)
    prover.phone.says(messages.build_request(wanted, written))
    time_passes()
    assert prover.proposes()[1] == HLINDY
