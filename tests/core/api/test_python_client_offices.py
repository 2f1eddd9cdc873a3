"""The published Python client, unchanged: the operations beside its story.

None of its operations raises, and each typed answer is read whole.
"""

import io
import platform
import warnings

import pytest

from credentials.issue_credential import proposals
from tenants.lifecycle.provisioning import create_organization
from tests.support.pictures import picture, storage
from wallets.models import Wallet

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from msrest.exceptions import HttpOperationError
    from trinsic.service_clients import (
        CredentialsClient,
        ProviderClient,
        ServiceClientCredentials,
        WalletClient,
    )

platform.processor()  # the client asks for it, which starts a process the first time
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:msrest"),
]
__all__ = ["storage"]
UUID = "0a1b2c3d-0000-4000-8000-000000000001"


def client(kind, secret, url):
    made = kind(ServiceClientCredentials(secret), base_url=url)
    made.config.retry_policy.retries = 0
    return made


class Office:
    """The clients of one organization and of its provider account."""

    def __init__(self, url):
        made = create_organization("Faber")
        self.url = url
        self.provider = client(ProviderClient, made.provider_key, f"{url}/provider/v1")
        self.open(made.access_token)

    def open(self, token):
        url = self.url
        self.credentials = client(CredentialsClient, token, f"{url}/credentials/v1")
        self.wallet = client(WalletClient, token, f"{url}/wallet/v1")


@pytest.fixture
def office(live_server, stored_keys, storage):
    return Office(live_server.url)


def test_a_provider_makes_an_organization_and_opens_it(office):
    wanted = {"name": "Branch", "network_id": "local", "endorser_type": "Shared"}
    wanted |= {"tenant_id": UUID, "region": "UnitedStates"}
    made = office.provider.create_tenant(wanted)
    assert (made.tenant_id, made.region) == (UUID, "UnitedStates")
    assert made.network.network_id == "local"
    assert made.extended_information.transaction_endorsement == "Shared"
    assert [one.tenant_id for one in office.provider.list_tenants()] == [UUID]
    office.provider.update_tenant(UUID, {"name": "Renamed"})
    assert office.provider.get_tenant(UUID).name == "Renamed"
    office.open(office.provider.get_tenant_keys(UUID).access_token)
    assert [one.name for one in office.credentials.list_tenants()] == ["Renamed"]
    office.open(office.provider.change_tenant_keys(UUID).access_token)
    assert office.credentials.get_issuer_status().require_acceptance is False
    office.provider.delete_tenant(UUID)
    with pytest.raises(HttpOperationError):
        office.credentials.list_connections()


def test_a_provider_reads_networks_regions_and_usage(office):
    assert office.provider.list_networks()[0].network_id == "local"
    assert office.provider.get_regions() == {"UnitedStates": "United States"}
    assert office.provider.get_cloud_wallet_count().total == 0
    current = office.provider.get_current_usage()
    assert current.period_start < current.period_end
    assert office.provider.search_usage()[0].credential_count == 0
    office.provider.health()


PNG = {"content_type": "image/png"}


def test_pictures_are_taken_as_bytes_and_as_files(office, tmp_path, settings):
    (tmp_path / "logo.png").write_bytes(data := picture())
    with open(tmp_path / "logo.png", "rb") as file:
        for given in (io.BytesIO(data), file):
            address = office.credentials.upload_image(given, "logo.png", **PNG)
            given.seek(0)
            asset = office.provider.add_asset(given, filename="logo.png", **PNG)
            for url in (address, asset.public_uri):
                assert url.startswith(f"{settings.PUBLIC_URL}/assets/")
                assert url.endswith(".png")


def test_an_organization_reads_itself_and_its_networks(office):
    [mine] = office.credentials.list_tenants()
    assert office.credentials.get_tenant(mine.tenant_id).name == "Faber"
    assert office.credentials.list_networks()[0].network_name == "Local network"
    agreement = office.credentials.get_transaction_author_agreement("local")
    assert agreement.text is None
    office.credentials.accept_transaction_author_agreement(mine.tenant_id)
    branch = office.credentials.create_tenant({"name": "Branch"})
    [listed] = office.provider.list_tenants()
    assert listed.tenant_id == branch.tenant_id


