"""Kiosks in the API: the link is shown once, and a digest of it is kept."""

import pytest
from django.conf import settings

from tenants import tokens
from tenants.models import AuditEntry
from tests.support.errors import assert_error, error_of
from tests.support.people import Organization
from tests.support.presentations import attribute, policy_of, predicate
from verifications import kiosks
from verifications.models import Kiosk, Verification

POLICY = policy_of(
    attribute("Who", attributeNames=["name"]),
    predicate("year", "<", 2008, policyName="old enough"),
)


@pytest.fixture
def desk(faber):
    """The body of a new kiosk."""
    stored = faber.post("/verificationPolicies", POLICY)["policyId"]
    return {"name": "Front desk", "policyId": stored, "shownItems": ["Who"]}


def test_a_kiosk_is_made_listed_and_revoked(faber, desk):
    made = faber.post("/kiosks", desk)
    link = made.pop("url")
    token = link.removeprefix(f"{settings.PUBLIC_URL}/kiosk/")
    assert tokens.is_well_formed(token, "agk")
    [row] = Kiosk.objects.values()
    assert bytes(row["sha256"]) == tokens.digest_of(token) and token not in str(row)
    told = {name: made[name] for name in ("kioskId", "createdAtUtc", "updatedAtUtc")}
    assert made == desk | told | {"seconds": 8}
    assert faber.get("/kiosks") == [made]
    assert faber.get(f"/kiosks/{made['kioskId']}") == made
    faber.delete(f"/kiosks/{made['kioskId']}")
    assert faber.get("/kiosks") == []
    assert kiosks.find_kiosk(token) is None
    actions = AuditEntry.objects.filter(object_type="kiosk").order_by("pk")
    assert [one.action for one in actions] == ["kiosk.created", "kiosk.revoked"]
    assert token not in str(list(actions.values()))


CANNOT_BE_SHOWN = [
    ({"shownItems": ["old enough"]}, "unknown_item"),  # it shows no value
    ({"shownItems": ["name"]}, "unknown_item"),
    ({"seconds": 2}, "invalid_request"),
    ({"seconds": 61}, "invalid_request"),
    ({"name": ""}, "invalid_request"),
    ({"noCardUrl": "http://faber.example"}, "invalid_request"),
    ({"noCardUrl": "javascript:alert(1)"}, "invalid_request"),
    ({"noCardUrl": f"https://{'x' * 200}.example"}, "invalid_request"),
    ({"noCardText": "x" * 301}, "invalid_request"),
]


def test_what_a_kiosk_cannot_show_is_refused(faber, desk, subtests):
    for wrong, code in CANNOT_BE_SHOWN:
        with subtests.test(str(wrong)):
            assert_error(error_of(faber.post, "/kiosks", desk | wrong), 400, code)
            assert not Kiosk.objects.exists()
    elsewhere = error_of(Organization("Acme").post, "/kiosks", desk)
    assert_error(elsewhere, 404, "not_found")


def test_there_are_few_kiosks_that_go_with_their_policy(faber, desk, monkeypatch):
    monkeypatch.setattr(kiosks, "MAX_KIOSKS", 1)
    faber.post("/kiosks", desk)
    assert_error(error_of(faber.post, "/kiosks", desk), 409, "too_many_kiosks")
    faber.delete(f"/verificationPolicies/{desk['policyId']}")
    assert faber.get("/kiosks") == []


def test_revoking_takes_the_open_request_back(faber, desk):
    made = faber.post("/kiosks", desk)
    kiosks.next_screen(Kiosk.objects.get())
    assert Verification.objects.get().state == "Requested"
    faber.delete(f"/kiosks/{made['kioskId']}")
    assert not Verification.objects.exists()
