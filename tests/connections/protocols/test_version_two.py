"""issue-credential, present-proof and revocation notification 2.0, in both formats."""

import pytest

from connections.didcomm import formats as exchange
from connections.didcomm import message
from connections.didcomm.formats import MessageFormat
from connections.models import Connection
from core.errors import PeerError
from credentials import messages as credential_protocol
from credentials.models import Credential
from tests.support import queues
from tests.support.outside_exchanges import LINK_SECRET, ledger_object, offered_to
from verifications.models import Verification
from wallets import anoncreds

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Alice", "degree": "Maths"}
ASKED = {"attributes": [{"policyName": "Who", "attributeNames": ["name"]}]}


@pytest.fixture(params=[exchange.HLINDY, exchange.ANONCREDS])
def form(request):
    return request.param


@pytest.fixture
def alice(met, form, monkeypatch):
    """A holder hosted here, with whom everything is spoken in 2.0."""

    def second_version(connection, protocol):
        return MessageFormat(connection.message_prefix, "2.0", form)

    monkeypatch.setattr(Connection, "message_format_for", second_version)
    return met


@pytest.fixture
def types_sent(monkeypatch):
    """What the hosted parties have sent in a protocol, in order."""
    sent = queues.record_sent(monkeypatch)
    return lambda start: [
        kind.rpartition("/")[2] for kind in sent if kind.startswith(start)
    ]


def test_credentials_are_issued_proven_revoked_in_2_0(faber, alice, form, types_sent):
    badge = faber.defines("name", "degree", supportRevocation=True)
    offered = faber.offers(alice, badge, VALUES, automaticIssuance=True)
    alice.accepts_offer()
    steps = ["offer-credential", "request-credential", "issue-credential", "ack"]
    assert types_sent("issue-credential/2.0/") == steps
    asked = faber.asks(alice, **ASKED)
    alice.auto_selects()
    assert faber.get(f"/verifications/{asked['verificationId']}")["isValid"] is True
    steps = ["request-presentation", "presentation", "ack"]
    assert types_sent("present-proof/2.0/") == steps
    faber.delete(f"/credentials/{offered['credentialId']}")
    assert types_sent("revocation_notification/2.0/") == ["revoke"]
    found = set(Credential.objects.values_list("state", "wire_format"))
    assert found == {("Revoked", form)}


def test_a_revocation_is_told_in_the_one_format_that_all_peers_read(form):
    wire = MessageFormat(message.PREFIX, "2.0", form)
    notification = credential_protocol.build_revocation("registry", 7, wire)
    assert notification["revocation_format"] == "indy-anoncreds"
    assert notification["credential_id"] == "registry::7"


def test_a_proposal_in_2_0_is_a_whole_request(faber, alice, types_sent):
    policy = {"name": "What I can show", "version": "1.0", **ASKED}
    place = alice.get("/connections")[0]["connectionId"]
    alice.put(f"/verifications/propose/{place}", policy)
    [seen] = faber.get("/verifications")
    assert seen["state"] == "Proposed"
    assert seen["policy"]["attributes"] == ASKED["attributes"]
    assert types_sent("present-proof/2.0/") == ["propose-presentation"]


def test_either_side_declines_in_2_0(faber, alice):
    faber.offers(alice, faber.defines("name", "degree"), VALUES)
    faber.asks(alice, **ASKED)
    Credential.objects.get(role="holder").decline()
    Verification.objects.get(role="prover").decline()
    for model in (Credential, Verification):
        assert [row.state for row in model.objects.all()] == ["Rejected"] * 2


def test_a_phone_is_answered_in_its_own_format(faber, phone, client, monkeypatch):
    written = MessageFormat(message.PREFIX, "2.0", exchange.HLINDY)
    monkeypatch.setattr(Connection, "message_format_for", lambda *given: written)
    definition, path = offered_to(phone, faber, automaticIssuance=True)
    definition_id = definition["definitionId"]
    offered = phone.newest("issue-credential/2.0/offer-credential")
    offer = exchange.attachment_of(offered, exchange.OFFER)
    public = ledger_object(client, "credential-definitions", definition_id)
    given = (offer, public, LINK_SECRET, phone.party.did)
    request, _ = anoncreds.create_request(*given)
    other = written._replace(format=exchange.ANONCREDS)
    members = exchange.attach_as(other, exchange.REQUEST, request)
    kind = "issue-credential/2.0/request-credential"
    phone.says(phone.build(kind, offered.thread_id, **members))
    issued = phone.newest("issue-credential/2.0/issue-credential")
    assert issued.body["formats"][0]["format"] == "anoncreds/credential@v1.0"
    credential = exchange.attachment_of(issued, exchange.CREDENTIAL)
    assert credential["cred_def_id"] == definition_id
    assert faber.get(path)["state"] == "Issued"


def test_the_attachment_of_a_known_format_is_read_wherever_it_stands():
    offer = message.json_attachment("b", {"nonce": "1"})
    body = message.build("issue-credential/2.0/offer-credential")
    body["formats"] = [
        {"attach_id": "a", "format": "aries/ld-proof-vc-detail@v1.0"},
        {"attach_id": "b", "format": "hlindy/cred-abstract@v2.0"},
    ]
    body["offers~attach"] = [message.json_attachment("a", {"wrong": 1}), offer]
    assert exchange.attachment_of(message.read(body), exchange.OFFER) == {"nonce": "1"}


@pytest.mark.parametrize(
    "formats", [None, 7, [], [7], [{"attach_id": "a", "format": "x/y@v1.0"}]]
)
def test_a_message_without_a_format_known_here_is_refused(formats):
    body = message.build("issue-credential/2.0/offer-credential", formats=formats)
    body["offers~attach"] = [message.json_attachment("a", {})]
    with pytest.raises(PeerError):
        exchange.attachment_of(message.read(body), exchange.OFFER)


def test_an_attachment_that_no_format_names_is_not_read():
    body = message.build("issue-credential/2.0/offer-credential")
    body["formats"] = [{"attach_id": "a", "format": "hlindy/cred-abstract@v2.0"}]
    body["offers~attach"] = [message.json_attachment("b", {"nonce": "1"})]
    with pytest.raises(PeerError) as refused:
        exchange.attachment_of(message.read(body), exchange.OFFER)
    assert refused.value.code == "message_parse_failure"


def test_a_proposal_is_read_also_under_the_name_that_acapy_gives_it():
    body = message.build("present-proof/2.0/propose-presentation")
    body["formats"] = [{"attach_id": "a", "format": "anoncreds/proof-proposal@v1.0"}]
    body["proposals~attach"] = [message.json_attachment("a", {"name": "Proof"})]
    read = message.read(body)
    assert exchange.attachment_of(read, exchange.PROOF_PROPOSAL) == {"name": "Proof"}
    assert exchange.format_of(read).format == exchange.ANONCREDS


def test_a_proof_begins_in_the_format_in_which_the_peer_issued():
    connection = Connection(spoken={"issue-credential": ["2.0", exchange.ANONCREDS]})
    assert connection.message_format_for("present-proof").format == exchange.ANONCREDS
    connection.spoken["present-proof"] = ["2.0", exchange.HLINDY]
    assert connection.message_format_for("present-proof").format == exchange.HLINDY
