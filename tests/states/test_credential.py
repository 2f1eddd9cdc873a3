"""Every transition of a credential from every state it does not start from."""

from functools import partial

import pytest

from connections.exchange import PARTIES
from core.work import transactions
from credentials import messages, revocation
from credentials.issue_credential import handlers, proposal_messages, proposals
from credentials.models import Credential
from credentials.removal import remove_credential
from tests.support import queues, state_diagrams, walks
from wallets.models import Wallet

pytestmark = pytest.mark.usefixtures("met", "badge")
OPEN = ("Proposed", "Offered", "Requested")
CLOSED = ("Issued", "Rejected", "Revoked")


def receive_request(row):
    """A request that came with a good key, but at the wrong time."""
    body = messages.build_request(
        {"cred_def_id": row.definition_id}, row.thread_id, row.message_format
    )
    row.lock()
    handlers.receive_request(row, walks.received(body))


def receive_proposal(row):
    body = proposal_messages.build_proposal(
        {"comment": "Later"}, row.message_format, row.thread_id
    )
    row.lock()
    proposals.receive_proposal(row.connection, walks.received(body))


def receive_offer(row):
    offer = {
        "schema_id": row.schema_id or "schema",
        "cred_def_id": row.definition_id or "definition",
        "nonce": "1",
    }
    body = messages.build_offer(offer, ["name"], {}, row.message_format, row.thread_id)
    row.lock()
    handlers.receive_offer(row.connection, walks.received(body))


def receive_credential(row):
    body = messages.build_issue(
        {"cred_def_id": row.definition_id}, row.thread_id, row.message_format
    )
    row.lock()
    handlers.receive_credential(row, walks.received(body))


def receive_problem(row):
    row.lock()
    report = messages.build_problem_report(row.thread_id, row.message_format, "Late")
    row.receive_problem(walks.received(report))


def propose_again(row):
    row.lock()
    row.propose_again("another", row.message_format)


def receive_revocation(row):
    row.lock()
    row.receive_revocation()


def receive_wallet_request(row):
    row.lock()
    row.receive_wallet_request({"kty": "EC"})


def receive_wallet_failure(row):
    row.lock()
    row.receive_wallet_failure("transaction_code_guessed")


def accept_link(row):
    row.lock()
    row.accept_link({})


def receive_sd_jwt(row):
    row.lock()
    row.receive_sd_jwt({}, {}, None)


def receive_refusal(row):
    row.lock()
    row.receive_refusal("abandoned")


STEPS = {  # how each method of the diagram is come to
    "accept": Credential.accept,
    "accept_link": accept_link,
    "answer_proposal": proposals.offer_proposed,
    "counter": lambda row: proposals.counter_offer(row, {"comment": "Please"}),
    "decline": Credential.decline,
    "issue": Credential.issue,
    "propose_again": propose_again,
    "receive_credential": receive_credential,
    "receive_offer": receive_offer,
    "receive_problem": receive_problem,
    "receive_proposal": receive_proposal,
    "receive_refusal": receive_refusal,
    "receive_request": receive_request,
    "receive_revocation": receive_revocation,
    "receive_sd_jwt": receive_sd_jwt,
    "receive_wallet_failure": receive_wallet_failure,
    "receive_wallet_request": receive_wallet_request,
    "revoke": revocation.revoke,
}
IGNORED = ("receive_problem",)


@pytest.mark.parametrize("state", OPEN + CLOSED)
def test_a_credential_refuses_a_transition_from_elsewhere(walk, subtests, state):
    """Both sides walk to the state once: a refusal leaves everything as it was."""
    walks.credential(walk, "issuer", state)
    for role, name, start in state_diagrams.elsewhere(Credential):
        if start == state and name not in IGNORED:
            with subtests.test(f"{role}: {name}"):
                row = walks.arrived(Credential.objects.get(role=role), state)
                walks.refuses(partial(STEPS[name], row))


@pytest.mark.parametrize("role", ["issuer", "holder"])
@pytest.mark.parametrize("state", OPEN)
def test_either_side_declines_what_is_open(walk, role, state):
    walks.credential(walk, role, state).decline()
    assert walks.states_of(Credential) == {"Rejected"}


@pytest.mark.parametrize("state", CLOSED)
def test_a_problem_of_a_finished_credential_changes_nothing(walk, subtests, state):
    walks.credential(walk, "issuer", state)
    for role in ("issuer", "holder"):
        with subtests.test(role):
            row = walks.arrived(Credential.objects.get(role=role), state)
            walks.ignores(partial(receive_problem, row))


@pytest.mark.parametrize(
    "role, name, state, target",
    [
        (role, name, *pair)
        for (role, name), pairs in state_diagrams.drawn(Credential).items()
        for pair in sorted(pairs)
        if pair[1] in ("Proposed", "Offered")
    ],
)
def test_a_proposal_and_an_offer_answer_each_other(walk, role, name, state, target):
    row = walks.credential(walk, role, state)
    before = row.sequence
    with transactions.atomic():
        STEPS[name](row)
    assert walks.arrived(row, target).sequence == before + 1


@pytest.mark.parametrize(
    "name, role, state",
    [
        ("accept", "holder", "Offered"),
        ("counter", "holder", "Offered"),
        ("decline", "holder", "Offered"),
        ("receive_problem", "holder", "Offered"),
        ("answer_proposal", "issuer", "Proposed"),
    ],
)
def test_a_stale_copy_is_refused(walk, name, role, state):
    stale = walks.credential(walk, role, state)
    walks.fresh(stale).decline()
    walks.refuses(lambda: STEPS[name](stale))


def test_a_credential_of_a_deleted_wallet_is_refused(walk):
    offered = walks.credential(walk, "holder", "Offered")
    # As the API reads it.
    row = Credential.objects.select_related(*PARTIES).get(pk=offered.pk)
    Wallet.objects.get(wallet_id=walk.alice.wallet_id).remove()
    walks.refuses(row.accept)


@pytest.mark.parametrize("state", OPEN)
def test_deleting_what_is_open_declines_it_first(walk, state):
    remove_credential(walks.credential(walk, "holder", state))
    walks.arrived(Credential.objects.get(), "Rejected")


@pytest.mark.parametrize("state", ["Issued", "Rejected"])
def test_deleting_what_is_finished_tells_nobody(walk, monkeypatch, state):
    row = walks.credential(walk, "holder", state)
    sent = queues.record_sent(monkeypatch)
    remove_credential(row)
    assert sent == []
    walks.arrived(Credential.objects.get(), state)
