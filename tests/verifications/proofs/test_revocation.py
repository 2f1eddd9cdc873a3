"""Non-revocation from policy to verdict, with honest wallets.

See test_forgeries for others.
"""

from datetime import UTC, datetime
from functools import cache

import pytest

from core.errors import Invalid, Unavailable
from tests.fixtures import (
    DAY,
    FIRST_LIST,
    Ledger,
    badge,
    candidate,
    ledger,
    stored_registry,
)
from tests.support.presentations import (
    answer,
    ask,
    attribute,
    codes,
    judge,
    policy_of,
    predicate,
    select,
)
from tests.verifications.proofs.test_checks import HOSTILE, changed, leaves
from verifications.proofs import proof_policy, selection
from verifications.proofs.request_building import build_request
from verifications.proofs.request_reading import ProofRequest
from verifications.proofs.selection import Selection

SECOND_LIST, THIRD_LIST = FIRST_LIST + DAY, FIRST_LIST + 2 * DAY
NOW = SECOND_LIST + 100
LEVEL = attribute("level")
REVOKED = badge(2, revoked=True)


@cache
def answered_now():
    """A request and a good answer: they are read, or changed as copies."""
    asked = ask(LEVEL, at=NOW)
    return asked, answer(asked, badge(3))


def chosen(request, held, hidden=False, **more):
    """What the holder sends for the level, whatever is known of the credential."""
    picked = Selection("level", held.credential_id, hidden=hidden)
    return select(request, [held], picked, **more)


def test_a_credential_that_is_not_revoked_is_valid_from_the_first_list_on():
    asked, sent = answered_now()
    assert sent["identifiers"][0]["timestamp"] == SECOND_LIST
    outcome = judge(asked, sent)
    assert outcome.is_valid and outcome.proof["level"]["value"] == "7"
    asked = ask(LEVEL, at=FIRST_LIST - 1)
    sent = chosen(asked, badge(3))
    assert sent["identifiers"][0]["timestamp"] is None
    assert codes(judge(asked, sent)) == {"not_yet_valid"}


@pytest.mark.parametrize(
    ("moment", "is_valid"),
    [(SECOND_LIST - 1, True), (SECOND_LIST, False), (NOW, False)],
)
def test_a_chosen_revoked_one_is_valid_until_the_second_of_its_list(moment, is_valid):
    asked = ask(LEVEL, at=moment)
    outcome = judge(asked, chosen(asked, REVOKED))
    assert outcome.is_valid is is_valid
    assert codes(outcome) == (set() if is_valid else {"revoked_or_invalid"})


def test_valid_now_is_judged_when_the_answer_comes():
    asked = ask(LEVEL, at=NOW)
    sent = answer(asked, badge(5))
    assert judge(asked, sent, at=THIRD_LIST - 1).is_valid
    assert codes(judge(asked, sent, at=THIRD_LIST)) == {"stale"}


def test_what_is_not_asked_for_is_not_proven_whatever_the_time_of_judging():
    asked = ask(LEVEL)
    sent = chosen(asked, REVOKED)
    assert sent["proof"]["proofs"][0]["non_revoc_proof"] is None
    assert judge(asked, sent).is_valid and judge(asked, sent, at=NOW).is_valid


def test_a_predicate_is_proven_of_a_credential_that_is_not_revoked():
    asked = ask(predicate("level", ">=", 5), at=NOW)
    sent = answer(asked, badge(3))
    assert sent["proof"]["proofs"][0]["non_revoc_proof"]
    assert judge(asked, sent).is_valid
    asked = ask(attribute("name"), at=NOW)
    assert judge(asked, answer(asked, candidate("degree"))).is_valid, "not revocable"


@pytest.mark.parametrize("nothing", [{}, {"non_revoked": None}, {"non_revoked": {}}])
def test_a_hidden_attribute_is_proven_of_a_credential_that_is_not_revoked(nothing):
    asked = ask(LEVEL) | nothing
    asked["requested_attributes"]["level"]["non_revoked"] = {"to": NOW}
    assert judge(asked, answer(asked, badge(3), hidden=("level",))).is_valid
    assert codes(judge(asked, chosen(asked, REVOKED, hidden=True))) == {
        "revoked_or_invalid"
    }


def test_revocable_credentials_and_others_answer_together():
    asked = ask(attribute("name"), LEVEL, predicate("age", ">", 18), at=NOW)
    assert judge(asked, answer(asked, candidate("degree"), badge(3))).is_valid
    held = {"name": "degree", "age": "degree", "level": "first-2"}
    picked = [Selection(*pair) for pair in held.items()]
    outcome = judge(asked, select(asked, [candidate("degree"), REVOKED], *picked))
    assert codes(outcome) == {"revoked_or_invalid"}


