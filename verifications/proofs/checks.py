"""The verifier's checklist: what makes a presentation valid (docs/verification.md).

`anoncreds` proves only what the presentation itself claims. These rules, in this
order, check that the presentation claims what was requested. The library runs last,
and only if all rules pass:

    malformed             it has the shape of a presentation, every leaf included
    identifiers           as many identifiers as sub-proofs; every answer points to one
    nothing_more          nothing is answered or proven that was not requested
    exponents, challenge  the numbers that CL signatures need checked and the library
                          does not check
    answered              every item once, in one sub-proof, in the requested form
    self_attested         never: no policy allows it
    definition, schema    resolved by us, and the same as claimed
    attributes            the definition has them
    responses             one response for each hidden attribute, and no other
    revealed              shown or hidden as it is proven
    predicates            exactly the requested comparisons are proven, of values of
                          the same sub-proof
    encoding              the shown text is the signed one
    restrictions, values  evaluated by us on the objects we resolved, case-sensitive
    non_revocation        if requested and the definition is revocable: a proof of it,
                          with its registry and time
    revocation_registry   the registry is of that definition and of its issuer
    status_list           the list is the newest one up to the requested time, or one
                          that the policy lets pass
    signature             the library's verdict

After a rule fails for an item, the later rules are skipped for that item.

If non-revocation is requested, `signature` fails as "revoked_or_invalid": one
challenge covers all parts, so the cause cannot be determined. If it is not requested,
a presentation may still prove it. That proof must then match its registry and some
list of it, because the challenge covers it.

What a non-revocation proof is bound to, according to the source of
anoncreds-clsignatures 0.3:
- The challenge, the nonce and all other parts: through its eight T values, which the
  library computes, and its seven points, which the library accepts unchecked. So
  `challenge` requires the points in the challenge.
- The accumulator and the keys of the list and the registry that we resolve, never
  their ids. So there is `revocation_registry`: anybody can publish a registry in which
  nothing is revoked.
- Not the time of the list: an old list with an old witness verifies forever. So there
  is `status_list`, and the library gets the request without its intervals.
- The credential: only through the number m2, modulo the order of the curve's groups.
  Honest proofs mask m2 with 2432 bits, so its size cannot be bounded here. The proof
  therefore says that some credential of the definition is not revoked. The holder of a
  revoked credential can make a proof that verifies, with the non-revocation secrets of
  another holder whose credential is not revoked. This takes two holders who collude,
  not one holder with two credentials. It is a limit of the published signature scheme
  that no verifier can detect or fix. docs/verification.md says how to reduce the risk.
Points are checked to lie on the curve, but not in the subgroup of the pairing. No
attack is known.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

from connections.didcomm.message import PreparedResults
from core.text.bounded_json import JSON
from verifications.proofs import failures
from verifications.proofs.failures import Failure
from verifications.proofs.ledger_reader import LedgerReader
from verifications.proofs.policy import Interval, Restriction
from verifications.proofs.presentation_reading import (
    SINGLE_VALUE,
    Answer,
    MalformedPresentation,
    Presentation,
    SubProof,
    Value,
    read_presentation,
)
from verifications.proofs.proof_items import Item, credential_facts
from verifications.proofs.proof_values import (
    Proof,
    own_answers,
    proof_by_item,
    proof_entry,
)
from verifications.proofs.request_reading import ProofRequest
from wallets import anoncreds
from wallets.anoncreds import LINK_SECRET_LABEL, normalise_name
from wallets.anoncreds.objects import (
    DefinitionBody,
    RegistryBody,
    SchemaBody,
    StatusListBody,
)

# The sizes of the largest honest numbers: the exponent e of a signature, and a
# response for a hidden value.
EXPONENT_BITS = 457
RESPONSE_BITS = 593

_LIBRARY_KINDS = {">=": "GE", ">": "GT", "<=": "LE", "<": "LT"}


class Check(NamedTuple):
    """The result of one rule.

    policy_name: None for the whole presentation. status: pass, fail or skipped.
    code: stable, set only on a failure. message: a sentence, empty on success.
    """

    policy_name: str | None
    rule: str
    status: str
    code: str | None
    message: str


class Outcome(NamedTuple):
    """The verdict on a presentation. proof: see `judge_presentation`."""

    is_valid: bool
    checks: list[Check]
    proof: Proof


def judge_presentation(
    request: ProofRequest,
    presentation: Any,
    ledger: LedgerReader,
    at_receipt: Interval | None = None,
    allows_interval: bool = False,
    prepared: PreparedResults | None = None,
    with_definition: Container[str] = (),
) -> Outcome:
    """Check a presentation against our stored request with its restrictions and nonce.

    No presentation makes this raise; `ledger` may raise if it cannot be reached. That a
    request is answered only once is not checked here: the state of its verification
    ensures it.

    at_receipt: for "validNow", the interval whose status lists count
    (Policy.interval_at_receipt). It replaces that of the request. It changes
    nothing for items that do not require non-revocation, and for items with a time of
    their own.

    allows_interval: whether any status list of an interval proves non-revocation, as
    for a policy with `validFrom`. If not, only the newest up to its end does: an older
    one lacks later revocations.

    prepared: what the prover, hosted here, has verified itself.

    with_definition: see proof_by_item().

    `proof` has one entry per policy item, with the API's field names: what the holder
    *sent*, to be trusted only if `is_valid`. An item without an answer has no value.
    A predicate has the value "true" if it was proven, else "false", and never the
    attribute's value.
    """
    try:
        parsed = read_presentation(presentation)
    except MalformedPresentation:
        failure = failures.MALFORMED
        return Outcome(
            is_valid=False,
            checks=[Check(None, "malformed", "fail", failure.code, failure.message)],
            proof={
                item.policy_name: proof_entry(item, [], False) for item in request.items
            },
        )
    judgement = Judgement(
        request,
        parsed,
        ledger,
        at_receipt,
        allows_interval,
        prepared or PreparedResults(),
    )
    checks = _run_rules(judgement)
    is_valid = {check.status for check in checks} == {"pass"}
    proof = proof_by_item(request.items, parsed, is_valid, with_definition)
    return Outcome(is_valid, checks, proof)


def verify_own_presentation(
    request: ProofRequest, presentation: Presentation, ledger: LedgerReader
) -> PreparedResults:
    """Verify our own presentation before the locks. The verdict is not used.

    A verifier hosted here calls the library with the same arguments in the transaction
    that sends it, and then finds the result in what this returns.
    """
    judgement = Judgement(request, presentation, ledger)
    if presentation.sub_proofs:
        check_signature(judgement)
    return judgement.prepared


@dataclass
class AnsweredItem:
    """An item with what the presentation answers to it.

    Its own answers and sub-proofs are those of its referents, without those of its
    companions.
    """

    item: Item
    presentation: Presentation

    @cached_property
    def own_answers(self) -> list[Answer]:
        return own_answers(self.presentation, self.item)

    @cached_property
    def all_answers(self) -> list[tuple[Answer, tuple[str, ...]]]:
        """The answers to the item and its companions, with their attribute labels."""
        own = [(answer, self.item.labels) for answer in self.own_answers]
        return own + [
            (answer, (normalise_name(name),))
            for name, referent in self.item.companions.items()
            for answer in self.presentation.attributes.get(referent, [])
        ]

    @cached_property
    def sub_proofs(self) -> dict[int, SubProof]:
        """The sub-proofs that answer the item or its companions, by index."""
        indexes = _indexes_in(answer for answer, _ in self.all_answers)
        return {index: self.presentation.sub_proofs[index] for index in sorted(indexes)}

    @cached_property
    def own_sub_proofs(self) -> set[int]:
        """The indexes of the sub-proofs that answer the item itself.

        Empty if it is self-attested.
        """
        return _indexes_in(self.own_answers)

    @cached_property
    def non_revocation_proofs(self) -> list[int]:
        """The indexes of the item's sub-proofs that prove non-revocation."""
        return [
            index
            for index, sub_proof in self.sub_proofs.items()
            if sub_proof.proves_non_revocation
        ]


