"""`manage.py check --deploy` warns of settings for developers and tests only."""

import pytest
from django.core import checks

from agency.apps import check_developer_settings


def ids(found):
    return [message.id for message in found]


@pytest.mark.parametrize(
    ("name", "value", "warning"),
    [
        ("OUTGOING_ALLOW_LOOPBACK", True, "agency.W001"),
        ("WEBHOOK_REQUIRE_HTTPS", False, "agency.W002"),
        ("FAULT_INJECTION", True, "agency.W003"),
        ("DEBUG", True, "security.W018"),
    ],
)
def test_check_deploy_warns_of_what_is_for_developers(settings, name, value, warning):
    assert warning not in ids(checks.run_checks(include_deployment_checks=True))
    setattr(settings, name, value)
    assert warning in ids(checks.run_checks(include_deployment_checks=True))


def test_a_warning_says_what_to_unset(settings):
    settings.FAULT_INJECTION = True
    [warning] = check_developer_settings(None)
    assert warning.hint == "Unset FAULT_INJECTION on a server that others reach."
