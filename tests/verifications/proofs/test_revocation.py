"""Non-revocation from policy to verdict, with honest wallets.

See test_forgeries for others.
"""

from datetime import UTC, datetime

import pytest

from agency.core.errors import Invalid, Unavailable
from tests.fixtures import (
    ALICE_LINK_SECRET,
    DAY,
    FIRST_LIST,
    Ledger,
    badge,
    candidate,
    ledger,
    stored_registry,
    tails_path,
)
from tests.support.presentations import (
    answer,
    ask,
    attribute,
    codes,
    judge,
    predicate,
    select,
)
from tests.verifications.proofs.test_checks import HOSTILE, changed, leaves
from verifications.proofs import presentation_building, proof_policy, selection
from verifications.proofs.request_building import build_request
from verifications.proofs.selection import Selection

SECOND_LIST, THIRD_LIST = FIRST_LIST + DAY, FIRST_LIST + 2 * DAY
NOW = SECOND_LIST + 100
LEVEL = attribute("level")
REVOKED = badge(2, revoked=True)


def chosen(request, held, **more):
    """What the holder sends for the level, whatever is known of the credential."""
    return select(request, [held], Selection("level", held.credential_id, **more))


def test_a_credential_that_is_not_revoked_is_valid():
    asked = ask(LEVEL, at=NOW)
    sent = answer(asked, badge(3))
    assert sent["identifiers"][0]["timestamp"] == SECOND_LIST
    outcome = judge(asked, sent)
    assert outcome.is_valid and outcome.proof["level"]["value"] == "7"


def test_a_revoked_credential_that_is_chosen_is_sent_and_not_valid():
    asked = ask(LEVEL, at=NOW)
    outcome = judge(asked, chosen(asked, REVOKED))
    assert codes(outcome) == {"revoked_or_invalid"} and not outcome.is_valid


def test_a_credential_revoked_later_was_valid_before():
    asked = ask(LEVEL, at=SECOND_LIST - 1)
    assert judge(asked, chosen(asked, REVOKED)).is_valid


def test_a_list_counts_from_its_very_second():
    asked = ask(LEVEL, at=SECOND_LIST)
    assert codes(judge(asked, chosen(asked, REVOKED))) == {"revoked_or_invalid"}


def test_before_the_first_list_nothing_is_valid():
    asked = ask(LEVEL, at=FIRST_LIST - 1)
    sent = chosen(asked, badge(3))
    assert sent["identifiers"][0]["timestamp"] is None
    assert codes(judge(asked, sent)) == {"not_yet_valid"}


def test_valid_now_is_judged_when_the_answer_comes():
    asked = ask(LEVEL, at=NOW)
    sent = answer(asked, badge(5))
    assert judge(asked, sent, at=THIRD_LIST - 1).is_valid
    assert codes(judge(asked, sent, at=THIRD_LIST)) == {"stale"}


def test_the_time_of_judging_asks_for_nothing_by_itself():
    asked = ask(LEVEL)
    assert judge(asked, chosen(asked, REVOKED), at=NOW).is_valid


def test_a_predicate_is_proven_of_a_credential_that_is_not_revoked():
    asked = ask(predicate("level", ">=", 5), at=NOW)
    sent = answer(asked, badge(3))
    assert (
        sent["proof"]["proofs"][0]["non_revoc_proof"]
        and judge(
            asked,
            sent,
        ).is_valid
    )


@pytest.mark.parametrize("nothing", [{}, {"non_revoked": None}, {"non_revoked": {}}])
def test_a_hidden_attribute_is_proven_of_a_credential_that_is_not_revoked(nothing):
    asked = ask(LEVEL) | nothing
    asked["requested_attributes"]["level"]["non_revoked"] = {"to": NOW}
    assert judge(asked, answer(asked, badge(3), hidden=("level",))).is_valid
    assert codes(judge(asked, chosen(asked, REVOKED, hidden=True))) == {
        "revoked_or_invalid"
    }


def test_a_definition_without_revocation_needs_no_proof_of_it():
    asked = ask(attribute("name"), at=NOW)
    assert judge(asked, answer(asked, candidate("degree"))).is_valid


def test_revocable_credentials_and_others_answer_together():
    asked = ask(attribute("name"), LEVEL, predicate("age", ">", 18), at=NOW)
    assert judge(asked, answer(asked, candidate("degree"), badge(3))).is_valid
    picked = (
        Selection("name", "degree"),
        Selection("age", "degree"),
        Selection("level", "first-2"),
    )
    outcome = judge(asked, select(asked, [candidate("degree"), REVOKED], *picked))
    assert codes(outcome) == {"revoked_or_invalid"}


