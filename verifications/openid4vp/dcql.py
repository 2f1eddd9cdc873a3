"""What a verifier asks of a wallet in DCQL (OpenID4VP section 6), read from strangers."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeGuard

from core.errors import PeerError
from core.text.bounded_json import JSON
from verifications.openid4vp.queries import FORMAT
from wallets.jose import certificates, sd_jwt
from wallets.jose.sd_jwt import Path
from wallets.jose.signing import bad_token

MAX_QUERIES = 50
MAX_CLAIMS = 200  # of all queries: each is looked for in each disclosure of a card
MAX_WILDCARDS = 20  # of these, with `null` in the path
MAX_SETS = 100
Scalar = str | int | float  # of which True is one
ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True)
class Claim:
    """A claim that is asked for. values: those allowed; empty if all are."""

    path: Path
    values: tuple[Scalar, ...]

    def is_met(self, held: sd_jwt.Credential) -> bool:
        found = sd_jwt.find_claims(held.claims, self.path)
        if not self.values:
            return bool(found)
        # True is not 1, and "1" is neither.
        allowed = {(type(one), one) for one in self.values}
        return any(
            (type(one), one) in allowed for one in found if isinstance(one, Scalar)
        )


@dataclass(frozen=True)
class Wanted:
    """A query for one SD-JWT VC. options: sets of claims, one of which is shown.

    authorities: key identifiers, of one of which its chain must be; None for any.
    """

    id: str
    vcts: tuple[str, ...]
    options: tuple[tuple[Claim, ...], ...]
    authorities: tuple[str, ...] | None

    @property
    def names(self) -> list[str]:
        """The names of the claims that it may show, by whichever of its options."""
        return names_of(one.path for claims in self.options for one in claims)

    def paths_shown_by(self, held: sd_jwt.Credential) -> list[Path] | None:
        """What a credential shows as an answer; None if it is none."""
        if held.vct not in self.vcts or not self._is_of_authority(held):
            return None
        met: dict[int, bool] = {}  # one claim may be in many of the options
        for claims in self.options:
            for one in claims:
                if id(one) not in met:
                    met[id(one)] = one.is_met(held)
                if not met[id(one)]:
                    break
            else:
                return [one.path for one in claims]
        return None

    def _is_of_authority(self, held: sd_jwt.Credential) -> bool:
        if self.authorities is None:
            return True
        if "x5c" not in held.token.header:  # its issuer publishes its key
            return False
        try:
            chain = certificates.read_chain(held.token.header["x5c"])
        except PeerError:
            return False
        issuers = {certificates.authority_identifier_of(one) for one in chain}
        return not issuers.isdisjoint(self.authorities)


def names_of(paths: Iterable[Path]) -> list[str]:
    """The names of the claims to which paths lead, or in which they end."""
    return list(dict.fromkeys(str(path[0]) for path in paths))


def read_items(query: JSON) -> dict[str, list[Wanted]]:
    """The items of a `dcql_query`, by a name; each is answered by one of its queries.

    What is not required is left out. PeerError `bad_token` for what is no query, or
    cannot be answered here.
    """
    queries = _list_in(query, "credentials", MAX_QUERIES)
    if not queries:
        raise bad_token("it has no dcql_query")
    sets = (
        _list_in(query, "credential_sets", MAX_SETS)
        if isinstance(query, dict) and "credential_sets" in query
        else None
    )
    _check_size(queries)
    by_id = {
        name: one
        for one in queries
        if isinstance(one, dict) and isinstance(name := one.get("id"), str)
    }
    if len(by_id) < len(queries) or not all(map(ID.fullmatch, by_id)):
        raise bad_token("the ids of its queries are wrong")

    # Of those that are not required, some may not be understood here.
    @cache
    def read(name: str) -> Wanted:
        return _read_query(by_id[name])

    if sets is None:
        return {name: [read(name)] for name in by_id}
    items: dict[str, list[Wanted]] = {}
    for one in sets:
        if not isinstance(one, dict):
            raise bad_token("a credential set is no object")
        if one.get("required", True) is not False:
            for ids in _alternatives(_list_in(one, "options", MAX_SETS)):
                wanted = [read(name) for name in ids if name in by_id]
                if not wanted:
                    raise bad_token("a credential set names an unknown query")
                items.setdefault(wanted[0].id, wanted)
    if not items:
        raise bad_token("it requires nothing")
    return items


def _check_size(queries: list[JSON]) -> None:
    """PeerError `bad_token` for what would take too long to look for in large cards."""
    claims = [
        claim
        for query in queries
        if isinstance(query, dict)
        for claim in _list_in(query, "claims", MAX_CLAIMS)
    ]
    paths = [one.get("path") for one in claims if isinstance(one, dict)]
    wildcards = [one for one in paths if isinstance(one, list) and None in one]
    if len(claims) > MAX_CLAIMS or len(wildcards) > MAX_WILDCARDS:
        raise bad_token("it asks for too many claims")


def _alternatives(options: list[JSON]) -> list[list[str]]:
    """The queries of each item of a set: alternatives of one credential each.

    Of options with several credentials, the first one counts.
    """
    sets = [one for one in options if _is_names(one, MAX_QUERIES) and one]
    if not sets or len(sets) < len(options):
        raise bad_token("a credential set has no options")
    if all(len(one) == 1 for one in sets):
        return [list(dict.fromkeys(one[0] for one in sets))]
    return [[name] for name in sets[0]]


def _is_names(part: JSON, limit: int) -> TypeGuard[list[str]]:
    return (
        isinstance(part, list)
        and len(part) <= limit
        and all(isinstance(one, str) for one in part)
    )


def _read_query(query: dict[str, JSON]) -> Wanted:
    meta = query.get("meta")
    vcts = _list_in(meta, "vct_values", MAX_SETS) if isinstance(meta, dict) else []
    if query.get("format") != FORMAT or not vcts:
        raise bad_token(f"it asks for something else than {FORMAT} of a type")
    if query.get("multiple", False) or not query.get(
        "require_cryptographic_holder_binding", True
    ):
        raise bad_token("it asks for several credentials at once, or for no binding")
    claims = [_read_claim(one) for one in _list_in(query, "claims", MAX_CLAIMS)]
    by_id = {name: claim for name, claim in claims if name is not None}
    options = [tuple(claim for _, claim in claims)]
    if "claim_sets" in query:
        options = []
        for names in _list_in(query, "claim_sets", MAX_SETS):
            if not _is_names(names, MAX_CLAIMS) or not by_id.keys() >= set(names):
                raise bad_token("a claim set names an unknown claim")
            options.append(tuple(by_id[name] for name in names))
    return Wanted(
        id=str(query["id"]),
        vcts=tuple(one for one in vcts if isinstance(one, str)),
        options=tuple(options) or ((),),
        authorities=_read_authorities(query),
    )


def _read_claim(claim: JSON) -> tuple[str | None, Claim]:
    given = claim if isinstance(claim, dict) else {}
    path: Any = given.get("path")
    is_path = isinstance(path, list) and 1 <= len(path) <= sd_jwt.MAX_DEPTH
    if not is_path or not isinstance(path[0], str):
        raise bad_token("a claim has no path")
    if not all(one is None or isinstance(one, str | int) for one in path):
        raise bad_token("a claim has no path")
    values = _list_in(claim, "values", MAX_CLAIMS)
    scalars = [one for one in values if isinstance(one, Scalar)]
    if len(scalars) < len(values):
        raise bad_token("a claim has values of another kind")
    name = given.get("id")
    return (
        name if isinstance(name, str) else None,
        Claim(tuple(path), tuple(scalars)),
    )


def _read_authorities(query: dict[str, JSON]) -> tuple[str, ...] | None:
    """The key identifiers that are asked for; other kinds of lists are not known."""
    if "trusted_authorities" not in query:
        return None
    return tuple(
        value
        for one in _list_in(query, "trusted_authorities", MAX_SETS)
        if isinstance(one, dict) and one.get("type") == "aki"
        for value in _list_in(one, "values", MAX_SETS)
        if isinstance(value, str)
    )


def _list_in(part: JSON, name: str, limit: int) -> list[JSON]:
    """The list of this name, empty without one. PeerError `bad_token`."""
    found = part.get(name, []) if isinstance(part, dict) else None
    if not isinstance(found, list) or len(found) > limit:
        raise bad_token(f"{name} is no list, or too long")
    return found
