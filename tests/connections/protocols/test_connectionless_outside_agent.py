"""Offers and requests by link, with an agent elsewhere that may have no address."""

import json

import pytest
from django.conf import settings
from django.db import connection

from connections.didcomm import formats, message, service
from connections.didcomm.formats import attachment_of, format_of
from connections.didcomm.message import PreparedResults
from connections.models import Connection
from connections.protocols import out_of_band
from credentials import messages as issuing
from credentials.models import CredentialDefinition
from tests.support import queues
from tests.support.outside_agent import NEW, OLD, Agent
from tests.support.outside_exchanges import (
    LINK_SECRET,
    build_presentation,
    ledger_object,
)
from verifications import messages as proving
from verifications.models import Verification
from wallets import anoncreds

VALUES = {"name": "Ann", "level": "7"}
POLICY = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}


FORMS = [(NEW, {}), (OLD, {"protocol": "out-of-band"})]


@pytest.fixture(params=FORMS, ids=["didcomm.org d_m", "did:sov oob"])
def by_link(request, db):
    """A phone without an endpoint, and the form of the link that it gets."""
    prefix, form = request.param
    return Agent(prefix), form


@pytest.fixture
def pocket(by_link):
    return by_link[0]


@pytest.fixture
def form(by_link):
    return by_link[1]


def open_shared_message(pocket, url):
    """The shared message, as a phone gets it by the link."""
    path = url.removeprefix(settings.PUBLIC_URL)
    body = pocket.client.get(path, headers={"Accept": "application/json"}).json()
    shared = out_of_band.unwrap_request(message.read(body), None)
    pocket.their_key = service.read_service(shared).verkey
    return shared


def offer_by_link(faber, badge, form, is_automatic=True):
    body = {"definitionId": badge["definitionId"], "credentialValues": VALUES}
    return faber.post("/credentials", body | {"automaticIssuance": is_automatic} | form)


def answer_to(pocket, client, made):
    """The phone's request-credential, and what it needs to read the credential."""
    shared = open_shared_message(pocket, made["offerUrl"])
    offer = attachment_of(shared, formats.OFFER)
    wire = format_of(shared)._replace(prefix=pocket.prefix)
    definition = ledger_object(client, "credential-definitions", offer["cred_def_id"])
    request, metadata = anoncreds.create_request(
        offer, definition, LINK_SECRET, pocket.party.did
    )
    body = issuing.build_request(request, shared.thread_id, wire)
    return body, (metadata, definition)


def credential_in_last_message(pocket, keys):
    """The credential in the phone's last message."""
    metadata, definition = keys
    issued = pocket.inbox[-1]
    assert issued.type.endswith("/issue-credential") and issued.prefix == pocket.prefix
    credential = attachment_of(issued, formats.CREDENTIAL)
    return anoncreds.process_credential(credential, metadata, LINK_SECRET, definition)


def test_a_phone_gets_its_credential_in_the_answer(faber, badge, pocket, client, form):
    made, other = offer_by_link(faber, badge, form), Agent()
    theirs, _ = answer_to(other, client, made)
    body, keys = answer_to(pocket, client, made)
    answer, again = pocket.asks(body), pocket.asks(body)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/ssi-agent-wire"
    assert again.content == answer.content, "it may have been lost"
    assert credential_in_last_message(pocket, keys)["values"]["name"]["raw"] == "Ann"
    assert faber.get(f"/credentials/{made['credentialId']}")["state"] == "Issued"
    assert other.asks(theirs).status_code == 200
    [report] = other.inbox
    protocol = theirs["@type"].removeprefix(other.prefix).rpartition("/")[0]
    assert report.type == f"{protocol}/problem-report", "in its own version"
    assert report.body["description"]["code"] == "offer_taken"
    assert report.thread_id == theirs["~thread"]["thid"]


def test_who_cannot_have_opened_a_used_link_is_told_nothing(
    faber, badge, pocket, client, form
):
    made, other = offer_by_link(faber, badge, form), Agent()
    body, _ = answer_to(pocket, client, made)
    pocket.asks(body)
    other.their_key, thread = pocket.their_key, body["~thread"]["thid"]
    protocol = body["@type"].removeprefix(pocket.prefix).rpartition("/")[0]
    for said in (
        other.build(f"{protocol}/request-credential", "another-thread"),
        other.build(f"{protocol}/problem-report", thread),
        other.build(f"{protocol}/ack", thread),
    ):
        assert other.asks(said).status_code == 202, said
    assert other.asks(body, anonymous=True).status_code == 202
    assert other.inbox == []


