"""Inviting, accepting, and the handshakes in between: connections/1.0 and didexchange/1.x."""

import secrets
import uuid
from datetime import timedelta

from django.apps import apps
from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone

from agency.core.errors import Conflict, Invalid, PeerError, Unavailable
from agency.core.states import move
from connections.didcomm import message as didcomm
from connections.messaging import inbound, router, transport
from connections.protocols import (
    connections_1_0,
    did_exchange,
    discover_features,
    out_of_band,
)
from tenants import vault
from wallets.models import Key

CONNECTIONS = "connections/1.0"
MAX_UNDELIVERED = 100  # responses by one invitation; refusals by one key
TIME_TO_FETCH = timedelta(minutes=1)  # for an answer to a requester without an endpoint
TOO_MANY = "too_many_undelivered"
MODULES = {"connections": connections_1_0, "didexchange": did_exchange}


class Handshaking(models.Model):
    """The part of a connection that is about its making.

    handshake: the protocol it is made by, once known. inviter_key: of the invitation accepted.
    """

    handshake = models.CharField(max_length=20, default=CONNECTIONS)
    inviter_key = models.CharField(max_length=44, blank=True)

    class Meta:
        abstract = True

    @classmethod
    @transaction.atomic
    def invite(
        cls,
        wallet,
        connection_id=None,
        name="",
        multi_party=False,
        terms=None,
        version="",
    ):
        """A new invitation of this wallet: of connections/1.0 or, with terms, out-of-band.

        name: what the invited see in it and the connection is called; without one they see the
        wallet's, and the connection is called as they call themselves.
        version: of the exchanges that follow, if one is set; see Connection.wire_for().
        """
        connection = cls(tenant=wallet.tenant, wallet=wallet, role=cls.Role.INVITER)
        connection.connection_id = connection_id or str(connection.pk)
        connection.name, connection.multi_party = name, multi_party
        connection.token, connection.exchange_version = (
            secrets.token_urlsafe(16),
            version,
        )
        if terms:
            connection.invite_out_of_band(terms)
        else:
            key = connection.invitation_key = wallet.create_key()
            connection.invitation = connections_1_0.invitation(
                connection.shown_name,
                wallet.image_url,
                key.verkey,
                transport.endpoint(),
            )
        connection.insert_within_quota()
        return connection

    @classmethod
    @transaction.atomic
    def accept(cls, wallet, invitation):
        """Answers an invitation message; a single-use one again gives the same connection, and so
        does another one of an inviter who is known by a DID or key that stays."""
        invited = out_of_band.read(invitation)
        wallet.require()
        hosted = cls.hosted_invitation(invited.inviter.verkey, invitation.id)
        if hosted and hosted.wallet_id == wallet.pk:
            raise Invalid(
                "own_invitation", "A wallet cannot accept its own invitation."
            )
        known = cls._known(wallet, invited, invitation.id)
        if known and not (hosted and hosted.multi_party and hosted.invitation_key_id):
            known.reuse(invitation)
            return known
        if hosted and hosted.state != cls.State.INVITED:
            raise invitation_used()
        return cls._answer(wallet, invitation, invited)

    @classmethod
    def _known(cls, wallet, invited, invitation_id):
        """The connection that this wallet has with the inviter already, or is making by the same
        invitation."""
        same = Q(inviter_key=invited.inviter.verkey)
        if invited.did:
            same |= Q(invitation__services__contains=[invited.did])
        usable = Q(state=cls.State.CONNECTED) | Q(
            invitation__contains={"@id": invitation_id}
        )
        known = (
            wallet.connections.filter(same, usable, left_at=None).order_by("pk").first()
        )
        return known if known and known.hold() and not known.left_at else None

    @classmethod
    def _answer(cls, wallet, invitation, invited):
        connection = cls(tenant=wallet.tenant, wallet=wallet, role=cls.Role.INVITEE)
        connection.connection_id = str(connection.pk)
        body = {k: v for k, v in invitation.body.items() if k != "requests~attach"}
        connection.invitation, connection.inviter_key = body, invited.inviter.verkey
        connection.handshake = invited.handshake
        connection.name = str(body.get("label") or "")[:200]
        connection.image_url = str(body.get("imageUrl") or "")[:2000]
        connection.message_prefix = invitation.prefix
        vault.seal(connection, "shared", out_of_band.request_of(invitation))
        connection.insert_within_quota()
        connection.request(invited.inviter)
        return connection

    @classmethod
    def hosted_invitation(cls, verkey, invitation_id):
        """The inviter's row if the invitation was made here, None if by another agent."""
        key = Key.objects.filter(verkey=verkey).first()
        if not key:
            return None
        own = cls.objects.filter(invitation_key=key).first()
        found = own or cls.invitation_of(key, invitation_id)
        if key.retired_at or not found:
            raise Conflict(
                "invitation_gone", "The invitation was withdrawn. Ask for a new one."
            )
        return found

    @classmethod
    def invitation_of(cls, key, identifier):
        """The invitation of this id under a key that the wallet keeps for all such."""
        try:
            rows = cls.objects.filter(pk=uuid.UUID(identifier), wallet=key.wallet_id)
        except ValueError:
            return None
        rows = rows.filter(
            role=cls.Role.INVITER, invitation_key=None, connectionless=False
        )
        return rows.exclude(token="").first()

    @property
    def inviting_key(self):
        return self.invitation_key or self.wallet.public_key

    def request(self, inviter):
        """Invitee: asks with a fresh key pair."""
        my_key = self.wallet.create_key()
        body = self._request(my_key)
        changes = {"my_key": my_key, "my_did": _my_did(body), "thread_id": body["@id"]}
        move(self, [self.State.INVITED], self.State.NEGOTIATING, **changes)
        transport.send_to(inviter, body, my_key, self)

    def _request(self, my_key):
        mine, wallet, prefix = self.party(my_key), self.wallet, self.message_prefix
        name, version = self.handshake.split("/")
        parent = self.invitation.get("@id")
        if name == "didexchange":
            seed = my_key.secret()
            return did_exchange.request(
                version, wallet.name, mine, seed, prefix, parent
            )
        is_out_of_band = "handshake_protocols" in self.invitation
        parent = parent if is_out_of_band else None
        return connections_1_0.request(
            wallet.name, wallet.image_url, mine, prefix, parent
        )

    def receive_request(self, message):
        """Inviter: answers a request, for a multi-party invitation on a new row. One that is sent
        again, maybe because the answer was lost, gets the same answer."""
        party = requester(message)
        self._limit_undelivered()
        known = self._answered(party)
        if known:
            transport.send(known, self._response(known.my_key, message))
            return
        connection = self.spawn() if self.multi_party else self
        my_key = self.wallet.create_key()
        answer = self._response(my_key, message)
        changes = {"my_key": my_key, "my_did": _my_did(answer)}
        changes["handshake"] = "/".join(didcomm.read(answer).protocol)
        invited, negotiating = self.State.INVITED, self.State.NEGOTIATING
        connection._meet([invited], negotiating, party, message, **changes)
        transport.send(connection, answer)

    def _limit_undelivered(self):
        """Keeps the responses by this invitation that wait undelivered below their limit: gives up
        the oldest that was posted in vain, or not fetched. Unavailable if there is none such: then
        the request waits."""
        rows = undelivered_messages(
            type__endswith="/response",
            connection__wallet=self.wallet_id,
            connection__role=self.Role.INVITER,
        )
        if not is_full(
            rows
        ):  # of the whole wallet: spares the look into all invitations
            return
        rows = rows.filter(
            connection__invitation__contains={"@id": self.invitation["@id"]}
        )
        if not is_full(rows):
            return
        is_posted_in_vain = Q(attempts__gt=0)
        before = timezone.now() - TIME_TO_FETCH
        is_not_fetched = Q(endpoint="", created_at__lt=before)
        rows = rows.filter(is_posted_in_vain | is_not_fetched, lease_owner=None)
        oldest = rows.order_by("pk").first()
        if not oldest or not oldest.exhaust(TOO_MANY, body=None, envelope=None):
            raise Unavailable(
                TOO_MANY, "too many answers to this invitation wait undelivered"
            )

    @property
    def may_refuse(self):
        """Whether one more stranger may be told that its request was refused: fewer such reports
        by the invitation's key wait undelivered than may."""
        return not is_full(
            undelivered_messages(my_key=self.inviting_key, connection=None)
        )

    def _answered(self, party):
        """The connection that a request of this party by this invitation has made already."""
        rows = self.wallet.connections.filter(
            their_key=party.verkey, role=self.Role.INVITER
        )
        rows = rows.filter(
            invitation__contains={"@id": self.invitation["@id"]}, left_at=None
        )
        return rows.select_related("my_key").exclude(my_key=None).first()

    def _response(self, my_key, message):
        module = MODULES[message.protocol[0]]
        return module.response(self.party(my_key), self.inviting_key.secret(), message)

    def spawn(self):
        connection = type(self)(
            tenant=self.tenant,
            wallet=self.wallet,
            role=self.role,
            invitation=self.invitation,
        )
        connection.connection_id, connection.name = str(connection.pk), self.name
        connection.exchange_version = self.exchange_version
        connection.insert_within_quota()
        return connection

    def receive_response(self, message):
        """Invitee: checks the signature of the invitation's key and is connected."""
        name, _, version = self.handshake.partition("/")
        if message.protocol[0] != name or not self._is_answered_by(message):
            raise PeerError(
                "response_not_accepted", "nothing was asked that this answers"
            )
        party = MODULES[name].read_response(message, self.inviter_key)
        if message.sender not in (party.verkey, self.inviter_key):
            raise PeerError(
                "response_not_accepted", "the sender is not the document's key"
            )
        State = self.State
        self._meet([State.NEGOTIATING], State.CONNECTED, party, message)
        if name == "didexchange":
            parent = self.invitation.get("@id")
            last = did_exchange.complete(
                version, self.thread_id, self.message_prefix, parent
            )
        else:
            last = connections_1_0.complete(self.message_prefix)
        transport.send(self, last)
        self._greet()
        self._begin_attached()

    def _is_answered_by(self, message):
        """connections/1.0 is known by its keys: old agents are careless about threads."""
        return self.handshake == CONNECTIONS or message.thread_id == self.thread_id

    def _greet(self):
        """Asks a new peer which protocols it speaks, unless it may not know the question."""
        if self.handshake != CONNECTIONS and not self.is_hosted:
            transport.send(self, discover_features.queries(self.message_prefix))

    def _begin_attached(self):
        """Invitee: takes what came with the invitation as if the peer had sent it now."""
        request = vault.unseal(self, "shared")
        if request is None:
            return
        attached = didcomm.read(request)._replace(sender=self.their_key)
        self.shared, self.invitation = (
            None,
            self.invitation | out_of_band.begun(attached),
        )
        self.save(update_fields=["shared", "invitation"])
        inbound.consider(self, attached)

    def reuse(self, invitation):
        """Invitee: tells the inviter of another invitation that both are connected already."""
        is_other = invitation.id != self.invitation.get("@id")
        is_out_of_band = invitation.protocol[0] == "out-of-band"
        if is_other and is_out_of_band and self.state == self.State.CONNECTED:
            vault.seal(self, "shared", out_of_band.request_of(invitation))
            self.save(update_fields=["shared"])
            transport.send(self, out_of_band.reuse(invitation.id, self.message_prefix))

    def receive_reuse(self, message):
        """Inviter: the invitee of another invitation is this peer; what that carries comes here.
        That was its use, unless it is for many."""
        invitation = self._open_invitation(message.parent_id)
        if not invitation:
            raise PeerError(
                "expired-invitation", "there is no such invitation, or it was used"
            )
        router.move_exchanges(invitation, self)
        if not invitation.multi_party:
            invitation.remove()
        transport.send(self, out_of_band.reuse_accepted(message))

    def _open_invitation(self, identifier):
        try:
            wanted = uuid.UUID(identifier)
        except ValueError:
            return None
        rows = self.wallet.connections.select_for_update(no_key=True).filter(
            pk=wanted, connectionless=False
        )
        return rows.filter(role=self.Role.INVITER, state=self.State.INVITED).first()

    def receive_reuse_accepted(self, message):
        """Invitee: goes on with what came with the invitation."""
        request = vault.unseal(self, "shared")
        if request and request["~thread"]["pthid"] == message.parent_id:
            self._begin_attached()

    def request_refused(self):
        """Invitee: the error for the caller whose request to connect the inviter refused. An
        invitation for many is never used up: then the inviter has no room."""
        hosted = self.hosted_invitation(
            self.inviter_key, self.invitation.get("@id", "")
        )
        if hosted and hosted.multi_party:
            message = "The inviter accepts no further connections at present. Try again later."
            return Conflict("invitation_refused", message)
        return invitation_used()

    def receive_problem(self, code):
        negotiating = type(self).objects.filter(
            pk=self.pk, state=self.State.NEGOTIATING
        )
        negotiating.update(problem=code)


def undelivered_messages(**conditions):
    """Those to other agents that are still pending."""
    rows = apps.get_model("connections", "OutboundMessage").objects
    return rows.filter(status="pending", is_hosted=False, **conditions)


def is_full(rows):
    """Whether they are as many as may wait; no more are counted."""
    return rows[:MAX_UNDELIVERED].count() >= MAX_UNDELIVERED


def requester(message):
    """Who asks to connect; its own key has packed the request."""
    party = MODULES[message.protocol[0]].read_request(message)
    if message.sender != party.verkey:
        raise PeerError("request_not_accepted", "the sender is not the document's key")
    return party


def _my_did(body):
    """Our DID in a request or response of DID exchange, in its short form; else the key tells."""
    did = body.get("did", "")
    return did.rpartition(":")[0] if did.startswith("did:peer:4") else did


def invitation_used():
    return Conflict(
        "invitation_used", "The invitation was used already. Ask for a new one."
    )
