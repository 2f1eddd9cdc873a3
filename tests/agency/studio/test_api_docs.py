"""The API docs of an organization have its own ids in the examples."""

import re

import pytest
from django.urls import reverse

from core.api.openapi import examples
from credentials.models import RevocationRegistry
from tenants.lifecycle.provisioning import create_organization
from tests.sandbox.people import simulates
from tests.support.people import Organization
from tests.support.steps import step
from tests.support.world import filled

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Alice", "year": "2021"}
POLICY = {"name": "P", "version": "1", "attributes": [{"policyName": "name"}]}


def ids_page(tenant):
    return reverse("studio:api_docs_ids", args=[tenant.pk])


@step
def school(faber):
    """Faber with an object of most kinds."""
    alice, definition = faber.hosts(), faber.defines("name", "year")
    alice.meets(faber)
    faber.post("/messages", {"connectionId": alice.known_as(faber), "text": "Hello"})
    alice.receives(faber, definition, VALUES)
    faber.offers(alice, definition, VALUES)
    faber.asks(alice, attributes=POLICY["attributes"])
    policy = faber.post("/verificationPolicies", POLICY)
    faber.post("/kiosks", {"name": "Desk", "policyId": policy["policyId"]})
    hook = faber.post("/webhooks", {"url": "https://office.example"})
    faber.post(f"/webhooks/{hook['id']}/example", {"messageType": "verification"})
    return faber


def test_each_own_id_is_found_by_the_api_at_the_place_of_its_example(browser, school):
    response = browser.get(ids_page(school.tenant))
    ids = response.json()
    names = re.findall(
        r"\w+_TO_(?:DELETE|END|REVOKE|DECLINE)\w*", " ".join(dir(examples))
    )
    destructive = {getattr(examples, name) for name in names}
    assert destructive and not destructive & set(ids)
    text = response.text
    assert school.made.access_token not in text and "http" not in text
    operations = [
        "/connections/{connectionId}", "/credentials/{credentialId}",
        "/verifications/{verificationId}", "/verificationPolicies/{policyId}",
        "/definitions/credentials/{definitionId}", "/webhooks/{webhookId}",
        "/webhooks/{webhookId}/deliveries/{deliveryId}", "/messages/{messageId}",
        "/tenants/{tenantId}", "/api/{walletId}/connections/{connectionId}",
        "/api/{walletId}/credentials/{credentialId}",
        "/api/{walletId}/verifications/{verificationId}",
    ]  # fmt: skip
    for path in operations:
        shown = {
            name: ids[examples.find_parameter_example(path, "", name)]
            for name in re.findall(r"{(\w+)}", path)
        }
        school.get(filled(path, shown))
    wallet = ids[examples.WALLET]
    offered = school.get(f"/api/{wallet}/credentials/{ids[examples.OFFER_TO_ACCEPT]}")
    assert offered["state"] == "Offered"


def test_any_simulated_holder_and_registry_are_filled_in(browser, fay, stored_keys):
    office = Organization("Office", owner=fay, is_test=True)
    holder = simulates(office)
    office.defines("name", "level", supportRevocation=True)
    office.defines("name", "year")  # the newest definition has no registry
    ids = browser.get(ids_page(office.tenant)).json()
    assert ids[examples.SIMULATED_HOLDER] == holder["holderId"]
    registry = RevocationRegistry.objects.get()
    assert ids[examples.REGISTRY] == registry.registry_id


def test_ids_are_those_of_the_page_for_its_members(client, browser, school, fay):
    other = create_organization("Other", owner=fay).tenant
    mine = browser.get(ids_page(school.tenant)).json()
    assert mine.pop("credentialValues").keys() == VALUES.keys()
    theirs = browser.get(ids_page(other)).json()
    assert not set(mine.values()) & set(theirs.values())
    assert theirs == {examples.TENANT: str(other.public_id)}, "it is empty"
    stranger = create_organization("Stranger").tenant
    assert client.get(ids_page(school.tenant)).status_code == 302
    assert browser.get(ids_page(stranger)).status_code == 404
    page = client.get("/docs").text
    assert 'data-examples="/docs/examples.json"' in page and "data-server" not in page
