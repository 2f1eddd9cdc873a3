"""propose-credential (RFCs 0036, 0453): a holder says what it would like, the issuer offers."""

from django.db import models, transaction

from agency.core.errors import Conflict, Invalid, PeerError, WrongState
from agency.core.states import move
from connections.didcomm.formats import wire_of
from connections.exchange import as_written
from connections.messaging import transport
from credentials.definitions import CredentialDefinition, compared, organization
from credentials.issue_credential import messages, proposal_messages
from tenants import vault


class Proposing(models.Model):
    """The part of a credential that is about proposals: before an offer, or in answer to one.

    proposal: what was proposed last, as proposal.py has it. Before there is an offer, definition
    and schema are the proposed ones, if any.
    """

    proposal = models.BinaryField(null=True)

    class Meta:
        abstract = True

    @classmethod
    @transaction.atomic
    def propose(cls, connection, proposed):
        """Holder: says what it would like to be issued."""
        connection.require_connected()
        wire = connection.wire_for(messages.ISSUE_CREDENTIAL)
        message = proposal_messages.message(proposed, wire)
        written = {"wire_version": wire.version, "wire_format": wire.format}
        row = cls._proposed(
            connection, cls.Role.HOLDER, message["@id"], proposed, written
        )
        transport.send(connection, message)
        return row

    @transaction.atomic
    def counter(self, changes):
        """Holder: answers an offer with what it would like instead; the rest is as offered."""
        offered = {"definitionId": self.definition_id, "schemaId": self.schema_id}
        named = {} if proposal_messages.WORDS.keys() & changes else offered
        proposed = named | {"credentialValues": vault.unseal(self, "values")} | changes
        proposed = {name: value for name, value in proposed.items() if value}
        self._check_counter(proposed)
        self._move_to_proposed([self.State.OFFERED], proposed)
        self._send(proposal_messages.message(proposed, self.wire, self.thread_id))

    def _check_counter(self, proposed):
        """Holder: the issuer could not tell the same again from a replay."""
        if problem := proposal_messages.problem_of(
            proposed.get("credentialValues", {})
        ):
            raise Invalid("invalid_request", problem, {"credentialValues": [problem]})
        if self.state == self.State.OFFERED and self._is_answered(proposed):
            message = (
                "That was proposed, and offered: accept it, or propose something else."
            )
            raise Conflict("already_offered", message)

    @classmethod
    def receive_proposal(cls, connection, message):
        """Issuer: notes what the holder would like; until it accepts an offer, a later proposal
        replaces it. The same again changes nothing, unless something else was offered."""
        if connection.connectionless:
            raise PeerError(
                messages.ABANDONED, "a connectionless exchange takes no proposals"
            )
        proposed, place = (
            proposal_messages.read(message),
            (connection, cls.Role.ISSUER, message.thread_id),
        )
        known, written = cls._in_thread(*place), as_written(message)
        if not known and message.thread_id != message.id:
            raise PeerError(
                messages.ABANDONED, "there is no such exchange on this connection"
            )
        if not known:
            cls._proposed(*place, proposed, written)
        elif not known._is_answered(proposed):
            sources = [cls.State.PROPOSED, cls.State.OFFERED]
            known._move_to_proposed(sources, proposed, **written)

    def _is_answered(self, proposed):
        """Whether it was proposed before, and what was offered since, if anything, is that."""
        if not self.is_same("proposal", proposed):
            return False
        offered = {"definitionId": self.definition_id, "schemaId": self.schema_id}
        offered["credentialValues"] = vault.unseal(self, "values")
        as_proposed = all(
            proposed.get(name, value) == value for name, value in offered.items()
        )
        return self.state != self.State.OFFERED or as_proposed

    @classmethod
    def _proposed(cls, connection, role, thread_id, proposed, written):
        """The stored row of a thread that begins with a proposal."""
        place = {"connection": connection, "role": role, "thread_id": thread_id}
        place |= {"tenant_id": connection.tenant_id, "wallet_id": connection.wallet_id}
        row = cls(state=cls.State.PROPOSED, attribute_names=[], **place, **written)
        row.definition_id = proposed.get("definitionId", "")
        row.schema_id = proposed.get("schemaId", "")
        vault.seal(row, "proposal", proposed)
        row.insert_within_quota()
        return row

    def _move_to_proposed(self, sources, proposed, **changes):
        changes["proposal"] = vault.sealed(self, "proposal", proposed)
        if self.offer_body is None:
            changes["definition_id"] = proposed.get("definitionId", "")
            changes["schema_id"] = proposed.get("schemaId", "")
        move(self, sources, self.State.PROPOSED, **changes)

    @classmethod
    def _answered_elsewhere(cls, connection, message, offer):
        """Holder: the oldest proposal that an offer in a new thread fits. ACA-Py answers there in
        1.0 (aries_cloudagent 0.12.8, issue_credential/v1_0/manager.py: create_offer)."""
        if wire_of(message).version != "1.0" or message.thread_id != message.id:
            return None
        place = {
            "connection": connection,
            "role": cls.Role.HOLDER,
            "state": cls.State.PROPOSED,
        }
        rows = list(cls.objects.filter(wire_version="1.0", **place).order_by("pk"))
        if not rows or connection.is_hosted:
            return None
        return next(
            (
                row
                for row in rows
                if proposal_messages.fits(row.shown_proposal(), offer)
            ),
            None,
        )

    @transaction.atomic
    def answer(self, definition=None, values=None, automatic_issuance=False):
        """Issuer: offers what was proposed, or something else, in the thread of the proposal. What
        that left out is as it was offered before, if it was."""
        if self.state != self.State.PROPOSED:
            raise WrongState(self, [self.State.PROPOSED])
        definition = definition or self.proposed_definition()
        proposed = self.shown_proposal().get("credentialValues", {})
        proposed = (
            proposed if any(proposed.values()) else None
        )  # the preview of an offer without
        values = values or proposed or self.shown_values()
        definition.check_offered(values, automatic_issuance)
        names, offer = definition.schema.attribute_names, definition.offer()
        move(
            self,
            [self.State.PROPOSED],
            self.State.OFFERED,
            schema_id=definition.schema.schema_id,
            definition_id=definition.definition_id,
            attribute_names=compared(names),
            automatic_issuance=automatic_issuance,
            offer_body=vault.sealed(self, "offer_body", offer),
            values=vault.sealed(self, "values", values),
        )
        self._send(
            messages.offer(offer, names, values or {}, self.wire, self.thread_id)
        )

    def proposed_definition(self):
        """Issuer: the one definition of the organization's own that fits the proposal; if that
        names nothing, the one that was offered before. 400 `definition_unclear`."""
        named = proposal_messages.WORDS.keys() & self.shown_proposal().keys()
        wanted = (
            self.shown_proposal() if named else {"definitionId": self.definition_id}
        )
        found = list(self._fitting(wanted)[:2]) if named or self.definition_id else []
        if len(found) != 1:
            many = "more than one" if found else "none"
            message = (
                f"The proposal fits {many} of your definitions: give the definitionId."
            )
            raise Invalid("definition_unclear", message, {"definitionId": [message]})
        return found[0]

    def _fitting(self, wanted):
        """The organization's definitions that have all that a proposal names."""
        columns = {
            "definitionId": "definition_id",
            "schemaId": "schema__schema_id",
            "schemaName": "schema__name",
            "schemaVersion": "schema__version",
        }
        lookups = {
            column: wanted[name] for name, column in columns.items() if name in wanted
        }
        rows = CredentialDefinition.offered(self.tenant).filter(**lookups)
        issuer = wanted.get("issuerDid", "").removeprefix("did:sov:")
        if issuer not in ("", organization(self.tenant).did):
            return rows.none()
        author = wanted.get("schemaIssuerDid", "").removeprefix("did:sov:")
        return (
            rows.filter(schema__schema_id__startswith=f"{author}:") if author else rows
        )

    def shown_proposal(self):
        """What was proposed last, or None."""
        return vault.unseal(self, "proposal")
