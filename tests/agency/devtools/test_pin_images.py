"""`make pin-images`, with a registry on loopback."""

import json
import subprocess
import sys

import pytest

from tests.support.http_servers import Call, http_server
from tests.support.paths import ROOT

INDEX, OTHER = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"


@pytest.fixture
def registry():
    """It wants a token, and knows nginx:stable alone."""

    def respond(call: Call) -> None:
        if call.path.startswith("/token?service=here&scope=repository:nginx:pull"):
            call.answer(200, json.dumps({"token": "T"}).encode())
        elif call.path != "/v2/nginx/manifests/stable":
            call.answer(404)
        elif call.headers["Authorization"] != "Bearer T":
            realm = f'Bearer realm="{call.server.url}/token",service="here"'
            scope = 'scope="repository:nginx:pull"'
            call.answer(401, WWW_Authenticate=f"{realm},{scope}")
        else:
            assert "oci.image.index" in call.headers["Accept"]
            call.answer(200, Docker_Content_Digest=INDEX)

    with http_server(respond) as server:
        yield server.url.removeprefix("http://")


def pin(folder, compose, dockerfile):
    """The exit code, and both files afterwards."""
    (folder / "docker-compose.yml").write_text(compose)
    (folder / "Dockerfile").write_text(dockerfile)
    program = [sys.executable, ROOT / "deploy" / "pin_images.py"]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True)
    files = [(folder / n).read_text() for n in ("docker-compose.yml", "Dockerfile")]
    return done.returncode, *files, done.stderr


def test_a_digest_that_a_registry_names_is_written(registry, tmp_path):
    compose = "  web:\n    image: agency\n  proxy:\n    image: {}\n"
    name = f"{registry}/nginx:stable"
    pinned = f"{name}@{INDEX}"
    code, shown, dockerfile, _ = pin(tmp_path, compose.format(name), f"FROM {name}\n")
    assert (code, shown) == (0, compose.format(pinned))
    assert dockerfile == f"FROM {pinned}\n"
    again = compose.format(f"{name}@{OTHER}")
    assert pin(tmp_path, again, "FROM scratch\n")[1] == compose.format(pinned)


def test_no_digest_is_written_that_was_not_fetched(registry, tmp_path):
    compose = f"    image: {registry}/unknown:1@{OTHER}\n"
    code, shown, _, said = pin(tmp_path, compose, "FROM scratch\n")
    assert (code, shown) == (1, compose)
    assert "unknown:1: not pinned (HTTP Error 404" in said
