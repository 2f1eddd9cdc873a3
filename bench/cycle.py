"""Whole cycles (offer → verified) per second, compared to the cryptography alone.

Two rows: with one range proof, and with a second one for the bound of an attribute
that no definition declares as an integer (docs/verification.md). Both sides of a row
use two threads on the same definition key, in turns, so that load of the machine
affects both.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from bench.product import running
from bench.story import BOUNDED, POLICY, VALUES, Caller
from credentials.ledgers import ledger_of
from credentials.models import CredentialDefinition
from tenants import vault
from verifications.proofs import proof_policy, selection
from verifications.proofs.checks import judge_presentation
from verifications.proofs.request_building import build_request
from wallets import anoncreds

THREADS, CYCLES, ROUNDS = 2, 10, 3
ROWS = {"one range": POLICY, "with the bound": BOUNDED}


def run():
    with running("web") as url:
        callers = [Caller(url).prepare()]
        callers += [Caller.like(callers[0]) for _ in range(THREADS - 1)]
        for name, body in ROWS.items():
            over_http = [partial(caller.cycle, body) for caller in callers]
            compare(name, over_http, [direct(callers[0], body)] * THREADS)


def compare(name, over_http, alone):
    rate(over_http, 1)
    rates = [(rate(over_http, CYCLES), rate(alone, CYCLES)) for _ in range(ROUNDS)]
    http, crypto = (sorted(column)[ROUNDS // 2] for column in zip(*rates, strict=True))
    ratio = sorted(one / other for one, other in rates)[ROUNDS // 2]
    print(name)
    print(f"cycles over HTTP       {http:6.2f} per second")
    print(f"the cryptography alone {crypto:6.2f} per second")
    print(
        f"ratio                  {ratio:6.2f}   (median of {ROUNDS} rounds, "
        f"{THREADS} threads)"
    )


def rate(functions, cycles):
    """Cycles per second if each function runs `cycles` times in its own thread."""
    started = time.perf_counter()
    with ThreadPoolExecutor(len(functions)) as pool:
        done = [
            pool.submit(lambda f=function: [f() for _ in range(cycles)])
            for function in functions
        ]
        for future in done:
            future.result()
    return len(functions) * cycles / (time.perf_counter() - started)


def direct(caller, body):
    """The cryptographic calls of one cycle, with nothing around them."""
    row = CredentialDefinition.objects.select_related("schema", "tenant__network").get(
        definition_id=caller.definition
    )
    registry = ledger_of(row.tenant.network)
    public, schema = (
        registry.definition(row.definition_id),
        registry.schema(row.schema.schema_id),
    )
    private, proof = vault.unseal(row, "private_key"), vault.unseal(row, "key_proof")
    secret = anoncreds.create_link_secret()
    known = Known({row.schema.schema_id: schema}, {row.definition_id: public})
    wanted = proof_policy.normalise(body)

    def cycle():
        offer = anoncreds.create_offer(row.schema.schema_id, row.definition_id, proof)
        asked, metadata = anoncreds.create_request(
            offer, public, secret, public["issuerId"]
        )
        signed = anoncreds.create_credential(public, private, offer, asked, VALUES)
        stored = anoncreds.process_credential(signed, metadata, secret, public)
        proof_request = build_request(wanted, anoncreds.generate_nonce())
        held = held_as_candidate(row, public, schema, stored)
        chosen = selection.auto_select(proof_request, [held])
        answer = selection.create_presentation(
            proof_request, chosen, [held], secret, known
        )
        if not judge_presentation(proof_request, answer, known).is_valid:
            raise RuntimeError("not valid")

    return cycle


def held_as_candidate(row, public, schema, stored):
    return selection.Candidate(
        credential_id="held",
        definition_id=row.definition_id,
        schema_id=row.schema.schema_id,
        issuer_did=public["issuerId"],
        schema_issuer_did=schema["issuerId"],
        schema_name=schema["name"],
        schema_version=schema["version"],
        values=VALUES,
        credential=stored,
    )


class Known:
    """A registry of what is given."""

    def __init__(self, schemas, definitions):
        self.schema, self.definition = schemas.get, definitions.get
