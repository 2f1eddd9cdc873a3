"""Many people of one organization: names on cards, digests, checks and messages.

All rows are copies, as in bench/many_rows.py, but for what the studio opens: the name on
each card is sealed for its own row, with digests of its own, and so are the messages of
the people whose pages are measured. Of ten people one is called Anna, and only three are
called Zoe. Every second one has a connection, a card, a check and a message; the others
were offered a card by a link, and have answered a check by a link that shows the name.
"""

import re
from datetime import timedelta
from html import unescape
from typing import NamedTuple

from django.db import connection
from django.urls import reverse
from django.utils import timezone

from bench.many_rows import copy_row, execute_statements, verkey_sql
from connections.models import BasicMessage, Connection
from credentials.models import Credential, NameDigests
from credentials.models.name_search import beginnings_of, digests_of, key_of
from tenants import vault
from verifications.models import CheckDigests, Verification, VerificationPolicy
from wallets.models import Key, Wallet

FIRST = (
    "Anna", "Bo", "Carla", "David", "Elif", "Farid", "Gita", "Hugo", "Ines", "Jonas",
)  # fmt: skip
SYLLABLES = [one + two for one in "bdfgklmnprst" for two in "eiou"]
NAMED_ZOE = (140, 141, 480)
MEASURED = range(100, 110)  # people whose pages are opened
MESSAGES = 20  # of each of them
# Ids of what each has, which are newer than other copies. As there, nothing of it has
# changed since yesterday: the statistics count what has.
NUMBERED = """
CREATE TABLE bench_aged AS
SELECT n, now() - interval '30 days' - n * interval '1 second' AS moment,
    uuidv7(age) AS card, uuidv7(age) AS peer, uuidv7(age) AS peer_key,
    uuidv7(age) AS asked, uuidv7(age) AS said
FROM (
    SELECT n, n * interval '-100 microseconds' AS age
    FROM generate_series(1, {count}) AS n
) AS made;
CREATE TABLE bench_named (
    number int, called text, sealed bytea, digested bigint[], asked_for bytea, shown bytea
)
"""
JOINED = """
CREATE TABLE bench_person AS
SELECT aged.*, named.called, named.sealed, named.digested, named.asked_for, named.shown
FROM bench_aged aged JOIN bench_named named ON named.number = aged.n;
ANALYZE bench_person
"""
CONNECTED, BY_LINK = "bench_person WHERE n % 2 = 0", "bench_person WHERE n % 2 = 1"


class Pages(NamedTuple):
    """What is measured. first: the addresses; persons: those of pages in turn."""

    lists: dict[str, str]
    persons: dict[str, list[str]]


def name_of(number):
    """No two people have the same last name."""
    first = "Zoe" if number in NAMED_ZOE else FIRST[number % len(FIRST)]
    syllables, rest = "", number
    for _ in range(4):
        rest, place = divmod(rest, len(SYLLABLES))
        syllables += SYLLABLES[place]
    return f"{first} {syllables.capitalize()}"


def fill_people(tenant, count):
    """Copy the newest rows of the organization's own wallet for so many people.

    It has a card and a check over a connection, a message, an offer by a link, and a
    stored policy.
    """
    own = Wallet.of_organization(tenant)
    cards = own.credentials.filter(role=Credential.Role.ISSUER)
    held = cards.filter(state="Issued", connection__connectionless=False).latest("pk")
    offered = cards.filter(state="Offered", connection__connectionless=True).latest(
        "pk"
    )
    asked = own.verifications.filter(state="Accepted").latest("pk")
    said = BasicMessage.objects.filter(wallet=own).latest("pk")
    execute_statements(
        "SET statement_timeout = 0; SET session_replication_role = replica"
    )
    execute_statements(NUMBERED.format(count=count))
    seal_names(tenant, held.definition_id)
    execute_statements(JOINED)
    key = {"id": "peer_key", "verkey": verkey_sql("peer_key")}
    copy_row(Key, held.connection.my_key.pk, "bench_person", **key)
    peer = {"id": "peer", "connection_id": "peer::text", "invitation_key_id": "NULL"}
    peer |= {"thread_id": "peer::text", "updated_at": "moment", "created_at": "moment"}
    peer["my_key_id"] = "peer_key"
    met = {"their_key": verkey_sql("peer"), "token": "''"}
    copy_row(Connection, held.connection.pk, CONNECTED, **peer, **met, name="called")
    link = {"token": "left(md5(peer::text), 32)"}
    copy_row(Connection, offered.connection.pk, BY_LINK, **peer, **link)
    of_card = {"id": "card", "connection_id": "peer", "thread_id": "card::text"}
    of_card |= {"recipient_name": "sealed", "revocation_index": "NULL"}
    of_card["revocation_registry_id"] = "''"
    of_card |= dict.fromkeys(("created_at", "updated_at"), "moment")
    copy_row(Credential, held.pk, CONNECTED, **of_card, issued_at="moment")
    copy_row(Credential, offered.pk, BY_LINK, **of_card)
    of_check = {"id": "asked", "connection_id": "peer", "thread_id": "asked::text"}
    of_check |= dict.fromkeys(("created_at", "updated_at", "verified_at"), "moment")
    of_check |= dict.fromkeys(("presentation", "proof", "checks"), "NULL")
    policy = VerificationPolicy.objects.filter(tenant=tenant).latest("pk")
    of_check["policy_id"] = f"'{policy.pk}'"
    copy_row(Verification, asked.pk, CONNECTED, **of_check, is_valid="n % 10 > 0")
    of_check |= {"policy": "asked_for", "proof": "shown"}
    copy_row(Verification, asked.pk, BY_LINK, **of_check)
    of_text = {"id": "said", "connection_id": "peer", "created_at": "moment"}
    copy_row(BasicMessage, said.pk, CONNECTED, **of_text, updated_at="moment")
    table = NameDigests._meta.db_table
    execute_statements(
        f"INSERT INTO {table} (credential_id, tenant_id, digests) "
        f"SELECT card, '{tenant.pk}', digested FROM bench_person"
    )
    table = CheckDigests._meta.db_table
    execute_statements(
        f"INSERT INTO {table} (verification_id, tenant_id, digests) "
        f"SELECT asked, '{tenant.pk}', digested FROM {BY_LINK}"
    )
    execute_statements("RESET session_replication_role; RESET statement_timeout")
    found = find_measured()
    write_messages(own, [peer for *_, peer in found])
    execute_statements("DROP TABLE bench_aged, bench_named, bench_person")
    execute_statements("VACUUM (ANALYZE)")
    return pages_of(tenant, found)


