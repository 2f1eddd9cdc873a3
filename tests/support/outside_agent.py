"""An outside agent with its own keys, and an HTTP server that we post to."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.test import Client

from connections.didcomm import envelope, message
from connections.models import Connection
from connections.protocols import connections_1_0
from tests.support import queues
from tests.support.http_servers import Call, http_server
from wallets import keys

OLD, NEW = message.OLD_PREFIX, message.PREFIX


class Agent:
    """An outside agent. `inbox`: its decrypted messages in order of arrival."""

    def __init__(self, prefix=NEW):
        self.seed, self.prefix = keys.generate_seed(), prefix
        self.verkey = keys.verkey_of(self.seed)
        self.endpoint, self.their_key = "", ""
        self.client, self.inbox = Client(raise_request_exception=False), []
        self.answers, self.status = b"", 202

    @property
    def party(self):
        did = keys.did_of(self.verkey)
        return connections_1_0.Party(did, self.verkey, self.endpoint, [])

    def with_next_key(self):
        """Return the same agent with another key, which nobody has been told of."""
        other = Agent(self.prefix)
        other.endpoint, other.their_key = self.endpoint, self.their_key
        other.inbox = self.inbox
        return other

    def becomes(self, other):
        """Take over the keys of another agent, whose peers know this address then."""
        vars(self).update(vars(other), endpoint=self.endpoint, client=self.client)
        rows = Connection.objects.filter(their_key=self.verkey)
        rows.update(their_endpoint=self.endpoint, answering_endpoint=self.endpoint)

    def build(self, kind, thread=None, **members):
        return message.build(kind, self.prefix, thread, **members)

    def pack(self, body, to=None, anonymous=False):
        sender = None if anonymous else envelope.Sender(self.verkey, self.seed)
        return envelope.pack(
            message.json.dumps(body).encode(), [to or self.their_key], sender
        )

    def post(self, data, **options):
        options = {"content_type": "application/ssi-agent-wire"} | options
        return self.client.post("/didcomm", data=data, **options)

    def says(self, body, to=None, anonymous=False):
        """Post a message. The worker handles it and sends the replies."""
        answer = self.post(self.pack(body, to, anonymous))
        assert answer.status_code == 202, answer.content
        queues.sweep()
        return body

    def asks(self, body, to=None, anonymous=False, route="all", **options):
        """Post a message, and receive a reply in the response if there is one."""
        body = {**body, "~transport": {"return_route": route}}
        answer = self.post(self.pack(body, to, anonymous), **options)
        assert answer.status_code == (200 if answer.content else 202), answer.content
        if answer.content:
            self.receives(answer.content)
        return answer

    def receives(self, data):
        opened = envelope.unpack(data, lambda kids: (self.verkey, self.seed))
        self.inbox.append(message.parse(opened.body).with_sender(opened.sender))

    def newest(self, kind):
        """Return the last message, which must be of this type."""
        assert self.inbox and self.inbox[-1].type == kind, [
            one.type for one in self.inbox
        ]
        return self.inbox[-1]

    def requests(self, invitation, **members):
        """Answer our invitation. `members` replace those of the request."""
        body = (
            connections_1_0.build_request("Phone", "", self.party, self.prefix)
            | members
        )
        return self.says(body, to=invitation["recipientKeys"][0])

    def connects(self, organization):
        """Accept an invitation of this organization. Return our row."""
        invited = organization.invites()
        row = Connection.objects.get(connection_id=invited["connectionId"])
        self.accepts(row)
        return Connection.objects.get(pk=row.pk)

    def accepts(self, row):
        """Connect by the invitation of this row."""
        self.requests(row.invitation)
        response = self.newest(connections_1_0.RESPONSE)
        signer = row.invitation["recipientKeys"][0]
        content = connections_1_0.read_signed(response.body["connection~sig"], signer)
        self.their_key = connections_1_0.read_party(content).verkey
        self.says(self.build(connections_1_0.ACK, response.thread_id, status="OK"))


@contextmanager
def listening(agent: Agent) -> Iterator[Agent]:
    """Run a real HTTP server on loopback for the agent."""

    def respond(call: Call) -> None:
        agent.receives(call.read())
        call.answer(agent.status, agent.answers)

    with http_server(respond) as server:
        agent.endpoint = f"{server.url}/"
        yield agent
