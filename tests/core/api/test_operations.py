"""The texts of operations in YAML match the declarations of the views."""

import re
from itertools import chain

import pytest
from django.core.exceptions import ImproperlyConfigured
from drf_spectacular.generators import SchemaGenerator

from core.api.openapi import examples
from core.api.openapi.operation import all_texts, operation, read_texts
from tests.support.openapi import errors_in, operations
from verifications.policy_lab.trial import REASONS

# A form is built of the examples of its fields; other forms of a file are texts.
MADE_BY_THE_PAGE = {"multipart/form-data", "text/csv", "application/x-ndjson"}


def read_written_texts(folder, text):
    (folder / "pets.yaml").write_text(text)
    return read_texts(folder / "pets.yaml")


# What a description is about.
NOUNS = re.compile(
    "wallet|connection|invitation|message|text|credential|definition|schema|offer|"
    "proof|polic|verification|webhook|event|kiosk|organization|network|holder|bulk|"
    "picture|ledger|key|call|link|ping|server|process|database|account|region"
)


@pytest.fixture(scope="module")
def document():
    return SchemaGenerator().get_schema(request=None, public=True)


def test_each_entry_is_the_text_of_an_operation(document):
    ids = {one["operationId"] for *_, one in operations(document)}
    assert all_texts().keys() == ids


def test_each_operation_says_what_it_is_about():
    for name, texts in all_texts().items():
        assert len(texts.description or "") > 20, name
        assert NOUNS.search(texts.description.lower()), name


def test_each_body_and_answer_has_examples_that_fit_its_schema(document):
    for method, path, one in operations(document):
        bodies = [one.get("requestBody", {}), one["responses"]["200"]]
        for media_type, content in chain(
            *(one.get("content", {}).items() for one in bodies)
        ):
            if media_type in MADE_BY_THE_PAGE:
                continue
            assert content.get("examples"), f"{method} {path}"
            for example in content["examples"].values():
                found = errors_in(document, content["schema"], example["value"])
                assert not found, f"{method} {path}: {found}"


def test_a_form_and_json_are_told_apart_by_their_schemas(document):
    told_apart = 0
    for *_, one in operations(document):
        content = one.get("requestBody", {}).get("content", {}).values()
        names = [shape["schema"].get("$ref") for shape in content]
        if len(content) > 1 and all(names):
            assert len(set(names)) == len(names), one["operationId"]
            told_apart += 1
    assert told_apart


def test_an_operation_without_texts_stops_the_start():
    with pytest.raises(ImproperlyConfigured, match="no texts of createPet"):
        operation("createPet", None)


def test_examples_hold_the_ids_of_the_demo(tmp_path):
    text = "Pets: {readPet: {summary: Read, response: {A pet: {id: !id WALLET}}}}"
    [example] = read_written_texts(tmp_path, text)["readPet"].examples
    assert example.value == {"id": examples.WALLET} and example.response_only


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("Pets: {readPet: {summary: Read, sumary: Read}}", "sumary"),
        ("Pets: {readPet: {description: One pet}}", "summary"),
        ("Pets: {readPet: {summary: Read, response: {A: !id PET}}}", "PET"),
        ("Pets:\n  a: {summary: Read}\n  a: {summary: Read}", "twice"),
        ("Pets: {a: {summary: Read}}\nDogs: {a: {summary: Read}}", "two tags"),
    ],
)
def test_a_mistake_in_a_file_stops_the_start(tmp_path, text, complaint):
    with pytest.raises(ImproperlyConfigured, match=complaint):
        read_written_texts(tmp_path, text)


def test_the_example_of_a_trial_says_what_a_trial_says():
    answer = all_texts()["tryVerificationPolicy"].response["What would happen"]
    refusal = answer["items"][1]["credentials"][1]
    assert refusal["message"] == REASONS[refusal["code"]]
