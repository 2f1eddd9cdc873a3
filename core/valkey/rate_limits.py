"""Rate limits in Redis or Valkey, shared by all processes.

A bucket of N holds at most N tokens and is refilled evenly with N tokens each period.
The key of a full bucket expires. In a queue each caller has its turn, which it asks for
again. While the server is out of reach nothing is limited:
a rate limit must not stop the service that it protects.
"""

import logging
import math
import time
from functools import cache
from typing import Any

from django.conf import settings
from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from core.errors import TooOften
from core.telemetry import metrics

logger = logging.getLogger(__name__)
PERIOD_SECONDS = 60  # tests shorten it
TIMEOUT_SECONDS = 0.25  # for a response of the server
# The exceptions of calls to the server while it is out of reach.
UNREACHABLE = (RedisError, OSError)
PAUSE_SECONDS = 5.0  # after a failure; the server is not called meanwhile
KEY_PREFIX = "agency:rate:"
# A bucket is stored as the time at which it is full again. The script returns the
# seconds to wait for a token, or 0 if one was taken.
TAKE_TOKEN = """
local clock = redis.call("TIME")
local now, token = clock[1] + clock[2] / 1000000, tonumber(ARGV[1])
local full = math.max(tonumber(redis.call("GET", KEYS[1]) or 0), now) + token
local wait = full - now - ARGV[2]
if wait > 0 then return tostring(wait) end
redis.call("SET", KEYS[1], string.format("%.6f", full), "PX", math.ceil((full - now) * 1000))
return "0"
"""
# A queue is stored as the time of the next turn that nobody has, a turn as its time
# until it is taken, or lost. The script returns the seconds to wait, or 0.
TAKE_TURN = """
local clock = redis.call("TIME")
local now, seconds = clock[1] + clock[2] / 1000000, tonumber(ARGV[1])
local turn = tonumber(redis.call("GET", KEYS[2]))
if not turn then
  turn = math.max(tonumber(redis.call("GET", KEYS[1]) or 0), now)
  local left = math.ceil((turn + seconds - now) * 1000)
  redis.call("SET", KEYS[1], string.format("%.6f", turn + seconds), "PX", left)
  redis.call("SET", KEYS[2], string.format("%.6f", turn), "PX", left + ARGV[2] * 1000)
end
if turn > now then return tostring(turn - now) end
redis.call("DEL", KEYS[2])
return "0"
"""
TURN_KEPT_SECONDS = 30  # for a caller that comes late
paused_until = 0.0


def take_token(kind: str, name: str, size: int, *, minutes: int = 1) -> None:
    """Take a token from a bucket. Raises 429 `too_many_requests` if it is empty.

    kind: what is limited, such as "address"; a label of the metrics. name: identifies
    the bucket. size: of the bucket; 0 for no limit. minutes: in which it is refilled.
    """
    if size:
        period = minutes * PERIOD_SECONDS
        run_script(TAKE_TOKEN, kind, [name], period / size, period)


def take_turn(kind: str, queue: str, name: str, seconds: int) -> None:
    """Take the turn of a caller in a queue. Raises 429 `too_many_requests` before it.

    Each has one turn at a time, all in order of their first call, `seconds` apart. kind:
    as in take_token(). name: identifies the caller in the queue.
    """
    names = [queue, f"{queue} {name}"]
    run_script(TAKE_TURN, kind, names, seconds, TURN_KEPT_SECONDS)


def run_script(script: str, kind: str, names: list[str], *arguments: float) -> None:
    """Run a script that returns for how long to wait. Raises 429 `too_many_requests`."""
    if is_paused():
        return
    keys = [f"{KEY_PREFIX}{kind}:{name}" for name in names]
    try:
        wait: Any = redis_client().eval(
            script, len(keys), *keys, *(str(argument) for argument in arguments)
        )
    except UNREACHABLE as error:
        pause_after_failure(error)
        return
    if seconds := float(wait):
        metrics.count_refusal(kind)
        raise TooOften("too_many_requests", "That is too fast.", math.ceil(seconds))


def is_paused() -> bool:
    """Return whether the server failed less than PAUSE_SECONDS ago.

    It must not be called meanwhile.
    """
    return time.monotonic() < paused_until


def pause_after_failure(error: Exception) -> None:
    global paused_until
    paused_until = time.monotonic() + PAUSE_SECONDS
    logger.warning(
        "the broker is out of reach (%s): envelopes are not limited, "
        "sign-in is limited per process",
        type(error).__name__,
    )


@cache
def redis_client() -> Redis:
    """Return a client with short timeouts. RedisError if REDIS_URL is invalid."""
    try:
        return Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError as error:
        raise RedisError(str(error)) from error
