"""One Chromium, for the tests of all pages, and passwords that are hashed fast."""

import pytest
from django.template.backends.django import Template

from tests.support.chromium import axe, chrome, page

__all__ = ["axe", "chrome", "page"]


@pytest.fixture(autouse=True)
def passwords_are_hashed_fast(settings):
    """Argon2 is slow on purpose; test_enumeration.py has it."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def nothing_is_rendered(monkeypatch):
    """For tests that open many pages and read no more than their status."""
    monkeypatch.setattr(Template, "render", lambda *_, **__: "")
