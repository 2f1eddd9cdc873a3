"""Publish DIDs, schemas and definitions.

On the local network create_…() publishes, in the caller's transaction. A remote ledger
is written to outside of any transaction: prepare_…() stores a job, runs it (see
publications.py) and returns the published row, which create_…() then returns.

An attempt at a job, run_…_job(), may stop anywhere and is made again. Before each
write it calls record_submission(), which renews the lease; the published rows and
complete() are one transaction.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple, NotRequired, TypedDict

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q

from core.database import clock
from core.errors import Conflict, Invalid, Unavailable
from core.work import transactions
from core.work.leases import work_on
from core.work.waiting import seconds_left
from credentials import definition_rates
from credentials.ledgers import ledger_of, ledger_with
from credentials.ledgers.base import (
    Ledger,
    default_tags,
    schema_exists,
    tag_taken,
)
from credentials.models.card_display import Display, check_display
from credentials.models.definition import (
    Claims,
    CredentialDefinition,
    check_recipient_attribute,
)
from credentials.models.definition_format import (
    DefinitionFormat,
    FormatOptions,
    check_options,
)
from credentials.models.publication import Publication, request_digest
from credentials.models.registry import RevocationRegistry
from credentials.models.schema import Schema, build_schema_body
from credentials.publications import (
    publish,
    publisher,
    retry_now,
    run_job,
    wait_for_job,
    waiting_deadline,
)
from credentials.registries import build_registry, make_registry, publish_registry
from tenants import idempotency, quotas
from tenants.models import Notes, Tenant
from wallets import anoncreds, key_pool
from wallets.anoncreds.objects import SchemaBody
from wallets.key_queue import WAIT_SECONDS
from wallets.models import Wallet

Kind = Publication.Kind


class DefinitionParameters(NamedTuple):
    """The definition that prepare_definition() and create_definition() make.

    schema_body: `{"issuerId", "name", "version", "attrNames"}`, of this tenant or of
    anybody else; only one of this tenant is published too. tag: None for the first
    free one of default_tags(). claims: see CredentialDefinition. by_original_client: for
    the limit on definitions in a minute. is_anoncreds: whether it is published. sd_jwt:
    to issue it as SD-JWT VC. display: how its cards look, which is not published.
    twin_of: see CredentialDefinition; then the schema is that of the did:webvh.
    recipient_attribute: see CredentialDefinition.
    """

    tenant: Tenant
    schema_body: SchemaBody
    schema_id: str
    tag: str | None = None
    supports_revocation: bool = False
    claims: Claims | None = None
    by_original_client: bool = False
    is_anoncreds: bool = True
    sd_jwt: FormatOptions | None = None
    display: Display | None = None
    twin_of: str = ""
    recipient_attribute: str = ""

    @property
    def ledger(self) -> Ledger:
        return ledger_with(self.tenant.network, self.twin_of and self.schema_id)

    @property
    def issuer_did(self) -> str:
        if self.twin_of:
            return self.schema_body["issuerId"]
        return Wallet.of_organization(self.tenant).issuer_did


class DefinitionPayload(TypedDict):
    """What the job of a definition needs, and has made so far."""

    schema: SchemaBody
    schema_id: str
    revocation: bool
    claims: NotRequired[Claims]
    recipient_attribute: NotRequired[str]
    issuer: NotRequired[str]
    tag: NotRequired[str]
    key: NotRequired[dict[str, Any]]  # of anoncreds.Definition
    registry: NotRequired[dict[str, Any]]  # the first one


Prepared = CredentialDefinition | key_pool.ReservedKey | None


def enqueue_did(tenant: Tenant, did: str, verkey: str) -> None:
    """Publish a DID on a remote ledger once the caller's transaction has committed.

    If the ledger does not respond then, a worker retries. 409 `did_taken` if another
    organization has the DID.
    """
    try:
        job = Publication.create_leased(tenant, Kind.DID, did, {"verkey": verkey})
    except IntegrityError:
        raise Conflict(
            "did_taken", f"The DID {did} is on the network already."
        ) from None
    transaction.on_commit(lambda: work_on(job, publish), robust=True)


@publisher(Kind.DID)
def run_did_job(job: Publication, payload: dict[str, str]) -> None:
    job.record_submission(job.subject)
    job.ledger.publish_did(job.subject, payload["verkey"])
    job.complete(job.subject)


@transactions.atomic()
def publish_endpoint(tenant: Tenant, endpoint: str) -> None:
    """Publish the endpoint of an organization's DID, or publish it again.

    On the local network at once. On a remote ledger a job does it as soon as this
    transaction has committed; if the ledger does not respond then, a worker goes on. A
    pending job for the same endpoint is only made due; one for another endpoint is
    replaced. 404 if the organization was deleted meanwhile.
    """
    wallet = Wallet.of_organization(tenant)
    wallet.lock_or_404()  # one call at a time replaces the job
    jobs = Publication.not_refused(Kind.ENDPOINT, subject=wallet.issuer_did)
    pending = jobs.filter(status=Publication.Status.PENDING).first()
    if pending and pending.wanted == request_digest(endpoint):
        with suppress(Conflict):  # a worker has just published it
            retry_now(pending)
        return
    jobs.delete()  # of an earlier endpoint; ended ones too, as there is one of each
    job = Publication.create_leased(
        tenant,
        Kind.ENDPOINT,
        wallet.issuer_did,
        {"endpoint": endpoint},
        request=endpoint,
    )
    if job.ledger.is_remote:
        transaction.on_commit(lambda: work_on(job, publish), robust=True)
    else:
        run_job(job)


@publisher(Kind.ENDPOINT)
def run_endpoint_job(job: Publication, payload: dict[str, str]) -> None:
    job.record_submission(payload["endpoint"])
    job.ledger.publish_endpoint(job.subject, payload["endpoint"])
    job.complete(payload["endpoint"])


def prepare_schema(
    tenant: Tenant, name: str, version: str, attribute_names: list[str]
) -> Schema | None:
    """Publish a schema on a remote ledger. Call it outside of any transaction.

    Returns the schema for create_schema(), or None on the local network. 409
    `schema_exists` if it exists with other attributes. 503 `ledger_unavailable` if the
    ledger does not respond: publishing continues in the background.
    """
    ledger = ledger_of(tenant.network)
    if not ledger.is_remote:
        return None
    body = build_schema_body(tenant, name, version, attribute_names)
    schema_id = ledger.schema_id_of(body)
    sorted_names = sorted(body["attrNames"])
    rows = Schema.objects.filter(tenant=tenant, schema_id=schema_id)
    if not rows.exists():
        try:
            job = Publication.create_leased(
                tenant, Kind.SCHEMA, schema_id, body, request=sorted_names
            )
            is_ours = True
        except IntegrityError:  # an earlier call has begun it
            job = Publication.not_refused(Kind.SCHEMA).get(subject=schema_id)
            is_ours = False
        if job.wanted != request_digest(sorted_names):
            raise schema_exists(schema_id)
        wait_for_job(job, is_ours)
    schema = rows.get()
    if sorted(schema.attribute_names) != sorted_names:
        raise schema_exists(schema_id)
    return schema


@transactions.atomic()
def create_schema(
    tenant: Tenant,
    name: str,
    version: str,
    attribute_names: list[str],
    prepared: Schema | None = None,
) -> Schema:
    """Publish a schema under the tenant's DID, or return the same existing one."""
    if prepared:
        return prepared
    body = build_schema_body(tenant, name, version, attribute_names)
    schema_id = ledger_of(tenant.network).publish_schema(body)
    return Schema.record_published(tenant, schema_id, body)


