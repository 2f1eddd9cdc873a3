"""The three kinds of objects that have an exchange page."""

import json
from collections.abc import Iterator, Mapping

from django.db.models import QuerySet
from django.db.models import Value as Constant

from agency.studio.exchange.page import ExchangePage, Related, ThreadPage
from agency.studio.exchange.timeline import KEYS
from agency.studio.exchange.values import (
    Value,
    values_of_credential,
    values_of_verification,
)
from agency.studio.objects import with_ends
from agency.words.asking import card_asked, definition_ids
from agency.words.cards import Card, definitions_of, draw_card
from agency.words.reasons import Unproven, list_unproven
from agency.words.states import ENDED, ROLES, Subject, labels_of, outcome_of
from connections import invitation_links
from connections.api.serializers import ConnectionContract, has_attachment
from connections.models import Connection
from credentials.api.serializers import CredentialContract
from credentials.models import Credential
from verifications.api.serializers import VerificationContract
from verifications.models import Verification, VerificationPolicy
from verifications.proofs import failures

C, D, V = Connection.State, Credential.State, Verification.State
MAX_RELATED = 20
MODELS = {one.OBJECT_TYPE: one for one in (Credential, Verification)}
WITH_CONNECTION = ("wallet", "connection", *(f"connection__{key}" for key in KEYS))


class ConnectionPage(ExchangePage[Connection]):
    """It has no values, and is deleted instead of cancelled."""

    kind = "connection"
    contract = ConnectionContract

    @classmethod
    def rows(cls) -> QuerySet[Connection]:
        return Connection.objects.select_related("wallet", *KEYS)

    @classmethod
    def listed(cls) -> QuerySet[Connection]:
        """Those that the API lists."""
        return cls.rows().filter(connectionless=False)

    @property
    def connection(self) -> Connection:
        return self.row

    def states(self) -> list[str]:
        if self.row.multi_party:
            return [C.INVITED]
        ended = [ENDED] if self.row.left_at else []
        return [C.INVITED, C.NEGOTIATING, C.CONNECTED, *ended]

    def has_ended(self) -> bool:
        """A multi-party invitation never changes."""
        row = self.row
        return row.multi_party or bool(row.problem) or row.state == C.CONNECTED

    def is_watched(self) -> bool:
        return not self.row.multi_party and super().is_watched()

    def actions(self) -> dict[str, bool]:
        is_own = self.row.wallet.is_organization
        is_connected = self.row.state == C.CONNECTED
        can_ping = is_connected and not self.row.left_at
        return {
            "can_chat": is_connected and is_own,
            "can_ping": can_ping,
            "can_offer": can_ping and is_own,
        }

    def link(self) -> str:
        return (self.row.invitation_url or "") if self.row.is_open else ""

    def invitation(self) -> dict[str, str]:
        if invitation_links.shared_request(self.row):
            return {}
        shared = invitation_links.shared_message(self.row)
        return {
            "deep_link": invitation_links.deep_link(self.row),
            "invitation_json": json.dumps(shared, indent=2, ensure_ascii=False),
        }

    def exchanges(self) -> list[Related]:
        """In one query."""
        columns = ("pk", "state", "role", "created_at", "kind")
        of_kind = [
            model.objects.filter(connection=self.row)
            .order_by("-pk")
            .annotate(kind=Constant(model.OBJECT_TYPE))
            .values_list(*columns)[:MAX_RELATED]
            for model in MODELS.values()
        ]
        newest = of_kind[0].union(of_kind[1], all=True).order_by("-created_at")
        return [
            Related(
                pk,
                labels_of(MODELS[kind], role)[state],
                ROLES[role],
                created_at,
                kind,
            )
            for pk, state, role, created_at, kind in newest[:MAX_RELATED]
        ]

    def reason(self) -> None:
        return None

    def attributes(self) -> Iterator[Value]:
        return iter(())

    @property
    def hides_invitation(self) -> bool:
        return self.row.carries_exchange or has_attachment(self.row)


