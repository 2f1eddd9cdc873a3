"""nginx with deploy/nginx.conf, on ports of this machine."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from agency.devtools.embedded.home import free_port
from tests.production import Failed
from tests.support.paths import ROOT
from tests.support.tools import find_program

CONFIGURATION = ROOT / "deploy" / "nginx.conf"
SECONDS_TO_START, SECONDS_TO_STOP = 10, 20
# What Debian's nginx.conf and that of the image do around it; here nothing leaves the
# folder.
AROUND = """\
{user}
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/agency.conf;
}}
"""


class Proxy:
    """certificate: the folder that holds `certificate.pem` and `key.pem`."""

    def __init__(
        self, folder: Path, certificate: Path, port: int, stream_port: int
    ) -> None:
        self.folder = folder
        folder.mkdir()
        self.port = free_port(folder / "port")
        self.plain_port = free_port(folder / "plain-port")
        changes = {
            "server web:8000;": f"server 127.0.0.1:{port};",
            "server stream:8001;": f"server 127.0.0.1:{stream_port};",
            "listen 80;": f"listen 127.0.0.1:{self.plain_port};",
            "listen 443 ssl;": f"listen 127.0.0.1:{self.port} ssl;",
            "/etc/nginx/tls/": f"{certificate}/",
        }
        text = CONFIGURATION.read_text()
        for ours, theirs in changes.items():
            assert ours in text, f"{CONFIGURATION} has no {ours!r}"
            text = text.replace(ours, theirs)
        (folder / "agency.conf").write_text(text)
        user = "user root;" if os.geteuid() == 0 else ""
        (folder / "nginx.conf").write_text(AROUND.format(folder=folder, user=user))
        self.command = [
            find_program("nginx"),
            "-e",
            f"{folder}/error.log",
            "-c",
            f"{folder}/nginx.conf",
        ]

    def test(self) -> "subprocess.CompletedProcess[str]":
        """`nginx -t`"""
        return subprocess.run([*self.command, "-t"], capture_output=True, text=True)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        with subprocess.Popen(self.command) as process:
            try:
                deadline = time.monotonic() + SECONDS_TO_START
                while not (self.folder / "pid").exists():
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise Failed((self.folder / "error.log").read_text())
                    time.sleep(0.05)
                yield
            finally:
                process.terminate()
                process.wait(SECONDS_TO_STOP)
