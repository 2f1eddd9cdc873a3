"""The story of the client that openapi-python-client makes, a step after the other.

It runs beside the package `agency_client`, outside of this repository's imports.
"""

import base64
import json
import os
from collections.abc import Callable, Iterable
from http import HTTPStatus
from io import BytesIO
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from agency_client import AuthenticatedClient, models
from agency_client.api.connections import (
    create_connection,
    delete_connection,
    get_connection,
    list_connections,
)
from agency_client.api.credentials import (
    create_bulk,
    create_credential,
    get_bulk_result,
    get_credential,
    issue_credential,
    list_credentials,
    offer_credential_from_proposal,
    revoke_credential,
)
from agency_client.api.definitions import (
    create_credential_definition_for_schema_id,
    create_schema,
    delete_credential_definition,
    list_credential_definitions,
    list_schemas,
)
from agency_client.api.health import health
from agency_client.api.messages import list_messages, send_message
from agency_client.api.organizations import (
    create_key,
    list_keys,
    list_networks,
    list_tenants,
    revoke_key,
    upload_image,
)
from agency_client.api.policies import (
    create_verification_policy,
    delete_verification_policy,
    get_verification_policy,
)
from agency_client.api.verifications import (
    create_verification_from_policy,
    get_verification,
    list_verifications,
    send_verification_from_parameters,
    send_verification_from_policy,
    verify_verification,
)
from agency_client.api.wallet_connections import accept_invitation
from agency_client.api.wallet_credentials import (
    accept_credential,
    accept_credential_offer,
    decline_credential_offer,
    get_wallet_credential,
    list_wallet_credentials,
    propose_credential,
)
from agency_client.api.wallet_messages import send_wallet_message
from agency_client.api.wallet_verifications import (
    get_available_credentials_for_parameters,
    get_available_credentials_for_verification,
    list_wallet_verifications,
    submit_verification,
    submit_verification_auto_select,
    submit_verification_from_data_auto_select,
)
from agency_client.api.wallets import create_wallet, delete_wallet, list_wallets
from agency_client.api.webhooks import (
    create_webhook,
    disable_webhook,
    list_events,
    list_webhook_deliveries,
    remove_webhook,
    send_webhook_example,
    update_webhook,
)
from agency_client.types import UNSET, File, Response, Unset

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
VALUES = {"name": "Rex", "year": "2019"}
KEYS = json.loads(os.environ["AGENCY_ORGANIZATIONS"])["python"]
T = TypeVar("T")


def client_with(access_token: str) -> AuthenticatedClient:
    return AuthenticatedClient(
        base_url=os.environ["AGENCY_URL"],
        token=access_token,
        headers={"X-Service-Subscription-Key": KEYS["subscriptionKey"]},
        raise_on_unexpected_status=True,
    )


CLIENT = client_with(KEYS["accessToken"])


class Story:
    """What earlier steps made, for later ones."""

    wallet_id: str
    connection: models.ConnectionContract
    theirs: models.ConnectionContract
    schema_id: str
    definition_id: str
    credential_id: str
    held_id: str
    policy_id: str
    verification_id: str
    webhook_id: str


Step = Callable[[Story], None]
STEPS: list[Step] = []


def step(function: Step) -> Step:
    STEPS.append(function)
    return function


def given(answer: models.Error | T | None) -> T:
    """The answer of a call that is no error."""
    assert answer is not None and not isinstance(answer, models.Error), answer
    return answer


def done(response: Response[Any]) -> None:
    """Assert the success of a call that answers nothing."""
    assert response.status_code == HTTPStatus.OK, response.parsed


def refused(answer: object, code: models.ErrorCode) -> models.Error:
    assert isinstance(answer, models.Error) and answer.code is code, answer
    return answer


def present(value: T | Unset) -> T:
    assert not isinstance(value, Unset)
    return value


def only(values: Iterable[T]) -> T:
    [value] = values
    return value


