"""What a controller sees of an exchange: its thread, its slot, and why it ended."""

import json

import pytest

from connections.didcomm import reasons
from connections.didcomm.message import read_attachment
from credentials.models import Credential
from tests.support import queues
from tests.support.outside_exchanges import ISSUE, offers_to
from tests.support.people import ApiError
from tests.support.steps import step
from verifications.models import Verification
from webhooks.events.models import Event

VALUES = {"name": "Alice", "level": "7"}
ASKED = [{"policyName": "name"}]
WHY = "My name is spelt Alicia.\n"


@step
def alice(faber):
    alice = faber.hosts()
    alice.meets(faber)
    return alice


@step
def badge(faber):
    return faber.defines("name", "level")


def test_both_sides_name_an_exchange_by_its_thread(faber, alice, badge):
    offered = faber.offers(alice, badge, VALUES)
    asked = faber.asks(alice, attributes=ASKED)
    assert alice.newest("credentials")["threadId"] == offered["threadId"]
    assert alice.newest("verifications")["threadId"] == asked["threadId"]
    assert offered["threadId"] != asked["threadId"]
    told = [json.loads(event.body) for event in Event.objects.order_by("pk")]
    threads = {(one["object_type"], one["data"].get("thread_id")) for one in told}
    assert {pair for pair in threads if pair[0] in ("credential", "verification")} == {
        ("credential", offered["threadId"]),
        ("verification", asked["threadId"]),
    }


def test_the_thread_is_that_of_the_messages(faber, peer, badge):
    offers_to(peer, faber, badge["definitionId"])
    message = peer.newest(ISSUE + "offer-credential")
    [listed] = faber.get("/credentials")
    assert listed["threadId"] == message.thread_id
    assert read_attachment(message, "offers~attach")["cred_def_id"]


def test_the_issuer_alone_sees_the_slot_of_a_revocable_credential(faber, alice):
    definition = faber.defines("name", "level", supportRevocation=True)
    queues.sweep()
    offered = faber.offers(alice, definition, VALUES)
    assert "revocationIndex" not in offered
    alice.accepts_offer()
    path = f"/credentials/{offered['credentialId']}"
    faber.put(path)
    row = Credential.objects.get(role="issuer")
    for seen in (faber.get(path), faber.get("/credentials")[0]):
        assert seen["revocationRegistryId"] == row.revocation_registry_id
        assert seen["revocationIndex"] == row.revocation_index >= 1
    assert "revocationRegistryId" not in alice.newest("credentials")
    assert "revocationIndex" not in alice.newest("credentials")


@pytest.mark.parametrize("kind", ["credentials", "verifications"])
def test_who_declines_says_why(faber, alice, badge, kind):
    if kind == "credentials":
        seen, method = faber.offers(alice, badge, VALUES), "post"
        path = f"/{kind}/{seen['credentialId']}"
        hers = f"/{kind}/{alice.newest(kind)['credentialId']}"
    else:
        seen, method = faber.asks(alice, attributes=ASKED), "put"
        path = f"/{kind}/{seen['verificationId']}"
        hers = f"/{kind}/{alice.newest(kind)['verificationId']}"
    assert not {"problem", "reason"} & seen.keys()
    with pytest.raises(ApiError) as too_long:
        alice.call(method, f"{hers}/decline", {"reason": "x" * 501})
    assert too_long.value.body["errors"]["reason"]
    alice.call(method, f"{hers}/decline", {"reason": WHY})
    there = faber.get(path)
    assert (there["state"], there["reason"]) == ("Rejected", WHY.strip())
    assert there["problem"] in ("issuance-abandoned", "abandoned")
    here = alice.get(hers)
    assert (here["problem"], here["reason"]) == ("declined", WHY.strip())
    assert faber.get(f"/{kind}")[0]["reason"] == WHY.strip()
    model = Credential if kind == "credentials" else Verification
    assert all(b"Alicia" not in row.reason for row in model.objects.all())


@pytest.mark.parametrize("code", ["no_card_fits", "not_now"])
def test_a_code_as_the_reason_arrives_as_a_code(faber, alice, badge, code):
    offered = faber.offers(alice, badge, VALUES)
    asked = faber.asks(alice, attributes=ASKED)
    offer = alice.newest("credentials")["credentialId"]
    alice.post(f"/credentials/{offer}/decline", {"reason": code})
    request = alice.newest("verifications")["verificationId"]
    alice.put(f"/verifications/{request}/decline", {"reason": code})
    for path in (
        f"/credentials/{offered['credentialId']}",
        f"/verifications/{asked['verificationId']}",
    ):
        seen = faber.get(path)
        words = reasons.DECLINES[code]
        assert (seen["problem"], seen["reason"]) == (code, words)
        assert seen["problemMessage"] == words


def test_a_decline_without_a_reason_stays_as_it_was(faber, alice, badge):
    offered = faber.offers(alice, badge, VALUES)
    hers = f"/credentials/{alice.newest('credentials')['credentialId']}"
    alice.post(f"{hers}/decline")
    assert "reason" not in alice.get(hers)
    there = faber.get(f"/credentials/{offered['credentialId']}")
    assert there["reason"] == "The credential is not wanted."
    alice.put(
        f"/credentials/propose/{alice.known[faber][1]}", {"credentialValues": VALUES}
    )
    proposed = faber.get("/credentials")[0]["credentialId"]
    faber.call("delete", f"/credentials/delete/{proposed}")
    assert alice.newest("credentials")["reason"] == "The credential is not issued."


EXPLANATIONS = {7: None, "x" * 900: "x" * 500, "a\x07b\x1bc": "abc", "": None}
EXPLANATIONS[None] = None


def test_any_explanation_of_an_agent_is_read(faber, peer, badge, subtests):
    first = offers_to(peer, faber, badge["definitionId"])
    for said, reason in EXPLANATIONS.items():
        with subtests.test(str(said)[:20]):
            path = offers_to(peer, faber, badge["definitionId"])
            thread = peer.newest(ISSUE + "offer-credential").thread_id
            description = {"code": "issuance-abandoned", "en": said}
            report = ISSUE + "problem-report"
            peer.says(peer.build(report, thread, description=description))
            seen = faber.get(path)
            told = seen["state"], seen["problem"], seen.get("reason")
            assert told == ("Rejected", "issuance-abandoned", reason)
    assert faber.get(first)["state"] == "Offered"
