"""No page of the admin shows a secret."""

import base64
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser, User
from django.db import models

from agency.mails import mailings
from agency.mails.mailings import MailOptions
from agency.support.actions import ACTIONS
from connections.models import Connection, SeenMessage
from credentials.models import (
    Credential,
    LastDocument,
    MailDay,
    NameDigests,
    NameKey,
    SpentNonce,
)
from tenants.models import IdempotencyLease
from tests.agency.admin.conftest import OURS
from tests.support import queues
from tests.support.policies import attribute, policy
from verifications.models import CheckDigests, Verification
from wallets.models import Key, Wallet
from webhooks.models import FeedEpoch, FeedSwitch

MAY_BE_EMPTY = {
    "AgreementAcceptance", "Asset", "Attempt", "AuditEntry", "Authority", "BasicMessage",
    "Bulk", "BulkRow", "DailyUsage", "DefinitionFormat", "Delivery", "DidEndpoint",
    "Erasure", "FormerDataKey", "Grant", "Invitation", "KeyFiller", "KeyRequest",
    "LoggedRequest", "Membership", "Publication", "ReadLog", "ReadResource",
    "RevocationRegistry",
    "SigningKey", "SimulatedAnswer", "SimulatedHolder", "SpareKey", "StatusList",
    "TokenStatusList", "TrustAnchor", "WaitingAnswer", "Webhook", "WebvhDid", "WebvhResource",
}  # fmt: skip
MAILED_TO = "ada-4711@club.example"
NOTES = {"reference": "Order Babbage-1833", "metadata": {"desk": "Difference Engine"}}
VALUES = {"name": "Ada Lovelace-4711", "degree": "Analytical Engines", "age": "36001"}


def our_admins():
    return [
        (model, site)
        for model, site in admin.site._registry.items()
        if model._meta.app_label in OURS
    ]


def columns_of(site):
    """The columns that an admin shows or searches."""
    request = SimpleNamespace(user=AnonymousUser())
    names = [*site.get_fields(request, site.model()), *site.list_display]
    names += [*site.list_filter, *site.search_fields]
    names = [one.__name__ if callable(one) else one for one in names]
    return {name if isinstance(name, str) else name[0] for name in names}


def test_every_model_is_in_the_admin():
    models = {model for app in OURS for model in apps.get_app_config(app).get_models()}
    # Nothing to read, or public; and Django's admin has no composite keys.
    left_out = {SeenMessage, SpentNonce, FeedEpoch, FeedSwitch, IdempotencyLease}
    left_out |= {CheckDigests, LastDocument, NameDigests, NameKey}
    assert {model for model, _ in our_admins()} == models - left_out


def test_an_admin_shows_no_sealed_column():
    hidden = (models.BinaryField, models.JSONField)
    for model, site in our_admins():
        secret = {f.name for f in model._meta.get_fields() if isinstance(f, hidden)}
        secret |= {"token", "digest", "invitation", "invitation_key"}
        assert not columns_of(site) & secret, model
        assert all(inline.fields for inline in site.inlines), model


@pytest.fixture
def secrets(faber, monkeypatch, settings):
    """Create rows of all kinds. Return the secrets that nobody may see of them."""
    settings.ORGANIZATION_MAIL, settings.EMAIL_URL = True, "smtp://mail.example"
    alice = faber.hosts("Alice")
    with monkeypatch.context() as by_rows:  # else messages between them are no rows
        queues.deliver_by_rows(by_rows)
        definition = faber.defines(*VALUES)
        alice.receives(faber, definition, VALUES)
    offer = {"definitionId": definition["definitionId"], "credentialValues": VALUES}
    by_link = faber.post("/credentials", offer | NOTES)
    mail = MailOptions(text="Lovely as an algebra", reply_to="desk-4711@faber.example")
    mailings.begin_single(
        Credential.objects.get(pk=by_link["credentialId"]), MAILED_TO, mail
    )
    MailDay.take_one(faber.tenant)
    faber.invites(**NOTES)
    asked = policy(attribute("name"))
    faber.asks(alice, **asked)
    alice.auto_selects()
    stored = faber.post("/verificationPolicies", asked | NOTES)["policyId"]
    kiosk = faber.post("/kiosks", {"name": "Desk", "policyId": stored})
    invited = faber.call("post", "/connections", {}, **{"Idempotency-Key": "k1"})
    links = Connection.objects.exclude(token="").values_list("token", flat=True)
    made, token = faber.made, kiosk["url"].rpartition("/")[2]
    keys = [made.access_token, made.subscription_key, made.provider_key, token]
    seeds = [key.unseal_seed() for key in Key.objects.exclude(seed=None)]
    encoded = [form(seed) for seed in seeds for form in (bytes.hex, base64_of)]
    digests = [bytes(key.digest).hex() for key in faber.tenant.keys.all()]
    link_secrets = [wallet.unseal_link_secret() for wallet in Wallet.objects.all()]
    notes = [NOTES["reference"], *NOTES["metadata"].values()]
    texts = [*VALUES.values(), *notes, *links, *keys, *encoded, *digests]
    texts += [*link_secrets, MAILED_TO, mail.text, mail.reply_to]
    return [*texts, invited["invitation"], "recipientKeys"]


def base64_of(data):
    return base64.b64encode(data).decode().rstrip("=")


def pages_of(model):
    """The addresses of the list of a model and of each of its rows."""
    base = f"/admin/{model._meta.label_lower.replace('.', '/')}/"
    keys = model.objects.values_list("pk", flat=True)
    return [base, *(f"{base}{pk}/change/" for pk in keys)]


def pages_of_support():
    """The addresses of searches for everything, and of all actions."""
    threads = Verification.objects.values_list("thread_id", flat=True)
    terms = ["faber", "alice", "https", *threads]
    for model, _ in our_admins():
        terms += [str(pk) for pk in model.objects.values_list("pk", flat=True)[:1]]
    yield from (f"/admin/search/?{urlencode({'q': term})}" for term in terms)
    for name, action in ACTIONS.items():
        for pk in action.model._default_manager.values_list("pk", flat=True)[:3]:
            yield f"/admin/act/{name}/{pk}/"


def test_no_page_holds_a_secret(secrets, browser):
    empty = {model.__name__ for model, _ in our_admins() if not model.objects.exists()}
    assert empty <= MAY_BE_EMPTY

    def look(paths):
        for path in paths:
            response = browser.get(path)
            assert response.status_code == 200, path
            page = response.text
            assert not [secret for secret in secrets if secret in page], path

    look([path for model, _ in our_admins() for path in pages_of(model)])
    User.objects.update(is_superuser=True)  # sees all results and all actions
    look(pages_of_support())
