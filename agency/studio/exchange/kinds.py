"""The three kinds of objects that have an exchange page."""

import json
from collections.abc import Iterator
from typing import Any

from django.db.models import Value as Constant

from agency.studio.exchange.page import ExchangePage
from agency.studio.exchange.timeline import KEYS
from agency.studio.exchange.values import (
    Value,
    values_of_credential,
    values_of_verification,
)
from agency.studio.exchange.words import ROLES
from agency.studio.objects import label_of
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
WITH_CONNECTION = ("wallet", "connection", *(f"connection__{key}" for key in KEYS))


class ConnectionPage(ExchangePage[Connection]):
    """It has no values, and is deleted instead of cancelled."""

    kind = "connection"
    model = Connection
    contract = ConnectionContract
    related = ("wallet", *KEYS)
    shown = {"connectionless": False}
    next_steps = {
        ("inviter", C.INVITED): (
            "Nobody has accepted the invitation yet. Send its link again if it was lost."
        ),
        ("inviter", C.NEGOTIATING): (
            "The other side has accepted, and the two agents exchange keys. If this takes "
            "longer than a minute, look at the last message below."
        ),
        ("inviter", C.CONNECTED): (
            "Both sides can offer credentials, ask for proofs and send messages."
        ),
        ("invitee", C.INVITED): (
            "The invitation is being answered. If this takes longer than a minute, look "
            "at the last message below."
        ),
        ("invitee", C.NEGOTIATING): (
            "The inviter has not answered yet. Look at the last message below; if it was "
            "sent, ask the inviter."
        ),
        ("invitee", C.CONNECTED): (
            "Both sides can offer credentials, ask for proofs and send messages."
        ),
    }

    @property
    def connection(self) -> Connection:
        row: Connection = self.row
        return row

    def labels(self) -> list[str]:
        if self.row.multi_party:
            return [C.INVITED]
        ended = ["Ended"] if self.row.left_at else []
        return [C.INVITED, C.NEGOTIATING, C.CONNECTED, *ended]

    def next_step(self) -> str:
        row = self.row
        if row.left_at:
            return "One side has ended the connection: nothing more goes over it."
        if row.problem:
            return "The other agent refused the handshake. Make a new invitation."
        if row.multi_party:
            return (
                "The invitation stays open for everybody who has its link. Each one "
                "who accepts becomes a connection of its own."
            )
        if row.is_held:
            return (
                "A request to connect waits for an answer. Accept it, or refuse it by "
                "deleting the connection."
            )
        return super().next_step()

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

    def exchanges(self) -> list[dict[str, Any]]:
        """In one query."""
        columns = ("pk", "state", "role", "created_at")
        found = [
            page.model.objects.filter(connection=self.row)
            .order_by("-pk")
            .values(*columns, kind=Constant(page.kind))[:MAX_RELATED]
            for page in (CredentialPage, VerificationPage)
        ]
        newest = found[0].union(found[1], all=True).order_by("-created_at")
        return [
            one | {"url": f"studio:{one['kind']}", "role": ROLES[one["role"]]}
            for one in newest[:MAX_RELATED]
        ]

    def reason(self) -> None:
        return None

    def attributes(self) -> Iterator[Value]:
        return iter(())

    @property
    def hides_invitation(self) -> bool:
        return self.row.carries_exchange or has_attachment(self.row)


class CredentialPage(ExchangePage[Credential]):
    """An issued credential has ended, though it may be revoked days later."""

    kind = "credential"
    model = Credential
    contract = CredentialContract
    related = WITH_CONNECTION
    cancel_labels = {"issuer": "Cancel the offer", "holder": "Decline for the holder"}
    next_steps = {
        ("issuer", D.PROPOSED): (
            "The holder proposes what to issue. Answer with an offer through the API, or "
            "cancel."
        ),
        ("issuer", D.OFFERED): (
            "The offer is in the wallet of the holder, who has not accepted it yet."
        ),
        ("issuer", D.REQUESTED): (
            "The holder has accepted. Issue it through the API, unless it is issued "
            "automatically."
        ),
        ("issuer", D.ISSUED): "The holder has the credential.",
        ("issuer", D.REJECTED): (
            "It was ended before it was issued. Make a new offer if it is still wanted."
        ),
        ("issuer", D.REVOKED): (
            "The credential is revoked. Issue a new one if the holder needs one."
        ),
        ("holder", D.PROPOSED): "The issuer has to answer with an offer.",
        ("holder", D.OFFERED): (
            "The owner of this wallet has to accept the offer or decline it."
        ),
        ("holder", D.REQUESTED): "The issuer has to issue it.",
        ("holder", D.ISSUED): "The credential is in this wallet.",
        ("holder", D.REJECTED): (
            "It was ended before it was issued. Ask the issuer for a new offer."
        ),
        ("holder", D.REVOKED): (
            "The issuer has revoked the credential. Ask the issuer for a new one."
        ),
    }

    def labels(self) -> list[str]:
        row = self.row
        proposed = [D.PROPOSED] if row.proposal is not None else []
        if row.state == D.REJECTED:
            offered = [D.OFFERED] if row.offer_body is not None else []
            requested = [D.REQUESTED] if row.accepted_at else []
            return [*proposed, *offered, *requested, D.REJECTED]
        revoked = [D.REVOKED] if row.state == D.REVOKED else []
        return [*proposed, D.OFFERED, D.REQUESTED, D.ISSUED, *revoked]

    def next_step(self) -> str:
        row = self.row
        is_offered = (row.role, row.state) == ("issuer", D.OFFERED)
        link = row.live_connection
        if is_offered and link and link.is_open:
            return "Nobody has accepted it yet."
        return super().next_step()

    def actions(self) -> dict[str, bool]:
        place = (self.row.role, self.row.state)
        is_issued = place == ("issuer", D.ISSUED)
        return super().actions() | {
            "can_accept": self.may_accept,
            "can_issue": place == ("issuer", D.REQUESTED),
            "can_ask": is_issued,
            "can_revoke": is_issued and self.row.revocation_index is not None,
        }

    @property
    def may_accept(self) -> bool:
        is_open = (self.row.role, self.row.state) == ("holder", D.OFFERED)
        return is_open and not self.row.wallet.is_organization

    def attributes(self) -> Iterator[Value]:
        return values_of_credential(self.row)


