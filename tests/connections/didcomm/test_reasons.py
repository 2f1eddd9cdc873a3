"""Reasons are a closed list, read from the reports of any agent."""

import pytest

from connections.didcomm import message, reasons

KINDS = [
    f"{protocol}/{version}/problem-report"
    for protocol in ("present-proof", "issue-credential")
    for version in ("1.0", "2.0")
]
FREE = "Ada Lovelace has no such card"


def report(**members):
    return message.read(message.build("present-proof/1.0/problem-report", **members))


def description(code, text=None):
    return {"description": {"code": code} | ({"en": text} if text else {})}


@pytest.mark.parametrize("members, code", [
    (description("no_card_fits"), "no_card_fits"),  # ours
    (description("No-Card-Fits"), "no_card_fits"),
    # ACA-Py and Credo: their own code, and a text of the controller
    (description("abandoned", "no_card_fits"), "no_card_fits"),
    (description("issuance-abandoned", "Not now."), "not_now"),
    (description("abandoned", "The wallet has no card that fits."), "no_card_fits"),
    # VS Agent
    (description("abandoned", "e.msg.no-compatible-credentials"), "no_card_fits"),
    (description("abandoned", "No card in the wallet answers this."), "no_card_fits"),
    ({"explain-ltxt": "not now"}, "not_now"), ({"description": "too much"}, "too_much"),
    ({"problem-code": "unknown_sender", "explain": "Who?"}, "unknown_sender"),
    # As before: what no holder has chosen stays as it was written.
    (description("abandoned", "Request declined"), "abandoned"),
    (description("issuance-abandoned", FREE), "issuance-abandoned"),
    (description("message-parse-failure"), "message-parse-failure"),
    (description(FREE), FREE), ({}, "problem"),
    (description("declined"), "abandoned"), (description("Declined"), "abandoned"),
    (description("link_expired"), "abandoned"),
    (description("expired-invitation"), "abandoned"),
])  # fmt: skip
def test_a_report_of_any_agent_has_a_code(members, code):
    ours = ("declined", "link_expired")
    assert reasons.read_problem(report(**members), ours) == code


@pytest.mark.parametrize("problem, words", [
    ("no_card_fits", "The wallet has no card that fits."),
    ("issuance-abandoned", "The other side ended the exchange."),
    ("message-parse-failure", "The other agent could not read the message."),
    ("quota_exceeded", "The other side has no room for more at present."),
    (FREE, reasons.UNKNOWN), ("problem", reasons.UNKNOWN),
])  # fmt: skip
def test_words_are_ours_alone(problem, words):
    assert reasons.in_words(problem) == words


def test_codes_and_sentences_are_read_as_themselves():
    for code, sentence in reasons.REASONS.items():
        assert reasons.find_code(code) == reasons.find_code(sentence) == code