def newest_request(story: Story) -> str:
    listed = given(
        list_wallet_verifications.sync(story.wallet_id, client=CLIENT, limit=1)
    )
    assert only(listed).state is models.VerificationState.REQUESTED
    return only(listed).verification_id


def check(*, valid_now: bool = False) -> models.NotedPolicyParameters:
    old_enough = models.PredicatePolicy(
        policy_name="Old enough",
        attribute_name="year",
        predicate_type=models.PredicateType.AT_MOST,
        predicate_value=2020,
    )
    policy = models.NotedPolicyParameters(
        name="Licence check",
        version="1.0",
        attributes=[
            models.AttributePolicy(policy_name="Name", attribute_names=["name"])
        ],
        predicates=[old_enough],
    )
    if valid_now:
        policy.revocation_requirement = models.RevocationRequirement(valid_now=True)
    return policy


@step
def the_service_answers(story: Story) -> None:
    assert health.sync(client=CLIENT) == "Healthy"


@step
def an_organization_reads_itself_and_its_network(story: Story) -> None:
    assert only(given(list_tenants.sync(client=CLIENT))).name == "python"
    networks = given(list_networks.sync(client=CLIENT))
    assert networks[0].network_id == "local"


@step
def a_picture_is_uploaded(story: Story) -> None:
    picture = File(payload=BytesIO(DOT), file_name="dot.png", mime_type="image/png")
    body = models.PictureParameters(uploaded_files=picture)
    address = given(upload_image.sync(client=CLIENT, body=body))
    assert address.startswith(os.environ["AGENCY_URL"]) and address.endswith(".png")


@step
def a_wallet_is_hosted(story: Story) -> None:
    wallet = given(
        create_wallet.sync(
            client=CLIENT, body=models.WalletParameters(owner_name="Rex")
        )
    )
    assert wallet.owner_name == "Rex" and wallet.created_at_utc.tzinfo
    story.wallet_id = wallet.wallet_id


@step
def wallets_are_filtered_by_name_and_sorted(story: Story) -> None:
    given(
        create_wallet.sync(
            client=CLIENT, body=models.WalletParameters(owner_name="Ada")
        )
    )
    by_name = given(
        list_wallets.sync(client=CLIENT, sort=models.SortCreatedNameReference.NAME)
    )
    assert [wallet.name for wallet in by_name] == ["Ada", "Rex"]
    filtered = given(list_wallets.sync(client=CLIENT, name="Rex"))
    assert only(filtered).wallet_id == story.wallet_id


@step
def an_invitation_is_made(story: Story) -> None:
    body = models.ConnectionInvitationParameters(name="Rex")
    story.connection = given(create_connection.sync(client=CLIENT, body=body))
    assert story.connection.state is models.ConnectionState.INVITED
    assert present(story.connection.invitation_url).startswith("http")


@step
def a_hosted_wallet_accepts_it_as_json(story: Story) -> None:
    body = models.AcceptInvitationParameters(present(story.connection.invitation))
    story.theirs = given(
        accept_invitation.sync(story.wallet_id, client=CLIENT, body=body)
    )
    assert story.theirs.state is models.ConnectionState.CONNECTED


@step
def another_accepts_one_as_a_form(story: Story) -> None:
    invited = given(create_connection.sync(client=CLIENT))
    body = models.AcceptInvitationForm(present(invited.invitation_url))
    theirs = given(accept_invitation.sync(story.wallet_id, client=CLIENT, body=body))
    assert theirs.state is models.ConnectionState.CONNECTED


@step
def both_sides_know_the_key_of_the_other(story: Story) -> None:
    connection_id = story.connection.connection_id
    mine = given(get_connection.sync(connection_id, client=CLIENT))
    assert mine.state is models.ConnectionState.CONNECTED
    assert mine.updated_at_utc > mine.created_at_utc
    verkey = present(present(mine.endpoint).verkey)
    assert isinstance(verkey, str) and verkey
    assert mine.my_key == story.theirs.their_key


