"""No change without its event, and no event without its change."""

import pytest
from django.apps import apps
from django.db import transaction

from connections.models import BasicMessage, Connection
from core.errors import WrongState
from credentials.models import Credential
from tests.support import walks
from verifications.models import Verification
from webhooks.events import emit
from webhooks.events.emit import EventSource
from webhooks.events.types import Type
from webhooks.models import Delivery, Event, Webhook

pytestmark = pytest.mark.django_db(transaction=True)
ANNOUNCED = (Connection, BasicMessage, Credential, Verification)
WITH_STATES = (Connection, Credential, Verification)
PATHS = {
    Connection: dict.fromkeys(
        ("inviter", "invitee"), ["Invited", "Negotiating", "Connected"]
    ),
    Credential: dict.fromkeys(
        ("issuer", "holder"), ["Offered", "Requested", "Issued", "Revoked"]
    ),
    Verification: dict.fromkeys(("verifier", "prover"), ["Requested", "Accepted"]),
}
WALKS = {
    Connection: walks.connection,
    Credential: walks.credential,
    Verification: walks.verification,
}


@pytest.fixture
def walk(faber, monkeypatch):
    return walks.Walk(faber, monkeypatch)


def events_of(row):
    events = Event.objects.filter(object_key=row.pk).order_by("sequence")
    return [(event.sequence, event.type) for event in events]


def expected(model, role, states):
    """What the table says of a path, in the wallet that has this role here."""
    in_own_wallet = role in ("inviter", "issuer", "verifier")
    table = [
        emit.type_in_wallet(model.EVENTS[role, state], in_own_wallet)
        for state in states
    ]
    return list(enumerate(map(str, table), 1))


def test_every_model_with_a_state_announces():
    models = apps.get_models()
    assert {one for one in models if issubclass(one, EventSource)} == set(ANNOUNCED)
    with_state = {
        one for one in models if "state" in {field.name for field in one._meta.fields}
    }
    assert {one for one in with_state if hasattr(one, "State")} >= set(WITH_STATES)


def test_the_table_of_events_is_closed():
    for model in WITH_STATES:
        steps = {(role, state) for role in model.Role for state in model.State}
        assert set(model.EVENTS) == steps
    assert set(BasicMessage.EVENTS) == set(BasicMessage.Direction)


def test_every_type_is_told_by_some_row():
    tables = [set(model.EVENTS.values()) for model in ANNOUNCED]
    others = {Type.CONNECTION_ENDED, Type.VERIFICATION_JUDGED}
    others |= {Type.WEBHOOK_DISABLED, Type.BULK_FINISHED, Type.MAILING_FINISHED}
    others |= {Type.DATABASE_RESTORED}
    named = set(emit.IN_OWN_WALLET.values()) | set(emit.IN_HOSTED_WALLETS.values())
    assert set().union(*tables, others, named) == set(Type)


@pytest.mark.parametrize("state", PATHS[Connection]["inviter"])
@pytest.mark.parametrize("role", PATHS[Connection])
def test_each_step_of_a_connection_announces_what_the_table_says(walk, role, state):
    assert_announced(walks.connection(walk, role, state), role)


@pytest.mark.parametrize("model, state", [
    *[(Credential, state) for state in PATHS[Credential]["issuer"]],
    *[(Verification, state) for state in PATHS[Verification]["verifier"]],
])  # fmt: skip
def test_each_step_is_announced_on_both_sides(walk, subtests, model, state):
    ours, *_ = PATHS[model]
    WALKS[model](walk, ours, state)
    for role in PATHS[model]:
        with subtests.test(role):
            assert_announced(walks.arrived(model.objects.get(role=role), state), role)


def assert_announced(row, role):
    """What the table says of the path to this state, and nothing else."""
    model, state = type(row), row.state
    states = PATHS[model][role]
    wanted = expected(model, role, states[: states.index(state) + 1])
    if (model, role, state) == (Verification, "prover", "Accepted"):
        wanted.append((3, "verification_judged"))
    if (model, role, state) == (Connection, "invitee", "Invited"):
        # The walk goes there and sets it back.
        wanted.append((2, "connection_negotiating"))
    assert events_of(row) == wanted and row.sequence == len(wanted)


@pytest.mark.parametrize("role", ["issuer", "holder", "verifier", "prover"])
def test_declining_announces_it_on_each_side(walk, role):
    model = Credential if role in ("issuer", "holder") else Verification
    row = WALKS[model](walk, role, "Rejected")
    assert events_of(row)[-1] == (2, f"{model.OBJECT_TYPE}_rejected")


def test_no_row_has_more_or_fewer_events_than_its_sequence_says(walk):
    walks.credential(walk, "holder", "Revoked")
    walks.verification(walk, "prover", "Accepted")
    text = {"connectionId": walk.alice.known_as(walk.faber), "text": "Hi"}
    walk.faber.post("/messages", text)
    for model in ANNOUNCED:
        for row in model.objects.all():
            numbers = [number for number, _ in events_of(row)]
            assert numbers == list(range(1, row.sequence + 1))
    assert Event.objects.count() == 21


def test_what_is_undone_or_refused_was_never_announced(walk):
    row = walks.credential(walk, "holder", "Issued")
    before = Event.objects.count()
    with pytest.raises(WrongState):
        row.decline()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        walk.faber.invites()
        raise ZeroDivisionError
    assert Event.objects.count() == before


def test_a_copy_that_is_older_than_the_row_moves_nothing(walk):
    """The holder cannot accept an offer that was replaced after he read it."""
    stale = walks.credential(walk, "holder", "Offered")
    Credential.objects.filter(pk=stale.pk).update(sequence=2)
    with pytest.raises(WrongState) as refused:
        stale.accept()
    assert "changed since you read it" in refused.value.message


def test_a_hidden_connection_announces_nothing(faber):
    definition = faber.defines("name", "degree")["definitionId"]
    values = {"credentialValues": {"name": "A", "degree": "B"}}
    faber.post("/credentials", {"definitionId": definition} | values)
    assert Connection.objects.get().connectionless
    assert list(Event.objects.values_list("object_type", flat=True)) == ["credential"]


def test_deliveries_are_made_with_the_change_or_not_at_all(faber, walk):
    faber.post("/webhooks", {"url": "https://office.example"})
    row = walks.credential(walk, "issuer", "Offered")
    holder = Credential.objects.exclude(pk=row.pk).get()
    told = Delivery.objects.filter(event__type="credential_requested")
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        Webhook.objects.update(message_types=["credential_requested"])
        holder.accept()
        assert told.count() == 1
        raise ZeroDivisionError
    assert not told.exists()