def test_every_registry_has_lists_of_its_own():
    asked = ask(LEVEL, attribute("Full Name"), at=NOW)
    held = [badge(3), badge(1, "second")]
    picked = Selection("level", "first-3"), Selection("Full Name", "second-1")
    sent = select(asked, held, *picked)
    assert times_in(sent) == {SECOND_LIST, FIRST_LIST + DAY / 2}
    assert judge(asked, sent).is_valid


def times_in(sent):
    return {one["timestamp"] for one in sent["identifiers"]}


def test_items_of_two_moments_are_shown_with_two_lists_and_others_share_one():
    asked = ask(LEVEL, attribute("Full Name"))
    items = asked["requested_attributes"]
    items["level"]["non_revoked"] = {"from": 0, "to": NOW}
    sent = answer(asked, badge(3))
    assert len(sent["identifiers"]) == 1 and judge(asked, sent).is_valid
    items["Full Name"]["non_revoked"] = {"from": 0, "to": FIRST_LIST}
    sent = answer(asked, badge(3))
    assert times_in(sent) == {FIRST_LIST, SECOND_LIST}
    assert judge(asked, sent).is_valid


def test_an_interval_without_an_end_means_the_newest_list():
    asked = ask(LEVEL) | {"non_revoked": {"from": 0}}
    sent = answer(asked, badge(3))
    assert times_in(sent) == {THIRD_LIST} and judge(asked, sent).is_valid
    assert codes(judge(asked, chosen(asked, badge(5)))) == {"revoked_or_invalid"}


@cache
def unasked(index):
    """A proof of non-revocation for a request that does not want one."""
    asked = ask(LEVEL)
    held = badge(index, revoked=index == 2)
    return asked, chosen(asked | {"non_revoked": {"to": NOW}}, held)


def test_a_proof_that_is_not_asked_for_may_be_there_if_it_is_true():
    assert judge(*unasked(3)).is_valid
    assert codes(judge(*unasked(2))) == {"signature"}


@pytest.mark.parametrize(("named", "code"), [
    ({"rev_reg_id": None}, "registry_mismatch"),
    ({"rev_reg_id": "nobody's"}, "registry_mismatch"),
    ({"timestamp": None}, "unknown_timestamp"),
    ({"timestamp": SECOND_LIST + 1}, "unknown_timestamp"),
    ({"timestamp": FIRST_LIST}, "signature"),
])  # fmt: skip
def test_a_proof_that_is_not_asked_for_names_a_list_that_exists(named, code):
    asked, sent = unasked(3)
    identifiers = [sent["identifiers"][0] | named]
    assert codes(judge(asked, sent | {"identifiers": identifiers})) == {code}


def test_names_of_a_registry_without_a_proof_mean_nothing():
    asked = ask(LEVEL)
    sent = answer(asked, badge(3))
    sent["identifiers"][0] |= {"rev_reg_id": "nobody's", "timestamp": 7}
    assert judge(asked, sent).is_valid


def test_the_second_response_of_older_provers_is_ignored():
    asked, sent = answered_now()
    path = ("proof", "proofs", 0, "non_revoc_proof", "x_list")
    responses = sent["proof"]["proofs"][0]["non_revoc_proof"]["x_list"]
    assert judge(asked, changed(sent, path, responses | {"m2": "00"})).is_valid


def test_the_ledger_is_asked_once_for_each_registry_and_time():
    calls, known = [], ledger()
    known.revocation_registry = lambda name: (
        calls.append(name) or Ledger.revocation_registry(known, name)
    )
    known.status_list = lambda *of: calls.append(of) or Ledger.status_list(known, *of)
    asked = ask(LEVEL, attribute("Full Name"), at=NOW)
    sent = answer(asked, badge(3))
    name = stored_registry("first").registry_id
    assert judge(asked, sent, known).is_valid
    assert calls == [name, (name, SECOND_LIST), (name, NOW)]


def test_a_revoked_one_is_never_auto_selected_and_fits_only_where_nothing_is_asked():
    held, fitting = [REVOKED, badge(3)], []
    for asked in (ask(LEVEL), ask(LEVEL, at=NOW)):
        items = ProofRequest.parse(asked).items
        assert selection.auto_select(items, [REVOKED]) == []
        valid = [Selection("level", "first-3")]
        assert selection.auto_select(items, held) == valid
        fitting.append(selection.find_fitting(items, held)[0][1])
    assert fitting == [["first-2", "first-3"], ["first-3"]]


@pytest.mark.parametrize("tails", [None, lambda registry: "/nowhere/tails"])
def test_without_its_tails_file_nothing_is_sent(tails):
    with pytest.raises(Unavailable) as refused:
        chosen(ask(LEVEL, at=NOW), badge(3), tails=tails)
    assert refused.value.code == "tails_unavailable"


@pytest.mark.parametrize("member", ["credDefId", "issuerId"])
def test_a_credential_whose_registry_is_of_another_definition_is_not_proven(member):
    """Anybody can publish such a registry, and no verifier takes it."""
    known, registry_id = ledger(), stored_registry("first").registry_id
    known.registries[registry_id] = known.registries[registry_id] | {member: "other"}
    with pytest.raises(Invalid, match="of another definition or issuer") as refused:
        chosen(ask(LEVEL, at=NOW), badge(3), known=known)
    assert refused.value.code == "unknown_registry"


