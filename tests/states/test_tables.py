"""The tables of transitions, and what else says which state follows which."""

import inspect
import re
from collections import defaultdict
from itertools import pairwise, product

import pytest

from agency.studio.exchange.kinds import KINDS
from connections.exchange import Exchange
from connections.models import Connection
from core.states import move
from core.work import transactions
from credentials.models import Credential
from tests.support import walks
from tests.support.paths import DOCS
from tests.support.state_diagrams import MODELS, drawn
from verifications.models import Verification

PAGE = (DOCS / "protocols.md").read_text()
of_each_model = pytest.mark.parametrize("model", MODELS)
FIRST_ROLES = ("inviter", "issuer", "verifier")


def table(model):
    """The table in plain words, without rows that lead nowhere."""
    return {
        (str(role), str(state)): set(map(str, targets))
        for (role, state), targets in model.TRANSITIONS.items()
    }


def reachable(model, state):
    """The states that either role can get to from this one."""
    found, new = set(), {state}
    while new:
        found |= new
        arrows = table(model).items()
        new = {one for (_, start), to in arrows if start in new for one in to} - found
    return found - {state}


@of_each_model
def test_the_diagram_draws_the_table(model):
    pairs = defaultdict(set)
    for (role, _), arrows in drawn(model).items():
        for source, target in arrows:
            pairs[role, source].add(target)
    assert pairs == table(model)


@of_each_model
def test_each_method_that_moves_stands_in_the_diagram(model):
    methods = {
        name: inspect.unwrap(getattr(found, "__func__", found))
        for one in (model, Exchange)
        if issubclass(model, one)
        for name, found in vars(one).items()
        if inspect.isfunction(getattr(found, "__func__", found))
    }
    named = {name for _, name in drawn(model)}
    assert named <= set(methods)
    moving = {name for name, one in methods.items() if "move" in one.__code__.co_names}
    assert {name for name in moving if not name.startswith("_")} <= named


@of_each_model
def test_the_advice_of_a_wrong_state_leads_from_one_to_the_other(model):
    for state, required in model.steps:
        assert required in reachable(model, state), (state, required)


@of_each_model
def test_a_state_that_is_not_open_is_not_rejected(model):
    ends = {state for state in model.State if not reachable(model, state)}
    if model is Connection:
        assert ends == {"Connected"}
    else:
        assert ends | {"Issued"} >= set(model.State) - set(model.OPEN) >= ends


def exchanges(model):
    """An unsaved object for each way that the studio draws, of each role."""
    if model is Connection:
        return [model(role=role, state=state) for role, state in model.EVENTS]
    columns = {
        Credential: ("proposal", "offer_body", "accepted_at"),
        Verification: ("proposal", "request_body"),
    }[model]
    made = []
    for (role, state), *given in product(model.EVENTS, *[(None, b"1")] * len(columns)):
        row = model(role=role, state=state, **dict(zip(columns, given, strict=True)))
        made.append(row)
    return made


@of_each_model
def test_the_steps_of_the_studio_follow_each_other_in_the_table(model):
    follows = table(model)
    for row in filter(is_possible, exchanges(model)):
        for before, after in pairwise(map(str, KINDS[row.OBJECT_TYPE](row).states())):
            assert after in follows[row.role, before], (row.role, before, after)


def is_possible(row):
    """Whether an exchange got there: requested only after an offer, for one."""
    if isinstance(row, Credential):
        return row.offer_body is not None or row.accepted_at is None
    return True


def documented():
    """The table in the docs: by object and state, what either role may come to."""
    found = {}
    for name, state, *cells in re.findall(
        r"^\| (connection|credential|verification) \| `(\w+)` \| (.*) \| (.*) \|$",
        PAGE,
        re.MULTILINE,
    ):
        found[name, state] = [set(re.findall(r"`(\w+)`", cell)) for cell in cells]
    return found


def test_the_docs_have_the_table():
    expected = defaultdict(lambda: [set(), set()])
    for model in MODELS:
        for (role, state), targets in table(model).items():
            place = role not in FIRST_ROLES
            expected[model.OBJECT_TYPE, state][place] |= targets
    assert documented() == expected


def test_a_path_in_the_docs_can_be_gone():
    [path] = re.findall(r"`\((Proposed →\) .*)`, back", PAGE)
    states = re.findall(r"\w+", path)
    assert states[0] == "Proposed" and states[-1] == "Revoked"
    for before, after in pairwise(states):
        assert any(
            after in to
            for (_, state), to in table(Credential).items()
            if state == before
        )


@pytest.mark.parametrize("sources", [["Offered"], ["Requested", "Offered"]])
def test_a_move_that_no_table_has_is_an_error_of_ours(walk, met, badge, sources):
    row = walks.credential(walk, "issuer", "Offered")
    before = walks.everything()
    with transactions.atomic():
        row.lock()
        with pytest.raises(
            RuntimeError, match="no issuer moves from Offered to Issued"
        ):
            move(row, sources, "Issued")
    assert walks.everything() == before
