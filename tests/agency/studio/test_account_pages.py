"""The pages of an account stand in the frame of the studio and speak as it does."""

import re
from functools import partial

import pytest
from allauth.account.models import EmailAddress

from tests.agency.pages.catalog import PAGES, open_world
from tests.agency.studio.conftest import read

OURS = [name for name in PAGES if name.startswith(("account_", "mfa_"))]
OURS += ["studio:account_email", "studio:sessions", "studio:language"]
TABS = ["Mail addresses", "Password", "Second factor", "Sessions", "Language"]
# Of allauth's own templates and labels.
NOT_OURS = re.compile(
    r"Email Address|Re-send|Verified|Primary|Confirm Access|reauthenticate|Sign Out"
    r"|Are you sure|Change Password|\(again\)|Deactivate|Security Key|You are about to"
    r"|Bad Token|Inactive|authenticator code:|New Password|Current Password"
)
NEW = "another long battery"


@pytest.mark.django_db(transaction=True)
def test_no_page_of_an_account_speaks_otherwise(stored_keys, subtests):
    world = open_world()
    for name in OURS:
        with subtests.test(name):
            page = getattr(world, PAGES[name]).get(world.address(name)).text
            shown = re.sub(
                r"<script.*?</script>|/reauthenticate/", "", page, flags=re.S
            )
            assert not NOT_OURS.search(shown), NOT_OURS.search(shown)


def test_one_row_of_tabs_leads_to_each_page(browser):
    tabs = re.search(
        r'<nav class="tabs.*?</nav>', read(browser, "/accounts/2fa/"), re.S
    )
    links = re.findall(r'<a href="([^"]+)"[^>]*>([^<]+)</a>', tabs[0])
    assert [label for _, label in links] == TABS
    for address, label in links:
        page = browser.get(address, follow=True).text
        assert f'aria-current="page">{label}</a>' in page or "Is it still you?" in page


def test_a_password_is_changed_by_typing_it_once(browser, fay):
    page = read(browser, "/accounts/password/change/")
    assert page.count('type="password"') == 2 and "At least 12 characters." in page
    form = {"oldpassword": "correct horse battery", "password1": NEW}
    shown = browser.post("/accounts/password/change/", form, follow=True).text
    assert "The password is changed." in shown
    fay.refresh_from_db()
    assert fay.check_password(NEW)


def test_what_becomes_of_an_address_is_said(browser, fay, settings):
    settings.EMAIL_URL = "smtp://mail.example"
    send = partial(browser.post, "/accounts/email/", follow=True)
    shown = send({"action_add": "", "email": "fay@home.example"}).text
    assert "A link was sent to fay@home.example." in shown
    shown = send({"action_primary": "", "email": "fay@home.example"}).text
    assert "Only a confirmed address can be the main one." in shown
    EmailAddress.objects.filter(email="fay@home.example").update(verified=True)
    shown = send({"action_primary": "", "email": "fay@home.example"}).text
    assert "The main address is changed." in shown
    shown = send({"action_remove": "", "email": "fay@home.example"}).text
    assert "The main address cannot be removed." in shown
    shown = send({"action_remove": "", "email": "fay@faber.example"}).text
    assert "fay@faber.example is removed." in shown