class CredentialPage(ThreadPage[Credential]):
    """An issued credential has ended, though it may be revoked days later."""

    kind = "credential"
    contract = CredentialContract
    asked = ("holder", D.OFFERED)
    cancel_labels = {"issuer": "Cancel the offer", "holder": "Decline for the holder"}

    @classmethod
    def rows(cls) -> QuerySet[Credential]:
        return Credential.objects.select_related(*WITH_CONNECTION)

    @classmethod
    def listed(cls) -> QuerySet[Credential]:
        return with_ends(cls.rows())

    def states(self) -> list[str]:
        row = self.row
        proposed = [D.PROPOSED] if row.proposal is not None else []
        if row.state == D.REJECTED:
            offered = [D.OFFERED] if row.offer_body is not None else []
            requested = [D.REQUESTED] if row.accepted_at else []
            return [*proposed, *offered, *requested, D.REJECTED]
        revoked = [D.REVOKED] if row.state == D.REVOKED else []
        return [*proposed, D.OFFERED, D.REQUESTED, D.ISSUED, *revoked]

    def actions(self) -> dict[str, bool]:
        place = (self.row.role, self.row.state)
        is_issued = place == ("issuer", D.ISSUED)
        return super().actions() | {
            "can_issue": place == ("issuer", D.REQUESTED),
            "can_issue_again": is_issued or place == ("issuer", D.REVOKED),
            "can_ask": is_issued,
            "can_revoke": is_issued and self.row.revocation_index is not None,
        }

    def card(self, values: Mapping[str, str] | None = None) -> Card | None:
        known = definitions_of(self.row.tenant_id, [self.row.definition_id])
        found = known.get(self.row.definition_id)
        return draw_card(found, values) if found else None

    def attributes(self) -> Iterator[Value]:
        return values_of_credential(self.row)


class VerificationPage(ThreadPage[Verification]):
    """It has a verdict, with the checks behind it."""

    kind = "verification"
    contract = VerificationContract
    asked = ("prover", V.REQUESTED)
    cancel_labels = {
        "verifier": "Cancel the request",
        "prover": "Decline for the holder",
    }

    @classmethod
    def rows(cls) -> QuerySet[Verification]:
        return Verification.objects.select_related(*WITH_CONNECTION)

    def states(self) -> list[str]:
        row = self.row
        is_proposed = row.proposal is not None or row.state == V.PROPOSED
        proposed = [V.PROPOSED] if is_proposed else []
        if row.state == V.REJECTED:
            requested = [V.REQUESTED] if row.request_body is not None else []
            return [*proposed, *requested, V.REJECTED]
        steps = [*proposed, V.REQUESTED]
        if row.is_valid is None:
            return [*steps, V.ACCEPTED]
        verdict = outcome_of(row)
        if row.role == Verification.Role.PROVER:
            return [*steps, V.ACCEPTED, verdict]
        return [*steps, verdict]

    def has_ended(self) -> bool:
        """The prover waits for the verdict."""
        return not self.row.awaits_peer and super().has_ended()

    def checks(self) -> dict[str, list[failures.CheckInWords]]:
        found: dict[str, list[failures.CheckInWords]] = {}
        for check in self.row.unsealed_checks() or []:
            found.setdefault(check["status"], []).append(failures.in_words(check))
        return found

    def causes(self) -> list[failures.CauseInWords]:
        return self.row.list_causes()

    def unproven(self, causes: list[failures.CauseInWords]) -> list[Unproven]:
        return list_unproven(self.row, causes)

    @property
    def has_verdict(self) -> bool:
        """Whether the organization asked for a proof, and it was judged or refused.

        A proposal that was declined has none: its policy is a stranger's.
        """
        row = self.row
        if row.role != Verification.Role.VERIFIER or row.request_body is None:
            return False
        return row.is_valid is not None or row.state == V.REJECTED

    def card(self, values: Mapping[str, str] | None = None) -> Card | None:
        """The one that answers, with what is asked of it."""
        if self.row.request_body is None:
            return None
        items = self.row.require_proof_request().items
        known = definitions_of(self.row.tenant_id, definition_ids(items))
        return card_asked(items, known, values)

    def find_policy(self) -> VerificationPolicy | None:
        rows = VerificationPolicy.objects.filter(tenant=self.row.tenant_id)
        return (
            rows.filter(pk=self.row.policy_id).first() if self.row.policy_id else None
        )

    def attributes(self) -> Iterator[Value]:
        return values_of_verification(self.row)


AnyPage = ConnectionPage | CredentialPage | VerificationPage
KINDS: dict[str, type[AnyPage]] = {
    "connection": ConnectionPage,
    "credential": CredentialPage,
    "verification": VerificationPage,
}


def exchange_page(row: Subject) -> AnyPage:
    if isinstance(row, Connection):
        return ConnectionPage(row)
    return CredentialPage(row) if isinstance(row, Credential) else VerificationPage(row)
