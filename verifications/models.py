"""Verification policies, and verifications: a proof that is requested and presented.

`present_proof` has the actions of the two parties and their messages.
"""

from typing import Any, ClassVar, Required, Self, TypedDict
from uuid import UUID

from django.contrib.postgres.indexes import GinIndex, HashIndex
from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone

from connections.didcomm import reasons
from connections.didcomm.formats import MessageFormat
from connections.didcomm.message import Body, Message
from connections.exchange import Exchange, format_columns
from connections.models import Connection
from core.errors import WrongState
from core.states import Transitions, move, sources_of
from core.text.bounded_json import JSON
from core.work import transactions
from core.work.leases import CausedJob
from core.work.notify import notify_worker
from credentials.models import CredentialFormat
from credentials.models.name_search import RowDigests
from tenants import vault
from tenants.models import NotedRow, Notes, Record, Tenant
from verifications import messages, previews
from verifications.naming import named_by, naming_attributes
from verifications.proofs import failures
from verifications.proofs.checks import Outcome
from verifications.proofs.policy import Policy
from verifications.proofs.proof_values import Proof
from verifications.proofs.request_reading import ProofRequest
from wallets.models import Wallet
from webhooks.events.types import Type


class Unsent(TypedDict, total=False):
    """A prover's answer to a verifier elsewhere, as it is stored until it is taken.

    until: unix seconds; so long another call does not send it. is_repeat: whether an
    answer was made before. made_at: unix seconds. chosen: the ids of credentials by
    item.
    """

    until: Required[float]
    is_repeat: bool
    vp_token: dict[str, JSON]
    proof: Proof
    made_at: float
    chosen: dict[str, str]


