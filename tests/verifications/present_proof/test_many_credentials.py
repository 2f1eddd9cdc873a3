"""A wallet with many credentials answers with as few of them as it needs."""

from django.db import connection

from credentials.models import Credential
from tests.fixtures import Ledger
from tests.support.presentations import attribute, predicate
from tests.support.steps import step
from verifications.models import Verification
from verifications.present_proof.candidates import FIRST_BATCH, build_candidates

NAMED, OF_AGE = [attribute("name")], predicate("age", ">=", 18)
# Copies with later ids. They cannot be decrypted, as each value is bound to its row.
COPY_CREDENTIAL = """
INSERT INTO credentials_credential ({columns})
SELECT {values} FROM credentials_credential, generate_series(1, 10)
WHERE role = 'holder'
"""


@step
def alice(faber):
    return faber.hosts("Alice")


def copy_credentials():
    columns = [field.column for field in Credential._meta.concrete_fields]
    later = {
        "id": "('ffffffff' || substr(gen_random_uuid()::text, 9))::uuid",
        "thread_id": "gen_random_uuid()::text",
    }
    named = ", ".join(f'"{column}"' for column in columns)
    values = ", ".join(later.get(column, f'"{column}"') for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(COPY_CREDENTIAL.format(columns=named, values=values))
        assert cursor.rowcount == 10 * FIRST_BATCH


def is_found_valid(faber, asked):
    return faber.get(f"/verifications/{asked['verificationId']}")["isValid"]


@step
def definition(faber):
    return faber.defines("name", "age")


@step
def first_batch(faber, alice, definition):
    for _ in range(FIRST_BATCH):
        alice.receives(faber, definition, {"name": "Alice", "age": "17"})


def test_only_the_first_batch_is_decrypted_if_it_fits(faber, alice, first_batch):
    held = alice.newest("credentials")["credentialId"]
    copy_credentials()
    seventeen = predicate("age", ">=", 17)
    asked = faber.asks(alice, attributes=NAMED, predicates=[seventeen])
    alice.auto_selects()
    assert is_found_valid(faber, asked)
    asked = faber.asks(alice, attributes=NAMED)
    received = Verification.objects.filter(role="prover").latest("pk").pk
    chosen = [{"policyName": "name", "credentialId": held}]
    alice.put(f"/verifications/{received}", chosen)
    assert is_found_valid(faber, asked)


def test_the_one_that_fits_is_found_behind_the_first_batch(
    faber, alice, definition, first_batch
):
    alice.receives(faber, definition, {"name": "Alice", "age": "18"})
    asked = faber.asks(alice, attributes=NAMED, predicates=[OF_AGE])
    alice.auto_selects()
    assert is_found_valid(faber, asked)


def test_a_card_that_the_ledger_does_not_know_is_no_candidate():
    held = Credential(schema_id="gone", definition_id="gone")
    assert build_candidates([held], Ledger()) == []
