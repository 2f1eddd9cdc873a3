"""A worker is killed while it sends the mails of a club: nobody gets one twice."""

import signal

import pytest

from agency.mails import unsubscribing
from tests.agency.mails.people import (
    begin,
    club_of,
    let_time_pass,
    mail_settings,
    server,
    states,
    worker_mails,
)
from tests.support.killed_worker import start_worker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
__all__ = ["server"]
WORK = """
from agency.mails import mailings
mailings.send_due()
"""


def kill_at(point, server):
    let_time_pass()
    worker = start_worker(
        WORK, FAULT_POINT=point, FAULT_INJECTION="1", **mail_settings(server)
    )
    assert worker.wait(timeout=60) == -signal.SIGKILL


def test_of_a_club_nobody_is_mailed_twice(faber, server):
    names = [f"Member{number}" for number in range(12)]
    mailing = begin(club_of(faber, *names))
    server.refused = {"member3@club.example": "550 no such user"}
    unsubscribing.unsubscribe(unsubscribing.digest_of("Member5@club.example"))
    kill_at("before_mail_data", server)
    assert server.addresses == []
    kill_at("after_mail_data", server)
    assert server.addresses == ["member1@club.example"]
    worker_mails()
    worker_mails()
    state, rows = states(mailing)
    assert state == "Done"
    assert rows[0] == rows[1] == ("Unknown", "")
    assert rows[3] == ("Refused", "refused_550")
    assert rows[5] == ("Skipped", "unsubscribed")
    left_out = {0, 3, 5}
    assert sorted(server.addresses) == sorted(
        f"member{number}@club.example" for number in range(12) if number not in left_out
    )
