"""Settings that cannot work together are refused at the start."""

import logging
import os
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_registry_is_no_larger_than_its_tails_file_may_be():
    given = {"REVOCATION_REGISTRY_SIZE": "5000", "MAX_TAILS_BYTES": "1000000"}
    command = [sys.executable, "-c", "import agency.settings"]
    ran = subprocess.run(
        command, env=os.environ | given, capture_output=True, text=True
    )
    assert ran.returncode != 0 and "MAX_TAILS_BYTES" in ran.stderr


def test_one_handler_prints_log_lines():
    """Django's own, on while DEBUG is, would print its lines a second time."""
    assert logging.getLogger("django").handlers == []
    assert [type(handler) for handler in settings_handlers()] == [logging.StreamHandler]


def settings_handlers():
    """The root logger's, without those of pytest."""
    return [
        one for one in logging.getLogger().handlers if type(one).__module__ == "logging"
    ]


@pytest.mark.slow
def test_prefixes_without_a_subscription_key_are_whole_segments():
    code = "import agency.settings as s; print(s.SUBSCRIPTION_KEY_OPTIONAL)"
    given = os.environ | {"SUBSCRIPTION_KEY_OPTIONAL": "/agency/v1,wallet/v1/,/"}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=given, capture_output=True, text=True
    )
    assert ran.stdout.strip() == "('/agency/v1/', '/wallet/v1/', '/')"


@pytest.mark.slow
def test_a_worker_loads_no_pages_and_collects_garbage_then():
    program = """
import gc, sys
from agency.celery import app
app.loader.import_default_modules()
print("agency.support.admin" in sys.modules or "agency.urls" in sys.modules)
print(gc.isenabled(), gc.get_freeze_count() > 0)
from django.contrib import admin
admin.site.check(None)
print("agency.support.admin" in sys.modules)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "agency.settings"},
        capture_output=True,
        text=True,
    )
    assert ran.stdout.split() == ["False", "True", "True", "True"], ran.stderr
