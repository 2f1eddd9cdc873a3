"""A definition and its twin, of an organization on the local network."""

from functools import partial
from pathlib import Path

import pytest
from django.core.files.storage import default_storage

from credentials.ledgers.webvh import served_logs
from tests.support.database import Template
from tests.support.own_webvh import at_public_host
from tests.support.people import Organization

VALUES = {"Full Name": "Alice", "level": "7"}
TEMPLATES: dict[tuple[str, ...], Template] = {}


def make_badge(faber):
    name = "Full Name"
    return faber.defines(*VALUES, supportRevocation=True, recipientAttribute=name)


# In the order in which they are made; files are kept, which no row has.
STEPS = {
    "badge": make_badge,
    "alice": lambda faber: faber.hosts(),
    "twin": lambda faber: faber.post(twin_path(faber.badge)),
}


def make_faber(names):
    Organization("Acme", network_id="webvh")
    faber = Organization("Faber")
    faber.put("/tenants/webvhDid", {})
    for name in names:
        setattr(faber, name, STEPS[name](faber))
    folder = Path(default_storage.location)
    faber.files = {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return faber


@pytest.fixture
def faber(request, settings, storage, transactional_db, stored_keys):
    """On the local network, with a did:webvh."""
    served_logs.remember.cache_clear()
    at_public_host(settings)
    names = tuple(name for name in STEPS if name in request.fixturenames)
    made = TEMPLATES.setdefault(names, Template(partial(make_faber, names)))()
    for path, content in made.files.items():
        (storage / path).parent.mkdir(parents=True, exist_ok=True)
        (storage / path).write_bytes(content)
    return made


@pytest.fixture
def badge(faber):
    return faber.badge


@pytest.fixture
def alice(faber):
    return faber.alice


def twin_path(definition):
    return f"/definitions/credentials/{definition['definitionId']}/twin"


@pytest.fixture
def twin(faber, badge):
    return faber.twin
