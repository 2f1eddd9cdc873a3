"""The verifier's checklist (docs/verification.md): what makes a presentation an answer.

`anoncreds` proves only what the presentation itself claims. These rules, in this order, see to it
that the claim is what was asked; the library comes last and only if all of them pass:

    malformed             it has the shape of a presentation, every leaf included
    identifiers           as many identifiers as sub-proofs; every answer points to one
    nothing_more          nothing is answered or proven that was not asked
    exponents, challenge  the numbers that CL signatures need checked and the library does not check
    answered              every item once, in one sub-proof, in the form asked
    self_attested         never: no policy allows it
    definition, schema    resolved by us, and the one that was claimed
    attributes            the definition has them
    responses             one response for each attribute that stays hidden, and no other
    revealed              shown or hidden as it is proven
    predicates            attribute, comparison, number and value are those of the sub-proof
    encoding              the shown text is the one that was signed
    restrictions, values  evaluated by us on what we resolved, exact spelling
    non_revocation        where it is asked for and the definition is revocable: a proof of it, with
                          its registry and time
    revocation_registry   the registry is of that definition and of its issuer
    status_list           the list is the newest one up to the time asked for
    signature             the library's verdict

A rule that fails for an item leaves the later ones for that item out ("skipped").

Where non-revocation is asked for, `signature` fails as "revoked_or_invalid": one challenge binds
all parts, so nobody can tell which of the two it is. Where it is not asked for, a proof of it may
be there; it must then fit its registry and some list of it, as the challenge covers it.

What the non-revocation proof is bound to, read in anoncreds-clsignatures 0.3:
- to the challenge, the nonce and all other parts by its eight T values, which the library computes,
  and by its seven points, which the library takes as they come: `challenge` requires them there;
- to the accumulator and the keys of the list and the registry that we resolve, never to their ids:
  hence `revocation_registry`, for anybody can publish a registry in which nothing is revoked;
- to the list's moment not at all: an old list with an old witness holds for ever, hence
  `status_list`, and the library gets the request without its intervals;
- to the credential by the number m2 only, modulo the order of the curve's groups. Honest proofs
  mask m2 with 2432 bits, so its size cannot be bounded here. So it says that some credential of the
  definition is not revoked: with the non-revocation secrets of any holder whose own is not, a
  holder whose credential is revoked makes a proof that verifies. It takes two who collude, not
  only one who holds two. This is a limit of the signature scheme as published that no verifier can
  see or mend; docs/verification.md says what helps.
Points are checked to lie on the curve, not in the subgroup of the pairing; no use of that is known.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

from verifications.proofs import presentation as reader
from verifications.proofs import request as wire
from verifications.proofs.presentation import (
    SINGLE,
    Answer,
    Presentation,
    SubProof,
    Value,
)
from verifications.proofs.request import Item
from verifications.proofs.selection import Registry
from wallets import anoncreds
from wallets.anoncreds import common_view

EXPONENT_BITS = 457
LINK_SECRET = "master_secret"
RESPONSE_BITS = 593

_KINDS = {">=": "GE", ">": "GT", "<=": "LE", "<": "LT"}


class Check(NamedTuple):
    """policy_name: None for the whole presentation. status: pass, fail or skipped.

    code: stable and set only on a failure; message: a plain sentence, empty on success.
    """

    policy_name: str | None
    rule: str
    status: str
    code: str | None
    message: str


class Outcome(NamedTuple):
    """proof: see `check`."""

    is_valid: bool
    checks: list[Check]
    proof: dict[str, dict]


class Failure(NamedTuple):
    code: str
    message: str


NON_REVOCATION_MISSING = Failure(
    "non_revocation_missing",
    "It is not shown that the credential has not been revoked.",
)
NOT_YET_VALID = Failure(
    "not_yet_valid", "At that time nothing was known about the credential."
)
UNKNOWN_TIMESTAMP = Failure(
    "unknown_timestamp",
    "No list of revocations that counts here has the time of the answer.",
)
STALE = Failure("stale", "The answer uses a list of revocations that is too old.")


def check(
    request: dict,
    presentation: Any,
    registry: Registry,
    judged_at: int | None = None,
) -> Outcome:
    """Judge a presentation against the request as we stored it, restrictions and nonce included.

    That a request is answered once only is kept by the state of its verification, not here.
    judged_at: unix seconds that take the place of every time at which the request wants
    credentials not revoked ("validNow" at receipt); it asks for nothing by itself.
    Nothing in the presentation raises; `registry` may, when a ledger is out of reach.
    `proof` has one entry for each policy item, in the API's field names: what the holder *sent*,
    to be believed only if `is_valid`. An item without an answer has no value. A predicate has the
    value "true" if it was proven, else "false", and never the attribute's value.
    """
    items = wire.items(request)
    try:
        case = Case(request, items, reader.read(presentation), registry, judged_at)
    except reader.Malformed:
        failure = Failure(
            "malformed", "The answer does not have the shape of a presentation."
        )
        checks = [_check(None, "malformed", failure)]
        return Outcome(
            False, checks, {item.policy_name: _shown(item, [], False) for item in items}
        )
    checks = list(_judge(case))
    is_valid = all(one.status == "pass" for one in checks)
    proof = {
        item.policy_name: _shown(item, case.answers(item), is_valid) for item in items
    }
    return Outcome(is_valid, checks, proof)


def proof_of(request: dict, presentation: dict, registry: Registry) -> dict[str, dict]:
    """The `proof` of a presentation of our own: what it shows of each policy item."""
    items = wire.items(request)
    case = Case(request, items, reader.read(presentation), registry, None)
    return {item.policy_name: _shown(item, case.answers(item), True) for item in items}


class Case:
    """What is judged, and what is known about it."""

    def __init__(
        self,
        request: dict,
        items: list[Item],
        sent: Presentation,
        registry: Registry,
        judged_at: int | None,
    ):
        self.request = request
        self.items = items
        self.sent = sent
        self.registry = registry
        self.judged_at = judged_at
        self._lists: dict[tuple[str, int], dict | None] = {}

    def answers(self, item: Item) -> list[Answer]:
        """Those to the item itself."""
        part = self.sent.predicates if item.is_predicate else self.sent.attributes
        return [answer for name in item.referents for answer in part.get(name, [])]

    def companions(self, item: Item, name: str) -> list[Answer]:
        """Those that show an attribute for the item's value restriction."""
        return self.sent.attributes.get(item.companions.get(name, ""), [])

    def statements(self, item: Item) -> list[tuple[Answer, tuple[str, ...]]]:
        """All of both, with the attribute names that they are about."""
        own = [(answer, item.attribute_names) for answer in self.answers(item)]
        return own + [
            (answer, (name,))
            for name in item.companions
            for answer in self.companions(item, name)
        ]

    def sub_proofs(self, item: Item) -> dict[int, SubProof]:
        """Those that answer the item or its companions."""
        indexes = {answer.index for answer, _ in self.statements(item)} - {None}
        return {
            index: self.sent.sub_proofs[index] for index in indexes if index is not None
        }

    @cached_property
    def resolved(self) -> list[tuple[dict, dict] | None]:
        """For each sub-proof its definition and that definition's schema, if we know both."""
        ids = [one.definition_id for one in self.sent.identifiers]
        found = {name: self._resolve(name) for name in dict.fromkeys(ids)}
        return [found[name] for name in ids]

    def _resolve(self, definition_id: str) -> tuple[dict, dict] | None:
        definition = self.registry.definition(definition_id)
        schema = self.registry.schema(definition["schemaId"]) if definition else None
        return (definition, schema) if definition and schema else None

    @cached_property
    def registries(self) -> list[dict | None]:
        """For each sub-proof the registry that it names, if we know it."""
        ids = [one.registry_id for one in self.sent.identifiers]
        found = {
            name: self.registry.registry(name) for name in dict.fromkeys(ids) if name
        }
        return [found.get(name or "") for name in ids]

    def list_at(self, index: int, time: int | None) -> dict | None:
        """The newest list up to that time of the registry that a sub-proof names."""
        name = self.sent.identifiers[index].registry_id
        if name is None or time is None or self.registries[index] is None:
            return None
        if (name, time) not in self._lists:
            self._lists[name, time] = self.registry.status_list(name, time)
        return self._lists[name, time]

    def due(self, item: Item) -> int | None:
        """When the item's credential must not be revoked; None if that is not asked for."""
        if item.non_revoked is None:
            return None
        return wire.end(item.non_revoked) if self.judged_at is None else self.judged_at

    def non_revocations(self, item: Item) -> list[int]:
        """The sub-proofs for the item that prove non-revocation."""
        return [
            index
            for index, one in self.sub_proofs(item).items()
            if one.proves_non_revocation
        ]

    def fits_registry(self, index: int) -> bool:
        """Whether a sub-proof names a registry of its definition, made by the same issuer."""
        known, found = self.resolved[index], self.registries[index]
        if known is None or found is None:
            return False
        name = self.sent.identifiers[index].definition_id
        return found["credDefId"] == name and found["issuerId"] == known[0]["issuerId"]

    @cached_property
    def shown(self) -> list[dict[str, set[str]]]:
        """For each sub-proof: label -> the encoded values that the answers give for it."""
        shown: list[dict[str, set[str]]] = [{} for _ in self.sent.sub_proofs]
        for answer, names in (
            one for item in self.items for one in self.statements(item)
        ):
            if answer.index is not None:
                for label, value in _labelled(answer, names):
                    shown[answer.index].setdefault(label, set()).add(value.encoded)
        return shown

    @cached_property
    def compared(self) -> list[set[tuple[str, str, int]]]:
        """For each sub-proof: the comparisons that the answers say it proves."""
        compared: list[set[tuple[str, str, int]]] = [
            set() for _ in self.sent.sub_proofs
        ]
        for item in filter(lambda item: item.is_predicate, self.items):
            for referent, (kind, threshold) in zip(
                item.referents, item.bounds, strict=True
            ):
                for answer in self.sent.predicates.get(referent, []):
                    claim = (
                        common_view(item.attribute_names[0]),
                        _KINDS[kind],
                        threshold,
                    )
                    compared[answer.index or 0].add(claim)
        return compared


