"""The verifier's checklist for SD-JWT VCs: what makes an answer valid.

A wallet may answer anything. These rules check it against the stored queries:

    malformed        the answer has one presentation for each query, as text
    nothing_more     no query is answered that was not asked
    answered         one of the item's queries is answered
    credential       it has the shape of an SD-JWT VC, every digest included
    restrictions     it is of the type that was asked, of the organization that owns it
    certificate      the issuer's certificate: an authority that counts stands behind it
    signature        the issuer has signed it
    validity         it is valid now
    binding          its holder has presented it, to us, for this request
    attributes       the claims that were asked for are there
    predicates       a claim that proves the comparison is true
    values           a claim has the required value
    non_revocation   if requested, and the credential has a status: that is valid

After a rule fails for an item, the later rules are skipped for that item.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import NamedTuple, TypeGuard

from core.errors import PeerError, Unavailable
from core.text.bounded_json import JSON
from credentials.models.definition_format import text_of
from verifications.openid4vp.queries import FORMAT, Demand, Query
from verifications.proofs import failures
from verifications.proofs.checks import Check, Outcome, run_rule
from verifications.proofs.failures import Failure
from verifications.proofs.policy import Policy
from verifications.proofs.presentation_reading import Answer, Value
from verifications.proofs.proof_items import Item
from verifications.proofs.proof_values import Proof, ProofEntry, proof_entry
from verifications.proofs.request_reading import ProofRequest
from wallets.jose import certificates, sd_jwt, signing
from wallets.jose.certificates import Certificate

VALID = 0


class Trust(NamedTuple):
    """What counts here.

    authorities: of the installation. key_of_issuer: the thumbprints of the keys of
    organizations here, by their URI. status_of: the status of a credential, by its
    `status_list` and the query; raises PeerError or Unavailable if it has none.
    """

    authorities: Sequence[Certificate]
    key_of_issuer: Mapping[str, str]
    status_of: Callable[[Mapping[str, JSON], Query], int]


@dataclass
class Presented:
    """What answers one query, judged once for all items that ask for it.

    audience, nonce: of the request. now: unix seconds.
    """

    query: Query
    text: str
    audience: str
    nonce: str
    now: float
    trust: Trust
    judged: dict[str, Failure | None] = field(default_factory=dict)

    @cached_property
    def credential(self) -> sd_jwt.Credential | None:
        try:
            return sd_jwt.read(self.text)
        except PeerError:
            return None

    @property
    def read(self) -> sd_jwt.Credential:
        assert self.credential, "the rule `credential` comes first"
        return self.credential

    @cached_property
    def leaf(self) -> Certificate:
        """The issuer's certificate. PeerError unless it counts for this query."""
        chain = certificates.read_chain(self.read.token.header.get("x5c"))
        moment = datetime.fromtimestamp(self.now, UTC)
        issuer = self.query.issuer
        leaf = chain[0]
        key = signing.thumbprint_of(signing.jwk_of(certificates.key_of(leaf)))
        if issuer and key == self.trust.key_of_issuer.get(issuer):
            certificates.require_in_time(leaf, moment)
            return leaf
        authorities = (
            self.trust.authorities
            if issuer
            else certificates.read_chain(list(self.query.anchors))
        )
        certificates.verify_chain(chain, authorities, moment)
        if not certificates.is_named(leaf, issuer or self.read.claims.get("iss")):
            raise certificates.untrusted("it does not name the issuer")
        return leaf

    @cached_property
    def certificate_failure(self) -> Failure | None:
        return _failure_of(lambda: self.leaf, failures.UNTRUSTED_CERTIFICATE)

    @cached_property
    def signature_failure(self) -> Failure | None:
        key = certificates.key_of(self.leaf)
        return _failure_of(lambda: self.read.verify(key), failures.SIGNATURE)

    @cached_property
    def binding_failure(self) -> Failure | None:
        given = self.audience, self.nonce, self.now
        return _failure_of(
            lambda: self.read.verify_binding(*given), failures.HOLDER_BINDING
        )

    @property
    def status_failure(self) -> Failure | None:
        # Python 3.11 has one lock for a cached_property of all instances, and the list
        # of a stranger may take seconds.
        if "status" not in self.judged:
            self.judged["status"] = self.judge_status()
        return self.judged["status"]

    def judge_status(self) -> Failure | None:
        status = self.read.claims.get("status")
        if status is None:
            return None
        listed = status.get("status_list") if isinstance(status, dict) else None
        if not isinstance(listed, dict):
            return failures.STATUS_UNAVAILABLE
        try:
            found = self.trust.status_of(listed, self.query)
        except (PeerError, Unavailable):
            return failures.STATUS_UNAVAILABLE
        return None if found == VALID else failures.REVOKED


