"""What came of one call of a webhook."""

from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from agency.core import http

THROTTLED = (429, 502, 504)
SLOW = 5.0  # seconds from which a call counts as hanging


class Result(Enum):
    DELIVERED = "delivered"
    FAILED = "failed"
    THROTTLED = "throttled"
    UNCONFIRMED = "unconfirmed"
    GONE = "gone"


class Outcome(NamedTuple):
    """`error` is a code, empty for a success; `status` None without an answer; `retry_after` the
    seconds that the address asks to wait; `timed_out`: it was sent in full, and no answer came
    within the time of the call."""

    result: Result
    started_at: datetime
    seconds: float
    error: str = ""
    status: int | None = None
    answer: bytes = b""
    retry_after: float | None = None
    timed_out: bool = False

    @property
    def hung(self) -> bool:
        """Whether it took long, whatever came of it."""
        return self.seconds >= SLOW


def answered(answer: http.Response, started_at: datetime) -> Outcome:
    """2xx is a success, also when the answer's body was cut; all else, a redirect too, is none."""
    seen: dict[str, Any] = {"status": answer.status, "answer": answer.body}
    if 200 <= answer.status < 300:
        return Outcome(Result.DELIVERED, started_at, answer.seconds, **seen)
    if answer.status == 410:
        return Outcome(Result.GONE, started_at, answer.seconds, "endpoint_gone", **seen)
    result = Result.THROTTLED if answer.status in THROTTLED else Result.FAILED
    seen["retry_after"] = answer.retry_after
    return Outcome(result, started_at, answer.seconds, "endpoint_refused", **seen)


def unanswered(error: http.CallFailed, started_at: datetime) -> Outcome:
    """Without an answer: the code tells whether the call was sent in full."""
    unconfirmed = error.code == "endpoint_unconfirmed"
    result = Result.UNCONFIRMED if unconfirmed else Result.FAILED
    timed_out = unconfirmed and error.timed_out
    return Outcome(result, started_at, error.seconds, error.code, timed_out=timed_out)