@publisher(Kind.SCHEMA)
def run_schema_job(job: Publication, body: SchemaBody) -> None:
    job.record_submission(job.subject)
    schema_id = job.ledger.publish_schema(body)
    with transactions.atomic():
        job.complete(schema_id)
        Schema.record_published(job.tenant, schema_id, body)


def prepare_definition(wanted: DefinitionParameters) -> Prepared:
    """Prepare create_definition(). Call it outside of any transaction.

    Returns a key reserved in the pool or, on a remote ledger, the published
    definition; None if nothing is to be published. 400 `invalid_request` for claims
    about attributes that the schema does not have, and as check_options();
    `invalid_definition`; 409 `tag_taken`, `schema_exists` and `quota_exceeded`, 429
    `too_many_definitions`, 503 `key_not_ready`. 503 `ledger_unavailable` if the ledger
    does not respond: publishing continues in the background, and the next equal call
    gets the result. What a ledger refuses has its
    own code. The reserved key must be given back at the end, used or not.
    """
    attribute_names = wanted.schema_body["attrNames"]
    check_claims(wanted.claims or {}, attribute_names)
    check_display(wanted.display or {}, attribute_names, wanted.tenant.pk)
    check_recipient_attribute(wanted.recipient_attribute, attribute_names)
    if wanted.sd_jwt:
        check_options(wanted.sd_jwt, attribute_names, wanted.claims or {})
    if not wanted.is_anoncreds:
        quotas.require_room(quotas.DEFINITIONS, wanted.tenant)
        return None
    did, ledger = wanted.issuer_did, wanted.ledger
    if ledger.is_remote:
        return _publish_remotely(wanted)
    quotas.require_room(quotas.DEFINITIONS, wanted.tenant)
    definition_rates.require_rate(wanted.tenant, wanted.by_original_client)
    # Checked before a key is made. Another call may still take the tag meanwhile.
    known = ledger.schema(wanted.schema_id)
    if known and sorted(known["attrNames"]) != sorted(wanted.schema_body["attrNames"]):
        raise schema_exists(wanted.schema_id)
    if wanted.tag and ledger.has_tag(did, wanted.schema_id, wanted.tag):
        raise tag_taken(wanted.tag)
    return _reserve_key(wanted, did, WAIT_SECONDS)


