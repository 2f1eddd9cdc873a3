"""Aries messages as JSON: types, threads, attachments (RFCs 0008, 0011, 0017).

And what a message to a wallet hosted here carries besides its JSON (PreparedResults).
"""

import base64
import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar

from connections.didcomm.envelope import decode_bytes
from core.errors import PeerError
from core.text import bounded_json
from core.text.bounded_json import JSON, Members

PREFIX = "https://didcomm.org/"
OLD_PREFIX = "did:sov:BzCbsNYhMrjHiqZDTUASHg;spec/"
TYPE = re.compile(
    rf"({re.escape(PREFIX)}|{re.escape(OLD_PREFIX)})"
    r"([\w-]{1,40})/(\d{1,4})\.(\d{1,4})/([\w-]{1,40})",
    re.ASCII,
)
MAX_REASON = 500  # characters of an explanation that is kept
MAX_ID = 128
HANDSHAKE_PROTOCOLS = ("connections", "didexchange")
# Protocols that call their report `problem_report` (RFCs 0023, 0160, 0434).
UNDERSCORED_REPORTS = (*HANDSHAKE_PROTOCOLS, "out-of-band")
# Major types of the messages that come to the key of an invitation.
CONNECTION_REQUESTS = ("connections/1/request", "didexchange/1/request")
HANDSHAKE_CODES = {
    "request": "request_not_accepted",
    "response": "response_not_accepted",
    "complete": "complete_rejected",
}
CLOCKS_DIFFER = timedelta(minutes=5)
# Characters that may encode to `+`, `/`, `-` or `_`; JSON allows them as escapes.
NOT_IN_BOTH_ALPHABETS = {
    ord(character): f"\\u{ord(character):04x}" for character in "~>?\x7f"
}
# A message as it is written, with `@type` and `@id`.
Body = Members
Result = TypeVar("Result")


class PreparedResults:
    """Results that one party computes before the locks, for what its peer does here.

    Between two wallets hosted here, one transaction does what both parties do, and the
    cryptography of the second one takes longer than all statements. Meanwhile the rows
    would be locked, and the feed of events would wait for the transaction
    (webhooks/events/feed.py). So the first party calls the same functions beforehand,
    and the message to its peer carries what they returned (Message.prepared):

        prepared = PreparedResults()
        prepared.call(sign, definition, request)  # computed
        credential.lock()
        ...
        prepared.call(sign, definition, request)  # the result from above

    Nothing is decided by it. A call with any other argument computes its own result,
    which depends on nothing but the arguments. Nobody modifies a result.
    """

    def __init__(self) -> None:
        self._known: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = []

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        for known, given, result in self._known:
            if known is function and given == arguments:
                return result
        result = function(*arguments)
        self._known.append((function, arguments, result))
        return result


@dataclass(frozen=True)
class Message:
    """A received message.

    type: without the prefix, as in `connections/1.0/request`. sender: the verkey that
    packed the message; None for an anonymous envelope. origin: of a request to connect,
    a digest of the address that it came from (connections/strangers.py). prepared: what
    a sender that is hosted here has computed for the handler.
    """

    type: str
    prefix: str
    id: str
    thread_id: str
    body: Body
    sender: str | None = None
    origin: uuid.UUID | None = None
    prepared: PreparedResults | None = None

    def with_sender(self, sender: str | None) -> "Message":
        """Return a copy with the sender's verkey; None if it is anonymous."""
        return replace(self, sender=sender)

    @cached_property
    def major_type(self) -> str:
        """The type without its minor version, with `-` in place of `_`.

        A handler gets all minor versions. As in `connections/1/request`.
        """
        protocol, version, name = self.type.split("/")
        return f"{protocol}/{version.partition('.')[0]}/{name.replace('_', '-')}"

    @cached_property
    def protocol(self) -> tuple[str, str]:
        """Name and version, as in ("connections", "1.0")."""
        name, version, _ = self.type.split("/")
        return name, version

    @cached_property
    def parent_id(self) -> str:
        """The id of the invitation that began the thread (`pthid`), or ""."""
        parent = object_in(self.body, "~thread").get("pthid")
        return parent if isinstance(parent, str) and len(parent) <= MAX_ID else ""

    @cached_property
    def return_route(self) -> tuple[str, str]:
        """Which replies the sender accepts in the response to its call (RFC 0092).

        ("all", ""), ("thread", thread id) or ("none", "").
        """
        transport = object_in(self.body, "~transport")
        route, thread = (
            transport.get("return_route"),
            transport.get("return_route_thread"),
        )
        if route == "thread" and isinstance(thread, str):
            return "thread", thread
        return ("all", "") if route == "all" else ("none", "")

    def is_expired(self, now: datetime) -> bool:
        """Return whether the sender's `expires_time` is over (RFC 0032).

        False without one that can be read. Clocks may differ by CLOCKS_DIFFER.
        """
        try:
            end = datetime.fromisoformat(
                str(object_in(self.body, "~timing").get("expires_time"))
            )
            end = end if end.tzinfo else end.replace(tzinfo=UTC)
            return end + CLOCKS_DIFFER < now
        except (ValueError, OverflowError):
            return False

    @cached_property
    def is_problem_report(self) -> bool:
        return self.major_type.endswith("/problem-report")

    @cached_property
    def is_never_answered(self) -> bool:
        """A problem report or an ack: else two agents could go on for ever."""
        return self.is_problem_report or self.major_type.endswith("/ack")


def object_in(body: dict[str, JSON], name: str) -> dict[str, JSON]:
    """The member of this name if it is an object, else an empty one."""
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def parse(data: bytes) -> Message:
    """Parse a decrypted message. PeerError `message_parse_failure` if invalid."""
    try:
        body = bounded_json.loads(data)
    except bounded_json.BadJSON as error:
        raise PeerError("message_parse_failure", str(error)) from None
    return read(body)


