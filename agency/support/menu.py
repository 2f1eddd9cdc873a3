"""The menu of the admin: what staff look for, in that order, not Django's apps."""

from typing import TypedDict

from django.db.models import Model
from django.urls import reverse

# (heading, models as app.model or routes). A model that is in no entry is listed last,
# below "Other", so none can be forgotten.
MENU: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Customers", ("tenants.tenant", "tenants.provider", "tenants.apikey")),
    (
        "Exchanges",
        (
            "verifications.verification",
            "credentials.credential",
            "credentials.grant",
            "connections.connection",
            "connections.basicmessage",
        ),
    ),
    (
        "Webhooks",
        (
            "webhooks.webhook",
            "webhooks.event",
            "webhooks.delivery",
            "webhooks.attempt",
        ),
    ),
    (
        "Queues",
        (
            "queues",
            "connections.outboundmessage",
            "connections.inboundmessage",
            "credentials.publication",
            "credentials.bulk",
            "credentials.bulkrow",
            "credentials.mailing",
            "credentials.mailingrow",
            "credentials.mailday",
            "sandbox.simulatedanswer",
            "verifications.waitinganswer",
            "tenants.erasure",
        ),
    ),
    (
        "Definitions",
        (
            "credentials.schema",
            "credentials.credentialdefinition",
            "credentials.definitionformat",
            "credentials.revocationregistry",
            "credentials.statuslist",
            "credentials.tokenstatuslist",
            "credentials.publishedobject",
            "credentials.didendpoint",
            "credentials.webvhdid",
            "credentials.webvhresource",
            "credentials.readlog",
            "credentials.readresource",
            "verifications.verificationpolicy",
            "verifications.kiosk",
        ),
    ),
    (
        "People",
        (
            "auth.user",
            "tenants.membership",
            "tenants.invitation",
            "wallets.wallet",
            "sandbox.simulatedholder",
            "auth.group",
        ),
    ),
    ("Log", ("tenants.auditentry", "tenants.loggedrequest", "admin.logentry")),
    (
        "Settings",
        (
            "tenants.network",
            "tenants.agreementacceptance",
            "tenants.dailyusage",
            "wallets.key",
            "wallets.signingkey",
            "wallets.trustanchor",
            "wallets.authority",
            "wallets.sparekey",
            "wallets.keyrequest",
            "wallets.keyfiller",
            "tenants.datakey",
            "tenants.formerdatakey",
            "tenants.idempotencykey",
            "tenants.asset",
        ),
    ),
)
# What an entry is called where the name of the model is not what people look for.
NAMES = {
    "tenants.tenant": "Organizations",
    "connections.basicmessage": "Text messages",
    "connections.outboundmessage": "Messages out",
    "connections.inboundmessage": "Messages in",
    "wallets.wallet": "Holders' wallets",
    "auth.user": "Accounts",
    "tenants.membership": "Members",
    "auth.group": "Groups of staff",
    "credentials.mailingrow": "Mails",
    "credentials.mailday": "Mails by day",
    "credentials.grant": "Offers to OpenID4VC wallets",
    "credentials.definitionformat": "Formats of definitions",
    "credentials.tokenstatuslist": "Token status lists",
    "credentials.didendpoint": "Endpoints of DIDs",
    "credentials.webvhdid": "DIDs of did:webvh",
    "credentials.webvhresource": "Attested resources",
    "credentials.readlog": "Logs of others' DIDs",
    "credentials.readresource": "Resources of others' DIDs",
    "wallets.signingkey": "Keys of OpenID4VC",
    "wallets.authority": "Certificate authorities",
    "tenants.erasure": "Deletions",
    "tenants.dailyusage": "Usage by day",
    "admin.logentry": "Changes in the admin",
}
# One of them, where the name of the model is another.
KINDS = {
    "tenants.tenant": "organization",
    "tenants.provider": "account of a provider",
    "connections.basicmessage": "text message",
    "connections.outboundmessage": "message out",
    "connections.inboundmessage": "message in",
    "auth.user": "account",
    "tenants.membership": "member",
    "auth.group": "group of staff",
    "credentials.mailingrow": "mail",
    "tenants.erasure": "deletion",
    "admin.logentry": "change in the admin",
}
PAGES = {"queues": "All queues"}


class Entry(TypedDict):
    """A list or a page, as AdminSite.get_app_list() describes it."""

    name: str
    object_name: str
    admin_url: str
    add_url: str | None
    view_only: bool
    perms: dict[str, bool]


class Section(TypedDict):
    """A heading of the menu, which Django takes for an app."""

    name: str
    app_label: str
    app_url: str
    has_module_perms: bool
    models: list[Entry]


def name_of(model: type[Model]) -> str:
    plural = str(model._meta.verbose_name_plural)
    return NAMES.get(model._meta.label_lower, plural[:1].upper() + plural[1:])


def kind_of(model: type[Model]) -> str:
    return KINDS.get(model._meta.label_lower, str(model._meta.verbose_name))


def build_menu(entries: dict[str, Entry]) -> list[Section]:
    """Return the menu in the shape of AdminSite.get_app_list().

    entries: what the person may see, by `app.model`, as Django describes it.
    """
    left = dict(entries)
    sections = []
    for heading, keys in MENU:
        found: list[Entry] = []
        for key in keys:
            if key in PAGES:
                page: Entry = {
                    "name": PAGES[key],
                    "object_name": key,
                    "admin_url": reverse(key),
                    "add_url": None,
                    "view_only": True,
                    "perms": {"view": True},
                }
                found.append(page)
            elif entry := left.pop(key, None):
                found.append({**entry, "name": NAMES.get(key, entry["name"])})
        if any(key in entries for key in keys):
            sections.append(build_section(heading, found))
    if left:
        sections.append(build_section("Other", list(left.values())))
    return sections


def build_section(heading: str, entries: list[Entry]) -> Section:
    return {
        "name": heading,
        "app_label": f"menu-{heading.lower()}",
        "app_url": entries[0]["admin_url"],
        "has_module_perms": True,
        "models": entries,
    }
