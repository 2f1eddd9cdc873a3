"""Only public responses that never change may be cached."""

import pytest

from tests.factories import UserFactory
from tests.support.pages import Browser

pytestmark = pytest.mark.django_db(transaction=True)


def test_answers_of_the_apis_are_not_kept(faber):
    provider = {"Authorization": f"bearer {faber.made.provider_key}"}
    for answer in (
        faber.send("get", "/credentials"),
        faber.send("get", "/credentials/nowhere"),
        faber.hosts("Alice").send("get", "/credentials"),
        faber.send("post", "/connections", {}),
        faber.send(
            "get",
            f"/provider/v1/tenants/{faber.made.tenant.public_id}/keys",
            **provider,
        ),
        faber.client.get("/credentials"),
    ):
        assert answer["Cache-Control"] == "no-store"


def test_links_and_their_codes_are_not_kept(faber, client):
    invited = faber.get(f"/connections/{faber.invites()['connectionId']}")
    path = f"/i/{invited['invitationUrl'].rpartition('/')[2]}"
    for accept in ("text/html", "application/json", "*/*"):
        answer = client.get(path, headers={"Accept": accept})
        assert "no-store" in answer["Cache-Control"]
    for picture in (f"{path}/qr.svg", "/i/unknown/qr.svg"):
        assert client.get(picture)["Cache-Control"] == "no-store"


def test_pages_after_sign_in_are_not_kept():
    browser = Browser()
    browser.force_login(UserFactory(is_staff=True, is_superuser=True))
    pages = ("/studio/organizations/new", "/accounts/email/", "/admin/", "/nowhere")
    for path in pages:
        assert "no-store" in browser.get(path)["Cache-Control"], path


def test_public_objects_are_kept_for_ever(faber, client):
    definition = faber.defines("name", "year", supportRevocation=True)
    network = faber.tenant.network_id
    schemas = f"/ledger/{network}/schemas"
    kept = client.get(f"{schemas}/{definition['schemaId']}")["Cache-Control"]
    assert "immutable" in kept and "public" in kept
    assert client.get(f"{schemas}/unknown")["Cache-Control"] == "no-store"
