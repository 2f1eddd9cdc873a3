"""Members of an organization: roles, invitations, leaving."""

import re
from datetime import timedelta
from functools import partial
from smtplib import SMTPServerDisconnected
from unittest import mock

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.utils import timezone

from agency.studio import members as pages_of_members
from agency.studio.invitations import TERMINAL
from core.errors import Conflict
from tenants import audit, members, vault
from tenants.lifecycle import deletion
from tenants.lifecycle.provisioning import create_organization
from tenants.models import AuditEntry, Invitation, Membership, Role, Tenant
from tests.agency.studio.conftest import browser_of, browser_with, person
from tests.factories import EmailAddressFactory, MembershipFactory
from tests.support.pages import Browser
from tests.support.races import at_once

LINK = re.compile(r"http\S+/invitations/([\w-]+)")


@pytest.fixture(autouse=True)
def mail_server(settings):
    settings.EMAIL_URL = "smtp://mail.example"


@pytest.fixture
def invite(browser, url):
    """Invites an address by the form. Returns the path of the link in the mail."""

    def send(email="ada@faber.example", role="developer"):
        assert browser.send(f"{url}/members/invite", email=email, role=role)
        return link_in(mail.outbox[-1])

    return send


def link_in(message):
    return f"/invitations/{LINK.search(message.body)[1]}"


def roles_in(tenant):
    rows = tenant.memberships.values_list("user__username", "role")
    return dict(rows.order_by("pk"))


def join(browser, link):
    browser.get(link)
    return browser.post("/studio/invitation")


def test_somebody_with_an_account_joins_by_the_mail(college, invite):
    ada = browser_of(person("ada"))
    link = invite()
    opened = ada.get(link)
    assert opened["Location"] == "/studio/invitation"
    page = ada.get("/studio/invitation").text
    assert "Faber College" in page and "Developer" in page and "Join" in page
    assert Membership.objects.count() == 1  # a look changes nothing
    joined = ada.post("/studio/invitation", follow=True)
    assert "You are a member of Faber College now." in joined.text
    assert roles_in(college.tenant) == {"fay": "owner", "ada": "developer"}
    assert not Invitation.objects.exists()


def test_the_mail_is_text_and_html_in_our_words(invite, settings):
    link = invite()
    [message] = mail.outbox
    [(html, kind)] = message.alternatives
    assert message.to == ["ada@faber.example"]
    assert message.subject == "Agency: Invitation to Faber College"
    assert kind == "text/html"
    for part in (message.body, html):
        assert f"{settings.PUBLIC_URL}{link}" in part
        assert "fay@faber.example" in part
        assert "72 hours" in part


def test_names_cannot_change_the_mail(college, invite):
    college.tenant.name = "Faber\r\nBcc: all@x.example https://x.example <b>C</b>"
    college.tenant.save()
    invite()
    [message] = mail.outbox
    assert "\n" not in message.subject
    assert message.recipients() == ["ada@faber.example"]
    assert "<b>" not in message.alternatives[0][0]
    for part in (message.subject, message.body, message.alternatives[0][0]):
        assert "Faber Bcc: all" in part and "x.example" not in part


def test_somebody_new_signs_up_with_the_invitation(college, invite, settings):
    settings.STUDIO_SIGN_UP = False
    link = invite()
    ada = Browser()
    ada.get(link)
    page = ada.get("/studio/invitation").text
    assert "/accounts/signup/?next=/studio/invitation" in page
    form = {"email": "ada@faber.example", "password1": "a long battery 1"}
    signed_up = ada.post("/accounts/signup/", form | {"next": "/studio/invitation"})
    assert signed_up["Location"] == "/studio/invitation"
    ada.post("/studio/invitation")
    assert set(roles_in(college.tenant).values()) == {"owner", "developer"}


def test_sign_up_closed_who_was_invited_creates_nothing(college, browser, settings):
    settings.STUDIO_SIGN_UP = False
    theirs, path = browser_with("owner", college.tenant), "/studio/organizations/new"
    for page in (theirs.get(path), theirs.send(path, name="Mine", network_id="local")):
        assert page.status_code == 403
        assert "sign_up_closed" in page.text
    assert Tenant.objects.count() == 1
    assert path not in theirs.get("/studio/?all").text
    # Fay has created one before.
    assert path in browser.get("/studio/?all").text
    assert browser.get(path).status_code == 200