def test_every_registry_has_lists_of_its_own():
    asked = ask(LEVEL, attribute("Full Name"), at=NOW)
    held = [badge(3), badge(1, "second")]
    sent = select(
        asked, held, Selection("level", "first-3"), Selection("Full Name", "second-1")
    )
    assert {one["timestamp"] for one in sent["identifiers"]} == {
        SECOND_LIST,
        FIRST_LIST + DAY / 2,
    }
    assert judge(asked, sent).is_valid


def test_items_of_two_moments_are_shown_with_two_lists():
    asked = ask(LEVEL, attribute("Full Name"))
    asked["requested_attributes"]["level"]["non_revoked"] = {"from": 0, "to": NOW}
    asked["requested_attributes"]["Full Name"]["non_revoked"] = {
        "from": 0,
        "to": FIRST_LIST,
    }
    sent = answer(asked, badge(3))
    assert {one["timestamp"] for one in sent["identifiers"]} == {
        FIRST_LIST,
        SECOND_LIST,
    }
    assert judge(asked, sent).is_valid


def test_items_without_a_moment_share_the_proof_of_those_with_one():
    asked = ask(LEVEL, attribute("Full Name"))
    asked["requested_attributes"]["level"]["non_revoked"] = {"to": NOW}
    sent = answer(asked, badge(3))
    assert len(sent["identifiers"]) == 1 and judge(asked, sent).is_valid


def test_an_interval_without_an_end_means_the_newest_list():
    asked = ask(LEVEL) | {"non_revoked": {"from": 0}}
    sent = answer(asked, badge(3))
    assert (
        sent["identifiers"][0]["timestamp"] == THIRD_LIST
        and judge(asked, sent).is_valid
    )
    assert codes(judge(asked, chosen(asked, badge(5)))) == {"revoked_or_invalid"}


def test_what_is_not_asked_for_is_not_proven():
    asked = ask(LEVEL)
    sent = chosen(asked, REVOKED)
    assert (
        sent["proof"]["proofs"][0]["non_revoc_proof"] is None
        and judge(asked, sent).is_valid
    )


def unasked(held):
    """A proof of non-revocation for a request that does not want one."""
    asked = ask(LEVEL)
    return asked, chosen(asked | {"non_revoked": {"to": NOW}}, held)


def test_a_proof_that_is_not_asked_for_may_be_there_if_it_is_true():
    assert judge(*unasked(badge(3))).is_valid
    assert codes(judge(*unasked(REVOKED))) == {"signature"}


@pytest.mark.parametrize(
    ("named", "code"),
    [
        ({"rev_reg_id": None}, "registry_mismatch"),
        ({"rev_reg_id": "nobody's"}, "registry_mismatch"),
        ({"timestamp": None}, "unknown_timestamp"),
        ({"timestamp": SECOND_LIST + 1}, "unknown_timestamp"),
        ({"timestamp": FIRST_LIST}, "signature"),
    ],
)
def test_a_proof_that_is_not_asked_for_names_a_list_that_exists(named, code):
    asked, sent = unasked(badge(3))
    sent["identifiers"][0] |= named
    assert codes(judge(asked, sent)) == {code}


def test_names_of_a_registry_without_a_proof_mean_nothing():
    asked = ask(LEVEL)
    sent = answer(asked, badge(3))
    sent["identifiers"][0] |= {"rev_reg_id": "nobody's", "timestamp": 7}
    assert judge(asked, sent).is_valid


def test_the_second_response_of_older_provers_is_ignored():
    asked = ask(LEVEL, at=NOW)
    sent = answer(asked, badge(3))
    sent["proof"]["proofs"][0]["non_revoc_proof"]["x_list"]["m2"] = "00"
    assert judge(asked, sent).is_valid


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


def test_auto_select_never_takes_a_revoked_credential():
    for asked in (ask(LEVEL), ask(LEVEL, at=NOW)):
        assert selection.auto_select(asked, [REVOKED]) == []
        assert selection.auto_select(asked, [REVOKED, badge(3)]) == [
            Selection("level", "first-3")
        ]


def test_a_revoked_credential_fits_only_where_non_revocation_is_not_asked_for():
    held = [REVOKED, badge(3)]
    fitting = [
        selection.find_fitting(one, held)[0][1]
        for one in (ask(LEVEL), ask(LEVEL, at=NOW))
    ]
    assert fitting == [["first-2", "first-3"], ["first-3"]]


