"""The process of a credential request is killed: there is one credential, one place."""

import pytest

from credentials.models import Credential, TokenStatusList
from tests.support.killed_worker import KilledClient

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
ISSUING = "credentials.openid4vci.issuing"


@pytest.mark.parametrize(
    ("after", "state"),
    [
        pytest.param(f"{ISSUING}._answer", "Offered", id="before the commit"),
        pytest.param(f"{ISSUING}.answer_request", "Issued", id="before the answer"),
    ],
)
def test_the_wallet_asks_again(faber, offers, phone, after, state):
    phone.open(offers()["link"])
    phone.take_token()
    body, client = phone.request(), phone.client
    phone.client = KilledClient(after)
    phone.ask(body)
    assert Credential.objects.get().state == state
    phone.client = client
    assert phone.keep(phone.ask(body))
    assert Credential.objects.get().state == "Issued"
    assert TokenStatusList.objects.get().used == 1
    told = [event["body"]["state"] for event in faber.get("/events")]
    assert sorted(told) == ["Issued", "Offered", "Requested"]
