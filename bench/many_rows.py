"""Make many organizations, connections and credentials by a few statements.

All rows are copies of those of one real cycle, with ids of their own. Sealed columns
are copied too: they have the real size, and nobody opens them. Every reference is to a
row that exists. Half of the objects belong to the organization that is measured.
"""

from django.db import connection
from django.utils import timezone

from connections.messaging.models import InboundMessage, OutboundMessage
from connections.models import Connection
from credentials.models import Credential
from tenants.models import ApiKey, DataKey, IdempotencyKey, Tenant
from verifications.models import Verification
from wallets.models import Key, Wallet
from webhooks.models import Attempt, Delivery, Event, Webhook

DUE = 50  # rows of each queue
# Ids of organizations, and of the two sides of each connection. Number 0 is measured.
NUMBERED = """
CREATE TABLE bench_org AS SELECT n, uuidv7() AS tenant, uuidv7() AS wallet
FROM generate_series(1, {organizations} - 1) n;
INSERT INTO bench_org VALUES (0, '{tenant}', '{wallet}');
CREATE TABLE bench_pair AS
SELECT p.n, o.tenant, o.wallet AS org_wallet, uuidv7() AS wallet,
    uuidv7() AS here, uuidv7() AS there, uuidv7() AS here_key, uuidv7() AS there_key,
    uuidv7() AS issued, uuidv7() AS held, uuidv7() AS asked, uuidv7() AS proved
FROM generate_series(1, {pairs}) AS p(n) JOIN bench_org o
    ON o.n = CASE WHEN p.n % 2 = 0 THEN 0 ELSE p.n / 2 % {organizations} END;
CREATE TABLE bench_object AS
SELECT tenant, unnest(array[here, there, issued, held]) AS object FROM bench_pair;
CREATE TABLE bench_due AS SELECT n, uuidv7() AS due FROM generate_series(1, {due}) n;
ANALYZE bench_org; ANALYZE bench_pair; ANALYZE bench_object
"""
NEW_ID = "uuidv7()"
# A million credentials are not issued on one day: the statistics count what changed
# since yesterday, which is the same in both databases.
A_MONTH_AGO = dict.fromkeys(("created_at", "updated_at"), "now() - interval '30 days'")
RANDOM_DIGEST = "sha256(uuidv7()::text::bytea)"
OTHERS = "bench_org WHERE n > 0"


def verkey_sql(key):
    """SQL of a public key for the key with this id.

    It is base58 of 32 bytes: no digit 0, and 43 characters, of which the first is the
    highest.
    """
    digest = f"encode(sha256({key}::text::bytea), 'hex')"
    return f"'z' || translate(left({digest}, 42), '0', 'g')"


