"""Make revocation registries and publish them before they are needed."""

import tempfile
import time
from pathlib import Path
from typing import Any

from core.work import transactions
from credentials.ledgers import ledger_with
from credentials.ledgers.base import Ledger
from credentials.models.definition import CredentialDefinition
from credentials.models.publication import Publication
from credentials.models.registry import RevocationRegistry
from credentials.publications import publisher, wait_for_job
from credentials.tails import store_tails, tails_url
from wallets import anoncreds
from wallets.anoncreds.objects import DefinitionBody


def make_registry(
    definition_id: str, public: DefinitionBody, number: int, size: int
) -> anoncreds.RevocationRegistry:
    """Make a registry and store its tails file. Nothing is published yet.

    public: the published definition. number: of this registry in the definition.
    """
    with tempfile.TemporaryDirectory() as folder:
        made = anoncreds.create_registry(
            definition_id, public, public["issuerId"], str(number), size, folder
        )
        value = made.public["value"]
        store_tails(Path(made.tails_path), value["tailsHash"])
    value["tailsLocation"] = tails_url(value["tailsHash"], public["issuerId"])
    return made


def publish_registry(
    ledger: Ledger, definition: DefinitionBody, made: anoncreds.RevocationRegistry
) -> str:
    """Publish a registry with its first status list. Return the id of the registry.

    definition: as published.
    """
    registry_id = ledger.publish_registry(made.public)
    first_list = anoncreds.create_status_list(
        definition,
        registry_id,
        made.public,
        made.private,
        made.public["issuerId"],
        int(time.time()),
    )
    ledger.publish_status_list(first_list)
    return registry_id


@transactions.atomic()
def build_registry(
    definition: CredentialDefinition, public: DefinitionBody, size: int
) -> RevocationRegistry:
    """Make and publish a registry on the local network: about 1.2 ms for each slot.

    public: the published definition. It is not read here, because it may not be
    committed yet: the ledger's cache would keep it even after a rollback.
    """
    ledger = ledger_with(definition.tenant.network, definition.definition_id)
    number = definition.registries.count()
    size = min(size, ledger.max_places or size)
    made = make_registry(definition.definition_id, public, number, size)
    registry_id = publish_registry(ledger, public, made)
    return RevocationRegistry.record_published(definition, registry_id, made)


def build_next_registry(definition: CredentialDefinition, size: int) -> None:
    """Build a registry if the definition needs one. One process builds at a time."""
    started = begin_next_registry(definition, size)
    if started:
        job, is_ours = started
        wait_for_job(job, is_ours)


def begin_next_registry(
    definition: CredentialDefinition, size: int
) -> tuple[Publication, bool] | None:
    """Like build_next_registry(), but on a remote ledger only create the job.

    Returns the job and whether it is leased to this call, or None if there is no job.
    The definition is locked while the registry is made.
    """
    ledger = ledger_with(definition.tenant.network, definition.definition_id)
    public = definition.public_part
    with transactions.atomic():
        # Only one process at a time builds registries of a definition.
        rows = CredentialDefinition.objects.select_for_update(no_key=True)
        rows.get(pk=definition.pk)
        if RevocationRegistry.has_room(definition):
            return None
        if not ledger.is_remote:
            build_registry(definition, public, size)
            return None
        jobs = Publication.objects.filter(
            kind=Publication.Kind.REGISTRY, definition=definition
        )
        if pending := jobs.filter(status=Publication.Status.PENDING).first():
            return pending, False
        number = 1 + jobs.count()  # number 0 was published with the definition
        definition_id = definition.definition_id
        made = make_registry(definition_id, public, number, size)
        job = Publication.create_leased(
            definition.tenant,
            Publication.Kind.REGISTRY,
            subject=f"{public['issuerId']}:4:{definition_id}:CL_ACCUM:{number}",
            payload=made._asdict(),
            definition=definition,
        )
        return job, True


@publisher(Publication.Kind.REGISTRY)
def run_registry_job(job: Publication, payload: dict[str, Any]) -> None:
    made = anoncreds.RevocationRegistry(**payload)
    definition = job.definition
    assert definition is not None, "begin_next_registry() sets it"
    job.record_submission(job.subject)
    registry_id = publish_registry(job.ledger, definition.public_part, made)
    with transactions.atomic():
        RevocationRegistry.record_published(definition, registry_id, made)
        job.complete(registry_id)
