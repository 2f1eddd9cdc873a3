"""Who may open which page of an organization, and who may send its forms.

The table names every route of the studio with an organization in it, so a new page
fails here until it is in the table.
"""

import itertools
import uuid

import pytest
from django.urls import reverse

from agency.studio import urls
from tenants.models import Membership, Permission, Role
from tests.agency.studio.conftest import browser_of, person
from tests.support.pages import Browser

READ, OPERATE, DEVELOP = Permission.READ, Permission.OPERATE, Permission.DEVELOP
CONFIGURE, PEOPLE, LOG = Permission.CONFIGURE, Permission.PEOPLE, Permission.LOG
# By the name of the route: what it takes, and the methods that it has.
PAGES = {
    "organization": (READ, "GET"),
    "organization_live": (READ, "GET"),
    "settings": (CONFIGURE, "GET POST"),
    "delete_organization": (Permission.DELETE, "GET POST"),
    "new_key": (DEVELOP, "POST"),
    "rotate_key": (DEVELOP, "GET POST"),
    "revoke_key": (DEVELOP, "GET POST"),
    "search": (READ, "GET"),
    "wallets": (READ, "GET"),
    "wallet": (READ, "GET"),
    "wallet_connections": (READ, "GET"),
    "wallet_credentials": (READ, "GET"),
    "wallet_verifications": (READ, "GET"),
    "connections": (READ, "GET"),
    "credentials": (READ, "GET"),
    "verifications": (READ, "GET"),
    "api_docs": (READ, "GET"),
    "api_docs_ids": (READ, "GET"),
    "requests": (READ, "GET"),
    "events": (READ, "GET"),
    "event": (READ, "GET"),
    "webhooks": (READ, "GET"),
    "new_webhook": (DEVELOP, "POST"),
    "webhook": (READ, "GET"),
    "rotate_secret": (DEVELOP, "GET POST"),
    "enable_webhook": (DEVELOP, "POST"),
    "disable_webhook": (DEVELOP, "POST"),
    "send_example": (DEVELOP, "POST"),
    "recover_webhook": (DEVELOP, "POST"),
    "remove_webhook": (DEVELOP, "GET POST"),
    "delivery": (READ, "GET"),
    "resend_delivery": (DEVELOP, "POST"),
    "members": (READ, "GET"),
    "invite": (PEOPLE, "POST"),
    "change_role": (PEOPLE, "POST"),
    "remove_member": (PEOPLE, "GET POST"),
    "resend_invitation": (PEOPLE, "POST"),
    "withdraw_invitation": (PEOPLE, "POST"),
    "change_requirement": (PEOPLE, "POST"),
    "leave": (READ, "GET POST"),
    "log": (LOG, "GET"),
    "log_csv": (LOG, "GET"),
}
EXCHANGES = ("connection", "credential", "verification")
for kind in EXCHANGES:
    PAGES |= {
        kind: (READ, "GET"),
        f"{kind}_live": (READ, "GET"),
        f"{kind}_resend": (OPERATE, "POST"),
    }
PAGES["new_connection"] = PAGES["remove_connection"] = (OPERATE, "GET POST")
PAGES |= {
    "definitions": (READ, "GET"),
    "definition": (READ, "GET"),
    "new_definition": (OPERATE, "GET POST"),
    "retry_publication": (OPERATE, "POST"),
    "new_credential": (OPERATE, "GET POST"),
    "issue_credential": (OPERATE, "POST"),
    "check_card": (OPERATE, "POST"),
    "bulks": (OPERATE, "GET POST"),
    "definition_revocation": (OPERATE, "GET POST"),
    "bulk": (READ, "GET"),
    "bulk_live": (READ, "GET"),
    "bulk_result": (OPERATE, "GET"),
    "bulk_template": (READ, "GET"),
    "pause_bulk": (OPERATE, "POST"),
    "resume_bulk": (OPERATE, "POST"),
    "retry_bulk": (OPERATE, "POST"),
    "remove_bulk": (OPERATE, "GET POST"),
    "new_wallet": (OPERATE, "GET POST"),
    "recipients": (OPERATE, "GET"),
    "connect_wallet": (OPERATE, "POST"),
    "issue_to_wallet": (OPERATE, "POST"),
    "remove_wallet": (OPERATE, "GET POST"),
    "create_wallet_link": (OPERATE, "POST"),
    "revoke_wallet_link": (OPERATE, "POST"),
    "policies": (READ, "GET"),
    "policy": (READ, "GET"),
    "new_policy": (OPERATE, "GET POST"),
    "new_verification": (OPERATE, "GET POST"),
    "kiosks": (READ, "GET"),
    "new_kiosk": (OPERATE, "GET POST"),
    "revoke_kiosk": (OPERATE, "GET POST"),
    "sandbox": (READ, "GET"),
    "set_up_samples": (OPERATE, "POST"),
    "new_simulated_holder": (OPERATE, "GET POST"),
    "simulated_holder": (OPERATE, "GET POST"),
    "revoke_credential": (OPERATE, "GET POST"),
    "credential_accept": (OPERATE, "POST"),
    "verification_accept": (OPERATE, "POST"),
}
PAGES["accept_connection"] = (OPERATE, "POST")
PAGES["ping_connection"] = PAGES["rotate_connection"] = (OPERATE, "POST")
PAGES["end_connection"] = PAGES["chat"] = (OPERATE, "GET POST")
PAGES["chat_live"] = (OPERATE, "GET")
for kind in ("credential", "verification"):
    PAGES |= {
        f"{kind}_cancel": (OPERATE, "POST"),
        f"{kind}_reveal": (OPERATE, "POST"),
    }
