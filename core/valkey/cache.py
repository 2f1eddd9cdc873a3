"""Django's cache in Redis or Valkey, with a fallback to the memory of the process.

It holds the counters of allauth's rate limits (agency/studio/accounts/). They limit
wrong passwords over all processes, and must keep working while the server is down.
"""

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis import Redis

from core.valkey import rate_limits

# With Django's default of 300, a few hundred addresses evict each other's counters.
LOCAL_ENTRIES = 10_000


class BrokerClient(RedisCacheClient):
    """Uses the connections of core/valkey/rate_limits.py, with short timeouts.

    Values are stored as JSON: with pickle, anybody who can write to the server could
    run code in this process.
    """

    def __init__(self, servers: list[str], **options: Any):
        serializer: Any = json
        super().__init__(servers, serializer=serializer, **options)

    def get_client(self, key: Any = None, *, write: bool = False) -> Redis:
        return rate_limits.redis_client()


class SharedCache(RedisCache):
    """Django's backend for Redis, with a fallback to the memory of this process.

    The fallback is used while the server is out of reach. The two are never
    synchronised.
    """

    def __init__(self, server: str, params: dict[str, Any]):
        super().__init__(server, params)
        self._class = BrokerClient
        self.local = LocMemCache(
            "fallback", params | {"OPTIONS": {"MAX_ENTRIES": LOCAL_ENTRIES}}
        )

    def clear(self) -> None:
        """Delete the keys of this cache, for tests and the shell.

        Django's method would flush the whole database of the broker. Raises RedisError
        while the server is out of reach.
        """
        self.local.clear()
        server = rate_limits.redis_client()
        for key in server.scan_iter(match=self.make_key("*")):
            server.delete(key)


def with_fallback(name: str) -> Callable[..., Any]:
    """Return the cache operation of this name: on the server, or else in memory."""
    shared, local = getattr(RedisCache, name), getattr(LocMemCache, name)

    @wraps(shared)
    def operation(self: SharedCache, *arguments: Any, **named: Any) -> Any:
        if not rate_limits.is_paused():
            try:
                return shared(self, *arguments, **named)
            except rate_limits.UNREACHABLE as error:
                rate_limits.pause_after_failure(error)
        return local(self.local, *arguments, **named)

    return operation


for name in (
    "add",
    "get",
    "set",
    "touch",
    "delete",
    "has_key",
    "incr",
    "get_many",
    "set_many",
    "delete_many",
):
    setattr(SharedCache, name, with_fallback(name))
