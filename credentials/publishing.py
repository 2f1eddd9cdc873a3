"""What is published on a remote ledger, kind by kind; publications.py says how."""

from contextlib import suppress
from itertools import count

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from agency.core.errors import Conflict, Unavailable
from credentials import ledgers, models, publications, revocation
from credentials.ledgers.base import schema_exists, schema_id_of, tag_taken
from credentials.publications import Publication, attend, digest, patience
from wallets import anoncreds, key_pool

Kind = Publication.Kind


def did(tenant, did, verkey):
    """Publishes a DID once the caller's transaction has committed, or when the ledger takes it.

    409 `did_taken` if another organization has it.
    """
    try:
        job = Publication.prepare(tenant, Kind.DID, did, {"verkey": verkey})
    except IntegrityError:
        raise Conflict(
            "did_taken", f"The DID {did} is on the network already."
        ) from None
    transaction.on_commit(lambda: publications.attempt(job), robust=True)


@publications.work(Kind.DID)
def publish_did(job, material):
    job.submits(job.subject)
    job.registry.publish_did(job.subject, material["verkey"])
    job.publishes(job.subject)


def schema(tenant, body):
    """The Schema, published. 409 `schema_exists`, 503 `ledger_unavailable`: it goes on by itself.

    body: `{"issuerId", "name", "version", "attrNames"}`.
    """
    schema_id, names = schema_id_of(body), sorted(body["attrNames"])
    rows = models.Schema.objects.filter(tenant=tenant, schema_id=schema_id)
    if not rows.exists():
        job, is_ours = schema_job(tenant, schema_id, body, names)
        if job.wanted != digest(names):
            raise schema_exists(schema_id)
        attend(job, is_ours)
    known = rows.get()
    if sorted(known.attribute_names) != names:
        raise schema_exists(schema_id)
    return known


def schema_job(tenant, schema_id, body, names):
    """The job of this schema, and whether it is this call's."""
    try:
        return Publication.prepare(tenant, Kind.SCHEMA, schema_id, body, names), True
    except IntegrityError:
        return Publication.live(Kind.SCHEMA).get(subject=schema_id), False


@publications.work(Kind.SCHEMA)
def publish_schema(job, body):
    job.submits(job.subject)
    schema_id = job.registry.publish_schema(body)
    with transaction.atomic():
        job.publishes(schema_id)
        models.Schema.noted(job.tenant, schema_id, body)


def definition(tenant, schema, schema_id, tag, supports_revocation, claims=None):
    """The CredentialDefinition, published with its schema and its first registry.

    409 `tag_taken`, 503 `ledger_unavailable`: it goes on by itself, the next equal call finds it.
    """
    material = {
        "schema": schema,
        "schema_id": schema_id,
        "revocation": supports_revocation,
    }
    material |= {"claims": claims} if claims else {}
    wanted = [material | {"schema": sorted(schema["attrNames"])}, tag]
    job = unanswered(tenant, wanted)
    if job:
        return attend(job, False).definition
    return attend(definition_job(tenant, material, tag, wanted), True).definition


def unanswered(tenant, wanted):
    """The job of an equal call that ended without the result; now it is this call's."""
    now = timezone.now()
    jobs = Publication.live(Kind.DEFINITION, tenant=tenant, wanted=digest(wanted))
    jobs = jobs.filter(Q(definition=None) | Q(definition__deleted_at=None))
    for job in jobs.filter(attended_until__lt=now).order_by("pk"):
        rows = Publication.objects.filter(pk=job.pk, attended_until__lt=now)
        if rows.update(attended_until=now + patience()):
            return job
    return None


def definition_job(tenant, material, tag, wanted):
    """A new job, which has its tag for itself: the given one or the first that is free.

    While the ledger is away, free means here: it is judged again when it is published.
    """
    schema_id, issuer = material["schema_id"], models.organization(tenant).did
    registry, until = ledgers.registry_of(tenant.network), timezone.now() + patience()
    for candidate in [tag] if tag else default_tags():
        subject = f"{issuer}:3:CL:{schema_id}:{candidate}"
        if Publication.live(Kind.DEFINITION).filter(subject=subject).exists():
            continue
        with suppress(Unavailable):
            if registry.has_tag(issuer, schema_id, candidate):
                continue
        material |= {"issuer": issuer, "tag": candidate}
        try:
            return Publication.prepare(
                tenant, Kind.DEFINITION, subject, material, wanted, attended_until=until
            )
        except IntegrityError:
            continue
    raise tag_taken(tag)


def default_tags():
    yield "default"
    for number in count(2):
        yield f"default-{number}"


@publications.work(Kind.DEFINITION)
def publish_definition(job, material):
    schema, made = material["schema"], key_of(job, material)
    if schema["issuerId"] == material["issuer"]:
        job.submits(material["schema_id"])
        job.registry.publish_schema(schema)
    job.submits(job.subject)
    definition_id = job.registry.publish_definition(made.public, material["tag"])
    first = material["revocation"] and first_registry(
        job, material, made.public, definition_id
    )
    registry_id = first and revocation.publish_registry(
        job.registry, made.public, first
    )
    with transaction.atomic():
        wanted = (definition_id, material.get("claims"))
        row = models.CredentialDefinition.noted(job.tenant, schema, made, *wanted)
        if first:
            revocation.RevocationRegistry.noted(row, registry_id, first)
        job.publishes(definition_id, definition=row)


def key_of(job, material):
    """The key of the definition, from the pool; the same in each attempt. Without one the job is
    tried again when it may have been made."""
    if "key" in material:
        return anoncreds.Definition(**material["key"])
    names = ("schema_id", "schema", "issuer", "tag", "revocation")
    wanted = [material[name] for name in names]
    with transaction.atomic():
        made = key_pool.take(*wanted)
        if made:
            job.keep(material | {"key": made._asdict()})
    if not made:
        key_pool.ask_for(len(material["schema"]["attrNames"]))
        raise key_pool.not_ready()
    material["key"] = made._asdict()
    return made


def first_registry(job, material, public, definition_id):
    """The registry that a definition begins with; the same in each attempt."""
    if "registry" not in material:
        size = settings.REVOCATION_FIRST_REGISTRY_SIZE
        made = revocation.make_registry(definition_id, public, 0, size)
        material["registry"] = made._asdict()
        job.keep(material)
    job.submits(f"{definition_id}, first registry")
    return anoncreds.Registry(**material["registry"])


def registry_job(definition, public, size):
    """The job of a definition's next registry, and whether it is this call's.

    The caller holds the definition's row. public: the definition, as published.
    """
    jobs = Publication.objects.filter(kind=Kind.REGISTRY, definition=definition)
    if waiting := jobs.filter(status=Publication.Status.PENDING).first():
        return waiting, False
    number = 1 + jobs.count()  # the first came with the definition
    subject = f"{public['issuerId']}:4:{definition.definition_id}:CL_ACCUM:{number}"
    made = revocation.make_registry(
        definition.definition_id, public, number, size
    )._asdict()
    tenant = definition.tenant
    return Publication.prepare(
        tenant, Kind.REGISTRY, subject, made, definition=definition
    ), True


@publications.work(Kind.REGISTRY)
def publish_registry(job, material):
    made = anoncreds.Registry(**material)
    job.submits(job.subject)
    public = job.registry.definition(job.definition.definition_id)
    registry_id = revocation.publish_registry(job.registry, public, made)
    with transaction.atomic():
        revocation.RevocationRegistry.noted(job.definition, registry_id, made)
        job.publishes(registry_id)
