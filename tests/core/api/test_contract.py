"""The contract of the original clients: all operations and their prefixes.

Made from `contract.json` (contract.py says where it lies). Each answer has the
schema's members in the schema's types, or leaves them out for a reason that stands
here.
"""

import copy
from urllib.parse import quote

import pytest
from django.urls import resolve

from credentials.models import Credential
from tests.core.api import contract
from tests.core.api.contract_calls import given
from tests.support.people import ApiError

CONTRACT = contract.read()
OPERATIONS = [contract.operation(row) for row in CONTRACT["operations"]]
NEVER_SHOWN = (  # why, by which clients, of which schema, what
    ("The local network has no file of genesis transactions.",
     "credentials provider", "NetworkContract",
     "genesisTransactions poolProtocolVersion"),
    ("The local network has no agreement of transaction authors.",
     "credentials", "NetworkTxnAgreementContract", "text version acceptanceMethods"),
    ("So nobody has accepted it.", "credentials", "IssuerStatusContract",
     "acceptanceText acceptanceVersion acceptanceDigest acceptanceTime"),
    ("A seed is never shown: with it anybody is the issuer.",
     "credentials provider", "TenantExtendedInformationContract",
     "issuerKeyGenerationSeed agentKeyGenerationSeed"),
    ("Nobody is sent an invoice.", "provider", "UsageContract", "invoiceId"),
    ("No operation takes one, and no source says what it holds.",
     "credentials wallet", "CredentialContract", "correlationId"),
    ("Registries follow one another: there is no greatest number of credentials.",
     "credentials", "CredentialDefinitionContract", "maxCredentialCount"),
    ("A hosted wallet has no picture; another agent's is shown.",
     "credentials", "ConnectionContract", "imageUrl"),
    ("The link is the issuer's: who has taken the offer needs none.",
     "wallet", "CredentialContract", "offerData offerUrl"),
    ("The link and the stored policy are the verifier's.",
     "wallet", "VerificationContract",
     "verificationRequestData verificationRequestUrl definitionId"),
    ("A policy of a hosted holder holds no values; another agent's are shown.",
     "credentials wallet", "ProposedAttribute", "value mimeType"),
    ("One time for the whole request; it stands there.",
     "credentials", "ProofAttributeInfo", "nonRevoked non_revoked"),
    ("One time for the whole request; and a predicate is about one name.",
     "credentials", "ProofPredicateInfo", "nonRevoked non_revoked names"),
    ("Each request gets its own.", "credentials", "ProofRequest", "nonce"),
)  # fmt: skip
LATER_CLIENTS = ("/credentials/v1/", "/wallet/v1/", "/management/v1/", "/provider/v1/")
HEALTH = ("/health", "/")


@pytest.fixture
def answers(world):
    """The answers by path, by the operation's name, from one world."""
    Credential.objects.filter(state="Proposed").delete()  # the clients know no such
    return {one.name: dict(answers_of(one, world)) for one in OPERATIONS}


def answers_of(operation, world):
    """By path. What is read is made once, and what is written before each write."""
    made = None
    for path in paths_to_call(operation):
        if operation.method != "GET" or not made:
            made = prepared(operation, world)
        yield path, call(operation, path, made, world)


# What the interface leaves open is answered where the original clients write no path.
BARE = ("/api/", "/credentials/{", "/messages", "/webhooks/")
ANSWERED = {
    "credentials PUT /credentials/{credentialId}",
    "credentials POST /messages",
    "credentials PUT /webhooks/{webhookId}/enable",
    "credentials PUT /webhooks/{webhookId}/disable",
    "wallet POST /api/{walletId}/credentials/{credentialId}",
    "wallet PUT /api/{walletId}/verifications/{verificationId}/autoSelect",
    "wallet PUT /api/{walletId}/verifications/{verificationId}",
    "wallet PUT /api/{walletId}/verifications/fromData/autoSelect",
    "wallet PUT /api/{walletId}/verifications/fromData",
}


def paths_to_call(operation):
    """All of a read; the later clients' of a write, which costs more.

    Both clients' where the interface leaves open whether it is answered.
    """
    paths = operation.paths
    if operation.method == "GET":
        return paths
    assert len({resolve(path).func for path in paths}) == 1, "one view for all"
    return {paths[-1]} if operation.answer else {paths[0], paths[-1]}


def prepared(operation, world):
    try:
        return given(operation.client, f"{operation.method} {operation.path}", world)
    except ApiError as error:
        error.add_note(f"while preparing {operation.name}")
        raise


def call(operation, path, made, world):
    owner = world.provider if operation.client == "provider" else world.faber
    caller = made.caller or owner
    ids = {name: quote(value, safe="") for name, value in made.ids.items()}
    address = path.format(**ids)
    query = f"?{made.query}" if made.query else ""
    return keyed(caller, path).send(
        operation.method.lower(), address + query, made.body, made.form
    )


def keyed(caller, path):
    """Call with the headers that clients of this prefix send.

    Later clients have no subscription key.
    """
    caller = copy.copy(caller)
    caller.prefix = ""
    if path.startswith(LATER_CLIENTS):
        caller.headers = {"Authorization": caller.headers["Authorization"]}
    return caller


def judge_of(operation):
    return contract.Judge(CONTRACT["schemas"][operation.client])


def test_the_contract_is_kept(answers, subtests):
    """One test, because all these calls take seconds."""
    for operation in OPERATIONS:
        with subtests.test(operation.name):
            assert_as_the_contract_says(operation, answers[operation.name])
    with subtests.test("no operation is left out"):
        assert_none_is_left_out(answers)
    with subtests.test("every field is shown, or left out for a reason"):
        assert_every_field_is_shown_or_named(answers)


def assert_as_the_contract_says(operation, responses):
    judge = judge_of(operation)
    for path, response in responses.items():
        assert response.status_code == 200, f"{path}: {response.content}"
        if operation.path in HEALTH:
            assert response.content == b"Healthy"
            assert response["Content-Type"] == "text/plain"
        elif operation.answer is None:
            is_answered = operation.name in ANSWERED and path.startswith(BARE)
            assert bool(response.content) == is_answered, path
        else:
            assert response["Content-Type"] == "application/json", path
            judge.judge(operation.answer, response.json(), path)
    assert judge.wrong == []


def assert_none_is_left_out(answers):
    assert len(OPERATIONS) == 101
    assert not [one.name for one in OPERATIONS if not answers[one.name]]
    for one in OPERATIONS:
        assert set(one.known_paths) <= set(one.paths)


def assert_every_field_is_shown_or_named(answers):
    known, shown = set(), set()
    for one in filter(lambda one: one.answer, OPERATIONS):
        judge = judge_of(one)
        for response in answers[one.name].values():
            judge.judge(one.answer, response.json(), one.name)
        known |= {(one.client, *field) for field in judge.fields_of(one.answer)}
        shown |= {(one.client, *field) for field in judge.shown}
    assert known - shown == {
        (client, schema, field)
        for _, clients, schema, fields in NEVER_SHOWN
        for client in clients.split()
        for field in fields.split()
    }
