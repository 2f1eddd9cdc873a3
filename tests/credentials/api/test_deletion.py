"""Deleting records without revoking, and purging what is finished of a definition."""

from functools import partial

from connections.models import Connection
from tests.support.errors import assert_error, error_of
from tests.support.steps import step

VALUES = {"name": "Ann", "level": "7"}


@step
def alice(faber):
    return faber.hosts()


@step
def definition(faber):
    return faber.defines("name", "level")


def states(organization):
    return [one["state"] for one in organization.get("/credentials")]


def newest_id(organization):
    return organization.get("/credentials")[0]["credentialId"]


def test_a_deleted_issued_credential_stays_with_its_holder(faber, alice, definition):
    alice.receives(faber, definition, VALUES)
    assert faber.delete(f"/credentials/delete/{newest_id(faber)}") is None
    assert states(faber) == []
    assert states(alice) == ["Issued"]
    faber.asks(alice, attributes=[{"policyName": "name"}])
    alice.auto_selects()
    assert alice.newest("verifications")["isValid"] is True


def test_an_open_offer_is_withdrawn_and_takes_its_link_along(faber, alice, definition):
    faber.offers(alice, definition, VALUES)
    faber.delete(f"/credentials/delete/{newest_id(faber)}")
    assert (states(faber), states(alice)) == ([], ["Rejected"])
    body = {"definitionId": definition["definitionId"], "credentialValues": VALUES}
    made = faber.post("/credentials", body)
    faber.delete(f"/credentials/delete/{made['credentialId']}")
    assert not Connection.objects.filter(connectionless=True).exists()


def test_deleting_or_purging_twice_or_elsewhere_is_404(faber, acme, alice, definition):
    alice.receives(faber, definition, VALUES)
    path = f"/credentials/delete/{newest_id(faber)}"
    purge = f"/credentials/purge/{definition['definitionId']}"
    for call in (
        partial(acme.delete, path),
        partial(acme.delete, purge),
        partial(faber.delete, "/credentials/purge/nothing"),
        partial(faber.delete, "/credentials/delete"),  # the words are no ids
        partial(faber.delete, "/credentials/purge"),
    ):
        assert_error(error_of(call), 404, "not_found")
    assert states(faber) == ["Issued"]
    faber.delete(path)
    assert_error(error_of(faber.delete, path), 404, "not_found")


def test_a_purge_deletes_what_is_finished_of_one_definition(faber, alice, definition):
    other = faber.defines("name", "level")
    alice.receives(faber, definition, VALUES)
    alice.receives(faber, other, VALUES)
    faber.offers(alice, definition, VALUES)
    alice.post(f"/credentials/{alice.newest('credentials')['credentialId']}/decline")
    faber.offers(alice, definition, VALUES)
    assert faber.delete(f"/credentials/purge/{definition['definitionId']}") is None
    left = [(one["definitionId"], one["state"]) for one in faber.get("/credentials")]
    assert left == [
        (definition["definitionId"], "Offered"),
        (other["definitionId"], "Issued"),
    ]
    assert len(states(alice)) == 4


def test_a_purge_of_a_deleted_definition_takes_links_along(faber, alice, definition):
    body = {"definitionId": definition["definitionId"], "credentialValues": VALUES}
    made = faber.post("/credentials", body | {"automaticIssuance": True})
    alice.put_form("/credentials/fromData", credentialData=made["offerData"])
    faber.delete(f"/definitions/credentials/{definition['definitionId']}")
    faber.delete(f"/credentials/purge/{definition['definitionId']}")
    links = Connection.objects.filter(connectionless=True)
    assert not links.filter(wallet__is_organization=True).exists()
    assert (states(faber), states(alice)) == ([], ["Issued"])


def test_presentations_is_an_old_name_of_verifications(faber, alice):
    faber.asks(alice, attributes=[{"policyName": "name"}])
    connection = alice.newest("connections")["connectionId"]
    old = alice.get(f"/presentations/connection/{connection}")
    assert old == alice.get(f"/verifications/connection/{connection}") != []
