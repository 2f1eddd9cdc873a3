"""Search: by the beginning of an id or a name, and by whole ids of related objects.

An index serves each condition, so a search is bounded whatever the number of rows.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.db.models import (
    BooleanField,
    F,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    UUIDField,
    Value,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Lower

from connections.models import Connection
from core.api.pagination import only_columns
from core.database.collation import case_insensitive
from credentials.models import Credential, CredentialDefinition
from credentials.models.name_search import find_named
from verifications.models import CheckDigests, Verification, VerificationPolicy
from wallets.models import Wallet
from webhooks.models import Webhook

Row = TypeVar("Row", bound=Model)

MIN_ID_PREFIX = 8  # hexadecimal digits: those of the first group of a UUID
MAX_CONNECTIONS = 50  # whose exchanges a search finds
MAX_NAMED = 50  # definitions or policies, whose exchanges a search finds
MAX_PEOPLE = 500  # credentials that a search finds by the names on them
UUID_PREFIX = re.compile(rf"[0-9a-f]{{{MIN_ID_PREFIX},32}}")


def id_begins_with(text: str, column: str = "pk") -> Q:
    """The rows whose UUID begins with the text. None, if it begins no UUID."""
    digits = text.lower().replace("-", "")
    if not UUID_PREFIX.fullmatch(digits):
        return Q(pk__in=[])
    bounds = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    return Q(**{f"{column}__range": bounds})


def search_by_name(
    rows: QuerySet[Row], column: str, text: str, other: Q
) -> QuerySet[Any]:
    """The rows whose name begins with the text, in any case, and those of `other`."""
    named = Q(searched_name__startswith=Lower(Value(text)))
    return rows.alias(searched_name=case_insensitive(column)).filter(named | other)


class Found(NamedTuple):
    """key: the id. Of a credential also:

    peer: its connection, if it has one. holder: the wallet of who took it, if that is
    hosted here.
    """

    key: str
    peer: UUID | None
    is_by_link: bool | None
    holder: UUID | None


def as_found(
    kind: str,
    rows: QuerySet[Model],
    key: str,
    **of_credential: Combinable,
) -> QuerySet[Any]:
    """The kind and the columns of Found, the newest first."""
    unknown = {
        "peer": Value(None, UUIDField()),
        "is_by_link": Value(None, BooleanField()),
        "holder": Value(None, UUIDField()),
    }
    return rows.order_by("-pk").values_list(
        Value(kind, TextField()),
        Cast(key, TextField()),
        *(of_credential.get(name, value) for name, value in unknown.items()),
    )


@dataclass
class Search:
    """A text that is searched for in an organization, whose own wallet this is."""

    wallet: Wallet
    text: str
    # Whether who searches may see names of people: else they could be guessed.
    sees_names: bool = False

    @cached_property
    def looked_up(self) -> dict[str, list[Found]]:
        """What has such a name, by kind, the newest first, in one statement.

        Definitions (also deleted ones) and policies; and credentials, and checks by a
        link, by whom they name.
        """
        by_kind: dict[str, list[Found]] = defaultdict(list)
        first, *others = self._named_parts()
        for kind, *found in first.union(*others, all=True):
            by_kind[kind].append(Found(*found))
        return by_kind

    def _named_parts(self) -> Iterator[QuerySet[Any]]:
        tenant = self.wallet.tenant
        is_asked = self.sees_names and self.wallet.is_organization
        if is_asked and tenant.name_search:
            found = find_named(tenant, self.text, MAX_PEOPLE)
            rows = Credential.objects.filter(pk__in=found)
            taken = Credential.objects.filter(
                thread_id=OuterRef("thread_id"),
                role=Credential.Role.HOLDER,
                wallet__in=Wallet.hosted_by(tenant),
            )
            of_credential: dict[str, Combinable] = {
                "peer": F("connection"),
                "is_by_link": F("connection__connectionless"),
                "holder": Subquery(taken.values("wallet")[:1]),
            }
            yield as_found("credential", rows, "pk", **of_credential)[:MAX_PEOPLE]
            shown = find_named(tenant, self.text, MAX_PEOPLE, CheckDigests)
            checks = Verification.objects.filter(pk__in=shown)
            yield as_found("verification", checks, "pk")[:MAX_PEOPLE]
        named: tuple[tuple[str, type[Model], str, str], ...] = (
            ("definition", CredentialDefinition, "schema__name", "definition_id"),
            ("policy", VerificationPolicy, "name", "pk"),
        )
        for kind, model, name, key in named:
            own = model._default_manager.filter(tenant=tenant)
            found = search_by_name(own, name, self.text, Q(pk__in=[]))
            yield as_found(kind, found, key)[:MAX_NAMED]

    @property
    def named_on(self) -> list[tuple[UUID, UUID | None]]:
        """The newest credentials whose recipients have such a name.

        Each with its connection, unless it was offered by a link.
        """
        return [
            (UUID(one.key), None if one.is_by_link else one.peer)
            for one in self.looked_up["credential"]
        ]

    @property
    def named(self) -> list[UUID]:
        return [pk for pk, _ in self.named_on]

    @property
    def named_checks(self) -> list[UUID]:
        """The newest checks by a link whose proofs show such a name."""
        return [UUID(one.key) for one in self.looked_up["verification"]]

    @property
    def connections_of_named(self) -> list[UUID]:
        """The connections over which these were offered."""
        peers = dict.fromkeys(peer for _, peer in self.named_on if peer)
        return list(peers)[:MAX_CONNECTIONS]

    @property
    def holders(self) -> list[UUID]:
        """The hosted wallets that hold a credential with such a name."""
        held = [one.holder for one in self.looked_up["credential"] if one.holder]
        return list(dict.fromkeys(held))[:MAX_CONNECTIONS]

    @cached_property
    def found_connections(self) -> list[Connection]:
        """The newest connections that are found, also those of links."""
        rows = only_columns(self.wallet.connections.all(), ())
        return list(search_connections(rows, self).order_by("-pk")[:MAX_CONNECTIONS])

    @property
    def connections(self) -> list[UUID]:
        """Their ids. Their exchanges are found too."""
        return [row.pk for row in self.found_connections]

    @property
    def definition_ids(self) -> list[str]:
        """Of the newest definitions with such a name, also of deleted ones."""
        return [one.key for one in self.looked_up["definition"]]

    @property
    def policies(self) -> list[UUID]:
        """The newest policies with such a name."""
        return [UUID(one.key) for one in self.looked_up["policy"]]


def search_wallets(rows: QuerySet[Wallet], search: Search) -> QuerySet[Wallet]:
    """Match by id or name, or by the name on a credential that is in it."""
    other = Q(wallet_id=search.text) | id_begins_with(search.text)
    other |= Q(pk__in=search.holders)
    return search_by_name(rows, "owner_name", search.text, other)


def search_definitions(
    rows: QuerySet[CredentialDefinition], search: Search
) -> QuerySet[CredentialDefinition]:
    by_id = Q(definition_id=search.text) | Q(schema__schema_id=search.text)
    by_id |= id_begins_with(search.text)
    return search_by_name(rows, "schema__name", search.text, by_id)


def search_policies(
    rows: QuerySet[VerificationPolicy], search: Search
) -> QuerySet[VerificationPolicy]:
    return search_by_name(rows, "name", search.text, id_begins_with(search.text))


def search_connections(
    rows: QuerySet[Connection], search: Search
) -> QuerySet[Connection]:
    """Match by id or name, or by the name on a credential that was offered over it."""
    other = Q(connection_id=search.text) | id_begins_with(search.text)
    other |= Q(pk__in=search.connections_of_named)
    return search_by_name(rows, "name", search.text, other)


def search_credentials(
    rows: QuerySet[Credential], search: Search
) -> QuerySet[Credential]:
    """Match by id, definition (its id or name), id of the schema, connection or name."""
    text = search.text
    definition_ids = [text, *search.definition_ids]
    by_id = id_begins_with(text) | Q(schema_id=text)
    by_id |= Q(definition_id__in=definition_ids) | Q(pk__in=search.named)
    return rows.filter(by_id | Q(connection__in=search.connections))


def search_verifications(
    rows: QuerySet[Verification], search: Search
) -> QuerySet[Verification]:
    """Match by id, by policy (its id or name), by connection, and by name."""
    by_id = id_begins_with(search.text) | id_begins_with(search.text, "policy_id")
    by_id |= Q(policy_id__in=search.policies) | Q(pk__in=search.named_checks)
    return rows.filter(by_id | Q(connection__in=search.connections))


def search_webhooks(rows: QuerySet[Webhook], search: Search) -> QuerySet[Webhook]:
    """Match by id and by any part of the address: an organization has few webhooks."""
    return rows.filter(Q(url__icontains=search.text) | id_begins_with(search.text))
