"""Who may open which page of an organization, and who may send its forms.

The table names every route of the studio with an organization in it, so a new page
fails here until it is in the table.
"""

import re
import uuid
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import resolve, reverse

from agency.studio import urls
from agency.studio.pages import member_page
from connections.models import OutboundMessage
from credentials.models import Publication
from tenants.lifecycle.provisioning import create_organization
from tenants.models import Invitation, Membership, Permission, Role, Tenant
from tests.agency.pages.catalog import PAGES as OPENED
from tests.agency.pages.catalog import open_world
from tests.agency.studio.conftest import browser_of, browser_with, person
from tests.support.pages import Browser

READ, OPERATE, DEVELOP = Permission.READ, Permission.OPERATE, Permission.DEVELOP
CONFIGURE, PEOPLE, LOG = Permission.CONFIGURE, Permission.PEOPLE, Permission.LOG
# What a page takes, and the methods that it has: the names of the routes.
ROUTES = {
    (READ, "GET"): """
        organization organization_live keys search api_docs api_docs_ids requests
        wallets wallet wallet_connections wallet_credentials wallet_verifications
        connections connection connection_live connection_person
        credentials credential credential_live credential_person
        verifications verification verification_live definitions definition
        bulk bulk_live bulk_template policies policy kiosks sandbox
        events event webhooks webhook delivery members webvh_did trust
    """,
    (READ, "GET POST"): "leave",
    (OPERATE, "GET"): """
        bulk_result bulk_workbook bulk_print recipients chat_live credential_sheet
    """,
    (OPERATE, "POST"): """
        connection_resend credential_resend verification_resend
        connection_reveal accept_connection ping_connection rotate_connection
        credential_accept credential_cancel credential_reveal
        verification_accept verification_cancel verification_reveal ask_again
        retry_publication issue_credential check_card make_twin
        pause_bulk resume_bulk retry_bulk pause_mails resume_mails stop_mails
        remind_bulk connect_wallet issue_to_wallet
        create_wallet_link revoke_wallet_link set_up_samples
    """,
    (OPERATE, "GET POST"): """
        new_connection remove_connection end_connection chat new_definition
        definition_revocation definition_design new_credential revoke_credential bulks remove_bulk
        mail_bulk mail_credential
        new_wallet remove_wallet new_policy new_verification new_kiosk revoke_kiosk
        scan_card new_simulated_holder simulated_holder
        connections_chosen credentials_chosen verifications_chosen
    """,
    (DEVELOP, "POST"): """
        first_keys new_key new_webhook enable_webhook disable_webhook send_example
        recover_webhook resend_delivery
    """,
    (DEVELOP, "GET POST"): "rotate_key revoke_key rotate_secret remove_webhook",
    (CONFIGURE, "GET"): "certificate_request settings_colors",
    (CONFIGURE, "POST"): "make_webvh upload_certificates",
    (CONFIGURE, "GET POST"): """
        settings rotate_webvh new_trust_anchor remove_trust_anchor use_own_certificates
    """,
    (PEOPLE, "GET"): "imported",
    (PEOPLE, "POST"): """
        invite change_role resend_invitation withdraw_invitation change_requirement
    """,
    (PEOPLE, "GET POST"): "remove_member",
    (LOG, "GET"): "log log_csv",
    (Permission.DELETE, "GET POST"): "delete_organization deletion end_webvh",
}
PAGES = {name: taken for taken, names in ROUTES.items() for name in names.split()}
ALLOWED = {  # beside the table of the code, so that a change of it is seen here
    READ: {"owner", "operator", "developer", "viewer"},
    OPERATE: {"owner", "operator"},
    Permission.NAMES: {"owner", "operator"}, DEVELOP: {"owner", "developer"},
    CONFIGURE: {"owner", "developer"}, PEOPLE: {"owner"}, LOG: {"owner"},
    Permission.PROVIDER_KEYS: {"owner"}, Permission.DELETE: {"owner"},
}  # fmt: skip


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
    for permission in Permission:
        allowed = {
            role
            for role in Role.values
            if Membership(role=role, tenant=Tenant()).may(permission)
        }
        assert allowed == ALLOWED[permission], permission


def address(name, tenant):
    """The page, for objects that do not exist: permissions are checked before."""
    others = {argument: uuid.uuid4() for argument in routes()[name]}
    return reverse(f"studio:{name}", kwargs={"tenant_id": tenant.pk} | others)


