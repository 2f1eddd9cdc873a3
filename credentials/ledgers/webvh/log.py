"""Check the log of a did:webvh, by did:webvh 1.0. No network and no database here.

Stricter than other readers: members and parameters that the specification does not
have are refused, and an entry without a proof. Witnesses are not read here, so a log
that names some is refused.
"""

import hashlib
import re
from datetime import datetime
from typing import Any, NamedTuple

from core.text import bounded_json
from core.text.bounded_json import JSON, Members
from credentials.ledgers.webvh import encoding
from credentials.ledgers.webvh.encoding import METHOD
from credentials.ledgers.webvh.refusals import Broken, Refused, require

MAX_LOG_BYTES = 256 * 1024
MAX_ENTRIES = 200
MAX_PROOFS = 10  # of one entry
MAX_SKEW_SECONDS = 300  # by which an entry may be ahead of our clock
MEMBERS = {"versionId", "versionTime", "parameters", "state", "proof"}
# The types of parameters are exact: True is no int.
PARAMETERS = {
    "method": str,
    "scid": str,
    "updateKeys": list,
    "nextKeyHashes": list,
    "portable": bool,
    "deactivated": bool,
    "witness": dict,
    "watchers": list,
    "ttl": int,
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|\+00:00)", re.ASCII)
# Credo writes no fragment.
UPDATE_KEY = re.compile(r"did:key:(z6Mk[1-9A-HJ-NP-Za-km-z]{44})(#\1)?")


class CheckedLog(NamedTuple):
    """A log that was checked, up to its last entry.

    versions: how many entries. size, digest: of the log in bytes, SHA-256 in hex.
    last_time: of the last entry, in Unix seconds. update_keys, next_key_hashes: in
    force after it. document: the DID document.
    """

    versions: int
    version_id: str
    last_time: float
    update_keys: list[str]
    next_key_hashes: list[str]
    is_deactivated: bool
    document: Members
    size: int
    digest: str


def check_log(
    did: str, data: bytes, now: float, known: CheckedLog | None = None
) -> CheckedLog:
    """Check a log, and return what is to be remembered of it.

    now: Unix seconds. known: the same log as it was checked before: then only the
    entries after it are checked, and Refused `did_log_forked` is raised if the log is
    shorter now or has another entry there. Refused `did_log_refused` for all else.
    """
    try:
        return _check_log(did, data, now, known)
    except Broken as error:
        raise Refused("did_log_refused", f"The log of {did}", str(error)) from None


def _check_log(
    did: str, data: bytes, now: float, known: CheckedLog | None
) -> CheckedLog:
    require(len(data) <= MAX_LOG_BYTES, "log_too_long")
    checked = known if known and _begins_with(data, known) else None
    start = checked.size if checked else 0
    lines = data[start:].removesuffix(b"\n").split(b"\n") if data[start:] else []
    before = checked.versions if checked else 0
    require(0 < before + len(lines) <= MAX_ENTRIES, "number_of_entries")
    size, digest = len(data), hashlib.sha256(data).hexdigest()
    has_known = known is None or checked is not None
    for line in lines:
        checked = _check_entry(did, line, now, checked)
        if known and checked.versions == known.versions:
            has_known = checked.version_id == known.version_id
    if not checked or not has_known:
        raise Refused("did_log_forked", f"The log of {did}", "log_forked")
    return checked._replace(size=size, digest=digest)


def _begins_with(data: bytes, known: CheckedLog) -> bool:
    """Whether the bytes are those of the known log, and whole lines after them."""
    start = data[: known.size]
    is_whole = start.endswith(b"\n") or len(data) == known.size
    return is_whole and hashlib.sha256(start).hexdigest() == known.digest


def _check_entry(
    did: str, line: bytes, now: float, last: CheckedLog | None
) -> CheckedLog:
    """Check an entry and return the log up to it. last: the log before; None if none."""
    entry = _read_entry(line)
    require(last is None or not last.is_deactivated, "entry_after_deactivation")
    given, state = entry["parameters"], entry["state"]
    _check_parameters(given, is_first=last is None)
    scid = did.split(":")[2]
    if last is None:
        require(given["scid"] == scid == encoding.scid_of(entry, scid), "wrong_scid")
    versions = last.versions + 1 if last else 1
    expected = encoding.version_id_of(
        entry, versions, last.version_id if last else scid
    )
    require(entry["versionId"] == expected, "wrong_version_id")
    moment = _read_time(entry["versionTime"])
    require(moment <= now + MAX_SKEW_SECONDS, "time_in_future")
    require(last is None or last.last_time < moment, "time_not_later")
    _check_proofs(entry, _signers(given, last))
    require(state.get("id") == did, "document_of_another_did")  # also: moved
    return CheckedLog(
        versions=versions,
        version_id=expected,
        last_time=moment,
        update_keys=given.get("updateKeys", last.update_keys if last else []),
        next_key_hashes=given.get(
            "nextKeyHashes", last.next_key_hashes if last else []
        ),
        is_deactivated=given.get("deactivated", False),
        document=state,
        size=0,
        digest="",
    )


def _read_entry(line: bytes) -> dict[str, Any]:
    try:
        # As text, so that no byte order mark is skipped.
        entry = bounded_json.loads(line.decode(), unique_keys=True)
    except ValueError:  # BadJSON too
        raise Broken("line_is_no_json") from None
    require(isinstance(entry, dict) and entry.keys() == MEMBERS, "members_of_entry")
    is_readable = isinstance(entry["parameters"], dict)
    require(is_readable and isinstance(entry["state"], dict), "members_of_entry")
    return entry


def _check_parameters(given: dict[str, Any], is_first: bool) -> None:
    for name, value in given.items():
        require(type(value) is PARAMETERS.get(name), "unknown_parameter")
    for name in ("updateKeys", "nextKeyHashes"):
        texts = given.get(name, [])
        require(all(isinstance(text, str) for text in texts), "unknown_parameter")
    require(is_first == ("scid" in given), "scid_in_wrong_entry")
    method = given.get("method", None if is_first else METHOD)
    require(method == METHOD, "unknown_method")
    require(not given.get("witness"), "witnesses_not_supported")


def _read_time(text: JSON) -> float:
    require(isinstance(text, str) and TIME.fullmatch(text), "wrong_time")
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):  # the 30th of February
        raise Broken("wrong_time") from None


def _signers(given: dict[str, Any], last: CheckedLog | None) -> list[str]:
    """The multikeys that may sign an entry. With pre-rotation they were announced."""
    if last is None:
        return given.get("updateKeys", [])
    if not last.next_key_hashes:
        return last.update_keys
    require({"updateKeys", "nextKeyHashes"} <= given.keys(), "prerotation_omitted")
    for key in given["updateKeys"]:
        is_announced = encoding.next_key_hash(key) in last.next_key_hashes
        require(is_announced, "key_not_announced")
    return given["updateKeys"]


def _check_proofs(entry: dict[str, Any], signers: list[str]) -> None:
    """Require at least one proof, and that all are right."""
    proofs = entry["proof"]
    require(isinstance(proofs, list) and 1 <= len(proofs) <= MAX_PROOFS, "no_proof")
    for proof in proofs:
        require(isinstance(proof, dict), "no_proof")
        key = UPDATE_KEY.fullmatch(str(proof.get("verificationMethod")))
        if not key or key[1] not in signers:
            raise Broken("key_not_authorized")
        require(encoding.is_proven(entry, proof, key[1]), "wrong_proof")
