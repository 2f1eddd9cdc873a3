"""The tables of schemas, definitions, revocation registries and credentials."""

from credentials.ledgers.published import DidEndpoint, PublishedObject, StatusList
from credentials.ledgers.webvh.read_rows import ReadLog, ReadResource
from credentials.ledgers.webvh.rows import WebvhDid, WebvhResource
from credentials.models.bulk import Bulk, BulkRow
from credentials.models.credential import Credential
from credentials.models.definition import CredentialDefinition
from credentials.models.definition_format import DefinitionFormat
from credentials.models.formats import CredentialFormat
from credentials.models.grant import Grant, SpentNonce
from credentials.models.last_document import LastDocument
from credentials.models.mailing import MailDay, Mailing, MailingRow
from credentials.models.name_search import NameDigests, NameKey
from credentials.models.publication import Publication
from credentials.models.registry import RevocationRegistry
from credentials.models.schema import Schema
from credentials.models.token_status_list import TokenStatusList

__all__ = [
    "Bulk",
    "BulkRow",
    "Credential",
    "CredentialDefinition",
    "CredentialFormat",
    "DefinitionFormat",
    "Grant",
    "LastDocument",
    "MailDay",
    "Mailing",
    "MailingRow",
    "NameDigests",
    "NameKey",
    "SpentNonce",
    "TokenStatusList",
    "Publication",
    "DidEndpoint",
    "PublishedObject",
    "ReadLog",
    "ReadResource",
    "RevocationRegistry",
    "Schema",
    "StatusList",
    "WebvhDid",
    "WebvhResource",
]