def test_where_sign_up_is_closed_staff_and_who_may_create_organizations(db, settings):
    settings.STUDIO_SIGN_UP = False
    sue, ada = person("sue"), person("ada")
    type(sue).objects.filter(pk=sue.pk).update(is_staff=True)
    ada.user_permissions.add(Permission.objects.get(codename="add_tenant"))
    for one in (sue, ada):
        page = browser_of(one).get("/studio/", follow=True)
        assert page.status_code == 200 and "New organization" in page.text, one


def test_an_address_to_be_confirmed_counts_when_it_is(college, invite, settings):
    settings.STUDIO_VERIFY_EMAIL = True
    ada = person("ada")
    browser, link = browser_of(ada), invite()
    join(browser, link)
    assert roles_in(college.tenant) == {"fay": "owner"}
    EmailAddressFactory(user=ada)
    join(browser, link)
    assert roles_in(college.tenant) == {"fay": "owner", "ada": "developer"}


def test_an_invitation_is_for_its_address_only(college, invite):
    known = Session.objects.count()
    assert Browser().get("/invitations/any-text")["Location"] == "/studio/invitation"
    assert Session.objects.count() == known, "a link that opens nothing stores nothing"
    eve, link = browser_of(person("eve")), invite()
    answer = join(eve, link)
    page = eve.get(answer["Location"]).text
    assert "This invitation is for ada@faber.example" in page
    assert "Join</button>" not in page
    assert roles_in(college.tenant) == {"fay": "owner"}


def test_sign_up_closed_an_invitation_makes_one_account(invite, settings):
    settings.STUDIO_SIGN_UP = False
    eve, link = Browser(), invite()
    eve.get(link)
    form = {"password1": "a long battery 1"}
    page = eve.post("/accounts/signup/", form | {"email": "eve@x.example"}).text
    assert "with the address that was invited: ada@faber.example." in page
    assert User.objects.count() == 1
    eve.post("/accounts/signup/", form | {"email": "Ada@faber.example"})
    assert User.objects.count() == 2


def test_an_invitation_works_once(college, invite):
    ada, link = browser_of(person("ada")), invite()
    join(ada, link)
    Membership.objects.get(user__username="ada").delete()
    join(ada, link)
    assert roles_in(college.tenant) == {"fay": "owner"}
    assert ada.get("/studio/invitation").status_code == 404


def test_an_invitation_ends_in_72_hours_or_withdrawn(browser, college, invite, url):
    ada, link = browser_of(person("ada")), invite()
    row = Invitation.objects.get()
    left = row.expires_at - timezone.now()
    assert abs(left - timedelta(hours=72)) < timedelta(minutes=1)
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    join(ada, link)
    assert "has ended" in ada.get("/studio/invitation").text
    Invitation.objects.update(expires_at=row.expires_at)
    browser.post(f"{url}/invitations/{row.pk}/withdraw")
    join(ada, link)
    assert roles_in(college.tenant) == {"fay": "owner"}


def test_sent_again_only_the_new_link_works(browser, college, invite, url):
    ada, old = browser_of(person("ada")), invite()
    Invitation.objects.update(expires_at=timezone.now() - timedelta(days=1))
    row = Invitation.objects.get()
    browser.send(f"{url}/invitations/{row.pk}/resend")
    new = link_in(mail.outbox[-1])
    assert new != old and len(mail.outbox) == 2
    join(ada, old)
    assert roles_in(college.tenant) == {"fay": "owner"}
    join(ada, new)
    assert roles_in(college.tenant) == {"fay": "owner", "ada": "developer"}


def test_the_token_is_stored_nowhere(invite, django_user_model):
    ada, link = browser_of(person("ada")), invite()
    token = link.rpartition("/")[2]
    ada.get(link)
    stored = [*Invitation.objects.values(), *AuditEntry.objects.values()]
    assert token not in str(stored) + str(dict(ada.session))
    assert token not in ada.get("/studio/invitation").text


