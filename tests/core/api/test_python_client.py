"""The published Python client, unchanged, runs the whole story against a live server.

Every step follows the one before at once: what it needs is finished when a call
returns.
"""

import pytest

from tests.core.api.test_python_client_offices import Office

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:msrest"),
]
NAME = {"policy_name": "Name", "attribute_names": ["name"], "restrictions": None}
OLD_ENOUGH = {
    "policy_name": "Old enough", "attribute_name": "year", "predicate_type": "<=",
    "predicate_value": 2020,
}  # fmt: skip
POLICY = {"name": "Licence check", "version": "1.0"}
POLICY |= {"attributes": [NAME], "predicates": [OLD_ENOUGH]}
LICENCE = {"name": "Dog licence", "version": "1.0", "attributes": ["name", "year"]}
LICENCE["support_revocation"] = True


class Clients(Office):
    """The clients of one organization, in the steps of its story."""

    def hold(self, year):
        """Return (wallet id, issuer's connection id) of a wallet with a credential."""
        wallet_id, connection_id = self.meet()
        self.issue(wallet_id, connection_id, year)
        return wallet_id, connection_id

    def host(self):
        return self.wallet.create_wallet({"owner_name": "Rex"}).wallet_id

    def meet(self):
        wallet_id = self.host()
        invited = self.credentials.create_connection({})
        accepted = self.wallet.accept_invitation(wallet_id, invited.invitation)
        assert accepted.state == "Connected"
        assert isinstance(accepted.endpoint.verkey, list)
        return wallet_id, invited.connection_id

    def offer(self, year="2019", **more):
        definition = self.credentials.create_credential_definition(LICENCE)
        more["credential_values"] = {"name": "Rex", "year": year}
        offer = {"definition_id": definition.definition_id} | more
        return self.credentials.create_credential(offer)

    def issue(self, wallet_id, connection_id, year):
        offered = self.offer(year, connection_id=connection_id).credential_id
        [seen] = self.wallet.list_credentials(wallet_id)
        self.wallet.accept_credential_offer(wallet_id, seen.credential_id)
        assert self.state_of(offered) == "Requested"
        self.credentials.issue_credential(offered)
        issued = self.wallet.get_credential(wallet_id, seen.credential_id)
        assert issued.state == "Issued"
        assert issued.values == {"name": "Rex", "year": year}

    def state_of(self, credential_id, wallet_id=None):
        """The state that the issuer sees, or the wallet."""
        if wallet_id:
            return self.wallet.get_credential(wallet_id, credential_id).state
        return self.credentials.get_credential(credential_id).state

    def verify(self, wallet_id, connection_id, policy=POLICY):
        stored = self.credentials.create_verification_policy(policy).policy_id
        asked = self.credentials.send_verification_from_policy(connection_id, stored)
        seen = self.wallet.list_verifications(wallet_id)[0]
        self.wallet.submit_verification_auto_select(wallet_id, seen.verification_id)
        return self.credentials.get_verification(asked.verification_id)


@pytest.fixture
def clients(live_server, stored_keys):
    return Clients(live_server.url)


def test_it_walks_from_wallet_to_a_valid_proof(clients):
    holder = clients.hold("2019")
    result = clients.verify(*holder)
    assert (result.state, result.is_valid) == ("Accepted", True)
    assert result.proof["Name"].value == "Rex"
    [shown] = clients.wallet.list_verifications(holder[0])
    assert (shown.is_valid, shown.proof["Name"].value) == (True, "Rex")
    [listed] = clients.credentials.list_verifications(connection_id=holder[1])
    for one in (result, shown, listed):
        assert one.proof["Name"].attributes == {"name": "Rex"}
        assert one.proof["Old enough"].attributes is None
    assert result.policy.name == "Licence check"
    assert result.verified_at_utc is not None


def test_a_predicate_that_does_not_hold_gives_false(clients):
    result = clients.verify(*clients.hold("2021"))
    assert (result.state, result.is_valid) == ("Accepted", False)


@pytest.mark.parametrize("form", ["url", "data"])
def test_an_offer_and_a_request_are_taken_by_link_and_by_data(clients, form):
    wallet_id = clients.host()
    offered = clients.offer(automatic_issuance=True)
    given = getattr(offered, f"offer_{form}")
    assert clients.wallet.accept_credential(wallet_id, given).state == "Issued"
    assert clients.state_of(offered.credential_id) == "Issued"
    asked = clients.credentials.create_verification_from_parameters(POLICY)
    given = getattr(asked, f"verification_request_{form}")
    clients.wallet.submit_verification_from_data_auto_select(wallet_id, given)
    result = clients.credentials.get_verification(asked.verification_id)
    assert (result.state, result.is_valid) == ("Accepted", True)


def test_an_offer_by_link_is_issued_after_it_was_taken(clients):
    wallet_id, offered = clients.host(), clients.offer()
    taken = clients.wallet.accept_credential(wallet_id, offered.offer_url)
    assert taken.state == "Requested"
    clients.credentials.issue_credential(offered.credential_id)
    assert clients.state_of(taken.credential_id, wallet_id) == "Issued"


def test_a_revoked_credential_is_revoked_on_both_sides_and_proves_nothing(clients):
    holder = clients.hold("2019")
    [held] = clients.wallet.list_credentials(holder[0])
    now = POLICY | {"revocation_requirement": {"valid_now": True}}
    assert clients.verify(*holder, now).is_valid is True
    [issued] = clients.credentials.list_credentials(connection_id=holder[1])
    clients.credentials.revoke_credential(issued.credential_id)
    assert clients.state_of(issued.credential_id) == "Revoked"
    assert clients.state_of(held.credential_id, holder[0]) == "Revoked"
    result = clients.verify(*holder, now)
    assert (result.state, result.is_valid) == ("Accepted", False)


def test_it_reads_lists_and_chooses_credentials(clients):
    wallet_id, connection_id = clients.hold("2019")
    clients.credentials.send_verification_from_parameters(connection_id, POLICY)
    [seen] = clients.wallet.list_verifications(wallet_id)
    fitting = clients.wallet.get_available_credentials_for_verification(
        wallet_id, seen.verification_id
    )
    [held] = clients.wallet.list_credentials(wallet_id)
    assert fitting[0].available_credentials[0].credential_id == held.credential_id
    chosen = {"credential_id": held.credential_id}
    chosen = [{"policy_name": item.policy_name} | chosen for item in fitting]
    clients.wallet.submit_verification(wallet_id, seen.verification_id, chosen)
    [result] = clients.credentials.list_verifications(connection_id=connection_id)
    assert result.is_valid is True
    cat = {"name": "Cat licence", "version": "1.0", "attribute_names": ["name"]}
    schema_id = clients.credentials.create_schema(cat)
    assert schema_id.endswith(":2:Cat licence:1.0")
    assert schema_id in [schema.id for schema in clients.credentials.list_schemas()]
