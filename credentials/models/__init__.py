"""The tables of schemas, definitions, revocation registries and credentials."""

from credentials.models.credential import Credential
from credentials.models.definition import CredentialDefinition
from credentials.models.publication import Publication
from credentials.models.published import PublishedObject, StatusList
from credentials.models.registry import RevocationRegistry
from credentials.models.schema import Schema

__all__ = [
    "Credential",
    "CredentialDefinition",
    "Publication",
    "PublishedObject",
    "RevocationRegistry",
    "Schema",
    "StatusList",
]