# What these two may open tells the permission of a page: see ALLOWED.
@pytest.mark.parametrize("role", ["operator", "developer"])
def test_a_role_opens_exactly_the_pages_of_its_permissions(
    college, nothing_is_rendered, role
):
    browser, wrong = browser_with(role, college.tenant), []
    for name, (permission, methods) in PAGES.items():
        path, may = address(name, college.tenant), role in ALLOWED[permission]
        # Without a token a form leads back. 404: there is no such object.
        post = browser.post if may else browser.send
        for method in methods.split():
            if (name, method) == ("leave", "POST"):
                continue  # it ends the membership; test_members.py
            answer = browser.get(path) if method == "GET" else post(path)
            if answer.status_code not in ({200, 302, 404} if may else {403}):
                wrong.append((name, method, answer.status_code))
    assert wrong == []


def test_a_page_has_no_other_methods(college, viewer, nothing_is_rendered):
    for name, (permission, methods) in PAGES.items():
        path = address(name, college.tenant)
        for method in {"GET", "POST", "PUT"} - set(methods.split()):
            assert viewer.generic(method, path).status_code == 405, (name, method)
        if "GET" in methods and "viewer" not in ALLOWED[permission]:
            assert viewer.head(path).status_code == 403, name


def test_forms_from_other_sites_are_refused(college, fay):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(fay)
    for name, (_, methods) in PAGES.items():
        if "POST" in methods:
            path = address(name, college.tenant)
            answer = browser.post(path, {"form_token": "1"})
            assert b"CSRF" in answer.content and answer.status_code == 403, name


def test_strangers_find_no_page_and_others_are_asked_to_sign_in(
    college, stranger, nothing_is_rendered
):
    visitor = Browser()
    for name, (_, methods) in PAGES.items():
        path = address(name, college.tenant)
        for method in methods.split():
            asks = Browser.get if method == "GET" else Browser.send
            assert asks(stranger, path).status_code == 404, name
            answer = asks(visitor, path)
            assert answer.status_code == 302, name
            assert answer["Location"].startswith("/accounts/login/?next="), name


def test_a_page_that_is_not_there_names_no_organization(url, stranger):
    answer = stranger.get(f"{url}/members", headers={"Accept": "text/html"})
    assert answer.status_code == 404 and "Faber College" not in answer.text


def test_the_page_of_members_shows_the_table(browser, url):
    page = " ".join(browser.get(f"{url}/members").text.split())
    for permission in Permission:
        row = page.split(permission.label)[1].split("</tr>")[0]
        for role in Role:
            is_allowed = role.value in ALLOWED[permission]
            assert (f'<td data-label="{role.label}">Yes</td>' in row) == is_allowed


@pytest.fixture
def world(transactional_db, stored_keys):
    return open_world()


def test_objects_of_another_organization_are_not_there(world, nothing_is_rendered):
    """Sam owns an organization, and knows the ids of another one's objects."""
    sam, tenant = person("sam"), world.tenant
    own = create_organization("Acme", owner=sam, is_test=True).tenant
    browser = browser_of(sam)
    waiting = Publication.create_leased(tenant, Publication.Kind.SCHEMA, "s", {})
    world.ids["publication_id"] = waiting.pk
    world.ids["invitation_id"] = Invitation.objects.latest("pk").pk
    world.ids["message_id"] = OutboundMessage.objects.latest("pk").pk
    card = {"tenant_id": tenant.pk, "object_id": world.ids["credential_id"]}
    world.parts["studio:check_card"] = card
    for name, (_, methods) in PAGES.items():
        path = world.address(f"studio:{name}")
        theirs = path.replace(str(tenant.pk), str(own.pk))
        for method in methods.split() if routes()[name] else ():
            send = browser.get if method == "GET" else browser.send
            assert send(theirs).status_code == 404, (name, method)


@pytest.mark.parametrize("role", ["operator", "developer"])
def test_no_page_leads_to_what_its_reader_may_not_do(world, role):
    browser, seen = browser_with(role, world.tenant), set()
    for name, (permission, _) in PAGES.items():
        if f"studio:{name}" not in OPENED or role not in ALLOWED[permission]:
            continue
        page = browser.get(world.address(f"studio:{name}"), follow=True)
        assert page.status_code == 200, name
        for link in re.findall(r'(?:href|action)="(/studio/[^"]*)"', page.text):
            target = resolve(urlsplit(link).path).url_name
            if target in PAGES:
                seen.add((name, target))
    wrong = {one for one in seen if role not in ALLOWED[PAGES[one[1]][0]]}
    # The page of a file names the page of all, which only operators may open.
    assert wrong <= {("bulk", "bulks")} and len(seen) > 100


def test_a_page_with_a_form_says_what_it_needs():
    with pytest.raises(RuntimeError, match="which permission"):
        member_page("GET", "POST")
    member_page("GET")