@step
def a_schema_is_published(story: Story) -> None:
    body = models.SchemaParameters(
        name="Dog licence", version="1.0", attribute_names=["name", "year"]
    )
    story.schema_id = given(create_schema.sync(client=CLIENT, body=body))
    schema = only(given(list_schemas.sync(client=CLIENT, name="Dog licence")))
    assert schema.id == story.schema_id
    assert schema.attribute_names == ["name", "year"]
    body.attribute_names = ["name"]
    other = create_schema.sync(client=CLIENT, body=body)
    error = refused(other, models.ErrorCode.SCHEMA_EXISTS)
    assert present(error.documentation_url).endswith("schema_exists")


@step
def a_definition_with_revocation_is_made(story: Story) -> None:
    made = given(
        create_credential_definition_for_schema_id.sync(
            story.schema_id,
            client=CLIENT,
            body=models.CredentialDefinitionParameters(support_revocation=True),
        )
    )
    assert made.schema_id == story.schema_id and made.supports_revocation
    story.definition_id = made.definition_id
    listed = list_credential_definitions.sync(
        client=CLIENT, schema_id=story.schema_id, supports_revocation=True
    )
    assert only(given(listed)).definition_id == story.definition_id


@step
def a_credential_is_offered(story: Story) -> None:
    body = models.CredentialOfferParameters(
        definition_id=story.definition_id,
        connection_id=story.connection.connection_id,
        credential_values=models.CredentialOfferParametersCredentialValues.from_dict(
            VALUES
        ),
    )
    offered = given(create_credential.sync(client=CLIENT, body=body))
    assert offered.state is models.CredentialState.OFFERED
    story.credential_id = offered.credential_id


@step
def the_wallet_accepts_the_offer(story: Story) -> None:
    held = only(given(list_wallet_credentials.sync(story.wallet_id, client=CLIENT)))
    story.held_id = held.credential_id
    done(
        accept_credential_offer.sync_detailed(
            story.wallet_id, story.held_id, client=CLIENT
        )
    )
    credential = given(get_credential.sync(story.credential_id, client=CLIENT))
    assert credential.state is models.CredentialState.REQUESTED


@step
def it_is_issued_with_other_values(story: Story) -> None:
    values = {"name": "Max", "year": "2018"}
    issued = given(
        issue_credential.sync(
            story.credential_id,
            client=CLIENT,
            body=models.IssueCredentialBody.from_dict(values),
        )
    )
    assert issued.state is models.CredentialState.ISSUED
    assert issued.revocation_index is not None
    held = given(
        get_wallet_credential.sync(story.wallet_id, story.held_id, client=CLIENT)
    )
    assert held.state is models.CredentialState.ISSUED
    assert present(held.values).to_dict() == values
    assert present(held.accepted_at_utc) >= issued.created_at_utc


@step
def what_is_not_offered_any_more_cannot_be_issued(story: Story) -> None:
    again = issue_credential.sync(story.credential_id, client=CLIENT)
    refused(again, models.ErrorCode.WRONG_STATE)


@step
def a_policy_is_stored(story: Story) -> None:
    stored = given(create_verification_policy.sync(client=CLIENT, body=check()))
    story.policy_id = stored.policy_id
    policy = given(get_verification_policy.sync(story.policy_id, client=CLIENT))
    predicate = only(present(policy.predicates))
    assert predicate.predicate_type is models.PredicateType.AT_MOST
    assert predicate.predicate_value == 2020


@step
def a_proof_is_requested(story: Story) -> None:
    requested = given(
        send_verification_from_policy.sync(
            story.policy_id, story.connection.connection_id, client=CLIENT
        )
    )
    assert requested.state is models.VerificationState.REQUESTED
    assert isinstance(requested.is_valid, Unset)
    story.verification_id = requested.verification_id


