"""Every HTML page of the product, and the rows of an organization that fill them.

A route that is in none of PAGES and NO_PAGES fails test_routes. So a new page is in
the tests of this folder from its first day.
"""

import re
from functools import cache, partial
from typing import Any
from urllib.parse import quote

from django.contrib import admin
from django.contrib.auth.models import User
from django.core import mail
from django.db import transaction
from django.test import RequestFactory
from django.urls import get_resolver, reverse
from django.urls.resolvers import URLResolver
from django.utils import timezone
from rest_framework.views import APIView

from agency.holders.wallet.links import create_link
from agency.holders.wallet.mail_address import confirmation_url
from agency.mails.unsubscribing import link_for
from connections.models import Connection, OutboundMessage
from credentials.ledgers.webvh import own_did
from credentials.models import Credential, CredentialDefinition, Schema
from tenants import audit, vault
from tenants.models import ApiKey, Membership, Tenant
from tests.agency.holders.wallet.conftest import opens_wallet
from tests.agency.pages.people import (
    asked_again,
    half_signed_in,
    key_of_mail,
    make_guarded,
    resets_password,
    signed_in_as_staff,
)
from tests.agency.studio.conftest import browser_of, confirmed, person
from tests.factories import (
    AttemptFactory,
    ErasureFactory,
    FormerDataKeyFactory,
    LoggedRequestFactory,
    MembershipFactory,
    OutboundMessageFactory,
)
from tests.support import world
from tests.support.database import Template
from tests.support.pages import Browser
from tests.support.people import Holder, Organization
from tests.support.sd_jwt import Authority
from tests.support.world import Names
from verifications.models import Verification, VerificationPolicy
from wallets.models import SigningKey, TrustAnchor, Wallet

EXCHANGES = ("connection", "credential", "verification")
OWNER, INVITED, VISITOR = "owner", "invited", "visitor"
STAFF, CONFIRMED, GUARDED = "staff", "confirmed", "guarded"
HALFWAY, FORGETFUL = "halfway", "forgetful"
# Alone sees the values of credentials.
HOLDER = "holder"


WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtenge"
assert len(WORD) == 70
# Names that a narrow page must break, and those of pictures.
VALUE = "Balthazar-4711"
LONG = Names(
    f"Faber {WORD}",
    f"Alice {WORD}",
    WORD[:60],
    f"year of {WORD}",
    WORD,
    WORD.lower(),
    VALUE,
)
SHORT = Names(schema="Degree", attribute="year", policy="Degree check", value=VALUE)

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
    "unsubscribe": VISITOR,
    "kiosk": VISITOR,
    "web_wallet:left": VISITOR,
    "web_wallet:offline": VISITOR,
    "web_wallet:leave": HOLDER,
    "web_wallet:pin": HOLDER,
    "web_wallet:switch": HOLDER,
    "web_wallet:cards": HOLDER,
    "web_wallet:inbox": HOLDER,
    "web_wallet:add": HOLDER,
    "web_wallet:show": HOLDER,
    "web_wallet:passkey": HOLDER,
    "web_wallet:shown_card": VISITOR,
    "web_wallet:offer": HOLDER,
    "web_wallet:request": HOLDER,
    "web_wallet:history": HOLDER,
    "web_wallet:accept_link": HOLDER,
    "web_wallet:keep": HOLDER,
    "web_wallet:me": HOLDER,
    "web_wallet:confirm_mail": VISITOR,
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
    "studio:keys": OWNER,
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
    "studio:connections_chosen": OWNER,
    "studio:connection": OWNER,
    "studio:connection_person": OWNER,
    "studio:credential_person": OWNER,
    "studio:chat": OWNER,
    "studio:new_connection": OWNER,
    "studio:definitions": OWNER,
    "studio:definition": OWNER,
    "studio:definition_revocation": OWNER,
    "studio:definition_design": OWNER,
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
    "studio:bulk_print": OWNER,
    "studio:remove_bulk": OWNER,
    "studio:mail_bulk": OWNER,
    "studio:mail_credential": OWNER,
    "studio:policies": OWNER,
    "studio:policy": OWNER,
    "studio:scan_card": OWNER,
    "studio:new_policy": OWNER,
    "studio:new_verification": OWNER,
    "studio:revoke_credential": OWNER,
    "studio:credentials": OWNER,
    "studio:credentials_chosen": OWNER,
    "studio:credential": OWNER,
    "studio:credential_sheet": OWNER,
    "studio:verifications": OWNER,
    "studio:verifications_chosen": OWNER,
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
    "studio:imported": OWNER,
    "studio:leave": OWNER,
    "studio:settings": OWNER,
    "studio:webvh_did": OWNER,
    "studio:rotate_webvh": OWNER,
    "studio:end_webvh": OWNER,
    "studio:trust": OWNER,
    "studio:new_trust_anchor": OWNER,
    "studio:remove_trust_anchor": OWNER,
    "studio:use_own_certificates": OWNER,
    "studio:delete_organization": OWNER,
    "studio:deletion": OWNER,
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
    "studio:settings": ["?tab=holders", "?tab=privacy", "?tab=developers"],
    "studio:search": ["?q=alice", "?q=nobody"],
    "studio:wallets": ["?q=nobody", "?sort=size"],
    "studio:connections": ["?q=alice&state=Connected"],
    "studio:connections_chosen": ["?act=links&chosen={connection_id}"],
    "studio:credentials_chosen": [
        "?act=revoke&chosen={credential_id}",
        "?act=links&chosen={offer_id}",
    ],
    "studio:verifications_chosen": ["?act=again&chosen={verification_id}"],
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
# Without a query they lead on, as there is one thing to choose from, or none is chosen.
CHOOSERS = (
    "studio:new_credential",
    "studio:new_kiosk",
    "studio:new_verification",
    "studio:connections_chosen",
    "studio:credentials_chosen",
    "studio:verifications_chosen",
)
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
    "web_wallet:kiosk_card": DATA,
    "web_wallet:show_part": DATA,
    "web_wallet:open_by_passkey": ACTION,
    "web_wallet:remove_passkey": ACTION,
    "kiosk_colors": DATA,
    "invitation_qr": DATA,
    "docs_examples": DATA,
    "studio:api_docs_ids": DATA,
    "openapi": DATA,
    "metrics": DATA,
    ".well-known/security.txt": DATA,
    "didcomm": DATA,
    "openid/<uuid:tenantId>/offers/<str:token>": DATA,
    "openid/<uuid:tenantId>/token": DATA,
    "openid/<uuid:tenantId>/nonce": DATA,
    "openid/<uuid:tenantId>/credential": DATA,
    "openid/<uuid:tenantId>/deferred_credential": DATA,
    "openid/<uuid:tenantId>/notification": DATA,
    "openid/<uuid:tenantId>/types/<uuid:definitionId>": DATA,
    "openid/<uuid:tenantId>/status/<int:number>": DATA,
    ".well-known/openid-credential-issuer/openid/<uuid:tenantId>": DATA,
    ".well-known/oauth-authorization-server/openid/<uuid:tenantId>": DATA,
    ".well-known/jwt-vc-issuer/openid/<uuid:tenantId>": DATA,
    "openid/<uuid:tenantId>/requests/<str:token>": DATA,
    "openid/<uuid:tenantId>/responses/<str:token>": DATA,
    "tails/<str:tailsHash>": DATA,
    "issuers/check/<str:nonce>": DATA,
    "issuers/<str:segment>/did.jsonl": DATA,
    "issuers/<str:segment>/resources/<str:digest>": DATA,
    r"^assets/(?P<name>[\w-]{22}\.(?P<ending>png|jpg|webp|gif))$": DATA,
    "admin:login": MOVED,
    "admin:logout": ACTION,
    "admin:autocomplete": DATA,
    "admin:jsi18n": DATA,
    "admin:view_on_site": MOVED,
    "admin:": "leads to the page of an object, or is 404",
    "studio:first_keys": ACTION,
    "studio:new_key": ACTION,
    "studio:make_webvh": ACTION,
    "studio:make_twin": ACTION,
    "studio:upload_certificates": ACTION,
    "studio:certificate_request": DATA,
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
    "studio:connection_reveal": ACTION,
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
    "studio:ask_again": ACTION,
    "studio:bulk_live": DATA,
    "studio:bulk_result": DATA,
    "studio:bulk_workbook": DATA,
    "studio:bulk_template": DATA,
    "studio:pause_bulk": ACTION,
    "studio:resume_bulk": ACTION,
    "studio:retry_bulk": ACTION,
    "studio:remind_bulk": ACTION,
    "studio:pause_mails": ACTION,
    "studio:resume_mails": ACTION,
    "studio:stop_mails": ACTION,
    "studio:connect_wallet": ACTION,
    "studio:recipients": DATA,
    "studio:issue_to_wallet": ACTION,
    "studio:set_up_samples": ACTION,
    "studio:create_wallet_link": ACTION,
    "studio:revoke_wallet_link": ACTION,
    "web_wallet:open": MOVED,
    "web_wallet:new": ACTION,
    "web_wallet:change_mail": ACTION,
    "web_wallet:colors": DATA,
    "web_wallet:manifest": DATA,
    "web_wallet:worker": DATA,
    "studio:settings_colors": DATA,
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
    "mfa_reauthenticate_webauthn": "needs a device: test_second_factor has one",
    "mfa_login_webauthn": DATA,
}
# The pages that Django's admin makes for each model: World.records() has them.
OF_A_MODEL = re.compile(r"^admin:\w+_(add|change|changelist|delete|history)$")
# What the world has no row of. Their lists are opened, and no record.
NO_RECORD = {
    "agreementacceptance", "asset", "dailyusage",
    "definitionformat", "didendpoint", "grant",
    "idempotencykey", "inboundmessage", "keyfiller", "keyrequest", "logentry",
    "mailday", "mailing", "mailingrow",
    "publication", "readlog", "readresource",
    "revocationregistry", "sparekey", "statuslist", "tokenstatuslist",
    "waitinganswer", "webvhdid", "webvhresource",
}  # fmt: skip


