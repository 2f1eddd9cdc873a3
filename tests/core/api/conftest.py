"""Mail of organizations is on for all tests of the API; nothing is sent."""

import pytest


@pytest.fixture(autouse=True)
def organizations_may_mail(settings):
    settings.ORGANIZATION_MAIL = True
    settings.EMAIL_URL = "smtp://mail.example"
