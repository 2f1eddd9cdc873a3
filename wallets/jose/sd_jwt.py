"""Credentials as SD-JWT VC (RFC 9901, draft-ietf-oauth-sd-jwt-vc) with key binding.

Such a text comes from strangers: reading it refuses all that the RFC tells a verifier to
refuse, and what is too long, too deep, or has too many disclosures.
"""

import json
import secrets
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from core.errors import PeerError
from core.text import bounded_json
from core.text.bounded_json import JSON
from wallets.jose.signing import (
    PublicKey,
    Token,
    bad_token,
    decode_base64url,
    encode_base64url,
    is_time,
    read_public_key,
    read_token,
    sha256_of,
    sign_token,
)

TYP = "dc+sd-jwt"
BINDING_TYP = "kb+jwt"
MAX_TEXT = 512 * 1024  # characters
MAX_DISCLOSURES = 500
MAX_DEPTH = 20
MAX_FOUND = 5000  # values that a path selects
SALT_BYTES = 16
BINDING_SECONDS = 300  # by which the clock of a wallet may differ
# SD-JWT VC: they hold for each presentation, so that a holder cannot leave them out.
NEVER_DISCLOSED = {
    "iss", "nbf", "exp", "cnf", "vct", "vct#integrity", "aka_vcts", "status"
}  # fmt: skip
RESERVED = {"_sd", "_sd_alg", "..."}

# A claim: names, and indexes of arrays. In a query, None stands for all of an array.
Path: TypeAlias = tuple[str | int | None, ...]


class Disclosure(NamedTuple):
    """text: as sent. name: None of an element of an array."""

    text: str
    name: str | None
    value: JSON


class Credential(NamedTuple):
    """A credential as its text says; nothing is believed before verify().

    claims: with what is disclosed. disclosed: each disclosure by its path in them.
    bound_text: what a KB-JWT signs. binding: that token, "" if there is none.
    """

    token: Token
    claims: dict[str, Any]
    disclosed: dict[Path, Disclosure]
    bound_text: str
    binding: str

    @property
    def vct(self) -> str:
        return self.claims["vct"]

    def verify(self, issuer_key: PublicKey) -> None:
        """Check the issuer's signature. PeerError `bad_signature`."""
        self.token.verify(issuer_key)

    def check_times(self, now: float) -> None:
        """Check that it is valid now. PeerError `expired`, `not_valid_yet`."""
        if self.claims.get("exp", now + 1) <= now:
            raise PeerError("expired", "The credential has expired.")
        if self.claims.get("nbf", now) > now:
            raise PeerError("not_valid_yet", "The credential is not valid yet.")

    def verify_binding(self, audience: str, nonce: str, now: float) -> None:
        """Check that its holder presents it to us, now. PeerError `bad_binding`."""
        refused = PeerError("bad_binding", "The credential is not presented to us.")
        try:
            binding = read_token(self.binding, BINDING_TYP)
            binding.verify(self.holder_key())
        except PeerError:
            raise refused from None
        said = binding.payload
        made_at = said.get("iat")
        if not (
            is_time(made_at)
            and abs(now - made_at) <= BINDING_SECONDS
            and said.get("aud") == audience
            and said.get("nonce") == nonce
            and said.get("sd_hash") == sha256_of(self.bound_text)
        ):
            raise refused

    def holder_key(self) -> PublicKey:
        """Return the key to which it is bound. PeerError `bad_key`."""
        return read_public_key(self.claims["cnf"].get("jwk"))


def issue(
    claims: Mapping[str, JSON],
    disclosable: Mapping[str, JSON],
    secret: bytes,
    x5c: list[str],
) -> str:
    """Sign a credential. claims: for all eyes. disclosable: those the holder chooses."""
    disclosures = [
        _encode_disclosure(name, value) for name, value in disclosable.items()
    ]
    digests: list[JSON] = [*sorted(sha256_of(text) for text in disclosures)]
    payload = {**claims, "_sd_alg": "sha-256", "_sd": digests}
    token = sign_token(payload, secret, TYP, x5c=x5c)
    return "~".join([token, *disclosures, ""])


def present(
    credential: Credential,
    paths: Collection[Path],
    audience: str,
    nonce: str,
    secret: bytes,
    now: int,
) -> str:
    """Present a credential that we hold, bound to an audience and its nonce.

    paths: the claims to show. What they lie in and what lies in them is shown too, and
    no other disclosure.
    """
    texts = [
        disclosure.text
        for at, disclosure in credential.disclosed.items()
        if any(_is_on_path(at, path) for path in paths)
    ]
    shown = "~".join([credential.token.text, *texts, ""])
    said = {"iat": now, "aud": audience, "nonce": nonce, "sd_hash": sha256_of(shown)}
    return shown + sign_token(said, secret, BINDING_TYP)


def find_claims(claims: JSON, path: Path) -> list[JSON]:
    """Return the values that a claims path pointer selects (OpenID4VP section 7).

    Empty if it selects more than MAX_FOUND: who asks and who issues may be strangers.
    """
    found = [claims]
    for step in path:
        parts = (part for one in found for part in _step_into(one, step))
        found = list(islice(parts, MAX_FOUND + 1))
        if len(found) > MAX_FOUND:
            return []
    return found


