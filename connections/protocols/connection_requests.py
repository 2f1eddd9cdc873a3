"""Requests to connect, of either protocol: who sent one, and how it is refused."""

from connections.didcomm.dids import Party
from connections.didcomm.message import Body, Message, build, problem_report
from connections.messaging import outbox
from connections.models import Connection
from connections.protocols import connections_1_0, did_exchange
from core.errors import PeerError
from tenants.models import Tenant


def read_requester(message: Message, tenant: Tenant | None = None) -> Party:
    """Who sent a request. PeerError `request_not_accepted` unless its own key packed it.

    Also the errors of read_request() of its protocol. tenant: the organization that was
    asked, on whose behalf a public DID is resolved. None to resolve no DID, as it may
    be a stranger's: one without a document is then a PeerError.
    """
    if message.protocol[0] == "didexchange":
        party = did_exchange.read_request(message, tenant)
    else:
        party = connections_1_0.read_request(message)
    if message.sender != party.verkey:
        raise PeerError("request_not_accepted", "the sender is not the document's key")
    return party


def refuse_request(connection: Connection, message: Message, explanation: str) -> None:
    """Send a problem report to a requester that was not accepted.

    In the caller's transaction, from the key of the invitation. The requester is not
    the peer of any connection, so the report belongs to none. Nothing is sent if too
    many such reports by this key are undelivered.
    """
    rows = outbox.undelivered_messages(my_key=connection.inviting_key, connection=None)
    if outbox.is_full(rows):
        return
    requester = read_requester(message, connection.wallet.tenant)
    for report in refusal_reports(message, explanation):
        outbox.enqueue_to_party(requester, report, connection.inviting_key, None)


def refusal_reports(message: Message, explanation: str) -> list[Body]:
    """Build the report in both message types that are in use: no agent knows both.

    The first is Credo's (`connection/1.0/problem-report` for connections/1.0), the
    second that of the RFCs and ACA-Py. A phone without an endpoint gets only the
    first.
    """
    report = problem_report(message, "request_not_accepted", explanation)
    protocol, version = message.protocol
    spelling = "connection" if protocol == "connections" else protocol
    members = {
        name: value
        for name, value in report.items()
        if name not in ("@type", "@id", "~thread")
    }
    kind = f"{spelling}/{version}/problem-report"
    return [build(kind, message.prefix, message.thread_id, None, **members), report]
