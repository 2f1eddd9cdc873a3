"""One Chromium, for the tests of all pages."""

from tests.support.chromium import axe, chrome, page

__all__ = ["axe", "chrome", "page"]
