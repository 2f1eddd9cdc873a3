"""Every HTML page of the product, and the rows of an organization that fill them.

A route that is in none of PAGES and NO_PAGES fails test_routes. So a new page is in
the tests of this folder from its first day.
"""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.contrib import admin
from django.contrib.auth.models import User
from django.core import mail
from django.test import RequestFactory
from django.urls import get_resolver, reverse
from django.urls.resolvers import URLResolver
from django.utils import timezone
from rest_framework.views import APIView

from agency.web_wallet.links import create_link
from connections.models import Connection, OutboundMessage
from credentials.bulk import issuing
from credentials.models import Credential, CredentialDefinition, Schema
from tenants import audit, vault
from tenants.models import (
    ApiKey,
    Erasure,
    FormerDataKey,
    LoggedRequest,
    Membership,
    Tenant,
)
from tests.agency.pages.people import (
    asked_again,
    half_signed_in,
    key_of_mail,
    make_guarded,
    resets_password,
    signed_in_as_staff,
)
from tests.agency.studio.conftest import browser_of, person
from tests.agency.web_wallet.conftest import opens_wallet
from tests.support.pages import Browser
from tests.support.people import Api, Holder
from verifications.models import Verification, VerificationPolicy
from wallets.models import Wallet
from webhooks.models import Attempt

EXCHANGES = ("connection", "credential", "verification")
OWNER, INVITED, VISITOR = "owner", "invited", "visitor"
STAFF, CONFIRMED, GUARDED = "staff", "confirmed", "guarded"
HALFWAY, FORGETFUL = "halfway", "forgetful"
# Alone sees the values of credentials.
HOLDER = "holder"


@dataclass(frozen=True)
class Names:
    """What the organization and its objects are called."""

    organization: str
    holder: str
    schema: str
    attribute: str
    policy: str
    webhook: str


WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtenge"
assert len(WORD) == 70
# Names that a narrow page must break, and those of pictures.
LONG = Names(
    f"Faber {WORD}", f"Alice {WORD}", WORD[:60], f"year of {WORD}", WORD, WORD.lower()
)
SHORT = Names("Faber College", "Alice", "Degree", "year", "Degree check", "events")

