"""The published Python client, unchanged, runs the whole story against a live server.

Every step follows the one before at once: what it needs is finished when a call returns.
"""

import warnings

import pytest

from tenants.provisioning import create_organization

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from trinsic.service_clients import CredentialsClient, ServiceClientCredentials, WalletClient

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:msrest"),
]
POLICY = {
    "name": "Licence check",
    "version": "1.0",
    "attributes": [{"policy_name": "Name", "attribute_names": ["name"], "restrictions": None}],
    "predicates": [
        {
            "policy_name": "Old enough",
            "attribute_name": "year",
            "predicate_type": "<=",
            "predicate_value": 2020,
        }
    ],
}


class Clients:
    """The credentials and the wallet client of one organization."""

    def __init__(self, url):
        login = ServiceClientCredentials(create_organization("Faber").access_token)
        self.credentials = CredentialsClient(login, base_url=f"{url}/credentials/v1")
        self.wallet = WalletClient(login, base_url=f"{url}/wallet/v1")
        for client in (self.credentials, self.wallet):
            client.config.retry_policy.retries = 0

    def hold(self, year):
        """A new wallet with a credential; returns (wallet id, its connection's issuer-side id)."""
        wallet_id = self.wallet.create_wallet({"owner_name": "Rex"}).wallet_id
        invited = self.credentials.create_connection({})
        accepted = self.wallet.accept_invitation(wallet_id, invited.invitation)
        assert accepted.state == "Connected"
        assert isinstance(accepted.endpoint.verkey, list)
        self.issue(wallet_id, invited.connection_id, year)
        return wallet_id, invited.connection_id

    def issue(self, wallet_id, connection_id, year):
        definition = self.credentials.create_credential_definition(
            {"name": "Dog licence", "version": "1.0", "attributes": ["name", "year"]}
        )
        values = {"name": "Rex", "year": year}
        offer = {"definition_id": definition.definition_id, "connection_id": connection_id}
        offered = self.credentials.create_credential(offer | {"credential_values": values})
        [seen] = self.wallet.list_credentials(wallet_id)
        self.wallet.accept_credential_offer(wallet_id, seen.credential_id)
        assert self.credentials.get_credential(offered.credential_id).state == "Requested"
        self.credentials.issue_credential(offered.credential_id)
        issued = self.wallet.get_credential(wallet_id, seen.credential_id)
        assert (issued.state, issued.values) == ("Issued", values)

    def verify(self, wallet_id, connection_id):
        policy = self.credentials.create_verification_policy(POLICY)
        asked = self.credentials.send_verification_from_policy(connection_id, policy.policy_id)
        [seen] = self.wallet.list_verifications(wallet_id)
        self.wallet.submit_verification_auto_select(wallet_id, seen.verification_id)
        return self.credentials.get_verification(asked.verification_id)


@pytest.fixture
def clients(live_server, stored_keys):
    return Clients(live_server.url)


def test_it_walks_from_wallet_to_a_valid_proof(clients):
    result = clients.verify(*clients.hold("2019"))
    assert (result.state, result.is_valid) == ("Accepted", True)
    assert result.proof["Name"].value == "Rex"
    assert result.policy.name == "Licence check"
    assert result.verified_at_utc is not None


def test_a_predicate_that_does_not_hold_gives_false(clients):
    result = clients.verify(*clients.hold("2021"))
    assert (result.state, result.is_valid) == ("Accepted", False)


def test_it_reads_lists_and_chooses_credentials(clients):
    wallet_id, connection_id = clients.hold("2019")
    clients.credentials.send_verification_from_parameters(connection_id, POLICY)
    [seen] = clients.wallet.list_verifications(wallet_id)
    fitting = clients.wallet.get_available_credentials_for_verification(
        wallet_id, seen.verification_id
    )
    chosen = [
        {
            "policy_name": item.policy_name,
            "credential_id": item.available_credentials[0].credential_id,
        }
        for item in fitting
    ]
    clients.wallet.submit_verification(wallet_id, seen.verification_id, chosen)
    [result] = clients.credentials.list_verifications(connection_id=connection_id)
    assert result.is_valid is True
    schema_id = clients.credentials.create_schema(
        {"name": "Cat licence", "version": "1.0", "attribute_names": ["name"]}
    )
    assert schema_id.endswith(":2:Cat licence:1.0")
    assert schema_id in [schema.id for schema in clients.credentials.list_schemas()]
