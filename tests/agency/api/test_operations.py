"""The texts of operations in YAML match the declarations of the views."""

from itertools import chain

import pytest
from django.core.exceptions import ImproperlyConfigured
from drf_spectacular.generators import SchemaGenerator

from agency.api.openapi import examples
from agency.api.openapi.operation import all_texts, operation, read_texts
from verifications.policy_lab.trial import REASONS


def read_written_texts(folder, text):
    (folder / "pets.yaml").write_text(text)
    return read_texts(folder / "pets.yaml")


def test_each_entry_is_the_text_of_an_operation():
    document = SchemaGenerator().get_schema(request=None, public=True)
    operations = chain(*(path.values() for path in document["paths"].values()))
    assert all_texts().keys() <= {one["operationId"] for one in operations}


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
