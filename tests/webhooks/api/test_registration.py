"""Registering, listing, switching and deleting webhooks."""

from importlib import import_module

import pytest
from django.apps import apps

from tenants import vault
from tests.support import races
from tests.support.errors import assert_error, error_of
from webhooks.models import Delivery, Webhook

pytestmark = pytest.mark.django_db(transaction=True)
URL = "https://office.example/events"


def registers(organization, **body):
    return organization.post("/webhooks", {"url": URL, "type": "Notification"} | body)


def test_a_registered_webhook_is_listed(faber):
    made = registers(faber)
    assert made.pop("secret").startswith("whsec_")
    assert made == {
        "id": made["id"],
        "url": URL,
        "type": "Notification",
        "enabled": True,
        "messageTypes": [
            "new_connection",
            "credential_request",
            "verification",
            "new_inbox_message",
            "credential_offer",
            "verification_request",
        ],
    }
    assert faber.get("/webhooks") == [made]
    assert faber.get(f"/webhooks/{made['id']}") == made


def test_the_newest_webhook_is_listed_first(faber):
    ids = [registers(faber)["id"] for _ in range(3)]
    assert [one["id"] for one in faber.get("/webhooks")] == ids[::-1]


@pytest.mark.parametrize(
    "given, kept",
    [
        ("Notification", "Notification"),
        ("DelegatedEndorser", "DelegatedEndorser"),
        ("Endorser", "DelegatedEndorser"),
        ("DelegatedSigning", "DelegatedEndorser"),
        ("Zapier", "Zapier"),
        (None, "Notification"),
    ],
)
def test_each_type_is_kept_under_its_name(faber, given, kept):
    assert registers(faber, type=given)["type"] == kept


def test_it_is_disabled_and_enabled(faber):
    made = registers(faber)
    del made["secret"]
    for word, enabled in (("disable", False), ("disable", False), ("enable", True)):
        assert faber.put(f"/webhooks/{made['id']}/{word}") is None
        [shown] = faber.get("/webhooks")
        assert shown.pop("lostSinceUtc"), "it says from when on it missed events"
        assert shown == made | {"enabled": enabled}


def test_a_webhook_is_deleted(faber):
    made = registers(faber)
    faber.delete(f"/webhooks/{made['id']}")
    assert faber.get("/webhooks") == []
    assert_error(error_of(faber.delete, f"/webhooks/{made['id']}"), 404, "not_found")


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        "office.example/events",
        "ftp://office.example",
        "https://",
        "https:///events",
        "https://user:secret@office.example/",
        "https://office.example@evil.example/",
        "https://office.example:99999/",
        "https://[::1/",
        "https://office.example/a b",
        "https://office.example/\u202e",
        "https://office.example\\@evil.example/",
        "https://office.example/" + "x" * 2000,
        7,
        ["https://office.example"],
    ],
)
def test_an_address_that_cannot_be_called_is_400(faber, url):
    error = error_of(registers, faber, url=url)
    assert_error(error, 400, "invalid_request")
    assert "url" in error.body["errors"]
    assert faber.get("/webhooks") == []


def test_an_address_inside_is_400(faber):
    error = error_of(registers, faber, url="https://169.254.169.254/latest")
    assert_error(error, 400, "address_refused")
    assert "url" in error.body["errors"]


def test_plain_http_is_taken_only_where_the_setting_says_so(faber, settings):
    url = "http://office.example/events"
    assert "url" in error_of(registers, faber, url=url).body["errors"]
    settings.WEBHOOK_REQUIRE_HTTPS = False
    assert registers(faber, url=url)["url"] == url


@pytest.mark.parametrize(
    "kind",
    ["Other", "notification", 1, {}, ["Notification"], ""],
)
def test_an_unknown_type_is_400(faber, kind):
    assert "type" in error_of(registers, faber, type=kind).body["errors"]


def test_the_sixth_notification_webhook_is_409(faber, acme):
    made = [registers(faber) for _ in range(5)]
    faber.put(f"/webhooks/{made[0]['id']}/disable")
    error = error_of(registers, faber)
    assert_error(error, 409, "webhook_limit")
    registers(acme)
    registers(faber, type="Zapier")
    faber.delete(f"/webhooks/{made[0]['id']}")
    registers(faber)


def test_the_limit_holds_when_all_come_at_once(faber):
    for _ in range(3):
        registers(faber)
    answers = races.at_once(*[lambda: registers(faber)] * 6)
    assert races.error_codes(answers) == ["webhook_limit"] * 4
    assert len(faber.get("/webhooks")) == 5


