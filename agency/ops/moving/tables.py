"""Which rows move with an organization, and with which changes.

Every table of the database is either in PARTS or in LEFT_BEHIND; a test holds that.
"""

from typing import NamedTuple

from django.apps import apps
from django.db import models

from tenants.lifecycle.freezing import HELD_DAYS
from tenants.models.organizations import PICTURE

OF_TENANT = "tenant_id = %(tenant)s"
OF_PROVIDER = "provider_id = %(provider)s"
EVENTS = f"SELECT id FROM webhooks_event WHERE {OF_TENANT}"
WALLETS = f"SELECT id FROM wallets_wallet WHERE {OF_TENANT}"
IS_FOR_LIVE_KEY = (
    "EXISTS (SELECT FROM wallets_key AS key WHERE key.verkey = recipient_key "
    "AND key.tenant_id = %(tenant)s AND key.retired_at IS NULL)"
)
DELETED_CONNECTIONS = (
    f"SELECT id FROM connections_connection WHERE {OF_TENANT} "
    "AND deleted_at IS NOT NULL"
)
# The DIDs of its own wallet, and its did:webvh. Wallets are there first in an import.
DIDS = " UNION ".join(
    [
        f"SELECT {column} FROM wallets_wallet WHERE {OF_TENANT} AND is_organization "
        f"AND {column} <> ''"
        for column in ("did", "webvh_did")
    ]
    + [f"SELECT did FROM credentials_webvhdid WHERE {OF_TENANT}"]
)
OF_OWN_LOG = f"did_id IN (SELECT id FROM credentials_webvhdid WHERE {OF_TENANT})"


def did_in(column: str) -> str:
    """SQL: the DID with which a public id begins: one of did:webvh, or of Indy."""
    return (
        f"CASE WHEN starts_with({column}, 'did:webvh:') "
        f"THEN split_part({column}, '/', 1) ELSE split_part({column}, ':', 1) END"
    )


def is_own_id(column: str) -> str:
    """SQL: whether a public id begins with the organization's DID, which gave it."""
    return f"{did_in(column)} IN ({DIDS})"


def may_be_own_id(column: str) -> str:
    """SQL: is_own_id(), or an id of a did:webvh, whose log comes in the last step.

    Then checks.require_own_webvh() looks at it.
    """
    return f"{is_own_id(column)} OR starts_with({column}, 'did:webvh:')"


IS_OWN_OBJECT = is_own_id("object_id")
# What its wallets hold may come from others, and is proven with their public objects.
IS_NAMED = " OR ".join(
    f"object_id IN (SELECT {column} FROM {table} WHERE {OF_TENANT})"
    for table, column in (
        ("credentials_schema", "schema_id"),
        ("credentials_credential", "schema_id"),
        ("credentials_credential", "definition_id"),
        ("credentials_credential", "revocation_registry_id"),
    )
)

IS_HELD = f"due_at > now() + interval '{HELD_DAYS // 2} days'"
# Of a queue: no worker of the other installation has claimed it ...
UNCLAIMED = {"lease_owner": "NULL", "lease_until": "NULL"}
# ... and it is not held, or held until the import ends.
FREE = UNCLAIMED | {
    "due_at": f"CASE WHEN {IS_HELD} THEN due_at - interval '{HELD_DAYS} days' "
    "ELSE due_at END",
}
HELD = UNCLAIMED | {
    "due_at": f"CASE WHEN {IS_HELD} OR status <> 'pending' THEN due_at "
    f"ELSE due_at + interval '{HELD_DAYS} days' END",
}


# Whoever writes the file could send mails to anybody: holders confirm once more.
NO_ADDRESS = {
    "mail_address": "NULL", "mail_language": "''", "mail_given_at": "NULL",
    "mail_confirmed_at": "NULL", "mail_due_at": "NULL", "mail_sent_at": "NULL",
    "mail_problem": "''",
}  # fmt: skip
# The person is of the installation.
OF_NOBODY = {"made_by_id": "NULL"}


# A list is whole in the file: the import has not to believe what it would differ from.
WHOLE_LIST = """
CASE WHEN changed IS NULL THEN body ELSE (
    SELECT whole.body || jsonb_build_object(
        'timestamp', credentials_statuslist.timestamp,
        'currentAccumulator', credentials_statuslist.accumulator,
        'revocationList', (
            SELECT jsonb_agg(
                bit::integer # get_bit(credentials_statuslist.changed, place::integer - 1)
                ORDER BY place
            ) FROM jsonb_array_elements_text(whole.body -> 'revocationList')
                WITH ORDINALITY AS listed(bit, place)
        )
    ) FROM credentials_statuslist AS whole
    WHERE whole.network_id = credentials_statuslist.network_id
        AND whole.registry_id = credentials_statuslist.registry_id
        AND whole.timestamp = credentials_statuslist.full_at
) END
"""


