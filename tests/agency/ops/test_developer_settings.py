"""`manage.py check --deploy` warns of settings for developers and tests only."""

from django.core import checks

from agency.ops.checks import check_developer_settings

WARNINGS = {
    ("OUTGOING_ALLOW_LOOPBACK", True): "agency.W001",
    ("WEBHOOK_REQUIRE_HTTPS", False): "agency.W002",
    ("FAULT_INJECTION", True): "agency.W003",
    ("DEBUG", True): "security.W018",
}


def found():
    return {one.id for one in checks.run_checks(include_deployment_checks=True)}


def test_check_deploy_warns_of_what_is_for_developers(settings):
    assert not found() & set(WARNINGS.values())
    for name, value in WARNINGS:
        setattr(settings, name, value)
    assert found() >= set(WARNINGS.values())


def test_a_warning_says_what_to_unset(settings):
    settings.FAULT_INJECTION = True
    [warning] = check_developer_settings()
    assert warning.id == WARNINGS["FAULT_INJECTION", True]
    assert warning.hint == "Unset FAULT_INJECTION on a server that others reach."
