"""An organization is renamed and deleted in the studio."""

import pytest
from allauth.account.models import EmailAddress

from tenants.models import AuditEntry, Tenant


def text(response):
    return response.content.decode()


def test_the_name_and_the_logo_are_changed(browser, college, url):
    logo = "https://faber.example/logo.png"
    browser.send(f"{url}/settings", name="Faber University", image_url=logo)
    tenant = Tenant.objects.get()
    assert (tenant.name, tenant.image_url) == ("Faber University", logo)
    browser.send(f"{url}/settings", image_url="")
    tenant.refresh_from_db()
    assert (tenant.name, tenant.image_url) == ("Faber University", "")


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", ""), ("name", " "), ("name", "x" * 201), ("image_url", "http://x.y/z")],
)
def test_a_wrong_name_or_logo_is_refused_beside_its_field(
    browser, college, url, field, value
):
    page = text(browser.send(f"{url}/settings", **{field: value}))
    assert f'id="id_{field}_error"' in page
    assert "<bdi>Faber College</bdi>" in page
    assert Tenant.objects.get().name == "Faber College"


def test_an_organization_is_deleted_after_its_name_is_typed(browser, college, url):
    assert f"{url}/delete" in text(browser.get(f"{url}/settings"))
    page = browser.get(f"{url}/delete")
    assert page.status_code == 200 and Tenant.objects.exists()
    wrong = browser.send(f"{url}/delete", typed_name="faber college")
    assert "This is not the name of the organization." in text(wrong)
    assert Tenant.objects.exists()
    done = browser.send(f"{url}/delete", typed_name="Faber College")
    assert done["Location"] == "/studio/"
    assert not Tenant.objects.exists()
    assert browser.get(url).status_code == 404
    entry = AuditEntry.objects.get(action="organization.deleted")
    assert entry.tenant_id == college.tenant.pk
    assert entry.details == {"name": "Faber College"}


def test_others_delete_nothing(developer, viewer, stranger, college, url):
    form = {"typed_name": "Faber College"}
    statuses = [
        person.send(f"{url}/delete", **form).status_code
        for person in (developer, viewer, stranger)
    ]
    assert statuses == [403, 403, 404]
    assert Tenant.objects.exists()
    assert f"{url}/delete" not in text(developer.get(f"{url}/settings"))


def test_an_organization_needs_a_confirmed_address_where_that_is_asked(
    browser, fay, settings
):
    settings.STUDIO_VERIFY_EMAIL = True
    form = {"name": "Faber", "network_id": "local"}
    address = EmailAddress.objects.create(user=fay, email=fay.email)
    refused = browser.send("/studio/organizations/new", **form)
    assert refused["Location"] == "/accounts/email/"
    assert browser.get("/studio/organizations/new").status_code == 302
    assert not Tenant.objects.exists()
    EmailAddress.objects.filter(pk=address.pk).update(verified=True)
    browser.send("/studio/organizations/new", **form)
    assert Tenant.objects.get().name == "Faber"