@dataclass
class Judgement:
    """A presentation with its request, and the public objects of the ledger."""

    request: ProofRequest
    presentation: Presentation
    ledger: LedgerReader
    at_receipt: Interval | None = None
    allows_interval: bool = False
    prepared: PreparedResults = field(default_factory=PreparedResults)
    _status_lists: dict[tuple[str, int], StatusListBody | None] = field(
        default_factory=dict
    )

    @cached_property
    def items(self) -> list[AnsweredItem]:
        return [AnsweredItem(item, self.presentation) for item in self.request.items]

    @cached_property
    def resolved_definitions(self) -> list[tuple[DefinitionBody, SchemaBody] | None]:
        """The (definition, schema) of each sub-proof; None if the ledger lacks one."""
        ids = [identifier.definition_id for identifier in self.presentation.identifiers]
        known: dict[str, tuple[DefinitionBody, SchemaBody] | None] = {}
        for name in dict.fromkeys(ids):
            definition = self.ledger.definition(name)
            schema = self.ledger.schema(definition["schemaId"]) if definition else None
            known[name] = (definition, schema) if definition and schema else None
        return [known[name] for name in ids]

    @cached_property
    def schema_labels(self) -> list[set[str]]:
        """The labels of each sub-proof's schema. Empty if the ledger lacks it."""
        return [
            set(map(normalise_name, known[1]["attrNames"])) if known else set()
            for known in self.resolved_definitions
        ]

    @cached_property
    def facts(self) -> list[dict[str, str] | None]:
        """What restrictions compare of each sub-proof's credential, as resolved by us.

        None if the ledger lacks its definition or schema.
        """
        return [
            known and credential_facts(identifier.definition_id, *known)
            for identifier, known in zip(
                self.presentation.identifiers, self.resolved_definitions, strict=True
            )
        ]

    @cached_property
    def revocation_registries(self) -> list[RegistryBody | None]:
        """The registry that each sub-proof names; None if the ledger lacks it."""
        ids = [identifier.registry_id for identifier in self.presentation.identifiers]
        known = {
            name: self.ledger.revocation_registry(name)
            for name in dict.fromkeys(ids)
            if name
        }
        return [known.get(name or "") for name in ids]

    def status_list(self, index: int, time: int | None) -> StatusListBody | None:
        """Return the newest status list of a sub-proof's registry.

        time: in unix seconds, up to which. None without a registry, a time or a list.
        Each list is read from the ledger once; raises what its reads raise.
        """
        name = self.presentation.identifiers[index].registry_id
        if name is None or time is None or self.revocation_registries[index] is None:
            return None
        if (name, time) not in self._status_lists:
            self._status_lists[name, time] = self.ledger.status_list(name, time)
        return self._status_lists[name, time]

    def accepted_interval(self, item: Item) -> Interval | None:
        """The interval whose status lists prove the item's non-revocation, or None.

        Without a start it is the newest list up to its end.
        """
        interval = item.non_revoked
        if interval is None:
            return None
        if self.at_receipt and interval == self.request.interval:
            return self.at_receipt
        return interval if self.allows_interval else interval._replace(start=None)

    def non_revoked_at(self, item: Item) -> int | None:
        """The time at which the item's credential must not be revoked, or None."""
        interval = self.accepted_interval(item)
        return interval.latest_timestamp if interval else None

    def oldest_timestamp(self, index: int, item: Item, newest: StatusListBody) -> int:
        """The time of the oldest status list that proves the item's non-revocation.

        It is the list in force at the start of the accepted interval.
        """
        interval = self.accepted_interval(item)
        if interval is None or interval.start is None:
            return newest["timestamp"]
        first = self.status_list(index, interval.start)
        # Without a list at the start, the registry was made within the interval.
        return min(newest["timestamp"], first["timestamp"] if first else 0)

    def registry_fits_definition(self, index: int) -> bool:
        """Whether a sub-proof names a registry of its definition and its issuer."""
        known = self.resolved_definitions[index]
        registry = self.revocation_registries[index]
        if known is None or registry is None:
            return False
        definition_id = self.presentation.identifiers[index].definition_id
        return anoncreds.is_registry_of(registry, definition_id, known[0])

    @cached_property
    def shown_values(self) -> list[dict[str, set[str]]]:
        """For each sub-proof: label -> the encoded values that answers show for it."""
        shown: list[dict[str, set[str]]] = [{} for _ in self.presentation.sub_proofs]
        for asked in self.items:
            for answer, labels in asked.all_answers:
                if answer.index is None:
                    continue
                for label, value in _values_by_label(answer, labels):
                    shown[answer.index].setdefault(label, set()).add(value.encoded)
        return shown

    @cached_property
    def claimed_comparisons(self) -> list[set[tuple[str, str, int]]]:
        """For each sub-proof: the (label, kind, threshold) its answers claim."""
        claimed: list[set[tuple[str, str, int]]] = [
            set() for _ in self.presentation.sub_proofs
        ]
        for item in self.request.items:
            if not item.is_predicate:
                continue
            [label] = item.labels
            pairs = zip(item.referents, item.comparisons, strict=True)
            for referent, (predicate_type, threshold) in pairs:
                claim = (label, _LIBRARY_KINDS[predicate_type], threshold)
                for answer in self.presentation.predicates.get(referent, []):
                    # Only an attribute can be self-attested and have no index.
                    claimed[answer.index or 0].add(claim)
        return claimed


