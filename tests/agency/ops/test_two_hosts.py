"""Web processes of two hosts, with one database and one broker. # slow"""

import re

import pytest
import requests

from agency.devtools.embedded import start_servers
from tests.support.processes import processes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
ALLOWED = 6
TOKEN = "two-hosts"


def on_host(folder, given):
    folder.mkdir()
    own = {"TMPDIR": str(folder), "METRICS_ROOT": str(folder / "metrics")}
    return processes(folder, **given | own)


@pytest.fixture
def hosts(home):
    """Two that share no counters on a disk."""
    given = start_servers(home) | {
        "INBOX_PER_ADDRESS": str(ALLOWED),
        "METRICS_TOKEN": TOKEN,
    }
    with on_host(home / "one", given) as one, on_host(home / "two", given) as two:
        for host in (one, two):
            host.start_web()
        yield one, two


def post_envelope(host):
    headers = {"Content-Type": "application/ssi-agent-wire"}
    url = f"{host.url}/didcomm"
    return requests.post(url, b"{}", headers=headers, timeout=30).status_code


def count(host, metric):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    text = requests.get(f"{host.url}/metrics", headers=headers, timeout=30).text
    values = re.findall(rf"^{metric}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
    return sum(map(float, values))


def test_hosts_have_one_limit_and_each_its_own_counts(hosts):
    one, two = hosts
    taken = [post_envelope(host) for host in (one, two) * (ALLOWED // 2)]
    assert 429 not in taken
    assert [post_envelope(host) for host in hosts] == [429, 429]
    refused = [count(host, "agency_rate_refusals_total") for host in hosts]
    assert refused == [1, 1], "Prometheus scrapes each host, and adds them"
