"""The queue of simulated answers: written with what arrives, taken by the worker."""

from contextlib import suppress
from datetime import timedelta

from django.db import transaction

from connections.exchange import PARTIES, Exchange
from core import faults
from core.database import clock
from core.errors import WrongState
from core.work.leases import work_on
from core.work.loop import Loop
from core.work.notify import notify_worker
from credentials.models import Credential
from sandbox.behaviours import answer_exchange
from sandbox.models import SimulatedAnswer, SimulatedHolder
from verifications.models import Verification
from webhooks.events.emit import EventSource, follow_test_wallet

Kind = SimulatedAnswer.Kind
# What a holder has to answer: the states in which an exchange waits for one.
AWAITED: dict[type[Exchange], tuple[str, str, str]] = {
    Credential: (
        Kind.CREDENTIAL,
        Credential.Role.HOLDER,
        Credential.State.OFFERED,
    ),
    Verification: (
        Kind.VERIFICATION,
        Verification.Role.PROVER,
        Verification.State.REQUESTED,
    ),
}
MODELS: dict[str, type[Exchange]] = {
    Kind.CREDENTIAL: Credential,
    Kind.VERIFICATION: Verification,
}


@follow_test_wallet.register
def enqueue_answer(source: EventSource) -> None:
    """Enqueue the answer to an offer or a request that a simulated holder received.

    Called in the transaction of each change in a hosted wallet of a test organization;
    for any other change nothing is enqueued. The worker is
    notified after the commit, or finds the row once the delay is over.
    """
    if not isinstance(source, Credential | Verification):
        return
    kind, role, state = AWAITED[type(source)]
    if (source.role, source.state) != (role, state):
        return
    holder = SimulatedHolder.objects.filter(wallet=source.wallet_id).first()
    if holder is None or holder.behaviour == holder.Behaviour.SILENT:
        return
    SimulatedAnswer.objects.create(
        tenant_id=holder.tenant_id,
        holder=holder,
        kind=kind,
        exchange_id=source.pk,
        due_at=clock.now() + timedelta(seconds=holder.delay_seconds),
    )
    if not holder.delay_seconds:
        transaction.on_commit(lambda: notify_worker("sandbox.tasks.answer_exchanges"))


def answer_now(answer: SimulatedAnswer) -> None:
    """Take the step of a row that is leased to the caller, and delete the row.

    The exchange is answered as its holder behaves now, if it still waits for that, by
    the methods and in the transactions of the wallet API.
    """
    model = MODELS[answer.kind]
    _, role, state = AWAITED[model]
    rows = model.objects.filter(
        pk=answer.exchange_id, wallet=answer.holder.wallet_id, role=role, state=state
    )
    with suppress(WrongState):  # answered or withdrawn meanwhile
        if found := rows.select_related(*PARTIES).first():
            answer_exchange(answer.holder.behaviour, found)
    faults.fault_point("before_answer_is_done")
    SimulatedAnswer.objects.filter(
        pk=answer.pk, lease_owner=answer.lease_owner
    ).delete()


# Simulated holders occupy one thread of a process at most. Organizations take turns.
loop: Loop[SimulatedAnswer] = Loop(
    claim=lambda last: SimulatedAnswer.claim_after(last.tenant_id if last else None),
    work=lambda answer: work_on(answer, answer_now),
)
