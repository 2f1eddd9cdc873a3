"""Offers and requests by link, with an agent elsewhere that may have no address."""

import json

import pytest
from django.conf import settings
from django.db import connection

from connections.didcomm import formats, message, service
from connections.didcomm.formats import attachment_of, format_of
from connections.models import Connection
from connections.protocols import out_of_band
from credentials.issue_credential import messages as issuing
from credentials.models import CredentialDefinition
from tests.support import queues
from tests.support.outside_agent import NEW, OLD, Agent
from tests.support.outside_exchanges import LINK_SECRET, ledger_object, ledger_schema
from verifications.models import Verification
from verifications.present_proof import messages as proving
from wallets import anoncreds
from wallets.anoncreds import SubProof

VALUES = {"name": "Ann", "level": "7"}
POLICY = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}
FORMS = [{}, {"protocol": "out-of-band"}]


@pytest.fixture(params=[NEW, OLD], ids=["didcomm.org", "did:sov"])
def pocket(request, db):
    """A phone without an endpoint."""
    return Agent(request.param)


@pytest.fixture(params=FORMS, ids=["d_m", "oob"])
def form(request):
    return request.param


def open_shared_message(pocket, url):
    """The shared message, as a phone gets it by the link."""
    path = url.removeprefix(settings.PUBLIC_URL)
    body = pocket.client.get(path, headers={"Accept": "application/json"}).json()
    shared = out_of_band.unwrap_request(message.read(body), None)
    pocket.their_key = service.read_service(shared).verkey
    return shared


def offer_by_link(faber, form, is_automatic=True):
    definition = faber.defines("name", "level")["definitionId"]
    body = {"definitionId": definition, "credentialValues": VALUES}
    return faber.post(
        "/credentials",
        body | {"automaticIssuance": is_automatic} | form,
    )


def request_for(pocket, client, shared):
    """The phone's request-credential, and what it needs to read the credential."""
    offer, wire = (
        attachment_of(shared, formats.OFFER),
        format_of(shared)._replace(prefix=pocket.prefix),
    )
    definition = ledger_object(client, "credential-definitions", offer["cred_def_id"])
    request, metadata = anoncreds.create_request(
        offer, definition, LINK_SECRET, pocket.party.did
    )
    return issuing.build_request(request, shared.thread_id, wire), (
        metadata,
        definition,
    )


def credential_in_last_message(pocket, keys):
    """The credential in the phone's last message."""
    metadata, definition = keys
    issued = pocket.inbox[-1]
    assert issued.type.endswith("/issue-credential") and issued.prefix == pocket.prefix
    credential = attachment_of(issued, formats.CREDENTIAL)
    return anoncreds.process_credential(credential, metadata, LINK_SECRET, definition)


def test_a_phone_without_an_address_gets_its_credential_in_the_answer(
    faber, pocket, client, form
):
    made = offer_by_link(faber, form)
    body, keys = request_for(
        pocket, client, open_shared_message(pocket, made["offerUrl"])
    )
    answer = pocket.asks(body)
    assert (answer.status_code, answer["Content-Type"]) == (
        200,
        "application/ssi-agent-wire",
    )
    assert credential_in_last_message(pocket, keys)["values"]["name"]["raw"] == "Ann"
    assert faber.get(f"/credentials/{made['credentialId']}")["state"] == "Issued"


@pytest.mark.parametrize("is_new", [False, True], ids=["same id", "new id"])
def test_without_automatic_issuance_the_credential_waits(
    faber, pocket, client, form, is_new
):
    made = offer_by_link(faber, form, is_automatic=False)
    body, keys = request_for(
        pocket, client, open_shared_message(pocket, made["offerUrl"])
    )
    again = body | ({"@id": pocket.build("x/1.0/y")["@id"]} if is_new else {})
    assert [pocket.asks(one).status_code for one in (body, again)] == [202, 202]
    faber.put(f"/credentials/{made['credentialId']}")
    assert pocket.asks(again).status_code == 200
    assert credential_in_last_message(pocket, keys)["values"]["level"]["raw"] == "7"


def test_a_phone_that_lost_the_answer_gets_it_again(faber, pocket, client, form):
    made = offer_by_link(faber, form)
    body, keys = request_for(
        pocket, client, open_shared_message(pocket, made["offerUrl"])
    )
    first, second = (pocket.asks(body).content for _ in range(2))
    assert first == second and credential_in_last_message(pocket, keys)


def test_a_second_phone_is_told_nothing(faber, pocket, client, form):
    made = offer_by_link(faber, form)
    other = Agent()
    open_shared_message(other, made["offerUrl"])
    shared = open_shared_message(pocket, made["offerUrl"])
    pocket.asks(request_for(pocket, client, shared)[0])
    assert other.asks(request_for(other, client, shared)[0]).status_code == 202
    assert other.inbox == []


