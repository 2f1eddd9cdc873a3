"""What a test gets back of the world is what was made, and new rows fit beside it."""

import pytest
from django.apps import apps

from tests.factories import TenantFactory
from tests.support import database
from tests.support.database import Template


@pytest.fixture
def template(transactional_db):
    return Template(TenantFactory)


def test_restored_rows_are_those_that_were_saved(world):
    saved = database.save()
    database.clear()
    assert database.save() == {}
    database.restore(saved)
    assert in_order(database.save()) == in_order(saved)


def in_order(saved):
    """The rows of each table in one order: a changed row is stored behind others."""
    return {table: sorted(rows.splitlines()) for table, rows in saved.items()}


def test_the_world_works_after_it_was_restored(world):
    saved = database.save()
    database.clear()
    database.restore(saved)
    models = [model for model in apps.get_models() if model._meta.managed]
    before = {model: keys_of(model) for model in models}
    world.grow()
    assert world.faber.get(f"/credentials/{world.credential[0]}")["state"] == "Issued"
    assert world.answered()[0] in {
        one["verificationId"]
        for one in world.faber.get("/verifications", isValid="true")
    }
    for model, keys in before.items():
        assert keys <= keys_of(model), f"a row of {model} was replaced"


def keys_of(model):
    return set(model._base_manager.values_list("pk", flat=True))


def test_a_template_is_made_once_and_copied(template):
    first = template()
    database.clear()
    second = template()
    assert first == second and first is not second
    second.refresh_from_db()
    second.name = "Changed"
    assert template.made.name == first.name


def test_beside_other_rows_a_template_makes_its_own(template):
    first, second = template(), template()
    assert first.pk != second.pk
