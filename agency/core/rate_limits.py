"""How often something may happen: token buckets in Redis or Valkey, shared by all processes.

A bucket of N holds N tokens and gets N more each minute, evenly; its key is gone when it is full.
Without the server everything may happen: a limit must not stop what it protects.
"""

import logging
import math
import time
from functools import cache

from django.conf import settings
from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from agency.core import metrics
from agency.core.errors import TooOften

logger = logging.getLogger(__name__)
MINUTE = 60
PATIENCE = 0.25  # seconds for the server to answer
UNREACHABLE = (RedisError, OSError)  # what calls of the server raise while it is away
REST = 5.0  # seconds in which a server that is out of reach is left alone
PREFIX = "agency:rate:"
# The time at which the bucket is full again is all that is kept of it. Answers the seconds to wait.
TAKE = """
local clock = redis.call("TIME")
local now, token = clock[1] + clock[2] / 1000000, tonumber(ARGV[1])
local full = math.max(tonumber(redis.call("GET", KEYS[1]) or 0), now) + token
local wait = full - now - ARGV[2]
if wait > 0 then return tostring(wait) end
redis.call("SET", KEYS[1], string.format("%.6f", full), "PX", math.ceil((full - now) * 1000))
return "0"
"""
silent_until = 0.0


def spend(kind: str, name: str, per_minute: int) -> None:
    """Takes a token from the bucket of this name. 429 `too_many_requests` if there is none.

    per_minute: 0 for no limit. kind: what the name is of; refusals are counted by it.
    """
    if per_minute and (wait := _wait(f"{kind}:{name}", per_minute)):
        metrics.refused(kind)
        raise TooOften("too_many_requests", "That is too fast.", math.ceil(wait))


def _wait(name: str, per_minute: int) -> float:
    """Seconds until there is a token; 0 if one was taken, or nobody can tell."""
    if is_silent():
        return 0
    try:
        answer = server().eval(TAKE, 1, PREFIX + name, MINUTE / per_minute, MINUTE)
    except UNREACHABLE as error:
        note_silence(error)
        return 0
    return float(answer)


def is_silent() -> bool:
    """Whether the server was out of reach a moment ago, and is left alone."""
    return time.monotonic() < silent_until


def note_silence(error: Exception) -> None:
    global silent_until
    silent_until = time.monotonic() + REST
    logger.warning(
        "the broker is away (%s): envelopes are not limited, sign-in in each process by itself",
        type(error).__name__,
    )


@cache
def server() -> Redis:
    """The client that waits briefly. Raises RedisError if REDIS_URL is not readable for it."""
    try:
        return Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=PATIENCE,
            socket_connect_timeout=PATIENCE,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError as error:
        raise RedisError(str(error)) from error