class VerificationPolicy(Record, NotedRow):
    """A stored policy: what a verification asks for.

    The body is encrypted because it may contain required values.
    """

    api_id = "pk"
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    name = models.CharField(max_length=200)
    version = models.CharField(max_length=64)
    body = models.BinaryField()

    class Meta:
        verbose_name = "verification policy"
        verbose_name_plural = "verification policies"
        indexes = [
            models.Index(
                fields=["tenant", "reference", "id"], name="policy_by_reference"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @classmethod
    def create(cls, tenant: Tenant, policy: Policy, notes: Notes | None = None) -> Self:
        row = cls(tenant=tenant, name=policy.name, version=policy.version)
        vault.seal(row, "body", policy.to_json())
        row.set_notes(notes)
        row.save(force_insert=True)
        return row

    def unsealed_body(self) -> dict[str, JSON]:
        """Return the policy as the API's JSON. Decrypts in each call."""
        return vault.unseal(self, "body")

    def unsealed_policy(self) -> Policy:
        """Decrypts in each call."""
        return Policy.from_json(self.unsealed_body())


class Kiosk(Record):
    """A screen at a counter that asks one person after the other by the same policy.

    Its link contains the token. Whoever has it sees each answer, but only what
    `shown_items` names, and for `seconds` (kiosks.py).
    """

    api_id = "pk"
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    policy = models.ForeignKey(VerificationPolicy, on_delete=models.CASCADE)
    name = models.CharField(max_length=100)
    seconds = models.PositiveSmallIntegerField()
    # The `policyName` of each item whose values are shown.
    shown_items = models.JSONField(default=list)
    # By which it asks, if that is not as the organization asks by DIDComm.
    protocol = models.CharField(max_length=9, blank=True, default="", db_default="")
    # What the screen says to whoever has no card, and where to go on.
    no_card_text = models.CharField(max_length=300, default="", db_default="")
    no_card_url = models.CharField(max_length=200, default="", db_default="")
    sha256 = models.BinaryField(unique=True)
    last_seen_at = models.DateTimeField(null=True)
    # The request on the screen. Without a foreign key: deleting a verification stays as
    # cheap as it is.
    verification_id = models.UUIDField(null=True)
    # When its answer was first on the screen.
    shown_at = models.DateTimeField(null=True)
    url: str  # only of a new kiosk: the token is not stored

    def __str__(self) -> str:
        return self.name

    @property
    def audit_facts(self) -> dict[str, JSON]:
        return {"name": self.name, "shown_items": self.shown_items}


class Verification(Exchange):
    """One party's view of a proof. The other party has its own row, or other software.

    verifier   Proposed ─answer_proposal→ Requested ─receive_presentation→ Accepted
               (valid or not: see is_valid)
    verifier   Requested ─receive_answer→ Accepted
    verifier   Requested ─receive_refusal→ Rejected
    prover     Proposed ─receive_request→ Requested ─present→ Accepted
    prover     Accepted ─receive_verdict→ Accepted
    verifier   Proposed ─receive_proposal→ Proposed
    both       Proposed | Requested ─decline, receive_problem→ Rejected
    """

    class State(models.TextChoices):
        PROPOSED = "Proposed"
        REQUESTED = "Requested"
        ACCEPTED = "Accepted"
        REJECTED = "Rejected"

    class Role(models.TextChoices):
        VERIFIER = "verifier"
        PROVER = "prover"

    TRANSITIONS: ClassVar[Transitions] = {
        (Role.VERIFIER, State.PROPOSED): {
            State.PROPOSED,
            State.REQUESTED,
            State.REJECTED,
        },
        (Role.VERIFIER, State.REQUESTED): {State.ACCEPTED, State.REJECTED},
        (Role.PROVER, State.PROPOSED): {State.REQUESTED, State.REJECTED},
        (Role.PROVER, State.REQUESTED): {State.ACCEPTED, State.REJECTED},
        (Role.PROVER, State.ACCEPTED): {State.ACCEPTED},
    }
    steps = {
        (
            State.PROPOSED,
            State.REQUESTED,
        ): "First the verifier answers with a request.",
    }

    OBJECT_TYPE = "verification"
    EVENTS = {
        (Role.VERIFIER, State.PROPOSED): Type.VERIFICATION_PROPOSED,
        (Role.VERIFIER, State.REQUESTED): Type.VERIFICATION_REQUESTED,
        (Role.VERIFIER, State.ACCEPTED): Type.VERIFICATION,
        (Role.VERIFIER, State.REJECTED): Type.VERIFICATION_REJECTED,
        (Role.PROVER, State.PROPOSED): Type.VERIFICATION_PROPOSED,
        (Role.PROVER, State.REQUESTED): Type.VERIFICATION_REQUEST,
        (Role.PROVER, State.ACCEPTED): Type.VERIFICATION_ACCEPTED,
        (Role.PROVER, State.REJECTED): Type.VERIFICATION_REJECTED,
    }
    OPEN = sources_of(TRANSITIONS, State.REJECTED)
    ABANDONED = messages.ABANDONED

    api_id = "pk"
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    wallet = models.ForeignKey(
        Wallet, on_delete=models.CASCADE, related_name="verifications"
    )
    role = models.CharField(max_length=8, choices=Role.choices)
    state = models.CharField(
        max_length=9, choices=State.choices, default=State.REQUESTED
    )
    # The id of the stored policy. It may have been deleted since; `policy` is a copy.
    policy_id = models.UUIDField(null=True)
    policy = models.BinaryField()
    # The preview of a proposal. Null if the exchange began with a request.
    proposal = models.BinaryField(null=True)
    # Of the credentials that are asked for. SD-JWT VCs are asked for by OpenID4VP.
    format = models.CharField(
        max_length=9,
        choices=CredentialFormat.choices,
        default=CredentialFormat.ANONCREDS,
        db_default=CredentialFormat.ANONCREDS,
    )
    # OpenID4VP: the key to which the answer is encrypted, and what it must repeat.
    answer_key = models.BinaryField(null=True)
    request_body = models.BinaryField(null=True)
    presentation = models.BinaryField(null=True)
    # The revealed values by policy item.
    proof = models.BinaryField(null=True)
    # The verifier's checklist; null on the prover's row.
    checks = models.BinaryField(null=True)
    # The verifier's verdict. Null on the prover's row until the verifier has sent it.
    is_valid = models.BooleanField(null=True)
    verified_at = models.DateTimeField(null=True)
    # The code of the problem report that ended the exchange.
    problem = models.CharField(max_length=100, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["connection", "thread_id", "role"],
                name="one_verification_per_thread",
            ),
            models.CheckConstraint(
                condition=Q(is_valid=None, verified_at=None)
                | Q(
                    is_valid__isnull=False, verified_at__isnull=False, state="Accepted"
                ),
                name="verdict_has_its_time",
            ),
            models.CheckConstraint(
                condition=~Q(role="verifier", state="Accepted")
                | Q(is_valid__isnull=False),
                name="accepted_proof_has_a_verdict",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["Proposed", "Rejected"])
                | Q(request_body__isnull=False),
                name="past_proposed_has_its_request",
            ),
        ]
        indexes = [
            models.Index(fields=["wallet", "-id"]),
            models.Index(fields=["wallet", "state", "id"]),
            models.Index(fields=["wallet", "updated_at", "id"]),
            models.Index(fields=["wallet", "policy_id", "id"]),
            models.Index(
                fields=["wallet", "reference", "id"], name="verification_by_reference"
            ),
            models.Index(
                fields=["wallet", "moved_at"],
                condition=Q(moved_at__isnull=False),
                name="verification_moved",
            ),
            models.Index(
                fields=["wallet", "id"],
                condition=Q(is_valid=False),
                name="verification_not_valid",
            ),
            models.Index(
                fields=["tenant"],
                condition=Q(state__in=["Proposed", "Requested"]),
                name="verification_open",
            ),
            HashIndex(fields=["thread_id"], name="verification_by_thread"),
        ]

    def __str__(self) -> str:
        return str(self.pk)

    @classmethod
    def build(
        cls,
        connection: Connection,
        role: str,
        thread_id: str,
        message_format: MessageFormat,
        policy: Policy,
        proof_request: dict[str, JSON] | None,
    ) -> Self:
        """Return an unsaved row: Proposed without a proof request, else Requested.

        policy: with dates that are not relative; the API shows it. Both are sealed. The
        connection may be an unsaved one.
        """
        row = cls(
            tenant_id=connection.tenant_id,
            wallet_id=connection.wallet_id,
            connection=connection,
            role=role,
            state=cls.State.PROPOSED if proof_request is None else cls.State.REQUESTED,
            thread_id=thread_id,
            wire_version=message_format.version,
            wire_format=message_format.format,
        )
        vault.seal(row, "policy", policy.to_json())
        vault.seal(row, "request_body", proof_request)
        return row

    @property
    def awaits_peer(self) -> bool:
        """Whether the other side acts next.

        After the presentation, the prover waits for the verdict.
        """
        if self.role == self.Role.VERIFIER:
            return self.state == self.State.REQUESTED
        if self.state == self.State.ACCEPTED:
            # Verifiers of OpenID4VP tell wallets no verdict.
            is_told = self.format == CredentialFormat.ANONCREDS
            return is_told and self.is_valid is None
        return self.state == self.State.PROPOSED

    @property
    def event_type(self) -> Type | None:
        """The event type of the current state.

        The verdict on our own presentation has its own type, as it leaves the state as
        it is.
        """
        if self.role == self.Role.PROVER and self.is_valid is not None:
            return Type.VERIFICATION_JUDGED
        return super().event_type

    @property
    def problem_in_words(self) -> str:
        """Also the cause of the verdict, which the verifier has told the prover.

        Without a verdict it is none, also if the peer has ended it with that code.
        """
        is_told = bool(self.problem) and self.is_valid is not None
        cause = failures.find_cause(self.problem) if is_told else None
        return cause.message if cause else super().problem_in_words

    @property
    def is_named_by_proof(self) -> bool:
        """Whether it is an answer by a link. Else its connection names the person."""
        is_ours = self.role == self.Role.VERIFIER
        return is_ours and self.is_valid is not None and self.is_by_link

    def list_causes(self) -> list[failures.CauseInWords]:
        """Why the verifier's verdict is no. Decrypts in each call."""
        return failures.list_causes(self.unsealed_checks() or ())

    def require_proof_request(self) -> ProofRequest:
        """Return the proof request. Decrypts and parses it in each call.

        409 `wrong_state` if there is only a proposal.
        """
        if self.request_body is None:
            raise WrongState(self, [self.State.REQUESTED])
        if self.format == CredentialFormat.SD_JWT:
            return ProofRequest.of_policy(self.unsealed_policy())
        return ProofRequest.parse(vault.unseal(self, "request_body"))

    def unsealed_policy(self) -> Policy:
        """Return the policy, with dates that are not relative. Decrypts in each call."""
        return Policy.from_json(vault.unseal(self, "policy"))

    def unsealed_proposal(self) -> dict[str, JSON] | None:
        """Return the proposal with the API's field names, or None.

        Decrypts in each call.
        """
        preview = vault.unseal(self, "proposal")
        if preview is None:
            return None
        return {"comment": preview["comment"], **previews.preview_for_api(preview)}

    def unsealed_checks(self) -> list[dict[str, str]] | None:
        """The verifier's checklist, with the API's field names."""
        checks = vault.unseal(self, "checks")
        if checks is None:
            return None
        names = {"policy_name": "policyName"}
        return [
            {names.get(name, name): value for name, value in check.items() if value}
            for check in checks
        ]

    def unsealed_proof(self) -> Proof | None:
        """Return the revealed values by policy item, with the API's field names.

        None before the presentation. Decrypts in each call.
        """
        proof = vault.unseal(self, "proof")
        if proof is None:
            return None
        # Applications of the original clients read a value in `attributes`, whether
        # the item asks for one attribute or for several.
        return {
            name: entry
            if entry["conditional"] or "value" not in entry
            else entry | {"attributes": {entry["name"]: entry["value"]}}
            for name, entry in proof.items()
        }

    # The transitions. Like move(), each needs the lock and may raise WrongState.

    def receive_proposal(
        self, message: Message, policy: Policy, preview: previews.Preview
    ) -> None:
        """Verifier: the prover has proposed something else."""
        move(
            self,
            [self.State.PROPOSED],
            self.State.PROPOSED,
            policy=vault.sealed_value(self, "policy", policy.to_json()),
            proposal=vault.sealed_value(self, "proposal", preview),
            **format_columns(message),
        )

    def answer_proposal(
        self,
        policy: Policy,
        proof_request: dict[str, JSON],
        policy_id: UUID | None,
    ) -> None:
        """Verifier: answer a proposal with a request."""
        self._move_to_requested(policy, proof_request, policy_id=policy_id)

    def receive_request(
        self, message: Message, policy: Policy, proof_request: dict[str, JSON]
    ) -> None:
        """Prover: the verifier has answered the proposal with a request."""
        self._move_to_requested(policy, proof_request, **format_columns(message))

    def _move_to_requested(
        self, policy: Policy, proof_request: dict[str, JSON], **changes: Any
    ) -> None:
        move(
            self,
            [self.State.PROPOSED],
            self.State.REQUESTED,
            policy=vault.sealed_value(self, "policy", policy.to_json()),
            request_body=vault.sealed_value(self, "request_body", proof_request),
            **changes,
        )

    def present(self, presentation: dict[str, JSON], proof: Proof) -> None:
        """Prover: answer the request. proof: what the presentation shows."""
        move(
            self,
            [self.State.REQUESTED],
            self.State.ACCEPTED,
            presentation=vault.sealed_value(self, "presentation", presentation),
            proof=vault.sealed_value(self, "proof", proof),
        )

    def receive_presentation(
        self, message: Message, presentation: dict[str, JSON], outcome: Outcome
    ) -> None:
        """Verifier: the prover has answered. outcome: our verdict."""
        checks = [check._asdict() for check in outcome.checks]
        move(
            self,
            [self.State.REQUESTED],
            self.State.ACCEPTED,
            is_valid=outcome.is_valid,
            verified_at=timezone.now(),
            presentation=vault.sealed_value(self, "presentation", presentation),
            proof=vault.sealed_value(self, "proof", outcome.proof),
            checks=vault.sealed_value(self, "checks", checks),
            **format_columns(message),
        )
        self._let_name_be_found(outcome)

    def keep_answer(self, answer: dict[str, JSON]) -> None:
        """Verifier: a wallet has answered, and a worker will judge it.

        In the caller's transaction, with the lock. Nothing that others see has changed.
        """
        self.presentation = vault.sealed_value(self, "presentation", answer)
        self.save(update_fields=["presentation"])
        WaitingAnswer.objects.create(tenant_id=self.tenant_id, verification_id=self.pk)
        transaction.on_commit(lambda: notify_worker(WaitingAnswer.TASK))

    def keep_unsent(self, pending: Unsent) -> None:
        """Prover: store what is going to be sent to a verifier elsewhere.

        In the caller's transaction. Nothing that others see has changed.
        """
        sealed = vault.sealed_value(self, "presentation", pending)
        rows = Verification.objects.filter(pk=self.pk, state=self.State.REQUESTED)
        rows.update(presentation=sealed)
        self.presentation = sealed

    def columns_when_declined(self) -> dict[str, Any]:
        """Prover: what a verifier elsewhere may have been shown stays to be seen."""
        is_sent = (
            self.role == self.Role.PROVER and self.format == CredentialFormat.SD_JWT
        )
        if not is_sent:
            return {}
        self.refresh_from_db(fields=["presentation"])  # another call may be sending
        unsent = vault.unseal(self, "presentation")
        if unsent is None:
            return {}
        return {"proof": vault.sealed_value(self, "proof", unsent["proof"])}

    def receive_answer(self, answer: dict[str, JSON], outcome: Outcome) -> None:
        """Verifier: a wallet of OpenID4VP has answered. outcome: our verdict."""
        checks = [check._asdict() for check in outcome.checks]
        move(
            self,
            [self.State.REQUESTED],
            self.State.ACCEPTED,
            is_valid=outcome.is_valid,
            verified_at=timezone.now(),
            presentation=vault.sealed_value(self, "presentation", answer),
            proof=vault.sealed_value(self, "proof", outcome.proof),
            checks=vault.sealed_value(self, "checks", checks),
        )
        self._let_name_be_found(outcome)

    def _let_name_be_found(self, outcome: Outcome) -> None:
        if self.is_named_by_proof and self.tenant.name_search:
            items = self.unsealed_policy().attributes
            attributes = naming_attributes(self.tenant_id, [items])
            name = named_by(items, outcome.proof, attributes)
            CheckDigests.store(self.tenant, {self.pk: name})

    def receive_refusal(self, proof: Proof | None = None) -> None:
        """The other side of OpenID4VP has declined, or does not take the answer.

        proof: what may have been shown to it all the same.
        """
        sealed = vault.sealed_value(self, "proof", proof) if proof else None
        changes = {"proof": sealed} if proof else {}
        move(
            self,
            [self.State.REQUESTED],
            self.State.REJECTED,
            problem="abandoned",
            **changes,
        )

    def receive_verdict(self, is_valid: bool, cause: str = "") -> None:
        """Prover: the verifier has judged the proof. Later verdicts are ignored.

        cause: why it is no, in the words of the verifier: stored if they are ours.
        """
        if self.role != self.Role.PROVER or self.is_valid is not None:
            return
        known = failures.find_cause(cause)
        move(
            self,
            [self.State.ACCEPTED],
            self.State.ACCEPTED,
            is_valid=is_valid,
            verified_at=timezone.now(),
            problem=known.code if known else "",
        )

    def build_decline(self, reason: str) -> Body:
        return messages.build_problem_report(
            reasons.find_decline(reason) or messages.ABANDONED,
            reason or "The proof is not wanted.",
            self.thread_id,
            self.message_format,
        )

    @transactions.atomic()
    def remove(self) -> None:
        """Delete the row. An open exchange is declined first.

        In one transaction, with the lock of the connection. The connection of a
        connectionless exchange is removed with it. Does nothing if it was deleted
        meanwhile. 409 `wrong_state` if a peer hosted here has just ended it; 503
        `organization_frozen`.
        """
        if not self.lock_and_reload_state():
            return
        connection = self.connection
        if connection and connection.connectionless:
            connection.remove()  # declines it while the connection exists
        elif self.state in self.OPEN:
            self.decline()
        self.delete()


class CheckDigests(RowDigests):
    """Those of whom the proof of an answer by a link names (named_checks.py)."""

    verification = models.OneToOneField(
        Verification,
        on_delete=models.DO_NOTHING,
        primary_key=True,
        db_constraint=False,
        related_name="name_digests",
    )

    class Meta:
        indexes = [
            GinIndex(fields=["digests"], fastupdate=False, name="check_by_name_digest")
        ]


class WaitingAnswer(Record, CausedJob):
    """The answer of a wallet that is judged once status lists of others are read.

    The answer is with the verification, which stays Requested: verifications/openid4vp/
    waiting_answers.py. It is judged as of created_at.
    """

    SCHEDULE = (1, 5, 30)
    TASK = "verifications.tasks.judge_answers"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    # Without a foreign key: deleting a verification stays as cheap as it is.
    verification_id = models.UUIDField(unique=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["due_at"],
                condition=Q(status="pending"),
                name="waiting_answer_due",
            )
        ]

    def __str__(self) -> str:
        return str(self.verification_id)