# Who opens a page, by the name of its route.
PAGES: dict[str, str] = {
    "studio:home": VISITOR,
    "account_login": VISITOR,
    "account_signup": VISITOR,
    "studio:account_reset_password": VISITOR,
    "account_reset_password_done": VISITOR,
    "account_email_verification_sent": VISITOR,
    "account_inactive": VISITOR,
    "invitation": VISITOR,
    "link_sheet": VISITOR,
    "kiosk": VISITOR,
    "web_wallet:left": VISITOR,
    "web_wallet:leave": HOLDER,
    "web_wallet:pin": HOLDER,
    "web_wallet:switch": HOLDER,
    "web_wallet:cards": HOLDER,
    "web_wallet:inbox": HOLDER,
    "web_wallet:offer": HOLDER,
    "web_wallet:request": HOLDER,
    "web_wallet:history": HOLDER,
    "web_wallet:accept_link": HOLDER,
    "web_wallet:keep": HOLDER,
    "docs": VISITOR,
    "error_codes": VISITOR,
    "account_logout": OWNER,
    "studio:account_email": OWNER,
    "account_change_password": OWNER,
    "account_reauthenticate": OWNER,
    "mfa_index": OWNER,
    "studio:sessions": OWNER,
    "studio:language": OWNER,
    "studio:organizations": OWNER,
    "studio:new_organization": OWNER,
    "studio:organization": OWNER,
    "studio:rotate_key": OWNER,
    "studio:revoke_key": OWNER,
    "studio:search": OWNER,
    "studio:wallets": OWNER,
    "studio:wallet": OWNER,
    "studio:new_wallet": OWNER,
    "studio:remove_wallet": OWNER,
    "studio:wallet_connections": OWNER,
    "studio:wallet_credentials": OWNER,
    "studio:wallet_verifications": OWNER,
    "studio:connections": OWNER,
    "studio:connection": OWNER,
    "studio:chat": OWNER,
    "studio:new_connection": OWNER,
    "studio:definitions": OWNER,
    "studio:definition": OWNER,
    "studio:definition_revocation": OWNER,
    "studio:new_definition": OWNER,
    "studio:new_credential": OWNER,
    "studio:kiosks": OWNER,
    "studio:sandbox": OWNER,
    "studio:new_simulated_holder": OWNER,
    "studio:simulated_holder": OWNER,
    "studio:new_kiosk": OWNER,
    "studio:revoke_kiosk": OWNER,
    "studio:bulks": OWNER,
    "studio:bulk": OWNER,
    "studio:remove_bulk": OWNER,
    "studio:policies": OWNER,
    "studio:policy": OWNER,
    "studio:new_policy": OWNER,
    "studio:new_verification": OWNER,
    "studio:revoke_credential": OWNER,
    "studio:credentials": OWNER,
    "studio:credential": OWNER,
    "studio:verifications": OWNER,
    "studio:verification": OWNER,
    "studio:remove_connection": OWNER,
    "studio:end_connection": OWNER,
    "studio:api_docs": OWNER,
    "studio:requests": OWNER,
    "studio:events": OWNER,
    "studio:event": OWNER,
    "studio:webhooks": OWNER,
    "studio:webhook": OWNER,
    "studio:rotate_secret": OWNER,
    "studio:remove_webhook": OWNER,
    "studio:delivery": OWNER,
    "studio:log": OWNER,
    "studio:members": OWNER,
    "studio:leave": OWNER,
    "studio:settings": OWNER,
    "studio:delete_organization": OWNER,
    "studio:remove_member": OWNER,
    "studio:invitation": INVITED,
    "account_confirm_email": VISITOR,
    "account_reset_password_from_key": FORGETFUL,
    "account_reset_password_from_key_done": VISITOR,
    "mfa_authenticate": HALFWAY,
    "mfa_reauthenticate": GUARDED,
    "mfa_activate_totp": CONFIRMED,
    "mfa_deactivate_totp": GUARDED,
    "mfa_view_recovery_codes": GUARDED,
    "mfa_generate_recovery_codes": GUARDED,
    "mfa_list_webauthn": GUARDED,
    "mfa_add_webauthn": CONFIRMED,
    "mfa_edit_webauthn": GUARDED,
    "mfa_remove_webauthn": GUARDED,
    "admin:index": STAFF,
    "admin:app_list": STAFF,
    "admin:search": STAFF,
    "admin:support_action": STAFF,
    "admin:password_change_done": STAFF,
    "queues": STAFF,
}
# The query strings with which a page is opened too.
QUERIES = {
    "studio:organization": ["?days=30"],
    "studio:search": ["?q=alice", "?q=nobody"],
    "studio:wallets": ["?q=nobody", "?sort=size"],
    "studio:connections": ["?q=alice&state=Connected"],
    "studio:wallet_connections": ["?q=nobody"],
    "studio:new_definition": ["?schema={schema_id}"],
    "studio:new_policy": [
        "?definition={definition_id}",
        "?policy={policy_id}",
        "?view=builder",
        "?q=nobody",
    ],
    "studio:new_verification": ["?policy={policy_id}", "?q=", "?q=nobody"],
    "studio:new_kiosk": ["?policy={policy_id}", "?q="],
    "studio:new_credential": ["?definition={definition_id}", "?q=", "?q=nobody"],
    "studio:requests": ["?status=4xx&method=GET", "?status=ok", "?paused=1"],
    "studio:bulks": ["?definition={definition_id}"],
    "admin:search": ["?q=alice", "?q=nobody"],
}
# Without a query they lead on, as there is one thing to choose from.
CHOOSERS = ("studio:new_credential", "studio:new_kiosk", "studio:new_verification")
ACTION = "a form is posted there, and a page of PAGES follows"
DATA = "no HTML, or only a part of a page"
MOVED = "leads to another page"
NO_PAGES: dict[str, str] = {
    "studio:": MOVED,
    "docs/": MOVED,
    "account_email": "studio:account_email has its address",
    "account_reset_password": "studio:account_reset_password has its address",
    "account_set_password": MOVED,
    "usersessions_list": "studio:sessions has its address",
    "studio:end_session": ACTION,
    "studio:end_other_sessions": ACTION,
    "account_confirm_login_code": MOVED,
    "link_status": DATA,
    "link_colors": DATA,
    "open_wallet": MOVED,
    "kiosk_screen": DATA,
    "kiosk_colors": DATA,
    "invitation_qr": DATA,
    "docs_examples": DATA,
    "studio:api_docs_ids": DATA,
    "openapi": DATA,
    "metrics": DATA,
    "didcomm": DATA,
    "tails/<str:tailsHash>": DATA,
    r"^assets/(?P<name>[\w-]{22}\.(?P<ending>png|jpg|webp|gif))$": DATA,
    "admin:login": MOVED,
    "admin:logout": ACTION,
    "admin:autocomplete": DATA,
    "admin:jsi18n": DATA,
    "admin:view_on_site": MOVED,
    "admin:": "leads to the page of an object, or is 404",
    "studio:new_key": ACTION,
    "studio:new_webhook": ACTION,
    "studio:enable_webhook": ACTION,
    "studio:disable_webhook": ACTION,
    "studio:send_example": ACTION,
    "studio:recover_webhook": ACTION,
    "studio:resend_delivery": ACTION,
    "studio:organization_live": DATA,
    "studio:chat_live": DATA,
    "studio:connection_live": DATA,
    "studio:credential_live": DATA,
    "studio:verification_live": DATA,
    "studio:credential_reveal": ACTION,
    "studio:verification_reveal": ACTION,
    "studio:credential_cancel": ACTION,
    "studio:verification_cancel": ACTION,
    "studio:connection_resend": ACTION,
    "studio:accept_connection": ACTION,
    "studio:ping_connection": ACTION,
    "studio:rotate_connection": ACTION,
    "studio:retry_publication": ACTION,
    "studio:issue_credential": ACTION,
    "studio:check_card": ACTION,
    "studio:bulk_live": DATA,
    "studio:bulk_result": DATA,
    "studio:bulk_template": DATA,
    "studio:pause_bulk": ACTION,
    "studio:resume_bulk": ACTION,
    "studio:retry_bulk": ACTION,
    "studio:connect_wallet": ACTION,
    "studio:recipients": DATA,
    "studio:issue_to_wallet": ACTION,
    "studio:set_up_samples": ACTION,
    "studio:create_wallet_link": ACTION,
    "studio:revoke_wallet_link": ACTION,
    "web_wallet:open": MOVED,
    "web_wallet:new": ACTION,
    "web_wallet:colors": DATA,
    "web_wallet:inbox_part": DATA,
    "web_wallet:offer_part": DATA,
    "web_wallet:request_part": DATA,
    "studio:credential_accept": ACTION,
    "studio:verification_accept": ACTION,
    "studio:credential_resend": ACTION,
    "studio:verification_resend": ACTION,
    "studio:log_csv": DATA,
    "studio:open_invitation": MOVED,
    "studio:invite": ACTION,
    "studio:change_role": ACTION,
    "studio:resend_invitation": ACTION,
    "studio:withdraw_invitation": ACTION,
    "studio:change_requirement": ACTION,
    "mfa_download_recovery_codes": DATA,
    "mfa_reauthenticate_webauthn": "needs a device: test_people_in_a_browser has one",
    "mfa_login_webauthn": DATA,
}
# The pages that Django's admin makes for each model: World.records() has them.
OF_A_MODEL = re.compile(r"^admin:\w+_(add|change|changelist|delete|history)$")
# What the world has no row of. Their lists are opened, and no record.
NO_RECORD = {
    "agreementacceptance", "asset", "dailyusage",
    "didendpoint",
    "idempotencykey", "inboundmessage", "logentry", "publication",
    "revocationregistry", "sparekey", "statuslist",
}  # fmt: skip


