"""Registering, listing, switching and deleting webhooks."""

from importlib import import_module

from django.apps import apps

from tenants import vault
from tests.support import races
from tests.support.errors import assert_error, error_of
from webhooks.models import Delivery, Webhook

URL = "https://office.example/events"


def registers(organization, **body):
    return organization.post("/webhooks", {"url": URL, "type": "Notification"} | body)


CLIENTS = [
    "new_connection", "credential_request", "verification", "new_inbox_message",
    "credential_offer", "verification_request",
]  # fmt: skip


def test_a_registered_webhook_is_listed_the_newest_first_and_deleted(faber):
    made = registers(faber)
    assert made.pop("secret").startswith("whsec_")
    assert made == {
        "id": made["id"], "url": URL, "type": "Notification", "enabled": True,
        "messageTypes": CLIENTS, "createdAtUtc": made["createdAtUtc"],
        "updatedAtUtc": made["updatedAtUtc"],
    }  # fmt: skip
    assert faber.get("/webhooks") == [made]
    path = f"/webhooks/{made['id']}"
    assert faber.get(path) == made
    other = registers(faber)["id"]
    assert [one["id"] for one in faber.get("/webhooks")] == [other, made["id"]]
    faber.delete(path)
    assert [one["id"] for one in faber.get("/webhooks")] == [other]
    assert_error(error_of(faber.delete, path), 404, "not_found")


def test_each_type_is_kept_under_its_name_and_an_unknown_one_is_400(faber):
    kept = {
        "Notification": "Notification",
        "DelegatedEndorser": "DelegatedEndorser",
        "Endorser": "DelegatedEndorser",
        "DelegatedSigning": "DelegatedEndorser",
        "Zapier": "Zapier",
        None: "Notification",
    }
    for given, name in kept.items():
        assert registers(faber, type=given)["type"] == name
    for kind in ("Other", "notification", 1, {}, ["Notification"], ""):
        assert "type" in error_of(registers, faber, type=kind).body["errors"]


def test_it_is_disabled_and_enabled(faber):
    made = registers(faber)
    del made["secret"]
    for word, enabled in (("disable", False), ("disable", False), ("enable", True)):
        answered = faber.put(f"/webhooks/{made['id']}/{word}")
        [shown] = faber.get("/webhooks")
        assert answered == shown
        assert shown.pop("lostSinceUtc"), "it says from when on it missed events"
        changed = {"enabled": enabled, "updatedAtUtc": shown["updatedAtUtc"]}
        assert shown == made | changed


def test_an_address_that_cannot_be_called_is_400(faber, subtests):
    for url in (
        None, "", "office.example/events", "ftp://office.example", "https://",
        "https:///events", "https://user:secret@office.example/",
        "https://office.example@evil.example/", "https://office.example:99999/",
        "https://[::1/", "https://office.example/a b", "https://office.example/\u202e",
        "https://office.example\\@evil.example/",
        "https://office.example/" + "x" * 2000, 7, ["https://office.example"],
        "http://office.example/events",
    ):  # fmt: skip
        with subtests.test(str(url)[:60]):
            error = error_of(registers, faber, url=url)
            assert_error(error, 400, "invalid_request")
            assert "url" in error.body["errors"]
    error = error_of(registers, faber, url="https://169.254.169.254/latest")
    assert_error(error, 400, "address_refused")
    assert "url" in error.body["errors"]
    assert faber.get("/webhooks") == []


def test_plain_http_is_taken_only_where_the_setting_says_so(faber, settings):
    settings.WEBHOOK_REQUIRE_HTTPS = False
    url = "http://office.example/events"
    assert registers(faber, type="Endorser", url=url)["url"] == url
    registers(faber, type="Zapier")
    faber.hosts().meets(faber)
    [delivery] = Delivery.objects.all()
    assert delivery.webhook.type == "Zapier", "an endorser's webhook is never called"


def test_the_sixth_notification_webhook_is_409_also_when_all_come_at_once(faber, acme):
    for _ in range(3):
        registers(faber)
    answers = races.at_once(*[lambda: registers(faber)] * 6)
    assert races.error_codes(answers) == ["webhook_limit"] * 4
    path = f"/webhooks/{faber.get('/webhooks')[0]['id']}"
    faber.put(f"{path}/disable")
    assert_error(error_of(registers, faber), 409, "webhook_limit")
    assert len(faber.get("/webhooks")) == 5
    registers(acme)
    registers(faber, type="Zapier")
    faber.delete(path)
    registers(faber)