def test_webhooks_are_registered_switched_and_removed(office):
    wanted = {"url": "https://o.example", "type": "Notification"}
    made = office.credentials.create_webhook(wanted)
    office.credentials.disable_webhook(made.id)
    [seen] = office.credentials.list_webhooks()
    assert (seen.id, seen.type, seen.enabled) == (made.id, "Notification", False)
    office.credentials.enable_webhook(made.id)
    office.credentials.remove_webhook(made.id)
    assert office.credentials.list_webhooks() == []


def hold(office):
    """(wallet id, the organization's connection id, the wallet's)"""
    wallet_id = office.wallet.create_wallet({"owner_name": "Rex"}).wallet_id
    invited = office.credentials.create_connection({})
    mine = office.wallet.accept_invitation(wallet_id, invited.invitation)
    return wallet_id, invited.connection_id, mine.connection_id


def test_messages_are_sent_listed_and_read(office):
    _, connection_id, _ = hold(office)
    office.credentials.send_message({"connection_id": connection_id, "text": "Hello"})
    [sent] = office.credentials.list_messages(connection_id)
    assert (sent.text, sent.direction) == ("Hello", "Outgoing")
    assert sent.type_name == "BasicMessageRecord"
    read = office.credentials.get_message(sent.id)
    assert (read.text, read.timestamp) == ("Hello", sent.sent_time)


REQUEST = {
    "name": "Licence",
    "version": "1.0",
    "requested_attributes": {"Name": {
        "name": "name", "restrictions": [{"cred_def_id": "c", "schema_name": "n"}],
    }},
    "requested_predicates": {"Old": {"name": "year", "p_type": "<=", "p_value": 2020}},
}  # fmt: skip


def test_a_definition_of_this_client_is_kept_read_and_sent(office):
    wallet_id, connection_id, _ = hold(office)
    made = office.credentials.create_verification_definition(REQUEST)
    read = office.credentials.get_verification_definition(made.id).proof_request
    [restriction] = read.requested_attributes["Name"].restrictions
    assert (restriction.cred_def_id, restriction.schema_name) == ("c", "n")
    assert read.requested_predicates["Old"].p_value == 2020
    asked = {"verification_definition_id": made.id, "connection_id": connection_id}
    sent = office.credentials.create_verification(asked)
    assert sent.definition_id == made.id
    [seen] = office.wallet.list_verifications(wallet_id)
    assert seen.policy.predicates[0].predicate_value == 2020
    office.credentials.delete_verification_definition(made.id)
    assert office.credentials.list_verification_definitions() == []


def test_a_credential_in_a_state_that_this_client_does_not_know_is_listed(office):
    wallet_id, connection_id, mine = hold(office)
    wallet = Wallet.objects.get(wallet_id=wallet_id)
    connection = wallet.connections.get(connection_id=mine)
    proposals.propose(connection, {"schemaName": "Licence"})
    for listed in (
        office.wallet.list_credentials(wallet_id),
        office.credentials.list_credentials(connection_id=connection_id),
    ):
        [one] = listed
        assert (one.state, one.definition_id, one.values) == ("Proposed", "", None)


def test_a_proposal_is_answered(office):
    wallet_id, connection_id, mine = hold(office)
    named = {"policy_name": "Name", "attribute_names": ["name"]}
    policy = {"name": "P", "version": "1.0", "attributes": [named]}
    proposed = office.wallet.propose_verification(wallet_id, mine, policy)
    assert proposed.proposal.proposed_attributes[0].referent == "Name"
    [seen] = office.credentials.list_verifications()
    asked = office.credentials.send_verification_from_proposal(
        connection_id, seen.verification_id
    )
    assert (asked.verification_id, asked.state) == (seen.verification_id, "Requested")
    shown = office.wallet.get_verification(wallet_id, proposed.verification_id)
    assert shown.state == "Requested"
