"""Probe a process on this machine: exit code 0 if it is well. Django is not started.

python -m agency.ops.healthcheck [PORT]     a server; default: the port of web
python -m agency.ops.healthcheck KIND       worker, deliver or beat, by its heartbeat
"""

import http.client
import os
import socket
import sys
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import psycopg

from core.database.options import CONNECT_TIMEOUT, DJANGO_OPTIONS

MISSING_SECONDS = 15
HEARTBEAT_SQL = """
SELECT EXISTS (
    SELECT FROM ops_heartbeat WHERE kind = %s AND host = %s
    AND seen_at > clock_timestamp() - make_interval(secs => %s))
"""


def probe_health(port: int, public_url: str) -> bool:
    """Return whether GET /health responds 200.

    The request has the headers that a proxy for `public_url` would send.
    """
    public = urlsplit(public_url)
    headers = {"Host": public.netloc, "X-Forwarded-Proto": public.scheme}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health", headers=headers)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def probe_heartbeat(kind: str, database_url: str) -> bool:
    """Return whether a process of this kind lives on this host.

    While PostgreSQL is out of reach nobody knows, and starting the process anew would
    not help: True then.
    """
    url = urlsplit(database_url)
    given = dict(parse_qsl(url.query))
    query = {name: given[name] for name in given if name not in DJANGO_OPTIONS}
    query.setdefault("connect_timeout", str(CONNECT_TIMEOUT))
    wanted = [kind, socket.gethostname(), MISSING_SECONDS]
    try:
        with psycopg.connect(url._replace(query=urlencode(query)).geturl()) as database:
            found = database.execute(HEARTBEAT_SQL, wanted).fetchone()
    except psycopg.OperationalError as error:
        print(f"PostgreSQL is out of reach, so nothing is known: {error}")
        return True
    return bool(found and found[0])


def read_database_url() -> str:
    if path := os.environ.get("DATABASE_URL_FILE"):
        return Path(path).read_text().strip()
    return os.environ["DATABASE_URL"]


if __name__ == "__main__":
    if (kind := "".join(sys.argv[1:2])).isalpha():
        sys.exit(0 if probe_heartbeat(kind, read_database_url()) else 1)
    web = os.environ.get("PORT", "8000")
    public_url = os.environ.get("PUBLIC_URL", f"http://127.0.0.1:{web}")
    port = int(sys.argv[1] if len(sys.argv) > 1 else web)
    sys.exit(0 if probe_health(port, public_url) else 1)