def read(body: JSON) -> Message:
    """Return the message in a parsed JSON body.

    PeerError `message_parse_failure` if it is no object, has no `@type` that is a
    message type or no `@id`, or if `@id` or `thid` is empty, too long or no text.
    """
    if not isinstance(body, dict):
        raise PeerError("message_parse_failure", "a message is a JSON object")
    match = TYPE.fullmatch(text(body, "@type"))
    if not match:
        raise PeerError("message_parse_failure", "@type is not a message type")
    prefix, protocol, major, minor, name = match.groups()
    identifier = text(body, "@id")
    thread = body.get("~thread") or {}
    thread_id = (
        text(thread, "thid", identifier) if isinstance(thread, dict) else identifier
    )
    if max(len(identifier), len(thread_id)) > MAX_ID:
        raise PeerError("message_parse_failure", "@id or thid is too long")
    return Message(
        f"{protocol}/{major}.{minor}/{name}", prefix, identifier, thread_id, body
    )


def text(body: dict[str, JSON], name: str, default: str | None = None) -> str:
    """Return a text member, which is not empty; if it is missing, the default.

    PeerError `message_parse_failure` if it is not a text, or missing without a
    default.
    """
    value = body.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or not value:
        raise PeerError("message_parse_failure", f"{name} is missing or not a text")
    return value


def build(
    kind: str,
    prefix: str = PREFIX,
    thread: str | None = None,
    parent: str | None = None,
    **members: Any,
) -> Body:
    """Build a message to send, with a new id. thread: `thid`. parent: `pthid`."""
    message: Body = {"@type": prefix + kind, "@id": str(uuid.uuid4()), **members}
    threads = {"thid": thread, "pthid": parent}
    if thread or parent:
        message["~thread"] = {name: value for name, value in threads.items() if value}
    return message


def problem_report(answered: Message, code: str, explanation: str) -> Body:
    """Build the problem report about a received message.

    RFC 0035; RFCs 0023, 0160 and 0434 for those that have their own.
    """
    protocol, version, name = answered.type.split("/")
    kind = "problem_report" if protocol in UNDERSCORED_REPORTS else "problem-report"
    members: dict[str, JSON] = {}
    # The handshake protocols have codes of their own.
    if protocol in HANDSHAKE_PROTOCOLS:
        code = HANDSHAKE_CODES.get(name, code)
        members = {"problem-code": code, "explain": explanation}
    members["description"] = {"code": code, "en": explanation}
    kind = f"{protocol}/{version}/{kind}"
    return build(kind, answered.prefix, answered.thread_id, None, **members)


def problem_code(message: Message) -> str:
    """Return the code in any form of a problem report, or "problem" without one.

    At most 100 characters. Old agents write a text instead of a code.
    """
    description = message.body.get("description")
    code = description.get("code") if isinstance(description, dict) else description
    code = code or message.body.get("problem-code") or message.body.get("explain-ltxt")
    return code[:100] if isinstance(code, str) and code else "problem"


def problem_text(message: Message) -> str | None:
    """Return the explanation in a problem report, or None.

    At most MAX_REASON characters, without control characters.
    """
    description = message.body.get("description")
    found = description.get("en") if isinstance(description, dict) else None
    found = found or message.body.get("explain") or message.body.get("comment")
    if not isinstance(found, str):
        return None
    return "".join(one for one in found[:MAX_REASON] if one.isprintable()) or None


def json_attachment(identifier: str, content: Mapping[str, Any]) -> dict[str, JSON]:
    """A JSON attachment in the encoding that all agents read: plain padded base64."""
    data = base64.b64encode(json.dumps(content).encode()).decode()
    return {
        "@id": identifier,
        "mime-type": "application/json",
        "data": {"base64": data},
    }


def read_attachment(
    message: Message,
    member: str,
    identifier: str | None = None,
    or_first: bool = True,
) -> dict[str, JSON]:
    """Return the JSON object attached as `member`: the one with this id.

    If there is none with it, or_first: the first one. PeerError
    `message_parse_failure` if there is none either, or if its content cannot be
    decoded or is no JSON object.
    """
    listed = message.body.get(member)
    attachments = (
        [one for one in listed if isinstance(one, dict)]
        if isinstance(listed, list)
        else []
    )
    named = [one for one in attachments if one.get("@id") == identifier]
    found = named or (attachments if or_first else [])
    data = found[0].get("data") if found else None
    if not isinstance(data, dict):
        raise PeerError("message_parse_failure", f"{member} holds no attachment")
    content = data.get("json")
    if content is None:
        content = decode_json(text(data, "base64"))
    if not isinstance(content, dict):
        raise PeerError("message_parse_failure", f"{member} holds no JSON object")
    return content


def encode_url(content: Body, separators: tuple[str, str] | None = None) -> str:
    """Return JSON as base64 for a URL.

    The text is the same each time, valid in both base64 alphabets, and has no padding.
    """
    written = json.dumps(content, sort_keys=True, separators=separators)
    data = written.translate(NOT_IN_BOTH_ALPHABETS)
    # Spaces after JSON are allowed: a multiple of three bytes needs no padding.
    return base64.b64encode((data + " " * (-len(data) % 3)).encode()).decode()


def decode_json(data: str) -> JSON:
    """Return the JSON in base64. PeerError `message_parse_failure` if it is none."""
    try:
        return bounded_json.loads(decode_bytes(data))
    except bounded_json.BadJSON as error:
        raise PeerError("message_parse_failure", str(error)) from None