def identifiers(case: Case) -> Failure | None:
    count = len(case.sent.sub_proofs)
    if len(case.sent.identifiers) == count and all(
        index < count for index in _pointers(case)
    ):
        return None
    message = "The proofs and the credentials they name do not correspond."
    return Failure("identifiers_mismatch", message)


def nothing_more(case: Case) -> Failure | None:
    sent = case.sent
    asked = (
        sent.attributes.keys() <= case.request["requested_attributes"].keys()
        and sent.predicates.keys() <= case.request["requested_predicates"].keys()
    )
    if asked and _pointers(case) == set(range(len(sent.sub_proofs))):
        return None
    return Failure("unrequested", "The answer holds something that was not asked for.")


def exponents(case: Case) -> Failure | None:
    """Unbounded, `e` lets anybody forge a credential from the public key alone: take e = 1."""
    for one in case.sent.sub_proofs:
        responses = [*one.responses.values(), *one.roots]
        small = all(0 <= number < 2**RESPONSE_BITS for number in responses)
        if not small or not 0 <= one.exponent < 2**EXPONENT_BITS:
            message = "A number in the proof is larger than an honest one can be."
            return Failure("proof_out_of_range", message)
    return None


def challenge(case: Case) -> Failure | None:
    """A commitment chosen after the challenge proves nothing."""
    committed = {number for one in case.sent.sub_proofs for number in one.commitments}
    if committed <= case.sent.hashed:
        return None
    return Failure(
        "challenge_incomplete", "The proof is not bound to its own challenge."
    )


