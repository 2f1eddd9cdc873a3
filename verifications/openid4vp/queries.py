"""The queries of a policy in DCQL (OpenID4VP section 6), and what answers must show.

Items with the same restrictions are asked of one credential, if a kind of credential has
all of them. For each kind that is allowed there is a query; the queries of a group are
alternatives. Wallets enforce nothing of a query: `sd_jwt_rules` judges all of it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice, product
from typing import Any, Self

from core.errors import Conflict
from core.text.bounded_json import JSON
from verifications.proofs.policy import (
    Policy,
    PolicyItem,
    Restriction,
    not_provable,
)
from wallets.anoncreds import normalise_name, parse_integer

FORMAT = "dc+sd-jwt"
MAX_QUERIES = 50
MAX_CLAIM_SETS = 20


@dataclass(frozen=True)
class DerivedClaim:
    """A boolean claim that is true if an attribute meets a comparison."""

    name: str
    label: str
    predicate_type: str
    limit: int

    def implies(self, item: PolicyItem) -> bool:
        """Whether the predicate holds if the claim is true. Both have no dates.

        The limit of a relative date is that of today: when the credential was issued
        it was stricter.
        """
        kind, wanted = item.predicate_type, item.threshold
        if self.label != item.labels[0] or not isinstance(wanted, int):
            return False
        # Whole numbers: < 5 is <= 4.
        if kind in ("<", "<=") and self.predicate_type in ("<", "<="):
            largest = self.limit - (self.predicate_type == "<")
            return largest <= wanted - (kind == "<")
        if kind in (">", ">=") and self.predicate_type in (">", ">="):
            least = self.limit + (self.predicate_type == ">")
            return least >= wanted + (kind == ">")
        return False


@dataclass(frozen=True)
class Source:
    """A kind of credential that an alternative allows.

    issuer: the URI of the organization here that issues it; "" of another's.
    anchors: for another's, certificates of authorities in base64 of DER.
    claims: by normalised attribute name; of another's None, as nothing is known. kinds:
    the declared types of claims. name: of it, for people.
    """

    name: str
    vct: str
    issuer: str = ""
    anchors: tuple[str, ...] = ()
    claims: Mapping[str, str] | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    derived: tuple[DerivedClaim, ...] = ()

    @property
    def key(self) -> tuple[str, str, tuple[str, ...]]:
        return self.vct, self.issuer, self.anchors

    def claim_of(self, attribute: str) -> str | None:
        if self.claims is None:
            return attribute
        return self.claims.get(normalise_name(attribute))


@dataclass(frozen=True)
class Demand:
    """What a credential must show for an item.

    claims: by the attribute as the policy spells it. proven_by: of a predicate, the
    claims of which one must be true. required: alternatives of a claim and its value in
    text; without any, none is required.
    """

    policy_name: str
    claims: dict[str, str]
    proven_by: tuple[str, ...]
    required: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Query:
    """A query for one credential. group: of the queries that are alternatives."""

    id: str
    group: int
    vct: str
    issuer: str
    anchors: tuple[str, ...]
    kinds: dict[str, str]
    demands: tuple[Demand, ...]

    def demand_of(self, policy_name: str) -> Demand | None:
        found = (one for one in self.demands if one.policy_name == policy_name)
        return next(found, None)

    def to_json(self) -> dict[str, JSON]:
        return asdict(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        demands = tuple(
            Demand(
                one["policy_name"],
                one["claims"],
                tuple(one["proven_by"]),
                tuple((claim, text) for claim, text in one["required"]),
            )
            for one in body["demands"]
        )
        anchors = tuple(body["anchors"])
        return cls(**{**body, "anchors": anchors, "demands": demands})

    def to_dcql(self) -> dict[str, JSON]:
        """The query as wallets read it."""
        shown: dict[str, dict[str, JSON]] = {}
        for demand in self.demands:
            for claim in demand.claims.values():
                shown.setdefault(claim, {"path": [claim]})
            for claim, values in self._required_values(demand).items():
                shown.setdefault(claim, {"path": [claim]})["values"] = values
        proofs = [one.proven_by for one in self.demands if one.proven_by]
        claims = list(shown.values())
        members: dict[str, JSON]
        if any(len(one) > 1 for one in proofs):
            members = _with_claim_sets(claims, proofs)
        else:
            members = {"claims": [*claims, *(proof_of(one[0]) for one in proofs)]}
        meta: dict[str, JSON] = {"vct_values": [self.vct]}
        return {"id": self.id, "format": FORMAT, "meta": meta, **members}

    def _required_values(self, demand: Demand) -> dict[str, list[JSON]]:
        """The values that one claim must have, if all alternatives require that one."""
        claims = {claim for claim, _ in demand.required}
        if len(claims) != 1:
            return {}
        [claim] = claims
        kind = self.kinds.get(claim)
        texts = dict.fromkeys(text for _, text in demand.required)
        values = [value for text in texts for value in typed(text, kind)]
        return {claim: values} if values else {}


def compile_queries(
    policy: Policy, sources_of: Callable[[Restriction], Sequence[Source]]
) -> list[Query]:
    """Return the queries of a policy without relative dates.

    409 `not_provable` for an item that no kind of credential could answer; it says what
    to do.
    """
    groups: list[list[PolicyItem]] = []
    for item in policy.items:
        same = (one for one in groups if one[0].restrictions == item.restrictions)
        if (group := next(same, None)) is None:
            groups.append([item])
        else:
            group.append(item)
    queries: list[Query] = []
    number = 0
    for items in groups:
        allowed = _allowed_sources(items[0].restrictions, sources_of)
        if len(allowed) > MAX_QUERIES:
            raise _too_many(items[0])
        together = _answer_all(items, allowed)
        parts = [together] if together else [_answer_one(one, allowed) for one in items]
        for part in parts:
            for source, demands in part:
                queries.append(
                    Query(
                        id=f"q{len(queries)}",
                        group=number,
                        vct=source.vct,
                        issuer=source.issuer,
                        anchors=source.anchors,
                        kinds=dict(source.kinds),
                        demands=tuple(demands),
                    )
                )
            number += 1
    if len(queries) > MAX_QUERIES:
        raise _too_many(policy.items[0])
    return queries


def _too_many(item: PolicyItem) -> Conflict:
    return not_provable(
        item,
        f"the policy allows more than {MAX_QUERIES} kinds of credentials. Restrict "
        "its items to definitions or types.",
    )


def write_dcql(queries: Sequence[Query]) -> dict[str, JSON]:
    """Return the `dcql_query` of a request."""
    body: dict[str, JSON] = {"credentials": [one.to_dcql() for one in queries]}
    options: dict[int, list[JSON]] = {}
    for one in queries:
        options.setdefault(one.group, []).append([one.id])
    if len(options) < len(queries):
        body["credential_sets"] = [{"options": ids} for ids in options.values()]
    return body


Allowed = list[tuple[Source, list[Restriction]]]
Answers = list[tuple[Source, list[Demand]]]


def _allowed_sources(
    restrictions: Iterable[Restriction],
    sources_of: Callable[[Restriction], Sequence[Source]],
) -> Allowed:
    """Each kind of credential once, with the alternatives that allow it."""
    found: dict[tuple[str, str, tuple[str, ...]], tuple[Source, list[Restriction]]] = {}
    for restriction in restrictions:
        for source in sources_of(restriction):
            found.setdefault(source.key, (source, []))[1].append(restriction)
    return list(found.values())


def _answer_all(items: Sequence[PolicyItem], allowed: Allowed) -> Answers:
    """The kinds of credentials that can answer all of these items."""
    answers: Answers = []
    for source, alternatives in allowed:
        demands = [_demand_of(item, source, alternatives) for item in items]
        known = [one for one in demands if one is not None]
        if len(known) == len(items):
            answers.append((source, known))
    return answers


def _answer_one(item: PolicyItem, allowed: Allowed) -> Answers:
    """The kinds of credentials that can answer this item. 409 `not_provable`."""
    if answers := _answer_all([item], allowed):
        return answers
    if not item.restrictions:
        why = (
            "it has no restriction. Name a definition that is issued as dc+sd-jwt, or a "
            "vct."
        )
    elif not allowed:
        why = (
            "no definition that its restrictions name is issued as dc+sd-jwt. Add that "
            "format to the definition, or name another, or a trust anchor of yours."
        )
    elif item.is_predicate:
        names = ", ".join(source.name for source, _ in allowed)
        why = (
            f"no derived claim of {names} implies {item.attribute_names[0]} "
            f"{item.predicate_type} {item.threshold}. Make a definition with such a "
            "claim (derivedClaims) and issue from it, or name a claim in provenBy."
        )
    else:
        names = ", ".join(source.name for source, _ in allowed)
        why = f"{names} does not have all of its attributes."
    raise not_provable(item, why)


def _demand_of(
    item: PolicyItem, source: Source, alternatives: Sequence[Restriction]
) -> Demand | None:
    """What the item demands of a kind of credential; None if that cannot answer it."""
    names = () if item.is_predicate else item.attribute_names
    claims = {name: source.claim_of(name) for name in names}
    known = {name: claim for name, claim in claims.items() if claim is not None}
    proofs = _proofs_of(item, source, alternatives) if item.is_predicate else ()
    required = [
        (source.claim_of(one.value.attribute_name), one.value.text)
        for one in alternatives
        if one.value
    ]
    texts = tuple((claim, text) for claim, text in required if claim is not None)
    has_free = len(required) < len(alternatives)
    if len(known) < len(names) or (item.is_predicate and not proofs):
        return None
    if not has_free and not texts:
        return None
    return Demand(item.policy_name, known, proofs, () if has_free else texts)


def _proofs_of(
    item: PolicyItem, source: Source, alternatives: Sequence[Restriction]
) -> tuple[str, ...]:
    if named := [name for one in alternatives for name in one.proven_by]:
        return tuple(dict.fromkeys(named))
    implied = [one for one in source.derived if one.implies(item)]
    # The weakest is true of most credentials.
    implied.sort(key=lambda one: one.limit, reverse=item.predicate_type in ("<", "<="))
    return (implied[0].name,) if implied else ()


def proof_of(claim: str) -> dict[str, JSON]:
    return {"path": [claim], "values": [True]}


def _with_claim_sets(
    shown: list[dict[str, JSON]], proofs: Sequence[Sequence[str]]
) -> dict[str, JSON]:
    """The members of a query of which several claims may prove a predicate."""
    names = list(dict.fromkeys(name for one in proofs for name in one))
    claims = [
        {"id": f"c{number}", **claim}
        for number, claim in enumerate([*shown, *map(proof_of, names)])
    ]
    always = [claim["id"] for claim in claims[: len(shown)]]
    ids = dict(zip(names, (one["id"] for one in claims[len(shown) :]), strict=True))
    sets = [
        [*always, *dict.fromkeys(ids[name] for name in chosen)]
        for chosen in islice(product(*proofs), MAX_CLAIM_SETS)
    ]
    return {"claims": [*claims], "claim_sets": [*sets]}


def typed(text: str, kind: str | None) -> list[JSON]:
    """The values in JSON that a text may be. kind: the declared type, if known."""
    if kind == "date" and len(text) == 8:
        return [f"{text[:4]}-{text[4:6]}-{text[6:]}"]
    number = parse_integer(text)
    is_whole = number is not None and str(number) == text
    if kind == "integer":
        return [int(text)] if is_whole else []
    if kind == "boolean":
        return [text == "true"]
    guesses: list[JSON] = [text]
    if kind is None and is_whole:
        guesses.append(int(text))
    if kind is None and text in ("true", "false"):
        guesses.append(text == "true")
    return guesses
