"""Probe a server on this machine: exit code 0 if it is healthy, without Django.

python -m agency.ops.healthcheck [PORT]     default: the port of the web server
"""

import http.client
import os
import sys
from urllib.parse import urlsplit


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


if __name__ == "__main__":
    web = os.environ.get("PORT", "8000")
    public_url = os.environ.get("PUBLIC_URL", f"http://127.0.0.1:{web}")
    port = int(sys.argv[1] if len(sys.argv) > 1 else web)
    sys.exit(0 if probe_health(port, public_url) else 1)
