"""Lists of 100 rows: our responses compared to plain DRF over the same rows, in turns.

Plain means ModelSerializer with the same fields: related rows are read on access, and
a method of the row decrypts each column. `joined` is the same with its related rows
joined. All use the same authentication and renderer, and have the same response except
for nulls.
"""

import statistics
import time
import uuid

from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings
from django.urls import include, path
from rest_framework import generics, serializers

from agency import urls
from agency.server.middleware import api_segments
from bench.queries import InProcess
from connections.invitation_links import encoded_message
from connections.models import Connection
from core.api.authentication import TenantAuthentication
from credentials.models import Credential
from tenants import vault
from verifications.models import Verification

ROWS, ROUNDS = 100, 15
TIMES = "%Y-%m-%dT%H:%M:%S.%fZ"


def moment(source, **options):
    return serializers.DateTimeField(source=source, format=TIMES, **options)


class PlainConnection(serializers.ModelSerializer):
    connectionId = serializers.CharField(source="connection_id")
    imageUrl = serializers.CharField(source="image_url")
    myDid = serializers.CharField(source="my_key.did", default=None)
    theirDid = serializers.CharField(source="their_did")
    myKey = serializers.CharField(source="my_key.verkey", default=None)
    theirKey = serializers.CharField(source="their_key")
    invitation = serializers.SerializerMethodField()
    invitationUrl = serializers.CharField(source="invitation_url")
    endpoint = serializers.SerializerMethodField()
    createdAtUtc = moment("created_at")
    updatedAtUtc = moment("updated_at")
    multiParty = serializers.BooleanField(source="multi_party")

    class Meta:
        model = Connection
        fields = (
            "connectionId", "name", "imageUrl", "myDid", "theirDid", "myKey",
            "theirKey", "state", "invitation", "invitationUrl", "endpoint",
            "createdAtUtc", "updatedAtUtc", "multiParty",
        )  # fmt: skip

    def get_invitation(self, row):
        return encoded_message(row) if row.token else None

    def get_endpoint(self, row):
        if not row.their_key:
            return None
        return {
            "did": row.their_did,
            "verkey": [row.their_key],
            "uri": row.their_endpoint,
        }


class PlainCredential(serializers.ModelSerializer):
    credentialId = serializers.UUIDField(source="id")
    connectionId = serializers.CharField(
        source="connection.connection_id", default=None
    )
    createdAtUtc = moment("created_at")
    updatedAtUtc = moment("updated_at")
    definitionId = serializers.CharField(source="definition_id")
    schemaId = serializers.CharField(source="schema_id")
    issuedAtUtc = moment("issued_at")
    IssuedAtUtc = moment("issued_at")
    acceptedAtUtc = moment("accepted_at")
    threadId = serializers.CharField(source="thread_id")
    values = serializers.SerializerMethodField()

    class Meta:
        model = Credential
        fields = (
            "credentialId", "state", "connectionId", "definitionId", "schemaId",
            "issuedAtUtc", "IssuedAtUtc", "acceptedAtUtc", "values", "threadId",
            "createdAtUtc", "updatedAtUtc", "format",
        )  # fmt: skip

    def get_values(self, row):
        return vault.unseal(row, "values")


class PlainVerification(serializers.ModelSerializer):
    verificationId = serializers.UUIDField(source="id")
    connectionId = serializers.CharField(
        source="connection.connection_id", default=None
    )
    createdAtUtc = moment("created_at")
    updatedAtUtc = moment("updated_at")
    isValid = serializers.BooleanField(source="is_valid")
    verifiedAtUtc = moment("verified_at")
    threadId = serializers.CharField(source="thread_id")
    proof = serializers.SerializerMethodField()
    checks = serializers.SerializerMethodField()
    policy = serializers.SerializerMethodField()
    proposal = serializers.SerializerMethodField()

    class Meta:
        model = Verification
        fields = (
            "verificationId", "connectionId", "state", "createdAtUtc", "updatedAtUtc",
            "isValid", "verifiedAtUtc", "proof", "checks", "policy", "proposal",
            "threadId", "format",
        )  # fmt: skip

    def get_proof(self, row):
        return row.unsealed_proof()

    def get_checks(self, row):
        return row.unsealed_checks()

    def get_policy(self, row):
        return row.unsealed_policy().to_json()

    def get_proposal(self, row):
        return row.unsealed_proposal()