def answered(case: Case, item: Item) -> Failure | None:
    own = case.answers(item)
    companions = [case.companions(item, name) for name in item.companions]
    if len(own) > len(item.referents) or any(
        len(answers) > 1 for answers in companions
    ):
        return Failure("answered_twice", "The item is answered more than once.")
    if len({answer.index for answer in own}) > 1:
        return Failure("split_answer", "One credential must answer all of this item.")
    if len(own) < len(item.referents):
        return Failure("unanswered", "The holder did not answer this item.")
    if not all(_in_form(case, item, answer) for answer in own):
        return Failure(
            "wrong_form", "The item is not answered in the form it was asked in."
        )
    return None


def self_attested(case: Case, item: Item) -> Failure | None:
    if all(answer.index is not None for answer, _ in case.statements(item)):
        return None
    return Failure(
        "self_attested", "The holder only claims this; no credential proves it."
    )


def definition(case: Case, item: Item) -> Failure | None:
    if all(case.resolved[index] for index in case.sub_proofs(item)):
        return None
    return Failure(
        "unknown_definition", "The ledger does not know the credential's definition."
    )


def schema(case: Case, item: Item) -> Failure | None:
    for index in case.sub_proofs(item):
        known = case.resolved[index]
        if known and known[0]["schemaId"] != case.sent.identifiers[index].schema_id:
            return Failure(
                "schema_mismatch", "The credential is of another schema than it says."
            )
    return None


