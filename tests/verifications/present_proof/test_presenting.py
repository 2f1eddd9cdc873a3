"""A hosted wallet makes its presentation before the transaction that sends it."""

import anoncreds
import pytest
from django.db import connection

from credentials.models import Credential
from tests.support import queues
from tests.support.errors import assert_error, error_of
from tests.support.people import ApiError
from tests.support.presentations import policy_of
from tests.support.steps import step
from verifications.models import Verification

VALUES = {"name": "Alice", "level": "7"}
LEVEL = {"policyName": "level", "attributeNames": ["level"]}
POLICY = policy_of(LEVEL, revocationRequirement={"validNow": True})


@step
def alice(faber):
    return faber.hosts()


@step
def card(faber, alice):
    """(Faber's id, Alice's) of a card."""
    definition = faber.defines(*VALUES, supportRevocation=True)
    queues.sweep()
    mine = alice.receives(faber, definition, VALUES)
    return faber.get("/credentials")[0]["credentialId"], mine


class Making:
    """Calls `then` when a presentation was made; says how often in a transaction."""

    def __init__(self, monkeypatch):
        self.then = lambda: None
        self.made, self.inside = [], []
        create, verify = anoncreds.Presentation.create, anoncreds.Presentation.verify

        def recorded_create(*given, **named):
            self.record("create")
            presentation = create(*given, **named)
            self.then()
            return presentation

        def recorded_verify(*given, **named):
            self.record("verify")
            return verify(*given, **named)

        monkeypatch.setattr(anoncreds.Presentation, "create", recorded_create)
        monkeypatch.setattr(anoncreds.Presentation, "verify", recorded_verify)

    def record(self, what):
        self.made.append(what)
        if connection.in_atomic_block:
            self.inside.append(what)


@pytest.fixture
def making(monkeypatch):
    return Making(monkeypatch)


def chosen(card):
    return [{"policyName": "level", "credentialId": card[1]}]


def called(response):
    if response.status_code != 200:
        raise ApiError(response)


def auto_selects(alice, asked, card, **headers):
    mine = alice.newest("verifications")["verificationId"]
    called(alice.send("put", f"/verifications/{mine}/autoSelect", **headers))


def selects(alice, asked, card, **headers):
    mine = alice.newest("verifications")["verificationId"]
    called(alice.send("put", f"/verifications/{mine}", chosen(card), **headers))


def auto_selects_for_link(alice, asked, card, **headers):
    form = {"verificationData": asked["verificationRequestData"]}
    path = "/verifications/fromData/autoSelect"
    called(alice.send("put", path, form=form, **headers))


def selects_for_link(alice, asked, card, **headers):
    data = asked["verificationRequestData"]
    body = {"verificationData": data, "parameters": chosen(card)}
    called(alice.send("put", "/verifications/fromData", body, **headers))


ON_CONNECTION = [auto_selects, selects]
BY_LINK = [auto_selects_for_link, selects_for_link]


def asks(faber, alice, answers):
    if answers in BY_LINK:
        return faber.post("/verifications/policy", POLICY)
    return faber.asks(alice, **POLICY)


KEYED = {"Idempotency-Key": "1"}


CALLS = [(one, {}) for one in ON_CONNECTION + BY_LINK]
CALLS += [(auto_selects, KEYED), (selects_for_link, KEYED)]


@pytest.mark.parametrize("answers, headers", CALLS)
def test_no_transaction_is_open_while_a_presentation_is_made_and_verified(
    faber, alice, card, making, answers, headers
):
    asked = asks(faber, alice, answers)
    answers(alice, asked, card, **headers)
    assert faber.get(f"/verifications/{asked['verificationId']}")["isValid"] is True
    assert (making.made, making.inside) == (["create", "verify"], [])


def is_declined(faber, alice, card, asked):
    mine = alice.newest("verifications")["verificationId"]
    alice.put(f"/verifications/{mine}/decline")


def is_answered(faber, alice, card, asked):
    auto_selects(alice, asked, card)


def is_withdrawn(faber, alice, card, asked):
    faber.delete(f"/verifications/{asked['verificationId']}")


def loses_its_card(faber, alice, card, asked):
    alice.delete(f"/credentials/{card[1]}")


def has_its_card_revoked(faber, alice, card, asked):
    faber.delete(f"/credentials/{card[0]}")


MEANWHILE = [
    (is_declined, {}), (is_answered, {}), (is_answered, KEYED), (is_withdrawn, {}),
    (loses_its_card, {}), (has_its_card_revoked, {}),
]  # fmt: skip


@pytest.mark.parametrize("happens, headers", MEANWHILE)
def test_what_changed_meanwhile_is_refused_and_nothing_is_sent(
    faber, alice, card, making, happens, headers
):
    asked = faber.asks(alice, **POLICY)
    before = []

    def meanwhile():
        making.then = lambda: None
        happens(faber, alice, card, asked)
        rows = Verification.objects.order_by("pk")
        before[:] = rows.values_list("pk", "state", "sequence")

    making.then = meanwhile
    error = error_of(auto_selects, alice, asked, card, **headers)
    assert_error(error, 409, "wrong_state")
    rows = Verification.objects.order_by("pk")
    assert list(rows.values_list("pk", "state", "sequence")) == before


def test_a_link_whose_request_changed_meanwhile_is_not_answered(
    faber, alice, card, making
):
    asked = asks(faber, alice, selects_for_link)

    def meanwhile():
        making.then = lambda: None
        faber.delete(f"/verifications/{asked['verificationId']}")

    making.then = meanwhile
    error = error_of(selects_for_link, alice, asked, card)
    assert_error(error, 409, "offer_gone")
    assert not Verification.objects.exists()


def test_a_link_that_another_wallet_took_costs_no_presentation(
    faber, alice, card, making
):
    asked = asks(faber, alice, selects_for_link)
    bob = faber.hosts("Bob")
    auto_selects_for_link(bob, asked, card)
    making.made.clear()
    error = error_of(selects_for_link, alice, asked, card)
    assert_error(error, 409, "offer_taken")
    assert making.made == [] and Credential.objects.filter(pk=card[1]).exists()