def judge_answer(
    policy: Policy,
    queries: Sequence[Query],
    vp_token: JSON,
    audience: str,
    nonce: str,
    now: float,
    trust: Trust,
) -> Outcome:
    """Check an answer against our stored queries. No answer makes this raise.

    Only `trust.status_of` may raise what is neither PeerError nor Unavailable.

    `proof` has one entry for each item, as that of AnonCreds, with the text of each
    claim; what was not asked for is left out.
    """
    items = ProofRequest.of_policy(policy).items
    if not _is_well_formed(vp_token):
        failure = failures.MALFORMED
        check = Check(None, "malformed", "fail", failure.code, failure.message)
        return Outcome(False, [check], _proof_of(items, {}, False))
    by_id = {one.id: one for one in queries}
    unknown = failures.UNREQUESTED if vp_token.keys() - by_id.keys() else None
    checks = [run_rule(None, "nothing_more", lambda: unknown, False)]
    presented = [
        Presented(by_id[name], texts[0], audience, nonce, now, trust)
        for name, texts in vp_token.items()
        if name in by_id
    ]
    answers: dict[str, Answered] = {}
    for item in items:
        found = [
            Answered(one, demand)
            for one in presented
            if (demand := one.query.demand_of(item.policy_name))
        ]
        if len(found) == 1:
            answers[item.policy_name] = found[0]
        rules = dict(ITEM_RULES)
        if not policy.asks_for_status(item):
            del rules["non_revocation"]
        has_failed = unknown is not None
        for name, rule in rules.items():
            run = partial(rule, found)
            check = run_rule(item.policy_name, name, run, has_failed)
            has_failed = check.status != "pass"
            checks.append(check)
    is_valid = {check.status for check in checks} == {"pass"}
    return Outcome(is_valid, checks, _proof_of(items, answers, is_valid))


class Answered(NamedTuple):
    """The presentation that answers an item, and what it must show."""

    presented: Presented
    demand: Demand


Found = list[Answered]  # of an item; each rule after `answered` has one


def check_answered(found: Found) -> Failure | None:
    if len(found) == 1:
        return None
    return failures.ANSWERED_TWICE if found else failures.UNANSWERED


def check_credential(found: Found) -> Failure | None:
    [(presented, _)] = found
    return None if presented.credential else failures.CREDENTIAL_MALFORMED


def check_restrictions(found: Found) -> Failure | None:
    """Check its type and, of an organization here, its issuer.

    A certificate of the installation's authority proves nothing about the type: the
    organization that it names must be the one that owns the definition.
    """
    [(presented, _)] = found
    query, credential = presented.query, presented.read
    issuer = credential.claims.get("iss", query.issuer)
    if credential.vct == query.vct and (not query.issuer or issuer == query.issuer):
        return None
    return failures.RESTRICTION


def check_certificate(found: Found) -> Failure | None:
    return found[0].presented.certificate_failure


def check_signature(found: Found) -> Failure | None:
    return found[0].presented.signature_failure


def check_validity(found: Found) -> Failure | None:
    [(presented, _)] = found
    try:
        presented.read.check_times(presented.now)
    except PeerError as error:
        return failures.FAILURES[error.code]
    return None


def check_binding(found: Found) -> Failure | None:
    return found[0].presented.binding_failure


def check_attributes(found: Found) -> Failure | None:
    [(presented, demand)] = found
    claims, kinds = presented.read.claims, presented.query.kinds
    for claim in demand.claims.values():
        if text_of(claims.get(claim), kinds.get(claim)) is None:
            return failures.ATTRIBUTE_NOT_SHOWN
    return None


def check_predicates(found: Found) -> Failure | None:
    """Check that a claim which proves the comparison is true: not 1, not "true"."""
    [(presented, demand)] = found
    claims = presented.read.claims
    proofs = [claims.get(claim) for claim in demand.proven_by]
    if not proofs or any(value is True for value in proofs):
        return None
    return failures.NOT_PROVEN


def check_values(found: Found) -> Failure | None:
    [(presented, demand)] = found
    claims, kinds = presented.read.claims, presented.query.kinds
    if not demand.required or any(
        text_of(claims.get(claim), kinds.get(claim)) == text
        for claim, text in demand.required
    ):
        return None
    return failures.VALUE_RESTRICTION


def check_non_revocation(found: Found) -> Failure | None:
    return found[0].presented.status_failure


# The rules by their name in the API (docs/verification.md), in order.
ITEM_RULES: Mapping[str, Callable[[Found], Failure | None]] = {
    "answered": check_answered,
    "credential": check_credential,
    "restrictions": check_restrictions,
    "certificate": check_certificate,
    "signature": check_signature,
    "validity": check_validity,
    "binding": check_binding,
    "attributes": check_attributes,
    "predicates": check_predicates,
    "values": check_values,
    "non_revocation": check_non_revocation,
}


def _failure_of(call: Callable[[], object], failure: Failure) -> Failure | None:
    try:
        call()
    except PeerError:
        return failure
    return None


def _is_well_formed(vp_token: JSON) -> TypeGuard[dict[str, list[str]]]:
    return isinstance(vp_token, dict) and all(
        isinstance(one, list) and len(one) == 1 and isinstance(one[0], str)
        for one in vp_token.values()
    )


def _proof_of(
    items: Sequence[Item], answers: Mapping[str, Answered], is_valid: bool
) -> Proof:
    return {
        item.policy_name: _proof_entry(item, answers.get(item.policy_name), is_valid)
        for item in items
    }


def _proof_entry(item: Item, answered: Answered | None, is_valid: bool) -> ProofEntry:
    """The item's entry in `proof`, as that of AnonCreds."""
    shown: list[Answer] = []
    if answered and (credential := answered.presented.credential):
        kinds = answered.presented.query.kinds
        texts = {
            name: text
            for name, claim in answered.demand.claims.items()
            if (text := text_of(credential.claims.get(claim), kinds.get(claim)))
            is not None
        }
        if item.is_predicate or len(texts) == len(item.attribute_names):
            values = {name: Value(text, "") for name, text in texts.items()}
            shown = [Answer("revealed_attr_groups", 0, values)]
    return proof_entry(item, shown, is_valid, FORMAT)
