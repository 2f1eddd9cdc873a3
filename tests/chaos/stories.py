"""Careful clients: they change objects, and record what was acknowledged."""

import random
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from threading import Event, Thread
from typing import Any

import requests

from tests.support.people import ApiError, Holder, HttpClient, Organization

IDS = {
    "message": "messageId",
    "verification": "verificationId",
    "credential": "credentialId",
    "connection": "connectionId",
}
VALUES = {"name": "Alice", "degree": "Maths"}
ASKED = {"attributes": [{"policyName": "name"}]}


class NotYet(Exception):
    """What a step needs is on its way."""

    code = "nothing_there_yet"


class Over(Exception):
    """The time is up."""


class CarefulClient(HttpClient):
    """Repeat requests without a response or with 5xx under one Idempotency-Key.

    others: URLs of further nodes; after each failure the next one is called, as a load
    balancer does.
    """

    timeout = (3, 30)

    def __init__(
        self, url: str, over: Event | None = None, others: tuple[str, ...] = ()
    ) -> None:
        super().__init__(url)
        self.over, self.others = over or Event(), others
        self.answered = list[float]()  # when, but for 5xx
        self.counts: Counter[str] = Counter()
        self.acknowledged: set[tuple[str, str]] = set()  # (object id, state)

    def generic(
        self, method: str, path: str, data: Any = "", content_type: str = "",
        headers: Any = None,
    ) -> requests.Response:  # fmt: skip
        if method != "GET":
            headers = headers | {"Idempotency-Key": str(uuid.uuid4())}
        while True:
            try:
                answer = super().generic(method, path, data, content_type, headers)
            except requests.RequestException:
                self.counts["unanswered"] += 1
            else:
                self.counts[f"{answer.status_code // 100}xx"] += 1
                if answer.status_code < 500:
                    self.answered.append(time.time())
                    if "Retry-After" not in answer.headers:
                        return self.noted(method, answer)
            self.url, *others = (*self.others, self.url)
            self.others = tuple(others)
            if self.over.wait(0.3):
                raise Over

    def noted(self, method: str, answer: requests.Response) -> requests.Response:
        body = answer.json() if answer.ok and answer.content else None
        if method != "GET" and isinstance(body, dict):
            name = next((name for name in IDS.values() if name in body), None)
            if name and ("state" in body or name == "messageId"):
                self.acknowledged.add((body[name], body.get("state")))
        return answer


def careful(url: str, headers: dict[str, str], *given: Any) -> Organization:
    """An organization of a running product, which calls until it is answered."""
    return Organization.with_keys(headers, CarefulClient(url, *given))


class Pair:
    """An organization and a holder do one step after the other.

    The holder is hosted by it or by another organization.
    """

    def __init__(
        self, office: Organization, host: Organization, definition: Any, seed: int
    ) -> None:
        self.office, self.host, self.definition = office, host, definition
        self.random, self.steps = random.Random(seed), Counter[str]()
        self.holders: list[Holder] = []
        self.pause = 0.0  # seconds between two steps

    @property
    def clients(self) -> tuple[CarefulClient, CarefulClient]:
        return self.office.client, self.host.client

    @property
    def alice(self) -> Holder:
        return self.holders[-1]

    def lead_to(self, url: str) -> None:
        """What the change of a name's record does."""
        for client in self.clients:
            client.url = url

    def act(self) -> None:
        """Until the time is up."""
        known = [self.offer, self.offer, self.write, self.ask, self.decline, self.meet]
        known += [self.wish, self.counter]
        step = self.meet
        while not self.office.client.over.is_set():
            try:
                step()
                self.steps[step.__name__] += 1
            # What waits for its turn after a kill, or is elsewhere.
            except (ApiError, NotYet) as refused:
                self.steps[f"refused {refused.code}"] += 1
                time.sleep(0.1)
            except Over:
                return
            time.sleep(self.pause)
            step = self.random.choice(known)

    def meet(self) -> None:
        self.holders.append(self.host.hosts())
        self.alice.meets(self.office)

    def offer(self) -> None:
        automatic = self.random.random() < 0.5
        credential = self.offered(automatic)
        self.alice.post(self.open("credentials", "Offered")[0])
        if not automatic:
            self.office.put(f"/credentials/{credential}")

    def offered(self, automatic: bool) -> str:
        made = self.office.offers(
            self.alice, self.definition, VALUES, automaticIssuance=automatic
        )
        return made["credentialId"]

    def decline(self) -> None:
        self.offered(False)
        self.alice.post(f"{self.open('credentials', 'Offered')[0]}/decline")

    def wish(self) -> None:
        wanted = {"definitionId": self.definition["definitionId"]}
        _, mine = self.known()
        self.alice.put(
            f"/credentials/propose/{mine}", wanted | {"credentialValues": VALUES}
        )
        self.answer()

    def counter(self) -> None:
        self.offered(False)
        path = f"{self.open('credentials', 'Offered')[0]}/propose"
        self.alice.put(path, {"credentialValues": VALUES | {"degree": "Physics"}})
        self.answer()

    def answer(self) -> None:
        ours, _ = self.known()
        found = self.office.get("/credentials", state="Proposed", connectionId=ours)
        if not found:
            raise NotYet
        path = f"/credentials/{found[0]['credentialId']}/offer"
        self.office.put(path, {"comment": "Here"})

    def ask(self) -> None:
        self.office.asks(self.alice, **ASKED)
        self.alice.put(f"{self.open('verifications', 'Requested')[0]}/autoSelect")

    def write(self) -> None:
        ours, _ = self.known()
        self.office.post("/messages", {"connectionId": ours, "text": "Hello"})

    def known(self) -> tuple[str, str]:
        """Our id and hers of the connection, which is made if it is missing."""
        self.alice.known_as(self.office)
        return self.alice.known[self.office]

    def open(self, kind: str, state: str) -> list[str]:
        """The paths of what the holder has in this state, the newest first."""
        found = self.alice.get(f"/{kind}")
        name = IDS[kind[:-1]]
        if rows := [f"/{kind}/{row[name]}" for row in found if row["state"] == state]:
            return rows
        raise NotYet

    def visible(self) -> set[tuple[str, str]]:
        """(object id, state) of all that both can read."""
        return {
            (row[name], row["state"])
            for caller in (self.office, *self.holders)
            for kind, name in IDS.items()
            if kind != "message"
            for row in caller.get(f"/{kind}s")
        }


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
                careful(url, world[office]["headers"], self.over, others),
                careful(url, world[host]["headers"], self.over, others),
                world[office]["definition"],
                seed + number,
            )
            for number, (office, host) in enumerate(parts)
        ]
        self.clients = [one for pair in self.pairs for one in pair.clients]
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
        for pair in self.pairs:
            pair.lead_to(url)

    def acknowledged(self) -> set[tuple[str, str | None]]:
        return set().union(*(list(client.acknowledged) for client in self.clients))

    def visible(self) -> set[tuple[str, str]]:
        return set().union(*(pair.visible() for pair in self.pairs))

    def steps(self) -> Counter[str]:
        return sum((pair.steps for pair in self.pairs), Counter())

    def counts(self) -> Counter[str]:
        """Answers by their class: 2xx, 5xx, unanswered ..."""
        return sum((client.counts for client in self.clients), Counter())
