"""The outcome of one call of a webhook."""

from datetime import datetime
from enum import Enum
from typing import NamedTuple

from core.net import http

THROTTLED_STATUSES = (429, 502, 504)
SLOW_CALL_SECONDS = 5.0  # longer calls count as slow, with any result


class Result(Enum):
    DELIVERED = "delivered"
    FAILED = "failed"
    THROTTLED = "throttled"
    UNCONFIRMED = "unconfirmed"
    GONE = "gone"
    NOT_MADE = "not_made"  # because of a bug of ours


class Outcome(NamedTuple):
    """The result of one call, and the details to record."""

    result: Result
    started_at: datetime
    seconds: float
    error: str = ""  # a stable code; empty on success
    status: int | None = None  # None without a response
    answer: bytes = b""  # the start of the response body
    retry_after: float | None = None  # seconds, if the receiver sent it
    timed_out: bool = False  # sent in full, without a response in time

    @property
    def was_made(self) -> bool:
        return self.result is not Result.NOT_MADE

    @property
    def was_slow(self) -> bool:
        return self.seconds >= SLOW_CALL_SECONDS


def outcome_of_response(response: http.Response, started_at: datetime) -> Outcome:
    """The outcome of a call with a response.

    Any 2xx is a success, even if its body was truncated. A redirect is a failure.
    """
    retry_after = None
    if 200 <= response.status < 300:
        result = Result.DELIVERED
        error = ""
    elif response.status == 410:
        result = Result.GONE
        error = "endpoint_gone"
    else:
        is_throttled = response.status in THROTTLED_STATUSES
        result = Result.THROTTLED if is_throttled else Result.FAILED
        error = "endpoint_refused"
        retry_after = response.retry_after
    return Outcome(
        result=result,
        started_at=started_at,
        seconds=response.seconds,
        error=error,
        status=response.status,
        answer=response.body,
        retry_after=retry_after,
    )


def outcome_of_failure(failure: http.CallFailed, started_at: datetime) -> Outcome:
    """The outcome of a call without a response.

    The code `endpoint_unconfirmed` means that it was sent in full.
    """
    is_unconfirmed = failure.code == "endpoint_unconfirmed"
    return Outcome(
        result=Result.UNCONFIRMED if is_unconfirmed else Result.FAILED,
        started_at=started_at,
        seconds=failure.seconds,
        error=failure.code,
        timed_out=is_unconfirmed and failure.timed_out,
    )
