"""Only public responses that never change may be cached."""

import pytest

from tests.support.pages import Browser, pages

__all__ = ["pages"]
pytestmark = pytest.mark.django_db(transaction=True)


def cache_control_of(response):
    return response["Cache-Control"]


def test_answers_of_the_apis_are_not_kept(faber):
    alice = faber.hosts("Alice")
    alice.receives(
        faber,
        faber.defines("name", "year"),
        {"name": "Alice", "year": "1"},
    )
    made = faber.made
    assert cache_control_of(faber.send("get", "/credentials")) == "no-store"
    assert cache_control_of(faber.send("get", "/credentials/nowhere")) == "no-store"
    assert cache_control_of(alice.send("get", "/credentials")) == "no-store"
    assert cache_control_of(faber.send("post", "/connections", {})) == "no-store"
    provider = {"Authorization": f"bearer {made.provider_key}"}
    path = f"/provider/v1/tenants/{made.tenant.public_id}/keys"
    assert cache_control_of(faber.send("get", path, **provider)) == "no-store"
    assert cache_control_of(faber.client.get("/credentials")) == "no-store"


def test_links_and_their_codes_are_not_kept(faber, client):
    invited = faber.get(f"/connections/{faber.invites()['connectionId']}")
    path = f"/i/{invited['invitationUrl'].rpartition('/')[2]}"
    for accept in ("text/html", "application/json", "*/*"):
        assert "no-store" in cache_control_of(
            client.get(path, headers={"Accept": accept})
        )
    assert cache_control_of(client.get(f"{path}/qr.svg")) == "no-store"
    assert cache_control_of(client.get("/i/unknown/qr.svg")) == "no-store"


def test_pages_after_sign_in_are_not_kept(django_user_model, db):
    browser = Browser()
    browser.force_login(
        django_user_model.objects.create_superuser(
            "fay", "fay@faber.example", "correct horse"
        )
    )
    for path in (
        "/studio/organizations/new",
        "/accounts/email/",
        "/admin/",
        "/nowhere",
    ):
        assert "no-store" in cache_control_of(browser.get(path)), path


def test_public_objects_are_kept_for_ever(faber, client):
    definition = faber.defines("name", "year", supportRevocation=True)
    network = faber.tenant.network_id
    schema = client.get(f"/ledger/{network}/schemas/{definition['schemaId']}")
    assert "immutable" in cache_control_of(schema) and "public" in cache_control_of(
        schema
    )
    assert (
        cache_control_of(client.get(f"/ledger/{network}/schemas/unknown"))
        == "no-store"
    )