ALLOWED = {  # beside the table of the code, so that a change of it is seen here
    READ: {"owner", "operator", "developer", "viewer"},
    OPERATE: {"owner", "operator"},
    DEVELOP: {"owner", "developer"},
    CONFIGURE: {"owner", "developer"},
    PEOPLE: {"owner"},
    LOG: {"owner"},
    Permission.PROVIDER_KEYS: {"owner"},
    Permission.DELETE: {"owner"},
}


def routes():
    """The routes with an organization, and the names of their other arguments."""
    found = {}
    for pattern in urls.urlpatterns:
        arguments = set(pattern.pattern.converters)
        if "tenant_id" in arguments:
            found[pattern.name] = arguments - {"tenant_id"}
    return found


def test_the_table_names_every_page_of_an_organization():
    assert set(routes()) == set(PAGES)


def test_the_table_of_the_code_is_the_one_that_is_wanted():
    assert {
        permission: {
            role.value for role in Role if Membership(role=role).may(permission)
        }
        for permission in Permission
    } == ALLOWED


def address(name, tenant):
    """The page, for objects that do not exist: permissions are checked before."""
    others = {argument: uuid.uuid4() for argument in routes()[name]}
    return reverse(f"studio:{name}", kwargs={"tenant_id": tenant.pk} | others)


@pytest.fixture
def browser_with(college):
    def make(role):
        user = person(f"with-{role}")
        Membership.objects.create(tenant=college.tenant, user=user, role=role)
        return browser_of(user)

    return make


@pytest.mark.parametrize("role", ["owner", "operator", "developer", "viewer"])
def test_a_role_opens_exactly_the_pages_of_its_permissions(
    college, browser_with, role
):
    browser = browser_with(role)
    wrong = []
    for (name, (permission, methods)), method in itertools.product(
        PAGES.items(), ("GET", "HEAD", "POST", "PUT", "DELETE")
    ):
        if (name, method) == ("leave", "POST"):
            continue  # it ends the membership; test_members.py
        status = browser.generic(method, address(name, college.tenant)).status_code
        taken = method.replace("HEAD", "GET") in methods.split()
        if not taken:
            expected = {405}
        elif role in ALLOWED[permission]:
            expected = {200, 302, 404}  # 404: there is no such object
        elif method == "POST":
            # A form without a token leads back before its permission is looked at.
            expected = {403, 302}
        else:
            expected = {403}
        if status not in expected:
            wrong.append((name, method, status, expected))
    assert wrong == []


@pytest.mark.parametrize("role", ["operator", "developer", "viewer"])
def test_a_form_of_a_page_that_a_role_may_not_use_is_refused(
    college, browser_with, role
):
    browser = browser_with(role)
    for name, (permission, methods) in PAGES.items():
        if "POST" in methods and role not in ALLOWED[permission]:
            answer = browser.send(address(name, college.tenant))
            assert answer.status_code == 403, name


def test_strangers_find_no_page_and_others_are_asked_to_sign_in(college, stranger):
    for name, (_, methods) in PAGES.items():
        for method in methods.split():
            path = address(name, college.tenant)
            if method == "GET":
                assert stranger.get(path).status_code == 404, name
                answer = Browser().get(path)
            else:
                assert stranger.send(path).status_code == 404, name
                answer = Browser().send(path)
            assert answer.status_code == 302, name
            assert answer["Location"].startswith("/accounts/login/?next="), name


def test_the_page_of_members_shows_the_table(browser, url):
    page = " ".join(browser.get(f"{url}/members").content.decode().split())
    for permission in Permission:
        row = page.split(permission.label)[1].split("</tr>")[0]
        shown = {
            role.value
            for role in Role
            if f'<td data-label="{role.label}">Yes</td>' in row
        }
        assert shown == ALLOWED[permission]