def check_identifiers(judgement: Judgement) -> Failure | None:
    """Check that there are as many identifiers as sub-proofs.

    Every answer must name one of them.
    """
    count = len(judgement.presentation.sub_proofs)
    if len(judgement.presentation.identifiers) == count and all(
        index < count for index in _answered_sub_proofs(judgement)
    ):
        return None
    return failures.IDENTIFIERS_MISMATCH


def check_nothing_more(judgement: Judgement) -> Failure | None:
    """Check that nothing is answered or proven that was not requested."""
    presentation = judgement.presentation
    requested = judgement.request.body
    if (
        presentation.attributes.keys() <= requested["requested_attributes"].keys()
        and presentation.predicates.keys() <= requested["requested_predicates"].keys()
        and _answered_sub_proofs(judgement) == set(range(len(presentation.sub_proofs)))
    ):
        return None
    return failures.UNREQUESTED


def check_exponents(judgement: Judgement) -> Failure | None:
    """Check the sizes of the exponent and the responses.

    Without a bound for `e`, the public key is enough to forge a credential: e = 1.
    """
    for sub_proof in judgement.presentation.sub_proofs:
        responses = [*sub_proof.responses.values(), *sub_proof.roots]
        is_small = all(0 <= number < 2**RESPONSE_BITS for number in responses)
        if not is_small or not 0 <= sub_proof.exponent < 2**EXPONENT_BITS:
            return failures.PROOF_OUT_OF_RANGE
    return None


