"""Exchanges with an outside agent, which accepts offers and answers requests."""

import json

from connections.didcomm.message import json_attachment, read_attachment
from connections.models import Connection
from connections.protocols import connections_1_0, did_exchange
from tests.support import queues
from wallets import anoncreds
from wallets.anoncreds import SubProof

ISSUE, PROVE = "issue-credential/1.0/", "present-proof/1.0/"
VALUES = {"name": "Ann", "level": "7"}
LINK_SECRET = "53178245632110937204785619035847562910384756102938475610293847561029"


def ledger_object(client, kind, identifier):
    """Return a schema or definition of the local ledger."""
    return client.get(f"/ledger/local/{kind}/{identifier}").json()


def takes_offer(phone, client, definition_id):
    """Do the holder's side of an issuance. Return the stored credential."""
    offered = phone.newest(ISSUE + "offer-credential")
    request, metadata, definition = request_for(phone, client, offered, definition_id)
    phone.says(request)
    issued = phone.newest(ISSUE + "issue-credential")
    phone.says(phone.build(ISSUE + "ack", offered.thread_id, status="OK"))
    attached = read_attachment(issued, "credentials~attach")
    return anoncreds.process_credential(attached, metadata, LINK_SECRET, definition)


def build_presentation(client, request, credential):
    """Return a proof that reveals the one attribute of a request."""
    [referent] = request["requested_attributes"]
    schema_id, definition_id = credential["schema_id"], credential["cred_def_id"]
    definition = ledger_object(client, "credential-definitions", definition_id)
    return anoncreds.create_presentation(
        request,
        [SubProof(credential, {referent: True}, [])],
        {},
        LINK_SECRET,
        {schema_id: ledger_schema(client, schema_id)},
        {definition_id: definition},
    )


def answers_request(phone, client, credential):
    """Send a proof that reveals the one attribute of the newest request."""
    asked = phone.newest(PROVE + "request-presentation")
    request = read_attachment(asked, "request_presentations~attach")
    shown = build_presentation(client, request, credential)
    attached = [json_attachment("libindy-presentation-0", shown)]
    kind, attached = PROVE + "presentation", {"presentations~attach": attached}
    phone.says(phone.build(kind, asked.thread_id, **attached))


def ledger_schema(client, schema_id):
    found = ledger_object(client, "schemas", schema_id)
    return {name: found[name] for name in ("issuerId", "name", "version", "attrNames")}


def offered_to(phone, faber, **body):
    """Connect and offer a credential. Return its definition and its API path."""
    phone.connects(faber)
    definition = faber.defines("name", "level")
    return definition, offers_to(phone, faber, definition["definitionId"], **body)


def offers_to(phone, faber, definition_id, **body):
    """Offer a credential on their connection. Return its API path."""
    row = Connection.objects.get(their_key=phone.verkey)
    body |= {"connectionId": row.connection_id, "credentialValues": VALUES}
    offered = faber.post("/credentials", body | {"definitionId": definition_id})
    queues.sweep()
    return f"/credentials/{offered['credentialId']}"


def invitation_of(phone):
    """Return an invitation of the outside agent, with its prefix of message types."""
    body = connections_1_0.build_invitation(
        "Phone Shop", "", phone.verkey, phone.endpoint
    )
    return body | {"@type": phone.prefix + connections_1_0.INVITATION}


def accepts_invitation_of(phone, alice):
    """Connect a hosted wallet by an invitation of the outside agent. Return its id."""
    mine = alice.accepts_invitation(json.dumps(invitation_of(phone)))
    queues.worker_catches_up()
    asked = phone.newest(connections_1_0.REQUEST)
    phone.their_key = connections_1_0.read_request(asked).verkey
    phone.says(connections_1_0.build_response(phone.party, phone.seed, asked))
    return mine["connectionId"]


def connects_by_did_exchange(phone, faber, version="1.1"):
    """Accept an out-of-band invitation. Return our row."""
    invited = faber.invites(protocol="out-of-band")
    row = Connection.objects.get(connection_id=invited["connectionId"])
    parent, signer = row.invitation["@id"], row.invitation_key.verkey
    asked = did_exchange.build_request(
        version, "Phone", phone.party, phone.seed, phone.prefix, parent
    )
    phone.says(asked, to=signer)
    answered = phone.newest(f"didexchange/{version}/response")
    phone.their_key = did_exchange.read_response(answered, signer).verkey
    complete = did_exchange.build_complete(version, asked["@id"], phone.prefix, parent)
    phone.says(complete)
    return Connection.objects.get(pk=row.pk)


def request_for(phone, client, offered, definition_id):
    """Return a request-credential that answers an offer, and its metadata."""
    offer = read_attachment(offered, "offers~attach")
    definition = ledger_object(client, "credential-definitions", definition_id)
    request, metadata = anoncreds.create_request(
        offer, definition, LINK_SECRET, phone.party.did
    )
    attached = {"requests~attach": [json_attachment("libindy-cred-request-0", request)]}
    kind = ISSUE + "request-credential"
    return phone.build(kind, offered.thread_id, **attached), metadata, definition


def connects_without_endpoint(pocket, faber):
    """Accept an invitation. The reply comes in the response of the same call."""
    row = Connection.objects.get(connection_id=faber.invites()["connectionId"])
    request = connections_1_0.build_request("Phone", "", pocket.party, pocket.prefix)
    pocket.asks(request, to=row.invitation["recipientKeys"][0])
    signed = pocket.newest(connections_1_0.RESPONSE).body["connection~sig"]
    content = connections_1_0.read_signed(signed, row.invitation["recipientKeys"][0])
    pocket.their_key = connections_1_0.read_party(content).verkey
    return Connection.objects.get(pk=row.pk)


def ids_of_messages(phone, kind):
    return {one.id for one in phone.inbox if one.type == kind}
