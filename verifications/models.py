"""Verification policies, and verifications: a proof asked for and answered."""

import time

from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from agency.core import network_reads
from agency.core.errors import PeerError, WrongState
from agency.core.states import move
from connections.didcomm import formats
from connections.didcomm.formats import enclosed
from connections.exchange import Exchange, as_written
from connections.messaging import outbox
from connections.models import Connection
from connections.protocols import connectionless
from credentials.ledgers import ledger_of
from credentials.models import Credential, CredentialDefinition
from credentials.tails import tails_path
from tenants import vault
from tenants.models import Record, Tenant
from verifications.policy_lab import readings
from verifications.present_proof import messages, proposals
from verifications.proofs import checks, proof_policy, selection
from verifications.proofs.request_building import (
    build_request,
    definitions_of_predicates,
)
from verifications.proofs.request_reading import policy_from_request, read_items
from wallets import anoncreds
from wallets.models import Wallet
from webhooks.events.types import Type


class VerificationPolicy(Record):
    """What a verification asks for, kept under a name. Sealed, as it may name wanted values."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    name = models.CharField(max_length=200)
    version = models.CharField(max_length=64)
    body = models.BinaryField()

    class Meta:
        verbose_name = "verification policy"
        verbose_name_plural = "verification policies"

    def __str__(self):
        return f"{self.name} {self.version}"

    @classmethod
    def create(cls, tenant, body):
        body = proof_policy.normalise(body)
        row = cls(tenant=tenant, name=body["name"], version=body["version"])
        vault.seal(row, "body", body)
        row.save(force_insert=True)
        return row

    def shown(self):
        return vault.unseal(self, "body")


class Verification(Exchange):
    """One party's view of a proof; the other party has a row (or software) of its own.

    verifier   Proposed ─answer→ Requested ─receive_presentation→ Accepted (valid or not:
               is_valid tells)
    prover     Proposed ─receive_request→ Requested ─submit→ Accepted (is_valid once the verifier
               has said)
    both       Proposed | Requested ─decline, receive_problem→ Rejected
    """

    class State(models.TextChoices):
        PROPOSED = "Proposed"
        REQUESTED = "Requested"
        ACCEPTED = "Accepted"
        REJECTED = "Rejected"

    steps = {
        (State.PROPOSED, State.REQUESTED): "First the verifier answers with a request.",
    }

    class Role(models.TextChoices):
        VERIFIER = "verifier"
        PROVER = "prover"

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
    OPEN = (State.PROPOSED, State.REQUESTED)
    ABANDONED = messages.ABANDONED

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    wallet = models.ForeignKey(
        Wallet, on_delete=models.CASCADE, related_name="verifications"
    )
    role = models.CharField(max_length=8, choices=Role.choices)
    state = models.CharField(
        max_length=9, choices=State.choices, default=State.REQUESTED
    )
    policy_id = models.UUIDField(null=True)
    policy = models.BinaryField()
    proposal = models.BinaryField(null=True)
    request_body = models.BinaryField(null=True)
    presentation = models.BinaryField(null=True)
    proof = models.BinaryField(null=True)
    checks = models.BinaryField(null=True)
    is_valid = models.BooleanField(null=True)
    verified_at = models.DateTimeField(null=True)
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
                fields=["wallet", "id"],
                condition=Q(is_valid=False),
                name="verification_not_valid",
            ),
            models.Index(
                fields=["tenant"],
                condition=Q(state__in=["Proposed", "Requested"]),
                name="verification_open",
            ),
        ]

    def __str__(self):
        return str(self.pk)

    @classmethod
    @network_reads.atomic_with_reads
    def send(cls, connection, body, policy_id=None):
        """Verifier: asks for a proof of a (normalised) policy."""
        connection.require_connected()
        wanted = readings.resolved(body, lazy_registry(connection))
        asked = asked_now(wanted, connection.tenant_id)
        wire = connection.wire_for(messages.PRESENT_PROOF)
        message = messages.request(asked, wire)
        place = (connection, cls.Role.VERIFIER, message["@id"], wire)
        verification = cls._noted(*place, body, asked)
        verification.policy_id = policy_id
        verification.insert_within_quota()
        connectionless.send_first_message(connection, message)
        return verification

    @classmethod
    @network_reads.atomic_with_reads
    def send_by_link(cls, wallet, body, policy_id=None, terms=None):
        """Verifier: asks whoever opens the link first; with terms, of an out-of-band invitation."""
        return cls.send(connectionless.create_link(wallet, terms), body, policy_id)

    @classmethod
    @transaction.atomic
    def take(cls, wallet, message):
        """Prover: the row on which a shared request is answered; the same one again later."""
        connection = connectionless.accept_shared(wallet, message)
        rows = cls.objects.filter(connection=connection, thread_id=message.thread_id)
        return rows.first() or cls.receive_request(connection, message)

    @classmethod
    @network_reads.atomic_with_reads
    def answer_shared(cls, wallet, message, selections=None):
        """Prover: answers a shared request with what was chosen or, without, with what fits first.
        Whether another wallet was faster is known after the commit: require_first_responder()."""
        verification = cls.take(wallet, message)
        if selections is None:
            verification.auto_select()
        else:
            verification.submit(selections)
        return verification

    @classmethod
    def look_at(cls, wallet, message):
        """Prover: an unsaved row of a shared request, to see what would fit; takes nothing."""
        connection = Connection(tenant=wallet.tenant, wallet=wallet)
        asked = enclosed(message, formats.PROOF_REQUEST)
        body = policy_from_request(asked)
        place = (
            connection,
            cls.Role.PROVER,
            message.thread_id,
            formats.wire_of(message),
        )
        return cls._noted(*place, body, asked)

    @classmethod
    def receive_request(cls, connection, message):
        """Prover: notes what the verifier asks for."""
        asked = enclosed(message, formats.PROOF_REQUEST)
        body = policy_from_request(asked)
        known = cls._in_thread(connection, cls.Role.PROVER, message.thread_id)
        if known:
            known._receive_answer(body, asked, as_written(message))
            return known
        place = (
            connection,
            cls.Role.PROVER,
            message.thread_id,
            formats.wire_of(message),
        )
        row = cls._noted(*place, body, asked)
        row.insert_within_quota()
        return row

    @classmethod
    @network_reads.atomic_with_reads
    def propose(cls, connection, body):
        """Prover: offers to prove a (normalised) policy, if the verifier asks for it."""
        connection.require_connected()
        offered = readings.resolved(body, lazy_registry(connection))
        preview, wire = (
            proposals.build(offered),
            connection.wire_for(messages.PRESENT_PROOF),
        )
        message = messages.proposal(preview, offered, wire)
        place = (connection, cls.Role.PROVER, message["@id"], wire)
        row = cls._noted(*place, body, None, cls.State.PROPOSED)
        vault.seal(row, "proposal", preview | {"comment": body["name"]})
        row.insert_within_quota()
        outbox.enqueue(connection, message)
        return row

    @classmethod
    def receive_proposal(cls, connection, message):
        """Verifier: notes what the prover offers; until it is answered, a later one replaces it.
        The same one again changes nothing."""
        if connection.connectionless:
            raise PeerError(
                messages.ABANDONED, "a connectionless exchange takes no proposals"
            )
        preview, body = proposals.read(message)
        preview["comment"] = str(message.body.get("comment") or "")[:200]
        known = cls._in_thread(connection, cls.Role.VERIFIER, message.thread_id)
        if known and known._is_proposed(preview, body):
            return
        place = (
            connection,
            cls.Role.VERIFIER,
            message.thread_id,
            formats.wire_of(message),
        )
        row = known or cls._noted(*place, body, None, cls.State.PROPOSED)
        vault.seal(row, "policy", body)
        vault.seal(row, "proposal", preview)
        if known:
            proposed = cls.State.PROPOSED
            changes = {
                "policy": row.policy,
                "proposal": row.proposal,
                **as_written(message),
            }
            move(row, [proposed], proposed, **changes)
        else:
            row.insert_within_quota()

    def _is_proposed(self, preview, body):
        """Whether this was proposed before, and is not answered yet."""
        known = vault.unseal(self, "proposal"), vault.unseal(self, "policy")
        return self.state == self.State.PROPOSED and known == (preview, body)

    @network_reads.atomic_with_reads
    def answer(self, body=None, policy_id=None):
        """Verifier: asks for what was proposed, or for a (normalised) policy instead."""
        if body is None:
            body = wanted = self.shown_policy()
        else:
            wanted = readings.resolved(body, lazy_registry(self))
        asked = asked_now(wanted, self.tenant_id)
        self._move_to_requested(body, asked, policy_id=policy_id)
        self._send(messages.request(asked, self.wire, self.thread_id))

    def _receive_answer(self, body, asked, written):
        """Prover: the verifier asks, maybe for something else than was proposed. The same request
        again changes nothing."""
        if (
            self.state != self.State.PROPOSED
            and vault.unseal(self, "request_body") == asked
        ):
            return
        if self.state != self.State.PROPOSED:
            raise PeerError(messages.ABANDONED, "this exchange has its request already")
        self._move_to_requested(body, asked, **written)

    def _move_to_requested(self, body, asked, **changes):
        move(
            self,
            [self.State.PROPOSED],
            self.State.REQUESTED,
            policy=vault.sealed(self, "policy", body),
            request_body=vault.sealed(self, "request_body", asked),
            **changes,
        )

    @classmethod
    def _noted(
        cls, connection, role, thread_id, wire, body, asked, state=State.REQUESTED
    ):
        row = cls(
            tenant_id=connection.tenant_id, wallet_id=connection.wallet_id, state=state
        )
        row.connection, row.role, row.thread_id = connection, role, thread_id
        row.wire_version, row.wire_format = wire.version, wire.format
        vault.seal(row, "policy", body)
        vault.seal(row, "request_body", asked)
        return row

    @property
    def awaits_peer(self):
        """Whether the next step is the other side's; of a proof sent, its verdict."""
        if self.role == self.Role.VERIFIER:
            return self.state == self.State.REQUESTED
        unjudged = self.state == self.State.ACCEPTED and self.is_valid is None
        return self.state == self.State.PROPOSED or unjudged

    def available(self):
        """Prover: `[(item, [credential])]` for every item asked for."""
        held = self._held()
        found = selection.find_fitting(self.asked(), self._candidates(held))
        return [(item, [held[identifier] for identifier in ids]) for item, ids in found]

    def auto_select(self):
        """Prover: answers each item with the oldest fitting credential, or with nothing."""
        candidates = self._candidates(self._held())
        self._submit(selection.auto_select(self.asked(), candidates), candidates)

    def submit(self, selections):
        """Prover: answers with chosen credentials."""
        self._submit(selections, self._candidates(self._held()))

    def _submit(self, selections, candidates):
        """Made before it counts: what it asks of ledgers is no part of the transaction."""
        if self.state != self.State.REQUESTED:
            raise WrongState(self, [self.State.REQUESTED])
        presentation = selection.create_presentation(
            self.asked(),
            selections,
            candidates,
            self.wallet.secret(),
            self._registry,
            tails_path,
        )
        sent = {
            "presentation": presentation,
            "proof": checks.proof_of_own_presentation(
                self.asked(), presentation, self._registry
            ),
        }
        sealed = {
            column: vault.sealed(self, column, value) for column, value in sent.items()
        }
        with transaction.atomic():
            move(self, [self.State.REQUESTED], self.State.ACCEPTED, **sealed)
            self._send(messages.presentation(presentation, self.thread_id, self.wire))

    def receive_presentation(self, message):
        """Verifier: judges what came, and says so to the prover; of the same once more only the
        latter."""
        presentation = enclosed(message, formats.PRESENTATION)
        is_judged = self.state == self.State.ACCEPTED
        if is_judged and vault.unseal(self, "presentation") == presentation:
            self._send(self._verdict())
            return
        outcome = checks.judge_presentation(
            self.asked(), presentation, self._registry, judged_at=self._judged_at()
        )
        move(
            self,
            [self.State.REQUESTED],
            self.State.ACCEPTED,
            is_valid=outcome.is_valid,
            verified_at=timezone.now(),
            **as_written(message),
            presentation=vault.sealed(self, "presentation", presentation),
            proof=vault.sealed(self, "proof", outcome.proof),
            checks=vault.sealed(
                self, "checks", [check._asdict() for check in outcome.checks]
            ),
        )
        self._send(self._verdict())

    def _judged_at(self):
        """`validNow` means now, when the proof is here; any other time stands in the request."""
        return (
            network_reads.now()
            if proof_policy.is_judged_at_receipt(self.shown_policy())
            else None
        )

    def _verdict(self):
        if self.is_valid:
            return messages.ack(self.thread_id, self.wire)
        explanation = "The proof is not valid."
        return messages.problem(
            messages.NOT_VALID, explanation, self.thread_id, self.wire
        )

    def receive_ack(self, is_valid):
        """Prover: the verifier says what it found."""
        self._judge(is_valid)

    def receive_problem(self, code):
        """The other side declined, or found the proof not valid."""
        if self.state == self.State.ACCEPTED:
            self._judge(False)
        elif self.state in self.OPEN:
            move(self, self.OPEN, self.State.REJECTED, problem=code)

    def _judge(self, is_valid):
        if self.role == self.Role.PROVER and self.is_valid is None:
            accepted, now = self.State.ACCEPTED, timezone.now()
            move(self, [accepted], accepted, is_valid=is_valid, verified_at=now)

    @transaction.atomic
    def decline(self):
        """Either side: ends an open exchange and says so."""
        move(self, self.OPEN, self.State.REJECTED, problem="declined")
        if self.connection:
            explanation = "The proof is not wanted."
            report = messages.problem(
                messages.ABANDONED, explanation, self.thread_id, self.wire
            )
            outbox.enqueue_if_possible(self.connection, report)

    @transaction.atomic
    def remove(self):
        """Deletes the row; what is open is declined first."""
        connection = self.connection
        is_alone = connection and connection.connectionless and connection.lock()
        if self.state in self.OPEN:
            self.decline()
        self.delete()
        if connection and is_alone:
            connection.remove()

    @property
    def event_type(self):
        """The verifier's word on an accepted proof has a type of its own."""
        is_judged = self.role == self.Role.PROVER and self.is_valid is not None
        return Type.VERIFICATION_JUDGED if is_judged else super().event_type

    def asked(self):
        """The proof request; WrongState before there is one."""
        if self.request_body is None:
            raise WrongState(self, [self.State.REQUESTED])
        return vault.unseal(self, "request_body")

    def shown_proposal(self):
        """What was proposed, with the API's field names, or None."""
        preview = vault.unseal(self, "proposal")
        return preview and {"comment": preview["comment"], **proposals.shown(preview)}

    def shown_policy(self):
        return vault.unseal(self, "policy")

    def shown_checks(self):
        """What the verifier's checklist found, in the API's words."""
        found = vault.unseal(self, "checks")
        return found and [shown_check(**check) for check in found]

    def shown_proof(self):
        proof = vault.unseal(self, "proof")
        return proof and {name: with_attributes(shown) for name, shown in proof.items()}

    def _held(self):
        """The wallet's credentials that have any attribute asked for, oldest first, by id."""
        items = read_items(self.asked())
        names = {
            anoncreds.common_view(name)
            for item in items
            for name in item.attribute_names
        }
        rows = Credential.in_wallet(self.wallet).filter(
            attribute_names__overlap=sorted(names)
        )
        return {str(row.pk): row for row in rows.order_by("pk")}

    def _candidates(self, held):
        schemas = {
            row.schema_id: self._registry.schema(row.schema_id) for row in held.values()
        }
        definitions = {row.definition_id for row in held.values()}
        issuers = {name: self._registry.definition(name) for name in definitions}
        now, registry_ids = (
            network_reads.now(),
            {row.revocation_registry_id for row in held.values()},
        )
        newest = {
            name: self._registry.status_list(name, now) for name in registry_ids if name
        }
        return [
            candidate(
                row,
                schemas[row.schema_id],
                issuers[row.definition_id],
                newest.get(row.revocation_registry_id),
            )
            for row in held.values()
            if schemas[row.schema_id] and issuers[row.definition_id]
        ]

    @property
    def _registry(self):
        return ledger_of(self.tenant.network)


