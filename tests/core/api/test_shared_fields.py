"""Requests share the fields that read them, so a field keeps nothing of a request."""

import re

import pytest
from rest_framework import serializers

from agency import urls  # noqa: F401  (imports all serializers)
from core.api.serializers import IntegerField, Parameters, SharedFields
from credentials.api.bulk import ErrorsQuery
from credentials.api.serializers import CredentialOfferParameters


def subclasses(kind):
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def inner_fields(field):
    yield field
    if child := getattr(field, "child", None):
        yield from inner_fields(child)


def test_no_default_can_be_changed_by_a_request():
    kinds = {one for one in subclasses(SharedFields) if one.__module__ != __name__}
    assert CredentialOfferParameters in kinds
    for kind in kinds:
        for field in kind().fields.values():
            for inner in inner_fields(field):
                assert not isinstance(inner.default, list | dict | set), (kind, field)


def test_whole_numbers_have_ascii_digits_only():
    kinds = {
        kind
        for kind in subclasses(serializers.Serializer)
        if issubclass(kind, SharedFields) or kind.__name__.endswith("Query")
    }
    assert {ErrorsQuery, CredentialOfferParameters} <= kinds
    for kind in kinds:
        for name, field in kind().fields.items():
            for inner in inner_fields(field):
                if isinstance(inner, serializers.IntegerField):
                    assert isinstance(inner, IntegerField), (kind, name)
    for given, read in ((7, 7), ("7", 7), (" -7 ", -7), ("+7", 7), ("7.0", 7)):
        assert IntegerField().run_validation(given) == read
    for given in ("٣", "1_000", "３", "1__0", "7.٠", "", "--7"):
        with pytest.raises(serializers.ValidationError):
            IntegerField().run_validation(given)


def test_each_sentence_is_ours():
    """Those of REST framework say "this field", and not what to give."""
    for kind in subclasses(SharedFields):
        for field in kind().fields.values():
            for inner in inner_fields(field):
                assert_sentences_are_ours(inner)
    with pytest.raises(serializers.ValidationError, match="Give an object."):
        CredentialOfferParameters(data=[]).is_valid(raise_exception=True)


def assert_sentences_are_ours(field):
    said = {*field.error_messages.values()}
    said |= {getattr(one, "message", "") for one in field.validators}
    theirs = {
        str(sentence)
        for kind in type(field).__mro__
        if kind.__module__.startswith("rest_framework.")
        for sentence in vars(kind).get("default_error_messages", {}).values()
    }
    for one in map(str, said - {None}):
        begins = re.compile("|".join(map(pattern_of, theirs)))
        assert not begins.fullmatch(one), (field, one)


def pattern_of(sentence):
    """What matches a sentence whatever stands in its braces."""
    return ".*".join(map(re.escape, re.split(r"{\w+}", sentence)))


class Inner(Parameters):
    level = IntegerField()


class Outer(Parameters):
    name = serializers.CharField(max_length=3)
    inner = Inner(many=True)


def test_a_refused_request_leaves_nothing_for_the_next_one():
    first, second = Outer(data={"name": "long"}), Outer(data={"inner": [{}]})
    for one in (first, second):
        with pytest.raises(serializers.ValidationError):
            one.is_valid(raise_exception=True)
    assert set(first.errors) == set(second.errors) == {"name", "inner"}
    assert first.errors["inner"] != second.errors["inner"]
    third = Outer(data={"name": "Bob", "inner": [{"level": "7"}]})
    assert third.is_valid()
    assert third.validated_data == {"name": "Bob", "inner": [{"level": 7}]}
    assert third.fields is first.fields
