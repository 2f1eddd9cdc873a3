"""Why a presentation is not valid: each code with its sentence and what to do.

The one place of both, for the API (`checks`), the studio and the admin. Codes are
stable; docs/verification.md has the table for programs.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Failure(NamedTuple):
    """code: stable. message: what is wrong. advice: what the verifier can do."""

    code: str
    message: str
    advice: str


class Cause(NamedTuple):
    """What may have happened, for people: one for the failures of all items.

    failures: the codes of those that it explains.
    """

    code: str
    message: str
    failures: tuple[str, ...]


class CauseInWords(NamedTuple):
    """A cause of a verdict. policy_names: of the items; none for the whole answer."""

    code: str
    message: str
    advice: str
    policy_names: tuple[str, ...]


class CheckInWords(NamedTuple):
    """A check of the checklist for people.

    policy_name: of the item; "" for the whole presentation. code, advice: of a failure.
    """

    policy_name: str
    rule: str
    code: str
    message: str
    advice: str


OTHER_WALLET = (
    "The holder's wallet answers wrongly. Ask again; if it happens again, the holder "
    "should use another wallet or update this one."
)
FORGED = (
    "Do not trust this proof: the wallet has an error, or somebody tried to deceive. "
    "Ask again, and if it happens again, see the holder in person."
)

MALFORMED = Failure(
    "malformed",
    "The answer does not have the shape of a presentation.",
    OTHER_WALLET,
)
WRONG_RESPONSES = Failure(
    "malformed",
    "The proof must contain one response for each hidden attribute, and no other.",
    OTHER_WALLET,
)
IDENTIFIERS_MISMATCH = Failure(
    "identifiers_mismatch",
    "The proofs and the credentials they name do not correspond.",
    OTHER_WALLET,
)
UNREQUESTED = Failure(
    "unrequested",
    "The answer contains something that was not asked for.",
    OTHER_WALLET,
)
PROOF_OUT_OF_RANGE = Failure(
    "proof_out_of_range",
    "A number in the proof is larger than an honest one can be.",
    FORGED,
)
CHALLENGE_INCOMPLETE = Failure(
    "challenge_incomplete",
    "The proof is not bound to its own challenge.",
    FORGED,
)
ANSWERED_TWICE = Failure(
    "answered_twice",
    "The item is answered more than once.",
    OTHER_WALLET,
)
SPLIT_ANSWER = Failure(
    "split_answer",
    "One credential must answer all of this item.",
    "Ask again. The holder needs one credential that has everything in this item. "
    "If no credential has, change the policy so that each attribute is an item of "
    "its own.",
)
UNANSWERED = Failure(
    "unanswered",
    "The holder did not answer this item.",
    "Look the person up: they may not meet what was asked, have no such card, or have "
    "one that was revoked, which you can issue again. Then ask again.",
)
BOUND_UNANSWERED = Failure(
    "bound_unanswered",
    "It is not proven that the value is a number: any text passes such a comparison.",
    "The policy also asks for an upper bound, which the wallet left out: it must answer "
    "all items of the request. Or choose only definitions that declare the attribute an "
    "integer (claims), or set allowText if a text may pass.",
)
WRONG_FORM = Failure(
    "wrong_form",
    "The item is not answered in the form it was asked in.",
    OTHER_WALLET,
)
SELF_ATTESTED = Failure(
    "self_attested",
    "The holder only claims this; no credential proves it.",
    "Ask again. The holder has to answer with a credential. Offer one first if the "
    "holder has none.",
)
UNKNOWN_DEFINITION = Failure(
    "unknown_definition",
    "The ledger does not know the credential's definition.",
    "The credential is of another network than yours. The holder needs one whose "
    "definition is on your network.",
)
SCHEMA_MISMATCH = Failure(
    "schema_mismatch",
    "The credential is of another schema than it says.",
    FORGED,
)
ATTRIBUTE_NOT_IN_SCHEMA = Failure(
    "attribute_not_in_schema",
    "The credential has no attribute of this name.",
    "Compare the names in the policy with those of the schema, letter by letter. "
    "Correct the policy, then ask again.",
)
REVEALED_MISMATCH = Failure(
    "revealed_mismatch",
    "What the answer shows is not what the proof shows.",
    FORGED,
)
PREDICATE_MISMATCH = Failure(
    "predicate_mismatch",
    "The comparison that is proven is not the one that was asked for.",
    FORGED,
)
ENCODING = Failure(
    "encoding",
    "The value shown is not the one that the issuer signed.",
    FORGED,
)
RESTRICTION = Failure(
    "restriction",
    "The credential does not meet the restrictions.",
    "Compare the issuer, schema and definition in the policy with those of the "
    "credentials that holders have; spelling counts. Correct the policy, or ask for "
    "the right credential.",
)
VALUE_RESTRICTION = Failure(
    "value_restriction",
    "The credential does not show the required value.",
    "The holder's credential has another value, or the holder hid it. If the value "
    "has changed since, issue a new credential and ask again.",
)
NON_REVOCATION_MISSING = Failure(
    "non_revocation_missing",
    "It is not shown that the credential has not been revoked.",
    "Ask again. A wallet that still leaves this out does not support revocation, or "
    "its credential is revoked: the issuer can say.",
)
REGISTRY_MISMATCH = Failure(
    "registry_mismatch",
    "The registry of revocations is not one of the credential's issuer and definition.",
    FORGED,
)
UNKNOWN_TIMESTAMP = Failure(
    "unknown_timestamp",
    "No list of revocations that counts here has the time of the answer.",
    "Ask again, so that the wallet reads the current list. If it fails again, check "
    "that both sides use the same network.",
)
STALE = Failure(
    "stale",
    "The answer uses a list of revocations that is too old.",
    "Ask again, so that the wallet reads the current list. If it fails again, the "
    "credential may be revoked: the issuer can say.",
)
NOT_YET_VALID = Failure(
    "not_yet_valid",
    "At that time nothing was known about the credential.",
    "The policy asks for a time before the credential was issued. Use a later "
    "validAt, or validNow, and ask again.",
)
REVOKED_OR_INVALID = Failure(
    "revoked_or_invalid",
    "The proof does not verify: a credential is revoked, or something was forged.",
    "Ask the issuer whether the credential is revoked. If it is, the holder needs a "
    "new one. If it is not, ask again; do not trust this proof.",
)
SIGNATURE = Failure(
    "signature",
    "The proof does not verify.",
    FORGED,
)

CREDENTIAL_MALFORMED = Failure(
    "credential_malformed",
    "What the wallet sent does not have the shape of an SD-JWT VC.",
    OTHER_WALLET,
)
UNTRUSTED_CERTIFICATE = Failure(
    "untrusted_certificate",
    "No authority that counts here stands behind the issuer of the credential.",
    "The credential is of another issuer than the policy names, or the certificate of "
    "its issuer has expired, which the issuer must renew.",
)
EXPIRED = Failure(
    "expired",
    "The credential has expired.",
    "The holder needs a new one: the issuer can offer it.",
)
NOT_VALID_YET = Failure(
    "not_valid_yet",
    "The credential is valid from a later time on.",
    "Ask again at that time; the issuer can say when.",
)
HOLDER_BINDING = Failure(
    "holder_binding",
    "It is not proven that the holder of the credential has answered this request.",
    FORGED,
)
ATTRIBUTE_NOT_SHOWN = Failure(
    "attribute_not_shown",
    "The credential does not show all attributes that the item asks for.",
    "The holder left something out, or the credential does not have it. Compare the "
    "names in the policy with those of the credential, then ask again.",
)
NOT_PROVEN = Failure(
    "not_proven",
    "No claim of the credential proves the comparison.",
    "The holder does not meet the condition, or the credential does not say so.",
)
REVOKED = Failure(
    "revoked",
    "The credential is revoked or suspended.",
    "The holder needs a new one: the issuer can say why.",
)
STATUS_UNAVAILABLE = Failure(
    "status_unavailable",
    "It could not be found out whether the credential is revoked.",
    "The list of its issuer is out of reach or wrong. Ask again later; the issuer can "
    "say more.",
)

# By code. Failures of one code have the same advice.
FAILURES = {
    failure.code: failure
    for failure in list(vars().values())
    if isinstance(failure, Failure)
}

NO_CARD = "no_card"
CAUSES = (
    Cause(
        NO_CARD,
        "No card that proves this.",
        ("unanswered", "bound_unanswered", "self_attested", "attribute_not_shown"),
    ),
    Cause(
        "revoked_or_old_list",
        "The card was revoked, or the wallet answered with an old list.",
        ("stale", "unknown_timestamp"),
    ),
    Cause(
        "revocation_not_shown",
        "The wallet does not show whether the card was revoked.",
        ("non_revocation_missing",),
    ),
    Cause(
        "revoked_or_forged",
        "The card was revoked, or the proof is forged.",
        ("revoked_or_invalid",),
    ),
    Cause(
        "other_card",
        "The card is not the one that was asked for.",
        (
            "restriction",
            "unknown_definition",
            "attribute_not_in_schema",
            "untrusted_certificate",
        ),
    ),
    Cause(
        "other_value",
        "The card does not show the value that was asked for.",
        ("value_restriction", "not_proven"),
    ),
    Cause(
        "card_revoked",
        "The card was revoked.",
        ("revoked",),
    ),
    Cause(
        "revocation_unknown",
        "Whether the card was revoked is not known right now.",
        ("status_unavailable",),
    ),
    Cause(
        "not_in_force",
        "The card has expired, or is not valid yet.",
        ("expired", "not_valid_yet"),
    ),
    Cause(
        "several_cards",
        "One card must prove this, and several did.",
        ("split_answer",),
    ),
    Cause(
        "too_early",
        "The card was not known yet at the time that was asked for.",
        ("not_yet_valid",),
    ),
    Cause(
        "wrong_answer",
        "The wallet answered wrongly.",
        tuple(code for code, one in FAILURES.items() if one.advice == OTHER_WALLET),
    ),
    Cause(
        "forged",
        "The proof is not genuine.",
        tuple(code for code, one in FAILURES.items() if one.advice == FORGED),
    ),
)
CAUSE_OF = {failure: cause for cause in CAUSES for failure in cause.failures}

# What each rule of the checklist checks (checks.py), in the order of the rules.
# tests/verifications/proofs/test_failures.py holds the names equal to those there.
RULES = {
    "malformed": "The answer has the shape of a presentation",
    "identifiers": "Each part of the answer belongs to a credential",
    "nothing_more": "Nothing is answered that was not asked for",
    "exponents": "The numbers of the proof are of honest size",
    "challenge": "The proof is bound to its own challenge",
    "answered": "The item is answered once, in the form asked for",
    "self_attested": "A credential proves it, and not the holder's word",
    "definition": "The ledger knows the definition of the credential",
    "schema": "The schema is the one that the credential names",
    "attributes": "The credential has these attributes",
    "responses": "Each hidden attribute is proven",
    "revealed": "What is shown is what is proven",
    "predicates": "The comparison is the one that was asked for",
    "encoding": "The shown text is the one that was signed",
    "restrictions": "The credential meets the restrictions",
    "values": "The credential shows the required value",
    "non_revocation": "It is proven that the credential is not revoked",
    "revocation_registry": "The registry of revocations is the issuer's",
    "status_list": "The list of revocations is the newest one",
    "signature": "The signatures of the issuers are genuine",
    # Of SD-JWT VCs (openid4vp/sd_jwt_rules.py), beside those of the same name.
    "credential": "It has the shape of an SD-JWT VC",
    "certificate": "An authority that counts stands behind the issuer",
    "validity": "The credential is valid today",
    "binding": "Its holder has presented it, for this request",
}


def list_causes(checks: Iterable[dict[str, str]]) -> list[CauseInWords]:
    """Return the causes of a verdict, each once, in the order of the failed checks.

    checks: as stored, or as `Verification.unsealed_checks()` returns them. A failure of
    another release, without a cause, is one of its own.
    """
    found: dict[str, CauseInWords] = {}
    for check in checks:
        if check["status"] != "fail":
            continue
        words = in_words(check)
        cause = CAUSE_OF.get(words.code, Cause(words.code, words.message, ()))
        known = found.setdefault(
            cause.code, CauseInWords(cause.code, cause.message, words.advice, ())
        )
        if name := check.get("policyName") or check.get("policy_name"):
            names = (*known.policy_names, name)
            found[cause.code] = known._replace(policy_names=names)
    return list(found.values())


def find_cause(text: str) -> Cause | None:
    """Return the cause with this code or sentence, or None."""
    return next((one for one in CAUSES if text in (one.code, one.message)), None)


def in_words(check: dict[str, str]) -> CheckInWords:
    """Say a check in words. Its message stays as it was when the proof was judged.

    check: as `Verification.unsealed_checks()` returns it.
    """
    code = check.get("code", "")
    failure = FAILURES.get(code)
    rule = check["rule"]
    return CheckInWords(
        policy_name=check.get("policyName", ""),
        rule=RULES.get(rule, rule),
        code=code,
        message=check.get("message", ""),
        advice=failure.advice if failure else "",
    )
