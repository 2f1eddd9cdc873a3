"""Writes answer the object as it is then; for the original clients nothing, as ever."""

import pytest

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Alice"}


@pytest.fixture
def alice(faber):
    return faber.hosts()


@pytest.fixture
def definition(faber):
    return faber.defines("name")


def by(api, prefix):
    """The same caller below a prefix of the original clients; "" for none."""
    api.prefix = f"{prefix}{api.prefix}"
    return api


@pytest.mark.parametrize(
    ("credentials", "wallets"),
    [("", ""), ("/agency/v1", "/custodian/v1"), ("/credentials/v1", "/wallet/v1")],
)
def test_writes_answer_the_object_on_bare_paths_alone(
    faber, alice, definition, credentials, wallets
):
    offered = faber.offers(alice, definition, VALUES)["credentialId"]
    asked = faber.asks(alice, attributes=[{"policyName": "name"}])["verificationId"]
    webhook = faber.post("/webhooks", {"url": "https://office.example"})["id"]
    text = {"connectionId": alice.known_as(faber), "text": "Good morning"}
    [held], [question] = alice.get("/credentials"), alice.get("/verifications")
    by(faber, credentials), by(alice, wallets)
    answers = [
        alice.send("post", f"/credentials/{held['credentialId']}"),
        faber.send("put", f"/credentials/{offered}"),
        alice.send("put", f"/verifications/{question['verificationId']}/autoSelect"),
        faber.send("post", "/messages", text),
        faber.send("put", f"/webhooks/{webhook}/disable"),
        faber.send("put", f"/webhooks/{webhook}/enable"),
    ]
    assert {one.status_code for one in answers} == {200}
    if credentials:
        assert [one.content for one in answers] == [b""] * 6
        return
    accepted, issued, proved, sent, disabled, enabled = (one.json() for one in answers)
    assert accepted["state"] == "Requested"
    assert issued == faber.get(f"/credentials/{offered}")
    assert issued["state"] == "Issued"
    assert proved["verificationId"] == question["verificationId"]
    assert proved["state"] == "Accepted"
    assert faber.get(f"/verifications/{asked}")["isValid"] is True
    assert [sent] == faber.get(f"/messages/connection/{alice.known_as(faber)}")
    assert sent["deliveryState"] == "Delivered"
    assert not disabled["enabled"] and enabled["enabled"]


def test_a_decline_answers_the_object(faber, alice, definition):
    faber.offers(alice, definition, VALUES)
    faber.asks(alice, attributes=[{"policyName": "name"}])
    for kind, key in (
        ("credentials", "credentialId"),
        ("verifications", "verificationId"),
    ):
        [one] = alice.get(f"/{kind}")
        method = "post" if kind == "credentials" else "put"
        path = f"/{kind}/{one[key]}/decline"
        declined = getattr(alice, method)(path, {"reason": "not_now"})
        assert (declined[key], declined["state"]) == (one[key], "Rejected")


def test_a_repeated_write_gets_the_same_answer(faber, alice, definition):
    offered = faber.offers(alice, definition, VALUES)["credentialId"]
    alice.accepts_offer()
    faber.headers["Idempotency-Key"] = "once"
    first, again = (faber.send("put", f"/credentials/{offered}") for _ in range(2))
    assert first.json()["state"] == "Issued" and again.content == first.content