def seal_names(tenant, definition_id):
    """Store the name of each, sealed for the rows that have it, and its digests."""
    key = key_of(tenant.pk)
    card, check = Credential(tenant=tenant), Verification(tenant=tenant)
    only = [{"credentialDefinitionId": definition_id}]
    item = {"policyName": "Name", "attributeNames": ["name"], "restrictions": only}
    policy = {"name": "Name", "version": "1.0", "attributes": [item], "predicates": []}
    shown = {"conditional": False, "revealed": True, "name": "name"}
    with connection.cursor() as cursor:
        cursor.execute("SELECT n, card, asked FROM bench_aged ORDER BY n")
        numbered = cursor.fetchall()
        # Before the copying: the data key may have to be read again meanwhile.
        rows = []
        for number, card.pk, check.pk in numbered:
            name = name_of(number)
            sealed = vault.sealed_value(card, "recipient_name", name)
            proof = {"Name": shown | {"value": name}}
            rows.append(
                (
                    number,
                    name,
                    sealed,
                    digests_of(key, beginnings_of(name)),
                    vault.sealed_value(check, "policy", policy),
                    vault.sealed_value(check, "proof", proof),
                )
            )
        with cursor.copy("COPY bench_named FROM STDIN") as copied:
            for row in rows:
                copied.write_row(row)


def find_measured():
    """`(number, card, connection)` of those whose pages are opened."""
    with connection.cursor() as cursor:
        statement = (
            "SELECT n, card, peer FROM bench_person WHERE n = ANY(%s) ORDER BY n"
        )
        cursor.execute(statement, [list(MEASURED)])
        return cursor.fetchall()


def write_messages(own, peers):
    """Some texts of each of them that can be opened, in place of the copies."""
    with connection.cursor() as cursor:
        table = BasicMessage._meta.db_table
        cursor.execute(f"DELETE FROM {table} WHERE connection_id = ANY(%s)", [peers])
    texts = []
    for place in range(MESSAGES):
        for peer in peers[::2]:
            row = BasicMessage(
                tenant_id=own.tenant_id,
                wallet=own,
                connection_id=peer,
                direction=BasicMessage.Direction.OUTGOING,
                sent_at=timezone.now() - timedelta(minutes=place),
            )
            vault.seal(row, "text", f"Message {place}")
            texts.append(row)
    BasicMessage.objects.bulk_create(texts)


def pages_of(tenant, found):
    rare = name_of(MEASURED[0]).split()[1]
    studio = reverse("studio:organization", args=[tenant.pk])
    searched = {
        "a short beginning of many": "an",
        "a name of many": "anna",
        "a short beginning of few": "zo",
        "a name of few": "zoe",
        "one person": rare,
        "one person by two words": f"anna {rare}",
        "nobody": "xyxyxyxyxy",
    }
    lists = {
        "cards": "/credentials",
        "cards by state": "/credentials?state=Offered",
        "cards by last change": "/credentials?sort=-updatedAt",
        "connections": "/connections",
        "connections by name": "/connections?sort=name",
        "checks": "/verifications",
        "valid checks": "/verifications?state=Valid",
        "overview": "",
    }
    lists |= {
        f"find {name}": f"/credentials?q={text.replace(' ', '+')}"
        for name, text in searched.items()
    }
    lists["find connections of many"] = "/connections?q=anna"
    lists["find connections of one"] = f"/connections?q={rare}"
    lists["find checks of many"] = "/verifications?q=anna"
    lists["find checks of one"] = f"/verifications?q={name_of(MEASURED[1]).split()[1]}"
    lists["search all for many"] = "/search?q=anna"
    lists["search all for one"] = f"/search?q={rare}"
    persons: dict[str, list[str]] = {"a person": [], "a person by a link": []}
    for number, card, peer in found:
        if number % 2:
            persons["a person by a link"].append(f"{studio}/credentials/{card}/person")
        else:
            persons["a person"].append(f"{studio}/connections/{peer}/person")
    return Pages({name: f"{studio}{path}" for name, path in lists.items()}, persons)


def second_page(address, page):
    """The address that a list names as the next page, or None."""
    found = re.search(r'rel="next" href="(\?[^"]*)"', page)
    return address.partition("?")[0] + unescape(found[1]) if found else None
