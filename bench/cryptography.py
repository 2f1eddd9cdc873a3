"""The cryptographic calls of a cycle, with nothing around them."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from bench.calls import VALUES
from credentials.ledgers import ledger_of
from credentials.models import CredentialDefinition
from tenants import vault
from verifications.proofs import presentation_building, proof_policy, selection
from verifications.proofs.checks import judge_presentation
from verifications.proofs.request_building import build_request
from verifications.proofs.request_reading import ProofRequest
from wallets import anoncreds


class Bare(NamedTuple):
    """rate: cycles per second. cpu: milliseconds of a cycle. median_ms: its time."""

    rate: float
    cpu: float
    median_ms: float


def measure_calls(cycle: Callable[[], None], threads: int, seconds: float) -> Bare:
    """Repeat a cycle in each of some threads."""
    started, cpu = time.monotonic(), time.process_time()

    def repeat_cycle() -> list[float]:
        found = []
        while (begun := time.monotonic()) < started + seconds:
            cycle()
            found.append(time.monotonic() - begun)
        return found

    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(repeat_cycle) for _ in range(threads)]
        by_thread = [future.result() for future in running]
    # By thread: the others go on while the slowest ends.
    rate = sum(len(durations) / sum(durations) for durations in by_thread)
    durations = sorted(sum(by_thread, []))
    used = 1000 * (time.process_time() - cpu) / len(durations)
    return Bare(rate, used, 1000 * durations[len(durations) // 2])


def build_cycle(definition_id: str, body: dict) -> Callable[[], None]:
    """Return a function that makes the calls for this definition and policy."""
    row = CredentialDefinition.objects.select_related("schema", "tenant__network").get(
        definition_id=definition_id
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
        nonce = anoncreds.generate_nonce()
        proof_request = ProofRequest.parse(build_request(wanted, nonce))
        held = held_as_candidate(row, public, schema, stored)
        chosen = selection.auto_select(proof_request.items, [held])
        answer = presentation_building.create_presentation(
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
        definition=public,
        schema=schema,
        values=VALUES,
        credential=stored,
    )


class Known:
    """A registry of what is given."""

    def __init__(self, schemas, definitions):
        self.schema, self.definition = schemas.get, definitions.get
