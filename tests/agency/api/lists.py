"""A client that reads the lists of the API page by page."""

from django.conf import settings


def walk(who, address, **query):
    """The rows page by page, along the Link header."""
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    rows, address = [], f"{address}?{asked}"
    while address:
        response = who.send("get", address)
        assert response.status_code == 200, response.content
        rows += response.json()
        link = response.headers.get("Link", "").removesuffix('>; rel="next"')
        address = link.removeprefix(f"<{settings.PUBLIC_URL}")
    return rows
