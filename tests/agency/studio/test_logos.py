"""The logo of an organization: uploaded in the studio, shown by pages if it is here."""

from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from agency.studio import settings_page
from tenants.lifecycle.provisioning import change_organization
from tenants.models import Asset, AuditEntry, Tenant
from tests.agency.studio.conftest import read
from tests.support.pictures import picture, storage

__all__ = ["storage"]
ELSEWHERE = "https://faber.example/logo.png"


def upload(browser, url, data):
    file = SimpleUploadedFile("logo.png", data, "image/png")
    return browser.send(f"{url}/settings", logo=file)


def test_an_uploaded_logo_is_on_the_pages_and_in_invitations(browser, url, storage):
    assert 'enctype="multipart/form-data"' in read(browser, f"{url}/settings")
    assert upload(browser, url, picture()).status_code == 302
    [stored] = Asset.objects.all()
    assert Tenant.objects.get().image_url == stored.address
    assert f'src="/assets/{stored.name}"' in browser.get(url).text
    assert browser.get(f"/assets/{stored.name}").status_code == 200
    entry = AuditEntry.objects.filter(action="organization.changed").latest("pk")
    assert "image_url" in str(entry.details)
    # The settings are saved again with a logo of ours.
    saved = browser.send(f"{url}/settings", name="Faber", image_url=stored.address)
    assert saved.status_code == 302
    assert Tenant.objects.get().image_url == stored.address


def test_what_is_no_picture_is_refused_beside_its_field(browser, url, storage):
    page = upload(browser, url, b"no picture").text
    assert 'id="id_logo_error"' in page and "not a picture" in page
    assert not Asset.objects.exists() and not Tenant.objects.get().image_url


def test_a_logo_of_a_refused_form_is_not_stored(browser, url, storage, monkeypatch):
    def change_while_it_moves(tenant, *rest, **options):
        Tenant.objects.update(frozen_at=timezone.now())
        change_organization(tenant, *rest, **options)

    monkeypatch.setattr(settings_page, "change_organization", change_while_it_moves)
    page = upload(browser, url, picture())
    assert page.status_code == 503 and "organization_frozen" in page.text
    assert not Asset.objects.exists() and not Tenant.objects.get().image_url


def test_no_page_shows_a_picture_of_another_host(browser, url):
    Tenant.objects.update(image_url=ELSEWHERE)
    answer = browser.get(url)
    assert 'class="logo letter"' in answer.text
    assert f'src="{ELSEWHERE}"' not in answer.text
    assert "img-src 'self' data:" in answer["Content-Security-Policy"]


def test_only_names_of_pictures_are_paths_of_ours(settings):
    start = f"{settings.PUBLIC_URL}/assets/"
    assert Asset.path_of(f"{start}a_b-1.png") == "/assets/a_b-1.png"
    for name in ("../accounts/logout", "a.svg", "a.png?x=1", "a.png/x", ""):
        assert Asset.path_of(start + name) == ""
    assert Asset.path_of("https://other.example/assets/a.png") == ""
