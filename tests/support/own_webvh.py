"""What an organization publishes below its did:webvh, read as a strict reader does."""

import time
from functools import partial
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.test import Client

from credentials.ledgers.webvh import served_logs
from credentials.ledgers.webvh.log import check_log
from credentials.ledgers.webvh.resources import check_resource
from credentials.models import WebvhDid
from tests.support.database import Template
from tests.support.people import Organization

HOST = "agency.example.org"


def at_public_host(settings):
    settings.PUBLIC_URL = f"https://{HOST}"
    settings.ALLOWED_HOSTS = ["testserver", f".{HOST}"]
    settings.REVOCATION_FIRST_REGISTRY_SIZE = 8


def on_webvh(settings, name="Faber"):
    """An organization on the network `webvh`, at a public host."""
    at_public_host(settings)
    return Organization(name, network_id="webvh")


def restored(begin, **steps):
    """A fixture: an organization after those of the steps that a test asks for.

    They are in the order in which they are made. Files are kept, which no row has.
    """
    templates = {}

    def make(names):
        made = begin()
        for name in names:
            setattr(made, name, steps[name](made))
        folder = Path(default_storage.location)
        found = (path for path in folder.rglob("*") if path.is_file())
        made.files = {path.relative_to(folder): path.read_bytes() for path in found}
        return made

    @pytest.fixture
    def organization(request, settings, storage, transactional_db, stored_keys):
        served_logs.remember.cache_clear()
        at_public_host(settings)
        names = tuple(name for name in steps if name in request.fixturenames)
        made = templates.setdefault(names, Template(partial(make, names)))()
        for path, content in made.files.items():
            (storage / path).parent.mkdir(parents=True, exist_ok=True)
            (storage / path).write_bytes(content)
        return made

    return organization


def row_of(organization):
    return WebvhDid.objects.get(tenant=organization.tenant)


def fetch(address, host=HOST):
    """The answer at the path of an https address, asked for by this name."""
    return Client(headers={"host": host}).get(address.removeprefix(f"https://{HOST}"))


def read_log(organization, known=None):
    """The log, checked: after `known`, which somebody remembers, or from its begin."""
    row = row_of(organization)
    answer = fetch(row.log_url)
    assert answer.status_code == 200 and answer["Access-Control-Allow-Origin"] == "*"
    return check_log(row.did, answer.content, time.time(), known)


def read_resource(object_id, kind, document):
    """A resource, checked against the document of its DID."""
    did, digest = object_id.split("/resources/")
    answer = fetch(f"/issuers/{did.rpartition(':')[2]}/resources/{digest}")
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"] == "application/json"
    assert answer["Access-Control-Allow-Origin"] == "*"
    return check_resource(object_id, kind, answer.content, document)


def read_all(organization, document=None):
    """Check all resources of an organization. document: one that is remembered."""
    row = row_of(organization)
    document = document or read_log(organization).document
    for one in row.resources.all():
        kind = one.parse()["metadata"]["resourceType"]
        read_resource(f"{row.did}/resources/{one.digest}", kind, document)
    return row.resources.count()
