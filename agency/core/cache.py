"""Django's cache: in Redis or Valkey, shared by all processes; without the server, per process.

It holds the notes of allauth's rate limits (agency/studio/accounts.py), which wrong passwords must
meet in whichever process they arrive, and also while the server is away.
"""

import json
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis import Redis

from agency.core import rate_limits

LOCAL_ENTRIES = (
    10_000  # with Django's 300, tries from a few hundred addresses push out the others
)


class JSONSerializer:
    """Values are JSON: pickles would let whoever writes to the server run code in our processes."""

    def dumps(self, value: Any) -> str:
        return json.dumps(value)

    def loads(self, data: bytes) -> Any:
        return json.loads(data)


class BrokerClient(RedisCacheClient):
    """Uses the connections of agency/core/rate_limits.py, which wait for an answer only briefly."""

    def __init__(self, servers: Sequence[str], **options: Any):
        super().__init__(servers, serializer=JSONSerializer, **options)

    def get_client(self, key: str | None = None, *, write: bool = False) -> Redis:
        return rate_limits.server()


class SharedCache(RedisCache):
    """Django's backend for Redis, whose operations go to this process's memory while the server
    is out of reach. Neither of the two learns what the other holds."""

    def __init__(self, server: str, params: dict[str, Any]):
        super().__init__(server, params)
        self._class = BrokerClient
        self.local = LocMemCache(
            "fallback", params | {"OPTIONS": {"MAX_ENTRIES": LOCAL_ENTRIES}}
        )

    def clear(self) -> None:
        """Forgets our own keys only: Django's would empty the database, which is the broker's.

        Raises RedisError while the server is away; it is for tests and for people at a shell.
        """
        self.local.clear()
        server = rate_limits.server()
        for key in server.scan_iter(match=self.make_key("*")):
            server.delete(key)


def with_fallback(name: str) -> Callable[..., Any]:
    """The cache operation of this name, on the server or else in memory."""
    shared, local = getattr(RedisCache, name), getattr(LocMemCache, name)

    @wraps(shared)
    def operation(self: SharedCache, *arguments: Any, **named: Any) -> Any:
        if not rate_limits.is_silent():
            try:
                return shared(self, *arguments, **named)
            except rate_limits.UNREACHABLE as error:
                rate_limits.note_silence(error)
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