@pytest.mark.parametrize("is_new", [False, True], ids=["same id", "new id"])
def test_unless_automatic_the_credential_waits(
    faber, badge, pocket, client, form, is_new
):
    made = offer_by_link(faber, badge, form, is_automatic=False)
    body, keys = answer_to(pocket, client, made)
    again = body | ({"@id": pocket.build("x/1.0/y")["@id"]} if is_new else {})
    assert [pocket.asks(one).status_code for one in (body, again)] == [202, 202]
    faber.put(f"/credentials/{made['credentialId']}")
    assert pocket.asks(again).status_code == 200
    assert credential_in_last_message(pocket, keys)["values"]["level"]["raw"] == "7"


@pytest.mark.parametrize("is_anonymous", [False, True])
def test_a_phone_proves_and_gets_a_verdict(
    faber, badge, pocket, client, form, is_anonymous
):
    """Some wallets pack it without a sender: then the verdict goes nowhere."""
    body, keys = answer_to(pocket, client, offer_by_link(faber, badge, {}))
    pocket.asks(body)
    credential = credential_in_last_message(pocket, keys)
    asked = faber.post("/verifications/policy", POLICY | form)
    shared = open_shared_message(pocket, asked["verificationRequestUrl"])
    request = attachment_of(shared, formats.PROOF_REQUEST)
    made = build_presentation(client, request, credential)
    wire = format_of(shared)._replace(prefix=pocket.prefix)
    shown = proving.build_presentation(made, shared.thread_id, wire)
    answer = pocket.asks(shown, anonymous=is_anonymous)
    queues.sweep()
    if not is_anonymous:
        assert answer.status_code == 200 and pocket.inbox[-1].type.endswith("/ack")
    result = faber.get(f"/verifications/{asked['verificationId']}")
    assert (result["state"], result["isValid"]) == ("Accepted", True)


@pytest.fixture
def definition(badge):
    return CredentialDefinition.objects.get(definition_id=badge["definitionId"])


@pytest.mark.parametrize("version, is_anonymous", [("1.0", True), ("2.0", False)])
def test_alice_gets_a_credential_in_the_answer_of_another_agent(
    acme, definition, phone, version, is_anonymous
):
    offer = definition.create_offer()
    wire = formats.MessageFormat(phone.prefix, version)
    body = issuing.build_offer(offer, ["name", "level"], VALUES, wire)
    alice = acme.hosts("Alice")

    def issue(data):
        Agent.receives(phone, data)
        asked = phone.inbox[-1]
        if asked.type.endswith("/request-credential"):
            request = attachment_of(asked, formats.REQUEST)
            issued = definition.sign_credential(
                offer, request, VALUES, None, PreparedResults()
            )
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
    kind = "/request-credential"
    [request] = [one for one in phone.inbox if one.type.endswith(kind)]
    assert request.return_route == ("all", "")


def test_alice_answers_an_out_of_band_request_of_another_agent(acme, phone):
    alice = acme.hosts("Alice")
    request = {"name": "P", "version": "1.0", "requested_predicates": {}}
    request["nonce"] = anoncreds.generate_nonce()
    request["requested_attributes"] = {"a": {"name": "name"}}
    wire = formats.MessageFormat(phone.prefix, "2.0")
    asked = proving.build_request(request, wire)
    invitation = out_of_band.build_invitation("invited-1", "Shop", "", phone.party, ())
    given = json.dumps(out_of_band.with_attachment(invitation, asked))
    alice.put_form("/verifications/fromData/autoSelect", verificationData=given)
    queues.sweep()
    shown = phone.newest("present-proof/2.0/presentation")
    assert shown.parent_id == "invited-1" and shown.thread_id == asked["@id"]
    phone.their_key = service.read_service(shown).verkey
    phone.says(phone.build("present-proof/2.0/ack", asked["@id"], status="OK"))
    assert Verification.objects.get().is_valid is True
    assert Connection.objects.filter(connectionless=False).count() == 0