def html_routes() -> list[str]:
    """The names of all routes that a browser may open, or else their patterns."""
    return [
        name
        for name, route, view in walk_routes(get_resolver().url_patterns)
        if not OF_A_MODEL.match(name) and (name == "docs" or not is_api(view))
    ]


@cache
def patterns() -> dict[str, str]:
    """The patterns of all routes by their names."""
    return {name: route for name, route, _ in walk_routes(get_resolver().url_patterns)}


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


class World(world.World):
    """Faber College of Fay, the rows that only pages show, and who opens the pages.

    ids: by the names in the routes. parts: all of an address, by the name of its route.
    """

    def __init__(self, called: Names = LONG) -> None:
        self.fay = confirmed("fay")
        super().__init__(called, owner=self.fay)
        self.tenant = self.faber.tenant
        self.send_messages()
        self.add_rows_of_operators()
        self.ids = self.ids_of_rows()

    def send_messages(self) -> None:
        """An example that failed, a request for a simulated holder, a message lost."""
        url = f"https://office.example/{self.called.webhook}"
        self.hook = self.faber.post("/webhooks", {"url": url})["id"]
        example = self.faber.post(f"/webhooks/{self.hook}/example", world.EXAMPLE)
        self.delivery = example["deliveryId"]
        AttemptFactory(delivery_id=self.delivery)
        to = self.simulated["connectionId"]
        self.faber.post(f"/verifications/policy/connections/{to}", self.policy)
        lost = OutboundMessageFactory.build(
            tenant=self.tenant,
            my_key=Wallet.of_organization(self.tenant).public_key,
            status=OutboundMessage.Status.EXHAUSTED,
            attempts=10,
        )
        vault.seal(lost, "body", {"content": "Hello"})
        lost.save()
        self.link = self.faber.post("/credentials", self.wish)["offerUrl"]
        # These wait in the inbox.
        self.offered()
        self.asked()

    def add_rows_of_operators(self) -> None:
        log_call(self.tenant)
        with transaction.atomic():
            own_did.create(self.tenant, "agency.example.org")
        for purpose in SigningKey.Purpose:
            SigningKey.of(self.tenant, purpose)
        state = Authority("Example State")
        self.anchor = TrustAnchor.create(
            self.tenant, self.called.holder[:100], state.pem
        )
        ErasureFactory(object_key=self.tenant.pk)
        FormerDataKeyFactory(tenant=self.tenant)
        self.mate = MembershipFactory(
            tenant=self.tenant, user=person("vic"), role=Membership.Role.VIEWER
        )

    def ids_of_rows(self) -> dict[str, Any]:
        mine = {"tenant": self.tenant}
        kinds = {Connection: "connection", Credential: "credential"}
        found = {
            f"{kind}_id": model.objects.filter(wallet__is_organization=True).first().pk
            for model, kind in (kinds | {Verification: "verification"}).items()
        }
        return found | {
            "tenant_id": self.tenant.pk,
            # One that developers rotate too.
            "key_id": ApiKey.issue("access_token", self.tenant, "A", scopes=["read"])[
                0
            ].pk,
            "webhook_id": self.hook,
            "delivery_id": self.delivery,
            "event_id": self.faber.get("/events")[0]["eventId"],
            "definition_id": CredentialDefinition.objects.get(**mine).pk,
            "bulk_id": self.bulk(*[{"credentialValues": {}}] * 2),
            "policy_id": VerificationPolicy.objects.get(**mine).pk,
            "schema_id": quote(Schema.objects.get(**mine).schema_id),
            "kiosk_id": self.kiosk["kioskId"],
            "anchor_id": self.anchor.pk,
            "holder_id": self.simulated["holderId"],
            "wallet_id": Wallet.objects.get(owner_name=self.called.holder).pk,
            "member_id": self.mate.pk,
            "token": self.link.rpartition("/i/")[2],
            "offer_id": Connection.find_by_token(self.link.rpartition("/i/")[2])
            .credential_set.get()
            .pk,
        }

    def let_people_in(self) -> None:
        """Sign in everybody, as some pages show themselves for minutes only."""
        self.visitor, self.owner = Browser(), browser_of(self.fay)
        self.invited = self.accepts_invitation()
        guarded, passkey = make_guarded()
        self.staff, self.confirmed = signed_in_as_staff(), asked_again(self.fay)
        self.guarded, self.halfway = asked_again(guarded), half_signed_in()
        self.holder = opens_wallet(self.alice)
        other = Wallet.objects.get(owner_name=self.called.holder[::-1])
        given = create_link(other, by=audit.SYSTEM)
        self.holder.get(f"/w/{given.token}")
        given.mail_given_at = timezone.now()
        given.save()
        self.forgetful, parts = resets_password()
        self.parts = {
            "unsubscribe": {"token": link_for("ann@club.example").rpartition("/")[2]},
            "web_wallet:shown_card": {"token": "agc_x"},
            "kiosk": {"token": self.kiosk["url"].rpartition("/")[2]},
            "web_wallet:confirm_mail": {
                "token": confirmation_url(given).rpartition("/")[2]
            },
            "account_confirm_email": {"key": key_of_mail()},
            "account_reset_password_from_key": parts,
            "mfa_edit_webauthn": {"pk": passkey.pk},
            "mfa_remove_webauthn": {"pk": passkey.pk},
            "admin:app_list": {"app_label": "tenants"},
            "web_wallet:offer": {"object_id": open_in(self.alice, Credential)},
            "web_wallet:request": {"object_id": open_in(self.alice, Verification)},
            "studio:deletion": {"tenant_id": self.deleted_soon()},
            "studio:imported": {"tenant_id": self.imported()},
            "studio:scan_card": {
                "tenant_id": self.tenant.pk,
                "object_id": self.ids["policy_id"],
            },
            "studio:credential_sheet": {
                "tenant_id": self.tenant.pk,
                "object_id": self.ids["offer_id"],
            },
            "studio:credential_person": {
                "tenant_id": self.tenant.pk,
                "object_id": self.ids["offer_id"],
            },
            "admin:support_action": {"name": "add-member", "key": str(self.tenant.pk)},
        }

    def deleted_soon(self) -> Any:
        """Another organization of Fay, which its key has deleted."""
        other = Organization(self.called.organization, owner=self.fay)
        other.delete(f"/tenants/{other.tenant.public_id}")
        return other.tenant.pk

    def imported(self) -> Any:
        """Another organization of Fay, which came from another installation."""
        other = Organization(self.called.organization, owner=self.fay)
        other.post("/webhooks", world.WEBHOOK)
        policy = {"name": "P", "version": "1", "attributes": [{"policyName": "name"}]}
        policy = other.post("/verificationPolicies", policy)["policyId"]
        other.post("/kiosks", {"name": self.called.policy, "policyId": policy})
        wallet = Wallet.objects.get(wallet_id=other.hosts(self.called.holder).wallet_id)
        create_link(wallet, by=audit.SYSTEM)
        row = Tenant.objects.filter(pk=other.tenant.pk)
        row.update(imported_at=timezone.now())
        return other.tenant.pk

    def accepts_invitation(self) -> Browser:
        """A browser that has followed the link of an invitation's mail."""
        ida = {"email": f"{'i' * 60}@faber.example", "role": "viewer"}
        members = f"/studio/organizations/{self.tenant.pk}/members"
        self.owner.send(f"{members}/invite", **ida)
        [path] = re.findall(r"/invitations/\S+", mail.outbox[-1].body)
        invited = Browser()
        invited.get(path)
        return invited

    def add_objects(self, number: int) -> None:
        """One more of each kind, some of them on the connection of the pages."""
        self.faber.hosts(f"Alice {number}")
        self.faber.invites(name=f"Alice {number}")
        self.offered()
        self.asked()
        self.said(self.faber, self.connection[0])
        self.another_kiosk()
        zapier = {"url": f"https://alice.example/{number}", "type": "Zapier"}
        self.faber.post("/webhooks", zapier)
        self.faber.post(f"/webhooks/{self.hook}/example", world.EXAMPLE)
        self.bulk()
        log_call(self.tenant)
        ApiKey.issue(ApiKey.Kind.ACCESS_TOKEN, self.tenant, f"Key {number}")

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
            found.append((f"{name}_change", [row.pk]))
            if model is User:  # it is the same of all
                found.append((f"{name}_history", [row.pk]))
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
                re.sub(r"[^a-z0-9]+", "_", f"{name}{query}".lower()),
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
        if name in self.parts:
            return reverse(name, kwargs=self.parts[name])
        names = re.findall(r"<\w+:(\w+)>", patterns()[name])
        return reverse(name, kwargs={name: ids[name] for name in names})


def open_in(holder: Holder, model: Any) -> Any:
    """The key of the newest offer or request in a wallet."""
    rows = model.objects.filter(wallet__wallet_id=holder.wallet_id)
    return rows.latest("pk").pk


def log_call(tenant: Any) -> None:
    """Write a call of the API to the log, as a process does a second later."""
    LoggedRequestFactory(
        tenant=tenant,
        route="/custodian/v1/api/{walletId}/verifications/{verificationId}",
        status=404,
        error_code="not_found",
        request_id="0196f3a9-1111-7000-8000-000000000002",
        address="198.51.100.7",
    )


TEMPLATES = {called: Template(partial(World, called)) for called in (LONG, SHORT)}


def open_world(called: Names = LONG) -> World:
    """The world that a page shows, with everybody signed in."""
    made: World = TEMPLATES[called]()
    made.let_people_in()
    return made
