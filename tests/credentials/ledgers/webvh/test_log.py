"""Logs of did:webvh: what is taken, what is refused and why."""

import copy
import json
import random
import time

import pytest

from credentials.ledgers.webvh import encoding
from credentials.ledgers.webvh.log import MAX_LOG_BYTES, check_log
from credentials.ledgers.webvh.refusals import Refused
from tests.support import webvh
from tests.support.webvh import to_bytes

VECTORS = webvh.vectors()
DID, LOG = VECTORS["did"], VECTORS["log"]
NOW = time.time()
# Each vector that is not taken, and the rule that it breaks.
REASONS = {
    "one-proof-bad": "key_not_authorized",
    "scid-wrong": "wrong_scid",
    "state-changed": "wrong_scid",
    "entry-hash-wrong": "wrong_version_id",
    "version-skipped": "wrong_version_id",
    "not-authorized": "key_not_authorized",
    "next-key-not-committed": "key_not_announced",
    "rotation-omits-keys": "prerotation_omitted",
    "proof-empty": "no_proof",
    "proof-empty-first": "no_proof",
    "proof-missing": "members_of_entry",
    "proof-forged": "wrong_proof",
    "time-not-later": "time_not_later",
    "time-in-future": "time_in_future",
    "moved": "document_of_another_did",
    "parameter-unknown": "unknown_parameter",
    "method-unknown": "unknown_method",
    "member-unknown": "members_of_entry",
    "member-twice": "line_is_no_json",
    "two-of-one-number": "wrong_version_id",
    "next-hashes-omitted": "prerotation_omitted",
    "purpose-authentication": "wrong_proof",
    "blank-line": "line_is_no_json",
    "after-deactivation": "entry_after_deactivation",
}


def refusal_of(did, data, known=None):
    with pytest.raises(Refused) as refused:
        check_log(did, data, NOW, known)
    return refused.value.code, refused.value.reason


@pytest.mark.parametrize("case", VECTORS["logs"], ids=lambda case: case["name"])
def test_a_log_is_judged_as_the_vector_says(case):
    data = case["text"].encode()
    if case["verdict"] == "refused":
        reason = REASONS[case["name"]]
        assert refusal_of(case["did"], data) == ("did_log_refused", reason)
        return
    checked = check_log(case["did"], data, NOW)
    assert checked.is_deactivated == (case["verdict"] == "deactivated")
    assert checked.document["id"] == case["did"]


def test_what_credo_writes_is_taken():
    made = webvh.made_by_credo()
    checked = check_log(made["did"], to_bytes(made["log"]), NOW)
    assert checked.document == made["log"][-1]["state"]


def test_a_log_of_another_did_is_refused():
    other = VECTORS["strangersDid"]
    assert refusal_of(other, to_bytes(LOG)) == ("did_log_refused", "wrong_scid")


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"", "number_of_entries"),
        (b"\n", "line_is_no_json"),
        (b" " * (MAX_LOG_BYTES + 1), "log_too_long"),
        (b"{}\n" * 10_000, "number_of_entries"),
        (b"[" * 100_000, "line_is_no_json"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "line_is_no_json"),
        (b"\xef\xbb\xbf" + to_bytes(LOG), "line_is_no_json"),
        (b"\xff", "line_is_no_json"),
        (b"null", "members_of_entry"),
    ],
)
def test_what_is_no_log_is_refused(data, reason):
    assert refusal_of(DID, data) == ("did_log_refused", reason)


@pytest.mark.parametrize(
    "parameters, reason",
    [
        ({"witness": {"threshold": 1, "witnesses": []}}, "witnesses_not_supported"),
        ({"updateKeys": [7]}, "unknown_parameter"),
        ({"ttl": True}, "unknown_parameter"),
        ({"ttl": 1.5}, "unknown_parameter"),
        ({"deactivated": "true"}, "unknown_parameter"),
        ({"method": None}, "unknown_parameter"),
    ],
)
def test_a_parameter_of_another_type_is_refused(parameters, reason):
    first = copy.deepcopy(LOG[0])
    first["parameters"] |= parameters
    assert refusal_of(DID, to_bytes([first])) == ("did_log_refused", reason)


@pytest.mark.parametrize(
    "moment", ["2026-02-30T00:00:00Z", "2026-01-05 09:00:00Z", "now", 7, "٢" * 4]
)
def test_a_time_that_is_none_is_refused(moment):
    entry = webvh.next_entry({"versionTime": moment})
    assert refusal_of(DID, to_bytes([*LOG, entry])) == ("did_log_refused", "wrong_time")


def test_of_a_known_log_only_new_entries_are_checked(monkeypatch):
    known = check_log(DID, to_bytes(LOG), NOW)
    longer = to_bytes([*LOG, webvh.next_entry({})])
    whole = check_log(DID, longer, NOW)
    proven = []
    is_proven = encoding.is_proven
    monkeypatch.setattr(
        encoding,
        "is_proven",
        lambda entry, *rest: proven.append(entry) or is_proven(entry, *rest),
    )
    assert check_log(DID, longer, NOW, known) == whole
    assert [entry["versionId"] for entry in proven] == [whole.version_id]
    assert check_log(DID, longer, NOW, whole) == whole
    assert len(proven) == 1


def test_a_new_entry_of_a_known_log_must_be_right():
    known = check_log(DID, to_bytes(LOG), NOW)
    wrong = webvh.next_entry({}) | {"versionTime": "2026-01-05T09:00:03Z"}
    refused = refusal_of(DID, to_bytes([*LOG, wrong]), known)
    assert refused == ("did_log_refused", "wrong_version_id")


def test_a_log_that_got_shorter_or_changed_is_a_fork():
    known = check_log(DID, to_bytes([*LOG, webvh.next_entry({})]), NOW)
    other = to_bytes([*LOG, webvh.next_entry({"versionTime": "2026-01-05T09:00:09Z"})])
    assert check_log(DID, other, NOW).versions == known.versions
    forked = ("did_log_forked", "log_forked")
    assert refusal_of(DID, to_bytes(LOG), known) == forked
    assert refusal_of(DID, other, known) == forked


def test_the_same_entries_in_other_bytes_are_the_same_log():
    known = check_log(DID, to_bytes(LOG), NOW)
    spaced = b"".join(json.dumps(entry).encode() + b"\n" for entry in LOG)
    assert spaced != to_bytes(LOG)
    assert check_log(DID, spaced, NOW, known).version_id == known.version_id
    cut = to_bytes(LOG).removesuffix(b"\n")
    assert check_log(DID, cut, NOW, known).version_id == known.version_id


@pytest.mark.slow
def test_of_ten_thousand_changed_logs_none_is_taken():
    chance = random.Random(42)
    for _ in range(10_000):
        changed = copy.deepcopy(LOG)
        webvh.change_somewhere(changed, chance)
        if to_bytes(changed) == to_bytes(LOG[: len(changed)]):
            continue  # the older log, which is right
        with pytest.raises(Refused):
            check_log(DID, to_bytes(changed), NOW)
