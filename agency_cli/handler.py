"""The local handler, called like a webhook: with the same body and signature."""

import http.client
import itertools
import json
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime

from standardwebhooks import Webhook

from agency_cli.client import NoRedirects

RETRY_DELAYS = (1.0, 2.0, 5.0)  # seconds between attempts; the last one repeats
TIMEOUT_SECONDS = 15.0
MAX_REFUSALS = 5  # responses other than 2xx, after which an event is skipped


class Handler:
    """The local handler, called without a proxy. secret: `whsec_…`."""

    def __init__(self, url: str, secret: str):
        self.url = url
        self.secret = secret
        self.opener = urllib.request.build_opener(
            NoRedirects, urllib.request.ProxyHandler({})
        )

    def deliver(self, body: str) -> None:
        """Post an event until the handler responds 2xx.

        After MAX_REFUSALS other responses, the event is skipped; it can be sent again.
        A handler that is down is retried without end.
        """
        refused = 0
        for number in itertools.count():
            started = time.monotonic()
            status, error = self.post_event(body)
            milliseconds = round((time.monotonic() - started) * 1000)
            print_outcome(body, f"{status or error} in {milliseconds} ms")
            refused += bool(status)
            if status in range(200, 300):
                return
            if refused >= MAX_REFUSALS:
                print_outcome(body, "given up")
                return
            time.sleep(RETRY_DELAYS[min(number, len(RETRY_DELAYS) - 1)])

    def post_event(self, body: str) -> tuple[int, str]:
        """Return the status of the response, or 0 and the error."""
        message_id = f"msg_{json.loads(body)['event_id']}"
        now = datetime.now(UTC)
        headers = {
            "webhook-id": message_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": Webhook(self.secret).sign(message_id, now, body),
            "Content-Type": "application/json",
            "User-Agent": "agency",
        }
        request = urllib.request.Request(
            self.url, body.encode(), headers, method="POST"
        )
        try:
            with self.opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                return answer.status, ""
        except urllib.error.HTTPError as error:
            with error:
                return error.code, ""
        except urllib.error.URLError as error:
            return 0, str(error.reason)
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error) or type(error).__name__


def print_outcome(body: str, outcome: str) -> None:
    event = json.loads(body)
    now = datetime.now().strftime("%H:%M:%S")
    print(
        f"{now}  {event['message_type']} {event['object_id']}  {outcome}",
        flush=True,
    )