@pytest.mark.parametrize("tails", [None, lambda registry: "/nowhere/tails"])
def test_without_its_tails_file_nothing_is_sent(tails):
    asked, held = ask(LEVEL, at=NOW), [badge(3)]
    picked = [Selection("level", "first-3")]
    with pytest.raises(Unavailable) as refused:
        presentation_building.create_presentation(
            asked, picked, held, ALICE_LINK_SECRET, ledger(), tails
        )
    assert refused.value.code == "tails_unavailable"


@pytest.mark.parametrize("broken", ["registry", "list"])
def test_a_registry_or_list_that_cannot_be_read_is_refused(broken):
    asked, held, known = ask(LEVEL, at=NOW), [badge(3)], ledger()
    [registry_id] = {one.revocation.registry_id for one in held}
    if broken == "registry":
        known.registries[registry_id] = {
            "value": known.registries[registry_id]["value"]
        }
    else:
        newest = known.status_list(registry_id, NOW) | {"currentAccumulator": "x"}
        known.status_lists[registry_id] = [newest]
    picked = [Selection("level", "first-3")]
    with pytest.raises(Invalid) as refused:
        presentation_building.create_presentation(
            asked, picked, held, ALICE_LINK_SECRET, known, tails_path
        )
    assert refused.value.code == "unknown_registry"


def test_a_registry_that_the_ledger_no_longer_knows_is_refused():
    asked, held, known = ask(LEVEL, at=NOW), [badge(3)], ledger()
    known.registries.clear()
    picked = [Selection("level", "first-3")]
    with pytest.raises(Invalid) as refused:
        presentation_building.create_presentation(
            asked, picked, held, ALICE_LINK_SECRET, known, tails_path
        )
    assert refused.value.code == "unknown_registry"


def test_no_change_of_any_leaf_of_a_non_revocation_proof_is_valid_or_raises():
    asked = ask(LEVEL, at=NOW)
    sent = answer(asked, badge(3))
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
    asked = ask(LEVEL, at=NOW)
    path = ("proof", "proofs", 0, "non_revoc_proof", "c_list", "e")
    assert codes(judge(asked, changed(answer(asked, badge(3)), path, text))) == {
        "malformed"
    }


def iso(moment):
    return datetime.fromtimestamp(moment, UTC).isoformat()


def ask_between(start, end, **item):
    """The request of a policy that asks for an interval, for all items or for one."""
    requirement = {"validFrom": iso(start), "validAt": iso(end)}
    body = {"name": "Proof", "version": "1.0", "attributes": [LEVEL | item]}
    if not item:
        body["revocationRequirement"] = requirement
    policy = proof_policy.normalise(body)
    at = proof_policy.non_revoked_at(policy, end)
    return build_request(policy, "7", at), policy


def test_who_was_revoked_within_the_interval_was_valid_at_its_start():
    asked, policy = ask_between(FIRST_LIST, NOW)
    assert asked["non_revoked"] == {"from": FIRST_LIST, "to": NOW}
    old = asked | {"non_revoked": {"from": 0, "to": FIRST_LIST}}
    sent = chosen(old, REVOKED)
    assert proof_policy.allows_interval(policy)
    assert judge(asked, sent, allows_interval=True).is_valid
    assert codes(judge(asked, sent)) == {"stale"}
    at_the_end = chosen(asked, REVOKED)
    outcome = judge(asked, at_the_end, allows_interval=True)
    assert codes(outcome) == {"revoked_or_invalid"}


def test_a_list_that_was_replaced_before_the_interval_does_not_count():
    asked, _ = ask_between(SECOND_LIST, NOW)
    sent = chosen(asked | {"non_revoked": {"from": 0, "to": FIRST_LIST}}, REVOKED)
    assert codes(judge(asked, sent, allows_interval=True)) == {"stale"}
    asked, _ = ask_between(SECOND_LIST - 1, NOW)
    assert judge(asked, sent | {}, allows_interval=True).is_valid


def test_a_list_after_the_interval_does_not_count():
    asked, _ = ask_between(FIRST_LIST, SECOND_LIST - 1)
    sent = chosen(asked | {"non_revoked": {"from": 0, "to": NOW}}, badge(3))
    outcome = judge(asked, sent, allows_interval=True)
    assert codes(outcome) == {"unknown_timestamp"}


def test_an_item_has_a_moment_of_its_own():
    own = {"revocationRequirement": {"validAt": iso(FIRST_LIST)}}
    asked = build_request(
        proof_policy.normalise(
            {
                "name": "Proof",
                "version": "1.0",
                "attributes": [LEVEL | own, attribute("Full Name")],
                "revocationRequirement": {"validAt": iso(NOW)},
            }
        ),
        "7",
        NOW,
    )
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
