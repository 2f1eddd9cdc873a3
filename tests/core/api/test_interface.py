"""Every path of the interface specification, with its literal fields and both headers.

The table is the specification's, row by row and in an order that tells a story. It runs
without a prefix and as the later clients call it; each other prefix has the same views.
"""

import json

import pytest
from django.test import Client
from django.urls import resolve

from tenants.lifecycle.provisioning import create_organization

pytestmark = pytest.mark.django_db(transaction=True)

PREFIXES = [  # of the credentials API and of the wallet API
    ("", ""),
    ("", "/custodian/v1"),
    ("/agency/v1", "/custodian"),
    ("/credentials/v1", "/wallet/v1"),
]
ABOUT = {"name": "Licence check", "version": "1.0.0-beta.1"}
OLD_ENOUGH = {
    "policyName": "Old enough", "attributeName": "year", "predicateType": "<=",
    "predicateValue": "2020",
    "restrictions": [{"credentialDefinitionId": "{definitionId}"}],
}  # fmt: skip
POLICY = ABOUT | {"attributes": [{"policyName": "name"}], "predicates": [OLD_ENOUGH]}
CHOICE = [
    {"policyName": "name", "credentialId": "{held}", "hidden": True},
    {"policyName": "Old enough", "credentialId": "{held}", "hidden": False},
]
VALUES = {"name": "Rex", "year": "2019"}
BY_LINK = {"definitionId": "{definitionId}", "credentialValues": VALUES}
OFFER = BY_LINK | {"connectionId": "{connectionId}"}
DEFINITION = {"name": "Dog licence", "version": "1.0", "attrNames": ["name", "year"]}
SCHEMA = {"name": "Cat licence", "version": "1.0", "attrNames": ["name"]}
WEBHOOK = {"url": "https://office.example/events", "type": "Endorser"}
PROOF_REQUEST = ABOUT | {"requested_attributes": {"name": {"name": "name"}}}
STORED = "/definitions/verifications/{verificationDefinitionId}"
ASKED = "/api/{walletId}/verifications/{asked}"
OF_CONNECTION = "/api/{walletId}/verifications/connection/{mine}"

# method, path, body (or form), what to keep from the answer: name -> where
STORY = [
    ("GET", "/health", None, {}),
    ("GET", "/api/health", None, {}),
    ("POST", "/api/wallets", {"ownerName": "Rex"}, {"walletId": "walletId"}),
    ("POST", "/connections", {},
     {"connectionId": "connectionId", "invitation": "invitation"}),
    ("GET", "/connections/{connectionId}", None, {}),
    ("POST", "/api/{walletId}/connections/invitation",
     {"form": {"invitation": "{invitation}"}}, {"mine": "connectionId"}),
    ("POST", "/definition/schemas", SCHEMA, {}),
    ("POST", "/definitions/credentials", DEFINITION, {"definitionId": "definitionId"}),
    ("POST", "/credentials", OFFER, {"credentialId": "credentialId"}),
    ("GET", "/api/{walletId}/credentials", None, {"held": "0.credentialId"}),
    ("POST", "/api/{walletId}/credentials/{held}", None, {}),
    ("PUT", "/credentials/{credentialId}", None, {}),
    ("POST", "/verificationPolicies", POLICY, {"policyId": "policyId"}),
    ("GET", "/verificationPolicies", None, {}),
    ("GET", "/verificationPolicies/{policyId}", None, {}),
    ("PUT", "/verifications/policy/{policyId}/connections/{connectionId}", None,
     {"verificationId": "verificationId"}),
    ("GET", "/verifications", None, {}),
    ("GET", OF_CONNECTION, None, {"asked": "0.verificationId"}),
    ("GET", "/api/{walletId}/verification/{asked}", None, {}),
    ("GET", f"{ASKED}/availableCredentials", None, {}),
    ("PUT", ASKED, CHOICE, {}),
    ("GET", "/verifications/{verificationId}", None, {"isValid": "isValid"}),
    ("GET", "/verifications/{verificationId}/verify", None, {"valid": "valid"}),
    ("PUT", "/verifications/policy/connections/{connectionId}", POLICY, {}),
    ("GET", OF_CONNECTION, None, {"asked": "0.verificationId"}),
    ("PUT", f"{ASKED}/autoSelect", None, {}),
    ("PUT", "/verifications/policy/{policyId}", None, {"url": "verificationUrl"}),
    ("POST", "/verifications/policy", POLICY, {"url": "verificationUrl"}),
    ("POST", "/credentials", BY_LINK, {"offerUrl": "offerUrl"}),
    ("POST", "/definitions/verifications", PROOF_REQUEST,
     {"verificationDefinitionId": "id"}),
    ("GET", "/definitions/verifications", None, {}),
    ("GET", STORED, None, {}),
    ("DELETE", STORED, None, {}),
    ("POST", "/webhooks", WEBHOOK, {"webhookId": "id"}),
    ("GET", "/webhooks", None, {"endorser": "0.type"}),
    ("PUT", "/webhooks/{webhookId}/disable", None, {}),
    ("PUT", "/webhooks/{webhookId}/enable", None, {}),
    ("DELETE", "/webhooks/{webhookId}", None, {}),
    ("DELETE", "/verifications/{verificationId}", None, {}),
    ("DELETE", "/verificationPolicies/{policyId}", None, {}),
    ("DELETE", "/definitions/credentials/{definitionId}", None, {}),
]  # fmt: skip


