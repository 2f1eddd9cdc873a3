"""The logo of an organization: uploaded in the studio, shown by pages if it is here."""

from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from organizations.provisioning import change_organization
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
    assert f'src="/assets/{stored.name}"' in browser.get(url).content.decode()
    assert browser.get(f"/assets/{stored.name}").status_code == 200
    entry = AuditEntry.objects.filter(action="organization.changed").latest("pk")
    assert "image_url" in str(entry.details)


def test_the_settings_are_saved_again_with_a_logo_of_ours(browser, url, storage):
    upload(browser, url, picture())
    address = Tenant.objects.get().image_url
    saved = browser.send(f"{url}/settings", name="Faber", image_url=address)
    assert saved.status_code == 302 and Tenant.objects.get().image_url == address


def test_what_is_no_picture_is_refused_beside_its_field(browser, url, storage):
    page = upload(browser, url, b"no picture").content.decode()
    assert 'id="id_logo_error"' in page and "not a picture" in page
    assert not Asset.objects.exists() and not Tenant.objects.get().image_url


def test_a_logo_is_not_stored_if_the_form_is_refused_otherwise(
    browser, url, storage, monkeypatch
):
    def change_while_it_moves(tenant, *rest, **options):
        Tenant.objects.update(frozen_at=timezone.now())
        change_organization(tenant, *rest, **options)

    module = "agency.studio.settings_page.change_organization"
    monkeypatch.setattr(module, change_while_it_moves)
    page = upload(browser, url, picture())
    assert page.status_code == 503 and "organization_frozen" in page.content.decode()
    assert not Asset.objects.exists() and not Tenant.objects.get().image_url


def test_no_page_shows_a_picture_of_another_host(browser, college, url):
    Tenant.objects.update(image_url=ELSEWHERE)
    answer = browser.get(url)
    assert 'class="logo letter"' in answer.content.decode()
    assert f'src="{ELSEWHERE}"' not in answer.content.decode()
    assert "img-src 'self' data:" in answer["Content-Security-Policy"]


def test_only_names_of_pictures_are_paths_of_ours(settings):
    start = f"{settings.PUBLIC_URL}/assets/"
    assert Asset.path_of(f"{start}a_b-1.png") == "/assets/a_b-1.png"
    for name in ("../accounts/logout", "a.svg", "a.png?x=1", "a.png/x", ""):
        assert Asset.path_of(start + name) == ""
    assert Asset.path_of("https://other.example/assets/a.png") == ""
