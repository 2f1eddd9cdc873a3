"""Somebody gives another's mail address, without a mail to confirm it."""

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core import mail

from tenants import audit, members
from tenants.models import AuditEntry, Invitation, Membership, Role
from tests.agency.studio.conftest import browser_of, confirmed, person, read
from tests.agency.studio.test_members import LINK, link_in
from tests.factories import EmailAddressFactory, MembershipFactory
from tests.support.pages import Browser

BOSS = "boss@faber.example"


@pytest.fixture(autouse=True)
def mail_server(settings):
    settings.EMAIL_URL, settings.STUDIO_VERIFY_EMAIL = "smtp://mail.example", False


def signs_up(email=BOSS):
    """The browser and the account of somebody new, as the product makes it."""
    browser = Browser()
    form = {"email": email, "password1": "a long battery 1"}
    assert browser.post("/accounts/signup/", form).status_code == 302
    return browser, User.objects.latest("pk")


def joined(browser, link):
    browser.get(link)
    return browser.post("/studio/invitation", follow=True).text


@pytest.fixture
def by_hand(browser, url, settings):
    """Invites an address where no mail is set up. Returns the path of the link."""

    def invite(email=BOSS, role="viewer"):
        settings.EMAIL_URL = ""
        sent = browser.send(f"{url}/members/invite", email=email, role=role)
        settings.EMAIL_URL = "smtp://mail.example"
        return f"/invitations/{LINK.search(sent.text)[1]}"

    return invite


@pytest.fixture
def by_mail(browser, url):
    def invite(email=BOSS, role="viewer"):
        browser.send(f"{url}/members/invite", email=email, role=role)
        return link_in(mail.outbox[-1])

    return invite


def test_the_address_is_no_name_in_members_and_log(college, browser, url, by_hand):
    mallory, account = signs_up()
    joined(mallory, by_hand(role="owner"))
    page = " ".join(read(browser, f"{url}/members").split())
    shown = page.split(f"<bdi>person {account.pk}</bdi>")[1].split("</tr>")[0]
    assert BOSS in shown and "Not confirmed" in shown
    member = Membership.objects.get(user=account)
    assert f"Remove <bdi>person {account.pk}</bdi>" in read(
        browser, f"{url}/members/{member.pk}/remove"
    )
    mallory.send(f"{url}/members/invite", email="ann@x.example", role="viewer")
    entries = AuditEntry.objects.filter(actor_id=str(account.pk))
    assert entries.filter(action="member.invited")
    assert set(entries.values_list("actor_name", flat=True)) == {f"person {account.pk}"}
    entry = entries.get(action="member.joined")
    assert entry.details["person"] == f"person {account.pk}"
    assert f"person {account.pk}" in read(browser, f"{url}/log?who=person {account.pk}")


def test_what_was_confirmed_once_is_not_the_address_of_today(college):
    """The name is that of the address which counts, in whatever case it is."""
    fay = User.objects.get(username="fay")
    member = Membership.objects.get(user=fay)
    assert member.name == fay.email
    User.objects.filter(pk=fay.pk).update(email="FAY@faber.example")
    assert Membership.objects.get(user=fay).name == "FAY@faber.example"
    User.objects.filter(pk=fay.pk).update(email=BOSS)
    assert Membership.objects.get(user=fay).name == f"person {fay.pk}"


def test_their_invitations_do_not_name_it(college, by_hand, url):
    mallory, _ = signs_up()
    joined(mallory, by_hand(role="owner"))
    mallory.send(f"{url}/members/invite", email="ann@x.example", role="viewer")
    message = mail.outbox[-1]
    assert message.to == ["ann@x.example"] and BOSS not in message.body
    stranger = Browser()
    stranger.get(link_in(message))
    page = stranger.get("/studio/invitation").text
    assert "Somebody invites" in page and BOSS not in page


def test_a_mailed_link_confirms_it(college, browser, url, by_mail):
    boss, account = signs_up()
    assert "You are a member" in joined(boss, by_mail())
    assert EmailAddress.objects.get(user=account).verified
    assert Membership.objects.get(user=account).name == BOSS
    entry = AuditEntry.objects.get(action="person.email_confirmed")
    assert (entry.actor_name, entry.details) == (BOSS, {"address": BOSS})
    assert "Not confirmed" not in read(browser, f"{url}/members")