def lazy_registry(row):
    """The registry of the organization's network, looked up if it is asked: most policies have one
    reading only."""
    return SimpleLazyObject(lambda: ledger_of(row.tenant.network))


def asked_now(body, tenant_id):
    """The proof request of a (normalised) policy, as this tenant sends it at this moment."""
    not_revoked_at = proof_policy.non_revoked_at(body, int(time.time()))
    integers = integers_of(body, tenant_id)
    return build_request(body, anoncreds.generate_nonce(), not_revoked_at, integers)


def integers_of(body, tenant_id):
    """What the definitions of a policy's predicates declare, see `request.build`."""
    names = definitions_of_predicates(body)
    return CredentialDefinition.integer_attributes(tenant_id, names) if names else {}


def candidate(row, schema, definition, newest_list):
    stored = vault.unseal(row, "credential")
    return selection.Candidate(
        credential_id=str(row.pk),
        definition_id=row.definition_id,
        schema_id=row.schema_id,
        issuer_did=definition["issuerId"],
        schema_issuer_did=schema["issuerId"],
        schema_name=schema["name"],
        schema_version=schema["version"],
        values={name: value["raw"] for name, value in stored["values"].items()},
        credential=stored,
        revocation=revocation_of(row, newest_list),
    )


def with_attributes(shown):
    """The entry of an attribute with its value in `attributes` too: the applications written for
    the original clients read it there, whether the item asked for one attribute or for several."""
    if shown["conditional"] or "value" not in shown:
        return shown
    return shown | {"attributes": {shown["name"]: shown["value"]}}


def shown_check(policy_name, rule, status, code, message):
    shown = {"policyName": policy_name, "rule": rule, "status": status, "code": code}
    return {
        name: value for name, value in (shown | {"message": message}).items() if value
    }


def revocation_of(row, newest_list):
    """A credential's place, and what the newest list of its registry says of it."""
    if row.revocation_index is None:
        return None
    is_revoked = bool(
        newest_list and newest_list["revocationList"][row.revocation_index]
    )
    return selection.RevocationStatus(
        row.revocation_registry_id, row.revocation_index, is_revoked
    )