LISTS = {
    "connections": (Connection, PlainConnection, "my_key"),
    "credentials": (Credential, PlainCredential, "connection"),
    "verifications": (Verification, PlainVerification, "connection"),
}


def plain(name, is_joined):
    """The list as a view of plain DRF."""
    model, serializer, related = LISTS[name]

    class Plain(generics.ListAPIView):
        authentication_classes = [TenantAuthentication]
        serializer_class = serializer

        def get_queryset(self):
            rows = model.objects.filter(tenant=self.request.user.tenant)
            rows = rows.filter(wallet__is_organization=True).order_by("-pk")
            return (rows.select_related(related) if is_joined else rows)[:ROWS]

    return Plain.as_view()


compared = [
    *(path(f"plain/{name}", plain(name, False)) for name in LISTS),
    *(path(f"joined/{name}", plain(name, True)) for name in LISTS),
]
urlpatterns = [path("", include(urls)), *compared]
api_routes = [*urls.api_routes, *compared]  # so that all have the same middleware


def run():
    api_segments.cache_clear()
    with override_settings(ROOT_URLCONF="bench.lists"):
        caller = InProcess().prepare()
        caller.cycle()
        fill(
            *(
                model.objects.filter(wallet__is_organization=True).latest("pk")
                for model, *_ in LISTS.values()
            )
        )
        for name in LISTS:
            compare(caller.client, name)


def fill(met, *exchanges):
    """Copy credentials and verifications of a connection, each with a connection."""
    for _ in range(ROWS - 1):
        my_key = met.wallet.create_key()
        of = copy(met, my_key=my_key, invitation_key=None, token=uuid.uuid4().hex)
        for row in exchanges:
            copy(row, connection=of)


def copy(row, **changes):
    """A new row with the same contents, and columns encrypted for the new row."""
    fields = {
        field.name: getattr(row, field.name) for field in row._meta.concrete_fields
    }
    made = type(row)(
        **{name: value for name, value in fields.items() if name != "id"} | changes
    )
    for name, value in fields.items():
        if isinstance(value, bytes | memoryview):
            vault.seal(made, name, vault.unseal(row, name))
    if isinstance(made, Connection):
        made.connection_id = str(made.pk)
    made.save(force_insert=True)
    return made


def compare(client, name):
    ours = f"/{name}?limit={ROWS}"
    addresses = {"ours": ours, "plain": f"/plain/{name}", "joined": f"/joined/{name}"}
    expected = get(client, ours)
    if len(expected) != ROWS or any(
        get(client, one) != expected for one in addresses.values()
    ):
        raise RuntimeError(f"the answers differ: {name}")
    rounds = [
        {kind: seconds(client, one) for kind, one in addresses.items()}
        for _ in range(ROUNDS)
    ]
    for kind, address in addresses.items():
        median = statistics.median(one[kind] for one in rounds) * 1000
        ratio = statistics.median(one[kind] / one["ours"] for one in rounds)
        count = queries(client, address)
        print(f"{name:14} {kind:7} {median:6.1f} ms  {ratio:5.2f}  {count:4} queries")


def get(client, address):
    response = client.get(address)
    if response.status_code != 200:
        raise RuntimeError(f"{address}: {response.status_code} {response.content}")
    return with_values(response.json())


def with_values(value):
    """Without the members that have none: plain DRF shows them, we do not."""
    if isinstance(value, list):
        return [with_values(one) for one in value]
    if isinstance(value, dict):
        return {
            name: with_values(one)
            for name, one in value.items()
            if one not in (None, "")
        }
    return value


def seconds(client, address):
    started = time.perf_counter()
    client.get(address)
    return time.perf_counter() - started


def queries(client, address):
    with CaptureQueriesContext(connection) as captured:
        client.get(address)
    return len(captured)
