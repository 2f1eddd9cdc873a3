"""What a Contract makes of its fields."""

import json
import uuid
from datetime import UTC, datetime
from types import SimpleNamespace

from rest_framework import serializers

from core.api.serializers import Contract

REX = uuid.UUID("0196f3a0-7a5b-7c1e-8f00-6a1d2c3b4e5f")
BORN = datetime(2026, 1, 31, 8, tzinfo=UTC)


class TagContract(Contract):
    number = serializers.IntegerField()


class DogContract(Contract):
    dogId = serializers.CharField(source="pk")
    ownerName = serializers.CharField(source="owner.name")
    bornAtUtc = serializers.DateTimeField(source="born_at")
    note = serializers.CharField()
    nickname = serializers.CharField(required=False)
    chip = serializers.IntegerField(required=False)
    trust = serializers.IntegerField()
    tags = TagContract(many=True)

    def get_trust(self, dog):
        return self.context["trust"]


class PuppyContract(DogContract):
    litter = serializers.IntegerField()


def dog(**changes):
    owner = SimpleNamespace(name="Alice")
    tags = [SimpleNamespace(number=1), SimpleNamespace(number=2)]
    facts = {
        "owner": owner, "born_at": BORN, "note": "", "nickname": "Rexy", "chip": 7,
        "tags": tags,
    }  # fmt: skip
    return SimpleNamespace(pk=REX, **facts | changes)


def response_of(contract, obj):
    return contract(obj, context={"trust": 0}).data


def test_values_come_from_attributes_and_methods_in_the_order_of_the_fields():
    assert json.dumps(response_of(DogContract, dog())) == json.dumps({
        "dogId": str(REX), "ownerName": "Alice",
        "bornAtUtc": "2026-01-31T08:00:00.000000Z", "note": "", "nickname": "Rexy",
        "chip": 7, "trust": 0, "tags": [{"number": 1}, {"number": 2}],
    })  # fmt: skip


def test_nulls_and_empty_optional_texts_are_left_out():
    members = response_of(DogContract, dog(nickname="", chip=None, born_at=None))
    assert list(members) == ["dogId", "ownerName", "note", "trust", "tags"]


def test_a_subclass_adds_its_fields_behind():
    assert list(response_of(PuppyContract, dog(litter=3)))[-2:] == ["tags", "litter"]