def _reserve_key(
    wanted: DefinitionParameters, did: str, seconds: float
) -> key_pool.ReservedKey:
    return key_pool.reserve_key(
        wanted.schema_id,
        wanted.schema_body,
        did,
        wanted.tag or "default",
        wanted.supports_revocation,
        organization=wanted.tenant.pk,
        seconds=seconds,
    )


@contextmanager
def preparing_definition(
    wanted: DefinitionParameters,
) -> Iterator[Callable[[], Prepared]]:
    """Yield a function that calls prepare_definition(), with its errors.

    It is a function because perform() calls it only if an Idempotency-Key is new. The
    block calls create_definition() with its result. A reserved key that was not used
    goes back to the pool. Outside of transactions.
    """
    with ExitStack() as undo:

        def prepare() -> Prepared:
            prepared = prepare_definition(wanted)
            if isinstance(prepared, key_pool.ReservedKey):
                undo.callback(prepared.give_back)
            return prepared

        yield prepare


@transactions.atomic()
def create_definition(
    wanted: DefinitionParameters,
    prepared: Prepared,
    notes: Notes | None = None,
) -> CredentialDefinition:
    """Publish a definition with the key that prepare_definition() reserved.

    prepared: its result. On a remote ledger that is the definition, published already.
    None for a definition without AnonCreds, of which only rows are stored.
    On the local network, in one transaction that locks the issuer's writes, with the first
    registry, about 1.2 ms for each of its slots, and with the schema if it is of the
    same issuer. 409 `tag_taken`; `schema_exists` with other attributes. 503
    `organization_frozen` if the organization has been frozen since the request began,
    as while it waited for the key.
    """
    if isinstance(prepared, CredentialDefinition):
        definition = prepared
        if notes:
            definition.change_notes(notes)
            definition.refresh_from_db()
    elif prepared is None:
        definition = CredentialDefinition.record_local(
            wanted.tenant,
            wanted.schema_id,
            wanted.schema_body,
            wanted.supports_revocation,
            wanted.claims,
            notes,
            wanted.recipient_attribute,
        )
    else:
        definition = _publish_locally(wanted, prepared, notes)
    # A repeated call on a remote ledger finds the definition with its format.
    if wanted.sd_jwt and not definition.sd_jwt:
        DefinitionFormat.add(definition, wanted.sd_jwt)
    if wanted.display is not None:
        definition.change_display(wanted.display)
    return definition


