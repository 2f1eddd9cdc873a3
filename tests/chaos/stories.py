"""Careful clients: they change objects, and record what was acknowledged."""

import random
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from threading import Event, Thread
from typing import Any

import requests

IDS = {
    "message": "messageId",
    "verification": "verificationId",
    "credential": "credentialId",
    "connection": "connectionId",
}
VALUES = {"name": "Alice", "degree": "Maths"}
ASKED = {"name": "Policy", "version": "1.0", "attributes": [{"policyName": "name"}]}


class Refused(Exception):
    """An answer of 4xx: the argument is its code."""


class Over(Exception):
    """The time is up."""


class Caller:
    """Repeat requests without a response or with 5xx under one Idempotency-Key.

    others: URLs of further nodes; after each failure the next one is called, as a load
    balancer does.
    """

    def __init__(
        self,
        url: str,
        headers: dict[str, str],
        over: Event,
        others: tuple[str, ...] = (),
    ) -> None:
        self.url, self.over, self.session = url, over, requests.Session()
        self.others, self.answered = others, list[float]()  # when, but for 5xx
        self.session.headers.update(headers)
        self.session.trust_env = False  # pytest changes the environment meanwhile
        self.counts: Counter[str] = Counter()
        self.acknowledged: set[tuple[str, str]] = set()  # (object id, state)

    def call(self, method: str, path: str, body: Any = None, form: Any = None) -> Any:
        headers = {"Idempotency-Key": str(uuid.uuid4())} if method != "GET" else {}
        files = {name: (None, value) for name, value in (form or {}).items()}
        given = {
            "json": body,
            "files": files or None,
            "headers": headers,
            "timeout": (3, 30),
        }
        while True:
            try:
                answer = self.session.request(method, self.url + path, **given)
            except requests.RequestException:
                self.counts["unanswered"] += 1
            else:
                self.counts[f"{answer.status_code // 100}xx"] += 1
                if answer.status_code < 500:
                    self.answered.append(time.time())
                if answer.status_code == 200:
                    return self.noted(method, answer.json() if answer.content else None)
                if answer.status_code < 500 and "Retry-After" not in answer.headers:
                    raise Refused(answer.json()["code"])
            self.url, *others = (*self.others, self.url)
            self.others = tuple(others)
            if self.over.wait(0.3):
                raise Over

    def noted(self, method: str, body: Any) -> Any:
        if method != "GET" and isinstance(body, dict):
            name = next((name for name in IDS.values() if name in body), None)
            if name and ("state" in body or name == "messageId"):
                self.acknowledged.add((body[name], body.get("state")))
        return body

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        return self.call("POST", path, body, **options)

    def put(self, path: str, body: Any = None) -> Any:
        return self.call("PUT", path, body)