def test_without_mail_the_link_is_shown_once(browser, college, url, settings):
    settings.EMAIL_URL = ""
    form = {"email": "ada@faber.example", "role": "viewer", "form_token": "1"}
    shown = browser.post(f"{url}/members/invite", form).text
    assert LINK.search(shown) and not mail.outbox
    assert not LINK.search(browser.post(f"{url}/members/invite", form).text)
    assert not LINK.search(browser.get(f"{url}/members").text)
    join(browser_of(person("ada")), f"/invitations/{LINK.search(shown)[1]}")
    assert roles_in(college.tenant) == {"fay": "owner", "ada": "viewer"}


def test_where_mails_are_printed_who_invites_sees_the_link(
    browser, college, url, settings, capsys
):
    settings.EMAIL_BACKEND = TERMINAL
    form = {"email": "ada@faber.example", "role": "viewer"}
    shown = browser.send(f"{url}/members/invite", **form).text
    assert LINK.search(shown)[0] in capsys.readouterr().out
    assert "printed in the terminal" in shown
    assert not LINK.search(browser.get(f"{url}/members").text)
    again = f"{url}/invitations/{Invitation.objects.get().pk}/resend"
    shown = browser.send(again).text
    join(browser_of(person("ada")), f"/invitations/{LINK.search(shown)[1]}")
    assert roles_in(college.tenant) == {"fay": "owner", "ada": "viewer"}


@pytest.mark.parametrize("backend", ["smtp", "locmem", "dummy", "filebased"], ids=str)
def test_where_mails_leave_nobody_sees_the_link(
    browser, url, settings, monkeypatch, backend
):
    monkeypatch.setattr("agency.studio.invitations.send_mail", mock.Mock())
    settings.EMAIL_BACKEND = f"django.core.mail.backends.{backend}.EmailBackend"
    form = {"email": "ada@faber.example", "role": "viewer", "form_token": "1"}
    shown = browser.post(f"{url}/members/invite", form, follow=True).text
    assert "The invitation is sent to ada@faber.example." in shown
    assert not LINK.search(shown)


def test_a_mail_that_is_not_sent_can_be_sent_again(browser, url, monkeypatch):
    fail = mock.Mock(side_effect=SMTPServerDisconnected)
    monkeypatch.setattr(EmailBackend, "send_messages", fail)
    form = {"email": "ada@faber.example", "role": "viewer", "form_token": "1"}
    sent = browser.post(f"{url}/members/invite", form, follow=True).text
    assert "the mail could not be sent" in sent and "Send again" in sent


WRONG = [
    ("fay@faber.example", "viewer", "is a member already"),
    ("FAY@faber.example", "viewer", "is a member already"),
    ("bob@faber.example", "viewer", "is invited already"),
    ("no address", "viewer", "Enter a valid email address"),
    ("ada@faber.example", "king", "Select a valid choice"),
]


def test_a_wrong_invitation_is_refused_beside_its_field(browser, invite, url):
    invite("bob@faber.example")
    for email, role, message in WRONG:
        page = browser.send(f"{url}/members/invite", email=email, role=role).text
        assert message in page and 'class="errorlist"' in page, email
    assert Invitation.objects.count() == 1


LIMITS = [
    (members, "MAX_INVITATIONS"),
    (pages_of_members, "INVITATIONS_PER_MINUTE"),
    (pages_of_members, "INVITATIONS_PER_DAY"),
]


@pytest.mark.parametrize("module, limit", LIMITS)
def test_an_organizations_mails_are_limited(browser, url, monkeypatch, module, limit):
    monkeypatch.setattr(module, limit, 2)
    for name in ("a", "b", "c"):
        form = {"email": f"{name}@x.example", "role": "viewer"}
        page = browser.send(f"{url}/members/invite", **form).text
    assert ("which is the most" in page) == (module is members)
    assert len(mail.outbox) == Invitation.objects.count() == 2


