"""Messages repeated under a new id, as phones do after a lost response, do no harm."""

from dataclasses import replace

import pytest

from connections.messaging import router
from connections.models import Connection
from connections.protocols import connections_1_0, did_exchange
from core.work import transactions
from credentials.models import Credential
from tests.support import queues
from tests.support.outside_exchanges import ISSUE, VALUES, offers_to, request_for
from verifications.models import Verification


def kinds(phone):
    return [one.type for one in phone.inbox]


def repeated(phone, kind):
    """Says the last message of this kind once more, under another id."""
    body = next(body for body in reversed(phone.said) if body["@type"].endswith(kind))
    phone.inbox.clear()
    return phone.says(body | {"@id": phone.build(kind)["@id"]})


@pytest.fixture
def phone(phone, monkeypatch):
    phone.said = []
    says = phone.says
    phone.says = lambda body, *rest, **options: (
        phone.said.append(body) or says(body, *rest, **options)
    )
    return phone


@pytest.mark.parametrize("many", [False, True])
def test_a_request_to_connect_gets_its_answer_again(faber, phone, many):
    invited = faber.invites(multiParty=many)
    row = Connection.objects.get(connection_id=invited["connectionId"])
    for _ in range(2):
        phone.requests(row.invitation)
    assert kinds(phone) == [connections_1_0.RESPONSE] * 2
    signer = row.invitation["recipientKeys"][0]
    answers = [connections_1_0.read_response(one, signer) for one in phone.inbox]
    assert len({one.verkey for one in answers}) == 1
    assert Connection.objects.filter(state="Connected").count() == 1


def test_a_request_of_did_exchange_too(faber, phone):
    faber.invites(protocol="out-of-band", handshakes=["didexchange/1.1"])
    row = Connection.objects.get()
    signer, parent = row.invitation_key.verkey, row.invitation["@id"]
    for _ in range(2):
        asked = ("1.1", "Phone", phone.party, phone.seed, phone.prefix, parent)
        phone.says(did_exchange.build_request(*asked), to=signer)
    answers = [did_exchange.read_response(one, signer).verkey for one in phone.inbox]
    assert len(answers) == 2 and len(set(answers)) == 1
    assert Connection.objects.get(pk=row.pk).state == "Negotiating"


def test_a_stranger_is_still_told_that_the_invitation_was_used(row, phone):
    stranger = phone.with_next_key()
    phone.receives = stranger.receives
    stranger.requests(row.invitation)
    reports = phone.inbox[-2:]
    names = ["connection/1.0/problem-report", connections_1_0.PROBLEM]
    assert [one.type for one in reports] == names
    for one in reports:
        assert one.body["problem-code"] == "request_not_accepted"
        assert one.body["description"]["code"] == "request_not_accepted"
    assert len({one.thread_id for one in reports}) == 1
    assert len({one.id for one in reports}) == 2


@pytest.mark.parametrize("is_automatic", [False, True])
def test_a_repeated_or_new_request_changes_nothing(
    faber, peer, badge, phone, client, is_automatic
):
    definition = badge["definitionId"]
    path = offers_to(phone, faber, definition, automaticIssuance=is_automatic)
    asked = (phone, client, phone.newest(ISSUE + "offer-credential"), definition)
    phone.says(request_for(*asked)[0])
    state = faber.get(path)["state"]
    assert state == ("Issued" if is_automatic else "Requested")
    repeated(phone, ISSUE + "request-credential")
    assert kinds(phone) == [] and faber.get(path)["state"] == state
    phone.says(request_for(*asked)[0])
    assert phone.newest(ISSUE + "problem-report")
    assert faber.get(path)["state"] == state


@pytest.fixture
def received_messages(faber, monkeypatch):
    """What the hosted parties said to each other, as the receiving side got it."""
    seen, dispatch = [], router.dispatch

    def noted(connection, message):
        seen.append((connection, message))
        return dispatch(connection, message)

    monkeypatch.setattr(router, "dispatch", noted)
    return seen


def test_between_hosted_parties_a_step_told_again_changes_no_state(
    faber, met, badge, received_messages, monkeypatch, subtests
):
    alice = met
    alice.receives(faber, badge, VALUES)
    faber.asks(alice, attributes=[{"policyName": "name"}])
    alice.auto_selects()
    told = {one.type.rpartition("/")[2]: (row, one) for row, one in received_messages}
    before, sent = states(), queues.record_sent(monkeypatch)
    for kind in (
        "offer-credential", "issue-credential", "request-presentation", "presentation",
    ):  # fmt: skip
        with subtests.test(kind):
            dispatch_again(*told[kind])
            assert states() == before
            assert not any(one.endswith("problem-report") for one in sent)


def test_an_offer_or_proposal_told_again_changes_no_state(
    faber, met, badge, received_messages
):
    alice = met
    faber.offers(alice, badge, VALUES)
    mine = alice.newest("connections")["connectionId"]
    policy = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}
    alice.put(f"/verifications/propose/{mine}", policy)
    before, (offer, proposal) = states(), received_messages[-2:]
    for connection, message in (offer, proposal):
        dispatch_again(connection, message)
    assert states() == before and len(before) == 4


def dispatch_again(connection, message):
    """Dispatch a message once more under another id, as the inbox does."""
    with transactions.atomic():
        found = Connection.objects.get(pk=connection.pk)
        router.dispatch(found.lock(), replace(message, id="another-id"))


def states():
    rows = [*Credential.objects.order_by("pk"), *Verification.objects.order_by("pk")]
    return [(row.pk, row.state, row.sequence) for row in rows]