def attributes(case: Case, item: Item) -> Failure | None:
    for answer, names in case.statements(item):
        known = None if answer.index is None else case.resolved[answer.index]
        if known and not set(map(common_view, names)) <= _labels(known[1]):
            message = "The credential has no attribute of this name."
            return Failure("attribute_not_in_schema", message)
    return None


def responses(case: Case, item: Item) -> Failure | None:
    """The library does not read the response of an attribute that is shown. A predicate on that
    attribute could then be proven of any number, with a response made up for it.
    """
    for index, sub_proof in case.sub_proofs(item).items():
        known = case.resolved[index]
        signed = _labels(known[1]) | {LINK_SECRET} if known else set()
        if sub_proof.responses.keys() != signed - sub_proof.revealed.keys():
            message = "The proof must hold one response for each hidden attribute, and no other."
            return Failure("malformed", message)
    return None


def revealed(case: Case, item: Item) -> Failure | None:
    for index, sub_proof in case.sub_proofs(item).items():
        if case.shown[index] != {
            label: {value} for label, value in sub_proof.revealed.items()
        }:
            message = "What the answer shows is not what the proof shows."
            return Failure("revealed_mismatch", message)
    return None


def predicates(case: Case, item: Item) -> Failure | None:
    """The library trusts the name and the response that the holder writes into a predicate."""
    for index, sub_proof in case.sub_proofs(item).items():
        proven = {
            (one.label, one.kind, one.value)
            for one in sub_proof.predicates
            if sub_proof.responses.get(one.label) == one.response
        }
        bound = len(proven) == len(sub_proof.predicates)
        blamed = item.is_predicate or not case.compared[index]
        if blamed and not (bound and proven == case.compared[index]):
            message = "The comparison that is proven is not the one that was asked for."
            return Failure("predicate_mismatch", message)
    return None


def encoding(case: Case, item: Item) -> Failure | None:
    given = [answer for answer, _ in case.statements(item) if answer.index is not None]
    texts = [value for answer in given for value in answer.values.values()]
    if all(anoncreds.is_encoding_of(value.raw, value.encoded) for value in texts):
        return None
    return Failure("encoding", "The value shown is not the one that the issuer signed.")


def restrictions(case: Case, item: Item) -> Failure | None:
    if not item.restrictions or all(
        _met(case, item, index) for index in _places(case, item)
    ):
        return None
    return Failure("restriction", "The credential does not meet the restrictions.")


def values(case: Case, item: Item) -> Failure | None:
    for index in _places(case, item):
        met = _met(case, item, index)
        if met and not any(_has_value(case, item, index, one) for one in met):
            return Failure(
                "value_restriction", "The credential does not show the required value."
            )
    return None


