"""Background tasks of verifications. They take no arguments: they query the rows."""

from celery import shared_task

from verifications.openid4vp import waiting_answers


@shared_task
def judge_answers() -> None:
    """Judge the answers that wait for status lists of other issuers, until none does."""
    waiting_answers.loop.run()
