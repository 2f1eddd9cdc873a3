"""The page of what is kept names every table once, and every task that deletes."""

import re
from collections import Counter

import pytest
from django.apps import apps
from django.conf import settings

from tests.support.paths import DOCS

PAGE = DOCS / "operations" / "erasure.md"
TASK = re.compile(r"`((?:\w+\.)+tasks\.\w+)`")


def entries():
    """The tables that each entry of the lists is about, and its text."""
    _, _, lists = PAGE.read_text().partition("## Every table")
    for entry in re.findall(r"^- `\w+`.*\n(?:  .*\n)*", lists, re.MULTILINE):
        yield re.findall(r"`([a-z_]+)`", entry.partition(" (")[0]), entry


def test_the_page_names_every_table_once():
    named = Counter(name for names, _ in entries() for name in names)
    models = apps.get_models(include_auto_created=True)
    assert named == Counter(one._meta.db_table for one in models if one._meta.managed)


def test_every_task_that_deletes_is_named_and_scheduled():
    named = {task for _, text in entries() for task in TASK.findall(text)}
    scheduled = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    deletes = re.compile(r"\.(delete|forget|erase)")
    assert named == {task for task in scheduled if deletes.search(task)}


@pytest.mark.parametrize("word", ["QUOTA", "RETENTION", "REVOCATION"])
def test_every_setting_that_is_named_exists(word):
    found = set(re.findall(rf"`({word}_\w+|\w+_{word}_\w+)`", PAGE.read_text()))
    assert found and {name for name in found if not hasattr(settings, name)} == set()
