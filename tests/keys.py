"""Definitions without new keys: a stored key for as many attributes gets the new names.

The keys of CL signatures do not depend on the names of attributes, only on their number.
"""

import copy

from tests.fixtures import stored
from wallets import anoncreds
from wallets.anoncreds import Definition, common_view

make_new_keys = anoncreds.create_definition
STORED = {3: "degree", 2: "badge"}


def definition_like(schema_id, schema, issuer_id, tag, support_revocation):
    """What `wallets.anoncreds.create_definition` answers, with real keys made before."""
    one = stored(STORED[len(schema["attrNames"])])
    public, proof = copy.deepcopy(one.public), copy.deepcopy(one.key_proof)
    labels = [common_view(name) for name in schema["attrNames"]]
    known = [common_view(name) for name in one.schema["attrNames"]]
    renamed = dict(zip(known, labels, strict=True)) | {"master_secret": "master_secret"}
    primary = public["value"]["primary"]
    primary["r"] = {renamed[label]: value for label, value in primary["r"].items()}
    proof["xr_cap"] = [[renamed[label], value] for label, value in proof["xr_cap"]]
    public |= {"schemaId": schema_id, "issuerId": issuer_id, "tag": tag}
    return Definition(public, one.private, proof)