def html_routes() -> list[str]:
    """The names of all routes that a browser may open, or else their patterns."""
    return [
        name
        for name, route, view in walk_routes(get_resolver().url_patterns)
        if not OF_A_MODEL.match(name) and (name == "docs" or not is_api(view))
    ]


def is_api(view: Any) -> bool:
    return issubclass(getattr(view, "cls", object), APIView)


def walk_routes(patterns: Any, prefix: str = "", space: str = "") -> Any:
    """Yield the name, the pattern and the view of each route."""
    for one in patterns:
        route = prefix + str(one.pattern)
        if isinstance(one, URLResolver):
            inner = f"{space}{one.namespace}:" if one.namespace else space
            yield from walk_routes(one.url_patterns, route, inner)
        else:
            yield space + (one.name or "") or route, route, one.callback


@dataclass
class World:
    """Faber College of Fay, with a few objects of each kind and long names."""

    college: Any
    owner: Any  # the test client of Fay
    invited: Any
    visitor: Any
    staff: Any
    confirmed: Any
    guarded: Any
    halfway: Any
    forgetful: Any
    holder: Any
    ids: dict[str, Any]
    api: Api
    offer: dict[str, Any]
    policy: dict[str, Any]
    parts: dict[str, dict[str, Any]]  # of addresses, by the name of the route

    def add_objects(self, number: int) -> None:
        """One more of each kind, some of them on the connection of the pages."""
        connection = Connection.objects.get(pk=self.ids["connection_id"])
        to = connection.connection_id
        self.api.post("/api/wallets", {"ownerName": f"Alice {number}"})
        self.api.post("/connections", {"name": f"Alice {number}"})
        self.api.post("/credentials", self.offer | {"connectionId": to})
        self.api.post("/messages", {"connectionId": to, "text": f"{number}"})
        policy = self.policy | {"name": f"Policy {number}"}
        self.api.post(f"/verifications/policy/connections/{to}", policy)
        desk = {"name": f"Desk {number}", "policyId": str(self.ids["policy_id"])}
        self.api.post("/kiosks", desk)
        zapier = {"url": f"https://alice.example/{number}", "type": "Zapier"}
        self.api.post("/webhooks", zapier)
        hook = self.ids["webhook_id"]
        example = {"messageType": "verification"}
        self.api.post(f"/webhooks/{hook}/example", example)
        send_rows(self.api, self.offer, number + 2)
        log_call(self.college.tenant)
        ApiKey.issue(ApiKey.Kind.ACCESS_TOKEN, self.college.tenant, f"Key {number}")

    def addresses(self, records: bool = False) -> list[tuple[str, str]]:
        """`(person, address)` of each page. records: also of those that Django makes."""
        named = self.named_addresses() + (self.records() if records else [])
        return [(who, address) for _, who, address in named]

    def records(self) -> list[tuple[str, str, str]]:
        """`(name, person, address)` of the lists and forms that Django makes."""
        found = []
        for model, pages in admin.site._registry.items():
            name = f"{model._meta.app_label}_{model._meta.model_name}"
            found.append((f"{name}_changelist", []))
            if pages.has_add_permission(self.request):
                found.append((f"{name}_add", []))
            row = model._default_manager.order_by("pk").first()
            if row is None:
                assert model._meta.model_name in NO_RECORD, name
                continue
            found += [(f"{name}_change", [row.pk]), (f"{name}_history", [row.pk])]
            if pages.has_delete_permission(self.request, row):
                found.append((f"{name}_delete", [row.pk]))
        return [
            (f"admin_{name}", STAFF, reverse(f"admin:{name}", args=[*keys]))
            for name, keys in found
        ]

    @property
    def request(self) -> Any:
        """A request of the staff, as the admin asks for it."""
        request = RequestFactory().get("/")
        request.user = User.objects.get(username="sue")
        return request

    def named_addresses(self) -> list[tuple[str, str, str]]:
        """The same with a name that is unique and fits a file."""
        return [
            (
                re.sub(
                    r"[^a-z0-9]+",
                    "_",
                    f"{name}{query}".lower(),
                ),
                who,
                self.address(name) + query.format(**self.ids),
            )
            for name, who in PAGES.items()
            for query in ["", *QUERIES.get(name, [])]
            if query or name not in CHOOSERS
        ]

    def address(self, name: str) -> str:
        """The address of a route, with the world's ids."""
        kinds = (*EXCHANGES, "bulk", "wallet", "definition", "policy")
        kind = next((kind for kind in kinds if kind in name), "connection")
        ids = self.ids | {"object_id": self.ids.get(f"{kind}_id")}
        route = next(
            route
            for found, route, _ in walk_routes(get_resolver().url_patterns)
            if found == name
        )
        if name in self.parts:
            return reverse(name, kwargs=self.parts[name])
        names = re.findall(r"<\w+:(\w+)>", route)
        return reverse(name, kwargs={name: ids[name] for name in names})


