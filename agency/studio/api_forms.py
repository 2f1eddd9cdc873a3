"""Forms whose content the serializers of the API read, with the same errors."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django import forms
from rest_framework import serializers

from agency.studio.curl import Json

Given = Mapping[str, Json | datetime]
# As REST framework nests them.
Errors = str | Sequence["Errors"] | Mapping[str, "Errors"]


def read_parameters(
    form: forms.Form, parameters: type[serializers.Serializer], body: Given
) -> dict[str, Any]:
    """Return what the API reads of a body. Its errors are added to the form.

    A body for a link names its protocol: no request says which one is the default.

    The error of the member `goalCode` stands at the field `goal_code`, or above the
    form if it has no such field.
    """
    read = parameters(data=body)
    if read.is_valid():
        return dict(read.validated_data)
    for member, found in read.errors.items():
        field = re.sub("([A-Z])", r"_\1", member).lower()
        place = field if field in form.fields else None
        form.add_error(place, list(dict.fromkeys(sentences_in(found))))
    return {}


def sentences_in(found: Errors) -> list[str]:
    """The sentences in the errors of a member, however deep."""
    if isinstance(found, str):
        return [str(found)]
    parts = found.values() if isinstance(found, Mapping) else found
    return [sentence for one in parts for sentence in sentences_in(one)]