def non_revocation(case: Case, item: Item) -> Failure | None:
    """The library takes "not proven" for "not asked" where no registry is named."""
    time = case.due(item)
    for index, sub_proof in case.sub_proofs(item).items():
        sent = case.sent.identifiers[index]
        named = sent.registry_id is not None and sent.timestamp is not None
        if time is None or not _is_revocable(case, index):
            continue
        if not (sub_proof.proves_non_revocation and named):
            too_early = case.fits_registry(index) and case.list_at(index, time) is None
            return NOT_YET_VALID if too_early else NON_REVOCATION_MISSING
    return None


def revocation_registry(case: Case, item: Item) -> Failure | None:
    """Whoever keeps a registry decides what is revoked in it."""
    if all(case.fits_registry(index) for index in case.non_revocations(item)):
        return None
    message = "The registry of revocations is not one of the credential's issuer and definition."
    return Failure("registry_mismatch", message)


def status_list(case: Case, item: Item) -> Failure | None:
    """A list that was superseded by then does not know of later revocations."""
    time = case.due(item)
    for index in case.non_revocations(item):
        sent = case.sent.identifiers[index].timestamp
        named = case.list_at(index, sent)
        newest = named if time is None else case.list_at(index, time)
        if time is not None and newest is None:
            return NOT_YET_VALID
        if named is None or named["timestamp"] != sent:
            return UNKNOWN_TIMESTAMP
        if newest and newest["timestamp"] != sent:
            return STALE if newest["timestamp"] > sent else UNKNOWN_TIMESTAMP
    return None


def signature(case: Case) -> Failure | None:
    pairs = list(zip(case.sent.identifiers, case.resolved, strict=True))
    registries, lists = _resolved_registries(case)
    referents = [*case.sent.attributes, *case.sent.predicates]
    if anoncreds.verify_presentation(
        _for_library(case.sent),
        wire.pruned(case.request, referents, keep_conditions=False),
        {one.schema_id: known[1] for one, known in pairs if known},
        {one.definition_id: known[0] for one, known in pairs if known},
        registries,
        lists,
    ):
        return None
    if any(
        case.due(item) is not None and case.non_revocations(item) for item in case.items
    ):
        message = "The proof does not verify: a credential is revoked, or something was forged."
        return Failure("revoked_or_invalid", message)
    return Failure("signature", "The proof does not verify.")


GENERAL_RULES: tuple[Callable[[Case], Failure | None], ...] = (
    identifiers,
    nothing_more,
    exponents,
    challenge,
)
ITEM_RULES: tuple[Callable[[Case, Item], Failure | None], ...] = (
    answered,
    self_attested,
    definition,
    schema,
    attributes,
    responses,
    revealed,
    predicates,
    encoding,
    restrictions,
    values,
    non_revocation,
    revocation_registry,
    status_list,
)


def _judge(case: Case) -> Iterator[Check]:
    """All checks in order; what comes after a failure of the whole or of an item is skipped."""
    stopped = False
    for rule in GENERAL_RULES:
        yield (
            one := _skip(None, rule)
            if stopped
            else _check(None, rule.__name__, rule(case))
        )
        stopped = stopped or one.status == "fail"
    failed = False
    for item in case.items:
        for one in _judge_item(case, item, stopped):
            yield one
            failed = failed or one.status != "pass"
    stop = stopped or failed
    yield _skip(None, signature) if stop else _check(None, "signature", signature(case))


def _judge_item(case: Case, item: Item, stopped: bool) -> Iterator[Check]:
    for rule in ITEM_RULES:
        if stopped:
            yield _skip(item.policy_name, rule)
        else:
            yield (one := _check(item.policy_name, rule.__name__, rule(case, item)))
            stopped = one.status == "fail"


def _check(policy_name: str | None, rule: str, failure: Failure | None) -> Check:
    if failure is None:
        return Check(policy_name, rule, "pass", None, "")
    return Check(policy_name, rule, "fail", *failure)


def _skip(policy_name: str | None, rule: Callable) -> Check:
    message = "Not looked at: an earlier check failed."
    return Check(policy_name, rule.__name__, "skipped", None, message)


def _pointers(case: Case) -> set[int]:
    groups = [*case.sent.attributes.values(), *case.sent.predicates.values()]
    return {one.index for answers in groups for one in answers if one.index is not None}


