"""Reading JSON from strangers: one exception, whatever they send."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text import bounded_json
from core.text.bounded_json import MAX_DEPTH, BadJSON
from tests.support.texts import CHARACTERS

HOSTILE = [
    "", " ", "{", "[1,]", "NaN", "-Infinity", "[1e400]", "-1e400", str(10**30),
    str(-(10**30)), "9" * 5000, str(2**63 + 1), "[" * 5000, '{"a":' * 5000,
    '"\\u0000"', '{"\\u0000": 1}', '{"a": ["x", {"b": "\\u0000"}]}', '"\\ud800"',
    '{"\\udfff": 1}', '["\\ud83d x"]', "\ufeff{}", "'a'", '"tab\there"', "01",
    '{"a": 1} x', "secret " * 100,
]  # fmt: skip
HONEST = [
    None, True, 0, -1.5, 2**63, -(2**63), "", "Zoë 😀", [], {}, {"a": [1, {"b": None}]},
    1e308,
]  # fmt: skip


def test_hostile_text_is_refused_and_not_repeated(subtests):
    for number, text in enumerate(HOSTILE):
        with subtests.test(number), pytest.raises(BadJSON) as refused:
            bounded_json.loads(text)
        assert len(str(refused.value)) < 100


def test_what_is_not_utf8_is_refused():
    for data in (b"\xff\xfe{}", b'"\xed\xa0\x80"', '{"a": 1}'.encode("utf-16")):
        with pytest.raises(BadJSON, match="UTF-8"):
            bounded_json.loads(data)


def test_honest_values_are_read(subtests):
    for value in HONEST:
        for text in (
            json.dumps(value),
            json.dumps(value, ensure_ascii=False).encode(),
        ):
            with subtests.test(text):
                assert bounded_json.loads(text) == value
    assert bounded_json.loads(b"\xef\xbb\xbf{}") == {}, "a byte order mark is skipped"


def test_the_deepest_that_is_taken_and_one_level_more():
    for opening, inner, closing in (("[", "[]", "]"), ('{"a":', "{}", "}")):
        deepest = opening * (MAX_DEPTH - 1) + inner + closing * (MAX_DEPTH - 1)
        bounded_json.loads(deepest)
        with pytest.raises(BadJSON, match=str(MAX_DEPTH)):
            bounded_json.loads(f"{opening}{deepest}{closing}")


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(BadJSON):
        bounded_json.loads(data)


@given(st.text(CHARACTERS, max_size=300))
def test_any_text_is_read_back_from_its_json_or_refused(text):
    try:
        assert bounded_json.loads(json.dumps(text)) == text
    except BadJSON:
        assert "\x00" in text