def check_challenge(judgement: Judgement) -> Failure | None:
    """Check that the challenge covers every commitment.

    A commitment chosen after the challenge proves nothing.
    """
    committed = {
        number
        for sub_proof in judgement.presentation.sub_proofs
        for number in sub_proof.commitments
    }
    if committed <= judgement.presentation.hashed:
        return None
    return failures.CHALLENGE_INCOMPLETE


def check_answered(judgement: Judgement, asked: AnsweredItem) -> Failure | None:
    """Check that each referent has one answer, all in one sub-proof.

    A companion may be unanswered: not every alternative requires a value.
    """
    answers = asked.own_answers
    if len(answers) > len(asked.item.referents) or any(
        len(judgement.presentation.attributes.get(referent, [])) > 1
        for referent in asked.item.companions.values()
    ):
        return failures.ANSWERED_TWICE
    if len({answer.index for answer in answers}) > 1:
        return failures.SPLIT_ANSWER
    if len(answers) < len(asked.item.referents):
        is_compared = asked.item.referents[0] in judgement.presentation.predicates
        if asked.item.has_bound and is_compared:
            return failures.BOUND_UNANSWERED
        return failures.UNANSWERED
    if not all(_has_asked_form(judgement, asked.item, answer) for answer in answers):
        return failures.WRONG_FORM
    return None


def check_self_attested(judgement: Judgement, asked: AnsweredItem) -> Failure | None:
    """Check that a credential proves every answer: no policy allows less."""
    if all(answer.index is not None for answer, _ in asked.all_answers):
        return None
    return failures.SELF_ATTESTED


def check_definition(judgement: Judgement, asked: AnsweredItem) -> Failure | None:
    """Check that the ledger has the definition and schema of each sub-proof."""
    if all(judgement.resolved_definitions[index] for index in asked.sub_proofs):
        return None
    return failures.UNKNOWN_DEFINITION


def check_schema(judgement: Judgement, asked: AnsweredItem) -> Failure | None:
    """Check that the named schema is that of the definition on the ledger."""
    for index in asked.sub_proofs:
        known = judgement.resolved_definitions[index]
        if known is None:
            continue
        definition, _ = known
        if (
            definition["schemaId"]
            != judgement.presentation.identifiers[index].schema_id
        ):
            return failures.SCHEMA_MISMATCH
    return None