def _resolved_registries(case: Case) -> tuple[dict[str, dict], list[dict]]:
    """By id, and the lists of the times named, for all sub-proofs that prove non-revocation."""
    registries: dict[str, dict] = {}
    lists: list[dict] = []
    for index, one in enumerate(case.sent.identifiers):
        known, named = case.registries[index], case.list_at(index, one.timestamp)
        if (
            case.sent.sub_proofs[index].proves_non_revocation
            and one.registry_id
            and known
        ):
            registries[one.registry_id] = known
            lists += [named] if named else []
    return registries, lists


def _for_library(sent: Presentation) -> dict:
    """It asks for every registry that is named, also where nothing is proven about it."""
    nothing = {"rev_reg_id": None, "timestamp": None}
    pairs = zip(sent.sub_proofs, sent.body["identifiers"], strict=True)
    named = [
        one if proof.proves_non_revocation else one | nothing for proof, one in pairs
    ]
    return sent.body | {"identifiers": named}


def _is_revocable(case: Case, index: int) -> bool:
    known = case.resolved[index]
    return known is not None and known[0]["value"].get("revocation") is not None


def _places(case: Case, item: Item) -> set[int]:
    """The sub-proof that answers the item itself, unless it is self-attested."""
    return {answer.index for answer in case.answers(item) if answer.index is not None}


def _in_form(case: Case, item: Item, answer: Answer) -> bool:
    """Names asked as a group are shown as a group of exactly these names."""
    if item.is_predicate or answer.form in ("unrevealed_attrs", "self_attested_attrs"):
        return True
    if case.request["requested_attributes"][item.referents[0]].get("names") is not None:
        names = set(item.attribute_names)
        return answer.form == "revealed_attr_groups" and set(answer.values) == names
    return answer.form == "revealed_attrs"


def _labels(schema: dict) -> set[str]:
    return set(map(common_view, schema["attrNames"]))


def _labelled(answer: Answer, names: tuple[str, ...]) -> Iterator[tuple[str, Value]]:
    """What the answer shows, by label; names: the attributes it was asked for."""
    for name, value in answer.values.items():
        yield common_view(names[0] if name == SINGLE else name), value


def _met(case: Case, item: Item, index: int) -> list[dict]:
    """The alternatives that the credential meets, whatever values they require."""
    known, name = case.resolved[index], case.sent.identifiers[index].definition_id
    if known is None:
        return []
    facts = wire.facts(name, *known)
    return [one for one in item.restrictions if wire.meets_names(one, facts)]


def _has_value(case: Case, item: Item, index: int, restriction: dict) -> bool:
    """Whether the required value is shown, from the same credential, by an item not hidden."""
    required = restriction.get("value")
    if required is None:
        return True
    label = common_view(required["attributeName"])
    if any(answer.form == "unrevealed_attrs" for answer in case.answers(item)):
        return False
    return any(
        value.raw == required["attributeValue"]
        for answer, names in case.statements(item)
        if answer.index == index
        for shown, value in _labelled(answer, names)
        if shown == label
    )


def _shown(item: Item, answers: list[Answer], is_valid: bool) -> dict:
    """The item's entry in the proof; without values if it is not answered exactly once."""
    answer = answers[0] if len(answers) == len(item.referents) else None
    name = item.attribute_names[0]
    flags = {"revealed": False, "selfAttested": False, "conditional": item.is_predicate}
    if item.is_predicate:
        return {
            "name": name,
            "value": "true" if answer and is_valid else "false",
        } | flags
    given = answer.values if answer else {}
    texts = {one: given[one].raw for one in item.attribute_names if one in given}
    texts |= {name: given[SINGLE].raw} if SINGLE in given else {}
    flags["selfAttested"] = answer is not None and answer.index is None
    flags["revealed"] = bool(texts) and not flags["selfAttested"]
    if len(item.attribute_names) == 1:
        return (
            {"name": name} | ({"value": texts[name]} if name in texts else {}) | flags
        )
    return ({"attributes": texts} if texts else {}) | flags
