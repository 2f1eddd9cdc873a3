"""Nothing secret is readable in the database, in envelopes, in logs or at the broker.

A story with values that occur nowhere else is run; then everything that was written is
searched.
"""

import base64
import json
import logging
from threading import Barrier

import pytest
import redis
from cryptography.exceptions import InvalidTag
from django.conf import settings as django_settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connection as database
from django.test.utils import CaptureQueriesContext

from connections.didcomm import envelope
from connections.models import Connection, InboundMessage, OutboundMessage
from credentials.models import CredentialDefinition
from tenants import vault
from tenants.models import DataKey
from tests.support import queues
from tests.support.outside_agent import Agent
from tests.support.races import at_once
from verifications.models import VerificationPolicy
from wallets import keys
from wallets.models import Key, Wallet

NAME, CITY = "Zenobia Quillfeather", "Ulthar-upon-Skai"
OTHER_NAME, WANTED = "Balthazar Nightingale", "Unobtainium-4711"
OPEN_NAME, AGE = "Cassiopeia Wintergreen", "1731946208"
WISH, COMMENT = "Thelonius Featherstonehaugh", "Ultramarine-Whisper-88"
WORDS = (NAME, CITY, OTHER_NAME, WANTED, OPEN_NAME, AGE, WISH, COMMENT)


@pytest.fixture
def envelopes(monkeypatch):
    """Every envelope that is packed."""
    packed, pack = [], envelope.pack

    def recorded(*arguments):
        packed.append(pack(*arguments))
        return packed[-1]

    monkeypatch.setattr(envelope, "pack", recorded)
    return packed


@pytest.fixture
def broker():
    client = redis.Redis.from_url(django_settings.REDIS_URL)
    client.flushdb()
    yield client
    client.close()


@pytest.fixture
def story(faber, monkeypatch):
    """Faber and Alice use all features.

    Some messages are still being sent at the end.
    """
    alice, definition = faber.hosts("Alice"), faber.defines("name", "city", "age")
    values = {"name": NAME, "city": CITY, "age": AGE}
    with monkeypatch.context() as by_rows:  # as where a handler has failed
        queues.deliver_by_rows(by_rows)
        alice.receives(faber, definition, values)
    restricted = [{"value": {"attributeName": "city", "attributeValue": CITY}}]
    faber.asks(alice, attributes=[{"policyName": "name", "restrictions": restricted}])
    alice.auto_selects()
    assert alice.newest("verifications")["isValid"] is True
    wanted = [{"value": {"attributeName": "city", "attributeValue": WANTED}}]
    attributes = [{"policyName": "name", "restrictions": wanted}]
    policy = {"name": "Policy", "version": "1.0", "attributes": attributes}
    faber.post("/verificationPolicies", policy)
    wish = {"definitionId": definition["definitionId"], "comment": COMMENT}
    wish["credentialValues"] = values | {"name": WISH}
    alice.put(f"/credentials/propose/{alice.known[faber][1]}", wish)
    by_link = {"definitionId": definition["definitionId"], "credentialValues": values}
    faber.call("post", "/credentials", by_link, **{"Idempotency-Key": "k1"})
    queues.crash_before_the_drain(monkeypatch)
    faber.offers(alice, definition, values | {"name": OPEN_NAME})
    from_outside(faber)
    return faber


def from_outside(faber):
    """A message of another agent that no worker has seen yet."""
    invited = Connection.objects.get(connection_id=faber.invites()["connectionId"])
    agent = Agent()
    request = {"@type": agent.prefix + "connections/1.0/request", "label": OTHER_NAME}
    data = agent.pack(
        request | {"@id": "12345678"}, to=invited.invitation["recipientKeys"][0]
    )
    assert agent.post(data).status_code == 202


