"""The handler under development, called as webhooks are: same body, same signature."""

import http.client
import itertools
import json
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime

from agency.devtools.listen.remote import NoRedirects
from webhooks.delivery import signing

PAUSES = (1.0, 2.0, 5.0)  # seconds; the last again and again
DEADLINE = 15.0  # seconds
REFUSALS = 5  # after so many answers other than 2xx the next event is posted


class Handler:
    """secret: `whsec_…`. Proxies of the environment are left aside."""

    def __init__(self, url: str, secret: str):
        self.url, self.secret = url, secret
        self.opener = urllib.request.build_opener(
            NoRedirects, urllib.request.ProxyHandler({})
        )

    def deliver(self, body: str) -> None:
        """Returns when it was taken. One that is down is waited for; one that refuses it REFUSALS
        times keeps no further event waiting: that one can be sent again."""
        refused = 0
        for number in itertools.count():
            started = time.monotonic()
            status, said = self.call(body)
            milliseconds = round((time.monotonic() - started) * 1000)
            say(body, f"{status or said} in {milliseconds} ms")
            refused += bool(status)
            if status in range(200, 300):
                return
            if refused >= REFUSALS:
                say(body, "given up")
                return
            time.sleep(PAUSES[min(number, len(PAUSES) - 1)])

    def call(self, body: str) -> tuple[int, str]:
        """The status, or 0 and why there is none."""
        message_id = f"msg_{json.loads(body)['event_id']}"
        headers = signing.signature_headers(
            message_id, body, [self.secret], datetime.now(UTC)
        )
        headers |= {"Content-Type": "application/json", "User-Agent": "agency"}
        request = urllib.request.Request(
            self.url, body.encode(), headers, method="POST"
        )
        try:
            with self.opener.open(request, timeout=DEADLINE) as answer:
                return answer.status, ""
        except urllib.error.HTTPError as error:
            with error:
                return error.code, ""
        except urllib.error.URLError as error:
            return 0, str(error.reason)
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error) or type(error).__name__


def say(body: str, outcome: str) -> None:
    event, now = json.loads(body), datetime.now().strftime("%H:%M:%S")
    print(f"{now}  {event['message_type']} {event['object_id']}  {outcome}", flush=True)
