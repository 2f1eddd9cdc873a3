"""Files of offers, and the worker that makes them, in tests."""

import json
from urllib.parse import quote

from credentials.bulk import issuing
from credentials.models import Bulk

NAMES = ["name", "year"]


def send_file(organization, definition, data, content_type="text/csv", **query):
    """POST a file. data: text, or rows that become CSV. Return the response."""
    if isinstance(data, list):
        data = "\n".join([",".join(NAMES), *data])
    asked = {"definitionId": definition["definitionId"]} | query
    parameters = "&".join(f"{name}={quote(str(one))}" for name, one in asked.items())
    return organization.client.generic(
        "POST",
        f"/credentials/bulk?{parameters}",
        data,
        content_type,
        headers=organization.headers,
    )


def sent(organization, definition, data, content_type="text/csv", **query):
    response = send_file(organization, definition, data, content_type, **query)
    assert response.status_code == 200, response.content
    return response.json()


def json_lines(*rows):
    return "\n".join(json.dumps(row) for row in rows)


def read(organization, bulk):
    return organization.get(f"/credentials/bulk/{bulk['bulkId']}")


def read_result(organization, bulk):
    """The lines of the result as lists of cells, without the header."""
    path = f"/credentials/bulk/{bulk['bulkId']}/result"
    response = organization.send("get", path)
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/csv")
    header, *lines = b"".join(response.streaming_content).decode().splitlines()
    columns = header.split(",")
    assert columns[:6] == ["row", "state", "credentialId", "link", "error", "reference"]
    return [line.split(",")[:6] for line in lines]


def worker_issues():
    """Let the worker offer whatever waits, as if leases and delays were over."""
    Bulk.objects.filter(status="pending").update(
        lease_until=None, due_at="2026-01-01T00:00Z"
    )
    issuing.loop.run()