def test_mails_to_an_address_are_limited_everywhere(browser, url, fay, monkeypatch):
    monkeypatch.setattr(pages_of_members, "INVITATIONS_PER_ADDRESS", 2)
    other = create_organization("Other College", owner=fay).tenant
    form = {"email": "Ada@x.example", "role": "viewer"}
    browser.send(f"{url}/members/invite", **form)
    invitation = Invitation.objects.get()
    for _ in range(2):
        browser.send(f"{url}/invitations/{invitation.pk}/resend")
    elsewhere = f"/studio/organizations/{other.pk}/members/invite"
    assert "That is too fast" in browser.send(elsewhere, **form).text
    assert len(mail.outbox) == 2
    form |= {"email": "bob@x.example"}
    assert "That is too fast" not in browser.send(elsewhere, **form).text


def test_members_are_limited(college, invite, monkeypatch):
    ada, link = browser_of(person("ada")), invite()
    monkeypatch.setattr(members, "MAX_MEMBERS", 1)
    assert "which is the most" in ada.get(join(ada, link)["Location"]).text
    assert roles_in(college.tenant) == {"fay": "owner"}


def test_an_owner_changes_roles_and_removes_members(browser, college, url, viewer):
    vic = f"{url}/members/{Membership.objects.get(user__username='vic').pk}"
    for role in ("operator", "king"):
        browser.post(f"{vic}/role", {"role": role})
        assert roles_in(college.tenant) == {"fay": "owner", "vic": "operator"}
    assert "vic@faber.example" in browser.get(f"{vic}/remove").text
    assert roles_in(college.tenant) == {"fay": "owner", "vic": "operator"}
    browser.post(f"{vic}/remove")
    assert roles_in(college.tenant) == {"fay": "owner"}
    assert viewer.get(url).status_code == 404


def test_everybody_may_leave_but_the_last_owner(browser, college, url, viewer, fay):
    own = f"{url}/members/{Membership.objects.get(user=fay).pk}"
    for path in (f"{url}/leave", f"{own}/role", f"{own}/remove"):
        form = {"role": "viewer", "confirmed": "yes"}
        answer = browser.post(path, form, follow=True)
        assert "Make somebody else an owner first" in answer.text
        assert roles_in(college.tenant) == {"fay": "owner", "vic": "viewer"}
    assert "Leave" in viewer.get(f"{url}/leave").text
    viewer.post(f"{url}/leave")
    assert roles_in(college.tenant) == {"fay": "owner"}


