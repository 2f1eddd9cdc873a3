"""Why a party ended an exchange or refused a handshake: a closed list of codes.

Agents report the same reason in different ways: as a code, or as a text beside the code
that their protocol prescribes. What is not in the list is free text of a stranger.
"""

import re

from connections.didcomm.message import Message, problem_code, problem_text

# What a person may answer instead of accepting: the codes that `reason` takes.
DECLINES = {
    "no_card_fits": "The wallet has no card that fits.",
    "not_now": "The holder does not want to do it now.",
    "too_much": "The holder does not want to show that much.",
    "unknown_sender": "The holder does not know who sent this.",
}
REASONS = DECLINES | {
    "abandoned": "The other side ended the exchange.",
    "declined": "This side cancelled or declined it.",
    "connection_gone": "The connection was ended or deleted.",
    "link_expired": "Its link expired before anybody accepted it.",
    "token_unused": "A wallet took the offer, and then did not ask for the card.",
    "transaction_code_guessed": "A wallet gave a wrong code five times.",
    "message_parse_failure": "The other agent could not read the message.",
    "quota_exceeded": "The other side has no room for more at present.",
    # Of handshakes (RFCs 0023, 0160).
    "request_not_accepted": "The other agent did not accept the request to connect.",
    "request_processing_error": "The other agent could not read the request to connect.",
    "response_not_accepted": "The other agent did not accept the answer.",
    "response_processing_error": "The other agent could not read the answer.",
    "complete_rejected": "The other agent did not accept the confirmation.",
}
UNKNOWN = "The other side ended it, for a reason of its own."
ALIASES = {
    "issuance_abandoned": "abandoned",  # RFCs 0036 and 0453
    # Credo without a text of its own; it always has the code `abandoned`.
    "request_declined": "abandoned",
    "offer_declined": "abandoned",
    # Texts of VS Agent and its apps, which are built on Credo.
    "e_msg_refused": "abandoned",
    "e_msg_no_compatible_credentials": "no_card_fits",
    # Web wallets of release 0.1.0.
    "no_card_in_the_wallet_answers_this": "no_card_fits",
    "expired_invitation": "link_expired",  # RFC 0434
}


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", "_", text.lower()).strip("_")


_CODES = {code: code for code in REASONS} | ALIASES
_CODES |= {_plain(text): code for code, text in REASONS.items()}


def find_code(text: str | None) -> str:
    """The code that a text means: a code in any spelling, or its sentence; else ""."""
    return _CODES.get(_plain(text or ""), "")


def find_decline(text: str | None) -> str:
    """The code of DECLINES that a text means, or ""."""
    code = find_code(text)
    return code if code in DECLINES else ""


def read_problem(message: Message, ours: tuple[str, ...]) -> str:
    """Return the code of a problem report for the column `problem`.

    One of DECLINES if the code or the text of the report means it. Any other code stays
    as the peer wrote it, at most 100 characters. ours: codes that say here what this
    side did; from a peer they are `abandoned`.
    """
    code = problem_code(message)
    found = find_decline(code) or find_decline(problem_text(message))
    return found or ("abandoned" if find_code(code) in ours else code)


def in_words(problem: str) -> str:
    """The sentence of a `problem`: UNKNOWN if it is not in the list."""
    return REASONS.get(find_code(problem), UNKNOWN)