def _publish_locally(
    wanted: DefinitionParameters, prepared: key_pool.ReservedKey, notes: Notes | None
) -> CredentialDefinition:
    prepared.use()
    made = prepared.definition
    wanted.tenant.require_still_thawed()
    ledger = wanted.ledger
    if wanted.schema_body["issuerId"] == made.public["issuerId"]:
        ledger.publish_schema(wanted.schema_body)
    # Also writes the tag that it has chosen into made.public.
    definition_id = ledger.publish_definition(made.public, wanted.tag)
    definition = CredentialDefinition.record_published(
        wanted.tenant,
        wanted.schema_body,
        made,
        definition_id,
        wanted.claims,
        notes,
        wanted.twin_of,
        wanted.recipient_attribute,
    )
    if definition.supports_revocation:
        size = settings.REVOCATION_FIRST_REGISTRY_SIZE
        build_registry(definition, made.public, size)
    return definition


def check_claims(claims: Claims, attribute_names: list[str]) -> None:
    """400 unless each claim names an attribute, as the schema spells it."""
    unknown = [name for name in claims if name not in attribute_names]
    if unknown:
        sentence = (
            f"The schema has no such attribute; it has {', '.join(attribute_names)}."
        )
        errors = {f"claims.{name}": [sentence] for name in unknown}
        message = f"claims: {', '.join(unknown)}: {sentence}"
        raise Invalid("invalid_request", message, errors)


def _publish_remotely(wanted: DefinitionParameters) -> CredentialDefinition:
    """Get the result of an earlier equal request, or publish by a new job.

    Equal requests have the same schema id, tag, claims and attribute that names the
    person, the same attributes in any order, and both or neither support revocation.
    """
    payload: DefinitionPayload = {
        "schema": wanted.schema_body,
        "schema_id": wanted.schema_id,
        "revocation": wanted.supports_revocation,
    }
    if wanted.claims:
        payload["claims"] = wanted.claims
    if wanted.recipient_attribute:
        payload["recipient_attribute"] = wanted.recipient_attribute
    attribute_names = wanted.schema_body["attrNames"]
    request = [{**payload, "schema": sorted(attribute_names)}, wanted.tag]
    if job := claim_unclaimed_result(wanted.tenant, request):
        published = wait_for_job(job, is_ours=False)
    else:
        quotas.require_room(quotas.DEFINITIONS, wanted.tenant)
        definition_rates.require_rate(wanted.tenant, wanted.by_original_client)
        job = _create_definition_job(wanted, payload, request)
        published = wait_for_job(job, is_ours=True)
    assert published.definition is not None, "complete() set it"
    return published.definition


def claim_unclaimed_result(tenant: Tenant, request: Any) -> Publication | None:
    """Take over the job of an equal request whose call ended without the result.

    A call with the same Idempotency-Key has ended, even if its process was killed; any
    other has at `attended_until`. None if there is no such job.
    """
    now = clock.now()
    ended = Q(attended_until__lt=now)
    if key := idempotency.current_key():
        # Later it may be the key of something else.
        known_since = now - idempotency.RETENTION
        ended |= Q(idempotency_key=key, created_at__gt=known_since)
    jobs = Publication.not_refused(
        Kind.DEFINITION, tenant=tenant, wanted=request_digest(request)
    )
    jobs = jobs.filter(Q(definition=None) | Q(definition__deleted_at=None))
    for job in jobs.filter(ended).order_by("pk"):
        # A guarded update: only one of two equal calls gets the job.
        rows = Publication.objects.filter(ended, pk=job.pk)
        if rows.update(attended_until=waiting_deadline()):
            return job
    return None