def test_a_phone_without_an_address_proves_and_gets_the_verdict(
    faber, pocket, client, form
):
    body, keys = request_for(
        pocket,
        client,
        open_shared_message(pocket, offer_by_link(faber, {})["offerUrl"]),
    )
    pocket.asks(body)
    credential = credential_in_last_message(pocket, keys)
    asked = faber.post("/verifications/policy", POLICY | form)
    shared = open_shared_message(pocket, asked["verificationRequestUrl"])
    answer = pocket.asks(build_presentation(pocket, client, shared, credential))
    assert answer.status_code == 200 and pocket.inbox[-1].type.endswith("/ack")
    result = faber.get(f"/verifications/{asked['verificationId']}")
    assert (result["state"], result["isValid"]) == ("Accepted", True)


def build_presentation(pocket, client, shared, credential):
    request = attachment_of(shared, formats.PROOF_REQUEST)
    [referent] = request["requested_attributes"]
    schema_id, definition_id = credential["schema_id"], credential["cred_def_id"]
    made = anoncreds.create_presentation(
        request,
        [SubProof(credential, {referent: True}, [])],
        {},
        LINK_SECRET,
        {schema_id: ledger_schema(client, schema_id)},
        {
            definition_id: ledger_object(
                client, "credential-definitions", definition_id
            )
        },
    )
    wire = format_of(shared)._replace(prefix=pocket.prefix)
    return proving.build_presentation(made, shared.thread_id, wire)


def test_a_presentation_of_nobody_is_taken_too(faber, pocket, client):
    """Some wallets pack it without a sender: then the verdict goes nowhere."""
    body, keys = request_for(
        pocket,
        client,
        open_shared_message(pocket, offer_by_link(faber, {})["offerUrl"]),
    )
    pocket.asks(body)
    asked = faber.post("/verifications/policy", POLICY)
    shared = open_shared_message(pocket, asked["verificationRequestUrl"])
    pocket.says(
        build_presentation(
            pocket, client, shared, credential_in_last_message(pocket, keys)
        ),
        anonymous=True,
    )
    assert faber.get(f"/verifications/{asked['verificationId']}")["isValid"] is True


@pytest.fixture
def definition(faber):
    made = faber.defines("name", "level")["definitionId"]
    return CredentialDefinition.objects.get(definition_id=made)


@pytest.mark.parametrize("is_anonymous", [False, True], ids=["authcrypt", "anoncrypt"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_alice_gets_a_credential_in_the_answer_of_another_agent(
    acme, definition, phone, version, is_anonymous
):
    offer, wire = (
        definition.create_offer(),
        formats.MessageFormat(phone.prefix, version),
    )
    body = issuing.build_offer(offer, ["name", "level"], VALUES, wire)
    alice = acme.hosts("Alice")

    def issue(data):
        Agent.receives(phone, data)
        asked = phone.inbox[-1]
        if asked.type.endswith("/request-credential"):
            request = attachment_of(asked, formats.REQUEST)
            issued = definition.sign_credential(offer, request, VALUES)
            back = service.read_service(asked).verkey
            answer = issuing.build_issue(issued, asked.thread_id, wire)
            phone.answers = phone.pack(answer, back, is_anonymous)
            connection.close()  # that of the server's thread

    phone.receives = issue
    given = json.dumps(body | {"~service": service.write_service(phone.party)})
    taken = alice.put_form("/credentials/fromData", credentialData=given)
    assert taken["state"] == "Requested"
    queues.sweep()
    assert alice.newest("credentials")["state"] == "Issued"
    request = next(
        one for one in phone.inbox if one.type.endswith("/request-credential")
    )
    assert request.return_route == ("all", "")


def test_alice_answers_an_out_of_band_request_of_another_agent(
    acme,
    definition,
    phone,
):
    alice = acme.hosts("Alice")
    asked = proving.build_request(
        {
            "name": "P",
            "version": "1.0",
            "nonce": anoncreds.generate_nonce(),
            "requested_attributes": {"a": {"name": "name"}},
            "requested_predicates": {},
        },
        formats.MessageFormat(phone.prefix, "2.0"),
    )
    invitation = out_of_band.build_invitation(
        "invitation-1", "Shop", "", phone.party, ()
    )
    given = json.dumps(out_of_band.with_attachment(invitation, asked))
    alice.put_form("/verifications/fromData/autoSelect", verificationData=given)
    queues.sweep()
    shown = phone.newest("present-proof/2.0/presentation")
    assert shown.parent_id == "invitation-1" and shown.thread_id == asked["@id"]
    phone.their_key = service.read_service(shown).verkey
    phone.says(phone.build("present-proof/2.0/ack", asked["@id"], status="OK"))
    assert Verification.objects.get().is_valid is True
    assert Connection.objects.filter(connectionless=False).count() == 0