@step
def the_wallet_answers_with_chosen_credentials(story: Story) -> None:
    request = newest_request(story)
    fitting = given(
        get_available_credentials_for_verification.sync(
            story.wallet_id, request, client=CLIENT
        )
    )
    items = [*fitting.attributes, *fitting.predicates]
    assert [item.policy_name for item in items] == ["Name", "Old enough"]
    chosen = [
        models.SelectionParameters(
            policy_name=item.policy_name,
            credential_id=only(item.available_credentials).credential_id,
        )
        for item in items
    ]
    assert {one.credential_id for one in chosen} == {story.held_id}
    done(
        submit_verification.sync_detailed(
            story.wallet_id, request, client=CLIENT, body=chosen
        )
    )


@step
def the_result_is_valid(story: Story) -> None:
    result = given(get_verification.sync(story.verification_id, client=CLIENT))
    assert result.state is models.VerificationState.ACCEPTED and result.is_valid is True
    name = present(result.proof)["Name"]
    assert name.value == "Max" and name.revealed and not name.self_attested
    assert present(name.attributes).to_dict() == {"name": "Max"}
    assert {one.status for one in present(result.checks)} <= {
        models.CheckStatus.PASS, models.CheckStatus.SKIPPED,
    }  # fmt: skip
    again = given(verify_verification.sync(story.verification_id, client=CLIENT))
    assert again.valid


@step
def the_wallet_chooses_by_itself(story: Story) -> None:
    assert ask_now(story).is_valid is True


def ask_now(story: Story) -> models.VerificationContract:
    """Ask whether the credential is valid now. Return the result."""
    connection_id = story.connection.connection_id
    asked = given(
        send_verification_from_parameters.sync(
            connection_id, client=CLIENT, body=check(valid_now=True)
        )
    )
    done(
        submit_verification_auto_select.sync_detailed(
            story.wallet_id, newest_request(story), client=CLIENT
        )
    )
    return given(get_verification.sync(asked.verification_id, client=CLIENT))


@step
def the_credential_is_revoked(story: Story) -> None:
    done(revoke_credential.sync_detailed(story.credential_id, client=CLIENT))
    credential = given(get_credential.sync(story.credential_id, client=CLIENT))
    assert credential.state is models.CredentialState.REVOKED


@step
def what_was_revoked_proves_nothing(story: Story) -> None:
    result = ask_now(story)
    assert (
        result.state is models.VerificationState.ACCEPTED and result.is_valid is False
    )
    failed = [
        one for one in present(result.checks) if one.status is models.CheckStatus.FAIL
    ]
    assert failed and present(result.causes)[0].advice


@step
def verifications_are_filtered(story: Story) -> None:
    invalid = given(list_verifications.sync(client=CLIENT, is_valid=False))
    assert only(invalid).connection_id == story.connection.connection_id
    accepted = list_verifications.sync(
        client=CLIENT, state=models.VerificationState.ACCEPTED, is_valid=True
    )
    assert len(given(accepted)) == 2


@step
def a_credential_is_taken_by_its_link(story: Story) -> None:
    body = models.CredentialOfferParameters(
        definition_id=story.definition_id,
        automatic_issuance=True,
        credential_values=models.CredentialOfferParametersCredentialValues.from_dict(
            VALUES
        ),
    )
    offered = given(create_credential.sync(client=CLIENT, body=body))
    assert isinstance(offered.connection_id, Unset)
    taken = given(
        accept_credential.sync(
            story.wallet_id,
            client=CLIENT,
            body=models.CredentialDataParameters(present(offered.offer_url)),
        )
    )
    assert taken.state is models.CredentialState.ISSUED
    story.held_id = taken.credential_id


@step
def a_proof_is_given_by_a_link(story: Story) -> None:
    asked = given(create_verification_from_policy.sync(story.policy_id, client=CLIENT))
    data = present(asked.verification_request_data)
    fitting = given(
        get_available_credentials_for_parameters.sync(
            story.wallet_id,
            client=CLIENT,
            body=models.VerificationDataParameters(data),
        )
    )
    held = [one.credential_id for one in fitting.attributes[0].available_credentials]
    assert story.held_id in held
    done(
        submit_verification_from_data_auto_select.sync_detailed(
            story.wallet_id, client=CLIENT, body=models.VerificationDataForm(data)
        )
    )
    result = given(get_verification.sync(asked.verification_id, client=CLIENT))
    assert result.is_valid is True


