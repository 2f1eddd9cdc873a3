"""The one client for URLs that tenants and peers give.

Private addresses are refused at connect time (the checked address is the one connected to),
redirects are not followed, the answer is read up to a cap. TLS is always verified.
"""

from typing import NamedTuple

import requests
from django.conf import settings
from requests_hardened import Config, Manager
from urllib3.exceptions import HTTPError

from agency.errors import Unavailable

TIMEOUT = (5, 15)  # seconds: connect, each read
ANSWER_BYTES = 1024 * 1024


class Answer(NamedTuple):
    status: int
    body: bytes


def post(url: str, body: bytes, content_type: str) -> Answer:
    """Raises Unavailable when the address is refused, out of reach, or too slow."""
    try:
        with session() as client:
            headers = {"Content-Type": content_type}
            with client.post(url, data=body, headers=headers, stream=True) as response:
                answer = response.raw.read(ANSWER_BYTES, decode_content=True)
                return Answer(response.status_code, answer or b"")
    except (requests.RequestException, HTTPError, OSError, ValueError) as error:
        raise Unavailable(
            "endpoint_unavailable", f"{type(error).__name__} at the endpoint"
        ) from error


def session():
    config = Config(
        ip_filter_enable=True,
        ip_filter_allow_loopback_ips=settings.OUTGOING_ALLOW_LOOPBACK,
        never_redirect=True,
        default_timeout=TIMEOUT,
        user_agent_override="agency",
    )
    client = Manager(config).get_session()
    client.trust_env = False
    return client
