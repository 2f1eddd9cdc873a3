"""A plugin of ACA-Py: schemas and definitions in a folder, instead of on a ledger.

It is run by ACA-Py's Python. Agents that share the folder (BENCH_REGISTRY) know each
other's objects. Nothing else is measured than in Agency, whose local network is a
table of its database: each agent reads a file once.
"""

import functools
import json
import os
import re
from pathlib import Path

from acapy_agent.anoncreds.base import BaseAnonCredsRegistrar, BaseAnonCredsResolver
from acapy_agent.anoncreds.models.credential_definition import (
    CredDef,
    CredDefResult,
    CredDefState,
    GetCredDefResult,
)
from acapy_agent.anoncreds.models.schema import (
    AnonCredsSchema,
    GetSchemaResult,
    SchemaResult,
    SchemaState,
)
from acapy_agent.anoncreds.models.schema_info import AnonCredsSchemaInfo
from acapy_agent.anoncreds.registry import AnonCredsRegistry

FOLDER = Path(os.environ["BENCH_REGISTRY"])


async def setup(context):
    context.inject(AnonCredsRegistry).register(FolderRegistry())


def write_object(name, value):
    """Write an object, and return its id."""
    (FOLDER / name).write_text(json.dumps(value.serialize()))
    return f"did:bench:{name}"


@functools.cache
def read_object(model, identifier):
    text = (FOLDER / identifier.rpartition(":")[2]).read_text()
    return model.deserialize(json.loads(text))


class FolderRegistry(BaseAnonCredsResolver, BaseAnonCredsRegistrar):
    supported_identifiers_regex = re.compile("^did:bench:")

    async def setup(self, context):
        """Needs nothing."""

    async def register_schema(self, profile, schema, options=None):
        state = SchemaState("finished", write_object("schema", schema), schema)
        return SchemaResult(None, state, {}, {})

    async def get_schema(self, profile, schema_id):
        return GetSchemaResult(
            read_object(AnonCredsSchema, schema_id), schema_id, {}, {}
        )

    async def get_schema_info_by_id(self, profile, schema_id):
        schema = read_object(AnonCredsSchema, schema_id)
        return AnonCredsSchemaInfo(schema.issuer_id, schema.name, schema.version)

    async def register_credential_definition(
        self, profile, schema, credential_definition, options=None
    ):
        identifier = write_object("definition", credential_definition)
        state = CredDefState("finished", identifier, credential_definition)
        return CredDefResult(None, state, {}, {})

    async def get_credential_definition(self, profile, credential_definition_id):
        definition = read_object(CredDef, credential_definition_id)
        return GetCredDefResult(credential_definition_id, definition, {}, {})

    async def _no_revocation(self, *arguments, **options):
        raise NotImplementedError("the bench has no revocation")

    get_revocation_registry_definition = get_revocation_list = _no_revocation
    register_revocation_registry_definition = _no_revocation
    register_revocation_list = update_revocation_list = _no_revocation