class Caller:
    """Calls as the specification shows it, filling in what earlier answers gave."""

    def __init__(self, credentials_prefix, wallet_prefix):
        made = create_organization("Registry office")
        self.prefixes = (credentials_prefix, wallet_prefix)
        self.client, self.kept = Client(), {}
        self.headers = {
            "Authorization": f"bearer {made.access_token}",
            "X-Service-Subscription-Key": made.subscription_key,
            "Accept": "text/plain",
        }

    def send(self, method, path, body=None):
        prefix = self.prefixes[path.startswith("/api/")]
        given, data = {"headers": self.headers}, self.fill(json.dumps(body))
        if isinstance(body, dict) and "form" in body:
            given["data"] = json.loads(data)["form"]
        elif body is not None:
            given |= {"data": data, "content_type": "application/json-patch+json"}
        return getattr(self.client, method.lower())(prefix + self.fill(path), **given)

    def fill(self, text):
        for name, value in self.kept.items():
            text = text.replace(f"{{{name}}}", str(value))
        return text

    def keep(self, answer, wanted):
        for name, where in wanted.items():
            value = answer
            for step in where.split("."):
                value = value[int(step) if step.isdecimal() else step]
            self.kept[name] = value


@pytest.mark.parametrize(("credentials", "wallet"), (PREFIXES[0], PREFIXES[-1]))
def test_every_path_answers_as_the_specification_says(stored_keys, credentials, wallet):
    caller, answers = Caller(credentials, wallet), {}
    for method, path, body, wanted in STORY:
        response = caller.send(method, path, body)
        assert response.status_code == 200, f"{method} {path}: {response.content}"
        kind = "text/plain" if path.endswith("/health") else "application/json"
        assert not response.content or response["Content-Type"] == kind, path
        answers[path] = response
        caller.keep(response.json() if wanted else None, wanted)
    assert_dialect(caller, answers)
    kept = [caller.kept[name] for name in ("isValid", "valid", "endorser")]
    assert kept == [True, True, "DelegatedEndorser"]


def test_each_prefix_has_the_same_views():
    for _, path, _, _ in STORY:
        is_of_wallet = path.startswith("/api/")
        addresses = {prefixes[is_of_wallet] + path for prefixes in PREFIXES}
        assert len({resolve(one).func for one in addresses}) == 1, path


def assert_dialect(caller, answers):
    """The header of the interface shapes endpoints and available credentials."""
    accepted = answers["/api/{walletId}/connections/invitation"].json()
    assert isinstance(accepted["endpoint"]["verkey"], str)
    available = answers[f"{ASKED}/availableCredentials"].json()
    assert set(available) == {"attributes", "predicates"}
    assert available["attributes"][0]["policyName"] == "name"
    asked = {"credentialDefinitionId": caller.kept["definitionId"]}
    assert available["predicates"][0]["restrictions"] == [asked]
