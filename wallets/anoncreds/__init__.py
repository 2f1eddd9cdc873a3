"""AnonCreds with CL signatures: the only package that imports the `anoncreds` library.

All arguments and results are plain JSON: a dict for each object, `str` for link
secrets, nonces and ids. Errors of the library are raised as an `AgencyError` without
the library's own text, because that text may quote attribute values.

This package does not import Django, so that `verifications/proofs` can be used without
it.
"""

from wallets.anoncreds.issuing import (
    INT32,
    LINK_SECRET_LABEL,
    Definition,
    UnusableKey,
    create_credential,
    create_link_secret,
    create_offer,
    create_request,
    encode_value,
    is_encoding_of,
    normalise_name,
    parse_integer,
    process_credential,
    resize_definition,
)
from wallets.anoncreds.proving import (
    SubProof,
    create_presentation,
    create_revocation_state,
    generate_nonce,
    verify_presentation,
)
from wallets.anoncreds.revocation import (
    RevocationRegistry,
    RevocationSlot,
    create_registry,
    create_status_list,
    is_registry_of,
    revocation_index,
    update_status_list,
)

__all__ = [
    "INT32",
    "LINK_SECRET_LABEL",
    "Definition",
    "RevocationRegistry",
    "RevocationSlot",
    "SubProof",
    "UnusableKey",
    "create_credential",
    "create_link_secret",
    "create_offer",
    "create_presentation",
    "create_registry",
    "create_request",
    "create_revocation_state",
    "create_status_list",
    "encode_value",
    "generate_nonce",
    "is_encoding_of",
    "is_registry_of",
    "normalise_name",
    "parse_integer",
    "process_credential",
    "resize_definition",
    "revocation_index",
    "update_status_list",
    "verify_presentation",
]
