"""`make pin-images`: images of docker-compose.yml and the Dockerfile, by their digests.

It asks the registry of each image, as a container engine does (OCI distribution), and
changes nothing for an image whose registry does not answer.
"""

import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

FILES = ("docker-compose.yml", "Dockerfile")
IMAGE = re.compile(
    r"^(\s*image: |FROM )([^\s@]+:[^\s@]+)(?:@sha256:[0-9a-f]{64})?", re.M
)
DEFAULT_REGISTRY = "registry-1.docker.io"
ACCEPTED = (
    "application/vnd.oci.image.index.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json"
)
TIMEOUT = 30


def main() -> int:
    """0 if every image has its digest, else 1."""
    failed = False

    def pin(found: re.Match[str]) -> str:
        nonlocal failed
        try:
            digest = read_digest(found[2])
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"{found[2]}: not pinned ({error})", file=sys.stderr)
            failed = True
            return found[0]
        print(f"{found[2]}@{digest}")
        return f"{found[1]}{found[2]}@{digest}"

    for file in map(Path, FILES):
        file.write_text(IMAGE.sub(pin, file.read_text()))
    return int(failed)


def read_digest(image: str) -> str:
    """The digest of the image for all platforms that its registry names now."""
    name, _, tag = image.rpartition(":")
    registry, _, repository = name.partition("/")
    if "." not in registry and ":" not in registry:
        registry, repository = (
            DEFAULT_REGISTRY,
            name if "/" in name else f"library/{name}",
        )
    # As engines do: a registry on this machine has no certificate.
    scheme = "http" if registry.startswith(("127.0.0.1:", "localhost:")) else "https"
    url = f"{scheme}://{registry}/v2/{repository}/manifests/{tag}"
    request = urllib.request.Request(url, method="HEAD", headers={"Accept": ACCEPTED})
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 401:
            raise
        token = read_token(error.headers["WWW-Authenticate"])
        request.add_header("Authorization", f"Bearer {token}")
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
    digest = answer.headers["Docker-Content-Digest"] or ""
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise ValueError(f"the registry answered the digest {digest!r}")
    return str(digest)


def read_token(challenge: str) -> str:
    """A token for anybody, from where the challenge of the registry says."""
    fields = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    query = "&".join(f"{name}={fields[name]}" for name in ("service", "scope"))
    with urllib.request.urlopen(
        f"{fields['realm']}?{query}", timeout=TIMEOUT
    ) as answer:
        return str(json.load(answer)["token"])


if __name__ == "__main__":
    sys.exit(main())