def check_attributes(judgement: Judgement, asked: AnsweredItem) -> Failure | None:
    """Check that the schema has the attributes, ignoring case and spaces."""
    for answer, labels in asked.all_answers:
        if answer.index is None or judgement.resolved_definitions[answer.index] is None:
            continue
        if not judgement.schema_labels[answer.index].issuperset(labels):
            return failures.ATTRIBUTE_NOT_IN_SCHEMA
    return None


def check_responses(judgement: Judgement, asked: AnsweredItem) -> Failure | None:
    """Check that each hidden attribute has one response, and a shown one has none.

    The library does not read the response of a shown attribute. With a made-up
    response, a predicate on that attribute could be proven for any number.
    """
    for index, sub_proof in asked.sub_proofs.items():
        known = judgement.resolved_definitions[index]
        signed = (
            judgement.schema_labels[index] | {LINK_SECRET_LABEL} if known else set()
        )
        if sub_proof.responses.keys() != signed - sub_proof.revealed.keys():
            return failures.WRONG_RESPONSES
    return None


def check_revealed(judgement: Judgement, asked: AnsweredItem) -> Failure | None:
    """Check that the answers show exactly what the sub-proof reveals.

    No attribute more or less, and no other value: the library proves only the
    sub-proof.
    """
    for index, sub_proof in asked.sub_proofs.items():
        proven = {label: {value} for label, value in sub_proof.revealed.items()}
        if judgement.shown_values[index] != proven:
            return failures.REVEALED_MISMATCH
    return None


def check_predicates(judgement: Judgement, asked: AnsweredItem) -> Failure | None:
    """Check that each sub-proof proves exactly the comparisons that were requested.

    The library trusts the attribute name and the response in a holder's predicate.
    """
    for index, sub_proof in asked.sub_proofs.items():
        claimed = judgement.claimed_comparisons[index]
        if claimed and not asked.item.is_predicate:
            continue  # a wrong comparison is a failure of the predicate item
        proven = {
            (predicate.label, predicate.kind, predicate.value)
            for predicate in sub_proof.predicates
            if sub_proof.responses.get(predicate.label) == predicate.response
        }
        if len(proven) < len(sub_proof.predicates) or proven != claimed:
            return failures.PREDICATE_MISMATCH
    return None


def check_encoding(judgement: Judgement, asked: AnsweredItem) -> Failure | None:
    """Check that each shown text belongs to the number that was signed.

    The issuer signs only the number, and the library ignores the text.
    """
    for answer, _ in asked.all_answers:
        if answer.index is None:
            continue
        for value in answer.values.values():
            if not anoncreds.is_encoding_of(value.raw, value.encoded):
                return failures.ENCODING
    return None


def check_restrictions(judgement: Judgement, asked: AnsweredItem) -> Failure | None:
    """Check that each credential meets an alternative, as the ledger describes it.

    The values that an alternative requires are checked by check_values().
    """
    if not asked.item.restrictions or all(
        _restrictions_met_but_values(judgement, asked.item, index)
        for index in asked.own_sub_proofs
    ):
        return None
    return failures.RESTRICTION


def check_values(judgement: Judgement, asked: AnsweredItem) -> Failure | None:
    """Check that one of the alternatives that are met has its required value shown."""
    for index in asked.own_sub_proofs:
        met = _restrictions_met_but_values(judgement, asked.item, index)
        if met and not any(
            _shows_required_value(asked, index, restriction) for restriction in met
        ):
            return failures.VALUE_RESTRICTION
    return None


def check_non_revocation(judgement: Judgement, asked: AnsweredItem) -> Failure | None:
    """Check that non-revocation is proven where it is requested.

    If no registry is named, the library treats "not proven" like "not requested".
    """
    time = judgement.non_revoked_at(asked.item)
    if time is None:
        return None
    for index, sub_proof in asked.sub_proofs.items():
        known = judgement.resolved_definitions[index]
        if known is None or known[0]["value"].get("revocation") is None:
            continue
        identifier = judgement.presentation.identifiers[index]
        names_list = (
            identifier.registry_id is not None and identifier.timestamp is not None
        )
        if sub_proof.proves_non_revocation and names_list:
            continue
        if (
            judgement.registry_fits_definition(index)
            and judgement.status_list(index, time) is None
        ):
            return failures.NOT_YET_VALID
        return failures.NON_REVOCATION_MISSING
    return None