def read(text: JSON) -> Credential:
    """Read a credential, with a KB-JWT or without. PeerError `bad_token`, `not_bound`.

    Its type and holder's key are there, and each disclosure has its digest.
    """
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise bad_token("it is no credential, or longer than 512 kB")
    signed, tilde, rest = text.partition("~")
    if not tilde:
        raise bad_token("it is no SD-JWT")
    *texts, binding = rest.split("~")
    if len(texts) > MAX_DISCLOSURES:
        raise bad_token(f"it has more than {MAX_DISCLOSURES} disclosures")
    token = read_token(signed, TYP)
    if token.payload.get("_sd_alg", "sha-256") != "sha-256":
        raise bad_token("its digests are not by SHA-256")
    reader = _Reader(texts)
    payload = {key: one for key, one in token.payload.items() if key != "_sd_alg"}
    claims = reader.read_object(payload, ())
    reader.require_all_used()
    _require_members(claims)
    bound_text = text[: len(text) - len(binding)]
    return Credential(token, claims, reader.disclosed, bound_text, binding)


class _Reader:
    """Puts disclosures in the place of their digests."""

    def __init__(self, texts: list[str]) -> None:
        self.by_digest: dict[str, Disclosure] = {}
        for text in texts:
            self.by_digest[sha256_of(text)] = _decode_disclosure(text)
        if len(self.by_digest) < len(texts):
            raise bad_token("a disclosure is there twice")
        self.digests: set[str] = set()
        self.disclosed: dict[Path, Disclosure] = {}

    def read_object(self, value: dict[str, JSON], path: Path) -> dict[str, JSON]:
        if len(path) >= MAX_DEPTH:
            raise bad_token(f"it is nested more than {MAX_DEPTH} levels deep")
        claims = {
            name: self.read_value(member, (*path, name))
            for name, member in value.items()
            if name != "_sd"
        }
        if not RESERVED.isdisjoint(claims):
            raise bad_token("a claim has a reserved name")
        digests = value.get("_sd", [])
        if not isinstance(digests, list):
            raise bad_token("its digests are no list")
        for digest in digests:
            if disclosure := self.find(digest):
                name = disclosure.name
                if name is None or name in claims or name in RESERVED:
                    raise bad_token("a disclosure does not fit its place")
                if not path and name in NEVER_DISCLOSED:
                    raise bad_token(f"{name} must not be selectively disclosable")
                self.disclosed[(*path, name)] = disclosure
                claims[name] = self.read_value(disclosure.value, (*path, name))
        return claims

    def read_array(self, value: list[JSON], path: Path) -> list[JSON]:
        if len(path) >= MAX_DEPTH:
            raise bad_token(f"it is nested more than {MAX_DEPTH} levels deep")
        elements: list[JSON] = []
        for element in value:
            at = (*path, len(elements))
            if not isinstance(element, dict) or "..." not in element:
                elements.append(self.read_value(element, at))
                continue
            if len(element) > 1:
                raise bad_token("a digest in an array has other members")
            if disclosure := self.find(element["..."]):
                if disclosure.name is not None:
                    raise bad_token("a disclosure does not fit its place")
                self.disclosed[at] = disclosure
                elements.append(self.read_value(disclosure.value, at))
        return elements

    def read_value(self, value: JSON, path: Path) -> JSON:
        if isinstance(value, dict):
            return self.read_object(value, path)
        return self.read_array(value, path) if isinstance(value, list) else value

    def find(self, digest: JSON) -> Disclosure | None:
        """Return its disclosure, or None if the holder does not show it."""
        if not isinstance(digest, str) or digest in self.digests:
            raise bad_token("a digest is there twice, or is no text")
        self.digests.add(digest)
        return self.by_digest.get(digest)

    def require_all_used(self) -> None:
        if not self.digests.issuperset(self.by_digest):
            raise bad_token("a disclosure has no digest")


def _require_members(claims: dict[str, JSON]) -> None:
    """Check the claims that a verifier relies on.

    As these are never disclosable, they are what the issuer signed.
    """
    if not isinstance(claims.get("vct"), str) or not claims["vct"]:
        raise bad_token("it has no vct")
    if not isinstance(claims.get("cnf"), dict):
        raise PeerError("not_bound", "The credential is not bound to a key.")
    for name in ("exp", "nbf", "iat"):
        if name in claims and not is_time(claims[name]):
            raise bad_token(f"its {name} is not a time")
    if not isinstance(claims.get("iss", ""), str):
        raise bad_token("its iss is no text")


def _encode_disclosure(name: str, value: JSON) -> str:
    salt = encode_base64url(secrets.token_bytes(SALT_BYTES))
    text = json.dumps([salt, name, value], ensure_ascii=False, separators=(",", ":"))
    return encode_base64url(text.encode())


def _decode_disclosure(text: str) -> Disclosure:
    try:
        parts = bounded_json.loads(decode_base64url(text), unique_keys=True)
    except bounded_json.BadJSON as error:
        raise bad_token(str(error)) from None
    match parts:
        case [str(), str(name), value]:
            return Disclosure(text, name, value)
        case [str(), value]:
            return Disclosure(text, None, value)
    raise bad_token("a disclosure is none")


def _step_into(value: JSON, step: str | int | None) -> Iterator[JSON]:
    if isinstance(step, str):
        if isinstance(value, dict) and step in value:
            yield value[step]
    elif isinstance(value, list):
        if step is None:
            yield from value
        elif 0 <= step < len(value):
            yield value[step]


def _is_on_path(at: Path, path: Path) -> bool:
    """Whether what is disclosed there contains what is asked, or lies in it."""
    return all(
        step is None or step == here for here, step in zip(at, path, strict=False)
    )
