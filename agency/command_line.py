"""The command line: `agency`, `python manage.py` and `python -m agency` are the same.

Beside Django's commands: `start NAME` replaces this process by one of the product's, and
the commands of developers (agency_cli). Beside a `make run`, Django's commands use its
servers, without a variable to set.
"""

import os
import sys
from pathlib import Path

from agency_cli import COMMANDS
from core.work.processors import count_processors


def main() -> None:
    name, options = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if name == "start":
        start(options)
    # Imported only now: the process that starts would load it a second time.
    if name in COMMANDS:
        from agency_cli.__main__ import main as run_client

        sys.exit(run_client([name, *options]))
    from agency.django_commands import run_command

    run_command(name)


def start(arguments: list[str]) -> None:
    """Become a process of the product. Further arguments are options of its program."""
    known = processes()
    if not arguments or arguments[0] not in known:
        sys.exit(f"CommandError: Say which to start: {', '.join(known)}.")
    name, *options = arguments
    command = [sys.executable, "-m", *known[name].split(), *options]
    os.execv(sys.executable, command)


def processes() -> dict[str, str]:
    """The processes of the product by name: modules of Python with their options."""
    port = int(os.environ.get("PORT") or 8000)
    stream_port = os.environ.get("STREAM_PORT") or port + 1
    web_processes = os.environ.get("WEB_PROCESSES") or count_processors()
    log = Path(__file__).with_name("server") / "granian_log.json"
    options = (
        "--loop uvloop --backlog 4096 --backpressure 4096 --no-ws "
        f"--respawn-failed-workers --log-level warning --log-config {log}"
    )
    worker = "celery --quiet -A agency worker --pool threads --concurrency 4"
    quiet = "--without-gossip --without-mingle --loglevel warning"
    return {
        "web": f"agency.server.serve {options} --interface asginl "
        f"--workers {web_processes} --port {port} "
        "--http1-header-read-timeout 10000 --workers-kill-timeout 25 "
        "agency.web:application",
        "stream": f"granian {options} --interface asgi --workers 1 --port {stream_port} "
        "--workers-kill-timeout 5 agency.asgi:application",
        "worker": f"{worker} {quiet}",
        "deliver": f"{worker} --queues webhooks,messages --hostname deliver@%h {quiet}",
        "beat": "celery --quiet -A agency beat --pidfile= --loglevel warning",
    }