class VerificationPage(ExchangePage[Verification]):
    """It has a verdict, with the checks behind it."""

    kind = "verification"
    model = Verification
    contract = VerificationContract
    related = WITH_CONNECTION
    cancel_labels = {
        "verifier": "Cancel the request",
        "prover": "Decline for the holder",
    }
    next_steps = {
        ("verifier", V.PROPOSED): (
            "The holder proposes what to show. Answer with a request through the API, or "
            "cancel."
        ),
        ("verifier", V.REQUESTED): (
            "The request is in the wallet of the holder, who has not answered yet."
        ),
        ("verifier", V.ACCEPTED): "The holder has answered.",
        ("verifier", V.REJECTED): (
            "It was ended before a proof came. Ask again if it is still needed."
        ),
        ("prover", V.PROPOSED): ("The verifier has to answer with a request."),
        ("prover", V.REQUESTED): (
            "The owner of this wallet has to choose credentials or decline."
        ),
        ("prover", V.ACCEPTED): (
            "The proof was sent. The verifier has not said yet whether it is valid."
        ),
        ("prover", V.REJECTED): (
            "It was ended before a proof was sent. Ask the verifier for a new request."
        ),
    }

    def labels(self) -> list[str]:
        row = self.row
        is_proposed = row.proposal is not None or row.state == V.PROPOSED
        proposed = [V.PROPOSED] if is_proposed else []
        if row.state == V.REJECTED:
            requested = [V.REQUESTED] if row.request_body is not None else []
            return [*proposed, *requested, V.REJECTED]
        steps = [*proposed, V.REQUESTED]
        if row.is_valid is None:
            return [*steps, V.ACCEPTED]
        verdict = label_of(row)
        if row.role == Verification.Role.PROVER:
            return [*steps, V.ACCEPTED, verdict]
        return [*steps, verdict]

    def next_step(self) -> str:
        row = self.row
        is_verifier = row.role == Verification.Role.VERIFIER
        if row.is_valid is not None:
            return self._verdict_in_words(is_verifier)
        is_asked = is_verifier and row.state == V.REQUESTED
        link = row.live_connection
        if is_asked and link and link.is_open:
            return "Nobody has answered yet."
        return super().next_step()

    def _verdict_in_words(self, is_verifier: bool) -> str:
        if is_verifier and self.row.is_valid:
            return "The proof is valid: it shows what was asked for."
        if is_verifier:
            return "The proof is not valid."
        if self.row.is_valid:
            return "The verifier has found the proof valid."
        told = "The verifier has found the proof not valid."
        return told if self.row.problem else f"{told} Only the verifier knows why."

    def has_ended(self) -> bool:
        """The prover waits for the verdict."""
        return not self.row.awaits_peer and super().has_ended()

    def checks(self) -> dict[str, list[failures.CheckInWords]]:
        found: dict[str, list[failures.CheckInWords]] = {}
        for check in self.row.unsealed_checks() or []:
            found.setdefault(check["status"], []).append(failures.in_words(check))
        return found

    def causes(self) -> list[Any]:
        return list(self.row.list_causes())

    def actions(self) -> dict[str, bool]:
        return super().actions() | {"can_accept": self.may_accept}

    @property
    def may_accept(self) -> bool:
        is_open = (self.row.role, self.row.state) == ("prover", V.REQUESTED)
        return is_open and not self.row.wallet.is_organization

    @property
    def has_verdict(self) -> bool:
        """Whether the organization asked for a proof, and it was judged or refused.

        A proposal that was declined has none: its policy is a stranger's.
        """
        row = self.row
        if row.role != Verification.Role.VERIFIER or row.request_body is None:
            return False
        return row.is_valid is not None or row.state == V.REJECTED

    def find_policy(self) -> VerificationPolicy | None:
        rows = VerificationPolicy.objects.filter(tenant=self.row.tenant_id)
        return (
            rows.filter(pk=self.row.policy_id).first() if self.row.policy_id else None
        )

    def attributes(self) -> Iterator[Value]:
        return values_of_verification(self.row)


KINDS: dict[str, type[ExchangePage[Any]]] = {
    page.kind: page for page in (ConnectionPage, CredentialPage, VerificationPage)
}
