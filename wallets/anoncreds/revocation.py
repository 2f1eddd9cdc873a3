"""Revocation registries and their status lists."""

from collections.abc import Sequence
from typing import NamedTuple

import anoncreds

from core.errors import Invalid, Unavailable
from wallets.anoncreds.objects import (
    CredentialBody,
    DefinitionBody,
    Opaque,
    RegistryBody,
    StatusListBody,
)
from wallets.anoncreds.refusals import REFUSALS


class RevocationRegistry(NamedTuple):
    """A revocation registry; only `public` and the tails file may leave the wallet.

    public: {"issuerId", "revocDefType", "credDefId", "tag", "value": {"publicKeys",
    "maxCredNum", "tailsLocation", "tailsHash"}}. At first, tailsLocation is
    `tails_path`. Set it to the URL of the file before publishing; nothing is computed
    from it.
    """

    public: RegistryBody
    private: Opaque
    tails_path: str


class RevocationSlot(NamedTuple):
    """An index in a registry, for one credential.

    index: from 1 to maxCredNum - 1, used only once. status_list: any status list of
    the registry on which the index is not revoked; it contains the registry's id.
    """

    registry_public: RegistryBody
    registry_private: Opaque
    status_list: StatusListBody
    index: int  # type: ignore[assignment]  # hides tuple.index()


def is_registry_of(
    registry: RegistryBody, definition_id: str, definition: DefinitionBody
) -> bool:
    """Whether a registry is of this definition, and of its issuer.

    The library does not compare them, and anybody can publish a registry in which
    nothing is revoked.
    """
    is_of_definition = registry.get("credDefId") == definition_id
    return is_of_definition and registry.get("issuerId") == definition["issuerId"]


def create_registry(
    definition_id: str,
    definition_public: DefinitionBody,
    issuer_id: str,
    tag: str,
    size: int,
    tails_directory: str,
) -> RevocationRegistry:
    """Create a registry for size - 1 credentials, and its tails file in the directory.

    The name of the file is its hash (base58 of SHA-256). The file has
    (2 * size + 1) * 128 + 2 bytes and takes about 1.2 ms for each index. Raises
    Invalid("invalid_registry") if the definition does not support revocation or the
    size is below 2, Unavailable("tails_unavailable") if the file cannot be written. A
    definition that cannot be read raises the library's error.
    """
    if size < 2 or not definition_public["value"].get("revocation"):
        message = "The definition cannot have such a registry."
        raise Invalid("invalid_registry", message)
    definition = anoncreds.CredentialDefinition.load(definition_public)
    try:
        public, private = anoncreds.RevocationRegistryDefinition.create(
            definition_id,
            definition,
            issuer_id,
            tag,
            "CL_ACCUM",
            size,
            tails_dir_path=tails_directory,
        )
        return RevocationRegistry(
            public=public.to_dict(),
            private=private.to_dict(),
            tails_path=public.tails_location,
        )
    except REFUSALS:
        raise Unavailable(
            "tails_unavailable", "The tails file cannot be written."
        ) from None


def create_status_list(
    definition_public: DefinitionBody,
    registry_id: str,
    registry_public: RegistryBody,
    registry_private: Opaque,
    issuer_id: str,
    timestamp: int,
) -> StatusListBody:
    """Create the first status list of a registry, with nothing revoked.

    timestamp: Unix seconds. Return {"revRegDefId", "issuerId", "revocationList":
    [0 or 1, …], "currentAccumulator", "timestamp"}. Raises
    Invalid("invalid_status_list").
    """
    try:
        status_list = anoncreds.RevocationStatusList.create(
            anoncreds.CredentialDefinition.load(definition_public),
            registry_id,
            anoncreds.RevocationRegistryDefinition.load(registry_public),
            anoncreds.RevocationRegistryDefinitionPrivate.load(registry_private),
            issuer_id,
            timestamp=timestamp,
        )
        return status_list.to_dict()
    except REFUSALS:
        raise Invalid(
            "invalid_status_list", "The registry cannot have a list."
        ) from None


def update_status_list(
    definition_public: DefinitionBody,
    registry_public: RegistryBody,
    registry_private: Opaque,
    status_list: StatusListBody,
    revoked: Sequence[int],
    timestamp: int,
) -> StatusListBody:
    """Return the next status list, on which the indices in `revoked` are revoked too.

    Without indices it is the same list at a later time. With the same timestamp it is
    to replace the list. Raises Invalid with the code "unknown_index",
    "already_revoked" (also for an index that is given twice) or "timestamp_earlier":
    the library checks none of these. And "invalid_status_list" for what it refuses
    itself, such as a list that cannot be read.
    """
    if timestamp < status_list["timestamp"]:
        message = "A registry's list must not be earlier than the one before."
        raise Invalid("timestamp_earlier", message)
    for index in revoked:
        require_free_index(status_list, index)
    if len(set(revoked)) < len(revoked):
        raise Invalid("already_revoked", "An index is given twice.")
    try:
        loaded = anoncreds.RevocationStatusList.load(status_list)
        updated = loaded.update(
            anoncreds.CredentialDefinition.load(definition_public),
            anoncreds.RevocationRegistryDefinition.load(registry_public),
            anoncreds.RevocationRegistryDefinitionPrivate.load(registry_private),
            None,
            revoked,
            timestamp,
        )
        return updated.to_dict()
    except REFUSALS:
        raise Invalid(
            "invalid_status_list", "The list does not fit the registry."
        ) from None


def revocation_index(credential: CredentialBody) -> int | None:
    """Return the signed index of the credential in its registry, or None."""
    part = credential["signature"].get("r_credential")
    return part["i"] if part else None


def require_free_index(status_list: StatusListBody, index: int) -> None:
    """Raise Invalid "unknown_index" or "already_revoked" if the index is not free.

    The library accepts index 0 in updates, ignores unknown indices, and issues
    credentials on revoked ones.
    """
    if not 0 < index < len(status_list["revocationList"]):
        raise Invalid("unknown_index", f"The registry has no index {index}.")
    if status_list["revocationList"][index]:
        raise Invalid("already_revoked", f"Index {index} of the registry is revoked.")
