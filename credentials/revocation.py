"""Revocation registries: built ahead of need, places given out once, lists published."""

import hashlib
import os
import re
import tempfile
import time
from pathlib import Path

from django.conf import settings
from django.core.files.base import ContentFile, File
from django.core.files.storage import default_storage
from django.db import models, transaction
from django.db.models import F

from agency.core import http, network_reads
from agency.core.errors import Unavailable
from credentials import ledgers, publications, publishing
from tenants import vault
from tenants.models import Network, Record, Tenant
from wallets import anoncreds, keys

NEXT_IS_BUILT_AT = 0.7  # of the newest registry's places
LATEST = 2**40  # unix seconds
TAILS_HASH = r"[1-9A-HJ-NP-Za-km-z]{40,50}"


class RevocationRegistry(Record):
    """Places 1 to size - 1 for the credentials of a definition; each is given out once."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    definition = models.ForeignKey(
        "credentials.CredentialDefinition",
        on_delete=models.CASCADE,
        related_name="registries",
    )
    registry_id = models.CharField(max_length=500, unique=True)
    size = models.PositiveIntegerField()
    next_index = models.PositiveIntegerField(default=1)
    private_key = models.BinaryField()

    class Meta:
        verbose_name_plural = "revocation registries"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(next_index__gte=1, next_index__lte=F("size")),
                name="places_are_inside_the_registry",
            )
        ]

    def __str__(self):
        return self.registry_id

    @classmethod
    @transaction.atomic
    def build(cls, definition, public, size):
        """Makes and publishes a registry with its first list: about 1.2 ms for each place.

        public: the published definition. It may not have committed yet, so nobody reads it here:
        what a registry has once read is remembered for ever.
        """
        registry = ledgers.registry_of(definition.tenant.network)
        number = definition.registries.count()
        made = make_registry(definition.definition_id, public, number, size)
        return cls.noted(definition, publish_registry(registry, public, made), made)

    @classmethod
    def noted(cls, definition, registry_id, made):
        """The row of a registry that is published."""
        row = cls(
            tenant=definition.tenant, definition=definition, registry_id=registry_id
        )
        row.size = made.public["value"]["maxCredNum"]
        vault.seal(row, "private_key", made.private)
        row.save(force_insert=True)
        return row

    @classmethod
    def allocate(cls, definition):
        """(registry, index) for a new credential. Call it before the transaction that issues:
        so the counter is locked for a moment only, and a place is never given out again."""
        while True:
            with transaction.atomic():
                open_ones = cls.objects.filter(
                    definition=definition, next_index__lt=F("size")
                )
                row = open_ones.select_for_update().order_by("pk").first()
                if row:
                    index = row.next_index
                    cls.objects.filter(pk=row.pk).update(next_index=index + 1)
                    return row, index
            cls.build_next(definition, settings.REVOCATION_FIRST_REGISTRY_SIZE)

    @classmethod
    def build_next(cls, definition, size):
        """Builds one unless there is room by now; one builder for each definition at a time."""
        job = cls.begin_next(definition, size)
        if job:
            publications.attend(*job)

    @classmethod
    def begin_next(cls, definition, size):
        """Like build_next(), but on a remote ledger only its job: (job, whether it is ours)."""
        registry = ledgers.registry_of(definition.tenant.network)
        public = registry.definition(definition.definition_id)
        with transaction.atomic():
            type(definition).objects.select_for_update(no_key=True).get(
                pk=definition.pk
            )
            if cls.has_room(definition):
                return None
            if registry.is_remote:
                return publishing.registry_job(definition, public, size)
            cls.build(definition, public, size)
            return None

    @classmethod
    def has_room(cls, definition):
        """Whether the registries of a definition will do for a while."""
        rows = cls.objects.filter(definition=definition).values_list(
            "size", "next_index"
        )
        free = sum(size - index for size, index in rows)
        newest = max((size for size, _ in rows), default=0)
        return free > newest * (1 - NEXT_IS_BUILT_AT)

    def published(self):
        return ledgers.registry_of(self.tenant.network).registry(self.registry_id)

    def place(self, index):
        """What the library needs to sign a credential into a place."""
        newest = StatusList.newest(self.tenant.network, self.registry_id)
        private = vault.unseal(self, "private_key")
        return anoncreds.RevocationInfo(self.published(), private, newest, index)

    def publish_revocations(self):
        """One new list with all places whose credentials are revoked and not on the list yet.

        A registry has one list for each second at most: whoever comes in the second of the last
        one waits for the next, and then finds that the waiting ones went along with him.
        """
        registry = ledgers.registry_of(self.tenant.network)
        if registry.is_remote:
            self._publish_remotely(registry)
            return
        with transaction.atomic():
            RevocationRegistry.objects.select_for_update().get(pk=self.pk)
            self._publish_revocations(registry)

    def _publish_remotely(self, registry):
        """The ledger takes a list only if it follows the last one; who was too slow begins anew."""
        end = time.monotonic() + settings.LEDGER_TIMEOUT
        while True:
            try:
                self._publish_revocations(registry)
                return
            except Unavailable as error:
                if error.code != "list_superseded" or time.monotonic() > end:
                    raise

    def _publish_revocations(self, registry):
        newest = registry.status_list(self.registry_id, int(time.time()) + 60)
        if newest is None:
            raise Unavailable(
                "ledger_unavailable", "The list of the registry cannot be read."
            )
        if not self.unlisted(newest):
            return
        now = second_after(newest["timestamp"])
        public, private = self.published(), vault.unseal(self, "private_key")
        definition = registry.definition(public["credDefId"])
        revoked = self.unlisted(newest)
        registry.publish_status_list(
            anoncreds.update_status_list(
                definition, public, private, newest, revoked, now
            )
        )

    def unlisted(self, status_list):
        """The places of revoked credentials, as committed, that the list does not show."""
        rows = self.definition.credentials_of_registry(self.registry_id)
        places = rows.values_list("revocation_index", flat=True)
        return sorted(i for i in places if not status_list["revocationList"][i])


class StatusList(Record):
    """A published state of a registry of ours: public and immutable."""

    network = models.ForeignKey(Network, on_delete=models.PROTECT)
    registry_id = models.CharField(max_length=500)
    timestamp = models.BigIntegerField()
    body = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["network", "registry_id", "timestamp"],
                name="one_list_per_second",
            )
        ]

    def __str__(self):
        return f"{self.registry_id} at {self.timestamp}"

    @classmethod
    def newest(cls, network, registry_id, timestamp=LATEST):
        """The body of the newest one that is not later (unix seconds), or None."""
        lists = cls.objects.filter(network=network, registry_id=registry_id)
        newest = lists.filter(timestamp__lte=timestamp).order_by("-timestamp")
        return newest.values_list("body", flat=True).first()


def second_after(timestamp):
    """Now, in a later second than this one; for a clock that is ahead of ours it waits 2 s."""
    end = time.monotonic() + 2
    while int(time.time()) <= timestamp and time.monotonic() < end:
        time.sleep(0.02)
    return max(int(time.time()), timestamp + 1)


def make_registry(definition_id, public, number, size):
    """A new registry with its tails file where all find it; nothing is published yet."""
    with tempfile.TemporaryDirectory() as folder:
        made = anoncreds.create_registry(
            definition_id, public, public["issuerId"], str(number), size, folder
        )
        keep_tails(Path(made.tails_path), made.public["value"]["tailsHash"])
    made.public["value"]["tailsLocation"] = tails_url(made.public["value"]["tailsHash"])
    return made


def publish_registry(registry, definition, made):
    """The id of the registry, published with its first list. definition: its public part."""
    registry_id, issuer = (
        registry.publish_registry(made.public),
        made.public["issuerId"],
    )
    now = int(time.time())
    registry.publish_status_list(
        anoncreds.create_status_list(
            definition, registry_id, made.public, made.private, issuer, now
        )
    )
    return registry_id


def keep_tails(source, name):
    """Puts a tails file where all processes and the public find it; it never changes."""
    if not default_storage.exists(tails_name(name)):
        with source.open("rb") as file:
            default_storage.save(tails_name(name), File(file))


def tails_name(tails_hash):
    return f"tails/{tails_hash}"


def tails_url(tails_hash):
    return f"{settings.PUBLIC_URL}/tails/{tails_hash}"


def tails_path(public):
    """The local file of a registry, fetched from its issuer once if it was not made here.

    503 `tails_unavailable`, also for a file that is not the one the registry names.
    """
    name = public["value"]["tailsHash"]
    if not re.fullmatch(TAILS_HASH, name):
        raise Unavailable("tails_unavailable", "The registry names no tails file.")
    if not default_storage.exists(tails_name(name)):
        location = public["value"]["tailsLocation"]
        network_reads.read_once(location, lambda: fetch_tails(location, name))
    return default_storage.path(tails_name(name))


def fetch_tails(location, name):
    try:
        answer = http.get(location, accept="*/*", max_bytes=settings.MAX_TAILS_BYTES)
    except Unavailable as error:
        message = f"The issuer's tails file: {error.message}."
        raise Unavailable("tails_unavailable", message) from None
    found = keys.encode(hashlib.sha256(answer.body).digest())
    if answer.status != 200 or not answer.is_complete or found != name:
        message = "The issuer's tails file is not there, too large or another one."
        raise Unavailable("tails_unavailable", message)
    saved = default_storage.save(f"{tails_name(name)}.part", ContentFile(answer.body))
    os.replace(default_storage.path(saved), default_storage.path(tails_name(name)))