class Pair:
    """An organization and a holder do one step after the other.

    The holder is hosted by it or by another organization.
    """

    def __init__(
        self, office: Caller, host: Caller, definition: str, seed: int
    ) -> None:
        self.office, self.host, self.definition = office, host, definition
        self.random, self.steps = random.Random(seed), Counter[str]()
        self.wallets: list[str] = []
        self.pause = 0.0  # seconds between two steps

    def act(self) -> None:
        """Until the time is up."""
        known = [self.offer, self.offer, self.write, self.ask, self.decline, self.meet]
        known += [self.wish, self.counter]
        step = self.meet
        while not self.office.over.is_set():
            try:
                step()
                self.steps[step.__name__] += 1
            except (
                Refused
            ) as refused:  # of what waits for its turn after a kill, or is elsewhere
                self.steps[f"refused {refused}"] += 1
                time.sleep(0.1)
            except Over:
                return
            time.sleep(self.pause)
            step = self.random.choice(known)

    def meet(self) -> None:
        self.wallet = self.host.post("/api/wallets", {"ownerName": "Alice"})["walletId"]
        self.wallets.append(self.wallet)
        invited = self.office.post("/connections")
        self.connection = invited["connectionId"]
        form = {"invitation": invited["invitation"]}
        taken = self.host.post(f"/api/{self.wallet}/connections/invitation", form=form)
        self.mine = taken["connectionId"]

    def offer(self) -> None:
        automatic = self.random.random() < 0.5
        credential = self.offered(automatic)
        [mine, *_] = self.open("credentials", "Offered")
        self.host.post(f"/api/{self.wallet}/credentials/{mine['credentialId']}")
        if not automatic:
            self.office.put(f"/credentials/{credential}")

    def offered(self, automatic: bool) -> str:
        body = {"definitionId": self.definition, "connectionId": self.connection}
        body |= {"credentialValues": VALUES, "automaticIssuance": automatic}
        return self.office.post("/credentials", body)["credentialId"]

    def decline(self) -> None:
        self.offered(False)
        [mine, *_] = self.open("credentials", "Offered")
        self.host.post(f"/api/{self.wallet}/credentials/{mine['credentialId']}/decline")

    def wish(self) -> None:
        wanted = {"definitionId": self.definition, "credentialValues": VALUES}
        self.host.put(f"/api/{self.wallet}/credentials/propose/{self.mine}", wanted)
        self.answer()

    def counter(self) -> None:
        self.offered(False)
        [mine, *_] = self.open("credentials", "Offered")
        path = f"/api/{self.wallet}/credentials/{mine['credentialId']}/propose"
        self.host.put(path, {"credentialValues": VALUES | {"degree": "Physics"}})
        self.answer()

    def answer(self) -> None:
        found = self.office.get(
            f"/credentials?state=Proposed&connectionId={self.connection}"
        )
        if not found:
            raise Refused("nothing_there_yet")
        self.office.put(
            f"/credentials/{found[0]['credentialId']}/offer", {"comment": "Here"}
        )

    def ask(self) -> None:
        self.office.post(f"/verifications/policy/connections/{self.connection}", ASKED)
        [mine, *_] = self.open("verifications", "Requested")
        path = f"/api/{self.wallet}/verifications/{mine['verificationId']}"
        self.host.put(f"{path}/autoSelect")

    def write(self) -> None:
        self.office.post(
            "/messages", {"connectionId": self.connection, "text": "Hello"}
        )

    def open(self, kind: str, state: str) -> list[Any]:
        """The newest first. Refused when there is none: its message waits."""
        found = self.host.get(f"/api/{self.wallet}/{kind}")
        if rows := [row for row in found if row["state"] == state]:
            return rows
        raise Refused("nothing_there_yet")

    def visible(self) -> set[tuple[str, str]]:
        """(object id, state) of all that both can read."""
        found = set()
        kinds = [kind for kind in IDS if kind != "message"]
        places = [(self.office, f"/{kind}s") for kind in kinds]
        places += [
            (self.host, f"/api/{wallet}/{kind}s")
            for wallet in self.wallets
            for kind in kinds
        ]
        for caller, path in places:
            name = IDS[path.rpartition("/")[2][:-1]]
            found |= {(row[name], row["state"]) for row in caller.get(path)}
        return found


class Writers:
    """Pairs of organizations (office, host) that act until they are stopped."""

    def __init__(
        self,
        world: dict[str, Any],
        url: str,
        parts: Iterable[tuple[str, str]],
        seed: int = 0,
        others: tuple[str, ...] = (),
    ) -> None:
        self.over = Event()
        self.pairs = [
            Pair(
                Caller(url, world[office]["headers"], self.over, others),
                Caller(url, world[host]["headers"], self.over, others),
                world[office]["definition"],
                seed + number,
            )
            for number, (office, host) in enumerate(parts)
        ]
        self.callers = [one for pair in self.pairs for one in (pair.office, pair.host)]
        self.threads = [Thread(target=pair.act, daemon=True) for pair in self.pairs]

    def start(self, pause: float = 0.0) -> None:
        """pause: seconds between two steps of a pair."""
        for pair, thread in zip(self.pairs, self.threads, strict=True):
            pair.pause = pause
            thread.start()

    def stop(self) -> None:
        """Wait until nobody acts any more. Then callers may be used by hand."""
        self.over.set()
        for thread in self.threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self.threads)
        self.over.clear()

    def lead_to(self, url: str) -> None:
        """What the change of a name's record does."""
        for caller in self.callers:
            caller.url = url

    def acknowledged(self) -> set[tuple[str, str | None]]:
        return set().union(*(list(caller.acknowledged) for caller in self.callers))

    def visible(self) -> set[tuple[str, str]]:
        return set().union(*(pair.visible() for pair in self.pairs))

    def steps(self) -> Counter[str]:
        return sum((pair.steps for pair in self.pairs), Counter())

    def counts(self) -> Counter[str]:
        """Answers by their class: 2xx, 5xx, unanswered ..."""
        return sum((caller.counts for caller in self.callers), Counter())