def _create_definition_job(
    wanted: DefinitionParameters, payload: DefinitionPayload, request: Any
) -> Publication:
    """Create a job with a new key. From then on its primes are used, whatever happens.

    The wait for the key counts as a wait for the ledger. 503 `key_not_ready`.
    """
    did = Wallet.of_organization(wanted.tenant).issuer_did
    reserved = _reserve_key(wanted, did, seconds_left(WAIT_SECONDS))
    try:
        return definition_job(
            wanted.tenant, {**payload, "issuer": did}, wanted.tag, request, reserved
        )
    finally:
        reserved.give_back()


def definition_job(
    tenant: Tenant,
    payload: DefinitionPayload,
    tag: str | None,
    request: Any,
    reserved: key_pool.ReservedKey,
) -> Publication:
    """Create a job with a free tag: the given one or else the first of the defaults.

    409 `tag_taken`. While the ledger does not respond, only the jobs here are checked
    for the tag; the ledger decides when the definition is published.
    """
    schema_id, did = payload["schema_id"], payload["issuer"]
    ledger = ledger_of(tenant.network)
    deadline = waiting_deadline()
    for candidate in [tag] if tag else default_tags():
        subject = f"{did}:3:CL:{schema_id}:{candidate}"
        jobs = Publication.not_refused(Kind.DEFINITION)
        if jobs.filter(subject=subject).exists():
            continue
        with suppress(Unavailable):
            if ledger.has_tag(did, schema_id, candidate):
                continue
        made = reserved.definition
        made.public["tag"] = candidate
        try:
            with transactions.atomic():
                reserved.use()
                return Publication.create_leased(
                    tenant,
                    Kind.DEFINITION,
                    subject,
                    {**payload, "tag": candidate, "key": made._asdict()},
                    request,
                    attended_until=deadline,
                    idempotency_key=idempotency.current_key(),
                )
        except IntegrityError:  # another call has just taken the tag
            continue
    raise tag_taken(tag)


@publisher(Kind.DEFINITION)
def run_definition_job(job: Publication, payload: DefinitionPayload) -> None:
    schema_body = payload["schema"]
    made = _definition_key(job, payload)
    if schema_body["issuerId"] == payload["issuer"]:
        job.record_submission(payload["schema_id"])
        job.ledger.publish_schema(schema_body)
    job.record_submission(job.subject)
    definition_id = job.ledger.publish_definition(made.public, payload["tag"])
    registry = None
    if payload["revocation"]:
        # The first registry is made once, and used in each attempt.
        if "registry" not in payload:
            size = settings.REVOCATION_FIRST_REGISTRY_SIZE
            first = make_registry(definition_id, made.public, 0, size)
            payload["registry"] = first._asdict()
            job.save_progress(payload)
        job.record_submission(f"{definition_id}, first registry")
        registry = anoncreds.RevocationRegistry(**payload["registry"])
        registry_id = publish_registry(job.ledger, made.public, registry)
    with transactions.atomic():
        definition = CredentialDefinition.record_published(
            job.tenant,
            schema_body,
            made,
            definition_id,
            payload.get("claims"),
            recipient_attribute=payload.get("recipient_attribute", ""),
        )
        if registry:
            RevocationRegistry.record_published(definition, registry_id, registry)
        job.complete(definition_id, definition=definition)


def _definition_key(
    job: Publication, payload: DefinitionPayload
) -> anoncreds.Definition:
    """The key of the definition, the same in each attempt.

    Jobs of 0.1.0 begin without one. 503 `key_not_ready` if it is not their turn yet: a
    later attempt gets one.
    """
    if "key" not in payload:
        reserved = key_pool.reserve_key(
            payload["schema_id"],
            payload["schema"],
            payload["issuer"],
            payload["tag"],
            payload["revocation"],
            organization=job.tenant.pk,
            seconds=0,
        )
        payload["key"] = reserved.definition._asdict()
        try:
            with transactions.atomic():
                reserved.use()
                job.save_progress(payload)
        finally:
            reserved.give_back()
    return anoncreds.Definition(**payload["key"])