def test_unless_it_asks_for_others_it_is_told_the_usual_types_of_its_dialect(faber):
    for given in ({}, {"messageTypes": []}):
        assert registers(faber, **given)["messageTypes"] == CLIENTS
    faber.headers["X-Service-Subscription-Key"] = faber.made.subscription_key
    for given in ({}, {"messageTypes": None}):
        assert registers(faber, **given)["messageTypes"] == CLIENTS[:4]
    dialects = Webhook.objects.order_by("pk").values_list("dialect", flat=True)
    assert list(dialects) == ["client"] * 2 + ["literal"] * 2
    asked = ["verification", "credential_issued", "verification"]
    assert registers(faber, messageTypes=asked)["messageTypes"] == asked[:2]
    error = error_of(registers, faber, messageTypes=["other"])
    assert "messageTypes[0]" in error.body["errors"]


def test_its_options_are_changed_one_by_one(faber):
    made = registers(faber, messageTypes=["verification"])
    assert "retryUnconfirmed" not in made

    def changes(**body):
        return faber.call("patch", f"/webhooks/{made['id']}", body)

    assert changes(retryUnconfirmed=False)["retryUnconfirmed"] is False
    changed = changes(url=URL + "/2", messageTypes=[])
    assert (changed["url"], changed["messageTypes"]) == (URL + "/2", CLIENTS)
    assert changed["retryUnconfirmed"] is False
    error = error_of(changes, url="ftp://office.example")
    assert "url" in error.body["errors"]
    # Null takes the choice for unconfirmed calls back, and is as if absent elsewhere.
    changes(messageTypes=["verification"])
    changed = changes(retryUnconfirmed=None, messageTypes=None)
    assert "retryUnconfirmed" not in changed
    assert changed["messageTypes"] == ["verification"]
    assert Webhook.objects.get().retry_unconfirmed is None
    other = registers(faber, url=f"{URL}/3", retryUnconfirmed=None)
    assert "retryUnconfirmed" not in other


def test_it_may_take_up_to_a_hundred_events_in_one_call(faber):
    assert registers(faber, batch=1)["batch"] == 1
    made = registers(faber, batch=100)
    path = f"/webhooks/{made['id']}"
    assert made["batch"] == faber.get(path)["batch"] == 100
    assert faber.call("patch", path, {"batch": 7})["batch"] == 7
    for wrong in (0, 101, "many", -1):
        error = error_of(faber.call, "patch", path, {"batch": wrong})
        assert "batch" in error.body["errors"]
    assert faber.call("patch", path, {"retryUnconfirmed": True})["batch"] == 7
    assert "batch" not in faber.call("patch", path, {"batch": None})
    assert "batch" not in registers(faber)


def test_what_was_chosen_for_everybody_before_is_left_to_the_address(faber):
    """True was the default, False was chosen."""
    for url, choice in ((f"{URL}/1", True), (f"{URL}/2", False)):
        registers(faber, url=url, retryUnconfirmed=choice)
    migration = import_module("webhooks.migrations.0002_unanswered_calls")
    migration.leave_to_the_address(apps, None)
    found = dict(Webhook.objects.values_list("url", "retry_unconfirmed"))
    assert found == {f"{URL}/1": None, f"{URL}/2": False}


def test_registered_twice_with_one_key_the_secret_is_not_shown_again(faber):
    body, once = {"url": URL, "type": "Notification"}, {"Idempotency-Key": "once"}
    faber.call("post", "/webhooks", body, **once)
    error = error_of(faber.call, "post", "/webhooks", body, **once)
    assert_error(error, 409, "already_created")
    assert Webhook.objects.count() == 1


def test_parameters_and_secret_are_sealed_and_never_shown(faber):
    made = registers(faber, parameters="zap=4711")
    assert "4711" not in str(made)
    row = Webhook.objects.get()
    assert b"4711" not in bytes(row.parameters)
    assert vault.unseal(row, "parameters") == "zap=4711"
    assert vault.unseal(row, "secret").startswith("whsec_")