def check_revocation_registry(
    judgement: Judgement, asked: AnsweredItem
) -> Failure | None:
    """Check that each registry belongs to the credential's definition and issuer.

    The controller of a registry decides what is revoked in it.
    """
    if all(
        judgement.registry_fits_definition(index)
        for index in asked.non_revocation_proofs
    ):
        return None
    return failures.REGISTRY_MISMATCH


def check_status_list(judgement: Judgement, asked: AnsweredItem) -> Failure | None:
    """Check that the presentation uses the newest list up to the requested time.

    An older list lacks later revocations. It counts if it was in force at some time
    since `validFrom`, or superseded while the holder answered (graceSeconds).
    """
    requested_time = judgement.non_revoked_at(asked.item)
    for index in asked.non_revocation_proofs:
        named_time = judgement.presentation.identifiers[index].timestamp
        named = judgement.status_list(index, named_time)
        # Without a requested time, any list will do.
        newest = (
            named
            if requested_time is None
            else judgement.status_list(index, requested_time)
        )
        if requested_time is not None and newest is None:
            return failures.NOT_YET_VALID
        if named is None or named_time is None or named["timestamp"] != named_time:
            return failures.UNKNOWN_TIMESTAMP
        if newest is None or newest["timestamp"] == named_time:
            continue
        if judgement.oldest_timestamp(index, asked.item, newest) > named_time:
            return failures.STALE
        if newest["timestamp"] < named_time:
            # The list is later than the requested time.
            return failures.UNKNOWN_TIMESTAMP
    return None


def check_signature(judgement: Judgement) -> Failure | None:
    """Check the numbers of the whole presentation by the library.

    Whether credentials are revoked is checked here too: with the lists that the
    sub-proofs name, which check_status_list() has accepted.
    """
    presentation = judgement.presentation
    schemas: dict[str, SchemaBody] = {}
    definitions: dict[str, DefinitionBody] = {}
    for identifier, known in zip(
        presentation.identifiers, judgement.resolved_definitions, strict=True
    ):
        if known:
            definition, schema = known
            definitions[identifier.definition_id] = definition
            schemas[identifier.schema_id] = schema
    registries, status_lists = _proven_registries(judgement)
    referents = [*presentation.attributes, *presentation.predicates]
    if judgement.prepared.call(
        anoncreds.verify_presentation,
        _presentation_for_library(presentation),
        judgement.request.prune(referents, keep_conditions=False),
        schemas,
        definitions,
        registries,
        status_lists,
    ):
        return None
    if any(
        judgement.non_revoked_at(asked.item) is not None and asked.non_revocation_proofs
        for asked in judgement.items
    ):
        return failures.REVOKED_OR_INVALID
    return failures.SIGNATURE


# The rules by their name in the API (docs/verification.md), in order.
PRESENTATION_RULES: Mapping[str, Callable[[Judgement], Failure | None]] = {
    "identifiers": check_identifiers,
    "nothing_more": check_nothing_more,
    "exponents": check_exponents,
    "challenge": check_challenge,
}
ITEM_RULES: Mapping[str, Callable[[Judgement, AnsweredItem], Failure | None]] = {
    "answered": check_answered,
    "self_attested": check_self_attested,
    "definition": check_definition,
    "schema": check_schema,
    "attributes": check_attributes,
    "responses": check_responses,
    "revealed": check_revealed,
    "predicates": check_predicates,
    "encoding": check_encoding,
    "restrictions": check_restrictions,
    "values": check_values,
    "non_revocation": check_non_revocation,
    "revocation_registry": check_revocation_registry,
    "status_list": check_status_list,
}


