"""Rows around the object under test, with what a table demands and nothing more.

What a test is about comes from the API (tests/support/people.py) or from the world
(tests/support/world.py): only those have keys, messages and events that fit together.
"""

import factory
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.utils import timezone
from factory.django import DjangoModelFactory
from uuid_utils.compat import uuid7

from agency.ops.models import Heartbeat
from connections.models import InboundMessage, OutboundMessage
from credentials.models import StatusList
from tenants.models import (
    ApiKey,
    AuditEntry,
    DailyUsage,
    Erasure,
    FormerDataKey,
    LoggedRequest,
    Membership,
    Network,
    Provider,
    Tenant,
)
from webhooks.models import Attempt


class UserFactory(DjangoModelFactory):
    """A person without a password, whose mail is at Faber College."""

    class Meta:
        model = User

    username = factory.Sequence("person-{}".format)
    email = factory.LazyAttribute(lambda user: f"{user.username}@faber.example")


class EmailAddressFactory(DjangoModelFactory):
    """The confirmed address of a person."""

    class Meta:
        model = EmailAddress

    user = factory.SubFactory(UserFactory)
    email = factory.SelfAttribute("user.email")
    verified = True
    primary = True


class AuthenticatorFactory(DjangoModelFactory):
    """A second factor, which nobody can use: its data are empty."""

    class Meta:
        model = Authenticator

    user = factory.SubFactory(UserFactory)
    type = Authenticator.Type.TOTP
    data = factory.Dict({})


class NetworkFactory(DjangoModelFactory):
    """A ledger that cannot be reached."""

    class Meta:
        model = Network
        django_get_or_create = ("id",)

    id = "far"
    name = factory.LazyAttribute(lambda network: network.id.title())
    kind = Network.Kind.INDY
    genesis = "-"

    class Params:
        local = factory.Trait(id="local", kind=Network.Kind.LOCAL, genesis="")


class ProviderFactory(DjangoModelFactory):
    class Meta:
        model = Provider

    name = factory.Sequence("Provider {}".format)


class TenantFactory(DjangoModelFactory):
    """An organization without a wallet or keys, for tests that need only its row."""

    class Meta:
        model = Tenant

    name = factory.Sequence("Organization {}".format)
    network = factory.SubFactory(NetworkFactory, local=True)
    provider = factory.SubFactory(ProviderFactory)


class MembershipFactory(DjangoModelFactory):
    """An owner of an organization."""

    class Meta:
        model = Membership

    tenant = factory.SubFactory(TenantFactory)
    user = factory.SubFactory(UserFactory)


class DailyUsageFactory(DjangoModelFactory):
    class Meta:
        model = DailyUsage

    tenant = factory.SubFactory(TenantFactory)
    day = factory.LazyFunction(lambda: timezone.now().date())


class AuditEntryFactory(DjangoModelFactory):
    class Meta:
        model = AuditEntry

    action = "key.revoked"


class LoggedRequestFactory(DjangoModelFactory):
    """A call of the API with a key of the organization, answered with a 200."""

    class Meta:
        model = LoggedRequest

    tenant = factory.SubFactory(TenantFactory)
    key = factory.LazyAttribute(
        lambda call: (
            call.tenant.keys.filter(kind=ApiKey.Kind.ACCESS_TOKEN).first()
            or ApiKey.issue(ApiKey.Kind.ACCESS_TOKEN, call.tenant, "Used")[0]
        )
    )
    method = "GET"
    route = "/connections"
    status = 200
    milliseconds = 1
    address = "127.0.0.1"


class InboundMessageFactory(DjangoModelFactory):
    """A message that waits to be handled; no wallet has its key."""

    class Meta:
        model = InboundMessage

    tenant = factory.SubFactory(TenantFactory)
    recipient_key = "key"
    message_id = factory.Sequence("message-{}".format)
    type = "x"


class OutboundMessageFactory(DjangoModelFactory):
    """A message for an outside agent, which waits to be sent. Its body is empty."""

    class Meta:
        model = OutboundMessage

    recipient_key = "key"
    endpoint = "https://phone.example"
    is_hosted = False
    type = "basicmessage/1.0/message"
    thread_id = "1"


class AttemptFactory(DjangoModelFactory):
    """The first call of a webhook, whose receiver had an error."""

    class Meta:
        model = Attempt

    number = 1
    started_at = factory.LazyFunction(timezone.now)
    duration_ms = 7
    status_code = 500


class ErasureFactory(DjangoModelFactory):
    """A wallet that was deleted."""

    class Meta:
        model = Erasure

    kind = Erasure.Kind.WALLET
    object_key = factory.LazyFunction(uuid7)


class FormerDataKeyFactory(DjangoModelFactory):
    class Meta:
        model = FormerDataKey

    tenant = factory.SubFactory(TenantFactory)
    generation = 9
    master_key_id = "1"


class StatusListFactory(DjangoModelFactory):
    """A list of a revocation registry."""

    class Meta:
        model = StatusList

    network = factory.SubFactory(NetworkFactory)
    registry_id = factory.Sequence("registry {}".format)
    timestamp = 1
    body = factory.Dict({})


class HeartbeatFactory(DjangoModelFactory):
    """A web process that was seen just now."""

    class Meta:
        model = Heartbeat

    kind = "web"
    host = "h"
    pid = 1
    version = "1"
