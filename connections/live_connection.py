"""The foreign key to a connection, which is None as soon as it is deleted.

The row of a deleted connection stays until a worker has removed what refers to it.
"""

from typing import Any

from django.db import models
from django.db.models.fields.related_descriptors import ForwardManyToOneDescriptor


class LiveConnectionDescriptor(ForwardManyToOneDescriptor):
    """Reads the related row, but not one that is deleted."""

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        found: Any = super().__get__(instance, cls)
        if instance is None or found is None:
            return found
        return None if found.deleted_at else found


class ConnectionForeignKey(models.ForeignKey[Any, Any]):
    """To a connection, nullable. For migrations it is an ordinary foreign key."""

    forward_related_accessor_class = LiveConnectionDescriptor

    def __init__(self, **options: Any) -> None:
        fixed = {"to": "connections.Connection", "on_delete": models.SET_NULL}
        super().__init__(**(options | fixed | {"null": True}))

    def deconstruct(self) -> Any:
        name, _, *rest = super().deconstruct()
        return name, "django.db.models.ForeignKey", *rest