def test_without_the_link_a_mailed_invitation_is_not_accepted(college, by_mail):
    link = by_mail()
    mallory, account = signs_up()
    for path in ("/invitations/guessed", "/studio/invitation"):
        assert "has ended" in joined(mallory, path)
    assert not college.tenant.memberships.filter(user=account).exists()
    assert not EmailAddress.objects.get(user=account).verified
    boss, _ = signs_up()  # The same address again: the mail is theirs.
    assert "You are a member" in joined(boss, link)


def test_a_link_that_is_passed_on_leaves_it_unconfirmed(college, by_hand):
    boss, account = signs_up()
    assert "You are a member" in joined(boss, by_hand())
    assert not EmailAddress.objects.get(user=account).verified


def test_sent_again_by_hand_a_mailed_invitation_confirms_nothing(
    college, browser, url, by_mail, settings
):
    by_mail()
    settings.EMAIL_URL = ""
    invitation = Invitation.objects.get()
    page = browser.send(f"{url}/invitations/{invitation.pk}/resend").text
    boss, account = signs_up()
    joined(boss, f"/invitations/{LINK.search(page)[1]}")
    assert college.tenant.memberships.filter(user=account).exists()
    assert not EmailAddress.objects.get(user=account).verified


def test_what_another_account_has_confirmed_is_not_confirmed_twice(college, by_mail):
    confirmed("boss")
    link = by_mail()
    # Before the other account had confirmed it.
    account = person("mallory")
    EmailAddressFactory(user=account, email=BOSS, verified=False)
    page = joined(browser_of(account), link)
    assert "Sign in with that one" in page
    assert not college.tenant.memberships.filter(user=account).exists()
    assert Invitation.objects.exists()


def test_who_joins_has_no_unconfirmed_address_of_a_member(college, by_hand):
    MembershipFactory(tenant=college.tenant, user=confirmed("boss"))
    link = by_hand("else@x.example")
    account = person("mallory")
    User.objects.filter(pk=account.pk).update(email=BOSS.title())
    EmailAddressFactory(user=account, email="else@x.example", verified=False)
    page = joined(browser_of(account), link)
    assert "Another member of the organization uses" in page
    assert not college.tenant.memberships.filter(user=account).exists()
    with pytest.raises(Exception) as refused:
        account.refresh_from_db()
        members.add_member(college.tenant, account, Role.VIEWER, by=audit.SYSTEM)
    assert refused.value.code == "address_in_use"


def test_who_takes_it_keeps_its_owner_not_out(college, by_mail):
    account = person("mallory")
    User.objects.filter(pk=account.pk).update(email=BOSS)
    MembershipFactory(tenant=college.tenant, user=account)
    link = by_mail()
    boss, owner = signs_up()
    assert "You are a member" in joined(boss, link)
    assert Membership.objects.get(user=owner).name == BOSS


def test_a_member_adds_no_address_of_another_member(college, viewer, fay):
    page = viewer.post(
        "/accounts/email/", {"email": "Fay@faber.example", "action_add": ""}
    )
    assert "Another member of one of your organizations uses this address" in page.text
    assert not EmailAddress.objects.filter(
        user__username="vic", email=fay.email
    ).exists()
    viewer.post("/accounts/email/", {"email": "vic@home.example", "action_add": ""})
    assert EmailAddress.objects.filter(email="vic@home.example").exists()


def test_an_address_that_was_added_before_joining_is_refused_too(college, by_hand):
    MembershipFactory(tenant=college.tenant, user=confirmed("boss"))
    link = by_hand("else@x.example")
    mallory, account = signs_up("else@x.example")
    mallory.post("/accounts/email/", {"email": BOSS, "action_add": ""})
    assert EmailAddress.objects.filter(user=account, email=BOSS, verified=False)
    page = joined(mallory, link)
    assert "Another member of the organization uses" in page
    assert not college.tenant.memberships.filter(user=account).exists()