class Part(NamedTuple):
    """Rows of one table.

    rows: the condition. changes: SQL by column, instead of its value; the import makes
    them again. read: the same, for the export alone. must: what else is true of each
    row, for names that are no foreign keys. ids: columns of text that have the id of a
    row. may_exist: rows with an id or a name that is there already are left out, as
    those that organizations share.
    """

    table: str
    rows: str = OF_TENANT
    changes: dict[str, str] = {}
    must: str = "true"
    ids: tuple[str, ...] = ()
    may_exist: bool = False
    left_out: frozenset[str] = frozenset()
    read: dict[str, str] = {}

    @property
    def columns(self) -> list[str]:
        """The columns that move, in the order of the model."""
        fields = model_of(self.table)._meta.concrete_fields
        names = [str(field.column) for field in fields]
        return [name for name in names if name not in self.left_out]

    @property
    def query(self) -> str:
        """The SELECT of the rows, with the parameters of read_parameters()."""
        changes = self.changes | self.read
        values = ", ".join(changes.get(name, f'"{name}"') for name in self.columns)
        return f"SELECT {values} FROM {self.table} WHERE {self.rows}"


# In one transaction: the organization, hidden.
OPENING = (
    Part(
        "tenants_provider",
        "id = %(provider)s",
        # Whether there are limits is a matter of the installation: its staff lift them.
        {"person_id": "NULL", "has_quotas": "true"},
        may_exist=True,
    ),
    Part(
        "tenants_tenant",
        "id = %(tenant)s",
        {
            "frozen_at": "now()",
            "deleted_at": "now()",
            "imported_at": "now()",
            "deletion_due_at": "NULL",
            "notice_due_at": "NULL",
        },
    ),
)
# In many transactions. Each comes after what it refers to.
BULK = (
    Part("tenants_agreementacceptance"),
    Part("tenants_dailyusage", left_out=frozenset({"id"})),
    # The fingerprint has a key of the installation; without one it is not compared.
    Part(
        "tenants_idempotencykey",
        changes={"fingerprint": "''::bytea"},
        ids=("object_id",),
    ),
    Part(
        "wallets_wallet",
        must="is_organization OR did = '' AND webvh_did = ''",
    ),
    # A retired key has no seed, so nobody can prove that it was his. Its text comes to
    # nothing: else a file could end the peers of others.
    Part(
        "wallets_key",
        changes={
            "verkey": "CASE WHEN retired_at IS NULL THEN verkey ELSE id::text END"
        },
    ),
    # Certificates of the other installation's authority are made anew here.
    Part(
        "wallets_signingkey",
        changes={
            "x5c": "CASE WHEN is_uploaded THEN x5c ELSE '[]'::jsonb END",
            "ends_at": "CASE WHEN is_uploaded THEN ends_at END",
        },
    ),
    Part("wallets_trustanchor"),
    # The digests of addresses have a key of the installation.
    Part(
        "connections_connection",
        changes={"stranger": "CASE WHEN stranger IS NOT NULL THEN id END"},
    ),
    Part("connections_basicmessage"),
    Part(
        "connections_inboundmessage",
        f"{OF_TENANT} AND {IS_FOR_LIVE_KEY}",
        changes=HELD | {"origin": "NULL"},
    ),
    Part("connections_outboundmessage", changes=HELD),
    Part(
        "connections_seenmessage",
        f"key_id IN (SELECT id FROM wallets_key WHERE {OF_TENANT})",
    ),
    Part("holderpages_closedlink"),
    Part("webwallet_personallink", changes=NO_ADDRESS),
    Part("credentials_schema"),
    Part(
        "credentials_credentialdefinition",
        must="(definition_id = id::text AND NOT is_anoncreds OR "
        + may_be_own_id("definition_id")
        + ") AND (twin_of = '' OR "
        + is_own_id("twin_of")
        + ")",
    ),
    Part("credentials_definitionformat"),
    Part("credentials_revocationregistry", must=may_be_own_id("registry_id")),
    Part("credentials_publication", changes=HELD, must=is_own_id("subject")),
    Part("credentials_tokenstatuslist"),
    Part(
        "credentials_credential",
        must="role <> 'issuer' OR revocation_registry_id = '' OR "
        # Verifiers read there whose list it is, and TokenStatusList its number.
        "revocation_registry_id ~ ('/openid/' || %(tenant)s || '/status/[0-9]{1,9}$') "
        "OR " + may_be_own_id("revocation_registry_id"),
    ),
    Part("credentials_grant"),
    Part("credentials_namekey"),
    Part("credentials_namedigests"),
    Part("credentials_bulk", changes=HELD),
    Part("credentials_bulkrow"),
    Part("credentials_mailing", changes=HELD),
    Part("credentials_mailingrow"),
    Part("verifications_verificationpolicy"),
    Part("verifications_kiosk"),
    Part("verifications_verification"),
    Part("verifications_checkdigests"),
    Part("verifications_waitinganswer", changes=HELD),
    Part("sandbox_simulatedholder"),
    Part("sandbox_simulatedanswer", changes=HELD),
    # Before all events that the other installation will write, in the same order.
    Part(
        "webhooks_event",
        changes={"transaction_id": "LEAST(transaction_id - %(newest)s, 0)"},
        must="NOT EXISTS (SELECT FROM webhooks_event AS here WHERE here.object_key = "
        "moved.object_key AND here.tenant_id <> %(tenant)s)",
    ),
    # Not held: until their webhook is there, nobody claims them.
    Part("webhooks_delivery", f"event_id IN ({EVENTS})", FREE),
    Part(
        "webhooks_attempt",
        "delivery_id IN (SELECT id FROM webhooks_delivery "
        f"WHERE event_id IN ({EVENTS}))",
    ),
)
# In the transaction that ends the import: what would work before all is there, and what
# outlives the organization if the import is undone.
CLOSING = (
    Part("tenants_auditentry"),
    Part(
        "tenants_asset",
        OF_PROVIDER,
        may_exist=True,
        must=f"name ~ '^{PICTURE.pattern}$'",
    ),
    Part("tenants_apikey", changes=OF_NOBODY),
    Part("tenants_apikey", OF_PROVIDER, OF_NOBODY, may_exist=True),
    Part(
        "tenants_erasure",
        f"kind = 'wallet' AND object_key IN ({WALLETS}) "
        f"OR kind = 'connection' AND object_key IN ({DELETED_CONNECTIONS})",
        FREE,
    ),
    Part("webhooks_webhook", changes=OF_NOBODY),
    # What they say is signed: checks.require_own_webvh().
    Part("credentials_webvhdid"),
    Part("credentials_webvhresource", OF_OWN_LOG),
    # Last: it locks the networks of rows, on which nobody else publishes meanwhile.
    Part(
        "credentials_publishedobject",
        f"{IS_OWN_OBJECT} OR {IS_NAMED}",
        may_exist=True,
        # So that the numbers of this installation do not come to their end.
        must="sequence BETWEEN 1 AND 1000000000",
    ),
    Part("credentials_didendpoint", f"did IN ({DIDS})", may_exist=True),
    Part(
        "credentials_statuslist",
        is_own_id("registry_id"),
        may_exist=True,
        left_out=frozenset({"full_at", "changed", "accumulator"}),
        read={"body": WHOLE_LIST},
    ),
)
PARTS = OPENING + BULK + CLOSING
# Why the rows of the other tables stay.
LEFT_BEHIND = {
    "credentials_mailday": "how many mails this installation sent",
    "mails_askedaddress": "whom this installation has asked today",
    "mails_unsubscribed": "who wants no mails of this installation",
    "credentials_spentnonce": "of requests of the last minutes",
    "credentials_lastdocument": "of organizations that were deleted there",
    "tenants_datakey": "the keys move by themselves, and are wrapped again",
    "tenants_formerdatakey": "as the data keys",
    "tenants_idempotencylease": "of calls that run at this installation",
    "tenants_loggedrequest": "what was called at this installation is its own log",
    "tenants_membership": "people are found by their mail address",
    "tenants_invitation": "the digests of their links have a key of the installation",
    "tenants_network": "is compared",
    "credentials_readlog": "each installation checks for itself what others publish",
    "credentials_readresource": "as the logs that were read",
    "webwallet_pintry": "the digests of addresses have a key of the installation",
    "webwallet_showncard": "codes that are shown for a minute",
    "webwallet_walletpasskey": "bound to the host of the installation",
    "webwallet_walletsession": "holders enter their PIN again",
    "webhooks_feedepoch": "the feed of each installation has its own",
    "webhooks_feedswitch": "of the server of the installation",
    "wallets_authority": "of the installation",
    "wallets_keyfiller": "of the installation",
    "wallets_keyrequest": "a call that waits is repeated there",
    "wallets_sparekey": "of the installation",
    "ops_heartbeat": "of the installation",
    "ops_periodicrun": "of the installation",
    "support_supportaction": "of the staff",
    "django_admin_log": "of the staff",
    "auth_user": "people",
    "auth_group": "people",
    "auth_permission": "people",
    "account_emailaddress": "people",
    "account_emailconfirmation": "people",
    "mails_maillanguage": "people",
    "mfa_authenticator": "people",
    "usersessions_usersession": "people",
    "django_session": "people",
    "django_content_type": "of the installation",
}


def model_of(table: str) -> type[models.Model]:
    return next(one for one in apps.get_models() if one._meta.db_table == table)