def _run_rules(judgement: Judgement) -> list[Check]:
    """Return all checks in order. After a failure, the dependent ones are skipped."""
    checks: list[Check] = []
    general_failed = False
    for name, general_rule in PRESENTATION_RULES.items():
        check = run_rule(None, name, partial(general_rule, judgement), general_failed)
        general_failed = check.status != "pass"
        checks.append(check)
    any_failed = general_failed
    for asked in judgement.items:
        item_failed = general_failed
        for name, rule in ITEM_RULES.items():
            run = partial(rule, judgement, asked)
            check = run_rule(asked.item.policy_name, name, run, item_failed)
            item_failed = check.status != "pass"
            checks.append(check)
        any_failed = any_failed or item_failed
    signature = partial(check_signature, judgement)
    return [*checks, run_rule(None, "signature", signature, any_failed)]


def run_rule(
    policy_name: str | None, name: str, run: Callable[[], Failure | None], skip: bool
) -> Check:
    """Return the result of a rule. skip: an earlier rule failed, so it does not run."""
    if skip:
        message = "Not checked: an earlier check failed."
        return Check(policy_name, name, "skipped", None, message)
    failure = run()
    if failure is None:
        return Check(policy_name, name, "pass", None, "")
    return Check(policy_name, name, "fail", failure.code, failure.message)


def _answered_sub_proofs(judgement: Judgement) -> set[int]:
    """The indexes in the answers. A sub-proof of that index may not exist."""
    presentation = judgement.presentation
    groups = [*presentation.attributes.values(), *presentation.predicates.values()]
    return _indexes_in(chain.from_iterable(groups))


def _indexes_in(answers: Iterable[Answer]) -> set[int]:
    return {answer.index for answer in answers if answer.index is not None}


def _proven_registries(
    judgement: Judgement,
) -> tuple[dict[str, RegistryBody], list[StatusListBody]]:
    """(registries by id, status lists) of the sub-proofs that prove non-revocation."""
    registries: dict[str, RegistryBody] = {}
    status_lists: list[StatusListBody] = []
    for index, identifier in enumerate(judgement.presentation.identifiers):
        registry = judgement.revocation_registries[index]
        if not judgement.presentation.sub_proofs[index].proves_non_revocation:
            continue
        if identifier.registry_id is None or registry is None:
            continue
        registries[identifier.registry_id] = registry
        status_list = judgement.status_list(index, identifier.timestamp)
        if status_list:
            status_lists.append(status_list)
    return registries, status_lists


def _presentation_for_library(presentation: Presentation) -> dict[str, JSON]:
    """The presentation without registries of which nothing is proven.

    The library requires the registry of every identifier that names one.
    """
    without_registry = {"rev_reg_id": None, "timestamp": None}
    identifiers = [
        identifier if sub_proof.proves_non_revocation else identifier | without_registry
        for sub_proof, identifier in zip(
            presentation.sub_proofs, presentation.body["identifiers"], strict=True
        )
    ]
    return presentation.body | {"identifiers": identifiers}


def _has_asked_form(judgement: Judgement, item: Item, answer: Answer) -> bool:
    """Whether the answer has the requested form.

    A group of names must be shown as a group of exactly these names.
    """
    if item.is_predicate or answer.form in ("unrevealed_attrs", "self_attested_attrs"):
        return True
    asked = judgement.request.body["requested_attributes"][item.referents[0]]
    if asked.get("names") is None:
        return answer.form == "revealed_attrs"
    names = set(item.attribute_names)
    return answer.form == "revealed_attr_groups" and set(answer.values) == names


def _values_by_label(
    answer: Answer, labels: tuple[str, ...]
) -> Iterator[tuple[str, Value]]:
    """Yield (label, value) of each shown value. labels: of the requested attributes."""
    for name, value in answer.values.items():
        yield labels[0] if name == SINGLE_VALUE else normalise_name(name), value


def _restrictions_met_but_values(
    judgement: Judgement, item: Item, index: int
) -> list[Restriction]:
    """The alternatives that the credential meets, leaving required values aside."""
    facts = judgement.facts[index]
    return [one for one in item.restrictions if facts and one.matches(facts)]


def _shows_required_value(
    asked: AnsweredItem, index: int, restriction: Restriction
) -> bool:
    """Whether the item shows the value that the restriction requires.

    The value must be of the same credential, and the item must not be hidden.
    """
    required = restriction.value
    if required is None:
        return True
    if any(answer.form == "unrevealed_attrs" for answer in asked.own_answers):
        return False
    return any(
        value.raw == required.text
        for answer, labels in asked.all_answers
        if answer.index == index
        for label, value in _values_by_label(answer, labels)
        if label == required.label
    )
