"""The story that is measured, over any `requests`-like session."""

import os

import requests

from bench.calls import BOUNDED, POLICY, VALUES, Pair
from tenants.lifecycle.provisioning import create_organization
from wallets import key_generator

__all__ = ["BOUNDED", "POLICY", "VALUES", "Caller"]


class Caller:
    """One organization with a connected wallet and a definition, called over HTTP."""

    def __init__(self, url, network=None):
        made = create_organization("Bench", network_id=network)
        self.url, self.session = url, requests.Session()
        self.session.headers.update(
            {
                "Authorization": f"bearer {made.access_token}",
                "X-Streetcred-Subscription-Key": made.subscription_key,
            }
        )

    def call(self, method, path, **body):
        response = self.session.request(method, self.url + path, **body)
        if response.status_code != 200:
            raise RuntimeError(
                f"{method} {path}: {response.status_code} {response.text}"
            )
        return response.json() if response.content else None

    def prepare(self, definition=None):
        wallet = f"/api/{self.call('post', '/api/wallets')['walletId']}"
        body = {
            "name": os.urandom(8).hex(),
            "version": "1.0",
            "attributes": list(VALUES),
        }
        if not definition:
            key_generator.make_key()
        made = definition or self.call("post", "/definitions/credentials", json=body)
        self.pair = Pair(wallet, made["definitionId"])
        for _ in self.connection_steps():
            pass
        return self

    @classmethod
    def like(cls, other):
        """Another client of the same organization, with a wallet of its own."""
        caller = cls.__new__(cls)
        caller.url, caller.session = other.url, requests.Session()
        caller.session.headers.update(other.session.headers)
        return caller.prepare({"definitionId": other.definition})

    @property
    def wallet(self):
        return self.pair.wallet

    @property
    def connection(self):
        return self.pair.connection

    @property
    def definition(self):
        return self.pair.definition

    def connection_steps(self):
        """The calls of a new connection, one by one: (name, answer)."""
        yield from self.make(self.pair.connect())

    def cycle(self, policy=POLICY):
        """Offer, accept, issue, request, present and read the verified proof."""
        for _ in self.steps(policy):
            pass

    def steps(self, policy=POLICY):
        """The calls of a cycle, one by one: (name, answer)."""
        yield from self.make(self.pair.exchange(policy))

    def make(self, calls):
        """Make these calls: yield (name, answer) of each."""
        call = next(calls, None)
        while call:
            body = {"json": call.json} if call.json else {}
            if call.form:
                body = {"data": call.form}
            answer = self.call(call.method.lower(), call.path, **body)
            yield call.name, answer
            try:
                call = calls.send(answer)
            except StopIteration:
                return
