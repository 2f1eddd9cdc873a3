"""The process of an answer is killed: there is one verdict, and one event of it."""

import pytest

from tests.support.killed_worker import KilledClient

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.mark.parametrize(
    ("after", "state"),
    [
        pytest.param(
            "verifications.models.Verification.receive_answer",
            "Requested",
            id="before the commit",
        ),
        pytest.param(
            "verifications.openid4vp.answers.receive_answer",
            "Accepted",
            id="before the answer",
        ),
    ],
)
def test_the_wallet_answers_again(acme, ask, held, after, state):
    asked = ask()
    path = f"/verifications/{asked['verificationId']}"
    held.read_request(asked["walletLinks"]["openid4vp"])
    said = {"vp_token": held.vp_token(), "state": held.request_object["state"]}
    answer, client = held.encrypt(said), held.client
    held.client = KilledClient(after)
    held.send(response=answer)
    assert acme.get(path)["state"] == state
    held.client = client
    assert held.send(response=answer).status_code == 200
    seen = acme.get(path)
    assert (seen["state"], seen["isValid"]) == ("Accepted", True), seen["checks"]
    told = [event["body"]["state"] for event in acme.get("/events")]
    assert sorted(told) == ["Accepted", "Requested"]