def open_in(holder: Holder, model: Any) -> Any:
    """The key of the newest offer or request in a wallet."""
    rows = model.objects.filter(wallet__wallet_id=holder.wallet_id)
    return rows.latest("pk").pk


def send_rows(api: Api, offer: dict[str, Any], number: int) -> str:
    """Send a file of rows, each of which is wrong. Return the id of the bulk."""
    rows = [{"credentialValues": {}}] * number
    path = f"/credentials/bulk?definitionId={quote(offer['definitionId'])}"
    made = api.post(path, rows)
    issuing.loop.run()
    return str(made["bulkId"])


def log_call(tenant: Any) -> None:
    """Write a call of the API to the log, as a process does a second later."""
    LoggedRequest.objects.create(
        tenant=tenant,
        key=tenant.keys.filter(kind="access_token").first(),
        method="GET",
        route="/custodian/v1/api/{walletId}/verifications/{verificationId}",
        status=404,
        error_code="not_found",
        milliseconds=7,
        request_id="0196f3a9-1111-7000-8000-000000000002",
        address="198.51.100.7",
    )


def build_world(college: Any, fay: User, client: Any, called: Names = LONG) -> World:
    """Use the API as a developer of the organization, and a holder, do."""
    api = Api(college.access_token, college.subscription_key)
    tenant = college.tenant
    tenant.name = called.organization
    tenant.save()
    hook = api.post("/webhooks", {"url": f"https://office.example/{called.webhook}"})
    sent = api.post(f"/webhooks/{hook['id']}/example", {"messageType": "verification"})
    alice = Holder(
        api, api.post("/api/wallets", {"ownerName": called.holder})["walletId"]
    )
    met = api.post("/connections", {"name": called.holder})
    alice.accepts_invitation(met["invitation"])
    to = met["connectionId"]
    names = ["name", called.attribute]
    schema = {"name": called.schema, "version": "1.0", "attributes": names}
    definition = api.post("/definitions/credentials", schema)["definitionId"]
    values = {"name": "Balthazar-4711", names[1]: "2021"}
    offer = {"definitionId": definition, "credentialValues": values}
    api.post("/credentials", offer | {"connectionId": to, "automaticIssuance": True})
    alice.accepts_offer()
    policy = {
        "name": called.policy,
        "version": "1.0",
        "attributes": [{"policyName": "name", "attributeNames": ["name"]}],
    }
    api.post(f"/verifications/policy/connections/{to}", policy)
    alice.auto_selects()
    stored = api.post("/verificationPolicies", policy)["policyId"]
    desk = {"name": called.holder, "policyId": stored, "shownItems": ["name"]}
    kiosk = api.post("/kiosks", desk)
    Tenant.objects.filter(pk=tenant.pk).update(is_test=True)
    # As long as the name of the other holder, but not the same.
    rex = {"name": called.holder[::-1], "behaviour": "accept", "delaySeconds": 600}
    simulated = api.post("/sandbox/holders", rex)
    asked_rex = f"/verifications/policy/connections/{simulated['connectionId']}"
    api.post(asked_rex, policy)
    api.post("/messages", {"connectionId": to, "text": "Hello, Alice"})
    hers = alice.get("/connections")[0]["connectionId"]
    alice.post("/messages", {"connectionId": hers, "text": "Hello"})
    # These wait in the inbox.
    api.post("/credentials", offer | {"connectionId": to})
    api.post(f"/verifications/policy/connections/{to}", policy)
    Attempt.objects.create(
        delivery_id=sent["deliveryId"],
        number=1,
        started_at=timezone.now(),
        duration_ms=7,
        status_code=500,
    )
    lost = OutboundMessage(
        tenant=tenant,
        my_key=Wallet.objects.get(tenant=tenant, is_organization=True).public_key,
        recipient_key="key",
        endpoint="https://phone.example",
        is_hosted=False,
        type="basicmessage/1.0/message",
        thread_id="1",
        status=OutboundMessage.Status.EXHAUSTED,
        attempts=10,
    )
    vault.seal(lost, "body", {"content": "Hello"})
    lost.save()
    log_call(tenant)
    Erasure.objects.create(kind="wallet", object_key=tenant.pk)
    FormerDataKey.objects.create(tenant=tenant, generation=9, master_key_id="1")
    link = api.post("/credentials", offer)["offerUrl"]
    mate = Membership.objects.create(tenant=tenant, user=person("vic"), role="viewer")
    owner = browser_of(fay)
    ida = {"email": "ida@faber.example", "role": "viewer"}
    owner.send(f"/studio/organizations/{tenant.pk}/members/invite", **ida)
    [path] = re.findall(r"/invitations/\S+", mail.outbox[-1].body)
    invited = Browser()
    invited.get(path)
    kinds = {Connection: "connection", Credential: "credential"}
    guarded, passkey = make_guarded()
    holder = opens_wallet(alice)
    other = Wallet.objects.get(owner_name=rex["name"])
    holder.get(f"/w/{create_link(other, by=audit.SYSTEM).token}")
    forgetful, parts = resets_password()
    found = {
        f"{kind}_id": model.objects.filter(wallet__is_organization=True).first().pk
        for model, kind in (kinds | {Verification: "verification"}).items()
    }
    return World(
        college,
        owner,
        invited,
        client,
        signed_in_as_staff(),
        asked_again(fay),
        asked_again(guarded),
        half_signed_in(),
        forgetful,
        holder,
        found
        | {
            "tenant_id": tenant.pk,
            "key_id": tenant.keys.get(kind="access_token").pk,
            "webhook_id": hook["id"],
            "delivery_id": sent["deliveryId"],
            "event_id": api.get("/events")[0]["eventId"],
            "definition_id": CredentialDefinition.objects.get(tenant=tenant).pk,
            "bulk_id": send_rows(api, offer, 2),
            "policy_id": VerificationPolicy.objects.get(tenant=tenant).pk,
            "schema_id": quote(Schema.objects.get(tenant=tenant).schema_id),
            "kiosk_id": kiosk["kioskId"],
            "holder_id": simulated["holderId"],
            "wallet_id": Wallet.objects.get(owner_name=called.holder).pk,
            "member_id": mate.pk,
            "token": link.rpartition("/i/")[2],
        },
        api,
        offer,
        policy,
        {
            "kiosk": {"token": kiosk["url"].rpartition("/")[2]},
            "account_confirm_email": {"key": key_of_mail()},
            "account_reset_password_from_key": parts,
            "mfa_edit_webauthn": {"pk": passkey.pk},
            "mfa_remove_webauthn": {"pk": passkey.pk},
            "admin:app_list": {"app_label": "tenants"},
            "web_wallet:offer": {"object_id": open_in(alice, Credential)},
            "web_wallet:request": {"object_id": open_in(alice, Verification)},
            "admin:support_action": {"name": "add-member", "key": str(tenant.pk)},
        },
    )