def test_the_dialect_of_the_registration_is_kept(faber):
    registers(faber)
    faber.headers["X-Service-Subscription-Key"] = faber.made.subscription_key
    registers(faber)
    dialects = Webhook.objects.order_by("pk").values_list("dialect", flat=True)
    assert list(dialects) == ["client", "literal"]


CLIENTS = [
    "new_connection", "credential_request", "verification", "new_inbox_message",
    "credential_offer", "verification_request",
]  # fmt: skip


@pytest.mark.parametrize("given", [{}, {"messageTypes": []}, {"messageTypes": None}])
def test_unless_it_asks_it_is_told_the_usual_types(faber, given):
    assert registers(faber, **given)["messageTypes"] == CLIENTS
    faber.headers["X-Service-Subscription-Key"] = faber.made.subscription_key
    assert registers(faber, **given)["messageTypes"] == CLIENTS[:4]


def test_it_is_told_the_types_it_asks_for(faber):
    made = registers(
        faber, messageTypes=["verification", "credential_issued", "verification"]
    )
    assert made["messageTypes"] == ["verification", "credential_issued"]
    assert (
        "messageTypes[0]"
        in error_of(registers, faber, messageTypes=["other"]).body["errors"]
    )


def test_its_options_are_changed_one_by_one(faber):
    made = registers(faber, messageTypes=["verification"])
    path = f"/webhooks/{made['id']}"
    assert "retryUnconfirmed" not in made
    assert (
        faber.call("patch", path, {"retryUnconfirmed": False})["retryUnconfirmed"]
        is False
    )
    changed = faber.call("patch", path, {"url": URL + "/2", "messageTypes": []})
    assert (changed["url"], changed["messageTypes"]) == (URL + "/2", CLIENTS)
    assert changed["retryUnconfirmed"] is False
    error = error_of(faber.call, "patch", path, {"url": "ftp://office.example"})
    assert "url" in error.body["errors"]


def test_null_takes_the_choice_for_unconfirmed_calls_back_and_is_absent_elsewhere(
    faber,
):
    made = registers(faber, messageTypes=["verification"], retryUnconfirmed=True)
    path = f"/webhooks/{made['id']}"
    changed = faber.call(
        "patch", path, {"retryUnconfirmed": None, "messageTypes": None}
    )
    assert "retryUnconfirmed" not in changed
    assert changed["messageTypes"] == ["verification"]
    assert Webhook.objects.get(pk=made["id"]).retry_unconfirmed is None
    faber.call("patch", path, {"retryUnconfirmed": False})
    assert faber.call("patch", path, {"url": f"{URL}/2"})["retryUnconfirmed"] is False
    assert "retryUnconfirmed" not in registers(
        faber, url=f"{URL}/3", retryUnconfirmed=None
    )


def test_what_was_chosen_for_everybody_before_is_left_to_the_address(faber):
    """True was the default, False was chosen."""
    for url, choice in ((f"{URL}/1", True), (f"{URL}/2", False)):
        registers(faber, url=url, retryUnconfirmed=choice)
    migration = import_module("webhooks.migrations.0002_unanswered_calls")
    migration.leave_to_the_address(apps, None)
    found = dict(Webhook.objects.values_list("url", "retry_unconfirmed"))
    assert found == {f"{URL}/1": None, f"{URL}/2": False}


def test_an_endorsers_webhook_is_never_called(faber):
    registers(faber, type="Endorser")
    registers(faber, type="Zapier")
    faber.hosts().meets(faber)
    [delivery] = Delivery.objects.all()
    assert delivery.webhook.type == "Zapier"


def test_registered_twice_with_one_key_the_secret_is_not_shown_again(faber):
    body = {"url": URL, "type": "Notification"}
    faber.call("post", "/webhooks", body, **{"Idempotency-Key": "once"})
    error = error_of(
        faber.call, "post", "/webhooks", body, **{"Idempotency-Key": "once"}
    )
    assert_error(error, 409, "already_created")
    assert Webhook.objects.count() == 1


def test_parameters_and_secret_are_sealed_and_never_shown(faber):
    made = registers(faber, parameters="zap=4711")
    assert "4711" not in str(made)
    row = Webhook.objects.get()
    assert b"4711" not in bytes(row.parameters)
    assert vault.unseal(row, "parameters") == "zap=4711"
    assert vault.unseal(row, "secret").startswith("whsec_")