@step
def a_wallet_proposes_and_declines(story: Story) -> None:
    proposed = given(
        propose_credential.sync(
            story.wallet_id,
            story.theirs.connection_id,
            client=CLIENT,
            body=models.CredentialProposalParameters(
                definition_id=story.definition_id, comment="Please"
            ),
        )
    )
    assert proposed.state is models.CredentialState.PROPOSED
    seen = proposal(story)
    assert present(seen.proposal).comment == "Please"
    values = models.CredentialAnswerParametersCredentialValues.from_dict(VALUES)
    offered = offer_credential_from_proposal.sync(
        seen.credential_id,
        client=CLIENT,
        body=models.CredentialAnswerParameters(credential_values=values),
    )
    assert given(offered).state is models.CredentialState.OFFERED
    done(
        decline_credential_offer.sync_detailed(
            story.wallet_id,
            proposed.credential_id,
            client=CLIENT,
            body=models.DeclineParameters(reason="not_now"),
        )
    )
    declined = given(get_credential.sync(seen.credential_id, client=CLIENT))
    assert (
        declined.state is models.CredentialState.REJECTED
        and declined.problem == "not_now"
    )


def proposal(story: Story) -> models.CredentialContract:
    listed = list_credentials.sync(
        client=CLIENT,
        state=models.CredentialState.PROPOSED,
        role=models.IssuerOrHolder.ISSUER,
    )
    return only(given(listed))


@step
def messages_go_both_ways(story: Story) -> None:
    ours = models.BasicMessageParameters(story.connection.connection_id, "Sit!")
    sent = given(send_message.sync(client=CLIENT, body=ours))
    assert sent.direction is models.MessageDirection.OUTGOING
    theirs = models.BasicMessageParameters(story.theirs.connection_id, "Woof")
    done(send_wallet_message.sync_detailed(story.wallet_id, client=CLIENT, body=theirs))
    listed = given(
        list_messages.sync(
            story.connection.connection_id,
            client=CLIENT,
            sort=models.SortCreated.CREATED_AT,
        )
    )
    assert [one.text for one in listed] == ["Sit!", "Woof"]
    assert listed[1].direction is models.MessageDirection.INCOMING


@step
def a_webhook_is_registered(story: Story) -> None:
    body = models.WebhookParameters(
        url="http://127.0.0.1:1024/events",
        message_types=[models.MessageType.CREDENTIAL_ISSUED],
    )
    made = given(create_webhook.sync(client=CLIENT, body=body))
    assert made.message_types == [models.MessageType.CREDENTIAL_ISSUED] and made.secret
    story.webhook_id = made.id
    changed = update_webhook.sync(
        story.webhook_id,
        client=CLIENT,
        body=models.PatchedWebhookOptions(
            message_types=[models.MessageType.VERIFICATION]
        ),
    )
    assert given(changed).message_types == [models.MessageType.VERIFICATION]


@step
def an_example_is_delivered(story: Story) -> None:
    body = models.ExampleParameters(message_type=models.MessageType.VERIFICATION)
    sent = given(send_webhook_example.sync(story.webhook_id, client=CLIENT, body=body))
    listed = given(list_webhook_deliveries.sync(story.webhook_id, client=CLIENT))
    assert only(listed).delivery_id == sent.delivery_id
    stopped = given(disable_webhook.sync(story.webhook_id, client=CLIENT))
    assert stopped.enabled is False
    done(remove_webhook.sync_detailed(story.webhook_id, client=CLIENT))


@step
def the_feed_of_events_goes_on_after_a_cursor(story: Story) -> None:
    first, second = given(list_events.sync(client=CLIENT, limit=2))
    assert second.sequence >= 1 and second.message_type in models.MessageType
    after = given(list_events.sync(client=CLIENT, limit=1, after=first.cursor))
    assert only(after).event_id == second.event_id


