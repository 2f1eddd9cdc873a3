"""Test a running agency from outside: the quick start, webhooks, streams, pages."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import requests
from standardwebhooks import Webhook

from tests.production import Failed
from tests.production.receiver import Receiver
from tests.support.paths import ROOT

QUICKSTART = (ROOT / "docs" / "quickstart.md").read_text()
SECONDS_OF_THE_STORY, SECONDS_TO_CALL = 180, 60
ANNOUNCED = {"new_connection", "credential_request", "verification"}


class Agency:
    """An agency with these settings, and the keys of one organization.

    certificate: the file that TLS to it is verified with.
    """

    def __init__(
        self, given: dict[str, str], keys: dict[str, str], certificate: Path
    ) -> None:
        self.url, self.keys, self.certificate = given["PUBLIC_URL"], keys, certificate
        self.port = given["PORT"]
        has_proxy = self.url.startswith("https:")
        self.streams = (
            self.url if has_proxy else f"http://127.0.0.1:{given['STREAM_PORT']}"
        )
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.verify = str(certificate)
        self.session.headers = {
            "Authorization": f"Bearer {keys['accessToken']}",
            "X-Service-Subscription-Key": keys["subscriptionKey"],
        }

    def play(self, receiver: Receiver) -> None:
        """One story; its events come as signed calls, and by the stream."""
        body = {"url": receiver.url, "messageTypes": sorted(ANNOUNCED)}
        answer = self.session.post(f"{self.url}/webhooks", json=body, timeout=30)
        if answer.status_code != 200:
            raise Failed(f"POST /webhooks answered {answer.status_code}: {answer.text}")
        with self.session.get(
            f"{self.streams}/events/stream?after=now", stream=True, timeout=30
        ) as stream:
            if stream.status_code != 200:
                raise Failed(f"GET /events/stream answered {stream.status_code}")
            self.run_the_quick_start()
            self.read(stream)
        receive(receiver, answer.json()["secret"])

    def run_the_quick_start(self) -> None:
        [program] = re.findall(r"```python\n(.*?)```", QUICKSTART, re.DOTALL)
        environment = os.environ | {
            "AGENCY_URL": self.url,
            "ACCESS_TOKEN": self.keys["accessToken"],
            "SUBSCRIPTION_KEY": self.keys["subscriptionKey"],
            "REQUESTS_CA_BUNDLE": str(self.certificate),
        }
        ran = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_OF_THE_STORY,
        )
        if ran.returncode or f"It prints `{ran.stdout.strip()}`." not in QUICKSTART:
            raise Failed(
                f"the story of the quick start printed {ran.stdout!r}: {ran.stderr}"
            )

    def read(self, stream: requests.Response) -> None:
        """Until the last event of the story."""
        for line in stream.iter_lines():
            if line.startswith(b"data:") and b'"message_type": "verification"' in line:
                return
        raise Failed("the stream ended without the verification")

    def is_led_to_https(self, plain_port: int) -> None:
        """Redirects by the proxy, and by the web server behind a proxy with http."""
        proxied = {"X-Forwarded-Proto": "http", "Host": "localhost"}
        for url, headers in (
            (f"http://localhost:{plain_port}/studio/", {}),
            (f"http://127.0.0.1:{self.port}/studio/", proxied),
        ):
            answer = requests.get(
                url, headers=headers, allow_redirects=False, timeout=30
            )
            if answer.status_code != 301 or not answer.headers["Location"].startswith(
                "https://"
            ):
                raise Failed(
                    f"GET {url} answered {answer.status_code}, not 301 to https"
                )

    def open_pages(self) -> None:
        """The studio's first page, and each static file that it names."""
        page = self.session.get(f"{self.url}/", timeout=30)
        if page.status_code != 200:
            raise Failed(f"GET / answered {page.status_code}")
        if (
            page.url.startswith("https:")
            and "Strict-Transport-Security" not in page.headers
        ):
            raise Failed("GET / carries no HSTS")
        files = set(re.findall(r'"(/static/[^"]+)"', page.text))
        for file in sorted(files):
            status = self.session.get(self.url + file, timeout=30).status_code
            if status != 200:
                raise Failed(f"GET {file} answered {status}")
        if not files:
            raise Failed("the studio's first page names no static file")


def receive(receiver: Receiver, secret: str) -> None:
    """Wait for a signed call of each type. The library raises for any other call."""
    deadline = time.monotonic() + SECONDS_TO_CALL
    while ANNOUNCED - types_of(receiver, secret):
        if time.monotonic() > deadline:
            raise Failed(f"no call came for {ANNOUNCED - types_of(receiver, secret)}")
        time.sleep(0.2)


def types_of(receiver: Receiver, secret: str) -> set[str]:
    webhook = Webhook(secret)
    for headers, body in receiver.calls:
        webhook.verify(body, {name.lower(): value for name, value in headers.items()})
    return {json.loads(body)["message_type"] for _, body in receiver.calls}
