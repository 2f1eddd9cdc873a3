"""Which release this is, and which tree of source files."""

import hashlib
from functools import cache
from pathlib import Path

__version__ = "0.2.0"  # CHANGELOG.md says what is in it
# The date of the last change of the API that a client must know: docs/api-versions.md.
API_VERSION = "2026-11-26"

# What a wheel packs (pyproject.toml), so that it has the build of its checkout.
PACKAGES = (
    "agency", "agency_cli", "connections", "core", "credentials", "sandbox", "tenants",
    "verifications", "wallets", "webhooks",
)  # fmt: skip
SUFFIXES = {
    ".py", ".html", ".txt", ".css", ".js", ".json", ".yaml", ".mo", ".png", ".svg",
    ".wasm",
}  # fmt: skip


@cache
def read_build() -> str:
    """Return the build: twelve digits, the same for trees with the same source files.

    The files are read at the first call, which takes some 50 ms.
    """
    return hash_sources(Path(__file__).parents[1])


def hash_sources(root: Path) -> str:
    digest = hashlib.sha256()
    found = [path for name in PACKAGES for path in root.joinpath(name).rglob("*.*")]
    for path in sorted(found):
        if path.suffix in SUFFIXES:
            digest.update(path.relative_to(root).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]


def describe_version() -> str:
    """Return the version with the build, as `0.2.0+0123456789ab` (PEP 440)."""
    return f"{__version__}+{read_build()}"
