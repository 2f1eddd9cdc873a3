"""Answers that wait for status lists of other issuers: read and judged by a worker."""

from collections.abc import Mapping

from django.db.models import Q

from core.errors import WrongState
from core.text.bounded_json import JSON
from core.work import transactions
from core.work.leases import LostLease, work_on
from core.work.loop import ThreadedLoop
from core.work.shares import Limits, Shares
from tenants import vault
from verifications.models import Verification, WaitingAnswer
from verifications.openid4vp.answers import judge
from verifications.openid4vp.foreign_lists import ListReader
from verifications.openid4vp.queries import Query
from wallets.jose import status_token

THREADS = 8
PER_TENANT = 2  # of these: somebody's slow list leaves room for the lists of others


class JudgingLoop(ThreadedLoop[WaitingAnswer, None]):
    """Reads the lists of several answers at a time."""

    def claim(self, at_work: list[WaitingAnswer]) -> list[WaitingAnswer]:
        shares = Shares()
        for row in at_work:
            shares.take(self.limits_of(row))
        claimed: list[WaitingAnswer] = []
        while len(at_work) + len(claimed) < self.threads:
            within_share = ~Q(tenant__in=shares.full("tenant"))
            if not (rows := WaitingAnswer.claim(1, within_share)):
                break
            shares.take(self.limits_of(rows[0]))
            claimed += rows
        return claimed

    def work(self, row: WaitingAnswer) -> None:
        work_on(row, judge_waiting)

    def limits_of(self, row: WaitingAnswer) -> Limits:
        return {("tenant", row.tenant_id): PER_TENANT}


loop = JudgingLoop("judging", THREADS)


def judge_waiting(job: WaitingAnswer) -> None:
    """Judge the answer of a row that is leased to the caller, and delete the row.

    In one transaction with the verdict. A verification that was withdrawn or deleted
    meanwhile gets none.
    """
    rows = Verification.objects.filter(pk=job.verification_id, tenant=job.tenant_id)
    found = rows.select_related("connection__my_key", "wallet", "tenant").first()
    if found is None or found.state != Verification.State.REQUESTED:
        end(job)
        return
    answer = vault.unseal(found, "presentation")
    reader = ListReader()
    is_last = job.attempts >= len(job.SCHEDULE)
    outcome = judge(
        found,
        answer["vp_token"],
        int(job.created_at.timestamp()),
        give_up if is_last else reader.find_status,
    )
    with transactions.atomic():
        end(job)
        try:
            found.lock_to_act()
            found.receive_answer(answer, outcome)
        except WrongState:  # withdrawn meanwhile
            return


def give_up(listed: Mapping[str, JSON], query: Query) -> int:
    """The status after attempts that failed by a fault of ours."""
    raise status_token.bad_list("it cannot be judged")


def end(job: WaitingAnswer) -> None:
    """Delete the row. LostLease if another process has taken it over."""
    rows = WaitingAnswer.objects.filter(pk=job.pk, lease_owner=job.lease_owner)
    if not rows.delete()[0]:
        raise LostLease