@step
def a_key_may_do_what_its_scopes_say(story: Story) -> None:
    body = models.KeyParameters(name="Desk", scopes=[models.Scopes.READ], days=1)
    made = given(create_key.sync(client=CLIENT, body=body))
    assert made.scopes == [models.Scopes.READ] and made.expires_at_utc
    desk = client_with(made.secret)
    assert given(list_schemas.sync(client=desk))
    refused(create_connection.sync(client=desk), models.ErrorCode.MISSING_SCOPE)
    done(revoke_key.sync_detailed(made.key_id, client=CLIENT))
    refused(list_schemas.sync(client=desk), models.ErrorCode.UNAUTHORIZED)
    assert made.key_id not in {
        key.key_id for key in given(list_keys.sync(client=CLIENT))
    }


@step
def a_list_is_read_page_by_page(story: Story) -> None:
    for name in ("Cleo", "Bob"):
        body = models.ConnectionInvitationParameters(name=name)
        given(create_connection.sync(client=CLIENT, body=body))
    invited: list[str] = []
    cursor: str | Unset = UNSET
    while True:
        page = list_connections.sync_detailed(
            client=CLIENT,
            state=models.ConnectionState.INVITED,
            sort=models.SortCreatedUpdatedNameReference.NAME,
            limit=1,
            cursor=cursor,
        )
        invited += [present(one.name) for one in given(page.parsed)]
        if "Link" not in page.headers:
            break
        cursor = next_cursor(page.headers["Link"])
    assert invited == ["Bob", "Cleo"]


def next_cursor(link: str) -> str:
    address = link[link.index("<") + 1 : link.index(">")]
    return only(parse_qs(urlsplit(address).query)["cursor"])


@step
def many_credentials_are_offered_and_the_result_is_downloaded(story: Story) -> None:
    row = models.BulkRowParameters(
        models.BulkRowParametersCredentialValues.from_dict(VALUES),
        wallet_id=story.wallet_id,
    )
    bulk = given(
        create_bulk.sync(
            client=CLIENT, body=[row, row], definition_id=story.definition_id
        )
    )
    assert bulk.rows == 2 and not bulk.errors
    table = given(get_bulk_result.sync(present(bulk.bulk_id), client=CLIENT))
    assert len(table.splitlines()) == 3


@step
def a_request_is_repeated_without_a_second_effect(story: Story) -> None:
    key = str(uuid4())
    made = [
        given(create_connection.sync(client=CLIENT, idempotency_key=key))
        for _ in range(2)
    ]
    assert made[0].connection_id == made[1].connection_id


@step
def a_wrong_body_is_refused_by_field(story: Story) -> None:
    body = models.SchemaParameters(name="", version="x", attribute_names=[])
    error = refused(
        create_schema.sync(client=CLIENT, body=body), models.ErrorCode.INVALID_REQUEST
    )
    assert "name" in present(error.errors).to_dict()
    assert present(error.request_id)


@step
def what_is_not_there_is_not_found(story: Story) -> None:
    unknown = get_credential.sync(str(uuid4()), client=CLIENT)
    refused(unknown, models.ErrorCode.NOT_FOUND)


@step
def what_was_made_is_deleted(story: Story) -> None:
    connection_id = story.connection.connection_id
    done(delete_connection.sync_detailed(connection_id, client=CLIENT))
    refused(
        get_connection.sync(connection_id, client=CLIENT), models.ErrorCode.NOT_FOUND
    )
    done(delete_verification_policy.sync_detailed(story.policy_id, client=CLIENT))
    definition = story.definition_id
    done(delete_credential_definition.sync_detailed(definition, client=CLIENT))
    done(delete_wallet.sync_detailed(story.wallet_id, client=CLIENT))
    left = given(list_wallets.sync(client=CLIENT))
    assert [wallet.name for wallet in left] == ["Ada"]


def main() -> None:
    assert len(STEPS) >= 31
    story = Story()
    for one in STEPS:
        one(story)
        print(f"✔ python: {one.__name__.replace('_', ' ')}", flush=True)


if __name__ == "__main__":
    main()
