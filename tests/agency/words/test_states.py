"""The tables of words: each state has its words for each who reads of it."""

import pytest
from django.utils import translation

from agency.holders.links.models import ClosedLink
from agency.holders.wallet.holdings import OPEN_OFFERS
from agency.words import links, messages, reasons, states
from agency.words.links import LinkState
from connections.didcomm.reasons import REASONS, UNKNOWN
from connections.messaging import router
from connections.models import Connection, OutboundMessage
from connections.protocols.basic_message import DeliveryState
from credentials.models import Bulk, Credential
from tenants.branding import LANGUAGES
from verifications import kiosks
from verifications.models import Verification
from verifications.proofs.failures import CAUSES
from webhooks.events.types import Type
from webhooks.models import Delivery

TRANSLATED = [language for language in LANGUAGES if language != "en"]
# What is shown in place of the state, of the states that do not say how it ended.
SHOWN = {
    Connection: {state: [states.ENDED] for state in Connection.State},
    Credential: {},
    Verification: {Verification.State.ACCEPTED: [states.VALID, states.NOT_VALID]},
}
# Only these have pages in web wallets; the links of the others are sent to holders.
OF_HOLDERS = ("holder", "prover")


def reachable(model):
    """Each role with each state that its transitions name."""
    found = set(model.EVENTS)
    for (role, state), targets in model.TRANSITIONS.items():
        found |= {(role, one) for one in (state, *targets)}
    return found


def rows_of_exchanges():
    for table in (states.CREDENTIAL, states.VERIFICATION):
        for (role, state), words in table.items():
            yield role, state, words


@pytest.mark.parametrize("model", states.TABLES, ids=lambda model: model.__name__)
def test_every_state_that_a_row_can_reach_has_a_row_of_words(model):
    wanted = reachable(model)
    wanted |= {(role, one) for role, at in wanted for one in SHOWN[model].get(at, [])}
    assert set(states.TABLES[model]) == wanted
    assert {role for role, _ in wanted} <= set(states.ROLES)


def test_each_audience_has_words_for_what_it_sees():
    for role, state, words in rows_of_exchanges():
        assert words.staff and words.badge in ("good", "bad", "soon"), state
        assert bool(words.holder) is (role in OF_HOLDERS), (role, state)
    listed = {*OPEN_OFFERS, Credential.State.ISSUED, Credential.State.REVOKED}
    tags = [state for (_, state), words in states.CREDENTIAL.items() if words.tag]
    assert set(tags) == listed
    assert states.VERIFICATION["prover", Verification.State.REQUESTED].tag
    over = {*LinkState} - {LinkState.DECLINED, LinkState.WITHDRAWN, LinkState.EXPIRED}
    for role, state, words in rows_of_exchanges():
        is_open = state in (*Credential.OPEN, *Verification.OPEN)
        if role not in OF_HOLDERS and not is_open and state != "Rejected":
            assert words.link in over, (role, state)


def test_a_kiosk_says_each_verdict():
    verdicts = {state for (_, state), one in states.VERIFICATION.items() if one.kiosk}
    assert verdicts == {states.VALID, states.NOT_VALID, Verification.State.REJECTED}
    asked = {kiosks.State.ASKING, kiosks.State.OVER}
    assert len(verdicts) == len(set(kiosks.State) - asked)


def test_each_link_says_what_became_of_it():
    """An offer cannot fail, and only an offer waits for the organization."""
    never = {
        "offer": {LinkState.FAILED},
        "request": {LinkState.ACCEPTED},
        "invitation": {LinkState.ACCEPTED, LinkState.FAILED},
    }
    assert set(links.TEXTS) == set(ClosedLink.Kind)
    for kind, table in links.TEXTS.items():
        assert set(table) == set(LinkState) - never[kind], kind


@pytest.mark.parametrize("language", TRANSLATED)
def test_what_holders_read_of_a_state_is_in_their_language(language):
    for role, state, words in rows_of_exchanges():
        for text in filter(None, (words.holder, words.tag, words.kiosk)):
            with translation.override("en"):
                english = str(text)
            with translation.override(language):
                assert str(text) != english, (role, state)


def test_every_reason_why_an_exchange_ends_is_translated_for_holders():
    """A connection has no page in a web wallet, and who has declined knows why."""
    of_handshakes = {
        sentence
        for code, sentence in REASONS.items()
        if code.endswith(("_not_accepted", "_processing_error", "_rejected"))
    }
    wanted = {*REASONS.values(), UNKNOWN, *(cause.message for cause in CAUSES)}
    assert len(of_handshakes) == 5
    with translation.override("en"):
        found = {str(one) for one in reasons.SENTENCES}
    assert found == wanted - of_handshakes - {REASONS["declined"]}


def test_every_message_that_is_handled_and_every_event_has_words():
    families = [family.split("/") for family in router.handled_types()]
    names = {f"{family[0]}/{family[2]}".replace("_", "-") for family in families}
    assert names <= set(messages.MESSAGES)
    assert set(messages.EVENTS) == set(Type)


def test_every_status_has_words():
    assert set(states.BULK) == set(Bulk.State)
    # Of messages there is no answer to wait for.
    statuses = set(OutboundMessage.Status) - {OutboundMessage.Status.UNCONFIRMED}
    assert set(messages.SENT) == set(messages.RECEIVED) == statuses
    assert set(messages.TEXT_BADGES) == set(DeliveryState)
    assert set(messages.DELIVERY_BADGES) == set(Delivery.Status)