def secrets(faber):
    """Everything that must not be found: texts, and bytes."""
    made, [definition] = faber.made, CredentialDefinition.objects.all()
    private = vault.unseal(definition, "private_key")
    seeds = [key.unseal_seed() for key in Key.objects.filter(retired_at=None)]
    texts = [keys.encode_key(seed) for seed in seeds]
    texts += [*WORDS, made.access_token, made.subscription_key, made.provider_key]
    texts += [wallet.unseal_link_secret() for wallet in Wallet.objects.all()]
    texts += [number for number in numbers(private) if len(number) > 30]
    data_keys = [vault.unwrap_data_key(row) for row in DataKey.objects.all()]
    keys_and_seeds = [*seeds, *data_keys, django_settings.MASTER_KEY]
    return [*(text.encode() for text in texts), *keys_and_seeds]


def numbers(value):
    if isinstance(value, dict):
        for inner in value.values():
            yield from numbers(inner)
    elif isinstance(value, str):
        yield value


def forms(secret):
    """A secret as text, in hexadecimal, and in base64 at all three offsets."""
    yield secret
    yield secret.hex().encode()
    for offset in range(3):
        text = base64.b64encode(bytes(offset) + secret + bytes(3))
        end = offset + len(secret)
        # What the secret alone determines:
        inner = text[-(-offset * 8 // 6) : end * 8 // 6]
        yield inner
        yield inner.translate(bytes.maketrans(b"+/", b"-_"))


def secrets_found_in(faber, haystack):
    """The secrets that stand in `haystack` in any form."""
    return found_in(haystack, [(secret, forms(secret)) for secret in secrets(faber)])


def found_in(haystack, known):
    """known: each secret with its forms."""
    return {secret for secret, seen in known if any(one in haystack for one in seen)}


def as_bytes(value):
    if isinstance(value, bytes | memoryview):
        return bytes(value)
    is_text = isinstance(value, str)
    return (value if is_text else json.dumps(value, default=str)).encode()


def everything_stored():
    """`{"table.column": all its values}` of every table of the database."""
    with database.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = 'public'"
        )
        columns = cursor.fetchall()
        stored = {}
        for table, column in columns:
            cursor.execute(f'SELECT "{column}" FROM "{table}"')
            stored[f"{table}.{column}"] = b"\n".join(
                as_bytes(row[0]) for row in cursor.fetchall()
            )
    return stored


def test_no_secret_is_readable_in_any_column_and_the_search_sees_what_is_there(story):
    stored = everything_stored()
    known = [(secret, list(forms(secret))) for secret in secrets(story)]
    for place, data in stored.items():
        assert found_in(data, known) == set(), place
    assert b"Alice" in stored["wallets_wallet.owner_name"]
    assert len(stored["credentials_credential.values"]) > 200
    assert len(stored["tenants_idempotencykey.answer"]) > 1000
    assert Connection.objects.exclude(shared=None).count() == 1
    for queue in (OutboundMessage, InboundMessage):
        with_body = queue.objects.filter(body__isnull=False)
        assert with_body.filter(status="pending").count() == 1
        assert queue.objects.filter(status="done").exists()
        assert not with_body.filter(status="done").exists(), "what is handled has none"
    for secret, _ in known:
        in_base64 = base64.b64encode(b"xx" + secret + b"yy")
        for form in (secret, secret.hex().encode(), in_base64):
            assert secret in found_in(b"<" + form + b">", known)


LOGGERS = (
    "", "agency", "core", "connections", "credentials", "verifications", "django.db.backends"
)  # fmt: skip


def test_no_envelope_log_line_or_message_of_the_broker_shows_a_secret(
    envelopes, broker, caplog, faber, request
):
    for name in LOGGERS:
        caplog.set_level(logging.DEBUG, logger=name)
    with CaptureQueriesContext(database):
        request.getfixturevalue("story")
        messages = [json.loads(message) for message in broker.lrange("celery", 0, -1)]
        packed = list(envelopes)
        queues.worker_catches_up()
    records = [
        f"{one.getMessage()} {one.args} {one.__dict__}" for one in caplog.records
    ]
    lines = "\n".join(records)
    no_envelope_shows_what_is_in_it(faber, packed)
    assert "INSERT INTO" in lines and "POST" in lines
    assert secrets_found_in(faber, lines.encode()) == set()
    assert messages
    for message in messages:
        arguments, keywords, _ = json.loads(base64.b64decode(message["body"]))
        assert (arguments, keywords) == ([], {})
        assert secrets_found_in(faber, json.dumps(message).encode()) == set()


def no_envelope_shows_what_is_in_it(faber, envelopes):
    assert len(envelopes) > 10
    for packed in envelopes:
        header = base64.urlsafe_b64decode(json.loads(packed)["protected"])
        assert secrets_found_in(faber, packed + header) == set()
        assert b"issue-credential" not in packed + header


def test_a_sealed_value_opens_in_its_own_place_only(faber, acme):
    alice, bob = (
        Wallet.objects.get(wallet_id=faber.hosts(n).wallet_id) for n in ("A", "B")
    )
    elsewhere = Wallet.objects.get(tenant=acme.tenant)
    for row in (bob, elsewhere):
        row.link_secret = alice.link_secret
        with pytest.raises(InvalidTag):
            row.unseal_link_secret()
    alice.seed = alice.link_secret
    with pytest.raises(InvalidTag):
        vault.unseal(alice, "seed")


def test_a_sealed_value_of_another_table_does_not_open(faber):
    wallet = Wallet.objects.get(tenant=faber.tenant)
    policy = VerificationPolicy(
        id=wallet.pk, tenant=faber.tenant, body=wallet.link_secret
    )
    policy.link_secret = wallet.link_secret
    with pytest.raises(InvalidTag):
        vault.unseal(policy, "link_secret")


def test_a_sealed_value_with_one_changed_byte_does_not_open(faber):
    wallet = Wallet.objects.get(tenant=faber.tenant)
    sealed = bytes(wallet.link_secret)
    for place in (0, 1, 12, 13, -1):
        changed = bytearray(sealed)
        changed[place] ^= 1
        wallet.link_secret = bytes(changed)
        with pytest.raises(InvalidTag):
            wallet.unseal_link_secret()


def test_a_sealed_value_looks_different_each_time(faber):
    wallet = Wallet.objects.get(tenant=faber.tenant)
    sealed = {bytes(vault.sealed_value(wallet, "link_secret", "7")) for _ in range(2)}
    assert len(sealed) == 2


@pytest.fixture
def another_master_key(settings):
    """It is in place from the moment of the call."""

    def change():
        settings.MASTER_KEY = bytes(32)
        vault.forget_keys()

    yield change
    vault.forget_keys()


def test_the_systems_data_key_is_made_once_whoever_needs_it_first(
    transactional_db, monkeypatch
):
    """As on the first start, when several processes seal at once."""
    DataKey.objects.filter(tenant=None).delete()
    vault.forget_keys()
    together, create = Barrier(4), vault.create_data_key

    def all_at_once(tenant):
        together.wait(9)
        return create(tenant)

    monkeypatch.setattr(vault, "create_data_key", all_at_once)
    found = at_once(*[lambda: vault.data_key.__wrapped__(None)] * 4)
    assert len(set(found)) == 1 and DataKey.objects.filter(tenant=None).count() == 1
    vault.forget_keys()


def test_the_wrong_master_key_gives_one_clear_sentence_and_opens_nothing(
    faber, another_master_key
):
    vault.check_master_key()
    another_master_key()
    with pytest.raises(ImproperlyConfigured) as refused:
        vault.check_master_key()
    said = "AGENCY_MASTER_KEY is not the key this database was"
    assert str(refused.value).startswith(said)
    assert refused.value.__cause__ is None, "without a traceback of the cipher"
    found = checks.run_checks(tags=[checks.Tags.database], databases=["default"])
    assert [error.id for error in found] == ["agency.E001"]
    with pytest.raises(ImproperlyConfigured):
        Wallet.objects.get(tenant=faber.tenant).unseal_link_secret()