@pytest.mark.parametrize("broken", ["registry", "list", "nothing is there"])
def test_a_registry_or_list_that_cannot_be_read_is_refused(broken):
    known, registry_id = ledger(), stored_registry("first").registry_id
    if broken == "registry":
        known.registries[registry_id] = {
            "value": known.registries[registry_id]["value"]
        }
    elif broken == "list":
        newest = known.status_list(registry_id, NOW) | {"currentAccumulator": "x"}
        known.status_lists[registry_id] = [newest]
    else:
        known.registries.clear()
    with pytest.raises(Invalid) as refused:
        chosen(ask(LEVEL, at=NOW), badge(3), known=known)
    assert refused.value.code == "unknown_registry"


def test_no_change_of_any_leaf_of_a_non_revocation_proof_is_valid_or_raises():
    asked, sent = answered_now()
    parts = ("proof", "proofs", 0, "non_revoc_proof"), ("identifiers", 0)
    for path in (one for one in leaves(sent) if one[: len(parts[0])] == parts[0]):
        for hostile in HOSTILE:
            assert not judge(asked, changed(sent, path, hostile)).is_valid
    for name in ("rev_reg_id", "timestamp"):
        for hostile in HOSTILE:
            assert not judge(asked, changed(sent, (*parts[1], name), hostile)).is_valid


@pytest.mark.parametrize(
    "text", ["1 0 1 0 1 0", "1 1 1 1", "0 1 1 1 1 1", "1 G 1 1 1 1", "-1 1 1 1"]
)
def test_a_text_that_is_no_point_is_malformed(text):
    asked, sent = answered_now()
    path = ("proof", "proofs", 0, "non_revoc_proof", "c_list", "e")
    assert codes(judge(asked, changed(sent, path, text))) == {"malformed"}


def iso(moment):
    return datetime.fromtimestamp(moment, UTC).isoformat()


def ask_between(start, end, **item):
    """The request of a policy that asks for an interval, for all items or for one."""
    requirement = {"validFrom": iso(start), "validAt": iso(end)}
    whole = {} if item else {"revocationRequirement": requirement}
    policy = proof_policy.normalise(policy_of(LEVEL | item, **whole))
    at = policy.non_revoked_at(end)
    return build_request(policy, "7", at), policy


def test_who_was_revoked_within_the_interval_was_valid_at_its_start():
    asked, policy = ask_between(FIRST_LIST, NOW)
    assert asked["non_revoked"] == {"from": FIRST_LIST, "to": NOW}
    old = asked | {"non_revoked": {"from": 0, "to": FIRST_LIST}}
    sent = chosen(old, REVOKED)
    assert policy.allows_interval
    assert judge(asked, sent, allows_interval=True).is_valid
    assert codes(judge(asked, sent)) == {"stale"}
    at_the_end = chosen(asked, REVOKED)
    outcome = judge(asked, at_the_end, allows_interval=True)
    assert codes(outcome) == {"revoked_or_invalid"}


def test_a_list_that_was_replaced_before_the_interval_or_comes_after_does_not_count():
    asked, _ = ask_between(SECOND_LIST, NOW)
    sent = chosen(asked | {"non_revoked": {"from": 0, "to": FIRST_LIST}}, REVOKED)
    assert codes(judge(asked, sent, allows_interval=True)) == {"stale"}
    asked, _ = ask_between(SECOND_LIST - 1, NOW)
    assert judge(asked, sent | {}, allows_interval=True).is_valid
    asked, _ = ask_between(FIRST_LIST, SECOND_LIST - 1)
    sent = chosen(asked | {"non_revoked": {"from": 0, "to": NOW}}, badge(3))
    outcome = judge(asked, sent, allows_interval=True)
    assert codes(outcome) == {"unknown_timestamp"}


def test_an_item_has_a_moment_of_its_own():
    own = {"revocationRequirement": {"validAt": iso(FIRST_LIST)}}
    whole = {"revocationRequirement": {"validAt": iso(NOW)}}
    policy = policy_of(LEVEL | own, attribute("Full Name"), **whole)
    asked = build_request(proof_policy.normalise(policy), "7", NOW)
    moment = {"from": FIRST_LIST, "to": FIRST_LIST}
    assert asked["requested_attributes"]["level"]["non_revoked"] == moment
    assert "non_revoked" not in asked["requested_attributes"]["Full Name"]
    held = REVOKED.credential_id
    both = [Selection("level", held), Selection("Full Name", held)]
    outcome = judge(asked, select(asked, [REVOKED], *both), at=NOW)
    assert not outcome.is_valid
    alone, _ = ask_between(0, NOW, **own)
    assert "non_revoked" not in alone
    assert judge(alone, chosen(alone, REVOKED), at=NOW).is_valid
