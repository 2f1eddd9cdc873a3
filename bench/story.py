"""The story that is measured, over HTTP or in this process."""

import os

from bench.calls import BOUNDED, POLICY, VALUES, Pair
from tests.support.people import HttpClient, Organization
from wallets import key_generator

__all__ = ["BOUNDED", "POLICY", "VALUES", "Caller"]


class Caller(Organization):
    """One organization with a connected wallet and a definition, called over HTTP."""

    def __init__(self, url, network=None):
        super().__init__("Bench", network_id=network)
        self.client = HttpClient(url)

    def prepare(self, definition=None):
        if not definition:
            key_generator.make_key()
            definition = self.defines(*VALUES, name=os.urandom(8).hex())
        self.pair = Pair(self.hosts().prefix, definition["definitionId"])
        for _ in self.connection_steps():
            pass
        return self

    @classmethod
    def like(cls, other):
        """Another client of the same organization, with a wallet of its own."""
        caller = cls.with_keys(other.headers, HttpClient(other.url))
        return caller.prepare({"definitionId": other.definition})

    @property
    def url(self):
        return self.client.url

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

    def issue(self):
        """Offer, accept and issue. Return the id of the credential."""
        (_, offered), *_ = self.make(self.pair.issue())
        return offered["credentialId"]

    def steps(self, policy=POLICY):
        """The calls of a cycle, one by one: (name, answer)."""
        yield from self.make(self.pair.exchange(policy))

    def make(self, calls):
        """Make these calls: yield (name, answer) of each."""
        call = next(calls, None)
        while call:
            answer = self.call(call.method.lower(), call.path, call.json, call.form)
            yield call.name, answer
            try:
                call = calls.send(answer)
            except StopIteration:
                return