def fill_tables(caller, rows, organizations):
    """Make as many connections and credentials, and half as many wallets."""
    tenant = caller.tenant
    execute_statements(
        "SET statement_timeout = 0; SET session_replication_role = replica"
    )
    wallet = tenant.wallets.get(is_organization=True).pk
    numbers = {"tenant": tenant.pk, "wallet": wallet, "organizations": organizations}
    execute_statements(NUMBERED.format(**numbers, pairs=rows // 2, due=DUE))
    make_queue_rows(tenant)
    fill_organizations(tenant)
    fill_pairs()
    fill_exchanges(Credential, "bench_pair", issuer="issued", holder="held")
    # Fewer of these, as each needs 25 kB of the disk.
    some = "bench_pair WHERE n % 10 = 0"
    fill_exchanges(Verification, some, verifier="asked", prover="proved")
    fill_events()
    fill_queues()
    execute_statements("DROP TABLE bench_org, bench_pair, bench_object, bench_due")
    execute_statements("RESET session_replication_role; RESET statement_timeout")
    execute_statements("VACUUM (ANALYZE)")


def make_queue_rows(tenant):
    """Store one finished row of each queue that hosted parties alone do not use."""
    key = Key.objects.filter(tenant=tenant).first()
    named = {"tenant": tenant, "type": "basicmessage/1.0/message", "status": "done"}
    OutboundMessage.objects.create(
        my_key=key, recipient_key="theirs", is_hosted=False, thread_id="", **named
    )
    InboundMessage.objects.create(recipient_key=key.verkey, message_id="", **named)
    IdempotencyKey.objects.create(
        tenant=tenant,
        key="first",
        operation="POST /connections",
        fingerprint=b"0" * 32,
    )
    delivery = Delivery.objects.order_by("pk").first()
    Delivery.objects.update(status="done", finished_at=timezone.now())
    Attempt.objects.create(
        delivery=delivery, number=1, started_at=timezone.now(), duration_ms=1
    )


def fill_organizations(tenant):
    named = {"name": "'Organization ' || n"}
    copy_row(Tenant, tenant.pk, OTHERS, id="tenant", public_id="tenant", **named)
    owned = {"id": NEW_ID, "tenant_id": "bench_org.tenant"}
    copy_row(DataKey, DataKey.objects.get(tenant=tenant).pk, OTHERS, **owned)
    for key in ApiKey.objects.filter(tenant=tenant):
        digests = {"digest": RANDOM_DIGEST, "sha256": RANDOM_DIGEST}
        copy_row(ApiKey, key.pk, OTHERS, **digests, **owned)
    for webhook in Webhook.objects.filter(tenant=tenant):
        copy_row(Webhook, webhook.pk, OTHERS, **owned)
    mine = tenant.wallets.get(is_organization=True)
    wallet = owned | {"id": "wallet", "wallet_id": "wallet::text"}
    copy_row(Wallet, mine.pk, OTHERS, **wallet)
    key = mine.keys.order_by("pk").first().pk
    wallet = owned | {"wallet_id": "wallet", "verkey": verkey_sql("wallet")}
    copy_row(Key, key, OTHERS, **wallet)


def fill_pairs():
    hosted = Wallet.objects.filter(is_organization=False).first()
    tenant = {"tenant_id": "bench_pair.tenant"}
    wallet = tenant | {"id": "wallet", "wallet_id": "wallet::text"}
    copy_row(Wallet, hosted.pk, "bench_pair", **wallet)
    sides = (("inviter", "here", "there", "org_wallet"),
             ("invitee", "there", "here", "bench_pair.wallet"))  # fmt: skip
    for role, own, other, wallet in sides:
        row = Connection.objects.filter(role=role, state="Connected").first()
        key = {
            "id": f"{own}_key",
            "wallet_id": wallet,
            "verkey": verkey_sql(f"{own}_key"),
        }
        copy_row(Key, row.my_key.pk, "bench_pair", **tenant, **key)
        changed = {"id": own, "connection_id": f"{own}::text", "wallet_id": wallet}
        changed |= {"my_key_id": f"{own}_key", "their_key": verkey_sql(f"{other}_key")}
        changed |= {"thread_id": f"{own}::text", "token": "''"}
        changed |= {"invitation_key_id": "NULL"} | A_MONTH_AGO
        if role == "invitee":
            changed["inviter_key"] = verkey_sql(f"{other}_key")
        copy_row(Connection, row.pk, "bench_pair", **tenant, **changed)


def fill_exchanges(model, source, **sides):
    """sides: the column with the ids by role, the organization's first."""
    columns = (("here", "org_wallet"), ("there", "bench_pair.wallet"))
    for (role, own), (connected, wallet) in zip(sides.items(), columns, strict=True):
        row = model.objects.filter(role=role).first()
        changed = {"id": own, "tenant_id": "bench_pair.tenant", "wallet_id": wallet}
        changed |= {"connection_id": connected, "thread_id": f"{own}::text"}
        changed |= A_MONTH_AGO
        copy_row(model, row.pk, source, **changed)


def fill_events():
    """One event of each object, delivered once to the webhook of its organization."""
    event = Event.objects.filter(deliveries__isnull=False).first()
    changed = {"tenant_id": "bench_object.tenant", "object_key": "object"}
    changed |= {"object_id": "object::text", "sequence": "1", "transaction_id": "3"}
    copy_row(Event, event.pk, "bench_object", id="object", **changed)
    delivery = Attempt.objects.first().delivery
    webhook = "(SELECT webhook.id AS webhook, object FROM bench_object"
    webhook += " JOIN webhooks_webhook webhook ON webhook.tenant_id = tenant) made"
    changed = {"webhook_id": "webhook", "event_id": "object", "object_key": "object"}
    copy_row(Delivery, delivery.pk, webhook, id="object", sequence="1", **changed)
    attempt = Attempt.objects.first().pk
    copy_row(Attempt, attempt, "bench_object", id=NEW_ID, delivery_id="object")


def fill_queues():
    """A finished message of each kind for each object, and some that are due."""
    theirs = {"tenant_id": "bench_object.tenant", "id": NEW_ID}
    sent = OutboundMessage.objects.first().pk
    received = InboundMessage.objects.first().pk
    key = IdempotencyKey.objects.first().pk
    keyed = {"recipient_key": "left(object::text, 44)"}
    copy_row(OutboundMessage, sent, "bench_object", **theirs, **keyed)
    copy_row(InboundMessage, received, "bench_object", **theirs, **keyed)
    copy_row(IdempotencyKey, key, "bench_object", **theirs, key="object::text")
    pending = {"id": NEW_ID, "status": "'pending'"}
    for is_hosted in ("true", "false"):
        # Not one key for both: messages to a key wait for earlier ones.
        changed = {"is_hosted": is_hosted, "recipient_key": f"'{is_hosted} ' || n"}
        changed["endpoint"] = "'https://agent.example'"
        copy_row(OutboundMessage, sent, "bench_due", **pending, **changed)
    copy_row(
        InboundMessage, received, "bench_due", recipient_key="'due ' || n", **pending
    )
    event = Event.objects.filter(deliveries__isnull=False).first().pk
    changed = {"object_key": "due", "object_id": "due::text", "sequence": "1"}
    copy_row(Event, event, "bench_due", id="due", transaction_id="3", **changed)
    delivery = Attempt.objects.first().delivery.pk
    changed = {"event_id": "due", "object_key": "due", "finished_at": "NULL"}
    copy_row(Delivery, delivery, "bench_due", **pending, **changed, sequence="1")


def copy_row(model, pk, source, **changed):
    """Copy one row for each row of `source`. changed: SQL by column."""
    columns = [field.column for field in model._meta.concrete_fields]
    unknown = set(changed) - set(columns)
    if unknown:
        raise RuntimeError(f"{model.__name__} has no {unknown}")
    values = (changed.get(column, f'copied."{column}"') for column in columns)
    table = model._meta.db_table
    names = ", ".join(f'"{column}"' for column in columns)
    name, _, condition = source.partition(" WHERE ")
    execute_statements(
        f"INSERT INTO {table} ({names}) SELECT {', '.join(values)} FROM {name}, "
        f"(SELECT * FROM {table} WHERE id = '{pk}') AS copied"
        + (f" WHERE {condition}" if condition else "")
    )


def execute_statements(statements):
    with connection.cursor() as cursor:
        for statement in statements.split(";"):
            cursor.execute(statement)
