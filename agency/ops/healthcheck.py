"""Asks a server on this machine whether it is well: exit code 0 if so. No Django here.

python -m agency.healthcheck [PORT]     without it, the web server's
"""

import http.client
import os
import sys
from urllib.parse import urlsplit


def is_well(port: int, public_url: str) -> bool:
    """Whether GET /health answers 200, asked as if through the proxy of `public_url`."""
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
    sys.exit(0 if is_well(port, public_url) else 1)
