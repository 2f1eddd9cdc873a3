"""A client that reads the lists of the API page by page."""

import re

from django.conf import settings


def walk(who, address, **query):
    """The rows page by page, along the Link header."""
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    rows, address = [], f"{address}?{asked}"
    while address:
        response = who.send("get", address)
        assert response.status_code == 200, response.content
        rows += response.json()
        found = re.search(r'<([^>]*)>; rel="next"', response.headers.get("Link", ""))
        address = found and found[1].removeprefix(settings.PUBLIC_URL)
    return rows
