"""The OpenAPI document has a schema for the body of each event."""

import json

import pytest

from tests.core.api.test_generated import DOCUMENT
from tests.support.openapi import errors_in
from webhooks.events.types import Type
from webhooks.models import Event

pytestmark = pytest.mark.django_db(transaction=True)


def test_every_event_of_the_world_fits_the_schema_of_its_type(world):
    bodies = [json.loads(body) for body in Event.objects.values_list("body", flat=True)]
    for body in bodies:
        webhook = DOCUMENT["webhooks"][body["message_type"]]["post"]
        [content] = webhook["requestBody"]["content"].values()
        assert not errors_in(DOCUMENT, content["schema"], body), body
    assert len({body["message_type"] for body in bodies}) > 12


def test_each_type_is_a_webhook_of_the_document():
    assert DOCUMENT["webhooks"].keys() == {str(one) for one in Type}