def test_a_disabled_person_is_no_other_owner(browser, college, url):
    zoe = person("zoe")
    members.add_member(college.tenant, zoe, Role.OWNER, by=audit.SYSTEM)
    type(zoe).objects.filter(pk=zoe.pk).update(is_active=False)
    browser.post(f"{url}/leave")
    assert roles_in(college.tenant) == {"fay": "owner", "zoe": "owner"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("act", ["leave", "step down"])
def test_of_two_owners_who_go_at_once_one_stays(college, fay, act):
    by = {"by": audit.SYSTEM}
    zoe = members.add_member(college.tenant, person("zoe"), Role.OWNER, **by)
    goes = partial(members.remove_member, **by)
    if act == "step down":
        goes = partial(members.change_role, role=Role.VIEWER, **by)
    both = [Membership.objects.get(user=fay), zoe]
    results = at_once(*(partial(goes, member) for member in both))
    assert [type(one) for one in results if one] == [Conflict]
    assert college.tenant.memberships.filter(role="owner").count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_invitation_that_is_used_twice_at_once_makes_one_member(college, rf, fay):
    request = rf.post("/")
    request.user = fay
    _, token = members.invite_person(
        college.tenant, "ada@faber.example", Role.VIEWER, by=request
    )
    ada = person("ada")

    known = {"emails": {ada.email}, "by": audit.SYSTEM}
    accept = partial(members.accept_invitation, vault.keyed_digest(token), ada, **known)
    results = at_once(accept, accept)
    assert [getattr(one, "code", "") for one in results].count("invitation_ended") == 1
    assert college.tenant.memberships.filter(user=ada).count() == 1


def test_all_of_it_is_logged(browser, college, invite, url, fay):
    ada, _ = person("ada"), invite()
    row = Invitation.objects.get()
    browser.send(f"{url}/invitations/{row.pk}/resend")
    join(browser_of(ada), link_in(mail.outbox[-1]))
    member = Membership.objects.get(user=ada)
    browser.post(f"{url}/members/{member.pk}/role", {"role": "viewer"})
    browser.post(f"{url}/members/{member.pk}/remove")
    invite("bob@faber.example")
    row = Invitation.objects.get()
    browser.post(f"{url}/invitations/{row.pk}/withdraw")
    entries = AuditEntry.objects.filter(tenant=college.tenant).order_by("pk")
    assert [entry.action for entry in entries] == [
        "member.invited", "invitation.resent", "member.joined", "member.role_changed",
        "member.removed", "member.invited", "invitation.withdrawn",
    ]  # fmt: skip
    names = [entry.actor_name for entry in entries]
    assert names == [*2 * [fay.email], ada.email, *4 * [fay.email]]
    assert entries[3].details == {"person": ada.email, "role": ["developer", "viewer"]}


def test_an_invitation_that_a_member_uses_is_logged(college, invite):
    ada = person("ada")
    MembershipFactory(tenant=college.tenant, user=ada, role=Role.VIEWER)
    EmailAddressFactory(user=ada)
    EmailAddressFactory(user=ada, email="ada@home.example", primary=False)
    join(browser_of(ada), invite("ada@home.example", "owner"))
    assert roles_in(college.tenant) == {"fay": "owner", "ada": "viewer"}
    assert not Invitation.objects.exists()
    entry = AuditEntry.objects.get(action="invitation.used")
    used = (entry.actor_name, entry.details["person"])
    assert used == (ada.email, "ada@home.example")


@pytest.mark.parametrize("loss", ["remove", "role", "leave"])
def test_invitations_end_with_the_right_to_invite(browser, college, url, loss):
    his = browser_with("owner", college.tenant, "bob")
    member = Membership.objects.get(user__username="bob")
    his.send(f"{url}/members/invite", email="bob@home.example", role="owner")
    link = link_in(mail.outbox[-1])
    browser.send(f"{url}/members/invite", email="ada@faber.example", role="viewer")
    if loss == "leave":
        his.post(f"{url}/leave")
    else:
        form = {"role": "developer"} if loss == "role" else {}
        browser.post(f"{url}/members/{member.pk}/{loss}", form)
    assert [row.email for row in Invitation.objects.all()] == ["ada@faber.example"]
    assert Browser().get(link, follow=True).status_code == 404
    entry = AuditEntry.objects.get(action="invitation.withdrawn")
    by = "bob" if loss == "leave" else "fay"
    assert (entry.actor_name, entry.details["person"]) == (
        f"{by}@faber.example", "bob@home.example",
    )  # fmt: skip


def test_invitations_stay_for_a_month_and_with_their_owner(college, invite):
    invite()
    member = college.tenant.memberships.get()
    members.change_role(member, Role.OWNER, by=audit.SYSTEM)
    assert Invitation.objects.exists(), "who stays an owner keeps them"
    Invitation.objects.update(expires_at=timezone.now() - timedelta(days=29))
    assert members.delete_expired_invitations() == 0
    Invitation.objects.update(expires_at=timezone.now() - timedelta(days=31))
    assert members.delete_expired_invitations() == 1


def test_the_page_costs_the_same_whatever_its_invitations(
    browser, college, url, fay, django_assert_max_num_queries
):
    request = type("Request", (), {"user": fay, "META": {}, "path": "/"})
    for address in (f"i{number}@x.example" for number in range(13)):
        members.invite_person(college.tenant, address, Role.VIEWER, by=request)
    with django_assert_max_num_queries(12):
        assert "i12@x.example" in browser.get(f"{url}/members").text


def test_nobody_joins_an_organization_that_is_deleted_soon(college, invite, api):
    link = invite("ann@faber.example", "owner")
    ann = browser_of(person("ann"))
    api.delete(f"/tenants/{college.tenant.public_id}")
    page = ann.get(join(ann, link)["Location"]).text
    assert "about to be deleted" in page
    assert roles_in(college.tenant) == {"fay": "owner"}
    deletion.undo_deletion(college.tenant, audit.SYSTEM)
    join(ann, link)
    assert roles_in(college.tenant)["ann"] == "owner"
